"""Synthetic tables from noisy counts: measuring the counts, fitting a model to them, and drawing rows from it."""
