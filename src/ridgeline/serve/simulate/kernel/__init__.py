"""The compiled loop: what runs for every step. Importing its modules loads Numba."""
