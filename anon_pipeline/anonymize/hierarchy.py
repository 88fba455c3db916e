"""Hierarchies of a column's values, as a file lists them, as prefixes of codes, or as the calendar has them.

How a class is labelled with a node is in `labels`; how the tree keeps the nodes of a strict hierarchy whole is in
`tree`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from anon_pipeline.errors import InputError
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Domain, Nodes

#: The name of the topmost node, which holds all values.
EVERYTHING = "*"


@runtime_checkable
class Hierarchy(Protocol):
    """Has the nodes above each value of a column; the tree may not cut through the nodes of a `strict` hierarchy."""

    @property
    def strict(self) -> bool: ...

    def nodes(self, domain: Domain) -> Nodes:
        """The nodes above the values of a column.

        Raises
        ------
        InputError
            Where the hierarchy does not suit the column, without naming a value.
        """


@dataclass(frozen=True)
class Listed:
    """A hierarchy that lists every value.

    Attributes
    ----------
    paths : for each value, as a text, the names of the nodes above it, upwards; all of one length
    source : the file it was read from, named in error messages
    """

    paths: Mapping[str, tuple[str, ...]]
    strict: bool = False
    source: str = "the hierarchy"

    @classmethod
    def read(cls, path: str | Path, strict: bool = False, delimiter: str = ";") -> Listed:
        """From a CSV file in ARX's format: `value;level 1;level 2;...` on each line, in UTF-8, without a header.

        Raises
        ------
        InputError
            For a file that is no such list, naming the line.
        """
        paths: dict[str, tuple[str, ...]] = {}
        try:
            with Path(path).open(encoding="utf-8-sig", newline="") as lines:
                reader = csv.reader(lines, delimiter=delimiter)
                for line in reader:
                    if not line:
                        continue
                    value, above = line[0], tuple(line[1:])
                    known = next(iter(paths.values()), above)
                    if not above:
                        raise InputError(
                            f"{path}: line {reader.line_num} has a value and no level; write value{delimiter}level 1"
                            f"{delimiter}level 2, or name the delimiter"
                        )
                    if len(above) != len(known):
                        raise InputError(
                            f"{path}: line {reader.line_num} has {len(above)} levels, and the first line {len(known)}; "
                            "every line has as many"
                        )
                    if paths.setdefault(value, above) != above:
                        raise InputError(
                            f"{path}: line {reader.line_num} places a value that another line places elsewhere; "
                            "each value has one place"
                        )
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror})") from None
        except (UnicodeDecodeError, csv.Error):
            raise InputError(f"{path}: is no CSV file in UTF-8") from None
        if not paths:
            raise InputError(f"{path}: is empty; write value{delimiter}level 1{delimiter}level 2 on each line")
        return cls(paths, strict, str(path))

    def nodes(self, domain: Domain) -> Nodes:
        if domain.type is ColumnType.DATE:
            raise InputError(
                f"columns.{domain.name}.hierarchy: a file lists texts or numbers, and the column holds dates; say "
                "hierarchy: calendar, or type: categorical"
            )
        coded = _number if domain.ordered else key_of(domain.storage)
        # Where two texts are one number, as 7 and 7.0 are, the first line counts.
        places = {coded(text): path for text, path in reversed(list(self.paths.items()))}
        values = domain.values.tolist()
        path_of_value = [places.get(value if domain.ordered else coded(value)) for value in values]
        paths = [path for path in path_of_value if path is not None]
        absent = len(path_of_value) - len(paths)
        if absent:
            people = int(domain.counts[1:][[path is None for path in path_of_value]].sum())
            raise InputError(
                f"columns.{domain.name}.hierarchy: {absent} of the column's {len(path_of_value)} values (of {people} "
                f"people) are not in {self.source}; add a line for each, or name them under source.missing"
            )
        # Values of the file that the column lacks count too: where the file has several tops, none holds everybody.
        root = [EVERYTHING] * (len({path[-1] for path in self.paths.values()}) > 1)
        return _nodes([[*path, *root] for path in paths], self.strict)


@dataclass(frozen=True)
class Prefixes:
    """Prefixes of codes: 12345 is in 123**, and 123** is in 12***.

    Attributes
    ----------
    lengths : the lengths of the prefixes, the longest first; a length that keeps every code whole is no level
    """

    lengths: tuple[int, ...]
    strict: bool = False

    def nodes(self, domain: Domain) -> Nodes:
        if domain.ordered:
            raise InputError(
                f"columns.{domain.name}.hierarchy: prefixes are of texts, and the column holds {domain.type} values; "
                "say type: categorical, so that leading zeros stay"
            )
        values = [str(value) for value in domain.values]
        longest = max(map(len, values), default=0)
        lengths = [length for length in self.lengths if length < longest]
        return _nodes([[*(_prefix(value, length) for length in lengths), EVERYTHING] for value in values], self.strict)


@dataclass(frozen=True)
class Calendar:
    """Days are in months, months in quarters, years and decades; what spans years is shown as "2019 .. 2021"."""

    strict: bool = False

    def nodes(self, domain: Domain) -> Nodes:
        if domain.type is not ColumnType.DATE:
            raise InputError(
                f"columns.{domain.name}.hierarchy: the calendar is of dates, and the column holds {domain.type} "
                "values; say type: date"
            )
        days_are_values = domain.storage == "DATE"
        paths = []
        for moment in domain.readable(domain.values):
            month, year = str(moment.astype("datetime64[M]")), str(moment.astype("datetime64[Y]"))
            quarter = f"{year} Q{(int(month[-2:]) + 2) // 3}"
            day = [] if days_are_values else [str(moment.astype("datetime64[D]"))]
            paths.append([*day, month, quarter, year, f"{year[:-1]}0s", EVERYTHING])
        return _nodes(paths, self.strict, named=3 if days_are_values else 4)


def _prefix(code: str, length: int) -> str:
    return code[:length] + EVERYTHING * (len(code) - length)


def key_of(storage: str) -> Callable[[str], str | float]:
    """What makes two texts the same category of a column stored so: of numbers 1 is 1.0, as SPSS and Stata store it."""
    if storage in ("", "VARCHAR"):
        return str
    return lambda text: text if (number := _number(text)) is None else number


def _number(text: str) -> int | float | None:
    """A text as a number, None for what is none."""
    try:
        return int(text) if text.strip().lstrip("+-").isdecimal() else float(text)
    except ValueError:
        return None


def _nodes(paths: Sequence[Sequence[str]], strict: bool, named: int | None = None) -> Nodes:
    """Nodes from the names above each value, upwards to one root; a node is identified by its name and those above."""
    height = len(paths[0]) if paths else 1
    node = np.empty((len(paths), height), dtype=np.int64)
    labels = []
    for level in range(height):
        number: dict[tuple[str, ...], int] = {}
        node[:, level] = [number.setdefault(tuple(path[level:]), len(number)) for path in paths]
        labels.append(tuple(path[0] for path in number))
    return Nodes(node, tuple(labels), strict, height if named is None else named)
