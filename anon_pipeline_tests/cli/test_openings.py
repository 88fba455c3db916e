"""`releases open`, `check-opening` and `compare`: what is handed to an auditor, and how a check ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.home import Home
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.cli.commands import run, sentence
from anon_pipeline_tests.release import test_opening
from anon_pipeline_tests.release.test_publish import TABLE

spec = test_opening.spec  # the fixture


@pytest.fixture
def version(home: Home, engine: DuckDBEngine, spec: ReleaseSpec, tmp_path: Path) -> str:
    """A release of the seven people, which commits to its source."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(test_opening.publish.release_report, "render", lambda content: f"<p>{content['version']}</p>")
        released = test_opening.release(home, engine, spec, tmp_path / "candidate", TABLE)
    return str(released["version"])


@pytest.mark.long
def test_an_opening_goes_to_stdout_or_to_a_new_file_of_its_owner(home: Home, version: str, tmp_path: Path) -> None:
    printed = run("releases", "open", version)
    assert printed.json["opens"]["version"] == version
    assert run("releases", "open", version, "--json").out == printed.out
    file = tmp_path / "opening.json"
    ended = run("releases", "open", version, "--out", file)
    assert (ended.out, ended.err) == ("", f"wrote {file}; give it to the auditor alone\n")
    assert file.read_text() == printed.out
    assert file.stat().st_mode & 0o777 == 0o600
    assert sentence("releases", "open", version, "--out", file) == f"{file}: exists already; name a new file"
    other = tmp_path / "other.json"
    ended = run("releases", "open", version, "--out", other, "--json")
    assert (ended.json, ended.err) == ({"file": str(other)}, "")
    absent = tmp_path / "absent/opening.json"
    said = f"{absent}: cannot be written (No such file or directory)"
    assert sentence("releases", "open", version, "--out", absent) == said


@pytest.mark.long
def test_an_opening_fits_its_source_or_ends_with_3(home: Home, version: str, tmp_path: Path) -> None:
    file = tmp_path / "opening.json"
    run("releases", "open", version, "--out", file)
    ended = run("releases", "check-opening", file, "--spec", tmp_path)
    said = f"people/{version} commits to this source, read as its policy says"
    assert (ended.code, ended.lines, ended.err) == (0, [said], "")
    manifest = home.releases / "people" / version / "manifest.json"
    elsewhere = tmp_path / "manifest.json"
    elsewhere.write_bytes(manifest.read_bytes())
    manifest.unlink()
    ended = run("releases", "check-opening", file, "--spec", tmp_path, "--manifest", elsewhere, "--json")
    assert (ended.code, ended.json) == (0, {"holds": True, "problems": []})
    (tmp_path / "others.csv").write_text((tmp_path / "people.csv").read_text().replace("20", "21"))
    options = ("--spec", tmp_path, "--manifest", elsewhere, "--source", tmp_path / "others.csv")
    ended = run("releases", "check-opening", file, *options)
    assert (ended.code, ended.out, bool(ended.told)) == (3, "", True)
    content = run("releases", "check-opening", file, *options, "--json")
    assert (content.code, content.json) == (3, {"holds": False, "problems": ended.told})


@pytest.mark.long
def test_a_release_is_put_beside_its_source_in_a_private_page(home: Home, version: str, tmp_path: Path) -> None:
    ended = run("releases", "compare", version, "--spec", tmp_path)
    assert ended.code == 0, ended.error
    assert ended.out == ""
    page = ended.err.removeprefix("wrote ").removesuffix("; it tells of people who are not released\n")
    assert Path(page).is_relative_to(home.private)
