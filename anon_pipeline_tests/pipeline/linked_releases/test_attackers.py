"""Attackers who link three releases, or who know by one spec what another one keeps."""

from pathlib import Path

import numpy as np
import pytest

from anon_pipeline.pipeline.step import Run
from anon_pipeline_tests.pipeline.linked_releases.test_rows import Place, asked, people, problems, released

pytestmark = pytest.mark.long  # whole releases, though made in this process


class Clinics:
    """Rows by age, rows by town, and groups by a code: 24 people are 30, and the first twelve of them are in Ulm."""

    def __init__(self, root: Path, codes: tuple[int, ...] = (10, 38, 0, 0)) -> None:
        self.place = Place(root)
        frame = people(48).assign(age=np.repeat([30, 50], 24), town=["Ulm"] * 12 + ["Graz"] * 12 + ["Ulm", "Graz"] * 12)
        frame = frame.assign(code=np.repeat(["one", "two", "one", "two"], codes), ill=["yes", "no"] * 24)
        frame.to_csv(root / "people.csv", index=False)

    def rows(self, by: str, k: int = 10, code: str = "exclude") -> Run:
        """Rows with one quasi-identifier."""
        roles = {name: {"role": "quasi_identifier" if name == by else "exclude"} for name in ("age", "town")}
        roles |= {by: {"role": "quasi_identifier"}}
        more = {"code": {"role": code}}
        return self.place.run(f"by_{by}", k, of_columns=roles, more_columns=more, grouping={"most_lost": 1.0})

    def groups(self) -> Run:
        step = {"technique": "aggregate", "columns": ["code"], "threshold": 10}
        code = {"code": {"role": "quasi_identifier"}}
        return self.place.run("figures", steps=[step], more_columns=code)


@pytest.fixture
def clinics(tmp_path: Path) -> Clinics:
    return Clinics(tmp_path)


def test_a_table_of_groups_is_subtracted_from_linked_rows(clinics: Clinics) -> None:
    """Who is 30 and from Ulm follows from the rows of both; less the group of ten, two people are left."""
    names = [f"by_{by}/{released(clinics.rows(by)).version}" for by in ("age", "town")]
    told = asked(clinics.groups())
    assert problems(told) == 2
    assert f"beside {', '.join(names)}, of the same people, what 2 people have" in told.remedy


def test_so_are_rows_linked_beside_a_table_of_groups(clinics: Clinics) -> None:
    figures, by_age = released(clinics.groups()), released(clinics.rows("age"))
    told = asked(clinics.rows("town"))
    assert problems(told) == 2
    assert f"beside figures/{figures.version} and by_age/{by_age.version}, of the same people, what 2" in told.remedy


def test_what_one_spec_keeps_and_readers_of_another_know_tells_rows_apart(clinics: Clinics) -> None:
    """One class of everybody passed beside any release, though its spec says that all know who earns what."""
    released(clinics.rows("age"))
    told = asked(clinics.rows("income", 48))
    assert problems(told) == 48
    assert "income is kept in one of them and a quasi-identifier of another" in told.remedy


@pytest.mark.parametrize(("codes", "known"), [((12, 12, 12, 12), 0), ((4, 20, 10, 14), 4)])
def test_so_does_what_readers_of_a_table_of_groups_know(tmp_path: Path, codes: tuple[int, ...], known: int) -> None:
    """Of the 24 who are 30, and of the others, the rows show the code, which is a quasi-identifier of the groups."""
    clinics = Clinics(tmp_path, codes)
    released(clinics.rows("age", code="insensitive"))
    assert problems(asked(clinics.groups())) == known


EXCLUDED = {name: {"role": "exclude"} for name in ("code", "mark")}


class Registers:
    """Rows by age and two tables of groups by codes: of 22 people who are 50, ten share each of both codes."""

    def __init__(self, root: Path) -> None:
        self.place = Place(root)
        frame = people(42).assign(age=np.repeat([30, 50], [20, 22]), ill=["yes", "no"] * 21)
        frame["code"] = np.repeat(["one", "two", "one"], [20, 10, 12])
        frame["mark"] = np.repeat(["one", "two", "one"], [30, 10, 2])
        frame.to_csv(root / "people.csv", index=False)

    def groups(self, by: str) -> Run:
        step = {"technique": "aggregate", "columns": [by], "threshold": 10}
        codes = EXCLUDED | {by: {"role": "quasi_identifier"}}
        return self.place.run(f"by_{by}", steps=[step], more_columns=codes)

    def rows(self) -> Run:
        by_age = {"town": {"role": "exclude"}}
        return self.place.run("by_age", of_columns=by_age, more_columns=EXCLUDED, grouping={"most_lost": 1.0})


def test_a_group_of_each_of_two_tables_is_subtracted_from_a_class(tmp_path: Path) -> None:
    """Two people are left, of whom neither table alone tells beside the rows."""
    registers = Registers(tmp_path)
    tables = [released(registers.groups(by)) for by in ("code", "mark")]
    asked_of = asked(registers.rows())
    assert problems(asked_of) == 1
    names = ", ".join(f"by_{by}/{of.version}" for by, of in zip(("code", "mark"), tables, strict=True))
    assert f"beside {names}, of the same people, what at least 1 group of fewer than k people has" in asked_of.remedy


def test_so_is_a_group_beside_rows_and_another_table(tmp_path: Path) -> None:
    registers = Registers(tmp_path)
    first, rows = released(registers.groups("code")), released(registers.rows())
    asked_of = asked(registers.groups("mark"))
    assert problems(asked_of) == 1
    assert f"beside by_age/{rows.version}, by_code/{first.version}, of the same people, what at least 1" in (
        asked_of.remedy
    )
