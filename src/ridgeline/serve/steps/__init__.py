"""Seconds and joules of prefill and decode steps."""
