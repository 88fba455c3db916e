"""How long hypothesis searches here: the folder should take seconds, and a busy machine is no failure."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("privacy", max_examples=60, deadline=None)
settings.load_profile("privacy")
