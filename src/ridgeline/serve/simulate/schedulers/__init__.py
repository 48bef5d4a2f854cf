"""One batching policy per file. Whatever `Scheduler` is found here is simulated, tested and listed."""
