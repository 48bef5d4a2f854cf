"""Traces of agents: what was done, what a policy says of it, and the same actions under another rationale."""
