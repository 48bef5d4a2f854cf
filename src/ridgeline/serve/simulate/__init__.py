"""Requests through an engine, event by event."""
