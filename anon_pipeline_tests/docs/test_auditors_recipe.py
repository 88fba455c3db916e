"""The auditor's recipe finds what was altered, on a machine where nothing but `cryptography` is installed."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import _cffi_backend
import cryptography
import pytest

from anon_pipeline.home import Home
from anon_pipeline.release import ledger, signing
from anon_pipeline.release.withdraw import withdraw
from anon_pipeline_tests.docs.test_docs import blocks
from anon_pipeline_tests.release.test_ledger import publish

SCRIPT = "check_releases.py"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the recipe and the one package that it needs."""
    folder = tmp_path_factory.mktemp("bare")
    for package in (Path(cryptography.__file__).parent, Path(_cffi_backend.__file__)):
        (folder / package.name).symlink_to(package)
    (recipe,) = [block.text for block in blocks("docs/auditor.md") if block.file == SCRIPT]
    (folder / SCRIPT).write_text(recipe)
    return folder


def python(bare: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Python without its installed packages; what lies beside the script it finds."""
    return subprocess.run(
        [sys.executable, "-S", *map(str, arguments)],
        cwd=bare, env={"PATH": os.environ["PATH"], "PYTHONPATH": str(bare)}, capture_output=True, text=True,
    )  # fmt: skip


@pytest.fixture
def releases(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What an auditor is given: three releases, one of them withdrawn, and beside them the public key."""
    key = signing.make_key(tmp_path / "key.pem")
    (tmp_path / "public.pem").write_text(signing.public_pem(key))
    monkeypatch.setenv(signing.FILE_VARIABLE, str(tmp_path / "key.pem"))
    home = Home(tmp_path / "home").prepare()
    for dataset, version in (("people", "aaaa"), ("others", "bbbb"), ("people", "cccc")):
        publish(home, dataset, version)
    withdraw(home, "aaaa", "a column too much")
    shutil.rmtree(home.private)
    return home.releases


def test_it_needs_nothing_of_ours(bare: Path) -> None:
    assert "No module named 'anon_pipeline'" in python(bare, "-c", "import anon_pipeline").stderr
    assert python(bare, "-c", "import pandas").returncode != 0


def test_it_is_about_thirty_lines(bare: Path) -> None:
    assert len([line for line in (bare / SCRIPT).read_text().splitlines() if line.strip()]) <= 42


@pytest.mark.long
def test_what_was_not_altered_holds(bare: Path, releases: Path) -> None:
    ended = python(bare, SCRIPT, releases, releases.parent.parent / "public.pem")
    assert (ended.returncode, ended.stdout) == (0, "4 ledger lines and all their files are what they were\n"), ended
    assert python(bare, SCRIPT, releases).returncode == 0


def _flip(name: str) -> Callable[[Path], None]:
    def change(releases: Path) -> None:
        content = bytearray((releases / name).read_bytes())
        content[len(content) // 2] ^= 1
        (releases / name).write_bytes(content)

    return change


def _cut_off(releases: Path) -> None:
    """The last two lines, with all that they answer for."""
    lines = (releases / "ledger.jsonl").read_text().splitlines(keepends=True)
    (releases / "ledger.jsonl").write_text("".join(lines[:-2]))
    shutil.rmtree(releases / "people" / "cccc")
    manifest = releases / "people" / "aaaa" / "manifest.json"
    (manifest.parent / "data.parquet").write_text("data of aaaa")
    assert json.loads(manifest.read_text())["files"]


@pytest.mark.long
@pytest.mark.parametrize(
    "change",
    [
        _flip("ledger.jsonl"),
        _flip("ledger.jsonl.sig"),
        _flip("others/bbbb/manifest.json"),
        _flip("people/aaaa/manifest.json"),
        _flip("others/bbbb/data.parquet"),
        _cut_off,
        lambda releases: (releases / "ledger.jsonl.sig").unlink(),
        lambda releases: (releases / "others/bbbb/data.parquet").unlink(),
        lambda releases: (releases / "others/bbbb/more.csv").write_text(""),
        lambda releases: (releases / "people/aaaa/data.parquet").write_text("data of aaaa"),
        lambda releases: (releases / "people/dddd").mkdir(),
    ],
    ids=[
        "ledger", "signature", "manifest", "manifest of a withdrawn release", "data", "tail", "no signature", "no data",
        "one file more", "data that was withdrawn", "one folder more",
    ],
)  # fmt: skip
def test_what_was_altered_does_not(bare: Path, releases: Path, change: Callable[[Path], None]) -> None:
    change(releases)
    ended = python(bare, SCRIPT, releases, releases.parent.parent / "public.pem")
    assert ended.returncode != 0
    assert "are what they were" not in ended.stdout
    assert ledger.verify(Home(releases.parent), signing.read_public_key(releases.parent.parent / "public.pem"))
