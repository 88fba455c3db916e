"""The domain of a column from its counted values: each with a code of its own, or in bins where there are too many."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

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
