"""Publishing: all of a release or nothing, and never one that the written file does not bear out."""

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from filelock import Timeout

from anon_pipeline import home as home_module
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import Refused
from anon_pipeline.home import Home
from anon_pipeline.release import ledger, publish
from anon_pipeline.release.descriptors.written import DESCRIPTORS
from anon_pipeline.release.publication import MANIFEST
from anon_pipeline.release.publish import CLASSES, DATA, OPENLINEAGE, PROVENANCE, REPORT
from anon_pipeline.spec import ReleaseSpec

POLICY: dict[str, Any] = {
    "dataset": "people",
    "source": {"path": "people.csv"},
    "target": "ill",
    "columns": {
        "age": {"role": "quasi_identifier", "type": "numeric"},
        "ill": {"role": "sensitive"},
        "name": {"role": "identifier"},
    },
    "privacy": {"k_anonymity": {"k": 3}},
}
SPEC = ReleaseSpec.model_validate(POLICY)
TABLE = pd.DataFrame({"age": [20] * 3 + [50] * 4, "ill": ["yes", "no", "no", "no", "yes", "no", "yes"]})
FACTS: dict[str, Any] = {
    "source": {"rows": 7, "content_hash": "0" * 64, "columns": []},
    "rows": {"source": 7, "released": 7, "suppressed": 0},
    "measured": {},
    "utility": {},
    "checks": [],
    "runs": {},
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").prepare()


@pytest.fixture
def engine(tmp_path: Path) -> DuckDBEngine:
    return DuckDBEngine(tmp_path / "spill")


@pytest.fixture(autouse=True)
def _plain_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the report shows is tested elsewhere."""
    monkeypatch.setattr(publish.release_report, "render", lambda content: f"<p>{content['version']}</p>")


@pytest.fixture
def candidate(tmp_path: Path) -> Path:
    return candidate_of(tmp_path / "candidate", TABLE)


def candidate_of(folder: Path, table: pd.DataFrame) -> Path:
    folder.mkdir()
    table.to_parquet(folder / DATA, index=False)
    pd.DataFrame({"class_size": [3, 4], "age": [20, 50]}).to_parquet(folder / CLASSES, index=False)
    return folder


def hidden(home: Home) -> list[Path]:
    return [file for file in home.releases.rglob("*") if file.name.startswith(".")]


def test_everybody_may_enter_the_folder_of_a_dataset_and_only_its_owner_change_it(
    home: Home, engine: DuckDBEngine, candidate: Path
) -> None:
    published = publish.publish(home, SPEC, engine, candidate, FACTS)
    assert stat.S_IMODE(published.folder.parent.stat().st_mode) == 0o755
    assert stat.S_IMODE(published.folder.stat().st_mode) == 0o755


def test_a_candidate_becomes_a_release(home: Home, engine: DuckDBEngine, candidate: Path) -> None:
    published = publish.publish(home, SPEC, engine, candidate, FACTS)
    assert published.new
    assert published.folder == home.releases / "people" / published.version
    assert {file.name for file in published.folder.iterdir()} == {
        DATA, CLASSES, MANIFEST, REPORT, OPENLINEAGE, PROVENANCE, *DESCRIPTORS,
    }  # fmt: skip
    assert (published.folder / DATA).read_bytes() == (candidate / DATA).read_bytes()
    assert json.loads((published.folder / MANIFEST).read_text()) == published.manifest
    assert published.manifest["previous"] is None
    assert published.manifest["spec"] == {name: value for name, value in SPEC.policy().items() if name != "seed"}
    assert "seed" in SPEC.policy()
    assert published.manifest["verified"][0]["holds"]
    assert ledger.verify(home) == []
    assert hidden(home) == []


@pytest.mark.long
def test_twice_is_once(home: Home, engine: DuckDBEngine, candidate: Path) -> None:
    first = publish.publish(home, SPEC, engine, candidate, FACTS)
    second = publish.publish(home, SPEC, engine, candidate, FACTS)
    assert (second.version, second.new, second.manifest) == (first.version, False, first.manifest)
    assert len(ledger.read(home)) == 1


@pytest.mark.long
def test_the_next_release_names_the_one_before(
    home: Home, engine: DuckDBEngine, candidate: Path, tmp_path: Path
) -> None:
    first = publish.publish(home, SPEC, engine, candidate, FACTS)
    other = candidate_of(tmp_path / "other", pd.concat([TABLE, TABLE]))
    second = publish.publish(home, SPEC, engine, other, FACTS)
    assert second.manifest["previous"] == first.version
    assert [change["part"] for change in second.manifest["changes"]] == ["demands"]
    assert first.manifest["changes"] == []
    assert ledger.verify(home) == []


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (TABLE.assign(age=[20] * 2 + [50] * 5), "1 class fails"),
        (TABLE.assign(age=[20, 20, None, 50, 50, 50, 50]), "2 classes fail"),
        (TABLE.assign(name="Zebulon"), "other columns than the spec releases"),
        (TABLE[["age"]], "other columns than the spec releases"),
        (TABLE[["ill"]], "other columns than the spec releases"),
    ],
    ids=["too small", "missing is a value", "an identifier", "a column less", "no quasi-identifier"],
)
def test_a_file_that_does_not_hold_what_is_demanded_is_refused(
    home: Home, engine: DuckDBEngine, tmp_path: Path, table: pd.DataFrame, sentence: str
) -> None:
    with pytest.raises(Refused, match=sentence):
        publish.publish(home, SPEC, engine, candidate_of(tmp_path / "bad", table), FACTS)
    assert not home.ledger.exists()
    assert list((home.releases / "people").iterdir()) == []


def test_a_group_below_the_threshold_is_refused(home: Home, engine: DuckDBEngine, tmp_path: Path) -> None:
    step = {"technique": "aggregate", "columns": ["age", "ill"], "threshold": 10}
    spec = ReleaseSpec.model_validate(POLICY | {"steps": [step]})
    groups = pd.DataFrame({"age": [20, 50], "ill": ["no", "yes"], "people": [9, 10]})
    with pytest.raises(Refused, match=r"1 group fails"):
        publish.publish(home, spec, engine, candidate_of(tmp_path / "bad", groups), FACTS)
    assert not home.ledger.exists()


def test_an_empty_file_is_refused(home: Home, engine: DuckDBEngine, tmp_path: Path) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011
        publish.publish(home, SPEC, engine, candidate_of(tmp_path / "bad", TABLE[:0]), FACTS)
    assert not home.ledger.exists()
    assert list((home.releases / "people").iterdir()) == []


def test_facts_that_json_cannot_hold_publish_nothing(home: Home, engine: DuckDBEngine, candidate: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        publish.publish(home, SPEC, engine, candidate, FACTS | {"measured": {"loss": float("nan")}})
    assert not home.ledger.exists()
    assert list((home.releases / "people").iterdir()) == []


@pytest.mark.parametrize("name", [DATA, CLASSES, MANIFEST, REPORT, OPENLINEAGE, PROVENANCE, *DESCRIPTORS])
def test_a_standing_release_that_was_altered_is_refused(
    home: Home, engine: DuckDBEngine, candidate: Path, name: str
) -> None:
    published = publish.publish(home, SPEC, engine, candidate, FACTS)
    file = published.folder / name
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(Refused, match=f"{name} was altered"):
        publish.publish(home, SPEC, engine, candidate, FACTS)
    assert len(ledger.read(home)) == 1


def test_a_folder_that_the_ledger_does_not_know_is_not_adopted(
    home: Home, engine: DuckDBEngine, candidate: Path
) -> None:
    """Who can write a folder cannot thereby write the ledger: without this, a planted release would be entered."""
    publish.publish(home, SPEC, engine, candidate, FACTS)
    home.ledger.unlink()
    with pytest.raises(Refused, match="the ledger does not know it"):
        publish.publish(home, SPEC, engine, candidate, FACTS)
    assert ledger.read(home) == []


@pytest.mark.long
def test_a_killed_publication_is_entered_by_the_next(
    home: Home, engine: DuckDBEngine, candidate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "append", killed)
        with pytest.raises(SystemExit):
            publish.publish(home, SPEC, engine, candidate, FACTS)
    (left,) = (home.releases / "people").iterdir()
    assert ledger.read(home) == []
    other = publish.publish(home, SPEC, engine, candidate_of(tmp_path / "other", pd.concat([TABLE, TABLE])), FACTS)
    assert [entry.version for entry in ledger.read(home)] == [left.name, other.version]
    assert ledger.verify(home) == []
    assert other.manifest["previous"] == left.name


@pytest.mark.long
def test_a_publication_that_was_killed_before_its_folder_appeared_never_happened(
    home: Home, engine: DuckDBEngine, candidate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line without a folder would say that something was published."""
    rename = os.replace

    def killed(source: str, final: Path) -> None:
        if Path(final).parent.name == "people":
            raise SystemExit
        rename(source, final)

    with monkeypatch.context() as patch:
        patch.setattr(home_module.os, "replace", killed)
        with pytest.raises(SystemExit):
            publish.publish(home, SPEC, engine, candidate, FACTS)
    other = publish.publish(home, SPEC, engine, candidate_of(tmp_path / "other", pd.concat([TABLE, TABLE])), FACTS)
    assert [entry.version for entry in ledger.read(home)] == [other.version]
    assert ledger.verify(home) == []


def test_a_killed_publication_that_was_tampered_with_is_entered_as_what_it_was(
    home: Home, engine: DuckDBEngine, candidate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The private zone remembers the manifest's hash, so whoever rewrites the folder meanwhile is found out."""

    def killed(*_: object, **__: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "append", killed)
        with pytest.raises(SystemExit):
            publish.publish(home, SPEC, engine, candidate, FACTS)
    (left,) = (home.releases / "people").iterdir()
    (left / MANIFEST).write_text(json.dumps({"files": {}}))
    with pytest.raises(Refused, match=r"manifest\.json was altered"):
        publish.publish(home, SPEC, engine, candidate, FACTS)
    assert ledger.verify(home) == [f"people/{left.name}: manifest.json was altered"]


def test_what_a_killed_publication_staged_goes_with_the_next(home: Home, engine: DuckDBEngine, candidate: Path) -> None:
    staged = home.releases / "people" / ".abc.def"
    staged.mkdir(parents=True)
    shutil.copy(candidate / DATA, staged / DATA)
    publish.publish(home, SPEC, engine, candidate, FACTS)
    assert hidden(home) == []


def test_nobody_else_writes_the_ledger_while_a_release_is_published(
    home: Home, engine: DuckDBEngine, candidate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = []

    def rendered(content: dict[str, Any]) -> str:
        with pytest.raises(Timeout), home.lock("ledger", timeout=0):
            pass
        held.append(True)
        return ""

    monkeypatch.setattr(publish.release_report, "render", rendered)
    publish.publish(home, SPEC, engine, candidate, FACTS)
    assert held == [True]
