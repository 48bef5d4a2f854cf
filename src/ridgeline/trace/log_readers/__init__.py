"""Readers of step-time and device logs, one file a format; each defines one ``LogReader``."""
