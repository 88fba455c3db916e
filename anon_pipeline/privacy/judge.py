"""The verdict on a table: each demand of a spec held against the classes counted in that table."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import pandas as pd

from anon_pipeline.engine.base import ClassCounts
from anon_pipeline.privacy.base import PrivacyModel
from anon_pipeline.privacy.statistics import ClassStatistics, Histogram, histogram
from anon_pipeline.spec import Demand


@dataclass(frozen=True)
class Finding:
    """What one demand came to.

    Attributes
    ----------
    name : the privacy model, followed by its column where it has one
    demand : the demand in words
    measured : the worst value over all classes, None where it is infinite
    failing : number of classes that do not meet it
    """

    name: str
    demand: str
    measured: float | None
    failing: int

    @property
    def holds(self) -> bool:
        return self.failing == 0


def name_of(demand: Demand) -> str:
    """ "l_diversity_income": the model and the column it protects."""
    column = getattr(demand, "column", None)
    return demand.name if column is None else f"{demand.name}_{column}"


def statistics_of(counts: ClassCounts) -> ClassStatistics:
    """Class statistics of a table that an engine has grouped."""
    sensitive = {}
    for column, frame in counts.sensitive.items():
        missing = frame["value"].isna().to_numpy()
        code, values = pd.factorize(frame["value"][~missing], sort=True)
        codes = pd.Series(0, index=frame.index, dtype="int64")
        codes[~missing] = code + int(missing.any())
        known: tuple[Any, ...] = tuple(values.tolist())
        values_with_missing = (None, *known) if missing.any() else known
        sensitive[column] = Histogram(
            values=values_with_missing,
            counts=histogram(
                frame["class"].to_numpy("int64"),
                codes.to_numpy(),
                frame["count"].to_numpy("int64"),
                (len(counts.sizes), len(values_with_missing)),
            ),
            ordered=column in counts.ordered,
        )
    return ClassStatistics(sizes=counts.sizes, sensitive=sensitive)


def judge(demands: Iterable[Demand], classes: ClassStatistics) -> list[Finding]:
    """Hold every demand against the classes; a table without classes meets none."""
    findings = []
    for demand in demands:
        model = cast(PrivacyModel, demand)
        failing = int((~model.holds(classes)).sum()) if len(classes.sizes) else 1
        measured = model.measured(classes) if len(classes.sizes) else math.nan
        findings.append(
            Finding(name_of(model), model.demand(), measured if math.isfinite(measured) else None, failing)
        )
    return findings
