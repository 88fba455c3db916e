"""A release of groups in place of people, through the real command and in the UI's graph; what is refused, and when."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from anon_pipeline.destinations import delivery
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import Home
from anon_pipeline.masking import memory
from anon_pipeline.masking.aggregation import Aggregate
from anon_pipeline.pipeline.build import build_definitions
from anon_pipeline.pipeline.checks.group import GROUP_CHECKS, group_questions
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.release.descriptors.written import DESCRIPTORS
from anon_pipeline.release.publish import publish
from anon_pipeline.spec import Destination, ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import Ended, Place, command, people, policy, write_dataset
from anon_pipeline_tests.pipeline.expectations.asked import ask
from anon_pipeline_tests.pipeline.in_steps import released_in_steps
from anon_pipeline_tests.skips import require_package

pytestmark = pytest.mark.slow

AGGREGATE = {"technique": "aggregate", "columns": ["city", "age"], "means": ["salary"], "threshold": 12}
COLUMNS = ["city", "age", "people", "mean_salary"]


def everyone() -> pd.DataFrame:
    """People of whom three live in a town of their own, one earns more than all others, and some have no diagnosis."""
    frame = people(400)
    frame.insert(0, "name", [f"Zebulon-{number}" for number in range(len(frame))])
    frame["salary"] = np.random.default_rng(2).lognormal(10, 0.3, len(frame)).round(2)
    frame.loc[:2, "city"] = "Nulltown"
    frame.loc[10, ["city", "age", "salary"]] = ["Bergen", 40, 918_273_645.0]
    frame.loc[::9, "ill"] = None
    return frame


def grouped_policy(**step: Any) -> dict[str, Any]:
    spec = policy()
    spec["columns"] |= {"name": {"role": "identifier"}, "salary": {"role": "sensitive", "type": "numeric"}}
    spec["columns"]["age"]["steps"] = [{"technique": "round", "to": 20}]
    return spec | {"steps": [AGGREGATE | step], "owner": "team:figures", "schedule": "0 3 * * *"}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Place:
    root = tmp_path_factory.mktemp("aggregation")
    place = Place(Home(root / "home"), write_dataset(root / "people", everyone(), grouped_policy()))
    released_in_steps(place)  # by the command: see docs/masking.md, whose lines are run
    return place


def another(released: Place, root: Path, spec: dict[str, Any], frame: pd.DataFrame | None = None) -> Place:
    """The same dataset with another spec or source, in the same home."""
    return Place(released.home, write_dataset(root / "people", everyone() if frame is None else frame, spec))


# What is released


def test_groups_are_put_to_a_destination_as_people_are(released: Place, tmp_path: Path) -> None:
    deltalake = require_package("deltalake")
    folder = released.release
    delivery.deliver(released.home, folder.parent.name, folder.name, [Destination(delta=str(tmp_path / "open"))])
    there = deltalake.DeltaTable(str(tmp_path / "open")).to_pyarrow_table()
    assert there.num_rows == pq.read_metadata(folder / "data.parquet").num_rows
    assert delivery.verify(released.home) == []


def test_what_is_released_are_the_groups_by_the_rules(released: Place) -> None:
    source, table = everyone(), pd.read_parquet(released.release / "data.parquet")
    assert list(table) == COLUMNS
    source["age"] = (source["age"] + 10) // 20 * 20
    whole = source.groupby(["city", "age"])["salary"].agg(["size", "mean"])
    shown = table.set_index(["city", "age"])
    assert 0 < len(shown) < len(whole)
    assert shown["people"].min() >= 12
    assert (shown["people"] == whole.loc[shown.index, "size"]).all()
    told = shown["mean_salary"].dropna()
    assert told.to_numpy() == pytest.approx(whole.loc[told.index, "mean"].to_numpy())
    assert shown.index[shown["mean_salary"].isna()].tolist() == [("Bergen", 40)]  # one salary is nearly all of it
    left_out = whole.drop(shown.index)
    assert len(left_out) > 1 and left_out["size"].sum() >= 12
    assert {file.name for file in released.release.iterdir()} == {
        "data.parquet", "manifest.json", "report.html", "openlineage.jsonl", "prov.json", *DESCRIPTORS,
    }  # fmt: skip


def test_nobody_and_no_group_that_is_left_out_stands_in_any_file(released: Place) -> None:
    table = pd.read_parquet(released.release / "data.parquet")
    content = json.loads((released.release / "manifest.json").read_text())
    for file in released.home.releases.rglob("*"):
        if file.is_file():
            assert b"Zebulon" not in file.read_bytes() and b"Nulltown" not in file.read_bytes(), file.name
    groups = content["groups"]
    assert groups["people"] == table["people"].sum() == 400 - groups["people_left_out"]
    assert (groups["groups"], groups["smallest"]) == (len(table), table["people"].min())
    assert groups["means_hidden"] == 1
    told = json.dumps([content["source"], content["masking"], content["checks"], groups])
    # As many groups as people left out would mean single people; a column's gaps may be the count of a hidden group.
    assert "groups_left_out" not in told and '"missing"' not in told and '"distinct"' not in told
    assert all(step["costs"] == {} and step["linkage"] is None for step in content["masking"])
    assert {one["name"] for one in content["checks"]} >= set(GROUP_CHECKS)
    assert "has_target" not in {one["name"] for one in content["checks"]}
    assert content["lineage"] == {
        "city": ["city"], "age": ["age"], "people": ["age", "city"], "mean_salary": ["salary"],
    }  # fmt: skip


def asked(released: Place, *words: object) -> Ended:
    return command(*words, home=released.home.root)


def test_the_commands_know_what_it_is(released: Place, tmp_path: Path) -> None:
    version, file = released.release.name, released.release / "data.parquet"
    shown = asked(released, "releases", "show", version)
    assert (shown.exit_code, "no model is trained" in " ".join(shown.stdout.split())) == (0, True), shown.said
    report = asked(released, "report", version)
    assert report.exit_code == 0, report.said
    assert "This is a table of" in report.stdout and "no model is trained" in report.stdout
    assert "Every group counts at least 12 people**: holds" in report.stdout
    assert " class" not in report.stdout
    page = (released.release / "report.html").read_text()
    assert "in steps of 0.002 for the smallest groups" in page  # salaries are written to the cent
    assert "no model is trained" in page and " class " not in page.partition("</style>")[2].replace("class=", "")
    assert asked(released, "releases", "verify").exit_code == 0
    judged = asked(released, "verify", file, "--spec", released.dataset, "--json")
    assert judged.exit_code == 0, judged.said
    assert json.loads(judged.stdout)["smallest_class"] >= 12
    altered = tmp_path / "altered.csv"
    pd.read_parquet(file).assign(people=11).to_csv(altered, index=False)
    refused = asked(released, "verify", altered, "--spec", released.dataset)
    assert refused.exit_code == 3, refused.said
    swept = asked(released, "sweep", released.dataset, "--k", "2,5")
    assert (swept.exit_code, "no rows of people to judge" in swept.sentence) == (2, True), swept.said


def test_neither_the_order_of_the_source_nor_threads_change_the_release(released: Place, tmp_path: Path) -> None:
    before = released.releases()
    shuffled = another(released, tmp_path, grouped_policy(), everyone().sample(frac=1, random_state=5))
    assert not released_in_steps(shuffled, threads=1).new
    assert released.releases() == before


# What the graph is


def test_the_graph_has_no_model_and_its_checks_block(released: Place) -> None:
    definitions = build_definitions([released.spec])
    dg.Definitions.validate_loadable(definitions)
    job = definitions.resolve_job_def("people_release")
    names = ("raw_data", "masked_data", "aggregated_table", "release")
    assert {key.to_user_string() for key in job.asset_layer.executable_asset_keys} == {f"people/{one}" for one in names}
    specs = {spec.key.path[-1]: spec for spec in definitions.resolve_all_asset_specs()}
    assert all(spec.description and spec.owners == ["team:figures"] for spec in specs.values())
    assert specs["release"].freshness_policy is not None
    checks = [spec for one in definitions.asset_checks or [] for spec in one.check_specs]
    assert {spec.name for spec in checks} >= set(GROUP_CHECKS) | {"has_no_person_twice"}
    assert all(spec.blocking and spec.description for spec in checks)
    assert {one.name for one in definitions.schedules or []} == {"people_schedule", "prune_schedule"}
    sensors = {"people_source_sensor", "alerts_of_runs", "alerts_of_late_releases"}
    assert {one.name for one in definitions.sensors or []} == sensors


# What is refused by a check


def shows_small_groups() -> None:
    """Code that forgets the threshold."""
    Aggregate._left_out = lambda _, counts: np.zeros(len(counts), dtype=bool)  # type: ignore[method-assign]


def test_a_group_below_the_threshold_is_refused_and_nothing_is_published(released: Place, tmp_path: Path) -> None:
    before = released.releases()
    ended = another(released, tmp_path, grouped_policy(threshold=11)).run(sabotage=shows_small_groups)
    assert ended.exit_code == 3, ended.said
    assert "k_anonymity: every group counts at least 11 people, but measured 1" in ended.sentence
    assert "Nulltown" not in ended.said
    assert released.releases() == before


def dominated(table: pd.DataFrame, source: pd.DataFrame) -> pd.DataFrame:
    mine = (source["city"] == "Bergen") & (source["age"] == 40)
    return table.assign(mean_salary=table["mean_salary"].fillna(round(source.loc[mine, "salary"].mean(), 2)))


def twice_and_not_whole(table: pd.DataFrame, _: pd.DataFrame) -> pd.DataFrame:
    """A group that stands in two rows, and another one whose count is no whole number."""
    return pd.concat([table[:1], table.assign(people=table["people"] + 0.5 * (np.arange(len(table)) == 1))])


def exact_means(table: pd.DataFrame, source: pd.DataFrame) -> pd.DataFrame:
    """Means with all their digits, which tell of how many salaries they are."""
    exact = source.groupby(["city", "age"])["salary"].mean()
    means = [exact[city, age] for city, age in zip(table["city"], table["age"], strict=True)]
    return table.assign(mean_salary=np.where(table["mean_salary"].isna(), np.nan, means))


@pytest.mark.parametrize(
    ("spoil", "failing"),
    [
        (lambda table, _: table, set()),
        (lambda table, _: table.assign(salary=1.0), set(GROUP_CHECKS)),
        (lambda table, _: table.drop(columns="people"), set(GROUP_CHECKS)),
        (dominated, {"shows_no_dominated_mean"}),
        (lambda table, _: table.assign(mean_salary=table["mean_salary"] + 1), {"shows_true_means"}),
        (exact_means, {"shows_rounded_means"}),
        (lambda table, _: pd.concat([table, table[:1]]), {"has_every_group_once"}),
        (lambda table, _: table.assign(people=table["people"] + 1), {"counts_the_people", "accounts_for_everybody"}),
        (twice_and_not_whole, {"has_every_group_once", "k_anonymity", "accounts_for_everybody", "counts_the_people"}),
        (lambda table, _: table[:0], {"k_anonymity"}),
    ],
    ids=[
        *("as it is", "a column more", "one less", "one salary", "wrong means", "all digits", "twice", "wrong counts"),
        *("twice and not whole", "empty"),
    ],
)
def test_every_check_sees_what_it_is_there_for(
    released: Place, tmp_path: Path, spoil: Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame], failing: set[str]
) -> None:
    (masked,) = (released.home.private / "people/masked_data").glob("*/data.parquet")
    table, source = pd.read_parquet(released.release / "data.parquet"), pd.read_parquet(masked)
    spoil(table, source).to_parquet(tmp_path / "data.parquet", index=False)
    stored = Stage(masked.parent, "", {"rows": len(source)})
    questions = group_questions(released.spec, DuckDBEngine(tmp_path), stored, Stage(tmp_path, "", {}))
    answers = ask(questions)
    assert [answer.name for answer in answers] == list(GROUP_CHECKS)
    assert {answer.name for answer in answers if not answer.passed} == failing


@pytest.mark.parametrize(("n", "told"), [(1, "largest value makes up"), (3, "3 largest values make up")])
def test_which_means_are_hidden_is_told_by_the_rule(released: Place, tmp_path: Path, n: int, told: str) -> None:
    spec = ReleaseSpec.model_validate(grouped_policy(dominance={"n": n, "share": 0.85}))
    shutil.copy(released.release / "data.parquet", tmp_path)
    (masked,) = (released.home.private / "people/masked_data").glob("*/data.parquet")
    stored = Stage(masked.parent, "", {"rows": len(everyone())})
    *_, last = group_questions(spec, DuckDBEngine(tmp_path), stored, Stage(tmp_path, "", {}))
    assert last.demand == (
        f"no mean is shown of which the {told} more than 85%, or whose second largest value tells the largest to "
        "within 20 %"
    )


def test_one_hidden_group_alone_is_refused(released: Place, tmp_path: Path) -> None:
    """The table of code that hides only what is too small: the difference from all people is that group's count."""
    (masked,) = (released.home.private / "people/masked_data").glob("*/data.parquet")
    source = pd.read_parquet(masked)
    source["city"] = np.where(source["city"] == "Nulltown", "Nulltown", "Bergen")
    source["age"] = 40
    source.to_parquet(tmp_path / "people.parquet", index=False)
    (tmp_path / "masked").mkdir()
    source.to_parquet(tmp_path / "masked/data.parquet", index=False)
    shown = source[source["city"] == "Bergen"]
    table = pd.DataFrame({"city": ["Bergen"], "age": [40], "people": [len(shown)], "mean_salary": [None]})
    table.astype({"mean_salary": "float64"}).to_parquet(tmp_path / "data.parquet", index=False)
    stored = Stage(tmp_path / "masked", "", {"rows": len(source)})
    answers = ask(group_questions(released.spec, DuckDBEngine(tmp_path), stored, Stage(tmp_path, "", {})))
    assert {answer.name for answer in answers if not answer.passed} == {"hides_groups_in_company"}


def test_the_written_file_is_judged_once_more_whatever_the_checks_said(released: Place, tmp_path: Path) -> None:
    before, candidate = released.releases(), tmp_path / "candidate"
    candidate.mkdir()
    table = pd.read_parquet(released.release / "data.parquet")
    table.loc[0, "people"] = 11
    table.to_parquet(candidate / "data.parquet", index=False)
    facts = json.loads((released.release / "manifest.json").read_text())
    facts["source"]["content_hash"] = "0" * 64
    with pytest.raises(Refused, match="k_anonymity: 1 group fails"):
        publish(released.home, released.spec, DuckDBEngine(tmp_path), candidate, facts)
    assert released.releases() == before


# What is refused before any work


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"steps": [AGGREGATE | {"threshold": 9}]}, "steps.0.threshold: is 9, and k = 10 asks for more"),
        ({"privacy": {"k_anonymity": {"k": 10}, "l_diversity": {"column": "ill", "l": 2}}}, "privacy.l_diversity: agg"),
        ({"audit": {"linkage": 0.1}}, "audit: sets bounds on attacks"),
        ({"audit": {"attribute_inference": {"ill": 0.1}}}, "audit: sets bounds on attacks"),
        ({"person": "name", "across_releases": {"k": 5}}, "across_releases: aggregate leaves"),
        ({"frontier": {"k": [5, 10]}}, "frontier: aggregate leaves"),
        ({"suppression": {"limit": 0.01}}, "suppression.limit: aggregate leaves"),
    ],
    ids=["threshold", "another demand", "a bound", "a bound on inference", "across releases", "prices", "suppression"],
)
def test_what_cannot_be_held_against_groups_is_refused(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    folder = write_dataset(tmp_path / "people", everyone().head(20), grouped_policy() | change)
    with pytest.raises(InputError, match=r"release\.yaml") as refused:
        ReleaseSpec.load(folder)
    assert sentence in str(refused.value)


def values_take_much() -> None:
    """A table that is large beside the memory, without making one."""
    memory.BYTES_PER_VALUE = 10**12


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        ({"columns": ["name"]}, "aggregate shows name, which the spec keeps back"),
        ({"columns": ["city"], "threshold": 300}, "steps.0: every group counts fewer than 300 people"),
        ({"columns": ["city"]}, "400 people with 7 columns take at least"),
    ],
    ids=["an identifier", "nothing left", "no memory"],
)
def test_groups_that_cannot_be_released_are_told(
    released: Place, tmp_path: Path, step: dict[str, Any], sentence: str
) -> None:
    before = released.releases()
    ended = another(released, tmp_path, grouped_policy(**step)).run(
        sabotage=values_take_much if "people with" in sentence else None
    )
    assert (ended.exit_code, sentence in ended.sentence) == (2, True), ended.said
    assert released.releases() == before
