"""Schemas of request logs, one a file."""
