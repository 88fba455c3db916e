"""Carrying a plan out: as one SQL query where all steps are row-wise, or in memory, with the cost of each step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anon_pipeline.arrays import BoolArray, IntArray
from anon_pipeline.engine.sql import quoted
from anon_pipeline.errors import InputError
from anon_pipeline.keys import Key, Secrets
from anon_pipeline.masking import cost
from anon_pipeline.masking.base import (
    Applied,
    Columns,
    ColumnTechnique,
    Context,
    Fact,
    Guarantee,
    RowTechnique,
    TableTechnique,
    Technique,
)
from anon_pipeline.masking.cost import ColumnCost, Linkage
from anon_pipeline.masking.draws import Blocks, Draws, content_of, identities, seen
from anon_pipeline.masking.order import canonical_order, undone
from anon_pipeline.masking.plan import Plan, Step, plan_steps
from anon_pipeline.spec import ColumnType

#: Notes in place of a guarantee, or of figures, that steps on the same columns forbid.
NOT_ALONE = "an earlier step on these columns looks at more than a person's own value, so no local DP is promised"
UNMEASURED = "what it cost is not measured: figures made from true values would tell more of them than epsilon allows"

#: Columns of more distinct values than this are masked row by row, however long it takes.
MOST_LOOKED_UP = 100_000
#: Techniques that change values a little, so that an intruder may try to link rows to their originals.
PERTURBING = frozenset(
    {
        "noise", "proportional_noise", "correlated_noise", "rank_swap", "pram", "microaggregate", "mdav", "synthesize",
        "donut", "population_donut", "planar_laplace", "grid_cell", "h3_cell",
        "randomized_response", "unary_encoding", "local_frequencies",
    }
)  # fmt: skip


@dataclass(frozen=True)
class SqlColumn:
    """A column of a relation.

    Attributes
    ----------
    name, kind : its name and type
    storage : DuckDB's name of the type of its values
    expression : the SQL expression that gives it from the relation; by default its name
    distinct : the approximate number of distinct values, where it is known
    """

    name: str
    kind: ColumnType
    storage: str
    expression: str | None = None
    distinct: int | None = None


@dataclass(frozen=True)
class StepReport:
    """The report of one step; it contains no value of a person.

    Attributes
    ----------
    place, technique, columns : the place of the step in the spec, its technique and its columns
    parameters : as the spec states them, with defaults; of a file its name
    guarantee : the guarantee that was given
    facts : figures that the technique itself reports: epsilon, key id, groups, ...
    notes : sentences for the person who decides
    costs : the cost to each column that it changed and that still exists
    linkage : how many rows can be linked again by these columns, for techniques that perturb
    """

    place: str
    technique: str
    columns: tuple[str, ...]
    parameters: dict[str, Any]
    guarantee: Guarantee
    facts: dict[str, Fact] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    costs: dict[str, ColumnCost] = field(default_factory=dict)
    linkage: Linkage | None = None


def sql_select(columns: Sequence[SqlColumn], plan: Plan, relation: str) -> str:
    """A query that gives the columns of a relation after all steps of a plan.

    Where a column has few distinct values and one of its steps is heavy, its steps are carried out once per value, and
    the results are joined to the rows: an engine joins ten million rows in a tenth of the time in which it searches as
    many texts.

    The n-th steps of all columns are in the n-th subquery. So the expression of each step contains a plain name,
    however often it repeats the value.

    Raises
    ------
    ValueError
        Where a step is not row-wise; ask `plan.is_row_wise` first.
    """
    if not plan.is_row_wise:
        raise ValueError("only row-wise steps can be written as a query")
    steps = {name: tuple(step.technique for step in column) for name, column in plan.columns.items()}
    return _layered(columns, steps, relation)


def _layered(columns: Sequence[SqlColumn], steps: Mapping[str, Sequence[Technique]], relation: str) -> str:
    """See `sql_select`."""
    if any(column.expression not in (None, quoted(column.name)) for column in columns):
        select = ", ".join(f"{column.expression or quoted(column.name)} AS {quoted(column.name)}" for column in columns)
        relation = f"(SELECT {select} FROM {relation}) AS typed"
    looked_up = [column.name for column in columns if _is_looked_up(column, steps.get(column.name, ()))]
    query = _stacked(columns, {name: own for name, own in steps.items() if name not in looked_up}, relation)
    if not looked_up:
        return query
    select = ", ".join(
        f"of{looked_up.index(column.name)}.shown AS {quoted(column.name)}"
        if column.name in looked_up
        else f"person.{quoted(column.name)}"
        for column in columns
    )
    joins = []
    for place, column in enumerate(columns):
        if column.name in looked_up:
            number, name = looked_up.index(column.name), quoted(column.name)
            values = f"(SELECT DISTINCT {name} AS value, {name} AS shown FROM {relation}) AS distinct_values"
            both = [replace(columns[place], name="value"), replace(columns[place], name="shown")]
            masked = _stacked(both, {"shown": steps[column.name]}, values)
            joins.append(f"LEFT JOIN ({masked}) AS of{number} ON of{number}.value IS NOT DISTINCT FROM person.{name}")
    return f"SELECT {select} FROM ({query}) AS person {' '.join(joins)}"


def _is_looked_up(column: SqlColumn, steps: Sequence[Technique]) -> bool:
    few = column.distinct is not None and column.distinct <= MOST_LOOKED_UP
    return few and any(isinstance(step, RowTechnique) and step.heavy for step in steps)


def _stacked(columns: Sequence[SqlColumn], steps: Mapping[str, Sequence[Technique]], relation: str) -> str:
    """A query whose n-th subquery has the n-th steps of all columns.

    So the expression of each step contains a plain name, however often it repeats the value.
    """
    columns = list(columns)
    query = f"SELECT {', '.join(quoted(column.name) for column in columns)} FROM {relation}"
    for depth in range(max((len(own) for own in steps.values()), default=0)):
        expressions: list[str] = []
        for place, column in enumerate(columns):
            name, own = quoted(column.name), steps.get(column.name, ())
            technique = own[depth] if depth < len(own) else None
            if not isinstance(technique, RowTechnique):
                expressions.append(name)
                continue
            expressions.append(f"{technique.expression(name, column.kind, column.storage)} AS {name}")
            kind, storage = technique.kind_after(column.kind), technique.storage_after(column.kind, column.storage)
            columns[place] = replace(column, kind=kind, storage=storage)
        query = f"SELECT {', '.join(expressions)} FROM {relation}"
        relation = f"({query}) AS step{depth}"
    return query


@dataclass(frozen=True)
class Resources:
    """What steps need besides the table.

    Attributes
    ----------
    dataset, key : the dataset and its private key, on which all draws and the order of equal rows depend; not needed
        where all steps are row-wise
    secrets : where keys come from; by default this process's environment and the current folder
    folder : the folder to which names of files in the steps are relative
    released : the columns that are released; no cost is measured with another one, unless the step itself uses it. By
        default all are
    """

    dataset: str = ""
    key: Key | None = None
    secrets: Secrets | None = None
    folder: Path | None = None
    released: Collection[str] | None = None


NO_RESOURCES = Resources()


def apply_steps(
    table: pa.Table,
    column_types: Mapping[str, ColumnType],
    column_steps: Mapping[str, Sequence[Technique]],
    table_steps: Sequence[Technique] = (),
    resources: Resources = NO_RESOURCES,
) -> tuple[pa.Table, list[StepReport]]:
    """Carry out all steps on a table in memory.

    Parameters
    ----------
    table : one row per person, n rows, with all columns of the source, since draws depend on all of them; NaN counts as
        missing, -0.0 as 0.0, and moments are cut to microseconds
    column_types : the type of each of its columns
    column_steps, table_steps : as in `plan_steps`
    resources : what the steps need besides the table

    Returns
    -------
    The table after all steps, with the rows in their old order (for a table of groups: in the order of the groups); and
    a report per step, in the order of the steps.

    Raises
    ------
    InputError
        For steps that make no sense, missing keys, or data that a technique cannot work on.
    """
    run, reports, order = _carried_out(table, column_types, column_steps, table_steps, resources)
    masked = pa.table({name: run.state[name] for name in run.state})
    if not run.is_of_groups:
        masked = masked.take(pa.array(undone(order, run.rows)))
    return masked, reports


def people_left(
    table: pa.Table,
    column_types: Mapping[str, ColumnType],
    column_steps: Mapping[str, Sequence[Technique]],
    table_steps: Sequence[Technique] = (),
    resources: Resources = NO_RESOURCES,
) -> BoolArray:
    """Who is left after all steps of `apply_steps`, which must not end as groups, shape (n,)."""
    run, _, order = _carried_out(table, column_types, column_steps, table_steps, resources)
    is_left = np.zeros(len(order), dtype=bool)
    is_left[order[run.rows]] = True
    return is_left


def _carried_out(
    table: pa.Table,
    column_types: Mapping[str, ColumnType],
    column_steps: Mapping[str, Sequence[Technique]],
    table_steps: Sequence[Technique],
    resources: Resources,
) -> tuple[_Run, list[StepReport], IntArray]:
    """The state after all steps, their reports, and the canonical order of the table's rows; see `apply_steps`."""
    dataset, key = resources.dataset, resources.key
    plan = plan_steps(column_types, column_steps, table_steps, resources.folder)
    secrets = resources.secrets or Secrets(folder=resources.folder)
    plan.check_keys(secrets)
    if not plan.is_row_wise and key is None:
        raise InputError("steps: some need numbers or an order that nobody else can tell; give the dataset's key")
    untyped = [name for name in table.column_names if name not in column_types]
    absent = [name for name in column_types if name not in table.column_names]
    if untyped:
        raise InputError(f"columns: the table has columns without a type: {', '.join(untyped)}")
    if absent:
        raise InputError(f"columns: the table has no column {', '.join(absent)}")
    plain = pa.table({name: _plain(table.column(name)) for name in column_types})
    people = identities(plain, key, dataset) if key is not None else content_of(plain).T
    order = canonical_order(people)
    state = {name: _chunk(plain.column(name).take(pa.array(order))) for name in column_types}
    run = _Run(plan, replace(resources, secrets=secrets), people[order], state)
    reports = [*run.column_steps(), *(run.table_step(step) for step in plan.table)]
    return run, reports, order


class _Run:
    """The state of a table between its steps: columns in canonical order, their types, the rows that are left."""

    def __init__(self, plan: Plan, resources: Resources, people: Blocks, state: Columns) -> None:
        self.plan, self.dataset, self.key = plan, resources.dataset, resources.key
        self.secrets, self.released = resources.secrets or Secrets(), resources.released
        self.people, self.state = people, state
        self.kinds = dict(plan.types)
        self.mixed: set[str] = set()  # columns in which a person's value may depend on other people too
        self.n = len(next(iter(state.values()))) if state else 0
        self.rows: IntArray = np.arange(self.n)
        self.is_of_groups = False

    def column_steps(self) -> list[StepReport]:
        """The steps of all columns, column by column; DuckDB is opened where a step is its work."""
        planned = [step for steps in self.plan.columns.values() for step in steps]
        with ExitStack() as opened:
            session = cache(lambda: opened.enter_context(_session()))
            return [self._column_step(step, session) for step in planned]

    def table_step(self, step: Step) -> StepReport:
        technique = step.technique
        assert isinstance(technique, TableTechnique)  # noqa: S101 - the plan says so
        applied = technique.apply({name: self.state[name] for name in step.columns}, self._context(step))
        kinds = technique.columns_after(self.kinds)
        if applied.replaces_table:
            self.state, self.kinds, self.is_of_groups = dict(applied.columns), kinds, True
            return self._report(step, applied, {}, None)
        before = self._sample(step)
        state = {name: column for name, column in self.state.items() if name not in applied.dropped} | applied.columns
        if applied.kept is not None:
            state = {name: _chunk(column.take(pa.array(applied.kept))) for name, column in state.items()}
            self.rows = self.rows[applied.kept]
            self.n = len(self.rows)
            self.state, self.kinds = state, kinds
            return self._report(step, applied, {}, None)
        after = {name: column.slice(0, cost.SAMPLE) for name, column in state.items() if name in before}
        changed = [name for name in applied.columns if name in before]
        costs = {name: cost.column_cost(name, before, after, self.kinds, kinds) for name in changed}
        alike = [name for name in changed if kinds[name] is self.kinds[name]]  # numbers are near no names of cells
        linked = cost.linkage(before, after, self.kinds, alike) if _perturbs(technique) and alike else None
        self.state, self.kinds = state, kinds
        return self._report(step, applied, costs, linked)

    def _column_step(self, step: Step, session: Callable[[], duckdb.DuckDBPyConnection]) -> StepReport:
        technique, (name,) = step.technique, step.columns
        if isinstance(technique, RowTechnique):
            try:
                masked = _selected(session(), self.state[name], self.kinds[name], [technique])
            except InputError as error:
                raise InputError(f"{step.place}: {error}") from None
            applied = Applied({name: masked})
        else:
            assert isinstance(technique, ColumnTechnique)  # noqa: S101 - the plan says so
            applied = technique.apply({name: self.state[name]}, self._context(step))
        before = self._sample(step)
        self.state = self.state | {name: _chunk(applied.columns[name])}
        kinds = self.kinds | {name: technique.kind_after(self.kinds[name])}
        costs, linked = {}, None
        if name in before:
            after = before | {name: self.state[name].slice(0, cost.SAMPLE)}
            costs = {name: cost.column_cost(name, before, after, self.kinds, kinds)}
            linked = cost.linkage(before, after, self.kinds, [name]) if _perturbs(technique) else None
        self.kinds = kinds
        return self._report(step, applied, costs, linked)

    def _sample(self, step: Step) -> Columns:
        """Some rows before a step, to measure its cost: no column that this or a later step makes private, and none
        that is not released, unless the step uses it.
        """
        compared = set(self.state) if self.released is None else {*self.released, *step.columns}
        steps = self.plan.steps[[planned.place for planned in self.plan.steps].index(step.place) :]
        sheltered = {name for planned in steps if planned.technique.is_locally_private for name in planned.columns}
        return {
            name: column.slice(0, cost.SAMPLE) for name, column in self.state.items() if name in compared - sheltered
        }

    def _context(self, step: Step) -> Context:
        kinds = {name: self.kinds[name] for name in step.columns}
        return Context(kinds, self._draws(step), self.secrets, step.place, self.n)

    def _draws(self, step: Step) -> Draws:
        """The draws of a step with all its parameters, for the rows left, as they are now and in the source."""
        assert self.key is not None  # noqa: S101 - only row techniques need no key, and they get no context
        parameters = step.technique.model_dump(mode="json")
        label = [self.dataset, step.technique.technique, list(step.columns), step.number, parameters]
        draws = Draws(self.key, label, self.people[self.rows])
        if step.technique.random and step.columns:
            draws = draws.given(*(seen(self.state[name]) for name in step.columns))
        return draws

    def _report(self, step: Step, applied: Applied, costs: dict[str, ColumnCost], linked: Linkage | None) -> StepReport:
        technique = step.technique
        guarantee, notes = applied.guarantee or technique.guarantee, applied.notes
        if technique.is_locally_private:
            notes = (*notes, UNMEASURED)
        if technique.is_locally_private and self.mixed & set(step.columns):
            guarantee, notes = "none", (*notes, NOT_ALONE)
        if not isinstance(technique, RowTechnique) and not technique.is_locally_private:
            self.mixed |= set(step.columns)
        # Not as read: a list in a file may name the values of few people, and a report is published.
        parameters = step.stated.model_dump(mode="json", exclude={"technique"}, exclude_none=True)
        return StepReport(
            step.place, technique.technique, step.columns, parameters, guarantee, applied.facts, notes, costs, linked
        )


def _selected(
    connection: duckdb.DuckDBPyConnection, column: pa.Array, kind: ColumnType, techniques: Sequence[Technique]
) -> pa.Array:
    """A column after row techniques, rows in the same order; each distinct value is masked once."""
    coded = column.dictionary_encode()
    values = coded.dictionary
    if column.null_count:  # some techniques replace missing values
        values = pa.concat_arrays([values, pa.nulls(1, values.type)])
    connection.register("masked_values", pa.table({"value": values, "code": pa.array(np.arange(len(values)))}))
    try:
        storage = connection.execute("DESCRIBE masked_values").fetchall()[0][1]
        described = [SqlColumn("value", kind, storage), SqlColumn("code", ColumnType.NUMERIC, "BIGINT")]
        query = _stacked(described, {"value": techniques}, "masked_values")
        # A technique may join, and then the order of the rows is not defined.
        masked = _plain(
            connection.sql(f"SELECT value FROM ({query}) AS shown ORDER BY code").to_arrow_table().column(0)
        )
    except duckdb.Error:  # its message may quote a value
        raise InputError("the values could not be converted; check that they fit the column's type") from None
    finally:
        connection.unregister("masked_values")
    return masked.take(coded.indices.fill_null(len(coded.dictionary)))


def _session() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """One array without dictionary, NaN or negative zero, moments to the microsecond; the type null becomes text."""
    array = _chunk(column)
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_null(array.type) or pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type):
        array = array.cast(pa.string())
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("us", array.type.tz), safe=False)
    if pa.types.is_floating(array.type):
        known = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
        array = pc.add(known, pa.scalar(0.0, array.type))
    return array


def _chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array


def _perturbs(technique: Technique) -> bool:
    return technique.technique in PERTURBING
