"""Infinite numbers in a column of a table: no run takes them, so a person is asked what they stand for."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from anon_pipeline.spec import ColumnType


def question_of_infinity(column: pa.ChunkedArray, kind: ColumnType) -> dict[str, str]:
    """The question by the key of the column that answers it; empty where every number is finite.

    Of a text among numbers, such as the inf of a CSV, `reading` asks already.
    """
    if kind is not ColumnType.NUMERIC or not pa.types.is_floating(column.type):
        return {}
    infinite = column.filter(pc.is_inf(column)).unique().to_pylist()
    if not infinite:
        return {}
    marks = ", ".join(sorted("inf" if value > 0 else "-inf" for value in infinite))
    return {
        "missing": f"some values are infinite, which no run takes: write [{marks}] if that stands for not known, or "
        "correct the table and remove this key"
    }
