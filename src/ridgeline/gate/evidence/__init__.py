"""Per-example results as columns, and pairs of runs by content."""
