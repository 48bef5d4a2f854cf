"""What arrives: request logs, drawn traffic, and the workload that an engine is handed."""
