"""Decisions: two recipes, a ladder's design, scenarios of serving and data, what a schedule mismatch does."""
