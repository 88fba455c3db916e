"""No value of a person leaves the private zone: not in a log, not in Dagster, not in MLflow, not in a release."""

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from anon_pipeline.pipeline.execution import answer, make
from anon_pipeline.pipeline.expectations.questions import Answer
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.step import StepResult
from anon_pipeline.pipeline.tracking.logged_guide import PICKLE
from anon_pipeline_tests.end_to_end import sabotage
from anon_pipeline_tests.end_to_end.harness import Ended, Place, full_policy, people, write_dataset
from anon_pipeline_tests.pipeline import in_steps

NAME, CITY, INCOME = "Quackenbush", "Xanadu-on-Sea", 918273645
SECRETS = [NAME, CITY, str(INCOME)]

GOSSIP = """
from sklearn.tree import DecisionTreeClassifier

class Gossip(DecisionTreeClassifier):
    def fit(self, X, y, sample_weight=None):
        raise ValueError(f"cannot fit {X} {y}, 'Xanadu-on-Sea', 918273645, Zebulon Quackenbush")

def make():
    return Gossip()
"""


@pytest.fixture
def secretive(fresh: Place) -> Place:
    """A dataset with a name a row, a city where one person lives, and a number that one person has."""
    spec = full_policy()
    spec["columns"] |= {
        "name": {"role": "identifier"},
        "income": {"role": "quasi_identifier", "type": "numeric"},
        "iban": {"role": "exclude"},
    }
    frame = people().assign(name=[f"{NAME} {i:03}" for i in range(400)], income=range(20_000, 60_000, 100))
    frame["iban"] = frame["name"] + " IBAN"
    frame.loc[111, "city"] = CITY
    frame.loc[222, "income"] = INCOME
    write_dataset(fresh.dataset, frame, spec)
    return fresh


def everything_told(place: Place, ended: Ended) -> dict[str, str]:
    """All that anyone may read: what was printed, both run databases, results of checks, and the releases as text.

    A fitted guide knows people, as other stored results do: MLflow keeps it, and its UI does not serve it.
    """
    told = {"stdout": ended.stdout, "stderr": ended.stderr}
    for folder in ("checks", "dagster", "mlflow", "locks"):
        for file in (place.home.private / folder).rglob("*"):
            if file.is_file() and file.name != PICKLE:
                told[f"{folder}/{file.name}"] = file.read_bytes().decode("latin-1")
    for file in place.home.releases.rglob("*"):
        if file.suffix == ".parquet":
            told[file.name] = pd.read_parquet(file).astype(str).to_csv()
        if file.is_file():
            told[f"bytes of {file.name}"] = file.read_bytes().decode("latin-1")
    return told


def assert_nothing_leaks(place: Place, ended: Ended) -> None:
    told = everything_told(place, ended)
    assert any(name.endswith(".db") and name.startswith("dagster") for name in told)
    assert any(name.endswith(".db") and name.startswith("mlflow") for name in told)
    assert_no_secret_in(told)


def assert_no_secret_in(told: dict[str, str]) -> None:
    assert [(where, secret) for where, text in told.items() for secret in SECRETS if secret in text] == []


def assert_private_zone_is_private(place: Place) -> None:
    assert stat.S_IMODE(place.home.private.stat().st_mode) == 0o700
    open_files = [
        str(file)
        for file in place.home.private.rglob("*")
        if stat.S_IMODE(file.stat().st_mode) & (stat.S_IROTH | stat.S_IWOTH)
    ]
    assert open_files == []


def test_a_release_tells_nobodys_value(secretive: Place) -> None:
    ended = secretive.run()
    assert ended.exit_code == 0, ended.said
    assert_nothing_leaks(secretive, ended)
    assert_private_zone_is_private(secretive)
    assert set(pd.read_parquet(secretive.release / "data.parquet").columns) == {
        "age", "city", "sex", "ill", "visits", "income",
    }  # fmt: skip


def test_neither_does_one_of_ranges(
    secretive: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor is such a value told to Dagster or MLflow, of any step or check, or to a log."""
    text = (secretive.dataset / "release.yaml").read_text() + "recode: {form: range}\n"
    (secretive.dataset / "release.yaml").write_text(text)
    told: list[str] = []

    def making(*given: Any) -> StepResult:
        result = make(*given)
        told.append(repr((result.rows, result.metadata, result.metrics, result.data_version)))
        return result

    def answering(*given: Any) -> list[Answer]:
        answers = answer(*given)
        told.append(repr(answers))
        return answers

    monkeypatch.setattr(in_steps, "make", making)
    monkeypatch.setattr(in_steps, "answer", answering)
    with caplog.at_level("DEBUG", logger="anon_pipeline"):
        in_steps.released_in_steps(secretive)
    assert len(told) == len(graph_of(secretive.spec).parts) and "classes" in caplog.text
    assert_no_secret_in(everything_told(secretive, Ended(0, caplog.text, "\n".join(told))))


def test_published_files_can_be_read_by_all(template: Place) -> None:
    for file in template.release.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert stat.S_IMODE(template.release.stat().st_mode) == 0o755


def test_a_model_that_quotes_people_is_not_quoted(secretive: Place, folder: Path) -> None:
    (folder / "gossip.py").write_text(GOSSIP)
    text = (secretive.dataset / "release.yaml").read_text()
    (secretive.dataset / "release.yaml").write_text(
        text.replace("model: decision_tree", "model: {import: 'gossip:make'}")
    )
    ended = secretive.run("--allow-code", path=folder)
    assert ended.exit_code == 2, ended.said
    assert "gossip:make" in ended.sentence
    assert_nothing_leaks(secretive, ended)
    assert secretive.releases() == {}


@pytest.mark.parametrize("at", [sabotage.the_engine_quotes_a_row, sabotage.the_engine_quotes_a_row_in_a_cause])
def test_an_internal_error_keeps_its_story_in_the_private_zone(secretive: Place, at: Callable[[], None]) -> None:
    ended = secretive.run(sabotage=at)
    assert ended.exit_code == 1
    assert "internal error (RuntimeError)" in ended.sentence
    assert "Traceback" not in ended.said
    assert_nothing_leaks(secretive, ended)
    assert_private_zone_is_private(secretive)
    (story,) = (secretive.home.private / "errors").iterdir()
    assert NAME in story.read_text()
    assert secretive.releases() == {}


def test_an_error_outside_of_a_run_does_not_quote_people_either(template: Place, tmp_path: Path) -> None:
    from anon_pipeline_tests.end_to_end.harness import command

    people().to_csv(tmp_path / "table.csv")
    ended = command(
        "verify", tmp_path / "table.csv", "--quasi-identifiers", "age", "--k", 2,
        home=template.home.root, sabotage=sabotage.the_engine_quotes_a_row,
    )  # fmt: skip
    assert ended.exit_code == 1
    assert "internal error (RuntimeError)" in ended.sentence
    assert not any(secret in ended.said for secret in SECRETS)
