"""Trace: where the MFU went, from whatever profiles a team has, as a bridge that reconciles."""
