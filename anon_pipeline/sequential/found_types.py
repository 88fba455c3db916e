"""Types that follow from values: those of a table without the people who are withheld.

One number with a fraction makes floats of a column of texts, and one time of day moments of days. Nobody who is in no
released row may decide that: their value, or that they are still in the table, would show in the type.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from anon_pipeline.spec import ReleaseSpec

#: Whole numbers of more digits stay floats, as when a source is read.
LARGEST = 1e18
#: The names that engines give to the narrower types.
STORAGE = {pa.int64(): "BIGINT", pa.date32(): "DATE"}


def unmasked(spec: ReleaseSpec, names: Iterable[str]) -> list[str]:
    """Those of some columns that no masking step has read or changed."""
    used = {name for step in spec.steps for name in step.used}
    return [name for name in names if not spec.columns[name].steps and name not in used]


def narrower(schema: pa.Schema, names: Iterable[str]) -> dict[str, pa.DataType]:
    """For columns of floats or moments the type of whole numbers or days that they have if all values fit."""
    types: dict[str, pa.DataType] = {}
    for name in names:
        kind = schema.field(name).type
        if pa.types.is_float64(kind):
            types[name] = pa.int64()
        elif pa.types.is_timestamp(kind):
            types[name] = pa.date32()
    return types


def fits(column: pa.Array, kind: pa.DataType) -> bool:
    """Whether all values of a column of floats or moments are whole numbers or days."""
    if pa.types.is_date32(kind):
        same = pc.equal(column.cast(kind, safe=False).cast(column.type), column)
    else:
        same = pc.and_(pc.equal(pc.floor(column), column), pc.less(pc.abs(column), LARGEST))
    return bool(pc.all(same, min_count=0).as_py())
