"""Rules of the family G."""
