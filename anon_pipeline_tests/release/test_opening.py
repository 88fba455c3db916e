"""A commitment is opened by what is kept of it and by nothing else, and says nothing without it."""

import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer

from anon_pipeline.cli import openings as commands
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home, sha256_of
from anon_pipeline.release import comparison, publish
from anon_pipeline.release import opening as openings
from anon_pipeline.release.comparison import compare
from anon_pipeline.release.opening import Opened, Opening, check_opening, opening_of
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.people import write_spec
from anon_pipeline_tests.release.test_publish import CLASSES, DATA, TABLE

OPENED = Opened("people", "0123456789ab", 7, "0" * 64, None)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").prepare()


@pytest.fixture
def engine(tmp_path: Path) -> DuckDBEngine:
    return DuckDBEngine(tmp_path / "spill")


@pytest.fixture
def spec(tmp_path: Path) -> ReleaseSpec:
    TABLE.assign(name=list("abcdefg")).to_csv(tmp_path / "people.csv", index=False)
    columns = {"age": {"role": "quasi_identifier", "type": "numeric"}, "ill": "sensitive", "name": "identifier"}
    return write_spec(tmp_path, columns, "people.csv", k=3, target="ill")


@pytest.fixture
def released(home: Home, engine: DuckDBEngine, spec: ReleaseSpec, tmp_path: Path) -> dict[str, Any]:
    """The manifest of a release of the seven people."""
    return release(home, engine, spec, tmp_path / "candidate", TABLE)


def release(
    home: Home, engine: DuckDBEngine, spec: ReleaseSpec, candidate: Path, table: pd.DataFrame
) -> dict[str, Any]:
    candidate.mkdir()
    table.to_parquet(candidate / DATA, index=False)
    pd.DataFrame({"class_size": [3, 4], "age": [20, 50]}).to_parquet(candidate / CLASSES, index=False)
    stored = engine.store_source(spec, candidate / "stored.parquet")
    facts = {
        "source": {"rows": 7, "content_hash": stored.content_hash, "columns": []},
        "rows": {"source": 7, "released": 7, "suppressed": 0},
    }
    return publish.publish(home, spec, engine, candidate, facts).manifest


@pytest.fixture(autouse=True)
def _plain_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish.release_report, "render", lambda content: f"<p>{content['version']}</p>")


def test_two_secrets_give_two_commitments_to_the_same_source() -> None:
    assert len({Opening.drawn(OPENED).commitment for _ in range(8)}) == 8


def test_an_opening_says_whether_a_list_is_the_same_and_a_release_tells_nothing_of_it(
    home: Home, engine: DuckDBEngine, spec: ReleaseSpec, tmp_path: Path
) -> None:
    """The attacker knows all people but one, whose illness nobody else has: they try every illness in the list."""
    step = {"technique": "hierarchy", "file": "ills.csv"}
    columns = {"age": {"role": "quasi_identifier", "type": "numeric"}, "ill": {"role": "sensitive", "steps": [step]}}
    spec = write_spec(tmp_path, {**columns, "name": "identifier"}, "people.csv", k=3, target="ill")
    ills = tmp_path / "ills.csv"
    ills.write_text("flu;mild\ngout;grave\n")
    manifest = release(home, engine, spec, tmp_path / "candidate", TABLE)
    opening = opening_of(home, manifest["version"])
    for tried in ("gout", "lupus"):
        ills.write_text(f"flu;mild\n{tried};grave\n")
        assert spec.policy_hash == manifest["spec_hash"]
        assert sha256_of(ills) not in json.dumps(manifest)
        problems = check_opening(opening, manifest, spec, engine, tmp_path)
        assert problems == ([] if tried == "gout" else ["a list that the spec names is not the one of the release"])


def test_the_secret_stands_in_no_repr() -> None:
    opening = Opening.drawn(OPENED)
    assert opening.secret not in repr(opening)


@pytest.mark.long
def test_an_opening_is_kept_for_its_owner_alone_and_nothing_of_it_leaves(home: Home, released: dict[str, Any]) -> None:
    kept = home.private / "openings" / "people" / f"{released['version']}.json"
    opening = Opening.read(kept)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert released["source"]["commitment"] == opening.commitment
    for file in home.releases.rglob("*"):
        assert not file.is_file() or not any(
            one.encode() in file.read_bytes() for one in (opening.secret, opening.opens.content_hash)
        )


@pytest.mark.long
def test_the_opening_fits_its_release_and_its_source(
    home: Home, engine: DuckDBEngine, spec: ReleaseSpec, released: dict[str, Any], tmp_path: Path
) -> None:
    opening = opening_of(home, released["version"])
    assert check_opening(opening, released, spec, engine, tmp_path) == []
    everybody = pd.read_csv(tmp_path / "people.csv")
    everybody[::-1].to_csv(tmp_path / "people.csv", index=False)  # their order says nothing
    assert check_opening(opening, released, spec, engine, tmp_path) == []
    everybody.assign(name=list("abcdefh")).to_csv(tmp_path / "people.csv", index=False)
    assert check_opening(opening, released, spec, engine, tmp_path) == [
        "the source is not the one that the opening is about"
    ]


@pytest.mark.long
def test_what_does_not_fit_is_told(
    home: Home, engine: DuckDBEngine, spec: ReleaseSpec, released: dict[str, Any], tmp_path: Path
) -> None:
    opening = opening_of(home, released["version"])
    other = Opening(opening.opens, "00" * 32)
    assert check_opening(other, released, spec, engine, tmp_path) == ["the opening is not what the manifest commits to"]
    (problem,) = check_opening(opening, released | {"version": "x"}, spec, engine, tmp_path)
    assert "is not that of people/" in problem
    stricter = spec.replaced({"privacy.k_anonymity.k": 4})
    (problem,) = check_opening(opening, released, stricter, engine, tmp_path)
    assert "is not the policy of the release, so" in problem and "as it was when the release was made" in problem


@pytest.mark.long
def test_the_commitment_that_an_opening_states_is_compared_too(
    home: Home, engine: DuckDBEngine, spec: ReleaseSpec, released: dict[str, Any], tmp_path: Path
) -> None:
    """Whoever compares it with the manifest by eye, and then runs the check, would have been told that all fits."""
    file = home.private / "openings" / "people" / f"{released['version']}.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps(content | {"commitment": "00" * 32}))
    assert check_opening(Opening.read(file), released, spec, engine, tmp_path) == [
        "the commitment that the opening states does not follow from its secret and what it opens"
    ]
    del content["commitment"]  # it follows from the rest
    file.write_text(json.dumps(content))
    assert check_opening(Opening.read(file), released, spec, engine, tmp_path) == []


@pytest.mark.long
def test_the_owner_sees_the_release_beside_its_source(
    home: Home, engine: DuckDBEngine, spec: ReleaseSpec, released: dict[str, Any], tmp_path: Path
) -> None:
    found = compare(home, released["version"], spec, engine, tmp_path)
    assert {column.name: (column.groups, column.before, column.after) for column in found.columns} == {
        "age": (("under 25", "25 and over"), (3, 4), (3, 4)),
        "ill": (("no", "yes"), (4, 3), (4, 3)),
    }
    assert stat.S_IMODE(found.page.stat().st_mode) == 0o600


@pytest.mark.long
def test_a_release_is_not_put_beside_another_source_or_under_another_policy(
    home: Home, engine: DuckDBEngine, spec: ReleaseSpec, released: dict[str, Any], tmp_path: Path
) -> None:
    stricter = spec.replaced({"privacy.k_anonymity.k": 4})
    with pytest.raises(InputError, match="is not the policy of the release"):
        compare(home, released["version"], stricter, engine, tmp_path)
    TABLE.assign(name=list("abcdefg"), age=[20] * 4 + [50] * 3).to_csv(tmp_path / "people.csv", index=False)
    with pytest.raises(InputError, match="the source is not the one that the opening is about"):
        compare(home, released["version"], spec, engine, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("said", [{"kind": "synthetic"}, {"groups": {"classes": 3}}])
def test_a_release_without_rows_of_people_cannot_be_put_beside_them(
    home: Home, engine: DuckDBEngine, spec: ReleaseSpec, released: dict[str, Any], tmp_path: Path,
    said: dict[str, Any], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(comparison, "manifest_of", lambda home, entry: {**released, **said})
    with pytest.raises(InputError, match="shows no rows of people"):
        compare(home, released["version"], spec, engine, tmp_path)


@pytest.mark.long
def test_ranges_cannot_be_put_beside_numbers(
    home: Home, engine: DuckDBEngine, spec: ReleaseSpec, tmp_path: Path
) -> None:
    ranges = TABLE.assign(age=["20 to 30"] * 3 + ["50 to 60"] * 4)
    manifest = release(home, engine, spec, tmp_path / "candidate", ranges)
    age, ill = compare(home, manifest["version"], spec, engine, tmp_path).columns
    assert (age.groups, age.before, age.after) == (("50 to 60", "20 to 30"), None, (4, 3))
    assert age.why_not == "the release shows values of another kind" and not ill.why_not


@pytest.mark.long
@pytest.mark.parametrize("secret", ["00" * 31, "00" * 33, "", "zz" * 32])
def test_a_secret_has_256_bits(home: Home, released: dict[str, Any], tmp_path: Path, secret: str) -> None:
    content = opening_of(home, released["version"]).to_json()
    (tmp_path / "x.json").write_text(json.dumps(content))
    assert Opening.read(tmp_path / "x.json").commitment == content["commitment"]
    (tmp_path / "x.json").write_text(json.dumps(content | {"secret": secret}))
    with pytest.raises(InputError, match="is no opening"):
        Opening.read(tmp_path / "x.json")


@pytest.mark.parametrize("text", ["", "[]", '{"opens": {}, "secret": "00"}', '{"secret": "00"}'])
def test_a_file_that_is_no_opening_is_told_in_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match="is no opening"):
        Opening.read(tmp_path / "x.json")


@pytest.mark.long
def test_an_opening_that_is_not_here_is_told(home: Home, released: dict[str, Any]) -> None:
    (home.private / "openings" / "people" / f"{released['version']}.json").unlink()
    with pytest.raises(InputError, match="its opening is not in this home"):
        opening_of(home, released["version"])


def test_a_release_never_lacks_its_opening(
    home: Home, spec: ReleaseSpec, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Where it cannot be kept, nothing is published."""
    monkeypatch.setattr(openings, "write_file", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        request.getfixturevalue("released")
    assert not list((home.releases / "people").glob("*"))


def test_how_to_compute_it_is_said_in_the_opening() -> None:
    """As an auditor would, with nothing of ours."""
    import hashlib
    import hmac

    opening = json.loads(json.dumps(Opening.drawn(OPENED).to_json()))
    message = json.dumps(opening["opens"], sort_keys=True).encode("ascii")
    assert hmac.new(bytes.fromhex(opening["secret"]), message, hashlib.sha256).hexdigest() == opening["commitment"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"source": "people.csv"}', None])
def test_a_file_that_is_no_manifest_is_told_in_a_sentence(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match="is no manifest that can be read"):
        openings.read_manifest(tmp_path / "x.json")


def test_a_manifest_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"source": {"commitment": "00"}}')
    assert openings.read_manifest(tmp_path / "x.json") == {"source": {"commitment": "00"}}


def test_what_a_killed_check_left_in_the_temporary_folder_is_removed_by_the_next(
    home: Home, spec: ReleaseSpec, released: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The accident: the source, as a Parquet file, stayed in the folder for temporary files after SIGKILL."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    left = tmp_path / "temporary" / f"anon-pipeline-{os.geteuid()}" / "killed"
    left.mkdir(parents=True)
    left.parent.chmod(0o700)
    (left / "source.parquet").touch()
    left.with_suffix(".lock").touch()
    kept = home.private / "openings" / "people" / f"{released['version']}.json"
    seen = []

    def looked(*given: Any) -> list[str]:
        seen.append(given[-1])
        return []

    monkeypatch.setattr(openings, "check_opening", looked)
    manifest = home.releases / "people" / released["version"] / "manifest.json"
    with pytest.raises(typer.Exit):
        commands.check_opening(kept, spec.folder, None, manifest)
    assert [folder.parent for folder in seen] == [left.parent]  # where the next call finds what it leaves if killed
    assert not left.exists() and not seen[0].exists()
