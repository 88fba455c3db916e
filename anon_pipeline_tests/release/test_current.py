"""The current release: what ledger and pointer say after any order of publications, returns, withdrawals and kills."""

import json
import os
import tempfile
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from anon_pipeline import home as home_module
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import Refused
from anon_pipeline.home import Home, sha256_of
from anon_pipeline.release import ledger, publish, unfinished
from anon_pipeline.release.publication import MANIFEST
from anon_pipeline.release.publish import DATA
from anon_pipeline.release.withdraw import withdraw
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.release import test_publish
from anon_pipeline_tests.release.test_publish import FACTS, SPEC, TABLE, candidate_of

engine, home, _plain_report = test_publish.engine, test_publish.home, test_publish._plain_report


def pointed(home: Home, dataset: str = "people") -> str | None:
    pointer = home.releases / dataset / ledger.POINTER
    return os.readlink(pointer) if pointer.is_symlink() else None


@pytest.mark.long
def test_a_source_that_goes_back_makes_its_release_the_current_one(
    home: Home, engine: DuckDBEngine, tmp_path: Path
) -> None:
    one, two = candidate_of(tmp_path / "a", TABLE), candidate_of(tmp_path / "b", pd.concat([TABLE, TABLE]))
    first, second, third, again = [
        publish.publish(home, SPEC, engine, candidate, FACTS) for candidate in (one, two, one, one)
    ]
    assert [entry.action for entry in ledger.read(home)] == ["publish", "publish", "current"]
    assert (third.version, third.new) == (again.version, again.new) == (first.version, False)
    assert ledger.last_version(home, "people") == pointed(home) == first.version
    assert (home.releases / "people" / "current" / DATA).read_bytes() == (first.folder / DATA).read_bytes()
    assert ledger.verify(home) == []

    withdraw(home, first.version, "too much")
    assert ledger.last_version(home, "people") == pointed(home) == second.version
    withdraw(home, second.version, "too much")
    assert ledger.last_version(home, "people") is pointed(home) is None
    with pytest.raises(Refused, match="was withdrawn"):
        publish.publish(home, SPEC, engine, one, FACTS)
    assert ledger.verify(home) == []


def release_folder(home: Home, version: str) -> Path:
    folder = home.releases / "people" / version
    folder.mkdir(parents=True)
    (folder / DATA).write_text(f"data of {version}")
    (folder / MANIFEST).write_text(json.dumps({"files": {DATA: {"sha256": sha256_of(folder / DATA)}}}))
    return folder


def enter(home: Home, action: str, version: str) -> None:
    with home.lock("ledger"):
        unfinished.enter(home, action, "people", version, sha256_of(home.releases / "people" / version / MANIFEST))


@pytest.mark.parametrize("wrong", ["to another release", "out of the folder", "a folder of its own"])
def test_a_pointer_that_was_moved_is_found(home: Home, tmp_path: Path, wrong: str) -> None:
    for version in ("aaaa", "bbbb"):
        release_folder(home, version)
        enter(home, ledger.PUBLISH, version)
    pointer = home.releases / "people" / ledger.POINTER
    pointer.unlink()
    if wrong == "a folder of its own":
        pointer.mkdir()
        assert ledger.verify(home) == ["people/current: the ledger does not know it"]
        return
    target = "aaaa" if wrong == "to another release" else str(tmp_path)
    pointer.symlink_to(target)
    assert ledger.verify(home) == [f"people/current: leads to {target}, and not to the current release"]


def test_a_line_that_makes_a_withdrawn_release_current_is_found(home: Home) -> None:
    release_folder(home, "aaaa")
    enter(home, ledger.PUBLISH, "aaaa")
    withdraw(home, "aaaa", "too much")
    manifest = sha256_of(home.releases / "people" / "aaaa" / MANIFEST)
    with home.lock("ledger"):
        ledger.append(home, ledger.CURRENT, "people", "aaaa", manifest)
    assert ledger.verify(home) == ["ledger line 3 is neither of a new release nor of one that stands before"]


class Killed(BaseException):
    """The command ends here."""


class Releasing(RuleBasedStateMachine):
    """Publications, returns and withdrawals, each perhaps killed when a file is about to get its name."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.home = Home(Path(self.folder.name) / "home").prepare()
        self.versions = 0
        self.standing: list[str] = []  # in the order in which they became current, once each

    def teardown(self) -> None:
        self.folder.cleanup()

    def done(self, action: str, version: str, kill: int) -> None:
        """Do it, killed at the `kill`-th rename; then the next command finishes what there is to finish."""
        calls, replace = 0, os.replace

        def replaced(source: str, target: str) -> None:
            nonlocal calls
            if calls == kill:
                raise Killed
            calls += 1
            replace(source, target)

        home_module.os.replace = replaced  # type: ignore[assignment]
        try:
            enter(self.home, action, version)
        except Killed:
            pass
        finally:
            home_module.os.replace = replace
        with self.home.lock("ledger"):
            unfinished.finish(self.home)

    def entered(self, action: str, version: str) -> bool:
        return any((one.action, one.version) == (action, version) for one in ledger.read(self.home))

    @rule(kill=st.integers(0, 9))
    def publishes(self, kill: int) -> None:
        self.versions += 1
        version = f"v{self.versions}"
        folder = release_folder(self.home, version)
        self.done(ledger.PUBLISH, version, kill)
        if self.entered(ledger.PUBLISH, version):
            self.standing.append(version)
        else:  # killed before it was written down that it would appear
            for file in folder.iterdir():
                file.unlink()
            folder.rmdir()

    @precondition(lambda self: self.standing)
    @rule(data=st.data(), kill=st.integers(0, 9))
    def returns(self, data: st.DataObject, kill: int) -> None:
        version = data.draw(st.sampled_from(self.standing))
        before = len(ledger.read(self.home))
        if version == self.standing[-1]:
            return
        self.done(ledger.CURRENT, version, kill)
        if len(ledger.read(self.home)) > before:
            self.standing.remove(version)
            self.standing.append(version)

    @precondition(lambda self: self.standing)
    @rule(data=st.data(), kill=st.integers(0, 9))
    def withdraws(self, data: st.DataObject, kill: int) -> None:
        version = data.draw(st.sampled_from(self.standing))
        self.done(ledger.WITHDRAW, version, kill)
        if self.entered(ledger.WITHDRAW, version):
            self.standing.remove(version)

    @invariant()
    def ledger_and_pointer_agree(self) -> None:
        expected = self.standing[-1] if self.standing else None
        assert ledger.last_version(self.home, "people") == pointed(self.home) == expected
        assert ledger.verify(self.home) == []


TestReleasing = pytest.mark.long(Releasing.TestCase)
TestReleasing.settings = settings(max_examples=times(40), stateful_step_count=12)
