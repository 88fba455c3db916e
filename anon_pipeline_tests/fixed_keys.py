"""Private keys that follow from the test that needs them, so that its verdict is the same in every run.

What is random in a release is drawn under a private key. With keys of chance a test of something random fails now and
then for nothing, and cannot be had again. `make fresh` and `make explore` keep the keys of chance.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import anon_pipeline.anonymize.anonymizer
import anon_pipeline.keys
import anon_pipeline.sequential.release_history

#: The modules that make keys, each by the functions of `secrets` that `Following` has too.
MAKE_KEYS = (anon_pipeline.keys, anon_pipeline.anonymize.anonymizer, anon_pipeline.sequential.release_history)


class Following:
    """Stands for the module `secrets`: the first, second, third key that a test makes follow from its name."""

    def __init__(self) -> None:
        self.name: str | None = None
        self._made = Counter[str]()

    def next_name(self) -> str:
        """The test that runs, or the name that stands for it, and how often it has asked."""
        name = self.name or os.environ.get("PYTEST_CURRENT_TEST", "no test").rsplit(" (", 1)[0]
        self._made[name] += 1
        return f"{name} {self._made[name]}"

    def token_bytes(self, size: int) -> bytes:
        return hashlib.shake_256(self.next_name().encode()).digest(size)

    def token_hex(self, size: int) -> str:
        return self.token_bytes(size).hex()


following = Following()


def fix(name: str | None = None) -> None:
    """Let the keys of this process follow from the test that runs, or from a name."""
    following.name = name
    for module in MAKE_KEYS:
        module.secrets = following  # type: ignore[attr-defined]


def next_name() -> str | None:
    """The name that a process started now may have its keys follow from; none where keys are of chance."""
    return following.next_name() if vars(anon_pipeline.keys)["secrets"] is following else None


@contextmanager
def shared(name: str) -> Iterator[None]:
    """Keys of what several tests share follow from this name, whichever test comes first."""
    before, following.name = following.name, name
    try:
        yield
    finally:
        following.name = before
