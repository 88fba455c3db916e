"""A module that cannot be imported, and says something it should not while failing."""

raise RuntimeError("Ottilie Wildermuth, HIV positive")
