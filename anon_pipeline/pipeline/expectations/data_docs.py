"""Data Docs: the results of Great Expectations as its own pages, made on request and never during a run.

Its pages load styles, scripts and fonts from other hosts, which would thus learn who reads them. So they are reduced to
their text and get a style of ours. A policy in each page forbids a browser to fetch anything else.
"""

from __future__ import annotations

import html
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home, write_file
from anon_pipeline.pipeline.expectations.check_records import FOLDER, read_records

SITE = "checks"
#: Elements of a page that are fetched or run.
FOREIGN = re.compile(
    r"<script\b.*?</script\s*>|<(?:link|img|base)\b[^>]*>|\son\w+=(?:\"[^\"]*\"|'[^']*')", re.DOTALL | re.IGNORECASE
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1d2430; max-width: 72rem; margin: 0 auto; padding: 1rem }
nav ol { display: flex; gap: .5rem; list-style: none; padding: 0 } a { color: #1a56a0 }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.5rem }
td, th { border: 1px solid #d5dae2; padding: .35rem .6rem; text-align: left; vertical-align: top }
h1, h2, h3, h4, h5 { margin: 1rem 0 .3rem } .alert-success, .badge-success { color: #19692c }
.alert-danger, .badge-danger { color: #a11a1a } .about { background: #eef3fa; padding: .6rem 1rem }
.passed td:last-child { color: #19692c } .failed td:last-child { color: #a11a1a; font-weight: bold }
.modal, .tooltip, .popover, footer, button { display: none }
.fa-check-circle::after { content: "\\2713"; color: #19692c } .fa-times::after { content: "\\2717"; color: #a11a1a }
.fa-exclamation-triangle::after { content: "!"; color: #a11a1a }
"""
ABOUT = (
    "These are the checks of anon_pipeline, shown by Great Expectations: what was asked of each stored table before a "
    "release left, and how it was answered. A stage has a suite named after it; each run of it is a line. The pages "
    "hold verdicts and numbers about tables, and nobody's row; they are private all the same."
)


def build(home: Home, dataset: str | None = None) -> Path:
    """Make the pages anew from the records of the last runs; returns the first page.

    Raises
    ------
    InputError
        Where no checks were asked yet.
    """
    records = list(read_records(home, dataset))
    if not records:
        raise InputError(
            f"{home.root}: no checks {f'of {dataset} ' if dataset else ''}were asked yet; run a spec first"
        )
    with home.lock(FOLDER):
        project = home.private_folder("scratch", "data_docs")
        try:
            first = _project(project, [record for *_, found in records for record in found])
            site = home.private / FOLDER / ".pages"
            shutil.rmtree(site, ignore_errors=True)
            shutil.move(first.parent, site)
        finally:
            shutil.rmtree(project, ignore_errors=True)
        shutil.rmtree(site / "static", ignore_errors=True)  # pictures and fonts that no page loads any more
        for page in site.rglob("*.html"):
            page.write_text(_alone(page.read_text(encoding="utf-8")), encoding="utf-8")
        # The index of Great Expectations is drawn by a script that it fetches.
        write_file(site / "index.html", _alone(_index(site, [record for *_, found in records for record in found])))
    return site / "index.html"


def _project(folder: Path, records: list[dict[str, Any]]) -> Path:
    """A project of Great Expectations with the suites and results, and the first page of its site."""
    from anon_pipeline.pipeline.expectations.great_expectations import ProgressBarsConfig, gx

    context = gx.get_context(mode="file", project_root_dir=folder)
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    pages = folder / SITE
    store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(pages)}
    context.add_data_docs_site(
        SITE,
        {
            "class_name": "SiteBuilder",
            "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
            "store_backend": store,
            "show_how_to_buttons": False,
        },
    )
    for record in records:
        _store(context, record)
    context.build_data_docs(site_names=[SITE])
    return pages / "index.html"


def _store(context: Any, record: dict[str, Any]) -> None:
    """Store a suite and one of its results as Great Expectations does."""
    from great_expectations.core import ExpectationSuite
    from great_expectations.core.expectation_validation_result import expectationSuiteValidationResultSchema
    from great_expectations.core.run_identifier import RunIdentifier
    from great_expectations.data_context.types.resource_identifiers import (
        ExpectationSuiteIdentifier,
        ValidationResultIdentifier,
    )

    written = {name: value for name, value in record["suite"].items() if name != "id"}
    suite = context.suites.add_or_update(ExpectationSuite(**written))
    result = expectationSuiteValidationResultSchema.load(record["result"])
    run = record["result"]["meta"]["run_id"]
    identifier = ValidationResultIdentifier(
        ExpectationSuiteIdentifier(suite.name), RunIdentifier(run["run_name"], run["run_time"]), "aggregates"
    )
    context.validation_results_store.add(identifier, result)


def _index(site: Path, records: list[dict[str, Any]]) -> str:
    """The first page: every run of every stage, the last one first, and the suites."""
    passed = {
        (record["suite"]["name"], _moment(record["result"]["meta"]["run_id"]["run_time"])): record["result"]["success"]
        for record in records
    }
    rows = []
    for page in site.glob("validations/**/*.html"):
        parts = page.relative_to(site / "validations").parts
        suite, moment = ".".join(parts[:-3]), datetime.strptime(parts[-2], "%Y%m%dT%H%M%S.%fZ").replace(tzinfo=UTC)
        verdict = "passed" if passed[suite, moment] else "failed"
        link = f'<a href="{html.escape(page.relative_to(site).as_posix())}">{html.escape(suite)}</a>'
        rows.append((moment, f'<tr class="{verdict}"><td>{moment:%Y-%m-%d %H:%M:%S}<td>{link}<td>{verdict}'))
    suites = sorted(site.glob("expectations/**/*.html"))
    listed = "".join(
        f'<li><a href="{html.escape(page.relative_to(site).as_posix())}">'
        f"{html.escape('.'.join(page.relative_to(site / 'expectations').with_suffix('').parts))}</a>"
        for page in suites
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Checks</title></head><body><h1>Checks</h1>'
        f"<h2>Runs</h2><table><tr><th>time (UTC)<th>stage<th>verdict{''.join(row for _, row in sorted(rows)[::-1])}"
        f"</table><h2>Suites, as they were asked last</h2><ul>{listed}</ul></body></html>"
    )


def _moment(written: str) -> datetime:
    return datetime.fromisoformat(written).astimezone(UTC)


def _alone(page: str) -> str:
    """The page without elements that are fetched or run, with our style, and with a note on what it is."""
    head = (
        f'<head><meta http-equiv="Content-Security-Policy" content="{html.escape(POLICY)}">'
        f'<meta name="referrer" content="no-referrer"><style>{STYLE}</style>'
    )
    page = re.sub(r"<head\b[^>]*>", lambda _: head, FOREIGN.sub("", page), count=1, flags=re.IGNORECASE)
    about = f'<p class="about">{html.escape(ABOUT)}</p>'
    return re.sub(r"<body\b[^>]*>", lambda opened: opened[0] + about, page, count=1, flags=re.IGNORECASE)
