"""Comparison with other tools on one machine in one run; each tool has an environment of its own."""
