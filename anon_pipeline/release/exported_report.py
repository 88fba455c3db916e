"""The report of a published release in another form, made from its manifest, which is checked against the ledger."""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from pathlib import Path
from typing import Any

from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import Home
from anon_pipeline.release import ledger
from anon_pipeline.release.ledger import Entry
from anon_pipeline.report import markdown, printed, release_report, synthetic_markdown, synthetic_report


class Form(StrEnum):
    """The forms of a report."""

    MARKDOWN = "markdown"
    HTML = "html"
    PDF = "pdf"


SUFFIXES = {".md": Form.MARKDOWN, ".html": Form.HTML, ".pdf": Form.PDF}


def form_of(named: str | None, file: Path | None) -> Form:
    """The form that is requested by name or by the file's ending; Markdown if neither is given.

    Raises
    ------
    InputError
        For any other form, and for a PDF without a file to write it to.
    """
    if named is not None and named not in list(Form):
        raise InputError(f"--as {named}: there is no such form; write {', '.join(Form)}")
    by_ending = SUFFIXES.get(file.suffix.lower(), Form.MARKDOWN) if file is not None else Form.MARKDOWN
    form = Form(named) if named is not None else by_ending
    if form is Form.PDF and file is None:
        raise InputError("--as pdf: a PDF goes into a file; add --out report.pdf")
    return form


def export(home: Home, version: str, form: Form, dataset: str | None = None) -> bytes:
    """The report of a release; that of a withdrawn release begins with a note on the withdrawal.

    Parameters
    ----------
    dataset : needed where several datasets have a release of this version

    Raises
    ------
    InputError
        If there is no such release, its manifest is missing, or no browser can print.
    Refused
        If the folder was altered after its publication.
    """
    entry = ledger.published(home, version, dataset)
    content, withdrawal = manifest_of(home, entry), ledger.withdrawal(home, *entry.release)
    if problems := ledger.verify_release(home, entry, withdrawn=withdrawal is not None):
        raise Refused([f"{entry.dataset}/{entry.version}: {problem}; nothing is reported" for problem in problems])
    withdrawn = "" if withdrawal is None else f"This release was withdrawn on {withdrawal.time[:10]}: {withdrawal.why}"
    if form is Form.MARKDOWN:
        if synthetic_report.is_synthetic(content):
            return synthetic_markdown.render(content, withdrawn).encode()
        return markdown.render(content, withdrawn).encode()
    page = release_report.render(content, withdrawn)
    return printed.print_page(page) if form is Form.PDF else page.encode()


def manifest_of(home: Home, entry: Entry) -> dict[str, Any]:
    """The manifest of a release, as it was published.

    Raises
    ------
    InputError
        Where it cannot be read.
    Refused
        If it was altered.
    """
    try:
        written = (home.releases / entry.dataset / entry.version / ledger.MANIFEST).read_bytes()
    except OSError:
        raise InputError(f"{entry.version}: its manifest cannot be read; run `anon-pipeline releases verify`") from None
    if hashlib.sha256(written).hexdigest() != entry.manifest:
        raise Refused(
            [f"{entry.dataset}/{entry.version}: its manifest was altered since it was published; nothing is reported"]
        )
    content: dict[str, Any] = json.loads(written)
    return content
