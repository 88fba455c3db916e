"""Negative numbers as accounts write them: (5), 5-, or a 5 after a long dash. No source reads them as numbers."""

from __future__ import annotations

#: Minus signs that are no hyphen, as word processors and typesetters write them.
LONG_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
#: What a person does about such numbers.
REMEDY = "where (5), 5- or a 5 after a long dash means -5, write -5 in the table"
#: Replaces such a number where it is known as one and its digits are of no use; it cannot be read as a number.
EXAMPLE = "(5)"


def with_usual_sign(value: str) -> str:
    """SQL of a text with a hyphen before it, where it has the sign of such a number; of any other text, the text."""
    dashed = f"translate(trim({value}, ' '), '{LONG_DASHES}', '{'-' * len(LONG_DASHES)}')"
    signed = f"({dashed} LIKE '%(%)%' AND {dashed} NOT LIKE '%-%') OR {dashed} LIKE '%-'"
    return f"CASE WHEN {signed} THEN concat('-', trim(translate({dashed}, '()-', ''), ' ')) ELSE {dashed} END"
