"""Demands on sensitive values beside other releases: homogeneity that only two releases together show."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.pipeline.step import Run
from anon_pipeline.release.publication import Published
from anon_pipeline_tests.pipeline.linked_releases.test_rows import Place, asked, people, problems, released

pytestmark = pytest.mark.long  # whole releases, though made in this process

DIVERSE = {"l_diversity": {"column": "ill", "l": 2}}


class Clinics:
    """Rows by age and rows by town: half of each class is ill, and everybody of the same age and town, or nobody."""

    def __init__(self, root: Path) -> None:
        self.place = Place(root)
        towns, ill = ["Ulm", "Graz", "Ulm", "Graz"], ["yes", "no", "no", "yes"]
        frame = people(48).assign(age=np.repeat([30, 50], 24), town=np.repeat(towns, 12), ill=np.repeat(ill, 12))
        frame.to_csv(root / "people.csv", index=False)

    def rows(self, by: str, demands: dict[str, Any] | None = None, **more: Any) -> Run:
        """Rows with one quasi-identifier, and with demands beyond k = 10."""
        roles = {name: {"role": "quasi_identifier" if name == by else "exclude"} for name in ("age", "town")}
        privacy = {"k_anonymity": {"k": 10}} | (demands or {})
        of_columns = roles | more.pop("of_columns", {})
        return self.place.run(f"by_{by}", of_columns=of_columns, privacy=privacy, grouping={"most_lost": 1.0}, **more)


@pytest.fixture
def clinics(tmp_path: Path) -> Clinics:
    return Clinics(tmp_path)


def homogeneous(by_age: Published, by_town: Published) -> int:
    """Of how many people an attacker of the files alone reads whether they are ill, by the income that both keep."""
    first, second = (pd.read_parquet(of.folder / "data.parquet") for of in (by_age, by_town))
    both = first.merge(second[["income", "town"]], on="income", validate="one_to_one")
    return int((both.groupby(["age", "town"])["ill"].transform("nunique") == 1).sum())


def test_two_diverse_releases_that_are_homogeneous_together_are_refused(clinics: Clinics) -> None:
    """Each class has twelve ill people of 24; each joint cell of twelve has ill people only, or none."""
    first = released(clinics.rows("age", DIVERSE))
    question = asked(clinics.rows("town", DIVERSE))
    accepted = released(clinics.rows("town", DIVERSE, linked_tables_accepted="both are for one reader"))
    assert homogeneous(first, accepted) == 48
    assert problems(question) == 2 * 48  # each of both demands
    for whose in ("this release", f"by_age/{first.version}"):
        assert (
            f"48 people share their classes with people of whom a demand of {whose} does not hold: every class has "
            "at least 2 distinct values of ill"
        ) in question.remedy
    assert "fewer than k, and" not in question.remedy and "yes" not in question.remedy


@pytest.mark.parametrize("role", ["insensitive", "exclude"])
def test_so_is_a_demand_of_the_standing_release_alone_also_where_the_candidate_lacks_its_column(
    clinics: Clinics, role: str
) -> None:
    """Rows are linked by the income, and the diagnosis stands in the rows of the first release."""
    first = released(clinics.rows("age", DIVERSE))
    question = asked(clinics.rows("town", target="income", of_columns={"ill": {"role": role}}))
    assert problems(question) == 48
    assert f"a demand of by_age/{first.version} does not hold" in question.remedy


def test_what_one_spec_protects_and_another_says_that_all_know_is_refused(clinics: Clinics) -> None:
    first = released(clinics.rows("age", DIVERSE))
    question = asked(clinics.rows("ill", target="income", of_columns={"ill": {"role": "quasi_identifier"}}))
    assert problems(question) == 48
    assert f"a demand of by_age/{first.version} does not hold" in question.remedy


def test_without_demands_the_same_two_releases_pass(clinics: Clinics) -> None:
    released(clinics.rows("age"))
    assert not problems(asked(clinics.rows("town")))


def test_classes_that_match_enough_of_a_register_and_not_together_are_refused(clinics: Clinics) -> None:
    """Of the register 28 are of each age and in each town, and only twelve of the same age and town."""
    file = clinics.place.root / "people.csv"
    frame = pd.read_csv(file)
    others = frame.iloc[[0, 12, 24, 36]].assign(age=[31, 31, 51, 51], town=["Ulm", "Graz"] * 2)
    pd.concat([frame, others]).to_csv(clinics.place.root / "register.csv", index=False)
    first = released(clinics.rows("age", {"k_map": {"k": 20, "population": "../register.csv"}}))
    question = asked(clinics.rows("town"))
    assert problems(question) == 48
    assert f"a demand of by_age/{first.version} does not hold: every class matches at least 20" in question.remedy
    assert "nobody has counted the people of the population" in question.remedy


@dataclass(frozen=True)
class Ages:
    """Rows in classes of 36 and of 24 people, and groups to 30 and from 31: nobody of twelve who are 31 is ill."""

    place: Place

    def rows(self, **more: Any) -> Run:
        bins = {"age": {"steps": [{"technique": "bin", "edges": [40]}]}}
        privacy = {"k_anonymity": {"k": 10}} | DIVERSE
        return self.place.run("patients", of_columns=bins, privacy=privacy, grouping={"most_lost": 1.0}, **more)

    def groups(self, **more: Any) -> Run:
        return self.place.groups("figures", [31], **more)

    def groups_that_call_it_known(self) -> Run:
        """The same table of a spec by which everybody knows who is ill."""
        bins = {"age": {"steps": [{"technique": "bin", "edges": [31]}]}, "ill": {"role": "quasi_identifier"}}
        step = {"technique": "aggregate", "columns": ["age", "ill"], "threshold": 10}
        return self.place.run("figures", of_columns=bins, target="income", steps=[step])


@pytest.fixture
def ages(tmp_path: Path) -> Ages:
    ill = np.r_[["yes", "no"] * 12, ["no"] * 12, ["yes", "no"] * 12]
    frame = people(60).assign(age=np.repeat([30, 31, 40], [24, 12, 24]), town="Ulm", ill=ill)
    frame.to_csv(tmp_path / "people.csv", index=False)
    return Ages(Place(tmp_path))


def left_of(rows: Published, groups: Published) -> dict[str, int]:
    """What an attacker of the files alone has left of the class with the youngest less the group of those to 30."""
    people, counts = (pd.read_parquet(of.folder / "data.parquet") for of in (rows, groups))
    youngest = people[people["age"] == people["age"].min()]["ill"].value_counts()
    left = youngest - counts[counts["age"] == counts["age"].min()].set_index("ill")["people"]
    return {str(value): int(number) for value, number in left.items() if number}


def test_a_class_less_a_group_is_homogeneous_though_it_has_enough_people(ages: Ages) -> None:
    first = released(ages.rows())
    question = asked(ages.groups())
    accepted = released(ages.groups(linked_tables_accepted="the register publishes these counts itself"))
    assert left_of(first, accepted) == {"no": 12}
    assert problems(question) == 12
    assert (
        f"beside patients/{first.version}, of the same people, what follows by subtraction is of at least 12 people of "
        f"whom a demand of patients/{first.version} does not hold: every class has at least 2 distinct"
    ) in question.remedy


def test_so_it_is_where_the_table_says_that_everybody_knows_it(ages: Ages) -> None:
    """A role in another spec would have been the way past the demand."""
    first = released(ages.rows())
    question = asked(ages.groups_that_call_it_known())
    assert problems(question) == 12
    assert f"a demand of patients/{first.version} does not hold" in question.remedy


def test_so_it_is_where_the_table_was_first(ages: Ages) -> None:
    first = released(ages.groups())
    question = asked(ages.rows())
    assert problems(question) == 12
    assert f"beside figures/{first.version}, of the same people, what follows" in question.remedy
    assert "of whom a demand of this release does not hold" in question.remedy and "no:" not in question.remedy


def test_a_demand_on_values_that_are_drawn_cannot_be_counted_and_is_refused(clinics: Clinics) -> None:
    drawn = {"ill": {"type": "categorical", "steps": [{"technique": "pram", "retention": 0.9}]}}
    first = released(clinics.rows("age", DIVERSE, of_columns=drawn))
    question = asked(clinics.rows("town"))
    assert problems(question) == 48
    assert f"a demand of by_age/{first.version} does not hold" in question.remedy
    assert "nobody can count it, since steps draw its values" in question.remedy


def test_masked_values_are_judged_as_they_are_masked(clinics: Clinics) -> None:
    """Bands of income have two values in each joint cell of one band, and one in the other; the incomes have twelve."""
    file = clinics.place.root / "people.csv"
    frame = pd.read_csv(file)
    low = [1000 + 10 * place for place in range(24)]
    frame["income"] = [*low[:12], *(value + 5000 for value in low), *low[12:]]
    frame.to_csv(file, index=False)
    bands = {"income": {"steps": [{"technique": "bin", "edges": [0, 4000, 9000]}]}}
    diverse = {"l_diversity": {"column": "income", "l": 2}}
    released(clinics.rows("age"))
    assert not problems(asked(clinics.rows("town", diverse)))
    question = asked(clinics.rows("town", diverse, of_columns=bands))
    assert problems(question) == 48
    assert "at least 2 distinct values of income" in question.remedy
