"""A spec that drops what former releases promised says so, or nothing is released."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import Home, sha256_of
from anon_pipeline.release import ledger
from anon_pipeline.release.promises import require_an_answer
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.people import write_spec

ROLES = {"id": "identifier", "age": "quasi_identifier", "t": "sensitive"}
ASKED = {"person": "id", "across_releases": {"k": 2, "window": 2}}


def spec(folder: Path, **more: object) -> ReleaseSpec:
    return write_spec(folder, ROLES, "people.csv", **more)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home in which a release of `people` was made under a promise, and one of others."""
    home = Home(tmp_path / "home").prepare()
    for dataset, policy in (("people", {"across_releases": {"k": 2, "window": 2}}), ("others", {})):
        folder = home.releases / dataset / "aaaa"
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text(json.dumps({"files": {}, "spec": policy}))
        with home.lock("ledger"):
            ledger.append(home, "publish", dataset, "aaaa", sha256_of(folder / "manifest.json"))
    return home


def test_silence_is_refused_and_every_word_is_taken(home: Home, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="across_releases_ended: <why>"):
        require_an_answer(home, spec(tmp_path))
    with pytest.raises(InputError, match="across_releases_ended: <why>"):
        require_an_answer(home, spec(tmp_path, person="id"))
    require_an_answer(home, spec(tmp_path, **ASKED))
    require_an_answer(home, spec(tmp_path, across_releases_ended="the study is over"))
    require_an_answer(home, spec(tmp_path, dataset="others"))
    require_an_answer(Home(tmp_path / "another").prepare(), spec(tmp_path))


def test_a_withdrawn_release_has_promised_too(home: Home, tmp_path: Path) -> None:
    with home.lock("ledger"):
        manifest = ledger.read(home)[0].manifest
        ledger.append(home, "withdraw", "people", "aaaa", manifest, "why")
    with pytest.raises(InputError, match="across_releases_ended: <why>"):
        require_an_answer(home, spec(tmp_path))


@pytest.mark.parametrize("gone", [True, False])
def test_a_promise_that_cannot_be_read_is_taken_for_one(home: Home, tmp_path: Path, gone: bool) -> None:
    manifest = home.releases / "people" / "aaaa" / "manifest.json"
    manifest.unlink() if gone else manifest.write_text(json.dumps({"files": {}, "spec": {}}))
    with pytest.raises(Refused, match="people/aaaa is not what was published"):
        require_an_answer(home, spec(tmp_path))


def test_both_at_once_is_no_spec(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="across_releases_ended: across_releases is demanded"):
        spec(tmp_path, **ASKED, across_releases_ended="why")


def test_the_reason_is_part_of_the_policy_and_silence_is_none(tmp_path: Path) -> None:
    assert "across_releases_ended" not in spec(tmp_path).policy()
    assert spec(tmp_path, across_releases_ended="over").policy()["across_releases_ended"] == "over"


@pytest.mark.parametrize("asked", [{"k": 2}, {"window": 2}, {"departures": "at_once"}])
def test_a_promise_is_not_lowered_in_silence(home: Home, tmp_path: Path, asked: dict[str, object]) -> None:
    """k = 2 in place of 10 was taken without a word: 99.7 % of the people had fewer than 10 candidates afterwards."""
    promised: dict[str, object] = {"k": 5, "window": 4, "departures": "in_company"}
    manifest = home.releases / "people" / "bbbb" / "manifest.json"
    manifest.parent.mkdir()
    manifest.write_text(json.dumps({"files": {}, "spec": {"across_releases": promised}}))
    with home.lock("ledger"):
        ledger.append(home, "publish", "people", "bbbb", sha256_of(manifest))
    lowered: dict[str, Any] = {"person": "id", "across_releases": promised | asked}
    with pytest.raises(InputError, match=f"{next(iter(asked))}.* less than the release bbbb .*_lowered: <why>"):
        require_an_answer(home, spec(tmp_path, **lowered))
    require_an_answer(home, spec(tmp_path, **lowered, across_releases_lowered="fewer people come"))
    for kept in (promised, promised | {"k": 6, "window": 5}):
        require_an_answer(home, spec(tmp_path, person="id", across_releases=kept))


def test_the_reason_of_a_former_release_is_none_for_less_than_it_demanded(home: Home, tmp_path: Path) -> None:
    """It stays in the spec for releases before that one, and every later demand was lowered by it without a word."""
    why: dict[str, Any] = {"person": "id", "across_releases_lowered": "fewer people come"}
    for version, policy in (
        ("bbbb", {"across_releases": {"k": 10, "window": 4}}),
        ("cccc", {"across_releases": {"k": 5, "window": 4}, "across_releases_lowered": "fewer people come"}),
    ):
        manifest = home.releases / "people" / version / "manifest.json"
        manifest.parent.mkdir()
        manifest.write_text(json.dumps({"files": {}, "spec": policy}))
        with home.lock("ledger"):
            ledger.append(home, "publish", "people", version, sha256_of(manifest))
    require_an_answer(home, spec(tmp_path, **why, across_releases={"k": 5, "window": 4}))
    with pytest.raises(InputError, match=r"k is 3 in place of 5.* cccc .*was one for cccc already"):
        require_an_answer(home, spec(tmp_path, **why, across_releases={"k": 3, "window": 4}))
    anew = why | {"across_releases_lowered": "fewer still"}
    require_an_answer(home, spec(tmp_path, **anew, across_releases={"k": 3, "window": 4}))


def test_what_is_lowered_is_demanded_and_its_reason_published(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="across_releases_lowered: nothing is demanded"):
        spec(tmp_path, across_releases_lowered="why")
    assert "across_releases_lowered" not in spec(tmp_path, **ASKED).policy()
    assert spec(tmp_path, **ASKED, across_releases_lowered="few").policy()["across_releases_lowered"] == "few"
