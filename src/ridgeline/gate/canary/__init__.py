"""Needles in a long context: making them, asking for them, placing them, and what a server does to them."""
