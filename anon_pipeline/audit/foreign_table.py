"""The attack on a table from any tool, on people in it and people who are not: the work of `anon-pipeline attack`.

Files are read into the tables that `anon_pipeline.attack` needs, and columns get their roles, from a spec or by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from anon_pipeline.attack.rates import Finding
from anon_pipeline.attack.table_audit import Knowledge, audit_table
from anon_pipeline.attack.targets import Tables
from anon_pipeline.audit.attacked_files import Files, people_of, read_table, refuse_unused_keys
from anon_pipeline.audit.durations import in_unit, units_of
from anon_pipeline.audit.foreign_columns import Roles, columns_of, is_ordered, written_otherwise
from anon_pipeline.audit.numbered_rows import numbering, of_single_rows, with_larger_leaks
from anon_pipeline.audit.same_values import with_all_digits, with_same_values, with_spans_of_years
from anon_pipeline.audit.shared_people import SharedPeople
from anon_pipeline.errors import number_of

#: The note that ends every result; all people are attacked where they are few, so no draw blurs what is counted.
FOR_WHOM = (
    "These figures are exact: who knows the table and all people but one can learn from them what is hidden of the "
    "last. They are for whoever may see the original."
)


@dataclass(frozen=True)
class AttackedTable:
    """The result of attacking a table.

    Attributes
    ----------
    knowledge : the columns and their roles in the attacks
    rows, people, control : rows of the table, of the original, and of the control people
    findings : one per attack
    notes : what a reader should know about the tables
    """

    table: str
    knowledge: Knowledge
    rows: int
    people: int
    control: int
    findings: list[Finding]
    notes: list[str]

    def to_json(self) -> dict[str, Any]:
        """Plain data, all of it aggregates."""
        return {
            "table": self.table,
            "rows": self.rows,
            "people": self.people,
            "control": self.control,
            "columns": {name: list(getattr(self.knowledge, name)) for name in self.knowledge.__dataclass_fields__},
            "findings": [finding.to_json() for finding in self.findings],
            "notes": self.notes,
        }


def attack_table(
    files: Files,
    roles: Roles,
    scratch: Path,
    targets: int = 2_000,
    seed: int = 0,
) -> AttackedTable:
    """Attack a CSV or Parquet table of which only the people in it are known.

    Parameters
    ----------
    scratch : an empty folder for converted files
    targets : most people of either kind who are attacked

    Raises
    ------
    InputError
        For a file that cannot be read or has no rows, or a column that is not there.
    """
    table, control = files.table, files.control
    refuse_unused_keys(files)
    released = read_table(table, scratch / "table", files.written, roles.named)
    people = people_of(files.original, scratch / "original", files.written, roles)
    units = units_of(files.original, roles.spec)
    released, people = in_unit(released, {}, units), in_unit(people, units, units)
    others = None
    if control is not None:
        others = people_of(control, scratch / "control", files.written, roles)
        others = in_unit(others, units_of(control, roles.spec), units)
    class_table = table.parent / "classes.parquet"
    classes = read_table(class_table, scratch / "classes") if class_table.is_file() else None
    (released, people, others), classes, exact = _alike((released, people, others), classes, roles)
    released = with_spans_of_years(released, people, roles.quasi_identifiers)
    columns, notes = columns_of(roles, table, released, {files.original: people, control: others})
    quasi_identifiers, sensitive, kept = columns
    named = [*quasi_identifiers, *sensitive, *kept]
    knowledge = Knowledge(
        quasi_identifiers,
        sensitive,
        kept,
        [name for name in named if name not in exact and is_ordered(people[name], roles.declared.get(name))],
    )
    if unlike := written_otherwise(released, people, columns[0] + columns[1], knowledge.numeric, classes):
        notes.append(
            f"Nothing that the table shows of {', '.join(unlike)} is a value of people or names some of them: words of "
            "a hierarchy, or numbers or dates written otherwise than in the original. What is not understood tells an "
            "attacker nothing, so a real one may do better."
        )
    if others is None:
        notes.append(
            "There are no people to compare with (--control), so what the table gives away cannot be told from what "
            "is true of people in general."
        )
    if others is not None and control is not None:
        known = _without_columns(knowledge, numbering((released, people), kept))
        notes += _shared_people(control.name, (released, people, others), known)
    if own := of_single_rows((released, people), kept):
        notes.append(
            f"{', '.join(own)}: every row of the table and of the original has a value of its own, or a place in an "
            "index of pandas, perhaps given anew. Every attack is made with it and without it, and the larger leak is "
            "told."
        )
    if len(released) != len(people):
        notes.append(_of_other_length(len(released), len(people), others is not None))
    notes.append(FOR_WHOM)
    attacked = Tables(released[named], people[named], None if others is None else others[named], None, classes)
    findings = audit_table(attacked, knowledge, targets=targets, seed=seed)
    if own:
        without = audit_table(attacked, _without_columns(knowledge, own), targets=targets, seed=seed)
        findings = with_larger_leaks(findings, without)
    return AttackedTable(
        table.name, knowledge, len(released), len(people), 0 if others is None else len(others), findings, notes
    )


def _alike(
    given: tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame | None], classes: pd.DataFrame | None, roles: Roles
) -> tuple[tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame | None], pd.DataFrame | None, list[str]]:
    """The tables with the same values in the same types, and the columns of numbers that are texts of all digits."""
    tables = {
        key: table for key, table in zip(("released", "people", "others"), given, strict=True) if table is not None
    }
    tables, classes = with_same_values(tables, classes)
    in_ranges = [] if classes is None else [name for name in tables["people"] if f"{name}_low" in classes]
    ordered = [
        name
        for name, column in tables["people"].items()
        if name not in in_ranges and is_ordered(column, roles.declared.get(str(name)))
    ]
    tables, exact = with_all_digits(tables, [str(name) for name in ordered])
    return (tables["released"], tables["people"], tables.get("others")), classes, exact


def _without_columns(knowledge: Knowledge, names: Sequence[str]) -> Knowledge:
    return replace(knowledge, other=[name for name in knowledge.other if name not in names])


def _shared_people(
    control: str, tables: tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame], knowledge: Knowledge
) -> list[str]:
    """A note where control people seem to be in the table, whether or not they are in the original.

    Raises
    ------
    InputError
        If most of them are.
    """
    released, people, others = tables
    kept, named = list(knowledge.kept), [*knowledge.quasi_identifiers, *knowledge.kept]
    counted = [SharedPeople.of(people[named], others[named], knowledge.numeric)]
    if kept and (in_table := SharedPeople.by_kept(released[kept], people[kept], others[kept], knowledge.numeric)):
        counted.append(in_table)
    for shared in counted:
        shared.require_others(control)
    return [shared.note for shared in counted if shared.note is not None][:1]


def _of_other_length(rows: int, people: int, is_compared: bool) -> str:
    """That the table has more or fewer rows than the original has people, and what that does to the figures."""
    lengths = f"The table has {number_of(rows, 'row', 'rows')}, the original {people:,}"
    if rows < people:
        return f"{lengths}: whoever is not in the table lowers what is measured."
    hidden = "; if control people are among them, they hide leaks" if is_compared else ""
    return f"{lengths}: nobody is attacked who is in the table alone{hidden}."
