"""Rows of people beside other releases of the same people: the attack by two releases, what refuses it, what passes."""

import logging
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError, Refused, Unavailable
from anon_pipeline.home import Home
from anon_pipeline.pipeline.checks import candidate, group
from anon_pipeline.pipeline.execution import answer, make
from anon_pipeline.pipeline.expectations.questions import Question
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.linked_releases import rows as linked_rows
from anon_pipeline.pipeline.stages import Stages
from anon_pipeline.pipeline.step import CheckDef, Run
from anon_pipeline.release import known_classes
from anon_pipeline.release.publication import Published
from anon_pipeline.release.withdraw import withdraw
from anon_pipeline.spec import ReleaseSpec

pytestmark = pytest.mark.long  # whole releases, though made in this process


def people(rows: int = 300) -> pd.DataFrame:
    draws = np.random.default_rng(7)
    age = draws.integers(20, 70, rows)
    return pd.DataFrame(
        {
            "id": [f"person {number}" for number in range(rows)],
            "age": age,
            "town": draws.choice(["Bergen", "Ulm", "Graz", "Lyon"], rows),
            "ill": np.where(draws.random(rows) < age / 90, "yes", "no"),
            "income": draws.permutation(rows) * 10 + 1000,
        }
    )


class Place:
    """A home with one source of which datasets release rows or groups."""

    def __init__(self, root: Path) -> None:
        root.mkdir(exist_ok=True)
        self.root, self.home = root, Home(root / "home").prepare()
        if not (root / "people.csv").exists():
            people().to_csv(root / "people.csv", index=False)

    def run(self, dataset: str, k: int = 10, *, source: str = "people.csv", **more: Any) -> Run:
        content: dict[str, Any] = {
            "dataset": dataset,
            "source": {"path": f"../{source}"},
            "target": "ill",
            "columns": {
                "id": {"role": "exclude"},
                "age": {"role": "quasi_identifier", "type": "numeric"},
                "town": {"role": "quasi_identifier"},
                "ill": {"role": "sensitive"},
                "income": {"role": "sensitive", "type": "numeric"},
            },
            "privacy": {"k_anonymity": {"k": k}},
            "guide": {"model": "linear", "folds": 2},
            "utility": {"models": [], "folds": 2},
            "audit": {"enabled": False},
        }
        for name, column in more.pop("of_columns", {}).items():
            content["columns"][name] |= column
        content["columns"] |= more.pop("more_columns", {})
        if "steps" in more:
            del content["audit"], content["guide"], content["utility"]
        more |= {"steps": drawn} if (drawn := more.pop("table_steps", None)) else {}
        folder = self.root / dataset
        folder.mkdir(exist_ok=True)
        (folder / "release.yaml").write_text(yaml.safe_dump(content | more))
        return Run(ReleaseSpec.load(folder), self.home, DuckDBEngine(self.root / "spill"))

    def groups(self, dataset: str, edges: list[int], **more: Any) -> Run:
        """A table of groups by intervals of age and by illness."""
        bins = {"age": {"steps": [{"technique": "bin", "edges": edges}]}}
        step = {"technique": "aggregate", "columns": ["age", "ill"], "threshold": 10, "known": []}
        return self.run(dataset, of_columns=bins, steps=[step], **more)


def asked(run: Run) -> Question:
    """The question of the gate, after the steps before it; its table has the number of problems."""
    graph, stages = graph_of(run.spec), Stages(run.home, run.spec)
    candidate = "aggregated_table" if run.spec.aggregates else "anonymized_table"
    for step in graph.steps:
        make(graph, step, run)
        if step.name == candidate:
            break
    question = group.linked_question if run.spec.aggregates else linked_rows.question
    return question(run, stages.load("raw_data"), stages.load(candidate))


def problems(question: Question) -> int:
    return int(question.table.to_numpy().sum())


def publish(run: Run) -> Published:
    """The last step, with all checks and what else it waits for."""
    graph = graph_of(run.spec)
    for part in graph.parts[[part.name for part in graph.parts].index("source_checks") :]:
        if isinstance(part, CheckDef):
            assert all(of.passed for of in answer(graph, part, run))
        elif part.name in ("utility", "release"):
            published = make(graph, part, run).published
    assert published is not None
    return published


def released(run: Run) -> Published:
    question = asked(run)
    assert not problems(question), question.remedy
    return publish(run)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture(scope="module")
def of_patients(tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, Published]:
    """A place with a release at k = 10, that nobody changes."""
    place = Place(tmp_path_factory.mktemp("patients"))
    return place, released(place.run("patients"))


@dataclass(frozen=True)
class Beside:
    """A copy of the place with that release."""

    place: Place
    first: Published


@pytest.fixture
def beside(of_patients: tuple[Place, Published], tmp_path: Path) -> Beside:
    original, first = of_patients
    shutil.copytree(original.root, tmp_path / "copy", symlinks=True)
    return Beside(Place(tmp_path / "copy"), first)


def linked(one: Published, other: Published) -> int:
    """How many people an attacker of the files alone has among fewer than ten, by the income that both keep."""
    first, second = (pd.read_parquet(of.folder / "data.parquet") for of in (one, other))
    both = first.merge(second, on="income", suffixes=("", "_of_other"), validate="one_to_one")
    alike = both.groupby(["age", "town", "age_of_other", "town_of_other"], dropna=False)["income"].transform("size")
    return int((alike < 10).sum())


def test_other_classes_of_the_same_people_are_refused_unless_accepted(
    beside: Beside, caplog: pytest.LogCaptureFixture
) -> None:
    place, first = beside.place, beside.first
    run = place.run("research", 13)
    question = asked(run)
    told = problems(question)
    assert f"beside patients/{first.version}, of the same people, {told} people share" in question.remedy
    assert "releases withdraw" in question.remedy and "linked_tables_accepted" in question.remedy
    (gate,) = (of for of in answer(graph_of(run.spec), candidate.CHECKS, run) if of.name == linked_rows.CHECK)
    assert not gate.passed and not gate.crashed and gate.measured == told
    with caplog.at_level(logging.WARNING, logger="anon_pipeline"):
        accepted = released(place.run("research", 13, linked_tables_accepted="both are for one reader"))
    assert 0 < linked(first, accepted) <= told
    assert "accepted by linked_tables_accepted: beside patients/" in caplog.text
    (entry,) = (of for of in accepted.manifest["checks"] if of["name"] == linked_rows.CHECK)
    assert entry["measured"] == 0 and not entry["applies"]
    assert accepted.manifest["spec"]["linked_tables_accepted"] == "both are for one reader"
    assert not problems(asked(place.run("patients")))  # it stands already, though it is not alone any more


def test_the_same_classes_pass(beside: Beside) -> None:
    keys = beside.place.home.private / "keys"
    (keys / "copies.key").write_bytes((keys / "patients.key").read_bytes())
    assert not problems(asked(beside.place.run("copies")))


def test_a_withdrawn_release_and_other_people_do_not_count(beside: Beside) -> None:
    place, first = beside.place, beside.first
    people(301).to_csv(place.root / "next_month.csv", index=False)
    people().assign(town="Oslo").to_csv(place.root / "oslo.csv", index=False)
    for source in ("next_month", "oslo"):
        of_others = place.run(source, 13, source=f"{source}.csv")
        assert not problems(asked(of_others))
    again = place.run("research", 13)
    assert problems(asked(again))
    withdraw(place.home, first.version, "another takes its place", "patients")
    assert not problems(asked(again))


def test_a_former_version_of_the_dataset_is_counted_and_logged(
    beside: Beside, caplog: pytest.LogCaptureFixture
) -> None:
    place, first = beside.place, beside.first
    with caplog.at_level(logging.WARNING, logger="anon_pipeline"):
        assert not problems(asked(place.run("patients", 13)))
    assert f"beside patients/{first.version}, of the same people, " in caplog.text
    assert "see across_releases" in caplog.text


#: Where the groups of ages begin, and how many people's illness follows beside classes of 30, of 40 and 41, and of 60:
#: that of the two who are 41, and of the fifteen who are 40, of whom each release leaves seventeen.
EDGES = [(41, 17), (50, 0)]


def few_ages(place: Place) -> Place:
    frame = people(60).assign(age=np.repeat([30, 40, 41, 60], [25, 15, 2, 18]), town="Ulm", ill=["yes", "no"] * 30)
    frame.to_csv(place.root / "people.csv", index=False)
    return place


@pytest.fixture(scope="module")
def rows_of_few_ages(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A place with released rows in three classes, that nobody changes."""
    place = few_ages(Place(tmp_path_factory.mktemp("rows")))
    rows = released(place.run("patients", 17))
    assert sorted(pd.read_parquet(rows.folder / "data.parquet")["age"].value_counts()) == [17, 18, 25]
    return place


@pytest.mark.parametrize(("edge", "known"), EDGES)
def test_groups_beside_rows_tell_what_follows_by_subtraction(rows_of_few_ages: Place, edge: int, known: int) -> None:
    """A class of 17 is of ages 40 and 41; groups that end between the two tell the illness of both ages."""
    question = asked(rows_of_few_ages.groups(f"figures{edge}", [edge]))
    assert problems(question) == known
    assert (f"what {known} people have in groups of fewer than k follows" in question.remedy) == (known > 0)


@pytest.mark.parametrize(("edge", "known"), EDGES)
def test_so_do_rows_beside_groups(place: Place, edge: int, known: int) -> None:
    released(few_ages(place).groups("figures", [edge]))
    question = asked(place.run("patients", 17))
    assert problems(question) == known
    assert (f"what {known} people have in groups of fewer than k follows" in question.remedy) == (known > 0)


def test_columns_are_compared_as_masking_leaves_them(beside: Beside) -> None:
    told = asked(beside.place.run("research", of_columns={"age": {"steps": [{"technique": "round", "to": 5}]}}))
    assert "people share their classes with fewer than k" in told.remedy
    assert "cannot be judged" not in told.remedy


def test_people_who_are_followed_are_compared_too(place: Place) -> None:
    person = {"of_columns": {"id": {"role": "identifier"}}, "person": "id", "across_releases": {"k": 10, "window": 3}}
    first = released(place.run("patients", **person))
    told = asked(place.run("research"))
    assert f"beside patients/{first.version}, of the same people, {problems(told)} people share" in told.remedy
    assert "cannot be judged" not in asked(place.run("panel", **person)).remedy


def test_what_cannot_be_compared_is_refused_until_it_was_run_again(beside: Beside) -> None:
    """A release that is older than this check has no known classes: so had any other dataset a way past it."""
    place, first = beside.place, beside.first
    stored = known_classes.kept(place.home, "patients", first.version)
    assert oct(stored.stat().st_mode)[-3:] == "600"
    content = stored.read_bytes()
    stored.unlink()
    told = asked(place.run("research", 13)).remedy
    assert f"patients/{first.version} is of the same people and cannot be judged: who is in which" in told
    assert not publish(place.run("patients")).new
    assert stored.read_bytes() == content
    assert "cannot be judged" not in asked(place.run("research", 13)).remedy


def test_classes_that_were_altered_are_not_judged_as_they_are(beside: Beside) -> None:
    """With one class for all they would leave nobody among few."""
    place, first = beside.place, beside.first
    file = place.home.releases / "patients" / first.version / "classes.parquet"
    classes = pd.read_parquet(file)
    classes.head(1).assign(class_size=len(people())).to_parquet(file, index=False)
    told = asked(place.run("research", 13)).remedy
    assert "cannot be judged: its classes.parquet is not what was published" in told


@pytest.mark.parametrize("fails", [InputError, Unavailable])
def test_a_reason_does_not_pass_what_nobody_could_look_at(
    beside: Beside, monkeypatch: pytest.MonkeyPatch, fails: type[InputError]
) -> None:
    """A full disk while the other release was counted again would have been the way past the gate."""
    run = beside.place.run("research", 13, linked_tables_accepted="both are for one reader")
    asked(run)

    def no_space(*_: object) -> None:
        raise fails("a file could not be read or written")

    monkeypatch.setattr(run.engine, "store_source", no_space)
    raw, made = (Stages(run.home, run.spec).load(name) for name in ("raw_data", "anonymized_table"))
    told = linked_rows.question(run, raw, made)
    assert problems(told) == 1
    assert "of the same people and cannot be judged: a file could not be read" in told.remedy
    assert "what cannot be judged now is not accepted" in told.remedy


def test_a_source_that_changed_since_the_candidate_was_made_is_not_that_of_other_people(beside: Beside) -> None:
    """Tomorrow's people are in the file by now; today's are in the candidate."""
    run = beside.place.run("research", 13)
    asked(run)
    people().assign(town="Oslo").to_csv(beside.place.root / "people.csv", index=False)
    raw, made = (Stages(run.home, run.spec).load(name) for name in ("raw_data", "anonymized_table"))
    told = linked_rows.question(run, raw, made)
    assert problems(told) == 1 and "the source has changed since it was read" in told.remedy


def test_another_file_of_the_same_people_is_of_the_same_people(beside: Beside) -> None:
    """A second export of a register is written by another program and has one more column."""
    people().assign(visits=1).to_parquet(beside.place.root / "again.parquet")
    columns = {"visits": {"role": "exclude"}}
    told = asked(beside.place.run("research", 13, source="again.parquet", more_columns=columns)).remedy
    assert f"beside patients/{beside.first.version}, of the same people, " in told


#: How only some people come into a release: the spec's keys.
SELECTIONS: list[dict[str, Any]] = [
    {"table_steps": [{"technique": "sample", "share": 0.9}]},
    {"audit": {"control": "held_out"}},
]


@pytest.mark.parametrize("selection", SELECTIONS, ids=["sample", "held_out"])
def test_whoever_is_drawn_into_rows_is_linked_with_other_rows(beside: Beside, selection: dict[str, Any]) -> None:
    """A sample of nearly everybody would have been the way past the check: whoever is in it is known by their rows."""
    told = asked(beside.place.run("drawn", 13, **selection))
    assert f"beside patients/{beside.first.version}, of the same people, {problems(told)} people share" in told.remedy
    assert "cannot be judged" not in told.remedy


@pytest.mark.parametrize("selection", SELECTIONS, ids=["sample", "held_out"])
def test_whoever_is_drawn_is_not_judged_beside_groups(place: Place, selection: dict[str, Any]) -> None:
    """Of a class of nearly everybody, what is left beside a group is nearly certain; nobody can say how nearly."""
    groups = released(few_ages(place).groups("figures", [50]))
    told = asked(place.run("drawn", 12, **selection))
    assert problems(told) == 1
    assert f"figures/{groups.version} is of the same people and cannot be judged: in this release, people" in (
        told.remedy
    )


def test_nor_are_groups_beside_whoever_is_drawn(place: Place) -> None:
    rows = released(few_ages(place).run("drawn", 12, **SELECTIONS[0]))
    told = asked(place.groups("figures", [50]))
    assert problems(told) == 1
    assert f"cannot be judged: in drawn/{rows.version}, people are drawn by sample" in told.remedy


def test_classes_of_drawn_values_are_not_judged(beside: Beside) -> None:
    """Hardly any noise would have been the way past the check. Steps on other columns change no class."""
    alike = {"technique": "mdav", "columns": ["income"], "k": 3}
    told = asked(beside.place.run("alike", 13, table_steps=[alike]))
    assert problems(told) and "cannot be judged" not in told.remedy
    noise = {"technique": "noise", "deviation": 1e-6}
    told = asked(beside.place.run("drawn", of_columns={"age": {"steps": [noise]}}))
    assert problems(told) == 1 and "cannot be judged: in this release, noise on age draws" in told.remedy


def test_nor_are_classes_of_what_a_step_makes_of_several_columns(place: Place) -> None:
    """It ended in an internal error, and so did every later dataset of these people."""
    seen = people().assign(lat=np.repeat([50.1, 50.9], 150), lon=np.tile([8.1, 8.9], 150))
    seen.to_csv(place.root / "people.csv", index=False)
    position = {name: {"role": "exclude", "type": "numeric"} for name in ("lat", "lon")}
    cell = {"technique": "grid_cell", "columns": ["lat", "lon"], "metres": 10000, "into": "cell"}
    columns = position | {"cell": {"role": "quasi_identifier", "made": True}}
    maps = released(place.run("maps", more_columns=columns, table_steps=[cell]))
    told = asked(place.run("research", more_columns=position))
    assert problems(told) == 1
    assert f"in maps/{maps.version}, cell is made by a step on the whole table" in told.remedy


def test_files_that_steps_name_lie_beside_their_own_spec(place: Place) -> None:
    (place.root / "regions").mkdir()
    (place.root / "regions" / "towns.csv").write_text("Bergen;north\nUlm;south\nGraz;south\nLyon;south\n")
    regions = {"town": {"steps": [{"technique": "hierarchy", "file": "towns.csv"}]}}
    first = released(place.run("regions", of_columns=regions))
    told = asked(place.run("research", 13)).remedy
    assert f"beside regions/{first.version}, of the same people, " in told and "cannot be judged" not in told


def test_a_release_since_the_checks_is_noticed(beside: Beside) -> None:
    run = beside.place.run("research", 13)
    ledger, meanwhile = run.home.releases / "ledger.jsonl", run.home.releases / "later.jsonl"
    ledger.rename(meanwhile)
    assert not problems(asked(run))
    meanwhile.rename(ledger)
    raw, made = (Stages(run.home, run.spec).load(name) for name in ("raw_data", "anonymized_table"))
    with pytest.raises(Refused, match=linked_rows.CHECK):
        linked_rows.keeper(run, raw, made)("a version")
    assert not known_classes.kept(run.home, "research", "a version").exists()
