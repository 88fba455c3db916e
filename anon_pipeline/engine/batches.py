"""Batches of people as frames, for models: made from Arrow tables, and samples of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from anon_pipeline.arrays import IntArray
from anon_pipeline.engine.base import Batch
from anon_pipeline.engine.content import row_hashes, sample_hash
from anon_pipeline.engine.expressions import CODED, PEOPLE
from anon_pipeline.engine.packing import Packing
from anon_pipeline.engine.typed import EXACT_DIGITS
from anon_pipeline.spec import ColumnType, ReleaseSpec
from anon_pipeline.tables import Cells


def as_batch(
    rows: pa.RecordBatch, spec: ReleaseSpec, types: dict[str, ColumnType], keys: list[str], hashed: bool
) -> Batch:
    """Rows of Arrow as a batch; `keys` are the columns of the packed key, and `hashed` asks for the rows' hashes."""
    frame = {}
    for name in [*spec.features, spec.target]:
        coded = rows.column(CODED + name if CODED + name in rows.schema.names else name)
        frame[name] = texts(coded) if types[name] is ColumnType.CATEGORICAL else numbers(coded)
    # The columns stay separate: pandas would copy them into a single array for each type.
    features = pd.DataFrame({name: frame[name] for name in spec.features}, copy=False)
    key = [rows.column(name).to_numpy() for name in keys]
    names = spec.released if hashed else []
    kept = [name for name in spec.released if name not in spec.quasi_identifiers and types[name] is ColumnType.NUMERIC]
    return Batch(
        features=features,
        target=pd.Series(frame[spec.target], name=spec.target),
        hash=sample_hash(row_hashes([rows.column(name) for name in names], names)),
        key=np.stack(key, axis=1) if key else np.empty((rows.num_rows, 0), dtype=np.int64),
        people=rows.column(PEOPLE).to_numpy(),
        digits=pd.DataFrame(
            {name: digits(rows.column(name)) for name in kept if may_be_rounded(rows.column(name).type)}
        ),
    )


def texts(column: pa.Array) -> Any:
    """The texts of a column, None where one is missing, as an array of objects; equal texts are one object."""
    coded = column.dictionary_encode()
    values = np.array([*coded.dictionary.to_pylist(), None], dtype=object)
    return values[np.asarray(coded.indices.fill_null(len(values) - 1))]


def numbers(column: pa.Array) -> Any:
    """The numbers of a column as a new array, NaN where one is missing.

    Arrow's memory must not be written to, and a model may write to its input.
    """
    return np.array(column.cast(pa.float64(), safe=False).fill_null(np.nan))


def may_be_rounded(kind: pa.DataType) -> bool:
    """Whether floats may take two numbers of this type for one."""
    is_long = pa.types.is_decimal(kind) and kind.precision > EXACT_DIGITS
    return bool(is_long or pa.types.is_int64(kind) or pa.types.is_uint64(kind))


def digits(column: pa.Array) -> pd.Series:
    """The numbers of a column as they are stored, with all their digits."""
    return pd.Series(column, dtype=pd.ArrowDtype(column.type))


def exact_frame(table: pa.Table) -> pd.DataFrame:
    """A small table in pandas; whole numbers that no float holds stay whole beside missing values."""
    frame: pd.DataFrame = table.to_pandas()
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_int64(column.type) and column.null_count and frame[name].abs().max() >= 2**53:
            frame[name] = column.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    return frame


def outside(cells: Cells, batches: Iterable[Batch]) -> Iterator[Batch]:
    """The batches without the people of some cells; their keys are packed from the same columns."""
    absent = pd.MultiIndex.from_arrays(list(Packing.plan(cells.domains).pack(cells.codes).T))
    for batch in batches:
        present = ~pd.MultiIndex.from_arrays(list(batch.key.T)).isin(absent)
        yield chosen_rows(batch, np.flatnonzero(present))


def chosen_rows(batch: Batch, rows: IntArray) -> Batch:
    """Some rows of a batch, by position."""
    return Batch(
        batch.features.iloc[rows],
        batch.target.iloc[rows],
        batch.hash[rows],
        batch.key[rows],
        batch.people[rows],
        batch.digits.iloc[rows] if len(batch.digits.columns) else batch.digits,
    )
