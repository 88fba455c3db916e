"""Differential privacy: noise, accounting, the budget, and queries. Nothing here knows of Dagster or of a terminal."""
