"""Intervals of differences, and what they need."""
