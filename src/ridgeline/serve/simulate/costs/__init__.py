"""What a step takes: the table that the loop reads, from the step model or from a profile of kernels."""
