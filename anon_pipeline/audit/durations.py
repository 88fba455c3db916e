"""Durations in the tables of an attack, as numbers of the unit in which the original has them.

A release shows durations as the whole numbers that the file of its source holds. pandas reads lengths of time, which no
attack would find among such numbers, and other files may hold other units.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from anon_pipeline.engine.durations import UNITS, units_of_durations
from anon_pipeline.spec import ReleaseSpec

#: How many there are in a second, of each unit that a file may state.
IN_A_SECOND = {"seconds": 1, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}


def units_of(file: Path, spec: ReleaseSpec | None) -> dict[str, str]:
    """The unit of every column of durations of a file, by its name in the file and by that which the spec gives it."""
    units = units_of_durations(file)
    renamed = {} if spec is None else spec.source.rename
    return units | {renamed[name]: unit for name, unit in units.items() if name in renamed}


def in_unit(table: pd.DataFrame, read_in: Mapping[str, str], units: Mapping[str, str]) -> pd.DataFrame:
    """The table with all durations as numbers of the units of the original.

    Parameters
    ----------
    read_in : the unit of whole numbers that were read from durations; of others it is not known, so they stay
    units : those of the original
    """
    changed = {}
    for name, unit in units.items():
        if name not in table:
            continue
        column, own = table[name], read_in.get(name, unit)
        if pd.api.types.is_timedelta64_dtype(column.dtype):
            own = UNITS[np.datetime_data(column.to_numpy().dtype)[0]]
            column = column.astype(np.int64).where(column.notna())
        if pd.api.types.is_numeric_dtype(column.dtype):
            changed[name] = column if own == unit else column * (IN_A_SECOND[unit] / IN_A_SECOND[own])
    return table.assign(**changed)
