"""`query`, `statistics` and `budget`: what an answer costs is said, and the exit code tells a spent budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anon_pipeline.cli import queries as commands
from anon_pipeline.differential_privacy.reading import asked_of
from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import VARIABLE, Home
from anon_pipeline.pipeline import launch
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.cli.commands import run, sentence
from anon_pipeline_tests.cli.printed import Printed
from anon_pipeline_tests.differential_privacy.tables import policy, write_dataset
from anon_pipeline_tests.differential_privacy.test_queries import people
from anon_pipeline_tests.people import write_spec

COUNT = "SELECT city, COUNT(*) FROM people GROUP BY city"
COST = {"rho": 0.1, "epsilon": 1.23456, "delta": 1e-6, "threshold_delta": 0.0}
BUDGET = {
    "subject": "[patients]",
    "rho": {"left": 0.75, "total": 1.0},
    "epsilon": {"spent": 2.34567, "total": 5.5},
    "delta": 1e-6,
}
SPENT = f"the [budget] {'is ' * 40}spent"
BUDGET_LINE = (
    "budget of [patients]: 0.750000 of a rho of 1.000000 is left; epsilon 2.346 of 5.5 is spent at delta 1e-06"
)


@pytest.fixture
def spec(tmp_path: Path, home: Home) -> Path:
    content = policy()
    content["differential_privacy"]["queries"] = "queries.yaml"
    return write_dataset(tmp_path / "people", people(60), content)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "(missing)"),
        ("[Cork]", "[Cork]"),
        (3, "3"),
        (0.1 + 0.2, "0.3"),
        ({"value": None, "low": None, "high": None}, "too few to tell"),
        ({"value": 12_345.6789, "low": None, "high": None}, "12,345.7"),
        ({"value": 12_345.6789, "low": -1.0, "high": 20_000.04}, "12,345.7 (-1 to 20,000)"),
    ],
)
def test_a_cell_of_an_answer(value: Any, text: str) -> None:
    assert commands._cell(value) == text


def test_an_answer_and_its_cost(printed: Printed) -> None:
    content = {
        "dataset": "people",
        "columns": ["[city]", "count"],
        "rows": [{"[city]": "[Cork]", "count": {"value": 31.0, "low": 28.0, "high": 34.0}}],
        "cost": COST,
        "new": True,
        "budget": BUDGET,
        "notes": ["[few] rows"],
    }
    commands._show_answer(content)
    assert printed() == [
        "people",
        "[city]  count",
        "[Cork]  31 (28 to 34)",
        "spent a rho of 0.100000 (alone an epsilon of 1.235 at delta 1e-06)",
        BUDGET_LINE,
        "note: [few] rows",
    ]
    commands._show_answer(content | {"new": False, "cost": COST | {"threshold_delta": 1e-7}, "notes": []})
    assert printed()[3:] == ["asked before: nothing was spent", BUDGET_LINE]
    assert commands._cost(COST | {"threshold_delta": 1e-7}).endswith("at delta 1e-06) and 1e-07 of delta")


def test_a_preview_of_a_question(printed: Printed) -> None:
    mechanism = {"measures": "[count]", "mechanism": "discrete Gaussian", "scale": 2.23456, "rho": 0.1}
    widths = {
        "count": {"value": 4.56789},
        "median": {"rank": 1_234},
        "mean": {"value_times_rows": 12.34567, "rows": 3.0},
    }
    content = {"dataset": "people", "mechanisms": [mechanism], "half_widths": widths, "cost": COST, "notes": ["[a]"]}
    commands._show_preview(content)
    assert printed() == [
        "people: what the question would cost and tell",
        "measures  mechanism  scale  rho",
        "[count]  discrete Gaussian  2.235  0.100000",
        "count: within 4.568 of the exact figure, with 95 % confidence",
        "median: within 1,234 rows of the quantile, with 95 % confidence",
        "mean: within about 12.35 divided by the rows of the group, with 95 % confidence",
        "would spend a rho of 0.100000 (alone an epsilon of 1.235 at delta 1e-06); nothing was read or spent",
        "note: [a]",
    ]


@pytest.mark.long
def test_a_preview_reads_and_spends_nothing(spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))
    (spec / "people.csv").unlink()
    ended = run("query", spec, COUNT, "--rho", "0.1", "--preview")
    assert (ended.code, ended.lines[0]) == (0, "people: what the question would cost and tell")
    assert run("query", spec, COUNT, "--rho", "0.1", "--preview", "--json").json["cost"]["rho"] == pytest.approx(0.1)
    assert not (tmp_path / "none").exists()


@pytest.mark.long
def test_a_question_is_paid_for_once_and_entered(spec: Path, home: Home) -> None:
    ended = run("query", spec, COUNT, "--rho", "0.4", "--threads", "1", "--memory", "1GB")
    assert any(line.startswith("spent a rho of 0.400000 (alone an epsilon of ") for line in ended.lines)
    answer = run("query", spec, COUNT, "--rho", "0.4", "--json").json
    assert (answer["new"], answer["columns"]) == (False, ["city", "count"])
    shown = run("budget", "show", spec)
    assert shown.lines[:2] == ["budget of patients", "time  dataset  rho  question"]
    row = shown.lines[2].split("  ")
    assert row[1:3] == ["people", "0.400000"]
    assert len(shown.lines) == 5  # with the budget and its head
    content = run("budget", "show", spec, "--json").json
    assert shown.lines[4] == f"head {content['head']}"
    assert [question["dataset"] for question in content["questions"]] == ["people"]
    verified = run("budget", "verify", spec)
    assert (verified.code, verified.told) == (0, [])
    assert run("budget", "verify", spec, "--json").json["problems"] == []
    entered = run("budget", "accept", spec, "--why", "[restored]", "--json").json
    assert entered["why"] == "[restored]"
    assert run("budget", "accept", spec, "--why", "again").lines == [f"entered as line {entered['sequence'] + 1}"]
    error = run("query", spec, COUNT, "--rho", "0.9").error
    assert isinstance(error, Refused)


@pytest.mark.long
def test_a_budget_that_was_altered_ends_with_3(spec: Path, home: Home) -> None:
    run("query", spec, COUNT, "--rho", "0.4")
    (ledger,) = home.root.rglob("*patients*/ledger.jsonl")
    ledger.write_text(ledger.read_text().replace("400000000", "100000000"))
    ended = run("budget", "verify", spec)
    assert (ended.code, bool(ended.told)) == (3, True)
    assert run("budget", "verify", spec, "--json").code == 3


@pytest.mark.parametrize(("option", "value"), [("--threads", "0"), ("--threads", "1025"), ("--engine", "dask")])
def test_options_that_mean_nothing_are_refused(spec: Path, option: str, value: str) -> None:
    ended = run("query", spec, COUNT, "--rho", "0.1", option, value)
    assert ended.code == 2 or isinstance(ended.error, InputError)
    assert run("budget", "show", spec, "--json").json["questions"] == []


def test_an_engine_has_the_threads_and_the_memory_that_it_may_use(tmp_path: Path) -> None:
    engine = commands._engine("duckdb", tmp_path, "1GB", 2)
    assert type(engine).__name__ == "DuckDBEngine"
    with pytest.raises(InputError, match="--engine: 'dask' is not available"):
        commands._engine("dask", tmp_path, None, None)


@pytest.mark.parametrize(
    ("options", "expected"), [((), ("2GB", 3)), (("--memory", "1GB"), ("1GB", 3)), (("--threads", "1"), ("2GB", 1))]
)
def test_an_option_goes_before_the_spec(
    tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], expected: tuple[str, int]
) -> None:
    content = policy() | {"engine": {"memory_limit": "2GB", "threads": 3}}
    folder = write_dataset(tmp_path / "people", people(60), content)

    def engine(name: str, _: Path, memory: str, threads: int) -> None:
        raise InputError(f"{name} {memory} {threads}")

    monkeypatch.setattr(commands, "_engine", engine)
    assert sentence("query", folder, COUNT, "--rho", "0.1", *options) == f"duckdb {expected[0]} {expected[1]}"


@pytest.mark.parametrize(("new", "state"), [(True, "published"), (False, "stands already; nothing was spent")])
def test_published_statistics_are_told_with_their_cost(
    spec: Path, monkeypatch: pytest.MonkeyPatch, new: bool, state: str
) -> None:
    privacy = {"epsilon": 3.14159, "delta": 1e-6, "budget": BUDGET}
    manifest = {"dataset": "people", "version": "v1", "differential_privacy": privacy}
    outcome = launch.Outcome(0, "a-run", [], new, Path("/releases/[people]/v1"), manifest)
    ended = launched(spec, monkeypatch, outcome)
    assert ended.lines == [
        f"people v1: {state}",
        "together an epsilon of 3.142 at delta 1e-06",
        BUDGET_LINE,
        "in /releases/[people]/v1",
    ]
    assert ended.code == 0


@pytest.mark.parametrize("code", [2, 3])
def test_statistics_that_are_not_published_are_told_why(spec: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    outcome = launch.Outcome(code, "a-run", [SPENT])
    ended = launched(spec, monkeypatch, outcome)
    assert (ended.code, ended.out, ended.told) == (code, "", [SPENT])
    ended = launched(spec, monkeypatch, outcome, "--json")
    assert (ended.code, ended.json["failures"]) == (code, [SPENT])


def launched(spec: Path, monkeypatch: pytest.MonkeyPatch, outcome: launch.Outcome, *options: str) -> Any:
    def launching(_: ReleaseSpec, __: Home, runtime: Any, what: str) -> launch.Outcome:
        assert (what, runtime.engine_name, runtime.threads) == ("statistics", "duckdb", 2)
        return outcome

    monkeypatch.setattr(launch, "launch", launching)
    (spec / "queries.yaml").write_text(f"- {{name: cities, sql: '{COUNT}', rho: 0.1}}\n")
    return run("statistics", spec, "--threads", "2", *options)


def test_statistics_need_questions(spec: Path) -> None:
    assert "queries.yaml cannot be read" in sentence("statistics", spec)


def test_who_asks_without_the_section_is_told_what_writes_it(tmp_path: Path) -> None:
    spec = write_spec(tmp_path, {"age": "quasi_identifier", "t": "sensitive"}, "people.csv")
    with pytest.raises(InputError, match=r"no section differential_privacy: .*; `anon-pipeline init OTHER_NAME --from"):
        asked_of(spec)
