"""Rules of the family S."""
