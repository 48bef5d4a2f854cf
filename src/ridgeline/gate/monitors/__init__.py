"""Monitors of traces: one plug-in per file, compared by whether their score moves with what the agent says."""
