"""What MLflow and Great Expectations show in a real browser, and what they do not hand out."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from anon_pipeline.pipeline.tracking.runs import Tracking
from anon_pipeline_tests.docs.pictures import comparison, last_runs
from anon_pipeline_tests.end_to_end import browser, harness, served_ui
from anon_pipeline_tests.end_to_end.harness import Place, command, policy, write_dataset


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser.running() as started:
        yield started


@pytest.fixture(scope="module")
def two_releases(template: Place) -> Iterator[Place]:
    """A home in which `people` was released at k = 10 and at k = 20."""
    place = template.copy(folder := harness.scratch())
    stricter = {"privacy": {"k_anonymity": {"k": 20}}, "audit": {"enabled": False}}
    write_dataset(place.dataset, spec=policy() | stricter)
    ended = place.run()
    assert ended.exit_code == 0, ended.said
    yield place
    harness.shutil.rmtree(folder, ignore_errors=True)


def test_two_releases_stand_side_by_side_in_mlflow(chromium: Browser, two_releases: Place, tmp_path: Path) -> None:
    runs = last_runs(two_releases, 2)
    with served_ui.experiments(two_releases) as address, browser.window_of(chromium) as window:
        window.page.goto(f"{address}/{comparison(two_releases, runs)}")
        for words in ("Comparing 2 Runs", "Parameters", "spec_hash", "information_loss"):
            expect(window.page.get_by_text(words).first).to_be_attached()
        for k in ("10", "20"):
            expect(window.page.get_by_text(k, exact=True).first).to_be_attached()
        window.page.screenshot(path=tmp_path / "two-runs.png")
        window.page.goto(f"{address}/#/experiments/1/runs/{runs[0]}")
        expect(window.page.get_by_text("people-guide").first).to_be_visible()
        expect(window.page.get_by_text("people (").first).to_be_visible()  # the source, by its commitment
        assert window.hosts == {"127.0.0.1"}
        _hands_out_no_model_and_takes_no_order(two_releases, address)


def _hands_out_no_model_and_takes_no_order(place: Place, address: str) -> None:
    """The attacker is another user of this machine, or a page of another origin."""
    (model,) = Tracking(place.home).artifacts("people").glob("models/*/artifacts/model.pkl")
    version = max(int(one.version) for one in Tracking(place.home).client.search_model_versions())
    named = f"name=people-guide&version={version}"
    files = f"/ajax-api/2.0/mlflow/logged-models/{model.parts[-3]}/artifacts/files?artifact_file_path="
    assert answer(address, "GET", f"/model-versions/get-artifact?path=MLmodel&{named}") == 200
    assert answer(address, "GET", f"{files}MLmodel") == 200
    refused = [
        ("GET", f"/model-versions/get-artifact?path=model.pkl&{named}", {}),
        ("GET", f"{files}model.pkl", {}),
        ("GET", f"/api/2.0/mlflow-artifacts/artifacts/people/models/{model.parts[-3]}/artifacts/model.pkl", {}),
        ("GET", "/", {"Host": "evil.test"}),
        ("GET", "/", {"Origin": "http://evil.test"}),
        ("POST", "/ajax-api/2.0/mlflow/runs/create", {"content-type": "application/json"}),
        ("POST", "/ajax-api/2.0/mlflow/runs/search", {"content-type": "text/plain"}),
    ]
    assert [answer(address, method, path, **headers) for method, path, headers in refused] == [403] * len(refused)


def answer(address: str, method: str, path: str, **headers: str) -> int:
    """The status of an answer."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    body = json.dumps({}) if method == "POST" else None
    connection.request(method, path, body, {"Host": parts.netloc, **headers})
    return connection.getresponse().status


def test_data_docs_show_every_stage_and_ask_nobody(chromium: Browser, two_releases: Place, tmp_path: Path) -> None:
    shown = command("checks", "people", "--path", home=two_releases.home.root)
    assert shown.exit_code == 0, shown.said
    with browser.window_of(chromium) as window:
        window.page.goto(Path(shown.stdout.strip()).as_uri())
        expect(window.page.get_by_text("These are the checks of anon_pipeline")).to_be_visible()
        window.page.screenshot(path=tmp_path / "checks.png")
        window.page.get_by_role("cell", name="people.candidate_checks").get_by_role("link").first.click()
        for words in ("k_anonymity", "every class has at least 20 people", "Succeeded"):
            expect(window.page.get_by_text(words).first).to_be_visible()
        window.page.screenshot(path=tmp_path / "stage.png", full_page=True)
    assert all(host.startswith("file://") for host in window.hosts)
    missing = command("checks", "nobody", "--path", home=two_releases.home.root)
    assert (missing.exit_code, "no checks of nobody were asked yet" in missing.sentence) == (2, True)
