"""The display of an anonymizer in a notebook: classes, information lost, and risk; no value of a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from markupsafe import escape
from sklearn.utils import estimator_html_repr

if TYPE_CHECKING:
    from anon_pipeline.anonymize.anonymizer import AnonymizerTree

STYLE = "border-collapse:collapse;margin:.5em 0;font-size:90%"


def summary_html(tree: AnonymizerTree) -> str:
    """scikit-learn's picture of an estimator, and below it, once it is fitted, what became of the people.

    The risk is the prosecutor's: 1/f for everybody in a class of f people (El Emam 2013), of those it was fitted on.
    """
    drawn: str = estimator_html_repr(tree)
    if not tree.__sklearn_is_fitted__():
        return drawn
    sizes = tree.sizes_
    facts = [
        ("people in classes", f"{int(sizes.sum()):,}"),
        ("classes", f"{len(sizes):,}"),
        ("people in a class", f"{int(sizes.min()):,} at least, {np.median(sizes):,.0f} in the median class"),
        ("risk of being re-identified", f"{1 / sizes.min():.1%} at most, {len(sizes) / sizes.sum():.1%} on average"),
        ("information lost", f"{np.mean(list(tree.information_loss_.values())):.1%} on average"),
        *((f"lost of {name}", f"{lost:.1%}") for name, lost in tree.information_loss_.items()),
    ]
    rows = "".join(f"<tr><th style='text-align:left'>{escape(name)}</th><td>{fact}</td></tr>" for name, fact in facts)
    return f"{drawn}<table style='{STYLE}'><tbody>{rows}</tbody></table>"
