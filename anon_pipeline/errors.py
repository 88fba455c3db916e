"""The ways a release can end without being published, and what their messages may say of a file.

A message never holds a value of a person: it names files, columns, counts and remedies.
"""

from __future__ import annotations

from collections.abc import Iterable


class InputError(ValueError):
    """The spec or the data cannot be used: one sentence that names the place and the remedy (exit code 2).

    A `ValueError`, as scikit-learn expects one where a parameter or a table is wrong.
    """


class Unavailable(InputError):
    """Spec and data may be right, but something else is not as it must be: the same run may succeed later."""


class NotDelivered(Unavailable):
    """The release stands, and a place that it is to be put to beside its folder does not have it yet (exit code 4)."""


class Refused(Exception):
    """A check does not hold, so nothing is published (exit code 3)."""

    def __init__(self, failed: list[str]) -> None:
        super().__init__("refused: " + "; ".join(failed))
        self.failed = failed

    def __reduce__(self) -> tuple[type[Refused], tuple[list[str]]]:
        """As pickle needs it, which else would take the sentence for the list."""
        return type(self), (self.failed,)


def known_names(names_found: Iterable[object], asked: Iterable[str]) -> str:
    """The names of a table's columns for a message, or how many there are where none of those asked for is among them.

    The first line of a file without a header is a person, whose values no message repeats.
    """
    names = [str(name) for name in names_found]
    if set(names).isdisjoint(asked):
        return f"its first line names none of the columns asked for, but {len(names)} others; is it a header?"
    return f"it has {', '.join(names)}"
