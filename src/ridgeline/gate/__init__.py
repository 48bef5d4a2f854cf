"""Launch gates: ship, do not ship, or not enough evidence."""
