"""Differential privacy: noise, accounting, the budget and queries. Nothing here depends on Dagster or a terminal."""
