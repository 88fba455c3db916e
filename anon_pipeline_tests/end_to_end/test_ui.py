"""What a person sees in Dagster's UI after a run on the command line, looked at in a real browser."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from playwright.sync_api import expect

from anon_pipeline.home import VARIABLE
from anon_pipeline.pipeline.automation import DATASET_TAG
from anon_pipeline.pipeline.build import build_definitions
from anon_pipeline.pipeline.instance import open_instance
from anon_pipeline.pipeline.launch import COMMAND_LINE, STARTED_BY
from anon_pipeline_tests.end_to_end import browser, served_ui
from anon_pipeline_tests.end_to_end.browser import Window
from anon_pipeline_tests.end_to_end.harness import ASSETS, Place
from anon_pipeline_tests.skips import require_browser

LOCATION = "/locations/__repository__@anon_pipeline.definitions"


def test_the_ui_shows_what_the_command_line_did(published: Place, tmp_path: Path) -> None:
    require_browser()  # skips before a server is started
    manifest = json.loads((published.release / "manifest.json").read_text())
    with served_ui.served(published, tmp_path / "ui.log") as address, browser.window() as window:
        _shows_the_graph(window, address)
        _shows_demand_and_measured_value(window, address, manifest)
        _shows_the_picture(window, address)
        _shows_the_report_of_the_release(window, address, manifest)
        _lists_the_run_under_its_job(window, address, manifest["runs"]["dagster"])
        _lists_what_starts_runs(window, address)
    assert window.hosts == {"127.0.0.1"}
    assert "warning" not in (tmp_path / "ui.log").read_text().lower()


def _shows_the_graph(window: Window, address: str) -> None:
    window.page.goto(f"{address}{LOCATION}/asset-groups/people/lineage")
    for name in ASSETS:
        expect(window.page.get_by_text(name, exact=True).first).to_be_visible()


def _shows_demand_and_measured_value(window: Window, address: str, manifest: dict[str, Any]) -> None:
    asked = [one for one in manifest["checks"] if one["name"] in {"k_anonymity", "accounts_for_every_row"}]
    assert len(asked) == 2
    for check in asked:
        window.page.goto(f"{address}/assets/people/anonymized_table?view=checks&checkDetail={check['name']}")
        expect(window.page.get_by_text("Passed", exact=True).first).to_be_visible()
        for label in ("demand", "measured"):
            row = window.page.locator("tr", has=window.page.get_by_text(label, exact=True)).first
            expect(row).to_contain_text(f"{check[label]:g}" if label == "measured" else check[label])


def _shows_the_picture(window: Window, address: str) -> None:
    """Dagster shows long Markdown on request only, and its sanitiser must leave the picture in."""
    window.page.goto(f"{address}/assets/people/anonymized_table?view=events")
    picture, request = window.page.locator("img[src^='data:image']"), window.page.get_by_text("[Show Markdown]")
    expect(picture.or_(request).first).to_be_visible()
    if request.count():
        request.first.click()
    expect(picture.first).to_be_visible()
    assert picture.first.evaluate("image => image.complete && image.naturalWidth") > 0


def _shows_the_report_of_the_release(window: Window, address: str, manifest: dict[str, Any]) -> None:
    window.page.goto(f"{address}/assets/people/release?view=overview")
    for words in (manifest["version"], "Released.", "people who stand alone", "To check it"):
        expect(window.page.get_by_text(words).first).to_be_visible()


def _lists_the_run_under_its_job(window: Window, address: str, run: str) -> None:
    window.page.goto(f"{address}{LOCATION}/jobs/people_release/runs")
    expect(window.page.get_by_text(run[:8], exact=True).first).to_be_visible()
    expect(window.page.get_by_text("Success", exact=True).first).to_be_visible()


def _lists_what_starts_runs(window: Window, address: str) -> None:
    window.page.goto(f"{address}/automation")
    expect(window.page.get_by_text("people_source_sensor", exact=True).first).to_be_visible()


def test_a_private_zone_that_dagster_made_is_closed_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`dagster dev` as the first command ever creates var/private/dagster before it loads us, readable by all."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "var"))
    (tmp_path / "var" / "private" / "dagster").mkdir(parents=True)
    (tmp_path / "var" / "private").chmod(0o755)
    mask = os.umask(0o022)
    try:
        build_definitions(data=tmp_path)
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "var" / "private").stat().st_mode) == 0o700


def test_a_run_whose_process_was_killed_does_not_count_as_running_for_ever(published: Place) -> None:
    """It would hold up the queue of its dataset, and with it every scheduled release."""
    tags = {DATASET_TAG: "people", STARTED_BY: COMMAND_LINE}
    killed = dg.DagsterRun("people_release", status=dg.DagsterRunStatus.STARTED, tags=tags)
    with open_instance(published.home) as instance:
        instance.run_storage.add_run(killed)
        assert published.run().exit_code == 0
        ended = instance.get_run_by_id(killed.run_id)
        assert ended is not None
        assert ended.status is dg.DagsterRunStatus.FAILURE
