"""Samples in a spec: the column of a survey's weights, and the columns whose values are strata; their conditions."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from anon_pipeline.spec.parts import NO_ROWS, Column, ColumnType, MaskingStep, Role

PLACE = "sampling_weight"


def require_weight(
    name: str, columns: Mapping[str, Column], used: Collection[str], fraction: float | None, aggregates: bool
) -> None:
    """Check the column of the weights against the rest of a spec.

    Parameters
    ----------
    used : columns that steps on several columns need
    fraction : `sampling_fraction`, which follows from weights
    aggregates : whether groups are released instead of rows of people

    Raises
    ------
    ValueError
        If the column is not in the source, is generalized or masked, or is not numeric.
    """
    column = columns.get(name)
    if column is None or column.made:
        raise ValueError(f"{PLACE}: {name!r} is no column of the source")
    if fraction is not None:
        raise ValueError(f"sampling_fraction: follows from {PLACE}; state one of the two")
    if aggregates:
        raise ValueError(f"{PLACE}: {NO_ROWS}; take it out")
    if column.role not in (Role.EXCLUDE, Role.SENSITIVE, Role.INSENSITIVE):
        raise ValueError(
            f"{PLACE}: {name!r} has the role {column.role}; a weight is left out (exclude), or published as it is "
            "(sensitive or insensitive)"
        )
    if column.steps or name in used:
        raise ValueError(f"{PLACE}: {name!r} has steps; the risk is that of the weights as they are")
    if column.type not in (None, ColumnType.NUMERIC):
        raise ValueError(f"{PLACE}: {name!r} has the type {column.type}; a weight is a number of people")


def require_fraction(fraction: float | None, steps: Sequence[MaskingStep]) -> None:
    """Check that a stated share of the population is no larger than what the steps keep of the source.

    The share is that of the table which is released: the estimates count its classes.

    Raises
    ------
    ValueError
        If it is larger, so that more people than the population has would be in the source.
    """
    kept = math.prod(step.kept_share for step in steps)
    if fraction is not None and fraction > kept * (1 + 1e-9):
        raise ValueError(
            f"sampling_fraction: {fraction:g} is more than the steps keep of the source ({kept:g}); it is the share of "
            "the population that is left after them: multiply that of the source by what they keep"
        )


def require_strata(steps: Sequence[MaskingStep], columns: Mapping[str, Column]) -> None:
    """Check that no stratum of a sample is made of a sensitive column.

    The number kept of each stratum is a rounded share of its people and is not drawn. So the counts in a release tell
    the value of somebody who is not in it to whoever knows the values of all others.

    Raises
    ------
    ValueError
        If one is.
    """
    for number, step in enumerate(steps):
        for name in step.strata:
            if name in columns and columns[name].role is Role.SENSITIVE:
                raise ValueError(
                    f"steps.{number}.columns: {name!r} is sensitive, and the number kept of each of its values would "
                    "tell the value of somebody who is not kept; take another column, or none"
                )
