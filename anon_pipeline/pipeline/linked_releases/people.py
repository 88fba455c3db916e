"""Who is in which class or group of a release, counted again from its source and compared with what was published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anon_pipeline.arrays import BoolArray, IntArray
from anon_pipeline.engine.stored_kinds import as_kind
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.keys import Secrets
from anon_pipeline.masking.aggregation import MEAN, PEOPLE
from anon_pipeline.masking.base import Technique
from anon_pipeline.masking.execution import Resources, apply_steps
from anon_pipeline.masking.grouping import groups_of
from anon_pipeline.pipeline.linked_releases.drawn import drawn_people
from anon_pipeline.pipeline.linked_releases.same_people import Linked, follows_from_the_value
from anon_pipeline.privacy.group_table import threshold_of
from anon_pipeline.privacy.linked_releases.classes import CountedColumn, KeptValues, LinkedClasses
from anon_pipeline.privacy.linked_releases.tables import NOT_IN, LinkedTable
from anon_pipeline.release import known_classes
from anon_pipeline.sequential import release_history
from anon_pipeline.sequential.guarantees import ABSENT
from anon_pipeline.spec import ReleaseSpec, Role


def masked_columns(table: Linked, people: pa.Table, names: Sequence[str] | None = None) -> dict[str, pa.Array]:
    """The columns that it uses, or others, as its steps show them.

    Raises
    ------
    InputError
        If values are in other kinds than when it was made, and cannot be put into these.
    """
    spec, names = table.spec, table.used if names is None else names
    types = {name: table.types[name] for name in names}
    steps = {name: cast(tuple[Technique, ...], spec.columns[name].steps) for name in names}
    folder = spec.folder if table.folder is None else table.folder
    resources = Resources(spec.dataset, None, Secrets(folder=folder), folder)
    read = pa.table({name: _as_then(people.column(name), table.kinds.get(name), name) for name in names})
    masked, _ = apply_steps(read, types, steps, (), resources)
    return {name: masked.column(name).combine_chunks() for name in names}


def _as_then(column: pa.ChunkedArray, kind: str | None, name: str) -> pa.Array:
    """A column in the kind in which it was stored for the release, as far as that is known."""
    together = column.combine_chunks()
    in_kind = together if kind is None else as_kind(together, kind)
    if in_kind is None:
        raise InputError(f"the column {name} is stored in another way")
    return in_kind


def linked_groups(table: Linked, people: pa.Table) -> tuple[LinkedTable, dict[str, pa.Array]]:
    """A table of groups as it groups these people, compared with what it shows, and the masked columns.

    Raises
    ------
    InputError
        If its counts are not those of these people.
    """
    step, spec = table.step, table.spec
    columns = masked_columns(table, people)
    groups = groups_of([columns[name] for name in step.columns])
    is_in = _is_in(spec, people)
    counts = np.bincount(groups[is_in], minlength=int(groups.max()) + 1)
    first = np.full(len(counts), len(groups))
    np.minimum.at(first, groups, np.arange(len(groups)))
    number_of = {_key(row): number for number, row in enumerate(_rows(columns, step.columns, first))}
    is_published = np.zeros(len(counts), dtype=bool)
    means = {name: np.zeros(len(counts), dtype=bool) for name in step.means}
    for row in pq.read_table(table.table).to_pylist():
        number = number_of.get(_key(tuple(row[name] for name in step.columns)))
        if number is None or row[PEOPLE] != counts[number]:
            raise InputError("its counts are not those of this source under its spec")
        is_published[number] = True
        for name in step.means:
            means[name][number] = row[MEAN + name] is not None
    dominance = max(step.dominance.n / step.dominance.share, 2 + step.dominance.p_percent / 100)
    return LinkedTable(np.where(is_in, groups, NOT_IN), is_published, threshold_of(spec), means, dominance), columns


def linked_classes(
    home: Home, table: Linked, people: pa.Table, readers: frozenset[str], protected: frozenset[str] = frozenset()
) -> LinkedClasses:
    """Rows as their classes group these people, or a table of groups as it groups those whom readers can place.

    Readers can place people by the quasi-identifiers, and by what the step says that they know. Of a group by these
    alone they know all values if any of its finer groups is shown, or so it is taken.

    Parameters
    ----------
    readers : the columns that readers of any of the releases know
    protected : the columns on which any of the releases has a demand beyond k

    Raises
    ------
    InputError
        If its classes are not those of these people.
    """
    if table.classes is None:
        return _placed_groups(table, people, readers, protected)
    if table.spec.across_releases is not None:
        classes = _classes_of_followed(home, table, people)
    else:
        columns = masked_columns(table, people)
        names = list(columns)
        classes = known_classes.classes_of([columns[name] for name in names], names, table.classes, NOT_IN)
    is_in = _is_in(table.spec, people)
    classes = np.where(is_in, classes, NOT_IN)
    drawn = _drawn(home, table, people, is_in)
    sizes = pq.read_table(table.table, columns=["class_size"]).column(0).to_numpy()
    members = classes if drawn is None else np.where(drawn, classes, NOT_IN)
    counts = np.bincount(members[members != NOT_IN], minlength=len(sizes))
    if len(counts) != len(sizes) or (counts != sizes).any():
        raise InputError("its classes are not those of this source under its spec")
    names = [name for name in table.spec.released if name in readers - table.readers and name in table.types]
    kept = {name: groups_of([column]) for name, column in _as_kept(table, people, names).items()}
    values = _kept_values(table, people, protected)
    return LinkedClasses(classes, table.spec.k, table.readers, kept, table.demands, values, drawn)


def _drawn(home: Home, table: Linked, people: pa.Table, is_in: BoolArray) -> BoolArray | None:
    """Who was drawn into a release that holds a part of its people only, shape (n,); None where it is known without.

    Raises
    ------
    InputError
        If the draw cannot be made again.
    """
    if not table.selection or table.spec.across_releases is not None:
        return None  # of those who are followed the release history has only who was drawn
    names = list(table.types)
    as_stored = pa.table({name: _as_then(people.column(name), table.kinds.get(name), name) for name in names})
    drawn = np.zeros(len(people), dtype=bool)
    drawn[is_in] = drawn_people(home, table, as_stored.filter(pa.array(is_in)))
    return drawn


def _kept_values(table: Linked, people: pa.Table, protected: frozenset[str]) -> dict[str, KeptValues]:
    """Kept columns as its steps show them, without those of which that does not follow from a person's own value."""
    spec = table.spec
    used = {name for step in spec.steps for name in step.used}
    names = [
        name
        for name in spec.with_role(Role.SENSITIVE, Role.INSENSITIVE)
        if name in protected and name in table.types and name not in used
        if all(follows_from_the_value(step) for step in cast(tuple[Technique, ...], spec.columns[name].steps))
    ]
    masked = masked_columns(table, people, names) if names else {}
    return {name: _values_of(spec, name, column) for name, column in masked.items()}


def _values_of(spec: ReleaseSpec, name: str, column: pa.Array) -> KeptValues:
    """A column with its values in their order, the missing one first, as an engine counts them in a release."""
    known = pc.unique(column.drop_null())
    known = known.take(pc.sort_indices(known))
    codes = pc.index_in(column, known)
    has_gaps = column.null_count > 0
    numbers = np.asarray(codes.fill_null(-1), dtype=np.int64) + int(has_gaps)
    is_ordered = pa.types.is_temporal(known.type) or pa.types.is_decimal(known.type) or _is_number(known.type)
    values = (None, *known.to_pylist()) if has_gaps else tuple(known.to_pylist())
    return KeptValues(numbers, values, is_ordered, name in spec.answers, name in spec.categories)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _as_kept(table: Linked, people: pa.Table, names: Sequence[str]) -> dict[str, pa.Array]:
    """Kept columns as its steps show them; what draws or looks at other people is taken to hide nothing."""
    steps = {name: cast(tuple[Technique, ...], table.spec.columns[name].steps) for name in names}
    masked = [name for name in names if all(follows_from_the_value(step) for step in steps[name])]
    as_read = {name: people.column(name).combine_chunks() for name in names}
    return as_read | (masked_columns(table, people, masked) if masked else {})


def _placed_groups(
    table: Linked, people: pa.Table, readers: frozenset[str], protected: frozenset[str]
) -> LinkedClasses:
    groups, columns = linked_groups(table, people)
    shown = groups.equations(groups.published) != NOT_IN

    def placed_by(names: Sequence[str]) -> IntArray:
        """The group of each person by these columns, NOT_IN where none of its finer groups is shown, shape (n,)."""
        placed = groups_of([columns[name] for name in names]) if names else np.zeros(len(shown), dtype=np.int64)
        return np.where(np.isin(placed, placed[shown]) & (groups.groups != NOT_IN), placed, NOT_IN)

    by_readers = [name for name in table.step.columns if name in table.readers]
    others = [name for name in table.step.columns if name in readers - table.readers]
    kept = {name: placed_by([*by_readers, name]) for name in others}
    # Whoever calls a column known must not so make what the table tells of it nobody's affair.
    known = [*by_readers, *others]
    counted = {
        name: CountedColumn(placed_by([of for of in known if of != name]), shown, groups_of([columns[name]]))
        for name in table.step.columns
        if name in protected or name not in readers
    }
    return LinkedClasses(placed_by(by_readers), groups.threshold, table.readers, kept, published=counted)


def _classes_of_followed(home: Home, table: Linked, people: pa.Table) -> IntArray:
    """The class of each person by their identifier, since that of a followed person depends on former classes too."""
    try:
        members = release_history.read(cast(Path, table.classes))
    except (OSError, KeyError, pa.ArrowInvalid):
        raise InputError("who is in which of its classes is not known in this home") from None
    identifiers = people.column(str(table.spec.person)).combine_chunks()
    key = release_history.key(home, table.dataset)
    classes = members.classes_of(release_history.hashed(identifiers, key))
    return np.where(classes == ABSENT, NOT_IN, classes)


def _is_in(spec: ReleaseSpec, people: pa.Table) -> BoolArray:
    """Who is not left out for want of a target, shape (n,)."""
    if spec.missing_target != "leave_out":
        return np.ones(len(people), dtype=bool)
    return np.asarray(pc.is_valid(people.column(spec.target)))


def _rows(columns: Mapping[str, pa.Array], names: Sequence[str], places: IntArray) -> list[tuple[Any, ...]]:
    return list(zip(*(columns[name].take(pa.array(places)).to_pylist() for name in names), strict=True))


def _key(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values of a group, with not-a-number as missing, and a day as its midnight: a table may show days alone."""
    midnight = datetime.min.time()
    plain = (datetime.combine(value, midnight) if type(value) is date else value for value in row)
    return tuple(None if value != value else value for value in plain)
