"""Padding of a batch: the true lengths, the layouts that would hold them, and the work on zeros."""
