"""The verdict on any table, ours or not, from reading it again: the report of `anon-pipeline verify`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.engine.base import ClassCounts, Engine
from anon_pipeline.engine.measured_columns import MOST_DIGITS
from anon_pipeline.errors import InputError, known_names
from anon_pipeline.privacy.judge import (
    Finding,
    classes_beside_population,
    judge,
    judge_release,
    statistics_of,
    types_of,
)
from anon_pipeline.privacy.k_anonymity import KAnonymity
from anon_pipeline.privacy.measures import describe
from anon_pipeline.privacy.risk import reidentification_risk
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.privacy.t_closeness import TCloseness
from anon_pipeline.spec import ColumnType, ReleaseSpec, Role


@dataclass(frozen=True)
class Verdict:
    """The verdict on a table.

    Attributes
    ----------
    rows, classes, smallest_class : counted in the table
    rows_below : rows in classes that fail k-anonymity
    findings : each demand and what was measured
    problems : what else is wrong, such as a column that must not be there
    sensitive : per sensitive column the measures of its classes (`measures`), with demands or without
    risk : the risk of re-identification, highest and mean over people: by a prosecutor, who knows that a person is in
        the table; and, where a demand names a population, by a journalist, who does not know it, and by a marketer, who
        matches everybody (mean alone); empty where there is nobody, and for a table of groups
    groups : whether it is a table of groups and not of people: then rows and classes are groups, `smallest_class` is
        the smallest count written in it, and `rows_below` are groups that count too few
    notes : sentences on sensitive columns that are judged as categories, and may hold numbers or dates
    """

    rows: int
    classes: int
    smallest_class: int
    rows_below: int
    findings: list[Finding]
    problems: list[str]
    sensitive: dict[str, dict[str, float]]
    groups: bool = False
    risk: dict[str, dict[str, float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.problems and all(finding.holds for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        findings = [{**asdict(finding), "holds": finding.holds} for finding in self.findings]
        return {**asdict(self), "findings": findings, "holds": self.holds}


def verify_by_columns(
    engine: Engine, table: Path, quasi_identifiers: Sequence[str], k: int, sensitive: Sequence[str] = ()
) -> Verdict:
    """Count a Parquet table's classes over some columns and check k-anonymity.

    Raises
    ------
    InputError
        For a column that the table lacks.
    """
    counts = _counted(engine, table, quasi_identifiers, dict.fromkeys(sensitive, ()))
    classes = statistics_of(counts)
    return _verdict(classes, judge([KAnonymity(k=k)], classes), k, [])


def verify_by_spec(
    engine: Engine, table: Path, spec: ReleaseSpec, class_table: Path, of_texts: bool = False
) -> Verdict:
    """Check a Parquet table against every demand of a spec, and its columns against those that the spec releases.

    `class_table` lies beside a release; demands on a population cannot be judged without it. `of_texts` says that the
    table was made of a file of texts, so that types are those of what the texts look like.
    """
    columns = engine.columns(table)
    markers = {name: (*spec.source.missing, *spec.columns[name].missing) for name in spec.with_role(Role.SENSITIVE)}
    counts = _counted(engine, table, spec.quasi_identifiers, markers)
    types = types_of(spec, columns)
    judgements = judge_release(engine, spec, types, counts, class_table)
    extra = sorted(set(columns) - set(spec.released))
    problems = [f"the column {name} is not one that the spec releases" for name in extra]
    classes = statistics_of(counts, spec.answers, spec.categories)
    findings = [judgement.finding for judgement in judgements]
    notes = [*_judged_as_categories(spec, counts), *(_judged_as_numbers(spec, counts) if of_texts else ())]
    verdict = replace(_verdict(classes, findings, spec.k, problems), notes=notes)
    if any(finding.measured is None for finding in findings):  # the class table is not of this table
        return verdict
    beside = classes_beside_population(engine, spec, types, class_table)
    # Rows that look alike are one class to a prosecutor, though two classes of the class table show their values.
    return verdict if beside is None else replace(verdict, risk=_risk(beside) | verdict.risk)


def _judged_as_categories(spec: ReleaseSpec, counts: ClassCounts) -> list[str]:
    """A sentence on each sensitive column whose values cannot be read as the spec says, of which a run has an order.

    What a masking step shows may be of another type than the column's.
    """
    masked = {name for step in spec.steps for name in step.used}
    notes = []
    for name, values in counts.sensitive.items():
        column = spec.columns[name]
        if column.type not in (ColumnType.NUMERIC, ColumnType.DATE) or name in counts.ordered:
            continue
        if column.steps or column.made or name in masked or values["value"].isna().all():
            continue
        is_date = column.type is ColumnType.DATE
        notes.append(
            f"columns.{name}: the spec says that it holds {'dates' if is_date else 'numbers'}, and some of its values "
            f"are written in another way than {'its format' if is_date else 'decimal, thousands and symbols'} in the "
            "spec and than SQL writes them; so all are judged as categories, and figures of the run that follow their "
            "order, such as t-closeness, may be others"
        )
    return notes


def _judged_as_numbers(spec: ReleaseSpec, counts: ClassCounts) -> list[str]:
    """A sentence on each sensitive column of texts that look like numbers or dates, of which the spec states no type.

    A run may have had them as texts; along an order values are nearer to each other.
    """
    by_order = {
        demand.column
        for demand in spec.privacy
        if isinstance(demand, TCloseness) and demand.distance is None and demand.hierarchy is None
    }
    return [
        f"columns.{name}: the spec states no type, and all values are numbers or dates, so they are judged in their "
        "order; if they are codes, state the type categorical, or judge by the manifest.json of the release"
        for name in counts.sensitive
        if spec.columns[name].type is None and name in counts.ordered and name in by_order
    ]


def _counted(
    engine: Engine, table: Path, quasi_identifiers: Sequence[str], sensitive: Mapping[str, Sequence[str]]
) -> ClassCounts:
    """The classes of a table, with the sensitive columns.

    Parameters
    ----------
    sensitive : the columns, and which texts stand for "not known" in each. An empty text does so in all of them, as it
        does in a source and in a CSV of the same table; counted as a value it would be diversity
    """
    columns = engine.columns(table)
    named = [*quasi_identifiers, *sensitive]
    if absent := [name for name in named if name not in columns]:
        raise InputError(f"the table has no column {', '.join(absent)}; {known_names(columns, named)}")
    _refuse_rounded(table, named)
    counts = engine.classes(table, quasi_identifiers, list(sensitive))
    known = {
        name: frame.assign(value=frame["value"].mask(frame["value"].isin(["", *sensitive[name]])))
        for name, frame in counts.sensitive.items()
    }
    return replace(counts, sensitive=known)


def _refuse_rounded(table: Path, names: Sequence[str]) -> None:
    """Refuse decimals that no engine reads by all their digits: people who differ in the last ones would be alike.

    Raises
    ------
    InputError
        For a column with such decimals.
    """
    for column in pq.read_schema(table):
        if column.name in names and pa.types.is_decimal256(column.type) and column.type.precision > MOST_DIGITS:
            raise InputError(
                f"{column.name}: is stored as decimals of more than {MOST_DIGITS} digits, of which the last ones "
                "cannot be compared; store them as texts or in fewer digits"
            )


def _verdict(classes: ClassStatistics, findings: list[Finding], k: int, problems: list[str]) -> Verdict:
    sizes = classes.sizes
    if not len(sizes):  # nothing is measured of nobody, which is told as infinite
        problems = [*problems, "the table has no rows, so there is nobody to judge"]
    return Verdict(
        rows=int(sizes.sum()),
        classes=len(sizes),
        smallest_class=int(sizes.min()) if len(sizes) else 0,
        rows_below=int(sizes[sizes < k].sum()),
        findings=findings,
        problems=problems,
        sensitive=describe(classes) if len(sizes) else {},
        risk=_risk(classes),
    )


def _risk(classes: ClassStatistics) -> dict[str, dict[str, float]]:
    """The figures of `Verdict.risk`; those of a population are left out if a class matches nobody in it."""
    if not len(classes.sizes):
        return {}
    if classes.population is not None and int(classes.population.min()) < 1:
        classes = replace(classes, population=None)
    risk = reidentification_risk(classes)
    figures = {"prosecutor": {"max": risk.prosecutor.max, "mean": risk.prosecutor.mean}}
    if risk.journalist is not None:
        figures |= {"journalist": {"max": risk.journalist.max, "mean": risk.journalist.mean}}
        figures |= {"marketer": {"mean": risk.marketer}}
    return figures
