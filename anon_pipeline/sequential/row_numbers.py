"""Whether identifiers are numbers of the rows of a sorted table, which name other people in each table.

In a table that is sorted by age, row 500 of one month is about as old as row 500 of the next, so that people seem to be
like their former selves (same_people.py). Two things give row numbers away. They leave no number out, and some columns
belong as closely to the former class of a number some rows off, since the table is in their order. And in all other
columns people are no more like the former person of their number than strangers are, or about as much like the one of a
number beside it, where as many have come as have gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.errors import InputError
from anon_pipeline.sequential.same_people import Association
from anon_pipeline.tables import HISTORY

#: People whose numbers follow one another who are looked at, from the lowest number on.
LOOKED_AT = 100_000
#: How many rows off a former self is looked for.
ROWS_OFF = 5
#: A column is in the order of the rows if what it has in common with the class of its number is to this share there so
#: many rows off, too.
IN_ORDER = 0.8
#: People are others unless they are so many times as much like the person of their number as like one beside.
TIMES = 2


@dataclass(frozen=True, eq=False)
class NumberedPeople:
    """People whose identifiers are whole numbers without a gap, in their order.

    Attributes
    ----------
    columns : codes of what is known of them, each shape (n,); of numbers and dates, ascending with the value
    ordered : whether the codes of a column ascend with its values, by column
    former : the class that each number had in the newest former release, -1 for none, shape (n,)
    """

    columns: Mapping[str, IntArray]
    ordered: Mapping[str, bool]
    former: IntArray

    @classmethod
    def of(cls, table: Path, person: str, columns: Sequence[str], newest: IntArray) -> NumberedPeople | None:
        """The people of a stored table with their cohort, if their identifiers leave no number out.

        Parameters
        ----------
        newest : the class of each cohort in the newest former release
        """
        file = pq.ParquetFile(table)
        parts = [_numbers(rows.column(0).to_pandas()) for rows in file.iter_batches(columns=[person])]
        number = np.sort(np.concatenate([np.zeros(0), *parts]))
        if len(number) < 2 or (np.diff(number) != 1).any():  # also where one is no number
            return None
        frames = [_as_frame(rows) for rows in file.iter_batches(columns=[person, HISTORY, *columns])]
        frames = [frame[_numbers(frame[person]) < number[0] + LOOKED_AT] for frame in frames]
        return cls.of_frame(pd.concat(frames), person, columns, newest)

    @classmethod
    def of_frame(cls, frame: pd.DataFrame, person: str, columns: Sequence[str], newest: IntArray) -> NumberedPeople:
        frame = frame.iloc[np.argsort(_numbers(frame[person]))]
        cohort = frame[HISTORY].to_numpy(np.int64)
        varied = [name for name in columns if frame[name].nunique() > 1]
        ordered = {name: not _is_text(frame[name]) for name in varied}
        codes = {name: pd.factorize(frame[name], sort=ordered[name])[0].astype(np.int64) for name in varied}
        return cls(codes, ordered, np.where(cohort > 0, newest[np.maximum(cohort, 0)], -1))

    def in_order(self) -> list[str]:
        """The columns in whose order the people are numbered, as far as their former classes tell."""
        names = []
        for name in self.columns:
            own, off = self._with_former(name, 0), [self._with_former(name, rows) for rows in (-ROWS_OFF, ROWS_OFF)]
            if all(beside.chi_square >= beside.limit and beside.excess >= IN_ORDER * own.excess for beside in off):
                names.append(name)
        return names

    def are_other_people(self) -> bool:
        """Whether the numbers do not name the people whom they named in the former release."""
        if not (self.former >= 0).any():
            return False
        by_order = self.in_order()
        own = {name: self._with_former(name, 0) for name in self.columns if name not in by_order}
        if not by_order or not any(association.would_tell for association in own.values()):
            return False
        return all(
            association.chi_square < association.limit or association.excess < TIMES * self._most_beside(name)
            for name, association in own.items()
        )

    def _most_beside(self, name: str) -> float:
        """What a column has most in common with the former classes of numbers beside its own."""
        offs = (off for rows in range(1, ROWS_OFF + 1) for off in (-rows, rows))
        found = [self._with_former(name, off) for off in offs]
        return max((beside.excess for beside in found if beside.chi_square >= beside.limit), default=0.0)

    def _with_former(self, name: str, off: int) -> Association:
        """How closely a column belongs to the former class of the number so many further on."""
        codes, n = self.columns[name], len(self.former)
        former = self.former[max(0, off) : n + min(0, off)]
        codes = codes[max(0, -off) : n + min(0, -off)]
        known = former >= 0
        of = Association.of_numbers if self.ordered[name] else Association.of_categories
        return of(former[known], codes[known], np.ones(int(known.sum()), dtype=np.int64))


def require_no_row_numbers(people: NumberedPeople, person: str) -> None:
    """
    Raises
    ------
    InputError
        Where the identifiers are the numbers of the rows of a sorted table.
    """
    if people.are_other_people():
        raise InputError(
            f"person: {person} numbers the rows without a gap in the order of {', '.join(people.in_order())}, and in "
            "all else the people of a number are not those of the last release; are these row numbers? Nobody can be "
            "followed by them: name a column that stays. If nearly everything about people changes, say so, for "
            "everybody to read: across_releases_unlike: <why>"
        )


def _as_frame(rows: pa.RecordBatch) -> pd.DataFrame:
    """The rows with days as moments and decimals as floats; pandas would hold both as objects, as it does texts."""
    columns = [
        column.cast(pa.float64()) if pa.types.is_decimal(column.type) else column for column in rows.itercolumns()
    ]
    frame: pd.DataFrame = pa.table(columns, rows.schema.names).to_pandas(date_as_object=False)
    return frame


def _numbers(column: pd.Series) -> FloatArray:
    return pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)


def _is_text(column: pd.Series) -> bool:
    return not (pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_datetime64_any_dtype(column.dtype))
