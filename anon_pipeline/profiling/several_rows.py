"""A person's number under a name that says nothing: one that repeats, and that settles who the person is.

In a table with several rows per person, such as one per visit, the number of a person determines what does not change
between their rows: date of birth, sex, origin. So does the number of a household or an employer, which is why a person
is asked. What is worked out from a number (a band of ages, a logarithm) is determined by it, too, but along the number
it changes seldom, or goes one way; such columns do not count.

In a table with one row per person and year, or per visit, hardly anything settles but the sex. There the number never
stands twice in the same year, although chance alone would put it there again and again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

from anon_pipeline.arrays import IntArray
from anon_pipeline.profiling import separation
from anon_pipeline.profiling.column_names import named_by
from anon_pipeline.profiling.reading import CODE

#: The shares of distinct values among the rows between which a number may be that of a person with several rows.
SELDOM, OFTEN = 0.95, 0.05
#: How many columns that do not follow from each other a person's number determines at least.
SETTLED = 2
#: Names of columns that say which of a person's rows it is.
TIMES = (
    *("year*", "yr", "yrs", "wave*", "visit*", "occasion*", "quarter*", "month*", "week*", "day*", "date*", "time"),
    *("period*", "round*", "session*"),
    *("jahr*", "quartal*", "monat*", "woche*", "tag", "datum", "welle*", "besuch*", "termin*"),
    *("annee*", "trimestre*", "mois", "semaine*", "jour", "visite*", "vague*"),
    *("ano", "anos", "mes", "semana", "dia", "fecha", "data", "visita*", "ola", "onda"),
    *("anno", "anni", "mese", "settimana", "jaar", "maand", "bezoek*", "golf"),
    *("rok", "miesiac", "wizyta*", "fala", "aar", "maned*", "besog*", "besok*"),
)
#: Names of columns that say when somebody was born, which siblings seldom share.
BIRTHS = ("birth*", "born", "dob", "geb", "gebor*", "geburt*", "naiss*", "nacim*", "nasc*", "nat*", "urodz*", "fod*")
#: How many pairs of rows with one number chance would put into the same year at least, and the share that may be there.
EXPECTED, MET = 20.0, 0.01
#: How many of the columns that such a number determines are listed.
LISTED = 5
#: The share of the smaller direction from which on values do not go one way.
BOTH_WAYS = 0.1


def number_of_a_person(
    sample: pa.Table, codes: Mapping[str, IntArray], eligible: Sequence[str]
) -> tuple[str, str] | None:
    """The column that seems to number people who have several rows, and what shows that; else None.

    Parameters
    ----------
    sample : the columns that say who somebody is, so without the target
    codes : the codes of every column of the sample
    eligible : the columns that may be such a number as far as their names say
    """
    settles = _settling(sample, codes, eligible)
    if settles is not None:
        name, settled = settles
        more = len(settled) - LISTED
        told = ", ".join(settled[:LISTED]) + (f" and {more} more" if more > 0 else "")
        return name, f"it repeats, and who knows it knows {told}, as with a person's number"
    several = _over_times(sample, codes, eligible)
    if several is not None:
        name, time = several
        return name, f"it repeats, and hardly ever with the same {time}, as a person's number in rows of several times"
    return None


def _settling(sample: pa.Table, codes: Mapping[str, IntArray], eligible: Sequence[str]) -> tuple[str, list[str]] | None:
    """The column that seems to number people who have several rows, and the columns that it determines."""
    found: dict[str, list[str]] = {}
    for name in eligible:
        known = codes[name] > 0
        distinct = len(separation.class_sizes(codes[name][known]))
        if OFTEN * known.sum() < distinct < SELDOM * known.sum() and _may_number(sample.column(name)):
            of_known = {column: codes[column][known] for column in sample.column_names}
            determined = _determined(name, sample.filter(pa.array(known)), of_known)
            if determined is not None:
                found[name] = determined
    best = max(found, key=lambda name: len(found[name]), default=None)
    return None if best is None else (best, found[best])


def _over_times(sample: pa.Table, codes: Mapping[str, IntArray], eligible: Sequence[str]) -> tuple[str, str] | None:
    """The column that seems to number people who have a row each at several times, and the column of these."""
    times = [name for name in sample.column_names if named_by(name, TIMES) and not named_by(name, BIRTHS)]
    found: dict[str, tuple[int, str]] = {}
    for name in eligible:
        if named_by(name, TIMES):
            continue
        known = codes[name] > 0
        sizes = separation.class_sizes(codes[name][known])
        if not OFTEN * known.sum() < len(sizes) < SELDOM * known.sum() or not _may_number(sample.column(name)):
            continue
        time = next((time for time in times if time != name and _never_twice(codes[name], codes[time])), None)
        if time is not None:
            found[name] = (len(sizes), time)
    best = max(found, key=lambda name: found[name][0], default=None)
    return None if best is None else (best, found[best][1])


def _never_twice(number: IntArray, time: IntArray) -> bool:
    """Whether rows with one number are hardly ever of the same time, where chance alone would make many so."""
    known = (number > 0) & (time > 0)
    number, time = number[known], time[known]
    of_number, of_time = _pairs(separation.class_sizes(number)), _pairs(separation.class_sizes(time))
    expected = of_number * of_time / max(1.0, len(number) * (len(number) - 1) / 2)
    return expected >= EXPECTED and _pairs(separation.class_sizes(separation.joined([number, time]))) <= MET * expected


def _pairs(sizes: IntArray) -> float:
    return float((sizes * (sizes - 1)).sum() / 2)


def _may_number(column: pa.ChunkedArray) -> bool:
    """Whether all values are whole numbers, or codes with a digit."""
    values = column.unique().drop_null()
    if pa.types.is_integer(values.type):
        return True
    if pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
        numbers = values.cast(pa.float64()).to_numpy()
        return bool((np.floor(numbers) == numbers).all())
    if not pa.types.is_string(values.type):
        return False
    texts = [text.strip() for text in values.to_pylist()]  # as those of a CSV, whose first number may be 1
    return all(text.isdecimal() or CODE.fullmatch(text) for text in texts)


def _determined(name: str, sample: pa.Table, codes: Mapping[str, IntArray]) -> list[str] | None:
    """The columns that a number determines and that are not worked out from it, if there are enough; else None."""
    own = codes[name]
    determined = [
        column
        for column, code in codes.items()
        if column != name and separation.determines(own, code) and separation.is_seen_often_enough(own, code)
    ]
    if len(determined) < SETTLED:
        return None
    first = np.unique(_ranks(sample.column(name)), return_index=True)[1]  # a row of each of its values, in their order
    settled = {column: _ranks(sample.column(column).take(pa.array(first))) for column in determined}
    sizes = {column: len(separation.class_sizes(rank)) for column, rank in settled.items()}
    half = len(first) / 2
    coarse = [
        c for c, rank in settled.items() if 1 < sizes[c] <= half and np.count_nonzero(np.diff(rank)) > 2 * sizes[c]
    ]
    fine = [c for c, rank in settled.items() if sizes[c] > half and _goes_both_ways(rank)]
    apart: list[str] = []
    for column in sorted(coarse, key=lambda column: -sizes[column]):
        if not any(separation.determines(settled[finer], settled[column]) for finer in apart):
            apart.append(column)
    return [*fine, *coarse] if len(apart) + bool(fine) >= SETTLED else None


def _ranks(column: pa.ChunkedArray) -> IntArray:
    """A whole number per row, equal for equal values and in their order; 0 for a missing one."""
    values = column.to_pandas()
    try:
        codes = pd.factorize(values, sort=True)[0]
    except TypeError:  # records and lists have no order
        return np.zeros(len(values), dtype=np.int64)
    return np.asarray(codes, dtype=np.int64) + 1


def _goes_both_ways(values: IntArray) -> bool:
    steps = np.diff(values)
    ups, downs = np.count_nonzero(steps > 0), np.count_nonzero(steps < 0)
    return bool(min(ups, downs) >= BOTH_WAYS * (ups + downs) > 0)
