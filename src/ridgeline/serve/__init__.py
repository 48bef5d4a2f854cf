"""Serving: what fits, how fast it answers, what each lever buys, and the model that fits the budget."""
