"""What a run tells of the ledger: that it cannot sign it, and, after a failure, that its release stands."""

from __future__ import annotations

import errno
import logging
from pathlib import Path

import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home, sha256_of
from anon_pipeline.pipeline import launch
from anon_pipeline.pipeline.launch import Outcome
from anon_pipeline.pipeline.runtime import Runtime
from anon_pipeline.release import ledger, unfinished
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import policy, write_dataset


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").prepare()


@pytest.fixture
def spec(tmp_path: Path) -> ReleaseSpec:
    return ReleaseSpec.load(write_dataset(tmp_path / "people", spec=policy("people")))


def publish(home: Home, version: str) -> None:
    folder = home.releases / "people" / version
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(f'{{"version": "{version}"}}')
    with home.lock("ledger"):
        ledger.append(home, "publish", "people", version, sha256_of(folder / "manifest.json"))


def ended(
    home: Home, spec: ReleaseSpec, monkeypatch: pytest.MonkeyPatch, end: Exception | Outcome, new: bool
) -> Outcome:
    """The outcome of a run that ends so, after it has published or not."""

    def run(*_: object) -> Outcome:
        if new:
            publish(home, "bbbb")
        if isinstance(end, Exception):
            raise end
        return end

    monkeypatch.setattr(launch, "_launched", run)
    publish(home, "aaaa")
    return launch.launch(spec, home, Runtime(home=str(home.root)))


FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("end", [FULL, Outcome(2, "id", ["release: the disk is full; free or allow disk space"])])
def test_a_disk_that_is_full_after_the_release_takes_nothing_back(
    home: Home, spec: ReleaseSpec, monkeypatch: pytest.MonkeyPatch, end: Exception | Outcome
) -> None:
    outcome = ended(home, spec, monkeypatch, end, new=True)
    assert (outcome.exit_code, outcome.released, outcome.new) == (4, True, True)
    assert outcome.folder == home.releases / "people" / "bbbb" and outcome.manifest == {"version": "bbbb"}
    assert "what follows the release failed" in outcome.failures[0] and "the disk is full" in outcome.failures[0]


def test_an_error_that_quotes_a_person_is_told_by_its_kind_alone(
    home: Home, spec: ReleaseSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = ended(home, spec, monkeypatch, ValueError("Anna, 93"), new=True)
    assert "ValueError" in outcome.failures[0] and "Anna" not in outcome.failures[0]


@pytest.mark.parametrize("end", [FULL, InputError("people: the source is gone"), ValueError("of our own")])
def test_what_ends_before_the_release_ends_as_ever(
    home: Home, spec: ReleaseSpec, monkeypatch: pytest.MonkeyPatch, end: Exception
) -> None:
    with pytest.raises(type(end)):
        ended(home, spec, monkeypatch, end, new=False)


@pytest.mark.parametrize("code", [0, 2, 3, 4])
def test_an_outcome_without_a_new_release_stays(
    home: Home, spec: ReleaseSpec, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    outcome = Outcome(code, "id", [])
    assert ended(home, spec, monkeypatch, outcome, new=False) is outcome


def test_a_refusal_is_not_undone_by_a_release_of_somebody_else(
    home: Home, spec: ReleaseSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = Outcome(3, "id", ["every class has at least 10 people"])
    assert ended(home, spec, monkeypatch, outcome, new=True) is outcome


def test_a_release_that_is_current_again_is_not_one_of_this_run(
    home: Home, spec: ReleaseSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody withdraws the last one while a run fails: the one before stands again, and nothing was published."""
    publish(home, "aaaa")
    publish(home, "bbbb")

    def run(*_: object) -> Outcome:
        withdrawn = sha256_of(home.releases / "people" / "bbbb" / "manifest.json")
        with home.lock("ledger"):
            ledger.append(home, "withdraw", "people", "bbbb", withdrawn, "a mistake")
        return outcome

    outcome = Outcome(2, "id", ["the source is gone"])
    monkeypatch.setattr(launch, "_launched", run)
    assert launch.launch(spec, home, Runtime(home=str(home.root))) is outcome


def test_the_release_of_a_killed_run_is_not_one_of_this_run(
    home: Home, spec: ReleaseSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run is killed after its folder appeared; the next one enters its line in the ledger, and fails after that."""
    publish(home, "aaaa")
    folder = home.releases / "people" / "bbbb"
    folder.mkdir()
    (folder / "manifest.json").write_text('{"version": "bbbb"}')
    with home.lock("ledger"):
        unfinished.note(home, "publish", "people", "bbbb", sha256_of(folder / "manifest.json"))

    def run(*_: object) -> Outcome:
        with home.lock("ledger"):
            unfinished.finish(home)
        return outcome

    outcome = Outcome(2, "id", ["the source is gone"])
    monkeypatch.setattr(launch, "_launched", run)
    assert launch.launch(spec, home, Runtime(home=str(home.root))) is outcome
    assert ledger.last_version(home, "people") == "bbbb"


@pytest.mark.parametrize("signed", [True, False])
def test_a_run_says_before_its_work_that_it_cannot_sign(
    home: Home, spec: ReleaseSpec, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, signed: bool
) -> None:
    """It was told at the last step, after all work."""
    publish(home, "aaaa")
    if signed:
        ledger.signature_file(home).write_bytes(bytes(64))
    outcome = Outcome(0, "id", [])
    monkeypatch.setattr(launch, "_launched", lambda *_: outcome)
    with caplog.at_level(logging.WARNING, logger="anon_pipeline"):
        assert launch.launch(spec, home, Runtime(home=str(home.root))) is outcome
    assert ("nothing new can be published" in caplog.text) is signed
