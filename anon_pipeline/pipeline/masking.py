"""Mask the stored people by the steps of a spec: plan the steps, carry them out, and report their effects."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq

from anon_pipeline.engine import found_types
from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.engine.expressions import PEOPLE
from anon_pipeline.errors import InputError, number_of, percent
from anon_pipeline.keys import Secrets
from anon_pipeline.masking.aggregation import aggregate_for_readers
from anon_pipeline.masking.base import Technique
from anon_pipeline.masking.cost import SAMPLE
from anon_pipeline.masking.execution import Resources, SqlColumn, StepReport, apply_steps, sql_select
from anon_pipeline.masking.memory import require_memory, usable_memory
from anon_pipeline.masking.plan import Plan, plan_steps
from anon_pipeline.masking.pseudonyms import Hash, KeyedTechnique
from anon_pipeline.masking.sampling import Sample
from anon_pipeline.masking.step_keys import secrets_of
from anon_pipeline.pipeline.maps import maps_of_masking
from anon_pipeline.pipeline.step import Run
from anon_pipeline.spec import ColumnType, ReleaseSpec, Role


@dataclass(frozen=True, eq=False)
class MaskedPeople:
    """People after the steps of their spec.

    Attributes
    ----------
    plan : the plan that was carried out
    stored : the facts about the masked table
    reports : the report of each step
    maps : one map per pair of coordinates, for drawing
    narrowed : the types of the columns that have another one without those who were not drawn, by name
    """

    plan: Plan
    stored: SourceFacts
    reports: list[StepReport]
    maps: list[dict[str, Any]]
    narrowed: dict[str, str]


def mask_stored(run: Run, source: SourceFacts, table: Path, destination: Path) -> MaskedPeople:
    """Carry out the steps of a spec on a stored table of people; `source` are the facts about the table.

    Raises
    ------
    InputError
        For steps that cannot be carried out, that need more memory than there is, or that leave fewer than k people.
    """
    spec = run.spec
    plan, secrets = planned(spec, source.types())
    plan = plan.of_people
    if not plan.is_row_wise:
        require_memory(source.rows, len(source.columns), usable_memory(run.memory_limit))
    reports, maps = mask(run, plan, secrets, source, table, destination)
    draws = any(isinstance(step.technique, Sample) for step in plan.table)
    narrowed = found_types.narrow(destination, found_types.typed_by_values(spec, source)) if draws else {}
    after = {name: kind for name, kind in plan.types_after.items() if name in kept_columns(spec, plan)}
    stored = run.engine.describe(destination, spec, after)
    if stored.rows < spec.k:
        raise InputError(f"steps: {number_of(stored.rows, 'person is', 'people are')} left, fewer than k = {spec.k}")
    return MaskedPeople(plan, stored, reports, maps, narrowed)


def planned(spec: ReleaseSpec, types: dict[str, ColumnType]) -> tuple[Plan, Secrets]:
    """The checked plan of a spec's steps, and all keys, before any step is carried out.

    Raises
    ------
    InputError
        For steps that do not fit together, an absent key, columns that the steps leave without a role, or groups that
        show columns which the spec does not release.
    """
    steps = {name: cast(tuple[Technique, ...], column.steps) for name, column in spec.columns.items() if column.steps}
    secrets = secrets_of(spec)
    table = cast(tuple[Technique, ...], spec.steps)
    table = (*table[:-1], aggregate_for_readers(spec)) if spec.aggregates else table
    plan = plan_steps(types, steps, table, spec.folder)
    plan.check_keys(secrets)
    columns = plan.table[-1].columns if plan.ends_as_groups else tuple(plan.types_after)
    unnamed = [name for name in columns if name not in spec.columns]
    absent = [name for name in spec.released if name not in plan.types_after]
    hidden = [name for name in columns if plan.ends_as_groups and name in spec.with_role(Role.IDENTIFIER, Role.EXCLUDE)]
    if hidden:
        raise InputError(f"steps: aggregate shows {', '.join(hidden)}, which the spec keeps back; give it a role")
    if unnamed:
        raise InputError(f"columns: the steps make {', '.join(unnamed)}; give each a role, with made: true")
    if absent:
        raise InputError(f"columns: no step makes, or the steps remove, {', '.join(absent)}; exclude them")
    return plan, secrets


def mask(
    run: Run, plan: Plan, secrets: Secrets, source: SourceFacts, table: Path, destination: Path
) -> tuple[list[StepReport], list[dict[str, Any]]]:
    """Carry out a plan on a stored table; `source` are the facts about the table.

    If all steps work row by row and there are more people than the sample on which costs are measured, the engine masks
    them, and only the sample is loaded into memory. Returns the report of each step, and a map per pair of coordinates.
    """
    spec, engine, key = run.spec, run.engine, None if plan.is_row_wise else run.key
    steps = {name: [step.stated for step in of_column] for name, of_column in plan.columns.items()}
    together = [step.stated for step in plan.table]
    kept = kept_columns(spec, plan)
    large = plan.is_row_wise and engine.rows(table) > SAMPLE
    people = engine.everybody(table, SAMPLE if large else None)
    masked, reports = apply_steps(
        people, plan.types, steps, together, Resources(spec.dataset, key, secrets, spec.folder, spec.released)
    )
    if not large:
        unsorted = destination.with_suffix(".rows")
        pq.write_table(masked, unsorted)
        engine.rewrite(unsorted, kept, lambda _, relation: f"SELECT * FROM {relation}", destination)
        unsorted.unlink()
        return reports, maps_of_masking(spec, people, masked)

    def query(storage: dict[str, str], relation: str) -> str:
        columns = [
            SqlColumn(column.name, column.type, storage[column.name], distinct=column.distinct)
            for column in source.columns
        ]
        return sql_select([*columns, SqlColumn(PEOPLE, ColumnType.NUMERIC, "BIGINT")], plan, relation)

    engine.rewrite(table, kept, query, destination)
    return reports, []  # steps on positions do not work row by row


def repeating_tokens(spec: ReleaseSpec, masked: SourceFacts) -> list[str]:
    """The released columns of tokens of which one stands in several rows: if it is a person's, so are these rows.

    Whoever sees the same token knows that, and a class of k rows is fewer people; another table with the same tokens
    can be joined. A token of something else, such as a hospital, may repeat.
    """
    names = [
        name
        for name in spec.with_role(Role.SENSITIVE, Role.INSENSITIVE)
        if any(isinstance(step, KeyedTechnique | Hash) for step in spec.columns[name].steps)
    ]
    return [
        column.name
        for column in masked.columns
        if column.name in names and column.distinct < masked.rows - column.missing
    ]


def lineage(spec: ReleaseSpec, plan: Plan) -> dict[str, list[str]]:
    """The columns of the source from which each masked column is made."""
    sources = {name: {name} for name in plan.types}
    for step in plan.table:
        used = set().union(*(sources.get(name, set()) for name in step.columns))
        for name in plan.types_after:
            if name in step.columns or name not in sources:
                sources[name] = used
    return {name: sorted(sources[name]) for name in kept_columns(spec, plan)}


def kept_columns(spec: ReleaseSpec, plan: Plan) -> list[str]:
    """The columns that are needed after the steps, in the order of the spec."""
    return [
        name
        for name, column in spec.columns.items()
        if name in plan.types_after and (column.role is not Role.EXCLUDE or name == spec.sampling_weight)
    ]


def table_of_reports(reports: list[StepReport]) -> str:
    """The reports of the steps, as a table in Markdown."""
    rows = ["| step | columns | guarantee | cells changed |", "|---|---|---|---|"]
    for report in reports:
        changed = ", ".join(percent(cost.changed) for cost in report.costs.values()) or "-"
        rows.append(f"| {report.technique} | {', '.join(report.columns)} | {report.guarantee} | {changed} |")
    return "\n".join(rows)
