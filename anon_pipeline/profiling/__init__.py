"""Profiling a new table: the roles of its columns, and the spec that is proposed for it."""
