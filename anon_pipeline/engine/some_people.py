"""About so many people of a stored table, drawn in the engine by their values, where a sample need not be exact."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from anon_pipeline.engine.expressions import PEOPLE
from anon_pipeline.engine.session import Session
from anon_pipeline.engine.sql import quoted

#: The column of a row's draw, by its values.
DRAW = "#draw"


def one_in(step: int, session: Session, relation: str, columns: Iterable[str]) -> pa.Table:
    """The rows of a relation that stand for one in `step` of its people, with the count of these people.

    Of p equal people in one row, p // step are drawn, and another one in p % step of `step` cases, by a hash of the
    row's values. If they were drawn all or none, a value that a third of the people share would mostly be missing.
    """
    columns = list(columns)
    names = ", ".join(quoted(name) for name in columns if name != PEOPLE)
    people = quoted(PEOPLE) if PEOPLE in columns else "1"
    draw = f"abs(CAST(hash({names}) % {step} AS BIGINT))"
    rows = session.arrow(
        f"SELECT * FROM (SELECT *, {draw} AS {quoted(DRAW)} FROM {relation}) AS r_ WHERE {quoted(DRAW)} < {people}"
    )
    if PEOPLE in columns:
        counts = rows.column(PEOPLE).to_numpy()
        drawn = counts // step + (rows.column(DRAW).to_numpy() < counts % step)
        place = rows.schema.get_field_index(PEOPLE)
        rows = rows.set_column(place, PEOPLE, pa.array(drawn.astype(np.int64)))
    return rows.drop_columns([DRAW])
