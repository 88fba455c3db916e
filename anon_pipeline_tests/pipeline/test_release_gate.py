"""The release asset relies on nobody: without answers of the checks on these very files nothing is published."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError, Refused
from anon_pipeline.pipeline import stages
from anon_pipeline.pipeline.checks.answers import keep_answers
from anon_pipeline.pipeline.checks.candidate import checks_of
from anon_pipeline.pipeline.execution import make
from anon_pipeline.pipeline.expectations.questions import Answer
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.runtime import BAD_INPUT, REFUSED, Runtime
from anon_pipeline.pipeline.stages import Stages
from anon_pipeline.release import publish
from anon_pipeline.release.descriptors.written import DESCRIPTORS
from anon_pipeline_tests.end_to_end.harness import Place


@pytest.fixture(autouse=True)
def _code_of_the_template(template: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever edits the package while the tests run sees other failures than "another version of the code"."""
    (record,) = (template.home.private / "people" / "raw_data").glob("*/record.json")
    monkeypatch.setattr(stages, "code_hash", lambda: json.loads(record.read_text())["code"])


def release_alone(place: Place) -> tuple[bool, str, int]:
    """Make nothing but `release`: whether it succeeded, what it said, the exit code of such an end."""
    graph = graph_of(place.spec)
    release = next(step for step in graph.steps if step.name == "release")
    run = Runtime(home=str(place.home.root)).run(place.spec, {"dagster": "a test", "mlflow": "a test"})
    try:
        make(graph, release, run)
    except InputError as error:
        return False, str(error), BAD_INPUT
    except Refused as error:
        return False, str(error), REFUSED
    return True, "", 0


def answers(place: Place) -> list[Answer]:
    return [Answer(name, "asked", 0, True, False, "said", True, "") for name in checks_of(place.spec)]


def keep(place: Place, given: list[Answer]) -> None:
    stored = Stages(place.home, place.spec)
    judged = {name: stored.load(name) for name in ("raw_data", "anonymized_table")}
    keep_answers(stored, "candidate_checks", judged, given)


def absent(place: Place) -> None:
    shutil.rmtree(place.home.private / "people" / "candidate_checks")


def source_answers_absent(place: Place) -> None:
    shutil.rmtree(place.home.private / "people" / "source_checks")


def one_failed(place: Place) -> None:
    first, *others = answers(place)
    keep(place, [replace(first, passed=False), *others])


def one_crashed(place: Place) -> None:
    first, *others = answers(place)
    keep(place, [replace(first, passed=False, crashed=True), *others])


def one_half_true(place: Place) -> None:
    first, *others = answers(place)
    keep(place, [replace(first, passed="yes"), *others])  # type: ignore[arg-type]


def one_not_asked(place: Place) -> None:
    keep(place, answers(place)[1:])


def none_asked(place: Place) -> None:
    keep(place, [])


def rewritten_by_hand(place: Place) -> None:
    one_failed(place)
    (file,) = (place.home.private / "people" / "candidate_checks").glob("*/answers.json")
    file.write_text(file.read_text().replace("false", "true"))


def another_candidate(place: Place) -> None:
    stored = Stages(place.home, place.spec)
    candidate = stored.load("anonymized_table")
    raw, cells, tree = (stored.load(name) for name in ("raw_data", "predictions", "anonymizer_tree"))
    facts = candidate.facts | {"released": 1}
    made_from = {"raw_data": raw, "predictions": cells, "anonymizer_tree": tree}
    with stored.store("anonymized_table", made_from, facts) as folder:
        shutil.copytree(candidate.folder, folder, dirs_exist_ok=True)
        (folder / "record.json").unlink()


def candidate_altered(place: Place) -> None:
    (file,) = (place.home.private / "people" / "anonymized_table").glob("*/data.parquet")
    file.write_bytes(file.read_bytes()[:-1] + b"x")


@pytest.mark.parametrize(
    ("spoil", "sentence", "exit_code"),
    [
        (absent, "candidate_checks: has not been made yet", 2),
        (source_answers_absent, "source_checks: has not been made yet", 2),
        (one_failed, "k_anonymity: said", 3),
        (one_crashed, "k_anonymity: said", 3),
        (one_half_true, "k_anonymity: said", 3),
        (one_not_asked, "k_anonymity: was not asked", 3),
        (none_asked, "was not asked", 3),
        (rewritten_by_hand, "answers.json was altered", 2),
        (another_candidate, "candidate_checks: was made from another anonymized_table", 2),
        (candidate_altered, "data.parquet was altered", 2),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_nothing_is_published_without_the_answers(
    fresh: Place, spoil: Callable[[Place], None], sentence: str, exit_code: int
) -> None:
    spoil(fresh)
    success, said, code = release_alone(fresh)
    assert not success
    assert sentence in said
    assert code == exit_code
    assert fresh.releases() == {}


def test_with_all_answers_the_release_is_published(fresh: Place) -> None:
    keep(fresh, answers(fresh))
    assert release_alone(fresh) == (True, "", 0)
    assert {name.split("/")[-1] for name in fresh.releases()} == {
        "classes.parquet", "data.parquet", "ledger.jsonl", "manifest.json", "openlineage.jsonl", "prov.json",
        "report.html", *DESCRIPTORS,
    }  # fmt: skip


def test_even_where_every_answer_says_yes_the_written_file_is_counted_once_more(
    fresh: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = publish.shutil.copyfile

    def spoiled(source: Path, destination: Path) -> None:
        copy(source, destination)
        if destination.name == "data.parquet":
            table = pd.read_parquet(destination)
            table.loc[5, "age"] = 97
            table.to_parquet(destination)

    monkeypatch.setattr(publish.shutil, "copyfile", spoiled)
    success, said, code = release_alone(fresh)
    assert not success
    assert code == 3
    assert "classes fail" in said
    assert fresh.releases() == {}


def test_a_file_that_is_not_what_was_counted_while_it_was_written_is_not_published(
    fresh: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its figures carry the noise of what was counted: taken off by whoever sees both versions."""
    hashed = DuckDBEngine.content_hash

    def another(engine: DuckDBEngine, file: Path) -> tuple[int, str]:
        rows, content = hashed(engine, file)
        return rows, content[::-1]

    monkeypatch.setattr(DuckDBEngine, "content_hash", another)
    success, said, code = release_alone(fresh)
    assert not success
    assert code == 3
    assert "counted while it was written" in said
    assert fresh.releases() == {}
