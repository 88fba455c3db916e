"""People who stand in several rows: their number is asked about, whatever its name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.profiling.proposal import SEVERAL_ROWS
from anon_pipeline.spec import Role
from anon_pipeline_tests.end_to_end.harness import people
from anon_pipeline_tests.profiling.test_profile import of, profiled


@pytest.mark.long
def test_a_person_with_several_rows_is_released_without_a_question(engine: DuckDBEngine, tmp_path: Path) -> None:
    frame = people(300).assign(patient_id=np.repeat(np.arange(100), 3) + 5000, visit=np.arange(300).astype(str))
    frame["note"] = [f"note {number}" for number in range(300)]
    found = profiled(engine, tmp_path, frame)
    assert of(found, "patient_id").question == SEVERAL_ROWS
    # beside it no other identifier, with which no row would share its identifiers with another
    assert [one.name for one in found.columns if one.role is Role.IDENTIFIER] == ["patient_id"]


@pytest.mark.parametrize(("name", "rows_each", "asked"), [("id", 3, True), ("pid", 22, True), ("id", 100, False)])
def test_what_is_called_id_and_repeats_is_asked_about_as_a_persons_number(
    engine: DuckDBEngine, tmp_path: Path, name: str, rows_each: int, asked: bool
) -> None:
    """Of a diary of 133 people in 3,000 rows, classes of ten rows had the rows of two people."""
    frame = people(300).assign(**{name: np.arange(300) // rows_each + 5000})
    found = of(profiled(engine, tmp_path, frame), name)
    assert (found.question == SEVERAL_ROWS) is asked
    assert ("type" in found.asked) is (not asked), "of few values it may be a class or a site"


@pytest.mark.long
def test_a_column_called_person_is_grouped_by(engine: DuckDBEngine, tmp_path: Path) -> None:
    """It was proposed as a quasi-identifier: of 185 people in 600 rows, k counted the rows."""
    for values in (np.arange(300) // 3 + 5000, np.array([f"p{number // 3}" for number in range(300)])):
        found = of(profiled(engine, tmp_path, people(300).assign(person=values)), "person")
        assert found.question == SEVERAL_ROWS and found.role is Role.IDENTIFIER


def test_a_few_people_who_stand_twice_go_unasked(engine: DuckDBEngine, tmp_path: Path) -> None:
    """The first run refused what was proposed."""
    frame = people(300).assign(licence_number=np.arange(300) + 5000, member_id=np.arange(300) + 9000)
    frame.loc[299, "licence_number"] = 5000
    found = profiled(engine, tmp_path, frame)
    assert of(found, "licence_number").role is of(found, "member_id").role is Role.IDENTIFIER
    assert "keep one row a person" in str(of(found, "licence_number").question)
    assert of(found, "member_id").question is None


def visits(several: int = 3) -> pd.DataFrame:
    """Some rows of each of 200 people, in a table whose person's number is called `zper`."""
    draw = np.random.default_rng(1)
    born = (pd.Timestamp("1950-01-01") + pd.to_timedelta(draw.integers(0, 20_000, 200), unit="D")).strftime("%Y-%m-%d")
    person = np.repeat(np.arange(200), several)
    number = np.sort(draw.choice(90_000, 200, replace=False)) + 100_000
    rows = 200 * several
    return pd.DataFrame(
        {
            "row": draw.permutation(10 * rows)[:rows],
            "zper": number[person],
            "born": born[person],
            "sex": draw.choice(["f", "m"], 200)[person],
            "plan": draw.integers(1, 8, 200)[person],
            "year": np.tile(np.arange(several), 200),
            "spent": draw.integers(0, 400, rows),
        }
    )


@pytest.mark.long
@pytest.mark.parametrize("settled", [["born", "sex", "plan"], ["born", "sex"], ["sex", "plan"]])
def test_a_number_that_settles_who_a_person_is_goes_unasked(
    settled: list[str], engine: DuckDBEngine, tmp_path: Path
) -> None:
    found = profiled(engine, tmp_path, visits()[["row", "zper", *settled, "year", "spent"]])
    zper = of(found, "zper")
    assert (zper.role, zper.question) == (Role.IDENTIFIER, SEVERAL_ROWS)
    assert f"who knows it knows {', '.join(settled)}, as with a person's number" in zper.why
    assert [one.name for one in found.columns if one.role is Role.IDENTIFIER] == ["zper"]
    texts = visits().assign(zper=[f"P{number}" for number in visits()["zper"]])
    assert of(profiled(engine, tmp_path, texts), "zper").question == SEVERAL_ROWS


def panel(rows_of_a_person_and_year: int = 1) -> pd.DataFrame:
    """People of 300 numbers, called `n`, in three of five years each; only their sex never changes."""
    draw = np.random.default_rng(4)
    years = np.concatenate([draw.permutation(5)[:3] for _ in range(300)]) + 2019
    person = np.repeat(np.arange(300), 3 * rows_of_a_person_and_year)
    return pd.DataFrame(
        {
            "n": person + 1,
            "jahr": np.repeat(years, rows_of_a_person_and_year),
            "sex": draw.choice(["f", "m"], 300)[person],
            "spent": draw.integers(0, 400, len(person)),
        }
    )


@pytest.mark.long
def test_a_persons_number_that_never_stands_twice_in_a_year_goes_unasked(engine: DuckDBEngine, tmp_path: Path) -> None:
    number = of(profiled(engine, tmp_path, panel()), "n")
    assert (number.role, number.question) == (Role.IDENTIFIER, SEVERAL_ROWS)
    assert "hardly ever with the same jahr" in number.why
    gone = panel().rename(columns={"jahr": "geburtsjahr"})
    assert of(profiled(engine, tmp_path, gone), "n").question is None  # siblings are of different years, too


@pytest.mark.long
def test_a_number_of_many_people_or_a_part_of_a_date_is_no_persons(engine: DuckDBEngine, tmp_path: Path) -> None:
    """Several rows of a household in every year, and the months of several years."""
    assert of(profiled(engine, tmp_path, panel(2)), "n").question is None
    months = panel().assign(n=lambda rows: rows.index // 10).rename(columns={"n": "monat", "jahr": "spent_on"})
    months["jahr"] = months.index % 10
    assert of(profiled(engine, tmp_path, months), "monat").question is None


@pytest.mark.long
def test_what_is_worked_out_from_a_number_makes_it_a_persons(engine: DuckDBEngine, tmp_path: Path) -> None:
    """Bands of an age, and other units; nor does a postal code that settles town and region number a person."""
    draw = np.random.default_rng(6)
    age = draw.integers(18, 90, 600)
    place = draw.integers(10_000, 10_200, 600)
    frame = pd.DataFrame(
        {
            "age": age,
            "months": age * 12,
            "band": age // 7,
            "decade": [f"from {one // 10 * 10}" for one in age],
            "works": (age > 20) & (age < 67),
            "plz": place,
            "town": [f"Town {one * 7 % 40}" for one in place],
            "region": [f"Region {one * 11 % 3}" for one in place],
            "spent": draw.integers(0, 400, 600),
        }
    )
    assert not [one.name for one in profiled(engine, tmp_path, frame).columns if one.role is Role.IDENTIFIER]


def test_a_persons_number_is_asked_about_twice(engine: DuckDBEngine, tmp_path: Path) -> None:
    several = profiled(engine, tmp_path, panel().rename(columns={"n": "id"}))
    assert (of(several, "id").question, of(several, "id").asked) == (SEVERAL_ROWS, {})
