"""Commands that take the same kind of thing take the same options for it."""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline_tests.end_to_end.harness import Place, command


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """Forty people in a text file that no command reads right by itself."""
    rows = ["a;b;c", *(f"{number % 2};Zürich;x{number % 3}" for number in range(40))]
    file = tmp_path / "foreign.csv"
    file.write_bytes("\n".join(rows).encode("cp1252"))
    return file


@pytest.mark.parametrize("what", ["verify", "attack", "profile"])
def test_every_command_that_reads_a_table_is_told_how_it_is_written(foreign: Path, tmp_path: Path, what: str) -> None:
    columns = ["--quasi-identifiers", "a,b"]
    asked = {"verify": [*columns, "--k", "10"], "attack": ["--original", foreign, *columns], "profile": []}[what]
    written = ["--delimiter", ";", "--encoding", "cp1252"]
    ended = command(what, foreign, *asked, *written, "--json", home=tmp_path / "home")
    assert ended.exit_code == 0, ended.said
    assert json.loads(ended.stdout)["rows"] == 40
    assert command(what, foreign, *asked, "--delimiter", "", home=tmp_path / "home").exit_code == 2


def test_a_version_is_looked_for_among_the_releases_of_one_dataset(template: Place) -> None:
    version, home = template.release.name, template.home.root
    assert command("releases", "show", version, "--dataset", "people", home=home).exit_code == 0
    ended = command("releases", "show", version, "--dataset", "others", "--json", home=home)
    assert ended.exit_code == 2
    assert "there is no such release" in json.loads(ended.stdout)["error"]


@pytest.mark.long
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_stream_that_is_closed_changes_no_exit_code(closed: str) -> None:
    for asked, code in (("steps", 0), ("run nowhere", 2)):
        line = f'exec "$0" -m anon_pipeline {asked} {closed}'
        ended = subprocess.run(["sh", "-c", line, sys.executable], capture_output=True, text=True, check=False)
        assert ended.returncode == code, ended.stderr
        assert "Traceback" not in ended.stderr


@pytest.mark.long
@pytest.mark.parametrize("stream", [">/dev/full", "2>/dev/full", "a pipe without a reader"])
@pytest.mark.parametrize(("asked", "code"), [("steps", 0), ("run nowhere", 2), ("run nowhere --json", 2)])
def test_output_that_is_lost_is_no_failure_of_the_work(stream: str, asked: str, code: int) -> None:
    if asked == "steps" and stream != "2>/dev/full":
        code = 120  # nobody takes a part of the steps for all of them
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with ExitStack() as opened:
        if stream.endswith("/dev/full"):
            streams["stderr" if stream.startswith("2") else "stdout"] = opened.enter_context(
                Path("/dev/full").open("w")
            )
        else:
            reader, writer = os.pipe()
            os.close(reader)
            streams["stdout"] = opened.enter_context(os.fdopen(writer, "w"))
        started = [sys.executable, "-m", "anon_pipeline", *asked.split()]
        ended = subprocess.run(started, **streams, text=True, check=False)
    said = ended.stderr or ""
    assert ended.returncode == code, said
    assert "Traceback" not in said
    assert "the disk is full" not in said
    if stream == ">/dev/full" and asked != "run nowhere":
        assert "standard output cannot be written (No space left on device)" in said


@pytest.mark.long
def test_letters_that_a_stream_or_a_locale_lacks_are_no_internal_error(tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    table.write_text("größe,b\n" + "1,Zürich\n" * 20)
    place = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "ANON_PIPELINE_HOME": str(tmp_path / "home")}

    def profile(file: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
        asked = [sys.executable, "-m", "anon_pipeline", "profile", os.fsencode(file)]
        return subprocess.run(asked, capture_output=True, check=False, env=os.environ | environment)

    written = profile(table, PYTHONIOENCODING="ascii")
    assert written.returncode == 0, written.stderr
    assert b"gr\\xf6\\xdfe" in written.stdout
    for named, environment in (("ö".encode(), place | {"PYTHONUTF8": "0"}), (b"\xf6", {})):
        odd = tmp_path / (os.fsdecode(named) + ".csv")
        table.rename(odd)
        refused = profile(odd, **environment)
        assert refused.returncode == 2, refused.stderr
        assert b"a path has letters that are no UTF-8, or that the locale lacks" in refused.stderr
        odd.rename(table)


def test_a_home_whose_path_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"h\\udcf6me': is not UTF-8"):
        Home(tmp_path / os.fsdecode(b"h\xf6me")).prepare()
