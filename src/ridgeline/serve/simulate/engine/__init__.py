"""The engine: its settings and state, the loop over its steps, the plain twin, and what came out."""
