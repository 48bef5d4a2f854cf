"""Which run to buy next: the basins that the runs leave open, and what a run would take off the variance."""
