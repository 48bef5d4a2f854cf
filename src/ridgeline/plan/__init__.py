"""Plan: from a compute budget to a model that can be trained, paid for and served."""
