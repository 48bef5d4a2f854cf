"""Drills: made runs with planted causes, to practise on and to test every rule against."""
