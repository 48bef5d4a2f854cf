"""A detector: labelled decisions, its rates, what it is worth at a prevalence, and the log of looks at the field."""
