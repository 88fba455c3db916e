"""The values that a class shows in place of its members' values, so that no published value is one person's.

Every published value is shared by k people of the release (`naming` says which values these are). Two more rules hold
for every class and column, and the tests check them on random tables:

* a category that only one member has is neither the class's representative nor listed in its set;
* a numeric representative is not the value of a single member, unless it lies strictly between the smallest and the
  largest member. Where no such number may be named, the representative is withheld.

An interval, a span of ordered categories and a hierarchy's label enclose all members. Where no value beyond the
outermost member may be named, that end is open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import sparse

from anon_pipeline.anonymize.labels import Labels, lowest_labels
from anon_pipeline.anonymize.levels import median_levels, named_spans
from anon_pipeline.anonymize.naming import Values, named_codes, scale
from anon_pipeline.arrays import BoolArray, IntArray
from anon_pipeline.distinct import factorized, of_each_list
from anon_pipeline.errors import InputError
from anon_pipeline.privacy.statistics import histogram
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import FIRST_MOMENT, LAST_MOMENT, Cells, Domain

#: Stands for a category that is not published. A text column shows it; columns of other types show a missing value.
SUPPRESSED = "*"

#: A number is at most this many grid steps, so that neighbouring grid points are different floats.
FINEST = 1e14
#: Numbers of nobody who is released may lie any number of steps away; they are taken for this many.
FARTHEST = 2e18

#: The microseconds of a day, an hour, a minute, a second and a microsecond, for moments.
MICROSECONDS = (86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000, 1)

#: Codes of a categorical representative beside those of the domain.
WITHHELD = -1


@dataclass(frozen=True, eq=False)
class OrderedSummary:
    """The recoded values of an ordered column by class; every array has shape (J,).

    Attributes
    ----------
    domain : the column
    representative : the number that stands for the class, on the grid
    withheld : where there is no representative: nobody has a value, most have none, or any number would be one person's
    low, high : grid points that enclose every member's value
    open_low, open_high : where no end may be named
    known : members with a value
    missing : members without a value
    missing_told : whether the class publishes that some members have no value
    labels : what classes show in the words of the column's hierarchy, where it has one
    """

    domain: Domain
    representative: npt.NDArray[np.generic]
    withheld: npt.NDArray[np.bool_]
    low: npt.NDArray[np.generic]
    high: npt.NDArray[np.generic]
    open_low: BoolArray
    open_high: BoolArray
    known: IntArray
    missing: IntArray
    missing_told: BoolArray
    labels: Labels | None = None

    def of_classes(self, classes: IntArray) -> OrderedSummary:
        """The summary of some classes, in the order in which they are named."""
        columns = [field.name for field in fields(self) if field.name not in ("domain", "labels")]
        chosen: dict[str, Any] = {name: getattr(self, name)[classes] for name in columns}
        return replace(self, **chosen, labels=None if self.labels is None else self.labels.of_classes(classes))

    def ranges(self) -> list[str]:
        """ "[25, 37]", "≥ 80" or "≤ 20" for each class.

        "or missing" is added where some members have no value and this is published, "or *" where it is not published.
        A value that only one member has beside missing ones is not published either: "* or missing".
        """
        if self.labels is not None:
            return list(self.labels.texts)
        texts = []
        ends = self.domain.readable(self.low), self.domain.readable(self.high), self.open_low, self.open_high
        for low, high, open_low, open_high, known in zip(*ends, self.known, strict=True):
            if not known:
                texts.append("")
            elif known == 1 or (open_low and open_high):
                texts.append(SUPPRESSED)
            elif open_low or open_high:
                texts.append(f"≤ {high}" if open_low else f"≥ {low}")
            else:
                texts.append(f"{low}" if low == high else f"[{low}, {high}]")
        return or_missing(texts, self.missing, self.missing_told)


@dataclass(frozen=True, eq=False)
class CategorySummary:
    """The recoded values of a categorical column by class.

    Attributes
    ----------
    domain : the column
    representative : code of the class's most common category, or the median one where they have an order; WITHHELD
        where no category has two members, shape (J,)
    members : people by class and code, sparse, shape (J, m + 1)
    named : which codes may be named, shape (m + 1,)
    labels : what classes show in the words of the column's hierarchy, where it has one
    """

    domain: Domain
    representative: IntArray
    members: sparse.csr_array
    named: BoolArray
    labels: Labels | None = None

    def of_classes(self, classes: IntArray) -> CategorySummary:
        """The summary of some classes, in the order in which they are named."""
        labels = None if self.labels is None else self.labels.of_classes(classes)
        members = self.members[classes].tocsr()
        return replace(self, representative=self.representative[classes], members=members, labels=labels)

    def sets(self) -> list[list[str | None]]:
        """The categories each class stands for: those of two or more members, None for missing, "*" for the rest.

        The rest are the categories of single members and those that may not be named. Categories follow the order of
        the column's levels, where it has levels. Classes that stand for the same share one list: change none of them.
        """
        members, values, named = self.members, self.domain.values, self.named
        if self.domain.levels is not None:
            order = np.argsort(self.domain.levels)
            codes = np.r_[0, order + 1]
            members, values, named = members[:, codes].tocsr(), values[order], named[codes]
            members.sort_indices()
        classes = members.shape[0]
        of_entry = np.repeat(np.arange(classes), np.diff(members.indptr))
        is_listed = (members.data > 1) & named[members.indices]
        has_rest = np.bincount(of_entry[~is_listed], minlength=classes) > 0
        length = np.bincount(of_entry[is_listed], minlength=classes) + has_rest
        ends = np.cumsum(length)
        code = np.empty(length.sum(), dtype=np.int64)
        rest = np.zeros(len(code), dtype=bool)
        rest[ends[has_rest] - 1] = True
        code[rest] = len(self.domain)
        code[~rest] = members.indices[is_listed]
        names = [None, *(str(value) for value in values), SUPPRESSED]
        return of_each_list(code, np.r_[0, ends], lambda listed: [names[of_list] for of_list in listed])

    def ranges(self) -> list[str]:
        """ "{Private, State-gov, *}" for each class, a lone category without the braces; "low .. middle" of levels."""
        if self.labels is not None:
            return list(self.labels.texts)
        if self.domain.levels is not None:
            return self._spans(self.domain.levels)
        texts = []
        for names in self.sets():
            words = ["missing" if name is None else name for name in names]
            texts.append(words[0] if len(words) == 1 else "{" + ", ".join(words) + "}")
        return texts

    def _spans(self, levels: IntArray) -> list[str]:
        """ "low .. middle", "≥ middle" or "≤ low" for each class, "or missing" as with numbers."""
        names = np.array(["", *map(str, self.domain.values)], dtype=object)
        low, high, known = named_spans(levels, self.members, self.named)
        texts = []
        for first, last, people in zip(low, high, known, strict=True):
            if not people:
                texts.append("")
            elif people == 1 or first == last == 0:
                texts.append(SUPPRESSED)
            elif first == 0 or last == 0:
                texts.append(f"≤ {names[last]}" if first == 0 else f"≥ {names[first]}")
            else:
                texts.append(names[first] if first == last else f"{names[first]} .. {names[last]}")
        missing = _column(self.members, 0)
        return or_missing(texts, missing, (missing > 1) & self.named[0])


Summary = OrderedSummary | CategorySummary


def default_grid(domain: Domain, k: int, people: IntArray | None = None) -> float:
    """The finest step of 1, 2 or 5 times a power of ten at which the median person shares a value with k people.

    `people` is how many have each value, shape (m,); if it is absent, everybody in the table counts.

    The step is never finer than 1 for whole numbers and dates, nor than a day for moments that are all at midnight, and
    so on. It is never finer than ten digits of the values' differences, nor than thirteen digits of the values.
    """
    people = domain.counts[1:] if people is None else people
    values, people = domain.values[people > 0], people[people > 0]
    if len(values) == 0:
        return 1.0
    whole = values.dtype.kind == "i"
    span = float(values[-1]) - float(values[0])
    largest = max(abs(float(values[0])), abs(float(values[-1])))
    exponent = 0
    if not whole and largest > 0:
        exponent = max(int(np.floor(np.log10(span or largest))) - 9, int(np.floor(np.log10(largest))) - 12, -200)
    unit = 1
    if domain.type is ColumnType.DATE and domain.storage != "DATE":
        unit = next(unit for unit in MICROSECONDS if not (values % unit).any())
    while True:
        for mantissa in (1, 2, 5):
            step = mantissa * 10.0**exponent * unit
            _, place = np.unique(grid_index(values, step), return_inverse=True)
            alike = np.sort(np.bincount(place, weights=people))
            reached = np.cumsum(alike)
            median_person = alike[np.searchsorted(reached, reached[-1] / 2)]
            if median_person >= k or step > span:
                return step
        exponent += 1


def grid_index(values: npt.NDArray[np.generic], grid: float, towards: float = 0.5) -> IntArray:
    """Each value as a multiple of the grid; `towards` 0 rounds down, 1 up, .5 to the nearest (ties up)."""
    if values.dtype.kind == "i" and float(grid).is_integer():
        step = int(grid)
        whole, rest = np.divmod(values.astype(np.int64), step)
        return whole + (rest >= {0.0: step, 0.5: step - step // 2, 1.0: 1}[towards])
    with np.errstate(over="ignore"):
        scaled = np.clip(values.astype(np.float64) / grid, -FARTHEST, FARTHEST)
    # A value on the grid stays there although its quotient may differ from a whole number by a rounding error.
    nearest = np.rint(scaled)
    on_grid = np.abs(scaled - nearest) <= 1e-15 * np.maximum(1.0, np.abs(nearest))
    rounded = np.floor(scaled) if towards == 0 else np.ceil(scaled) if towards == 1 else np.floor(scaled + 0.5)
    return np.where(on_grid, nearest, rounded).astype(np.int64)


def grid_value(index: IntArray, grid: float, like: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """The number at a grid index: whole where the column and the grid are, else rounded to a short decimal number."""
    if like.dtype.kind == "i" and float(grid).is_integer():
        return index * int(grid)
    parts = round(1 / grid)
    if parts and abs(parts * grid - 1) < 1e-12:
        return index / parts  # the float nearest to the decimal number, as 3 * 0.1 is not
    return np.round(index.astype(np.float64) * grid, 0 if float(grid).is_integer() else 12) + 0.0


def _on_grid(domain: Domain, index: IntArray, grid: float) -> npt.NDArray[np.generic]:
    """The values at grid indexes; dates are within the years 1 to 9999, as people's own dates are.

    9999-12-31 often stands for "no end", and few libraries can hold the day after it.
    """
    values = grid_value(index, grid, domain.values)
    if domain.type is not ColumnType.DATE:
        return values
    unit = MICROSECONDS[0] if domain.storage == "DATE" else 1
    clipped: npt.NDArray[np.generic] = np.clip(values, FIRST_MOMENT // unit, LAST_MOMENT // unit)
    return clipped


def summarize_ordered(domain: Domain, members: sparse.csr_array, grid: float, k: int) -> OrderedSummary:
    """Median and enclosing interval of each class from its histogram `members`, shape (J, m + 1)."""
    classes = members.shape[0]
    missing, raw = _column(members, 0), members[:, 1:].tocsr()
    raw.sort_indices()
    start, end = (grid_index(ends, grid, 0.0) + grid_index(ends, grid, 1.0) for ends in (domain.low, domain.high))
    index = grid_index(domain.values, grid)
    people = np.asarray(raw.sum(axis=0)).ravel().astype(np.int64)
    nameable = scale(Values(start, end, index, people), k)

    known = np.asarray(raw.sum(axis=1)).ravel().astype(np.int64)
    some = np.flatnonzero(known)  # classes in which somebody has a value
    first, last = raw.indices[raw.indptr[some]], raw.indices[raw.indptr[some + 1] - 1]
    # Lower median: the first value at which half of the members are reached.
    reached = np.cumsum(raw.data)
    before = reached[raw.indptr[some]] - raw.data[raw.indptr[some]]
    median = raw.indices[np.searchsorted(reached, before + (known[some] + 1) // 2)] if len(some) else first
    place = nameable.stand_in(start[median], end[median], index[median])
    lone = _only_one(raw, index, some)
    halfway = index[first] + (index[last] - index[first]) // 2
    place = np.where(lone(place), nameable.stand_in(2 * halfway, 2 * halfway, halfway), place)

    withheld = np.ones(classes, dtype=bool)
    withheld[some] = lone(place) | (missing[some] > known[some]) | (known[some] == 1) | (len(nameable.points) == 0)
    representative, lowest, highest = (np.zeros(classes, dtype=np.int64) for _ in range(3))
    open_low, open_high = np.zeros(classes, dtype=bool), np.zeros(classes, dtype=bool)
    representative[some] = place
    lowest[some], open_low[some] = nameable.lower(start[first])
    highest[some], open_high[some] = nameable.upper(end[last])
    return OrderedSummary(
        domain=domain,
        representative=_on_grid(domain, representative, grid),
        withheld=withheld,
        low=_on_grid(domain, lowest, grid),
        high=_on_grid(domain, highest, grid),
        open_low=open_low,
        open_high=open_high,
        known=known,
        missing=missing,
        missing_told=(missing > 1) & (missing.sum() >= k),
    )


def _only_one(raw: sparse.csr_array, index: IntArray, some: IntArray) -> Callable[[IntArray], BoolArray]:
    """Whether a grid point is the smallest or the largest of a class and a single member lies there.

    `raw` is the people by class and value, `index` the grid point of each value, and `some` the classes in which people
    have a value. The returned function takes one grid point for each of these classes.
    """
    group = np.repeat(np.arange(raw.shape[0]), np.diff(raw.indptr))
    levels, level = np.unique(index, return_inverse=True)
    rounded = histogram(group, level[raw.indices], raw.data, (raw.shape[0], max(len(levels), 1)))
    first, last = rounded.indptr[some], rounded.indptr[some + 1] - 1
    smallest, largest = (levels[rounded.indices[end]] if len(some) else levels[:0] for end in (first, last))
    alone = [rounded.data[end] == 1 for end in (first, last)]

    def lone(point: IntArray) -> BoolArray:
        is_lone: BoolArray = ((point == smallest) & alone[0]) | ((point == largest) & alone[1])
        return is_lone

    return lone


def summarize_category(domain: Domain, members: sparse.csr_array, k: int) -> CategorySummary:
    """The most common category of each class, or the median level where the column has levels.

    On a tie the smallest value wins, and a missing value comes last. Only categories that may be named count.
    """
    named = named_codes(np.asarray(members.sum(axis=0)).ravel(), k)
    if domain.levels is not None:
        return CategorySummary(domain, median_levels(domain.levels, members, WITHHELD, named), members, named)
    classes = members.shape[0]
    entries = members.tocoo()
    group, code, count = entries.coords[0], entries.coords[1], entries.data
    order = np.lexsort((np.where(code == 0, len(domain), code), -count * named[code], group))
    first = order[np.searchsorted(group[order], np.arange(classes))]
    representative = np.where((count[first] > 1) & named[code[first]], code[first], WITHHELD).astype(np.int64)
    return CategorySummary(domain, representative, members, named)


def released_cells(class_of_cell: IntArray) -> slice | BoolArray:
    """The cells whose people are released: all of them as a slice, of which an array makes no copy, or a mask (C,)."""
    kept = class_of_cell >= 0
    return slice(None) if kept.all() else kept


def summarize(cells: Cells, class_of_cell: IntArray, classes: int, k: int, grids: Mapping[str, float]) -> list[Summary]:
    """What each class shows, per quasi-identifier; `grids` overrides the default grid of ordered columns.

    A cell of class -1 is suppressed and counts nowhere. Every value that a class shows is shared by k people.

    Raises
    ------
    InputError
        For a grid that is too fine for the numbers of its column.
    """
    kept = released_cells(class_of_cell)
    summaries: list[Summary] = []
    summary: Summary
    for column, domain in enumerate(cells.domains):
        code = cells.codes[kept, column].astype(np.int64)
        members = histogram(class_of_cell[kept], code, cells.counts[kept], (classes, len(domain)))
        if domain.ordered:
            people = np.asarray(members.sum(axis=0)).ravel().astype(np.int64)[1:]
            grid = grids.get(domain.name) or default_grid(domain, k, people)
            exact = domain.values.dtype.kind == "i" and float(grid).is_integer()
            of_somebody = domain.values[people > 0]
            if not exact and np.abs(of_somebody).max(initial=0) > grid * FINEST:
                raise InputError(f"columns.{domain.name}.grid: {grid} is too fine for numbers of this size")
            summary = summarize_ordered(domain, members, grid, k)
        else:
            summary = summarize_category(domain, members, k)
        if domain.nodes is not None:
            summary = replace(summary, labels=lowest_labels(domain, domain.nodes, members, k))
        summaries.append(summary)
    return summaries


def narrowed(domain: Domain, storage: str) -> Domain:
    """A column of floats as whole numbers, or of moments as days, which all values of released people are.

    Any other value becomes the next below it, and the ends of a bin the next that enclose it. Of categories 1.0 is 1.
    """
    if not domain.ordered:
        texts = np.array([str(int(float(text))) for text in domain.values.tolist()], dtype=object)
        return replace(domain, values=texts, storage=storage)
    unit = MICROSECONDS[0] if domain.type is ColumnType.DATE else 1
    below, low, high = (np.floor_divide(of, unit).astype(np.int64) for of in (domain.values, domain.low, domain.high))
    nodes = domain.nodes
    if nodes is not None and domain.type is ColumnType.DATE:  # a calendar names the days of moments
        nodes = replace(nodes, node=nodes.node[:, 1:], labels=nodes.labels[1:], named=nodes.named - 1)
    whole = replace(domain, values=below, storage=storage, nodes=nodes)
    return replace(whole, lows=low, highs=high + (high * unit < domain.high)) if domain.binned else whole


def _column(members: sparse.csr_array, code: int) -> IntArray:
    return np.asarray(members[:, [code]].sum(axis=1)).ravel().astype(np.int64)


def or_missing(texts: Sequence[str], missing: IntArray, named: BoolArray) -> list[str]:
    """ "[25, 37] or missing" where members have no value and this is published, else "[25, 37] or *"."""
    rests = [
        ("" if not people else "missing" if is_named else SUPPRESSED)
        for people, is_named in zip(missing, named, strict=True)
    ]
    return [" or ".join(filter(None, pair)) for pair in zip(texts, rests, strict=True)]


def recoded_table(summaries: list[Summary], form: str) -> pa.Table:
    """The recoded values, one row per class: representatives (text, numbers, days), or ranges as texts."""
    columns = {}
    for summary in summaries:
        name = summary.domain.name
        if form == "range":
            columns[name] = pa.array(summary.ranges(), pa.string())
        elif isinstance(summary, OrderedSummary):
            columns[name] = pa.array(summary.representative, mask=summary.withheld)
        else:
            withheld = SUPPRESSED if summary.domain.storage == "VARCHAR" else None
            names = np.array([None, *summary.domain.values, withheld], dtype=object)  # code -1 is the last
            columns[name] = pa.array(names[summary.representative].tolist(), pa.string())
    return pa.table(columns)


def hidden_values(summaries: Sequence[Summary], recoded: pa.Table, form: str) -> dict[str, BoolArray]:
    """By column the groups of which the recoded table shows no value, shape (J,).

    That members of a group have no value says nothing of the others where the column has an order.
    """
    return {summary.domain.name: _hides(summary, recoded, form) for summary in summaries}


def _hides(summary: Summary, recoded: pa.Table, form: str) -> BoolArray:
    hidden: BoolArray
    if form == "range":
        texts = recoded.column(summary.domain.name).combine_chunks().dictionary_encode()
        shown = [str(text).removesuffix(" or missing").removesuffix(" or *") for text in texts.dictionary.to_pylist()]
        nothing = {"", SUPPRESSED, "missing"} if summary.domain.ordered else {"", SUPPRESSED}
        hidden = np.array([text in nothing for text in shown], dtype=bool)[texts.indices.to_numpy()]
    elif isinstance(summary, OrderedSummary):
        hidden = summary.withheld
    else:
        hidden = summary.representative == WITHHELD
        if summary.domain.levels is not None:
            hidden = hidden | (summary.representative == 0)
    return hidden


def equivalence_classes(recoded: pa.Table) -> IntArray:
    """The equivalence class of each group, as readers of the release see it: those that show the same have one number.

    `recoded` has one row per group; the result has shape (J,).
    """
    shown = recoded.to_pandas()
    for name, column in shown.items():
        if column.dtype == object and column.notna().all():
            shown[name] = factorized(column, sort=True)[0]
    number: IntArray = shown.groupby(recoded.column_names, dropna=False, observed=True).ngroup().to_numpy()
    return number
