"""Scores by the length of the history that a model saw."""
