"""Relational work on tables larger than memory: reading, counting, joining, writing. No privacy, no learning."""
