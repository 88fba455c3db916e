"""What is proposed for each column of a table, why, and what a person is asked; never a value of a person."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.engine import duckdb as engine_module
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError
from anon_pipeline.profiling.new_dataset import profile_table
from anon_pipeline.profiling.profile import MOST_GROUPED, Profile
from anon_pipeline.profiling.proposal import Proposal
from anon_pipeline.spec import ColumnType, Role
from anon_pipeline_tests.end_to_end.harness import people

N = 3_000


def clinic() -> pd.DataFrame:
    """Patients with every kind of column that a profile tells apart."""
    random = np.random.default_rng(0)
    belief = random.choice(["katholisch", "evangelisch", "muslimisch", "konfessionslos"], N)
    place = random.integers(10_000, 10_200, N)
    schooling = random.integers(0, 9, N)
    return pd.DataFrame(
        {
            "Nachname": [f"Family {number}" for number in range(N)],
            "Vorname": random.choice([f"Given {number}" for number in range(90)], N),
            "contact": [f"p{i}@example.org" if i % 2 else f"+49 170 {i:07d}" for i in range(N)],
            "born": pd.Series(np.datetime64("1950-01-01") + random.integers(0, 20_000, N)).dt.strftime("%Y-%m-%d"),
            "postcode": place,
            "town": [f"Town {one // 20}" for one in place],
            "schooling": [f"level {one}" for one in schooling],
            "schooling_num": schooling,
            "v17": belief,
            "tax_class": np.where(random.random(N) < 0.9, pd.Series(belief).str.len() % 10, 0),
            "diagnosis": random.choice([f"E{number}" for number in range(10, 20)], N),
            "salary": random.normal(40_000, 9_000, N).round(2),
            "debt": np.where(random.random(N) < 0.95, 0, random.integers(1, 200, N) * 100),
            "note": [f"note {i} {random.integers(9)}" for i in range(N)],
            "street_no": random.choice([f"{n} lane" for n in range(1_500)], N),
            "empty": [None] * N,
            "country": ["DE"] * N,
            "split": ["train"] * (N // 2) + ["test"] * (N // 2),
            "left": random.choice(["yes", "no"], N),
        }
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    folder = tmp_path_factory.mktemp("clinic")
    clinic().to_csv(folder / "clinic.csv", index=False)
    return profile_table(DuckDBEngine(folder / "spill", threads=2), folder / "clinic.csv")


def of(found: Profile, name: str) -> Proposal:
    return next(one for one in found.columns if one.name == name)


ROLES = {
    "Nachname": Role.IDENTIFIER,
    "Vorname": Role.EXCLUDE,
    "contact": Role.IDENTIFIER,
    "born": Role.QUASI_IDENTIFIER,
    "postcode": Role.QUASI_IDENTIFIER,
    "town": Role.QUASI_IDENTIFIER,
    "schooling": Role.QUASI_IDENTIFIER,
    "schooling_num": Role.EXCLUDE,
    "v17": Role.EXCLUDE,
    "tax_class": Role.QUASI_IDENTIFIER,
    "diagnosis": Role.EXCLUDE,
    "salary": Role.QUASI_IDENTIFIER,
    "debt": Role.QUASI_IDENTIFIER,
    "note": Role.IDENTIFIER,
    "street_no": Role.EXCLUDE,
    "empty": Role.EXCLUDE,
    "country": Role.INSENSITIVE,
    "split": Role.EXCLUDE,
    "left": Role.SENSITIVE,
}


@pytest.mark.long
def test_a_column_is_given_another_role(found: Profile) -> None:
    assert {one.name: one.role for one in found.columns} == ROLES


@pytest.mark.long
def test_a_reason_does_not_say_what_was_found(found: Profile) -> None:
    for name, reason in {
        "contact": "its values look like an e-mail address",
        "schooling_num": "a code of schooling",
        "v17": "by its values religious or philosophical belief",
        "diagnosis": "by its name health",
        "postcode": "who knows it knows town",
        "salary": "nearly unique to a person: grouped it is shared, kept as it is it would undo the grouping",
        "debt": "have a value that fewer than 10 share",
        "left": "proposed as the target",
    }.items():
        assert reason in of(found, name).why, of(found, name)


@pytest.mark.long
def test_a_stand_in_for_a_special_category_is_not_told_with_its_figure(found: Profile) -> None:
    assert "stand-ins by Cramér's V: tax_class (0." in of(found, "v17").why
    assert "stands in for v17 (Cramér's V 0." in of(found, "tax_class").why
    assert "stand" not in of(found, "debt").why


def test_what_a_person_must_decide_is_not_asked(found: Profile) -> None:
    assert [one.name for one in found.columns if one.question is not None] == ["v17", "diagnosis", "left"]
    assert found.target == "left"


def test_the_types_are_not_those_of_the_values(found: Profile) -> None:
    assert of(found, "born").type is ColumnType.DATE
    assert of(found, "postcode").type is ColumnType.NUMERIC
    assert of(found, "town").type is ColumnType.CATEGORICAL


def test_the_key_does_not_name_the_columns_that_tell_people_apart(found: Profile) -> None:
    assert found.key is not None
    assert found.key.columns[0] == "born"
    assert found.key.separation > 0.999


def test_a_value_of_a_person_stands_in_the_profile(found: Profile) -> None:
    told = json.dumps(found.to_json(), default=str)
    frame = clinic()
    for name in ("Nachname", "contact", "born", "town", "v17", "schooling"):
        assert not [value for value in frame[name].unique() if str(value) in told], name


def profiled(engine: DuckDBEngine, folder: Path, frame: pd.DataFrame, target: str | None = None) -> Profile:
    frame.to_csv(folder / "people.csv", index=False)
    return profile_table(engine, folder / "people.csv", target=target)


@pytest.mark.long
def test_names_and_texts_that_two_people_share_are_an_identifier(engine: DuckDBEngine, tmp_path: Path) -> None:
    """A run would refuse them: two people of one name would count as one who stands twice."""
    names = [f"Given {i} Family {i % 7}" for i in range(400)]
    frame = pd.DataFrame({"name": names, "age": np.arange(400) % 60})
    assert of(profiled(engine, tmp_path, frame), "name").role is Role.IDENTIFIER
    frame.loc[7, "name"] = names[8]
    shared = of(profiled(engine, tmp_path, frame), "name")
    assert (shared.role, shared.question) == (Role.EXCLUDE, None)
    assert "it repeats" in shared.why
    notes = of(profiled(engine, tmp_path, frame.rename(columns={"name": "note"})), "note")
    assert (notes.role, notes.question) == (Role.EXCLUDE, None)
    assert (
        notes.why
        == "nearly every row has a value of its own; it repeats, so it cannot show that no person stands twice"
    )


def test_people_without_a_value_are_taken_for_those_with_a_rare_one(engine: DuckDBEngine, tmp_path: Path) -> None:
    ill = ["no"] * 190 + ["yes"] * 6 + [None] * 4
    frame = pd.DataFrame({"age": np.arange(200) % 60, "ill": ill})
    assert profiled(engine, tmp_path, frame, "ill").others == 0.03


def test_a_special_category_that_is_the_target_is_left_out(engine: DuckDBEngine, tmp_path: Path) -> None:
    found = profiled(engine, tmp_path, people().drop(columns="visits"))
    assert found.target == "ill"
    assert of(found, "ill").role is Role.SENSITIVE
    assert of(found, "ill").question is not None


@pytest.mark.long
def test_a_coordinate_is_no_target(engine: DuckDBEngine, tmp_path: Path) -> None:
    """Of places of accidents in x and y the latitude was proposed, to be published as it is."""
    draw = np.random.default_rng(5)
    frame = (
        people()
        .drop(columns="ill")
        .assign(x=draw.normal(16, 0.1, len(people())), y=draw.normal(48, 0.1, len(people())))
    )
    assert profiled(engine, tmp_path, frame).target is None
    assert profiled(engine, tmp_path, frame.drop(columns="x")).target == "y"
    assert profiled(engine, tmp_path, frame.assign(y=draw.integers(0, 2, len(frame)))).target == "y"


def test_a_code_of_the_target_is_kept(engine: DuckDBEngine, tmp_path: Path) -> None:
    frame = people().drop(columns="ill")
    frame["churned"] = np.where(frame["age"] > 50, "yes", "no")
    frame["state"] = np.where(frame["age"] > 50, 1, 0)
    found = profiled(engine, tmp_path, frame)
    assert found.target == "churned"
    assert of(found, "state").role is Role.EXCLUDE
    assert of(found, "churned").role is Role.SENSITIVE


@pytest.mark.long
def test_a_column_that_settles_the_target_is_grouped_without_a_question(engine: DuckDBEngine, tmp_path: Path) -> None:
    """A grade and its grades below: a model for the grade learned nothing of anything else."""
    grade = np.random.default_rng(2).choice(list("ABC"), 300)
    below = np.char.add(grade, np.random.default_rng(3).choice(list("123"), 300))
    found = profiled(engine, tmp_path, people(300).assign(grade=grade, sub_grade=below), target="grade")
    assert of(found, "sub_grade").role is Role.QUASI_IDENTIFIER
    assert "by it alone a model knows grade" in str(of(found, "sub_grade").question)
    assert all("by it alone" not in str(one.question) for one in found.columns if one.name != "sub_grade")
    other = profiled(engine, tmp_path, people(300).assign(grade=grade, sub_grade=below), target="city")
    assert of(other, "sub_grade").question is None


@pytest.mark.long
@pytest.mark.parametrize(("others", "asked"), [(4, True), (25, False)])
def test_a_number_that_nearly_settles_the_target_is_asked_about(
    engine: DuckDBEngine, tmp_path: Path, others: int, asked: bool
) -> None:
    """The severity of an injury told who had died; the model of the release was worse than no model."""
    severity = np.random.default_rng(4).integers(0, 7, 400)
    died = np.where(severity == 4, "yes", "no")
    died[np.flatnonzero(severity == 3)[:others]] = "yes"
    frame = people(400).assign(severity=severity, days=10 * severity + np.arange(400) % 3, died=died)
    found = profiled(engine, tmp_path, frame, target="died")
    assert ("a model nearly knows died" in str(of(found, "severity").question)) is asked
    assert of(found, "severity").role is Role.QUASI_IDENTIFIER
    assert all("nearly knows" not in str(one.question) for one in found.columns if one.name not in ("severity", "days"))
    assert all("nearly knows" not in str(one.question) for one in profiled(engine, tmp_path, frame).columns)


def test_a_first_line_that_is_a_person_is_taken_for_names(engine: DuckDBEngine, tmp_path: Path) -> None:
    people().to_csv(tmp_path / "people.csv", index=False, header=False)
    with pytest.raises(InputError, match="add a line before it that names the columns") as error:
        profile_table(engine, tmp_path / "people.csv")
    assert not any(city in str(error.value) for city in people()["city"].unique())


@pytest.mark.long
def test_a_large_table_is_looked_at_in_full(
    engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = profiled(engine, tmp_path, people(6_000))
    monkeypatch.setattr(engine_module, "SURVEYED_ROWS", 1_000)
    first, second = (profile_table(engine, tmp_path / "people.csv") for _ in range(2))
    assert first == second  # the sample is the same every time
    assert 700 < first.looked_at <= 1_300
    assert first.rows == 6_000
    assert [one.role for one in first.columns] == [one.role for one in whole.columns]
    ages = of(first, "age").distinct  # estimated in the whole table
    assert abs(ages - of(whole, "age").distinct) <= 10


def test_small_tables_lose_their_ages(engine: DuckDBEngine, tmp_path: Path) -> None:
    assert of(profiled(engine, tmp_path, people(80)), "age").role is Role.QUASI_IDENTIFIER


@pytest.mark.long
def test_measurements_that_hardly_two_people_share_are_left_out(engine: DuckDBEngine, tmp_path: Path) -> None:
    """Of some hundred people laboratory values, times and incomes were left out as if they named people."""
    draw = np.random.default_rng(8)
    measured = {
        "creatin": draw.lognormal(0, 0.4, 600).round(4),
        "days_to_event": draw.integers(1, 1_500, 600),
        "earned": (draw.lognormal(10, 0.4, 600) // 20 * 20).astype(int),
    }
    given = {
        "zper": draw.permutation(600) + 125_000,
        "house": np.repeat(draw.choice(90_000, 300, replace=False), 2),
        "case_no": draw.choice(1_000_000, 400, replace=False)[np.arange(600) % 400],
        "job_code": draw.integers(1_000, 1_900, 600),
        "fnlwgt": draw.lognormal(0, 0.4, 600),
    }
    found = profiled(engine, tmp_path, pd.DataFrame(measured | given))
    assert {name: of(found, name).role for name in measured} == dict.fromkeys(measured, Role.QUASI_IDENTIFIER)
    assert {name: of(found, name).role for name in given} == dict.fromkeys(given, Role.EXCLUDE)


@pytest.mark.long
def test_numbers_that_hardly_two_people_share_come_before_others(engine: DuckDBEngine, tmp_path: Path) -> None:
    """Neither do they take the place of other columns where nothing says which tell most, nor are they the key."""
    draw = np.random.default_rng(9)
    fine = pd.DataFrame({f"m{number}": draw.normal(0, 1, 400) for number in range(3)})
    frame = fine.assign(**{f"c{number}": draw.integers(0, 5, 400) for number in range(11)})
    found = profiled(engine, tmp_path, frame)
    assert [one.name for one in found.columns if one.role is Role.EXCLUDE] == ["m1", "m2"]
    assert "the first, numbers nearly unique to a person last, are proposed" in found.notes[0]
    assert found.is_wide and not profiled(engine, tmp_path, frame.drop(columns=["m0", "m1"])).is_wide
    assert found.key is not None
    assert all(name.startswith("c") for name in found.key.columns)


def test_a_measurement_is_grouped_twice_in_two_units(engine: DuckDBEngine, tmp_path: Path) -> None:
    height = np.random.default_rng(2).normal(170, 9, 600).round(1)
    found = profiled(engine, tmp_path, pd.DataFrame({"cm": height, "metres": height / 100}))
    assert [one.role for one in found.columns] == [Role.QUASI_IDENTIFIER, Role.EXCLUDE]
    assert of(found, "metres").why.startswith("a code of cm")


@pytest.mark.long
@pytest.mark.parametrize("rows", [150, 400, 2_000])
def test_of_two_columns_that_encode_each_other_one_is_kept(rows: int, engine: DuckDBEngine, tmp_path: Path) -> None:
    """Each is a code of the other, and both were left out; of a small table both were kept."""
    age = np.random.default_rng(3).integers(18, 90, rows)
    answer = np.random.default_rng(4).choice(["yes", "no"], rows)
    pd.DataFrame({"age": age, "birth_year": 2024 - age, "sex": answer, "answer": answer[::-1]}).to_csv(
        tmp_path / "people.csv", index=False
    )
    roles = {one.name: one.role for one in profile_table(engine, tmp_path / "people.csv").columns}
    assert (roles["age"], roles["birth_year"]) == (Role.QUASI_IDENTIFIER, Role.EXCLUDE)


@pytest.mark.long
def test_a_code_that_hardly_two_people_share_is_dropped_without_a_question(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    """In a small table a postal code was a number to be rounded, or an identifier, and nobody was asked."""
    frame = people(300)
    frame["plz"] = 10_000 + np.arange(300) * 97
    frame["zip_code"] = [f"{1 + number * 31:05d}" for number in range(300)]
    frame["industry_code"] = 1_000 + np.arange(300) * 3 % 900
    frame["occupation"] = [f"maker of {number} things" for number in range(300)]
    found = profiled(engine, tmp_path, frame)
    for name in ("plz", "zip_code", "industry_code"):
        assert of(found, name).role is Role.EXCLUDE
        assert "hierarchy: {prefix: [5, 3, 2]}" in str(of(found, name).question)
    assert "whose leading zeros may be lost" in of(found, "plz").asked["type"]
    assert of(found, "occupation").role is Role.IDENTIFIER


def test_the_reason_of_a_postal_code_says_how_its_first_signs_are_grouped(engine: DuckDBEngine, tmp_path: Path) -> None:
    """Of texts nobody was asked, and nothing was said: most of them were shown as `*`."""
    frame = people(300)
    frame["zip_code"] = [f"{1 + number % 40 * 31:05d}" for number in range(300)]
    found = of(profiled(engine, tmp_path, frame), "zip_code")
    assert found.role is Role.QUASI_IDENTIFIER and found.question is None
    assert "hierarchy: {prefix: [5, 3, 2]}; with recode: {form: range}" in found.why


@pytest.mark.long
def test_a_median_of_numbers_of_schools_or_cases_would_be_shown(engine: DuckDBEngine, tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    frame = people(300).assign(case_id=draw.integers(1, 70, 300), hours_paid=draw.integers(1, 70, 300))
    found = profiled(engine, tmp_path, frame)
    assert of(found, "case_id").role is Role.QUASI_IDENTIFIER
    assert "it numbers something" in of(found, "case_id").asked["type"]
    assert of(found, "hours_paid").asked == {}


@pytest.mark.long
@pytest.mark.parametrize("name", ["race", "HISPAN", "ethnic", "religion", "party"])
def test_codes_of_origin_or_belief_are_taken_for_quantities(name: str, engine: DuckDBEngine, tmp_path: Path) -> None:
    """A median of codes of kinds says nothing, and was shown where a person hid such a column in groups."""
    frame = people(300).assign(**{name: 1 + np.arange(300) % 3})
    found = of(profiled(engine, tmp_path, frame), name)
    assert (found.role, found.type) == (Role.EXCLUDE, ColumnType.NUMERIC)
    assert "sensitive keeps it" in str(found.question)
    assert "whole numbers may be their codes" in found.asked["type"]
    assert "categorical" in found.asked["type"]
    for values in (np.arange(300) % 2, np.arange(300) % 3 + 0.5, np.arange(300) % 90, np.array(["a", "b", "c"] * 100)):
        assert "type" not in of(profiled(engine, tmp_path, frame.assign(**{name: values})), name).asked


@pytest.mark.long
def test_moments_that_hardly_two_people_share_are_asked_about(engine: DuckDBEngine, tmp_path: Path) -> None:
    frame = people(400)
    moments = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(400) * 5_003, unit="s")
    frame["seen"] = moments.strftime("%Y-%m-%d %H:%M:%S")
    frame["born"] = (pd.Timestamp("1960-01-01") + pd.to_timedelta(np.arange(400) * 9, unit="D")).strftime("%Y-%m-%d")
    found = profiled(engine, tmp_path, frame)
    assert "a moment, nearly unique" in of(found, "seen").why
    assert "groups moments into spans" in str(of(found, "seen").question)
    assert of(found, "born").question is None, "a date of birth is known to others, and has no time of day"


@pytest.mark.long
def test_more_columns_are_grouped_than_can_be_grouped_well(engine: DuckDBEngine, tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    frame = pd.DataFrame({f"c{number}": random.integers(0, 9, 500) for number in range(20)} | {"y": [0, 1] * 250})
    frame["c18"] = frame["y"] + random.integers(0, 2, 500)
    found = profiled(engine, tmp_path, frame)
    (note,) = found.notes
    assert note.startswith("20 columns could be known to others")
    assert len([one for one in found.columns if one.role is Role.QUASI_IDENTIFIER]) == MOST_GROUPED
    assert of(found, "c18").role is Role.QUASI_IDENTIFIER, "it says most of the target"
    left_out = [one for one in found.columns if one.role is Role.EXCLUDE]
    assert len(left_out) == 20 - MOST_GROUPED
    reasons = {one.why for one in left_out}
    assert reasons == {"12 others are grouped already, as many as can be grouped well"}, (
        "500 people in 9 ** 12 combinations are alone with it and without, which says nothing of a column"
    )
    assert profiled(engine, tmp_path, frame[["c1", "c2", "c3", "y"]]).notes == ()


@pytest.mark.long
def test_of_many_columns_others_are_grouped_than_those_that_say_most_of_the_named_target(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    """Where nobody has named a target the first twelve are proposed, however little they say of it."""
    draw = np.random.default_rng(3)
    frame = pd.DataFrame({f"v{i}": draw.integers(0, 4, 600) for i in range(20)})
    frame["bought"] = np.where(draw.random(600) < 0.9, frame["v18"] > 1, draw.random(600) < 0.5).astype(int)
    frame.to_csv(tmp_path / "people.csv", index=False)
    unnamed = profile_table(engine, tmp_path / "people.csv")
    assert of(unnamed, "v18").role is Role.EXCLUDE
    named = profile_table(engine, tmp_path / "people.csv", target="bought")
    assert of(named, "v18").role is Role.QUASI_IDENTIFIER
    assert (of(named, "bought").role, of(named, "bought").question) == (Role.SENSITIVE, None)
    assert of(named, "bought").why == "the target"
    assert (named.target, named.target_named) == ("bought", True)


def test_of_columns_that_say_nothing_of_the_target_the_first_are_grouped(engine: DuckDBEngine, tmp_path: Path) -> None:
    """Chance decided which: the sex of people was left out, and what a laboratory measured was grouped."""
    draw = np.random.default_rng(4)
    columns = {f"v{i}": draw.integers(0, 4, 30_000) for i in range(14)}
    columns["bought"] = np.where(draw.random(30_000) < 0.8, columns["v13"] > 1, draw.random(30_000) < 0.5)
    pd.DataFrame(columns).to_parquet(tmp_path / "people.parquet", index=False)
    found = profile_table(engine, tmp_path / "people.parquet", target="bought")
    left_out = [proposal.name for proposal in found.columns if proposal.role is Role.EXCLUDE]
    assert left_out == ["v11", "v12"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("agee", "there is no column agee; there are mail, age, same, left"),
        ("mail", "mail names people"),
        ("same", "same has not two different values"),
    ],
)
def test_a_target_that_cannot_be_one_is_taken(target: str, sentence: str, engine: DuckDBEngine, tmp_path: Path) -> None:
    mails = [f"p{i}@example.org" for i in range(200)]
    frame = pd.DataFrame({"mail": mails, "age": np.arange(200) % 60, "same": 1, "left": np.arange(200) % 2})
    frame.to_csv(tmp_path / "people.csv", index=False)
    with pytest.raises(InputError, match=sentence):
        profile_table(engine, tmp_path / "people.csv", target=target)
    exact = of(profile_table(engine, tmp_path / "people.csv", target="age"), "age")
    assert exact.role is Role.SENSITIVE
    assert "round it by a masking step" in str(exact.question)


@pytest.mark.long
def test_the_cost_of_a_further_column_is_made_up(engine: DuckDBEngine, tmp_path: Path) -> None:
    """Twelve columns of one value for nine people of ten, and a thirteenth of many numbers."""
    rows = np.arange(400)
    frame = pd.DataFrame({f"c{number:02}": np.where(rows < 360, 1, 2) for number in range(12)})
    for number in range(12):  # no two columns are codes of each other
        frame.loc[rows == 360 + number, f"c{number:02}"] = 1
    frame["parts"] = rows % 45
    frame["y"] = np.where(rows < 360, 0, 1)
    found = profiled(engine, tmp_path, frame)
    assert of(found, "parts").role is Role.EXCLUDE
    # 12 of 400 were few before; the tenths of a number make few of the 28 others besides, and 36 of each of the rest
    assert "10.0 % in place of 3.0 % of the people" in of(found, "parts").why


@pytest.mark.parametrize(
    ("columns", "target"),
    [
        ({"age": range(40), "price": range(100, 140), "kind": ["a", "b"] * 20}, "price"),
        ({"age": range(40), "price": range(100, 140), "churned": ["a", "b"] * 20}, "churned"),
        ({"age": range(40), "ill": ["a", "b"] * 20, "kind": ["c", "d"] * 20}, "ill"),
        ({"age": range(40), "sale price": range(40), "kind": ["a", "b"] * 20}, None),
        ({"age": range(40), "churned": ["a", "b", None, "b"] * 10, "kind": ["a", "b"] * 20}, "churned"),
        ({"age": range(40), "churned": ["a", "b", None, "b"] * 10, "left": ["a", "b"] * 20}, "left"),
        ({"age": range(40), "churned": ["a", None, None, "b", None] * 8}, None),
    ],
)
def test_a_target_has_no_reason(
    engine: DuckDBEngine, tmp_path: Path, columns: dict[str, object], target: str | None
) -> None:
    found = profiled(engine, tmp_path, pd.DataFrame(columns))
    assert found.target == target
    if target is not None:
        assert of(found, target).role is Role.SENSITIVE
        assert ("round it by a masking step" in str(of(found, target).question)) == (target == "price")


def test_the_only_field_of_a_record_that_varies_is_no_code_of_it(engine: DuckDBEngine, tmp_path: Path) -> None:
    """A postcode within an address was excluded as a code of the address, which is excluded, too."""
    rows = [{"age": 20 + i % 30, "address": {"postcode": f"0{1067 + i % 4}", "land": "DE"}} for i in range(200)]
    (tmp_path / "people.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    found = profile_table(engine, tmp_path / "people.jsonl")
    assert of(found, "address").role is Role.EXCLUDE
    assert of(found, "postcode").role is Role.QUASI_IDENTIFIER
    assert "address" not in of(found, "postcode").why
