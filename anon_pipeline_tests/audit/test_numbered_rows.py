"""A column that numbers rows anew hides no leak, and one that keeps people's numbers is one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.attack.rates import LEAK
from anon_pipeline.audit.attacked_files import Files
from anon_pipeline.audit.foreign_columns import Roles
from anon_pipeline.audit.foreign_table import AttackedTable, attack_table
from anon_pipeline.audit.numbered_rows import numbering, of_single_rows

N = 300


def people(seed: int, numbers: int, named: str = "{}") -> pd.DataFrame:
    """People whose income nobody else has, numbered in an order of its own."""
    random = np.random.default_rng(seed)
    age, income = random.integers(18, 90, N), random.permutation(10**6)[:N]
    order = np.random.default_rng(numbers).permutation(N)
    number = order if named == "{}" else [named.format(place) for place in order]
    return pd.DataFrame({"age": age, "income": income, "ill": age > 50, "number": number})


def attacked(folder: Path, table: int, control: pd.DataFrame | None, named: str = "{}") -> AttackedTable:
    """The attack on a table of the raw people, whose rows were numbered in the order `table`; the original's is 1."""
    for name, rows in (("table", people(5, table, named)), ("original", people(5, 1, named)), ("control", control)):
        if rows is not None:
            rows.to_parquet(folder / f"{name}.parquet")
    (folder / "scratch").mkdir()
    beside = None if control is None else folder / "control.parquet"
    files = Files(folder / "table.parquet", folder / "original.parquet", beside)
    return attack_table(files, Roles(["age", "income"], ["ill"]), folder / "scratch", targets=60)


@pytest.mark.parametrize(("table", "named", "other"), [(1, "{}", "{}"), (2, "{}", "{}"), (2, "P{:03}", "Q{:03}")])
def test_numbers_in_another_order_hide_nobody(tmp_path: Path, table: int, named: str, other: str) -> None:
    found = attacked(tmp_path, table, people(6, 3, other), named)
    by_name = {finding.name: finding for finding in found.findings}
    leaks = [by_name[f"singling out, {columns}"] for columns in ("one column", "all columns")]
    assert all(finding.leak is not None and finding.leak.low > 0.95 for finding in leaks)
    linked = by_name["linkage, all quasi-identifiers"]
    assert (linked.verdict == LEAK) == (table == 1)  # who keeps the number tells everybody's row
    assert "number" in found.knowledge.kept
    assert [note for note in found.notes if "seem to be in the table" in note] == []
    assert len([note for note in found.notes if note.startswith("number: every row")]) == 1


def test_without_people_to_compare_with_the_more_successful_attack_is_told(tmp_path: Path) -> None:
    found = attacked(tmp_path, 2, None)
    by_name = {finding.name: finding for finding in found.findings}
    assert by_name["singling out, all columns"].attack.rate > 0.95


def test_control_people_who_are_in_the_table_are_known_by_their_other_columns(tmp_path: Path) -> None:
    half = pd.concat([people(5, 4).iloc[: N // 4], people(6, 4).iloc[N // 4 :]])
    found = attacked(tmp_path, 2, half)
    assert [note for note in found.notes if note.startswith("25 % of the control people")]


@pytest.mark.parametrize(
    ("number", "told"),
    [([3, 1, 2], True), ([0.0, 1.0, 2.0], True), (["b", "c", "d"], False), ([1, 2, 4], False), ([1, 1, 2], False)],
)
def test_rows_are_numbered_where_every_number_stands_once(number: list[object], told: bool) -> None:
    table, original = pd.DataFrame({"a": number}), pd.DataFrame({"a": [12, 11, 10]})
    assert numbering((table, original), ["a"]) == (["a"] if told else [])
    assert numbering((original, table), ["a"]) == (["a"] if told else [])


@pytest.mark.parametrize(("values", "own"), [(["b", "c"], True), (["b", "b"], False), (["b", None], False)])
def test_values_of_single_rows_are_all_different_and_known(values: list[object], own: bool) -> None:
    table, original = pd.DataFrame({"a": values}), pd.DataFrame({"a": ["c", "b", "d"]})
    assert of_single_rows((table, original), ["a"]) == of_single_rows((original, table), ["a"]) == ["a"][: int(own)]


def test_a_missing_number_numbers_nothing() -> None:
    assert numbering((pd.DataFrame({"a": [1.0, 2.0, None]}),), ["a"]) == []
