"""The two ways a release can end without being published, and nothing else.

A message never holds a value of a person: it names files, columns, counts and remedies.
"""


class InputError(ValueError):
    """The spec or the data cannot be used: one sentence that names the place and the remedy (exit code 2).

    A `ValueError`, as scikit-learn expects one where a parameter or a table is wrong.
    """


class Refused(Exception):
    """A check does not hold, so nothing is published (exit code 3)."""

    def __init__(self, failed: list[str]) -> None:
        super().__init__("refused: " + "; ".join(failed))
        self.failed = failed
