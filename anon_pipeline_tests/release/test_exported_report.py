"""`anon-pipeline report`: what the ledger vouches for, in the form that was asked for, or a sentence."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import Home, sha256_of
from anon_pipeline.release import ledger, withdraw
from anon_pipeline.release.exported_report import Form, export, form_of
from anon_pipeline.report import markdown as markdown_report
from anon_pipeline.report import printed as printed_report
from anon_pipeline.report import release_report
from anon_pipeline_tests.report.pages import manifest_content

VERSION = manifest_content()["version"]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with one release of `adult`."""
    home = Home(tmp_path / "home").prepare()
    publish(home, "adult")
    return home


def publish(home: Home, dataset: str, files: Mapping[str, Any] = MappingProxyType({})) -> Path:
    folder = home.releases / dataset / VERSION
    folder.mkdir(parents=True)
    file = folder / "manifest.json"
    file.write_text(json.dumps({**manifest_content(), "dataset": dataset, "files": dict(files)}))
    with home.lock("ledger"):
        ledger.append(home, ledger.PUBLISH, dataset, VERSION, sha256_of(file))
    return file


def test_each_form_is_that_of_the_published_manifest(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printed_report, "print_page", lambda page: f"printed {page}".encode())
    content = manifest_content()
    assert export(home, VERSION, Form.MARKDOWN).decode() == markdown_report.render(content)
    assert export(home, VERSION, Form.HTML).decode() == release_report.render(content)
    assert export(home, VERSION, Form.PDF).decode() == f"printed {release_report.render(content)}"


def test_an_altered_manifest_is_not_reported(home: Home) -> None:
    file = home.releases / "adult" / VERSION / "manifest.json"
    file.write_text(file.read_text().replace("48293", "48842"))
    with pytest.raises(Refused, match=r"its manifest was altered since it was published"):
        export(home, VERSION, Form.MARKDOWN)


def test_what_is_not_there_is_bad_input(home: Home) -> None:
    with pytest.raises(InputError, match=r"there is no such release; see `anon-pipeline releases list`"):
        export(home, "nothing", Form.MARKDOWN)
    (home.releases / "adult" / VERSION / "manifest.json").unlink()
    with pytest.raises(InputError, match=r"its manifest cannot be read"):
        export(home, VERSION, Form.MARKDOWN)


def test_a_version_that_two_datasets_have_asks_which(home: Home) -> None:
    publish(home, "others")
    with pytest.raises(InputError, match=r"adult, others have such a release; say which with --dataset"):
        export(home, VERSION, Form.MARKDOWN)
    assert export(home, VERSION, Form.MARKDOWN, "others").startswith(b"# others")


def test_a_withdrawn_release_says_so(home: Home) -> None:
    withdraw.withdraw(home, VERSION, "a person objected")
    for form in (Form.MARKDOWN, Form.HTML):
        assert b"This release was withdrawn on 20" in export(home, VERSION, form)
        assert b"a person objected" in export(home, VERSION, form)


@pytest.mark.parametrize(
    ("named", "file", "form"),
    [
        (None, None, Form.MARKDOWN),
        ("html", None, Form.HTML),
        (None, "report.PDF", Form.PDF),
        (None, "report.html", Form.HTML),
        (None, "report", Form.MARKDOWN),
        ("markdown", "report.html", Form.MARKDOWN),
    ],
)
def test_the_form_is_the_one_named_or_else_the_one_of_the_file(named: str | None, file: str | None, form: Form) -> None:
    assert form_of(named, None if file is None else Path(file)) is form


def test_a_form_that_is_none_is_told() -> None:
    with pytest.raises(InputError, match=r"--as word: there is no such form; write markdown, html, pdf"):
        form_of("word", None)
    with pytest.raises(InputError, match=r"a PDF goes into a file; add --out report.pdf"):
        form_of("pdf", None)


def test_a_release_whose_table_is_gone_is_not_reported(home: Home) -> None:
    publish(home, "others", {"data.parquet": {"sha256": "00"}})
    with pytest.raises(Refused, match=r"others/.*data.parquet.*; nothing is reported"):
        export(home, VERSION, Form.MARKDOWN, "others")
