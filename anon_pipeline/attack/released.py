"""A released table as its reader sees it: groups of equal rows, and the values that each group may stand for.

Tables of any tool are read here; `boxes` says how unlikely a person is in a group, and `candidates` finds the groups
that fit a person best.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.attack import MOST_KNOWN, generalized_values
from anon_pipeline.attack.boxes import Boxes, CategoryBoxes, Domain, OrderedBoxes
from anon_pipeline.attack.generalized_values import numbers, texts
from anon_pipeline.errors import InputError


@dataclass(frozen=True)
class Knowledge:
    """The public knowledge about a release.

    Attributes
    ----------
    quasi_identifiers : the columns an attacker may know of a person
    sensitive : the columns worth inferring
    other : further columns that the release keeps as they are
    numeric : those of all these columns that are ordered, numbers or dates
    answers : the sensitive columns in which a missing value is an answer of its own
    """

    quasi_identifiers: Sequence[str]
    sensitive: Sequence[str] = ()
    other: Sequence[str] = ()
    numeric: Sequence[str] = ()
    answers: Sequence[str] = ()

    def __post_init__(self) -> None:
        named = [*self.quasi_identifiers, *self.sensitive, *self.other]
        if not self.quasi_identifiers:
            raise InputError("an attacker needs at least one quasi-identifier")
        if (known := len(self.quasi_identifiers)) > MOST_KNOWN:
            raise InputError(f"attacks know at most {MOST_KNOWN} quasi-identifiers, and {known} are named; name fewer")
        if len(set(named)) < len(named):
            raise InputError("a column has one role: quasi-identifier, sensitive or other")

    @property
    def kept(self) -> tuple[str, ...]:
        """The columns that are released as they are."""
        return (*self.sensitive, *self.other)


@dataclass(frozen=True, eq=False)
class Released:
    """The groups of a released table, in ascending order of the values they show, so that no row order is left.

    Attributes
    ----------
    knowledge : the columns and their roles
    domains : the quasi-identifiers' values among people
    boxes : per quasi-identifier its distinct boxes
    box : the box of each group, shape (J, p)
    group : the group of each released row, shape (N,)
    sizes : released rows per group, shape (J,)
    representative : one plain value per group and quasi-identifier: code or number, NaN for none, shape (J, p)
    """

    knowledge: Knowledge
    domains: tuple[Domain, ...]
    boxes: tuple[Boxes, ...]
    box: IntArray
    group: IntArray
    sizes: IntArray
    representative: FloatArray

    @property
    def rows(self) -> int:
        return len(self.group)


def read_release(
    released: pd.DataFrame, people: Sequence[pd.DataFrame], knowledge: Knowledge, classes: pd.DataFrame | None = None
) -> Released:
    """Read any tool's release.

    Parameters
    ----------
    released : one row per released person; quasi-identifiers as plain values, or as ranges and sets in text
    people : raw tables that hold the quasi-identifiers, from which the columns' vocabularies are learned
    classes : the class table of one of our own releases, one row per class

    Raises
    ------
    InputError
        For a table that lacks a quasi-identifier, or a release without rows.
    """
    for table in (released, *people):
        absent = [name for name in knowledge.quasi_identifiers if name not in table.columns]
        if absent:
            raise InputError(f"the table lacks the columns {', '.join(absent)}")
    if not len(released):
        raise InputError("the released table has no rows")
    domains = tuple(
        Domain.learn(name, name in knowledge.numeric, [table[name] for table in people])
        for name in knowledge.quasi_identifiers
    )
    labels, distinct = [], []
    for domain in domains:
        label, values = _labels(released[domain.name], domain.ordered)
        labels.append(label)
        distinct.append(values)
    group, first = combined(labels)
    cells_of_groups = [
        [values[label] for label in column_labels[first]]
        for column_labels, values in zip(labels, distinct, strict=True)
    ]
    group_of_class = _group_of_class(classes, released, domains, cells_of_groups)
    boxes, box, representative = [], [], []
    rest = 1 / float(np.median(np.bincount(group)))
    for domain, cells in zip(domains, cells_of_groups, strict=True):
        of_column: Boxes
        if domain.ordered:
            of_column, of_group, plain = _ordered_column(domain, cells, classes, group_of_class)
        else:
            of_column, of_group, plain = _category_column(domain, cells, classes, group_of_class, rest)
        boxes.append(of_column)
        box.append(of_group)
        representative.append(plain)
    if any(not of_column.nearest for of_column in boxes):  # then a lone category is a set of one
        boxes = [
            replace(of_column, nearest=False) if isinstance(of_column, CategoryBoxes) else of_column
            for of_column in boxes
        ]
    return Released(
        knowledge=knowledge,
        domains=domains,
        boxes=tuple(boxes),
        box=np.stack(box, axis=1),
        group=group,
        sizes=np.bincount(group),
        representative=np.stack(representative, axis=1),
    )


def encode(domains: Sequence[Domain], people: pd.DataFrame) -> IntArray:
    """The people's codes, shape (n, p)."""
    return np.stack([domain.encode(people[domain.name]) for domain in domains], axis=1)


def combined(columns: Sequence[npt.NDArray[np.integer]]) -> tuple[IntArray, IntArray]:
    """The number of each row's tuple among the distinct tuples, ascending, shape (n,), and the first row of each."""
    key = np.unique(columns[0], return_inverse=True)[1].astype(np.int64)
    for column in columns[1:]:
        place = np.unique(column, return_inverse=True)[1]
        key = np.unique(key * (int(place.max(initial=0)) + 1) + place, return_inverse=True)[1].astype(np.int64)
    first = np.full(int(key.max(initial=-1)) + 1, len(key), dtype=np.int64)
    np.minimum.at(first, key, np.arange(len(key)))
    return key, first


Cell = float | str | None


def _labels(column: pd.Series, ordered: bool) -> tuple[IntArray, list[Cell]]:
    """The label of each row, and the distinct cells of a released column: None, floats, then other texts."""
    if ordered:
        cells = numbers(column)
        unread = np.isnan(cells) & column.notna().to_numpy()
        values: list[Cell] = [None, *np.unique(cells[~np.isnan(cells)]).tolist()]
        label = np.where(np.isnan(cells), 0, np.searchsorted(np.array(values[1:], dtype=float), cells) + 1)
        if unread.any():
            codes, distinct = pd.factorize(pd.Series(texts(column[unread])), sort=True)
            label[unread] = len(values) + codes
            values += distinct.tolist()
        return label.astype(np.int64), values
    codes, distinct = pd.factorize(pd.Series(texts(column)), sort=True)
    return (codes + 1).astype(np.int64), [None, *distinct.tolist()]


def _group_of_class(
    classes: pd.DataFrame | None, released: pd.DataFrame, domains: Sequence[Domain], cells: list[list[Cell]]
) -> IntArray:
    """The group with the same values as a row of `classes`, -1 where there is none, shape (C,).

    Classes with the same representatives are a single group to the release's reader, who can only unite their boxes.
    """
    if classes is None:
        return np.array([], dtype=np.int64)
    if any(domain.name not in classes.columns for domain in domains):
        return np.full(len(classes), -1)
    keys = []
    for domain, of_column in zip(domains, cells, strict=True):
        column = classes[domain.name]
        if released[domain.name].dtype == np.float32:  # the table of classes has more digits
            column = column.astype("Float32")
        label, values = _labels(column, domain.ordered)
        # Withheld values are missing values in columns that hold no text.
        if generalized_values.ANYTHING not in of_column:
            values = [None if value == generalized_values.ANYTHING else value for value in values]
        keys.append([values[code] for code in label])
    group = {key: place for place, key in enumerate(zip(*cells, strict=True))}
    groups = [group.get(key, -1) for key in zip(*keys, strict=True)]
    return np.array(groups, dtype=np.int64)


def _ordered_column(
    domain: Domain, cells: list[Cell], classes: pd.DataFrame | None, group: IntArray
) -> tuple[OrderedBoxes, IntArray, FloatArray]:
    """The distinct boxes of a column, each group's box, and a plain value per group."""
    read = [_interval(cell) for cell in cells]
    low, high = np.array([interval.low for interval in read]), np.array([interval.high for interval in read])
    missing = np.array([interval.missing for interval in read])
    value = np.array([cell if isinstance(cell, float) else math.nan for cell in cells])
    plain = not any(isinstance(cell, str) for cell in cells)
    if classes is not None and f"{domain.name}_low" in classes.columns and (group >= 0).any():
        plain, published, of = False, group >= 0, group[group >= 0]
        least, most = (numbers(classes[f"{domain.name}_{end}"])[published] for end in ("low", "high"))
        low[of], high[of], missing[of] = math.inf, -math.inf, False
        np.minimum.at(low, of, np.nan_to_num(least, nan=-math.inf))  # an end that is missing is open
        np.maximum.at(high, of, np.nan_to_num(most, nan=math.inf))
        # A missing value is possible where some members lack a value, or one of them might; only False excludes it.
        lacking = f"{domain.name}_missing"
        full = (numbers(classes[lacking]) == 0)[published] if lacking in classes.columns else False
        np.logical_or.at(missing, of, np.logical_not(full))
    representative = value if plain else np.where(np.isnan(value), _middle(low, high), value)
    box, first = combined([_ranks(low), _ranks(high), missing.astype(np.int64), _ranks(value)])
    return OrderedBoxes(domain, low[first], high[first], missing[first], value[first], plain), box, representative


def _middle(low: FloatArray, high: FloatArray) -> FloatArray:
    """The middle of an interval; the known end where the other is open, NaN where both are open."""
    low, high = np.where(np.isfinite(low), low, high), np.where(np.isfinite(high), high, low)
    named = np.isfinite(low)
    return np.where(named, (np.where(named, low, 0) + np.where(named, high, 0)) / 2, math.nan)


def _interval(cell: Cell) -> generalized_values.Interval:
    if cell is None:
        return generalized_values.ABSENT
    if isinstance(cell, float):
        return generalized_values.Interval(cell, cell)
    read = generalized_values.read_interval(cell)
    return generalized_values.UNKNOWN if read is None else read


def _ranks(values: FloatArray) -> IntArray:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _category_column(
    domain: Domain, cells: list[Cell], classes: pd.DataFrame | None, group: IntArray, rest: float
) -> tuple[CategoryBoxes, IntArray, FloatArray]:
    """The distinct boxes of a column, each group's box, and a plain value per group."""
    code_of: Mapping[str | None, int] = {None: 0, **{value: code for code, value in enumerate(domain.values, 1)}}
    vocabulary = frozenset(domain.values.tolist())
    published: dict[int, frozenset[str | None]] = {}
    if classes is not None and f"{domain.name}_values" in classes.columns:
        for place, values in zip(group.tolist(), classes[f"{domain.name}_values"], strict=True):
            published[place] = published.get(place, frozenset()) | _listed(values)
    read: dict[str | None, frozenset[str | None]] = {None: frozenset([None])}
    number: dict[tuple[tuple[int, ...], bool, int], int] = {}
    box, plain = np.empty(len(cells), dtype=np.int64), np.full(len(cells), math.nan)
    for place, cell in enumerate(cells):
        text = None if cell is None else str(cell)
        if text not in read:
            read[text] = generalized_values.read_set(str(text), vocabulary)
        members = published.get(place, read[text])
        codes = tuple(
            sorted(code_of[member] for member in members if member in code_of and member != generalized_values.ANYTHING)
        )
        representative = code_of.get(text, -1)
        plain[place] = representative if representative >= 0 else codes[0] if codes else math.nan
        key = (codes, generalized_values.ANYTHING in members, representative if representative in codes else -1)
        box[place] = number.setdefault(key, len(number))
    pairs = [(place, code) for place, (codes, _, _) in enumerate(number) for code in codes]
    rows, columns = (np.array(pairs, dtype=np.int64).reshape(-1, 2)).T
    sets = sparse.csc_array((np.ones(len(rows), dtype=bool), (rows, columns)), shape=(len(number), len(domain)))
    others = np.array([anything for _, anything, _ in number])
    nearest = not any(place >= 0 for place in published)
    nearest = nearest and all(len(codes) + anything <= 1 for codes, anything, _ in number)
    return CategoryBoxes(domain, sets, others, np.array([code for *_, code in number]), rest, nearest), box, plain


def _listed(values: object) -> frozenset[str | None]:
    """The published list of a class's categories; a class without a list may hold any category."""
    if not isinstance(values, list | tuple | np.ndarray):
        return frozenset([generalized_values.ANYTHING])
    return frozenset(
        None if value is None or value != value else generalized_values.category(value) for value in values
    )
