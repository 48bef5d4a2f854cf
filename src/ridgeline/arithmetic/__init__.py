"""The arithmetic of large models: what one is, what it costs in FLOPs, bytes, seconds, joules and dollars."""
