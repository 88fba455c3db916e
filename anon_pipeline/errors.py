"""The errors that end a release before it is published, and what their messages quote: names of columns, and numbers.

A message never holds a value of a person: it names files, columns, counts and remedies.
"""

from __future__ import annotations

from collections.abc import Iterable


class InputError(ValueError):
    """The spec or the data cannot be used; the message is one sentence with the place and the remedy (exit code 2).

    It is a `ValueError`, as scikit-learn expects one for a wrong parameter or table.
    """


class OfSource(InputError):
    """What is wrong with a key of a spec's `source`; a command that has an option for the key names the option.

    Attributes
    ----------
    key : the key, such as `sheet`
    what : what is wrong, and the remedy
    """

    def __init__(self, key: str, what: str) -> None:
        super().__init__(f"source.{key}: {what}")
        self.key = key
        self.what = what

    def __reduce__(self) -> tuple[type[OfSource], tuple[str, str]]:
        """The arguments for pickle, which otherwise would pass the sentence."""
        return type(self), (self.key, self.what)


class Unavailable(InputError):
    """Something besides spec and data is missing or unusable, so that the same run may succeed later."""


class NotDelivered(Unavailable):
    """The release is published, but a destination lacks it, or something else after it failed (exit code 4)."""


class Refused(Exception):
    """A check does not hold, so nothing is published (exit code 3).

    Attributes
    ----------
    failed : a sentence for each such check
    demanded : the same without any figure that was measured on people, for readers outside; None if nobody has said so
    """

    def __init__(self, failed: list[str], demanded: list[str] | None = None) -> None:
        super().__init__("refused: " + "; ".join(failed))
        self.failed = failed
        self.demanded = demanded

    def __reduce__(self) -> tuple[type[Refused], tuple[list[str], list[str] | None]]:
        """The arguments for pickle, which otherwise would pass the sentence instead of the list."""
        return type(self), (self.failed, self.demanded)


def number_of(number: int, singular: str, plural: str) -> str:
    """A number with its noun, for a message.

    >>> number_of(1, "row", "rows"), number_of(1200, "row", "rows")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {singular if number == 1 else plural}"


def percent(share: float, digits: int = 1) -> str:
    """A share for a message or a terminal; a share close to 0 or 1 is never rounded to 0 or 100 %.

    >>> percent(0.142), percent(0.0002), percent(0.9998), percent(0.0), percent(-0.0001)
    ('14.2%', '< 0.1%', '> 99.9%', '0%', '0%')
    >>> percent(0.04213, digits=2), percent(0.000004, digits=3)
    ('4.21%', '< 0.001%')
    """
    hundred, least = 100 * float(share), float(f"1e-{digits}")
    if 0 < hundred < least:
        return f"< {least:.{digits}f}%"
    if 100 - least < hundred < 100:
        return f"> {100 - least:.{digits}f}%"
    text = f"{round(hundred, digits) + 0.0:.{digits}f}"  # no minus before zero
    return f"{text.rstrip('0').rstrip('.')}%"


def known_names(names_found: Iterable[object], asked: Iterable[str]) -> str:
    """The names of a table's columns for a message, or only their number if no requested name is among them.

    The first line of a file without a header is a person, whose values no message may repeat.
    """
    names = [str(name) for name in names_found]
    if set(names).isdisjoint(asked):
        return (
            f"its first line names none of the columns asked for, but {number_of(len(names), 'other', 'others')}; if "
            "it is a header, ask for its names as they are written there, else put a header there, with no line above"
        )
    return f"it has {', '.join(names)}"
