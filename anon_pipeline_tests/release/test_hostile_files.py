"""Files of a publisher who means ill, or a broken disk, end in a sentence: ledgers, manifests and openings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home, sha256_of
from anon_pipeline.release import ledger
from anon_pipeline.release.opening import Opened, Opening, read_manifest

DEEP = "[" * 100_000
ENTRY = {"sequence": 1, "time": "", "action": "publish", "dataset": "people", "version": "aaaa", "manifest": ""}


def home_of(folder: Path, entry: dict[str, Any], manifest: str = '{"files": {}}') -> Home:
    """A folder of releases as somebody else hands it over, with a ledger of one line."""
    home = Home(folder)
    place = home.releases / "people" / "aaaa"
    place.mkdir(parents=True)
    (place / "manifest.json").write_text(manifest)
    line = {**ENTRY, "manifest": sha256_of(place / "manifest.json"), "previous": ledger.FIRST, **entry}
    home.ledger.write_text(json.dumps(line) + "\n")
    return home


@pytest.mark.parametrize("value", [None, 5, [], {}, "", ".", "..", "../people", "people/aaaa", "people\0"])
@pytest.mark.parametrize("field", ["dataset", "version"])
def test_a_line_of_the_ledger_that_names_no_folder_of_its_own_is_told(tmp_path: Path, field: str, value: Any) -> None:
    home = home_of(tmp_path, {field: value})
    assert "ledger line 1 is not readable" in ledger.verify(home)
    with pytest.raises(InputError, match="line 1 is no ledger entry"):
        ledger.read(home)


def test_what_the_other_lines_are_compared_with_holds(tmp_path: Path) -> None:
    assert ledger.verify(home_of(tmp_path, {})) == []


def test_a_line_that_is_nested_too_deep_is_told(tmp_path: Path) -> None:
    home = home_of(tmp_path, {})
    home.ledger.write_text(DEEP + "\n")
    assert "ledger line 1 is not readable" in ledger.verify(home)


@pytest.mark.parametrize(
    "manifest", [DEEP, "[]", "5", "{}", '{"files": 5}', '{"files": {"a": 5}}', '{"files": {"a": {}}}']
)
def test_a_manifest_without_the_files_is_told(tmp_path: Path, manifest: str) -> None:
    told = ledger.verify(home_of(tmp_path, {}, manifest))
    assert told == ["people/aaaa: manifest.json does not name the release's files"]


@pytest.mark.parametrize("change", [{"dataset": "../people"}, {"version": ".."}, {"version": "a/b"}, {"dataset": 5}])
def test_an_opening_leads_to_no_manifest_elsewhere(tmp_path: Path, change: dict[str, Any]) -> None:
    """Whoever hands over an opening could name a manifest of their own, to which it commits."""
    content = Opening.drawn(Opened("people", "aaaa", 7, "0" * 64, None)).to_json()
    (tmp_path / "opening.json").write_text(json.dumps({**content, "opens": {**content["opens"], **change}}))
    with pytest.raises(InputError, match="is no opening"):
        Opening.read(tmp_path / "opening.json")


def test_what_is_nested_too_deep_is_no_opening_and_no_manifest(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text(DEEP)
    with pytest.raises(InputError, match="is no opening"):
        Opening.read(tmp_path / "deep.json")
    with pytest.raises(InputError, match="is no manifest"):
        read_manifest(tmp_path / "deep.json")
