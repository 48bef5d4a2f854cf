"""What fits: the cache, the admission equation, tiers."""
