"""Types that follow from values, of a table that some people have left: those of the people who are still in it.

One number with a fraction makes floats of a column of texts, and one time of day moments of days. Nobody who is in no
released row may decide that: their value, or that they are still in the table, would show in the type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.engine.session import BATCH_ROWS
from anon_pipeline.spec import ReleaseSpec

#: Whole numbers of more digits stay floats, as when a source is read.
LARGEST = 1e18
#: The names that engines give to the narrower types.
STORAGE = {pa.int64(): "BIGINT", pa.date32(): "DATE"}

Types = Mapping[str, pa.DataType]


def typed_by_values(spec: ReleaseSpec, people: SourceFacts) -> list[str]:
    """The released columns of which people's values decided the type, and that no masking step has changed."""
    used = {name for step in spec.steps for name in step.used if name not in (*step.strata, *step.grouped_by)}
    names = [name for name in spec.released if name in people.by_values and name not in used]
    return [name for name in names if not spec.columns[name].steps]


def narrower(names: Iterable[str], batches: Iterable[pa.RecordBatch]) -> dict[str, pa.DataType]:
    """For those of some columns that are whole numbers among floats, or days among moments, their narrower type."""
    types: dict[str, pa.DataType] | None = None
    for batch in batches:
        if types is None:
            types = {name: kind for name in names if (kind := _narrower(batch.schema.field(name).type)) is not None}
        types = {name: kind for name, kind in types.items() if fits(batch.column(name), kind)}
    return types or {}


def narrow(table: Path, names: Iterable[str], beside: Path | None = None) -> dict[str, str]:
    """Store columns of a table in the narrower type that all their values fit; returns their types by name.

    Parameters
    ----------
    beside : a table of others, who are compared with these: where the column has days, so has theirs
    """
    wanted = list(names)
    with pq.ParquetFile(table) as file:
        types = narrower(wanted, file.iter_batches(BATCH_ROWS, columns=wanted)) if wanted else {}
    _retype(table, types)
    if beside is not None:
        _retype(beside, {name: kind for name, kind in types.items() if pa.types.is_date32(kind)})
    return {name: STORAGE[kind] for name, kind in types.items()}


def retyped(rows: pa.Table, types: Types) -> pa.Table:
    """The same rows with columns in other types; moments are cut to their days."""
    for name, kind in types.items():
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, pa.field(name, kind), rows.column(name).cast(kind, safe=False))
    return rows


def _retype(table: Path, types: Types) -> None:
    """Store columns in other types."""
    if not types:
        return
    rewritten = table.with_suffix(".narrowed")
    with pq.ParquetFile(table) as file:
        schema = retyped(file.schema_arrow.empty_table(), types).schema
        with pq.ParquetWriter(rewritten, schema) as writer:
            for batch in file.iter_batches(BATCH_ROWS):
                writer.write_table(retyped(pa.Table.from_batches([batch]), types))
    rewritten.replace(table)


def fits(column: pa.Array, kind: pa.DataType) -> bool:
    """Whether all values of a column of floats or moments are whole numbers or days."""
    if pa.types.is_date32(kind):
        same = pc.equal(column.cast(kind, safe=False).cast(column.type), column)
    else:
        same = pc.and_(pc.equal(pc.floor(column), column), pc.less(pc.abs(column), LARGEST))
    return bool(pc.all(same, min_count=0).as_py())


def _narrower(kind: pa.DataType) -> pa.DataType | None:
    """The type of whole numbers for floats, and that of days for moments."""
    if pa.types.is_float64(kind):
        return pa.int64()
    return pa.date32() if pa.types.is_timestamp(kind) else None
