"""L0 buckets, L1 collectives, L2 operations, L3 time between steps, L4 ranks: each a pure function of `Events`."""
