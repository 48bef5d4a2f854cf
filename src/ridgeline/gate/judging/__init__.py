"""What the gates on paired samples share: columns and their checks, shares of runs, and what is shown beside them."""
