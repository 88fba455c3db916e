"""Plans of masking steps: all steps of a table in their order, checked before any data is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from anon_pipeline.errors import InputError
from anon_pipeline.keys import Secrets
from anon_pipeline.masking.base import OneColumnTechnique, RowTechnique, TableTechnique, Technique
from anon_pipeline.spec import ColumnType


@dataclass(frozen=True)
class Step:
    """One technique at its place in a plan.

    Attributes
    ----------
    place : its place in the spec, `columns.age.steps.0` or `steps.1`
    technique : the technique, after the files that it names were read
    stated : the technique as the spec states it
    columns : the columns that it uses
    before : the types of these columns when it begins
    number : the number of steps of the same technique on the same columns before it
    """

    place: str
    technique: Technique
    stated: Technique
    columns: tuple[str, ...]
    before: dict[str, ColumnType]
    number: int


@dataclass(frozen=True)
class Plan:
    """All steps in the order in which they are carried out: those of each column, then those of the table.

    Attributes
    ----------
    types : the columns at the beginning, and their types
    columns : the steps of each column that has any
    table : the steps of the table
    types_after : the columns at the end, and their types; for a table of groups, those of that table
    """

    types: dict[str, ColumnType]
    columns: dict[str, tuple[Step, ...]]
    table: tuple[Step, ...]
    types_after: dict[str, ColumnType]

    @property
    def steps(self) -> tuple[Step, ...]:
        return (*(step for steps in self.columns.values() for step in steps), *self.table)

    @property
    def is_row_wise(self) -> bool:
        """Whether an engine can carry out all steps row by row, as one query (`execution.sql_select`)."""
        return all(isinstance(step.technique, RowTechnique) for step in self.steps)

    @property
    def ends_as_groups(self) -> bool:
        """Whether the rows at the end are groups instead of people."""
        return any(step.technique.technique == "aggregate" for step in self.table)

    @property
    def of_people(self) -> Plan:
        """The same plan without the step that makes groups, so that the rows at the end are people."""
        if not self.ends_as_groups:
            return self
        kinds = dict(self.types)
        for column, steps in self.columns.items():
            for step in steps:
                kinds[column] = step.technique.kind_after(kinds[column])
        for step in self.table[:-1]:
            assert isinstance(step.technique, TableTechnique)  # noqa: S101 (`plan_steps` allows no other)
            kinds = step.technique.columns_after(kinds)
        return replace(self, table=self.table[:-1], types_after=kinds)

    def check_keys(self, secrets: Secrets) -> None:
        """Check that every key that a step needs can be found.

        Raises
        ------
        InputError
            With the steps whose key is absent, open to others or too short.
        """
        problems = []
        for step in self.steps:
            if step.technique.key_source is not None:
                try:
                    secrets.key(step.technique.key_source)
                except InputError as error:
                    problems.append(f"{step.place}.{error}")
        if problems:
            raise InputError("; ".join(problems))


def plan_steps(
    types: Mapping[str, ColumnType],
    column_steps: Mapping[str, Sequence[Technique]],
    table_steps: Sequence[Technique] = (),
    folder: Path | None = None,
) -> Plan:
    """Check a list of steps and put them in order.

    Parameters
    ----------
    types : the type of each column of the table
    column_steps : the steps of each column, in their order
    table_steps : the steps on several columns, in their order; they come after all steps of columns
    folder : the folder to which names of files in the steps are relative; by default the current folder

    Raises
    ------
    InputError
        With one sentence per problem, each naming the place in the spec.
    """
    planning = _Planning(folder or Path())
    problems = planning.problems
    kinds = dict(types)
    ended: dict[str, str] = {}
    planned: dict[str, tuple[Step, ...]] = {}
    for column, steps in column_steps.items():
        if column not in kinds:
            problems.append(f"columns.{column}.steps: the table has no column {column}")
            continue
        done: list[Step] = []
        for position, technique in enumerate(steps):
            place = f"columns.{column}.steps.{position}"
            problem = _column_problem(technique, column, kinds[column], done)
            if problem is not None:
                problems.append(f"{place}: {problem}")
                break  # later steps would be checked against a type that the column never has
            done.append(planning.step(place, technique, (column,), kinds))
            kinds[column] = technique.kind_after(kinds[column])
            if technique.ends:
                ended[column] = technique.technique
        if done:
            planned[column] = tuple(done)
    table: list[Step] = []
    if not problems:
        table, kinds = planning.of_table(table_steps, kinds, ended)
    if problems:
        raise InputError("; ".join(problems))
    return Plan(dict(types), planned, tuple(table), kinds)


class _Planning:
    """Puts steps in order, counts how often each occurred before, and collects their problems."""

    def __init__(self, folder: Path) -> None:
        self.problems: list[str] = []
        self._folder = folder
        self._numbers: dict[tuple[str, tuple[str, ...]], int] = {}

    def step(self, place: str, technique: Technique, columns: tuple[str, ...], kinds: Mapping[str, ColumnType]) -> Step:
        number = self._numbers.get((technique.technique, columns), 0)
        self._numbers[technique.technique, columns] = number + 1
        stated = technique
        try:
            technique = technique.resolved(self._folder)
        except InputError as error:
            self.problems.append(f"{place}: {error}")
        return Step(place, technique, stated, columns, {name: kinds[name] for name in columns}, number)

    def of_table(
        self, techniques: Sequence[Technique], kinds: dict[str, ColumnType], ended: Mapping[str, str]
    ) -> tuple[list[Step], dict[str, ColumnType]]:
        """The steps on several columns, and the columns after them."""
        table: list[Step] = []
        for position, technique in enumerate(techniques):
            place = f"steps.{position}"
            if not isinstance(technique, TableTechnique):
                self.problems.append(
                    f"{place}: {technique.technique} works on one column; state it under columns.<name>.steps"
                )
                break
            if table and table[-1].technique.technique == "aggregate":
                before = f"steps.{position - 1}"
                self.problems.append(f"{place}: nobody is left after aggregate ({before}); put aggregate last")
                break
            wrong = _table_problems(technique, kinds, ended)
            if wrong:
                self.problems += [f"{place}.{problem}" for problem in wrong]
                break
            table.append(self.step(place, technique, technique.used, kinds))
            kinds = technique.columns_after(kinds)
        return table, kinds


def _column_problem(technique: Technique, column: str, kind: ColumnType, done: Sequence[Step]) -> str | None:
    name = technique.technique
    if not isinstance(technique, OneColumnTechnique):
        return f"{name} works on several columns together; state it in the table's steps, with columns: [{column}, ...]"
    if done and done[-1].technique.ends:
        return (
            f"{name} cannot follow {done[-1].technique.technique} (step {len(done) - 1}), which leaves nothing of the "
            "value to work on; put it before, or remove one of the two"
        )
    if kind not in technique.accepts:
        for number, step in enumerate(done):
            if step.before[column] in technique.accepts:
                made = step.technique.technique
                return f"{name} needs {_words(technique)}, and {made} (step {number}) makes texts; put {name} before it"
        return f"{name} needs {_words(technique)}, and the column is {kind.value}; change its type or the technique"
    return technique.objection(kind)


def _table_problems(technique: TableTechnique, kinds: Mapping[str, ColumnType], ended: Mapping[str, str]) -> list[str]:
    name, problems = technique.technique, []
    for column in technique.used:
        if column not in kinds:
            problems.append(f"columns: the table has no column {column}, or no longer")
        elif column in ended:
            problems.append(f"columns: {column} has been through {ended[column]}, which leaves nothing to work on")
        elif kinds[column] not in technique.accepted(column):
            needed = " or ".join(sorted(kind.value for kind in technique.accepted(column)))
            problems.append(f"columns: {name} needs {needed} columns, and {column} is {kinds[column].value} here")
    if not problems:
        objection = technique.objection(kinds)
        problems += [objection] if objection is not None else []
    return problems


def _words(technique: Technique) -> str:
    words = {ColumnType.NUMERIC: "numbers", ColumnType.CATEGORICAL: "texts", ColumnType.DATE: "dates"}
    return " or ".join(words[kind] for kind in sorted(technique.accepts))
