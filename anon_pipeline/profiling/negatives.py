"""Columns of numbers with negative ones as accounts write them: a source reads them as texts, which is remarked."""

from __future__ import annotations

import re
from collections.abc import Sequence

from anon_pipeline.engine import account_negatives
from anon_pipeline.profiling.value_formats import MARKERS, VALUES_READ, numbers_of

#: What a person does about such a column.
REMEDY = f"{account_negatives.REMEDY} and propose anew"
#: The remark on it.
REMARK = f"read as texts, since some seem to be negative numbers as accounts have them: {REMEDY}"
#: A number in brackets, with a currency or unit inside or outside of them.
IN_BRACKETS = re.compile(r"([^()]*)\(([^()]+)\)([^()]*)")
LONG_DASH = re.compile(f"[{account_negatives.LONG_DASHES}]")


def has_negatives_of_accounts(values: Sequence[str]) -> bool:
    """Whether all values of a column are numbers once some of them are given a usual sign.

    >>> has_negatives_of_accounts(["12", "(5)", "1,200"]), has_negatives_of_accounts(["12", "-5"])
    (True, False)
    """
    known = [value for value in values[:VALUES_READ] if value not in MARKERS and value.strip()]
    signed = [_with_usual_sign(value) for value in known]
    return signed != [value.strip() for value in known] and bool(numbers_of({"": signed}).columns)


def is_negative_of_accounts(value: str) -> bool:
    """Whether a value is a negative number as accounts have it.

    >>> [is_negative_of_accounts(value) for value in ("(5)", "$(1,200)", "5-", "\u22125", "-5", "(none)")]
    [True, True, True, True, False, False]
    """
    return has_negatives_of_accounts([value])


def _with_usual_sign(value: str) -> str:
    """A value with a hyphen before it where it is written as a negative number of an account."""
    text = LONG_DASH.sub("-", value.strip())
    if (bracketed := IN_BRACKETS.fullmatch(text)) is not None and "-" not in text:
        return f"{bracketed[1]}-{bracketed[2]}{bracketed[3]}"
    if text.endswith("-") and "-" not in text[:-1]:
        return f"-{text[:-1].rstrip()}"
    return text
