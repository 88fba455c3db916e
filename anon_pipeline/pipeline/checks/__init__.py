"""The blocking checks on stored results before anything is published: one battery of checks per file."""
