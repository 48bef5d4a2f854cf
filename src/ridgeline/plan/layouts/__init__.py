"""Which parallel plan: every candidate, the ranking, why one lost, and jobs of two populations."""
