"""Kept columns in which every row has a value of its own, such as a number, perhaps given anew by the tool.

Such a column looks kept, as both tables have every value once. If each table has an order of its own, whoever believes
the column looks for everybody at the wrong place, and no other leak shows. An attacker would try without it as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from anon_pipeline.attack.generalized_values import numbers
from anon_pipeline.attack.rates import LEAK, Finding

#: As pandas writes an index without a name into a file.
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")


def of_single_rows(tables: Sequence[pd.DataFrame], kept: Sequence[str]) -> list[str]:
    """The kept columns in which every row of every table has a value, and no other row of the table the same.

    An index of pandas without a name counts as one, also where tables were put together and numbers stand twice.
    """
    return [
        name
        for name in kept
        if _UNNAMED_INDEX.fullmatch(name)
        or all(table[name].notna().all() and table[name].is_unique for table in tables)
    ]


def numbering(tables: Sequence[pd.DataFrame], kept: Sequence[str]) -> list[str]:
    """The kept columns in which every table has each whole number from its first to its last once, and such indexes.

    Tables of different people have the same numbers, so that equal ones do not say that people are the same.
    """
    return [
        name for name in kept if _UNNAMED_INDEX.fullmatch(name) or all(_counts_rows(table[name]) for table in tables)
    ]


def _counts_rows(column: pd.Series) -> bool:
    number = np.sort(numbers(column))
    return len(number) > 1 and bool((np.diff(number) == 1).all())  # also not where one is missing


def with_larger_leaks(findings: Sequence[Finding], others: Sequence[Finding]) -> list[Finding]:
    """The findings, and in place of each the one of the same attack among the others if that leaks more."""
    by_name = {finding.name: finding for finding in others}
    return [max(finding, by_name.get(finding.name, finding), key=_leaked) for finding in findings]


def _leaked(finding: Finding) -> tuple[bool, float]:
    """Whether there is a leak, and its lower end; without people to compare with, how often the attack was right."""
    return finding.verdict == LEAK, finding.attack.rate if finding.leak is None else finding.leak.low
