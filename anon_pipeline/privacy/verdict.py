"""Judging any table, ours or not, by reading it afresh: what `anon-pipeline verify` reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from anon_pipeline.engine.base import Engine
from anon_pipeline.errors import InputError
from anon_pipeline.privacy.judge import Finding, judge, statistics_of
from anon_pipeline.privacy.measures import describe
from anon_pipeline.spec import Demand


@dataclass(frozen=True)
class Verdict:
    """What a table holds.

    Attributes
    ----------
    rows, classes, smallest_class : counted in the table
    rows_below : rows in classes that fail k-anonymity
    findings : each demand and what was measured
    problems : what else is wrong, such as a column that must not be there
    sensitive : per sensitive column what its classes give away, whether or not anything was demanded
    """

    rows: int
    classes: int
    smallest_class: int
    rows_below: int
    findings: list[Finding]
    problems: list[str]
    sensitive: dict[str, dict[str, float]]

    @property
    def holds(self) -> bool:
        return not self.problems and all(finding.holds for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        findings = [{**asdict(finding), "holds": finding.holds} for finding in self.findings]
        return {**asdict(self), "findings": findings, "holds": self.holds}


def verify_table(
    engine: Engine,
    table: Path,
    quasi_identifiers: Sequence[str],
    demands: Sequence[Demand],
    sensitive: Sequence[str] = (),
    allowed: Sequence[str] | None = None,
) -> Verdict:
    """Count a Parquet table's classes and hold the demands against them.

    Parameters
    ----------
    allowed : the only columns the table may have; any where absent

    Raises
    ------
    InputError
        For a column that the table lacks.
    """
    columns = engine.columns(table)
    absent = [name for name in [*quasi_identifiers, *sensitive] if name not in columns]
    if absent:
        raise InputError(f"the table has no column {', '.join(absent)}; it has {', '.join(columns)}")
    counts = engine.classes(table, quasi_identifiers, sensitive)
    classes = statistics_of(counts)
    findings = judge(demands, classes)
    k = next((int(demand.k) for demand in demands if demand.name == "k_anonymity"), 0)  # type: ignore[attr-defined]
    extra = sorted(set(columns) - set(allowed)) if allowed is not None else []
    return Verdict(
        rows=int(counts.sizes.sum()),
        classes=len(counts.sizes),
        smallest_class=int(counts.sizes.min()) if len(counts.sizes) else 0,
        rows_below=int(counts.sizes[counts.sizes < k].sum()),
        findings=findings,
        problems=[f"the column {name} is not one that the spec releases" for name in extra],
        sensitive=describe(classes) if len(counts.sizes) else {},
    )
