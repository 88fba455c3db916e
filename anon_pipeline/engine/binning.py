"""The domain of a column from its counted values: each with a code of its own, or in bins where there are too many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anon_pipeline.engine.expressions import PEOPLE
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Domain


def domain_of(name: str, kind: ColumnType, storage: str, counted: pa.Table) -> Domain:
    """The domain of a column whose values are counted in ascending order, missing first, each with a code."""
    values, people = counted.column("value"), counted.column("people").to_numpy()
    missing = int(people[0]) if values.null_count else 0
    known = values.slice(1 if missing else 0).combine_chunks()
    array = np.array(known.to_pylist(), dtype=object) if kind is ColumnType.CATEGORICAL else known.to_numpy()
    return Domain(name, kind, array, np.r_[missing, people[1 if missing else 0 :]], storage)


def bins_of(
    name: str, kind: ColumnType, storage: str, counted: Iterable[pa.RecordBatch], known: int, bins: int
) -> Domain:
    """The domain of a column whose values are counted in ascending order, missing first.

    Parameters
    ----------
    counted : batches of (value, people); memory holds one of them and the bins
    known : people with a value
    bins : a value belongs to bin floor(bins * people before it / known), so that one common value may fill several
        and leave them empty; empty bins do not exist
    """
    missing, before = 0, 0
    low: dict[int, object] = {}
    high: dict[int, object] = {}
    median: dict[int, object] = {}
    people: dict[int, int] = {}
    for batch in counted:
        column, counts = batch.column("value"), batch.column("people").to_numpy()
        if column.null_count:
            missing += int(counts[np.asarray(column.is_null())].sum())
        present = np.asarray(column.is_valid())
        values, counts = column.drop_null().to_numpy(zero_copy_only=False), counts[present]
        reached = before + np.cumsum(counts)
        bin_of = (reached - counts) * bins // known
        for number in np.unique(bin_of).tolist():
            inside = np.flatnonzero(bin_of == number)
            low.setdefault(number, values[inside[0]])
            high[number] = values[inside[-1]]
            people[number] = people.get(number, 0) + int(counts[inside].sum())
            # The value in the middle of the bin's people, known once they are reached; the last one until then.
            middle = (
                inside[np.searchsorted(2 * bins * reached[inside], (2 * number + 1) * known)]
                if (2 * bins * reached[inside[-1]] >= (2 * number + 1) * known)
                else None
            )
            if number not in median or median[number] is None:
                median[number] = None if middle is None else values[middle]
        before = int(reached[-1]) if len(reached) else before
    order = sorted(low)
    number_type = np.array(list(low.values())).dtype if low else np.dtype(np.int64)
    return Domain(
        name,
        kind,
        np.array([high[number] if median[number] is None else median[number] for number in order], dtype=number_type),
        np.array([missing, *(people[number] for number in order)], dtype=np.int64),
        storage,
        lows=np.array([low[number] for number in order], dtype=number_type),
        highs=np.array([high[number] for number in order], dtype=number_type),
    )


def around(domains: Sequence[Domain], people: Iterable[pa.RecordBatch]) -> dict[str, Domain]:
    """The same bins with the ends and the middle of some people's values alone, by column.

    Ends and middles of everybody would tell how far from all others somebody lies who is in no released row.

    Parameters
    ----------
    people : batches with these columns and `PEOPLE`, the people whom a row stands for
    """
    parts: dict[str, list[pa.Table]] = {domain.name: [] for domain in domains}
    for batch in people:
        for name, counted in parts.items():
            rows = pa.table({"value": batch.column(name), "people": batch.column(PEOPLE)}).drop_null()
            counted.append(_together(rows))
    return {domain.name: _around(domain, pa.concat_tables(parts[domain.name])) for domain in domains}


def _together(counted: pa.Table) -> pa.Table:
    return counted.group_by("value").aggregate([("people", "sum")]).rename_columns({"people_sum": "people"})


def _around(domain: Domain, counted: pa.Table) -> Domain:
    """See `around`; a bin of nobody stays as it is."""
    rows = _together(counted)
    values = _coded(rows.column("value").combine_chunks(), domain)
    order = np.argsort(values, kind="stable")
    values, reached = values[order], np.cumsum(rows.column("people").to_numpy()[order])
    number, first = np.unique(np.searchsorted(domain.high, values), return_index=True)
    last = np.r_[first[1:], len(values)].astype(np.int64) - 1
    before = np.r_[0, reached][first]
    middle = np.searchsorted(reached, before + (reached[last] - before + 1) // 2)
    low, high, middles = (of.copy() for of in (domain.low, domain.high, domain.values))
    low[number], high[number], middles[number] = values[first], values[last], values[middle]
    return replace(domain, values=middles, lows=low, highs=high)


def _coded(column: pa.Array, domain: Domain) -> npt.NDArray[np.generic]:
    """Values as a domain holds them; see `typed.coded`."""
    if pa.types.is_date(column.type):
        return np.asarray(column.cast(pa.date32()).cast(pa.int32()), dtype=np.int64)
    if pa.types.is_timestamp(column.type):
        return np.asarray(column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()), dtype=np.int64)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.string()).cast(pa.float64())
    return np.asarray(column).astype(domain.values.dtype)
