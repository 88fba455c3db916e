"""A synthetic table from noisy counts: what is counted, the model that fits the counts, and rows drawn from it."""
