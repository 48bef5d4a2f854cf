"""Compiled truth: a small twin of the plan, compiled on virtual devices and compared with the prediction."""
