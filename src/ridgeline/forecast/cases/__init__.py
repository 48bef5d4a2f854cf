"""What the forecast commands hand over: cases with their tables and charts."""
