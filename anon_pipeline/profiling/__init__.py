"""Looking at a table that is new: what its columns are, and the spec proposed for it."""
