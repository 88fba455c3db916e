"""Run the attacks on a release, a model or a foreign table, and state their results."""
