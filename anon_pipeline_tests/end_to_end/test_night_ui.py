"""The launchpad, a run's event log and an alert that arrived, with the real daemon, in a real browser."""

import json
import os
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from anon_pipeline.pipeline.automation.operations import FILE
from anon_pipeline.pipeline.instance import open_instance
from anon_pipeline_tests.end_to_end import browser, harness, served_ui
from anon_pipeline_tests.end_to_end.harness import Place
from anon_pipeline_tests.end_to_end.test_ui import LAUNCH, LOCATION, Served
from anon_pipeline_tests.pipeline.automation.test_alerts import WebServer
from anon_pipeline_tests.skips import require_browser

CHOICE = "resources:\n  runtime:\n    config:\n      engine: duckdb\n      memory: 700MB\n      threads: 1\n"


@pytest.fixture(scope="module")
def web() -> Iterator[WebServer]:
    with closing(WebServer()) as server:
        yield server


@pytest.fixture(scope="module")
def night(template: Place, web: WebServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A home whose alerts go to `web`, served with daemon; every line of progress is told."""
    require_browser()
    place, log = template.copy(folder := harness.scratch()), tmp_path_factory.mktemp("night") / "ui.log"
    operations = place.home.root / FILE
    operations.write_text(f"alerts:\n- webhook: {{url: '{web.address}'}}\n")
    operations.chmod(0o600)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANON_PIPELINE_PROGRESS_SECONDS", "0")
        with served_ui.served(place, log) as address:
            yield Served(place, address, log)
    harness.shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Where the screenshots go: a folder that the environment names, to look at them, or one that is removed."""
    return Path(os.environ.get("NIGHT_PICTURES") or tmp_path)


def _ended(night: Served, run: str) -> str:
    """How a run ended."""
    with open_instance(night.place.home) as instance:
        while True:
            found = instance.get_run_by_id(run)
            if found is not None and found.is_finished:
                return found.status.value
            time.sleep(0.5)


def _shows_a_line(page: Page, text: str) -> None:
    """Filter the event log, which draws only the lines that fit on the screen."""
    page.get_by_placeholder("Filter").last.fill(text)
    page.keyboard.press("Enter")
    expect(page.get_by_text(text, exact=False).last).to_be_visible()


def test_a_run_is_launched_with_a_choice_and_tells_its_progress(night: Served, pictures: Path) -> None:
    with browser.window() as window:
        page = window.page
        page.goto(f"{night.address}{LOCATION}/jobs/people_release/playground")
        expect(page.get_by_text("duckdb").first).to_be_visible()
        page.evaluate("text => document.querySelector('.CodeMirror').CodeMirror.setValue(text)", CHOICE)
        expect(page.get_by_text("700MB").first).to_be_visible()
        page.screenshot(path=pictures / "launchpad.png")
        page.get_by_role("button", name="Launch Run").click()
        page.wait_for_url("**/runs/*-*-*-*-*")
        run = page.url.split("/runs/")[1].split("?")[0]
        page.goto("about:blank")  # a page that follows the run would draw each line anew meanwhile
        assert _ended(night, run) == "SUCCESS"
        with open_instance(night.place.home) as instance:
            stored = instance.get_run_by_id(run)
        assert stored is not None
        assert stored.run_config["resources"]["runtime"]["config"]["threads"] == 1
        page.goto(f"{night.address}/runs/{run}")
        _shows_a_line(page, "people: 400 people, 5 columns")
        _shows_a_line(page, "models and folds, about")
        page.screenshot(path=pictures / "event-log.png")
    assert window.hosts == {"127.0.0.1"}
    assert (night.place.home.releases / "people" / "current").resolve() == night.place.release.resolve()


def test_an_alert_arrives_and_the_run_says_so(night: Served, web: WebServer, pictures: Path) -> None:
    (night.place.dataset / "people.csv").rename(night.place.dataset / "gone.csv")
    request = urllib.request.Request(
        f"{night.address}/graphql", json.dumps({"query": LAUNCH}).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as answered:
        assert "LaunchRunSuccess" in answered.read().decode()
    while not web.taken:
        time.sleep(0.5)
    (posted,) = web.taken
    assert (posted["dataset"], posted["event"]) == ("people", "failed")
    assert "people.csv" in posted["sentence"]
    run = posted["address"].split("/runs/")[1]
    assert _ended(night, run) == "FAILURE"
    with browser.window() as window:
        window.page.goto(f"{night.address}/runs/{run}")
        _shows_a_line(window.page, "Alert of the run to webhook 127.0.0.1: delivered.")
        window.page.screenshot(path=pictures / "alert.png")
