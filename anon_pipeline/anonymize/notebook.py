"""The display of an anonymizer in a notebook: classes, information lost, and risk; no value of a person."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from markupsafe import escape

from anon_pipeline.arrays import IntArray
from anon_pipeline.errors import percent

STYLE = "border-collapse:collapse;margin:.5em 0;font-size:90%"


def table_of_facts(sizes: IntArray, losses: Mapping[str, float]) -> str:
    """A table in HTML of what became of the people whom an anonymizer was fitted on.

    The risk is the prosecutor's: 1/f for everybody in a class of f people (El Emam 2013).

    Parameters
    ----------
    sizes : people per class, shape (J,)
    losses : the share of each quasi-identifier's variance that is lost
    """
    mean_risk = len(sizes) / sizes.sum()
    facts = [
        ("people in classes", f"{int(sizes.sum()):,}"),
        ("classes", f"{len(sizes):,}"),
        ("people in a class", f"{int(sizes.min()):,} at least, {np.median(sizes):,.0f} in the median class"),
        ("risk of being re-identified", f"{percent(1 / sizes.min())} at most, {percent(mean_risk)} on average"),
        ("information lost", f"{percent(float(np.mean(list(losses.values()))))} on average"),
        *((f"lost of {name}", percent(lost)) for name, lost in losses.items()),
    ]
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td>{escape(fact)}</td></tr>" for name, fact in facts
    )
    return f"<table style='{STYLE}'><tbody>{rows}</tbody></table>"
