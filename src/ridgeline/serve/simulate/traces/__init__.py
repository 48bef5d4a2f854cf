"""Formats of request traces: one file each, found by walking. See `ridgeline.serve.simulate.traffic.requests`."""
