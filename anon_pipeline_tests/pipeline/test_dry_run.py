"""A dry run says what a run would do, ends as it would on bad input, and leaves no trace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.keys import kept_place, private_key
from anon_pipeline.pipeline.dry_run import ADULT, _require_schedules, cpu_seconds, dry_run, memory_gb
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end import harness
from anon_pipeline_tests.end_to_end.harness import people, policy, write_dataset

ADULT_SPEC = Path(__file__).parents[2] / "data" / "adult"


@pytest.mark.long
def test_it_tells_the_steps_of_the_graph_and_leaves_nothing(tmp_path: Path) -> None:
    folder, home = write_dataset(tmp_path / "people"), tmp_path / "home"
    ended = harness.command("run", folder, "--dry-run", "--json", home=home)
    assert ended.exit_code == 0, ended.said
    told = json.loads(ended.stdout)
    spec = ReleaseSpec.load(folder)
    assert [step["step"] for step in told["steps"]] == [step.name for step in graph_of(spec).steps]
    assert sum(len(step["checks"]) for step in told["steps"]) == sum(
        len(checks.checks(spec)) for checks in graph_of(spec).checks
    )
    assert told["people"] == 400 and told["every_row_was_read"]
    assert told["cpu_seconds"][0] < told["cpu_seconds"][1] and told["memory_gb"][0] < told["memory_gb"][1]
    assert not home.exists()
    assert sorted(file.name for file in folder.iterdir()) == ["people.csv", "release.yaml"]


def test_it_meets_in_the_last_row_of_a_large_file_what_a_run_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anon_pipeline.engine.first_look.SMALL", 0)
    frame = people().astype({"age": object})
    frame.loc[399, "age"] = "no number"
    spec = ReleaseSpec.load(write_dataset(tmp_path / "people", frame))
    with pytest.raises(InputError, match=r"columns\.age: 1 value is no number"):
        dry_run(spec, Home(tmp_path / "home"), "duckdb", None, None)


def test_a_schedule_that_is_none_is_told_as_by_a_run(tmp_path: Path) -> None:
    """It said that a run could start, and the run ended with exit code 2."""
    spec = ReleaseSpec.load(write_dataset(tmp_path / "people", spec=policy() | {"schedule": "every day"}))
    with pytest.raises(InputError, match=r"^schedule: 'every day' is no cron schedule"):
        dry_run(spec, Home(tmp_path / "home"), "duckdb", None, None)


def test_what_it_reads_of_a_hierarchy_is_wrong_in_the_same_words(tmp_path: Path) -> None:
    spec = policy()
    spec["columns"]["city"]["hierarchy"] = {"file": "cities.csv"}
    folder = write_dataset(tmp_path / "people", spec=spec)
    (folder / "cities.csv").write_text("Cork\n")
    with pytest.raises(InputError, match="line 1 has a value and no level"):
        dry_run(ReleaseSpec.load(folder), Home(tmp_path / "home"), "duckdb", None, None)


@pytest.mark.parametrize("stated", [True, False])
def test_masking_steps_that_do_not_fit_are_told_as_by_a_run(tmp_path: Path, stated: bool) -> None:
    """It said that a run could start, which ended with exit code 2 after it had read the source."""
    spec = policy() | {"steps": [{"technique": "noise", "deviation": 5}]}
    if not stated:
        spec["columns"]["visits"].pop("type")
    folder = write_dataset(tmp_path / "people", spec=spec)
    with pytest.raises(InputError, match=r"^steps\.0: noise works on one column; state it under columns\."):
        dry_run(ReleaseSpec.load(folder), Home(tmp_path / "home"), "duckdb", None, None)


def test_a_destination_that_cannot_be_used_is_told_as_by_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = {"database": "postgresql", "connection": {"env": "OPEN_DSN"}, "schema": "open"}
    folder = write_dataset(tmp_path / "people", spec=policy() | {"publish": [server]})
    monkeypatch.delenv("OPEN_DSN", raising=False)
    with pytest.raises(InputError, match=r"publish.connection: the environment variable OPEN_DSN is not set"):
        dry_run(ReleaseSpec.load(folder), Home(tmp_path / "home"), "duckdb", None, None)


@pytest.mark.long
def test_a_spec_with_masking_noisy_answers_and_bounds_is_told_too(tmp_path: Path) -> None:
    told = dry_run(ReleaseSpec.load(ADULT_SPEC), Home(tmp_path / "home"), "duckdb", 1, None)
    assert told.people == ADULT and told.steps["attack_audit"] and "dp_answers" not in told.steps


def test_nothing_is_estimated_of_what_was_never_measured(tmp_path: Path) -> None:
    told = dry_run(ReleaseSpec.load(write_dataset(tmp_path / "people")), Home(tmp_path / "home"), "spark", None, None)
    assert told.cpu_seconds is None and told.memory_gb is None


def test_the_estimates_are_near_what_was_measured() -> None:
    """Of Adult 145 to 178 cpu s and 1.83 GB in three processes, of 3,000 people without attacks 21 cpu s.

    5,670 people of Adult with 14 occupations as the target took 93 cpu s.
    """
    adult = ReleaseSpec.load(ADULT_SPEC)
    assert 145 / 1.3 < cpu_seconds(adult, ADULT) < 178 * 1.3
    low, high = memory_gb(ADULT, 2)
    assert low < 1.83 < high
    few = adult.replaced({"audit": {"enabled": False}})
    assert 21 / 1.3 < cpu_seconds(few, 3_000) < 21 * 1.3
    assert 93 / 1.3 < cpu_seconds(adult, 5_670, 14) < 93 * 1.3
    forest = adult.replaced({"guide": {"model": "random_forest"}})
    assert cpu_seconds(forest, 5_670, 14) == cpu_seconds(forest, 5_670)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("target", "dearer"), [("ill", False), ("town", True), ("age", False)])
def test_a_target_of_many_categories_costs_more(tmp_path: Path, target: str, dearer: bool, masked: bool) -> None:
    spec = policy() | {"target": target, "guide": {"folds": 2}}
    spec["columns"] |= {"age": {"role": "insensitive", "type": "numeric"}}
    spec["columns"] |= {"town": {"role": "insensitive", "type": "categorical"}}
    if masked:  # then nothing else is counted in the source
        spec["columns"]["visits"]["steps"] = [{"technique": "round", "to": 2}]
    folder = write_dataset(tmp_path / "people", people().assign(town=[f"town {i % 40}" for i in range(400)]), spec)
    told = dry_run(ReleaseSpec.load(folder), Home(tmp_path / "home"), "duckdb", None, None)
    assert told.cpu_seconds is not None
    cost, of_two = (cpu_seconds(ReleaseSpec.load(folder), 400, classes) for classes in (40 if dearer else 2, 2))
    assert told.cpu_seconds[1] == round(2 * cost)
    assert (round(2 * cost) > round(2 * of_two)) == dearer


def test_more_people_never_cost_less() -> None:
    spec = ReleaseSpec.load(ADULT_SPEC)
    sizes = [100, 3_000, 50_000, 10**6, 10**7, 10**9]
    costs = [cpu_seconds(spec, size) for size in sizes]
    assert costs == sorted(costs)
    memory = [memory_gb(size, 2) for size in sizes]
    assert memory == sorted(memory)


def test_a_schedule_of_questions_is_told_as_by_a_run() -> None:
    noise = SimpleNamespace(schedule="every day", queries="queries.yaml")
    spec: Any = SimpleNamespace(schedule=None, differential_privacy=noise)
    with pytest.raises(InputError, match=r"^differential_privacy\.schedule: 'every day' is no cron schedule"):
        _require_schedules(spec)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda key: key.unlink(), "people.key is gone, and there are releases of people; restore it"),
        (lambda key: key.chmod(0o644), r"people.key can be read by others; run `chmod 600` on it"),
        (lambda key: key.write_text("ab" * 32), "is not the one that its releases were drawn with; restore that one"),
    ],
)
def test_a_key_that_a_run_could_not_use_is_told(
    tmp_path: Path, change: Callable[[Path], object], sentence: str
) -> None:
    """It said that a run could start, and the run ended with exit code 2."""
    spec, home = ReleaseSpec.load(write_dataset(tmp_path / "people")), Home(tmp_path / "home").prepare()
    private_key(spec, home)
    (home.releases / spec.dataset).mkdir()
    dry_run(spec, home, "duckdb", None, None)
    change(kept_place(spec.dataset, home))
    before = sorted(home.root.rglob("*"))
    with pytest.raises(InputError, match=sentence):
        dry_run(spec, home, "duckdb", None, None)
    assert sorted(home.root.rglob("*")) == before


@pytest.mark.parametrize(
    ("place", "sentence"), [("100 %/home", "a home has no . and no % in its path"), ("file/home", "cannot be written")]
)
def test_a_home_that_a_run_could_not_use_is_told(tmp_path: Path, place: str, sentence: str) -> None:
    (tmp_path / "file").touch()
    spec = ReleaseSpec.load(write_dataset(tmp_path / "people"))
    with pytest.raises(InputError, match=sentence):
        dry_run(spec, Home(tmp_path / place), "duckdb", None, None)
