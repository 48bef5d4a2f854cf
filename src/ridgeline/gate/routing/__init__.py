"""Routers between a weak and a strong model: the split, the threshold, and what they cost."""
