"""The formats of numbers and dates of a table, inferred from the values of its columns of texts.

A column has numbers, or dates, if all its values can be read in one format. If they can be read in two formats with
different results, a person is asked.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from anon_pipeline.engine.stated import BLANKS, number_pattern

#: Decimal and thousands signs; of two pairs that read the same values in the same way, the first is taken.
NUMBERS = (
    (".", None), (",", None), (".", ","), (",", "."), (".", "'"), (".", "\u2019"), (",", " "), (".", " "),
    (",", "\u00a0"), (",", "\u202f"),
)  # fmt: skip
NUMBER_LIKE = re.compile(r"[+-]?[0-9.,'\u2019 \u00a0\u202f]*[0-9][0-9.,'\u2019 \u00a0\u202f]*([eE][+-]?[0-9]+)?")
#: A time of day with an offset from UTC, other than none.
WITH_OFFSET = re.compile(r".*\d:\d\d(:\d\d(\.\d*)?)? ?[+-](?!00(:?00)?$)\d\d(:?\d\d)?")
#: A leading zero shows that a value is a code.
CODE = re.compile("[+-]?0[0-9]")
#: Three digits after a point, without a second sign: these may be thousands or thousandths.
IN_THREES = re.compile(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}")
#: Currencies and units that are looked for; other signs beside digits may be those of a code.
CURRENCIES = ("US$", "$", "€", "£", "¥", "₹", "₽", "₩", "₺", "zł", "Kč", "kr", "EUR", "USD", "GBP", "CHF", "JPY", "CAD",
              "AUD", "SEK", "NOK", "DKK", "PLN")  # fmt: skip
SYMBOLS = (
    *(*CURRENCIES, "%", "kg", "cm", "km", "mg", "lbs", "lb", "m", "mm", "m²", "km²", "qm", "sqft", "ft", "ha", "ml"),
    *("mmHg", "bpm", "mg/dl", "mg/dL", "g/dl", "g/dL", "mmol/l", "mmol/L", "µg/l", "µg/L", "kcal", "°C", "°F", "km/h"),
    *("mph", "kW", "kWh", "MWh", "min", "mins", "minutes", "Minuten", "hours", "hrs", "Stunden", "days", "Tage"),
    *("weeks", "Wochen", "months", "Monate", "mois", "meses", "years", "yrs", "Jahre", "ans", "años", "anni"),
)
#: Texts that mean "not known" in a column of numbers or dates, and may have another meaning elsewhere.
MARKERS = frozenset(
    [
        "-",
        "--",
        "---",
        ".",
        "..",
        "...",
        "*",
        "x",
        "X",
        "n.a.",
        "N.A.",
        "na",
        "none",
        "None",
        "unknown",
        "Unknown",
        "UNKNOWN",
        "k.A.",
        "unbekannt",
        "inconnu",
        "desconocido",
        "missing",
        "#NV",
        "#VALUE!",
        "#WERT!",
        "#DIV/0!",
        "#REF!",
    ]
) | {"n. a.", "k. A.", "keine Angabe", "nicht bekannt"}
#: Numbers that people write for "not known", far from all measured values.
SENTINELS = frozenset(
    float(sign * number)
    for sign, numbers in (
        (1, (66, 77, 88, 97, 98, 99, 666, 777, 888, 997, 998, 999)),
        (1, (6666, 7777, 8888, 9997, 9998, 9999, 99999, 999999)),
        (-1, (1, 2, 7, 8, 9, 77, 88, 97, 98, 99, 777, 888, 997, 998, 999, 9999)),
    )
    for number in numbers
)
#: A column has numbers with a few other values if this share are numbers, and at most this many distinct ones are not.
MOST, FEW = 0.8, 5
#: The number of distinct values of a column that are read.
VALUES_READ = 3_000
DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%d %b %Y",
        "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y")  # fmt: skip
DATES = ("%Y-%m-%d", *(f"{day}{time}" for time in ("", " %H:%M", " %H:%M:%S") for day in DAYS))
#: The same with the two halves of a day, and what shows that a time is written so.
HALF_DAYS = tuple(f"{day}{time}" for time in (" %I:%M %p", " %I:%M:%S %p") for day in ("%Y-%m-%d", *DAYS))
HALF_DAY = re.compile(" [AP]M", re.IGNORECASE)
EARLIEST, LATEST = 1850, 2150


@dataclass(frozen=True)
class Numbers:
    """The format of numbers.

    Attributes
    ----------
    decimal, thousands : the signs before fractions and between groups of digits
    columns : the columns in this format
    question : what a person must decide, in doubt
    symbols : currencies and units beside the numbers
    """

    decimal: str
    thousands: str | None
    columns: tuple[str, ...]
    question: str | None = None
    symbols: tuple[str, ...] = ()


def numbers_of(columns: Mapping[str, Sequence[str]]) -> Numbers:
    """The format of numbers in which most columns can be read.

    Parameters
    ----------
    columns : the distinct values of each column of texts, without those that mean "not known"
    """
    symbol_of = {name: _symbol_of(values[:VALUES_READ]) for name, values in columns.items()}
    columns = {name: _without(symbol_of[name], values[:VALUES_READ]) for name, values in columns.items()}
    read = {name: values for name, values in columns.items() if _are_number_like(values)}
    together = "".join(itertools.chain.from_iterable(itertools.chain.from_iterable(read.values())))
    reading: dict[tuple[str, str | None], tuple[str, ...]] = {}
    for decimal, thousands in NUMBERS:
        if thousands is not None and thousands not in together:
            continue
        pattern = re.compile(number_pattern(decimal, thousands))
        reading[decimal, thousands] = tuple(
            name for name, values in read.items() if all(pattern.fullmatch(value.strip()) for value in values)
        )
    most = max(map(len, reading.values()))
    best = [way for way, names in reading.items() if len(names) == most]
    (decimal, thousands), names = best[0], reading[best[0]]
    question = None
    fractions = {name: [value for value in read[name] if decimal in value] for name in names}
    among = [value for values in fractions.values() for value in values]
    if (decimal, thousands) == (".", None):
        in_doubt = len(among) >= 3 and all(IN_THREES.fullmatch(value.strip()) for value in among)
    else:
        in_doubt = (",", None) in best and (".", ",") in best
    if in_doubt:
        other = "," if decimal == "." else "."
        if all(symbol_of[name] in CURRENCIES for name, values in fractions.items() if values):
            decimal, thousands = other, decimal  # amounts of money do not have three decimals
        else:
            question = (
                f"numbers such as 1{decimal}234: write {decimal} if they have three decimals, or {other} and "
                f"thousands: {decimal} if they do not"
            )
    symbols = tuple(symbol for symbol in SYMBOLS if symbol in symbol_of.values())
    return Numbers(decimal, thousands, names, question, symbols)


def _symbol_of(values: Sequence[str]) -> str | None:
    """The currency or unit beside most numbers of a column, if all but a few of its values are numbers."""
    for symbol in SYMBOLS:
        if 2 * sum(symbol in value for value in values) <= len(values):
            continue
        others = sum(NUMBER_LIKE.fullmatch(value.strip()) is None for value in _without(symbol, values))
        if others <= FEW and others <= (1 - MOST) * len(values):
            return symbol
    return None


def _without(symbol: str | None, values: Sequence[str]) -> list[str]:
    """The values without a symbol where it stands beside a number as `number_pattern` has it."""
    if symbol is None:
        return list(values)
    beside = re.compile(f"([+-]?)(?:{re.escape(symbol)}[{BLANKS}]?)?([+-]?[^+-].*?)(?:[{BLANKS}]?{re.escape(symbol)})?")
    found = (beside.fullmatch(value.strip()) for value in values)
    return [value if match is None else match[1] + match[2] for value, match in zip(values, found, strict=True)]


def dates_of(values: Sequence[str]) -> tuple[tuple[str, ...], str | None]:
    """The one or two formats in which all values are dates, and a question where another reading is possible."""
    values = [value.strip() for value in values[:VALUES_READ]]
    if len(values) < 2 or any(not 6 <= len(value) <= 30 or not re.search("[0-9]", value) for value in values):
        return (), None
    patterns = (*DATES, *HALF_DAYS) if any(HALF_DAY.search(value) for value in values) else DATES
    reads = {pattern: {place for place, value in enumerate(values) if _is_date(value, pattern)} for pattern in patterns}
    everything = set(range(len(values)))
    whole = [pattern for pattern, places in reads.items() if places == everything]
    if whole == ["%Y-%m-%d"]:
        return (), None
    if len(whole) > 1:
        return (whole[0],), f"dates may be written {' or '.join(whole)}, and all values fit both; write which"
    if whole:
        if "%y" in whole[0]:
            return (
                whole[0],
            ), f"years have two digits; with {whole[0]} 69 to 99 are 19.., 00 to 68 are 20..; is that so?"
        return (whole[0],), None
    for first, second in itertools.combinations([pattern for pattern, places in reads.items() if places], 2):
        if reads[first] | reads[second] == everything:
            if reads[first] & reads[second]:
                return (
                    first,
                    second,
                ), f"dates are written {first} and {second}, and some values fit both; write which counts"
            return (first, second), None
    return (), None


def has_offsets(values: Sequence[str]) -> bool:
    """Whether some moments have an offset from UTC, which a text is read without.

    >>> [has_offsets([value]) for value in ("2024-05-01 10:00+02:00", "2024-05-01T10:00:00.5-0330")]
    [True, True]
    >>> [has_offsets([value]) for value in ("2024-05-01 10:00", "2024-05-01T10:00:00Z", "2024-05-01 10:00+00:00")]
    [False, False, False]
    """
    return any(WITH_OFFSET.fullmatch(value.strip()) for value in values[:VALUES_READ])


def other_values(values: Sequence[str], numbers: Numbers) -> list[str]:
    """The few values of a column of numbers that are no numbers; none where there are many."""
    pattern = re.compile(number_pattern(numbers.decimal, numbers.thousands, numbers.symbols))
    others = [value for value in values if not pattern.fullmatch(value.strip())]
    return others if 0 < len(others) <= FEW and len(others) <= (1 - MOST) * len(values) else []


def sentinels_of(values: Sequence[float]) -> list[str]:
    """The numbers that people write for "not known" and that are far from all other values of the column."""
    numbers = sorted(set(values))
    above = next((place for place, value in enumerate(reversed(numbers)) if value not in SENTINELS), len(numbers))
    below = next((place for place, value in enumerate(numbers) if value not in SENTINELS or value > 0), len(numbers))
    if len(numbers) - below < 4:
        return []
    marks = numbers[:below] if below and numbers[below] >= 0 else []
    others = numbers[below:]
    for place in range(max(4, len(others) - above), len(others)):
        near, first = others[place - 1], others[0]
        if others[place] - near > near - first > 0:
            marks += others[place:]
            break
    return [f"{mark:.0f}" for mark in marks]


def _are_number_like(values: Sequence[str]) -> bool:
    """Whether values may be numbers: only characters of numbers, and no leading zero, which would make them codes."""
    stripped = [value.strip() for value in values[:VALUES_READ]]
    return bool(stripped) and all(NUMBER_LIKE.fullmatch(value) and not CODE.match(value) for value in stripped)


def _is_date(value: str, format_: str) -> bool:
    try:
        return EARLIEST <= datetime.strptime(value, format_).year <= LATEST
    except ValueError:
        return False
