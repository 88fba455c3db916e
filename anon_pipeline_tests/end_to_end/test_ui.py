"""`anon-pipeline ui` in a real browser: what a person sees after a run, and what a page of another origin gets.

The latter is nothing, shown with raw requests too. The attacker owns a website that the data steward has open while
the UI runs on loopback. They know the port, Dagster's GraphQL and the names of datasets, and they may point a name of
their own at 127.0.0.1 (DNS rebinding). They want to start a run, or read a page.

At last, with the real daemon: the launchpad, a run's event log and an alert that arrived.
"""

import http.client
import http.server
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from anon_pipeline.pipeline.automation.operations import FILE
from anon_pipeline.pipeline.instance import open_instance
from anon_pipeline_tests.end_to_end import browser, harness, sabotage, served_ui
from anon_pipeline_tests.end_to_end.browser import Window
from anon_pipeline_tests.end_to_end.harness import ASSETS, Place
from anon_pipeline_tests.pipeline.automation.test_alerts import WebServer

LOCATION = "/locations/__repository__@anon_pipeline.definitions"
LAUNCH = """mutation { launchRun(executionParams: {selector: {repositoryLocationName: "anon_pipeline.definitions",
repositoryName: "__repository__", jobName: "people_release"}, runConfigData: "{}"}) { __typename } }"""
VERSION = "{ version }"
CHOICE = "resources:\n  runtime:\n    config:\n      engine: duckdb\n      memory: 700MB\n      threads: 1\n"
#: What a browser sends without asking first.
SIMPLE = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]


@dataclass(frozen=True)
class Served:
    """A place whose UI is served, once for all tests of this file."""

    place: Place
    address: str
    log: Path

    @property
    def port(self) -> int:
        return urlsplit(self.address).port or 0

    def runs(self) -> int:
        with open_instance(self.place.home) as instance:
            return instance.get_runs_count()

    def answer(self, method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, str]:
        """Status and text; a header `content_type` is Content-Type. Without one, Host is the server's own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, {"Host": f"127.0.0.1:{self.port}", **given})
        answered = connection.getresponse()
        return answered.status, answered.read().decode(errors="replace")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for all windows; an attacker's name leads to this machine in all of them."""
    with browser.running("--host-resolver-rules=MAP evil.test 127.0.0.1") as started:
        yield started


@pytest.fixture(scope="module")
def web() -> Iterator[WebServer]:
    with closing(WebServer()) as server:
        yield server


@pytest.fixture(scope="module")
def ui(template: Place, web: WebServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Served with the daemon; its alerts go to `web`, and every line of progress is told."""
    place, log = template.copy(folder := harness.scratch()), tmp_path_factory.mktemp("ui") / "ui.log"
    operations = place.home.root / FILE
    operations.write_text(f"alerts:\n- webhook: {{url: '{web.address}'}}\n")
    operations.chmod(0o600)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANON_PIPELINE_PROGRESS_SECONDS", "0")
        with served_ui.served(place, log, "--allow-host", "steward.example.org") as address:
            yield Served(place, address, log)
    harness.shutil.rmtree(folder, ignore_errors=True)


# What a person sees; first, since the log tells of nothing but this then


def test_the_ui_shows_what_the_command_line_did(chromium: Browser, ui: Served) -> None:
    manifest = json.loads((ui.place.release / "manifest.json").read_text())
    address = ui.address
    with browser.window_of(chromium) as window:
        _shows_the_graph(window, address)
        _shows_demand_and_measured_value(window, manifest)
        _shows_the_picture(window)
        _shows_the_report_of_the_release(window, manifest)
        _lists_the_run_under_its_job(window, manifest["runs"]["dagster"])
        _lists_what_starts_runs(window)
    assert window.hosts == {"127.0.0.1"}
    assert "warning" not in ui.log.read_text().lower()


def _goes_on_to(window: Window, path: str) -> None:
    """As a click on a link does: the page that is open shows another one, without being loaded anew."""
    window.page.evaluate(
        "path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')) }", path
    )


def _shows_the_graph(window: Window, address: str) -> None:
    window.page.goto(f"{address}{LOCATION}/asset-groups/people/lineage")
    for name in ASSETS:
        expect(window.page.get_by_text(name, exact=True).first).to_be_visible()


def _shows_demand_and_measured_value(window: Window, manifest: dict[str, Any]) -> None:
    asked = [one for one in manifest["checks"] if one["name"] in {"k_anonymity", "accounts_for_every_row"}]
    assert len(asked) == 2
    for check in asked:
        _goes_on_to(window, f"/assets/people/anonymized_table?view=checks&checkDetail={check['name']}")
        expect(window.page.get_by_text("Passed", exact=True).first).to_be_visible()
        for label in ("demand", "measured"):
            row = window.page.locator("tr", has=window.page.get_by_text(label, exact=True)).first
            expect(row).to_contain_text(f"{check[label]:g}" if label == "measured" else check[label])


def _shows_the_picture(window: Window) -> None:
    """Dagster shows long Markdown on request only, and its sanitiser must leave the picture in."""
    _goes_on_to(window, "/assets/people/anonymized_table?view=events")
    picture, request = window.page.locator("img[src^='data:image']"), window.page.get_by_text("[Show Markdown]")
    expect(picture.or_(request).first).to_be_visible()
    if request.count():
        request.first.click()
    expect(picture.first).to_be_visible()
    assert picture.first.evaluate("image => image.complete && image.naturalWidth") > 0


def _shows_the_report_of_the_release(window: Window, manifest: dict[str, Any]) -> None:
    _goes_on_to(window, "/assets/people/release?view=overview")
    for words in (manifest["version"], "Released.", "people alone by the columns", "To check it"):
        expect(window.page.get_by_text(words).first).to_be_visible()


def _lists_the_run_under_its_job(window: Window, run: str) -> None:
    _goes_on_to(window, f"{LOCATION}/jobs/people_release/runs")
    expect(window.page.get_by_text(run[:8], exact=True).first).to_be_visible()
    expect(window.page.get_by_text("Success", exact=True).first).to_be_visible()


def _lists_what_starts_runs(window: Window) -> None:
    _goes_on_to(window, "/automation")
    expect(window.page.get_by_text("people_source_sensor", exact=True).first).to_be_visible()


# What others get


def test_programs_of_the_machine_and_allowed_names_are_answered(ui: Served) -> None:
    body = json.dumps({"query": VERSION})
    for more in ({}, {"Host": "steward.example.org", "Origin": "https://steward.example.org"}):
        status, text = ui.answer("POST", "/graphql", body, content_type="application/json", **more)
        assert status == 200
        assert "version" in json.loads(text)["data"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.test:{port}"},
        {"Host": "evil.test"},
        {"Host": "0.0.0.0:{port}"},
        {"Host": "evil.test:{port}", "Origin": "http://evil.test:{port}"},
        {"Origin": "http://evil.test"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Sec_Fetch_Site": "cross-site"},
    ],
)
def test_no_foreign_host_or_origin_reads_or_starts_anything(ui: Served, headers: dict[str, str]) -> None:
    before = ui.runs()
    sent = {name: value.format(port=ui.port) for name, value in headers.items()}
    for query in (VERSION, LAUNCH):
        status, text = ui.answer(
            "POST", "/graphql", json.dumps({"query": query}), content_type="application/json", **sent
        )
        assert (status, "data" in text) == (403, False)
        assert ui.answer("GET", f"/graphql?query={quote(query)}", **sent)[0] == 403
    assert ui.answer("GET", "/", **sent)[0] == 403
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13"}
    upgrade |= {"Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec_WebSocket_Protocol": "graphql-ws"}
    assert ui.answer("GET", "/graphql", **upgrade, **sent)[0] == 403
    assert ui.runs() == before


def test_no_order_is_taken_but_by_post_with_json(ui: Served) -> None:
    before = ui.runs()
    assert ui.answer("GET", f"/graphql?query={quote(LAUNCH)}")[0] == 403
    for kind in SIMPLE:
        for body in (json.dumps({"query": LAUNCH}), f"query={quote(LAUNCH)}"):
            assert ui.answer("POST", f"/graphql?query={quote(LAUNCH)}", body, content_type=kind)[0] == 403
    assert ui.answer("POST", "/report_asset_materialization/people/release", "", content_type="text/plain")[0] == 403
    assert ui.runs() == before


#: Run in a page of another origin: what it could read of each way to ask.
ASK = """async ([address, query, version]) => {
    const order = address + '/graphql?query=' + encodeURIComponent(query);
    const read = {};
    const ask = async (name, url, how) => {
        try { const answer = await fetch(url, how); read[name] = answer.type + ': ' + await answer.text(); }
        catch (error) { read[name] = 'nothing'; }
    };
    await ask('plain', order, {method: 'POST', mode: 'no-cors', headers: {'content-type': 'text/plain'},
        body: JSON.stringify({query})});
    await ask('sent', order, {method: 'GET', mode: 'no-cors', credentials: 'include'});
    await ask('json', address + '/graphql', {method: 'POST', headers: {'content-type': 'application/json'},
        body: JSON.stringify({query})});
    await ask('page', address + '/', {});
    await ask('question', address + '/graphql?query=' + encodeURIComponent(version), {});
    read.socket = await new Promise(resolve => {
        const socket = new WebSocket(address.replace('http', 'ws') + '/graphql', 'graphql-ws');
        socket.onopen = () => resolve('open');
        socket.onerror = () => resolve('nothing');
    });
    await new Promise(resolve => {
        const frame = document.createElement('iframe');
        frame.name = 'frame'; frame.onload = resolve; document.body.append(frame);
        const form = document.createElement('form');
        form.method = 'POST'; form.action = order; form.target = 'frame'; form.enctype = 'text/plain';
        document.body.append(form); form.submit();
        setTimeout(resolve, 3000);
    });
    const image = document.createElement('img');
    await new Promise(resolve => { image.onload = image.onerror = resolve; image.src = order; });
    return read;
}"""


class _EmptyPage(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>a page of the attacker's</title><body>")

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _attackers_server() -> Iterator[int]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _EmptyPage)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("origin", ["http://evil.test:{port}", "http://127.0.0.1:{port}"])
def test_a_page_of_another_origin_gets_nothing(chromium: Browser, ui: Served, origin: str) -> None:
    """Also one of another port of this machine, which a browser counts as the same site."""
    before = ui.runs()
    with _attackers_server() as port, browser.window_of(chromium) as window:
        answers: list[tuple[str, str, int]] = []
        window.page.on("response", lambda one: answers.append((one.request.method, one.url, one.status)))
        window.page.goto(origin.format(port=port))
        # A browser tells of some answers only, but always of the form's, and of that perhaps a moment later.
        with window.page.expect_response(lambda answer: answer.url.startswith(ui.address)):
            read = window.page.evaluate(ASK, [ui.address, LAUNCH, VERSION])
    opaque = {name: read.pop(name) for name in ("plain", "sent")}
    assert set(opaque.values()) <= {"nothing", "opaque: "}
    assert set(read.values()) == {"nothing"}
    reached = [status for _, url, status in answers if url.startswith(ui.address)]
    assert set(reached) == {403}
    assert ui.runs() == before


def test_a_name_that_was_pointed_at_loopback_reads_nothing(chromium: Browser, ui: Served) -> None:
    """DNS rebinding: to the browser the attacker's page and the UI are then one origin."""
    before = ui.runs()
    with browser.window_of(chromium) as window:
        opened = window.page.goto(f"http://evil.test:{ui.port}/")
        assert opened is not None
        assert opened.status == 403
        read = window.page.evaluate(ASK, [f"http://evil.test:{ui.port}", LAUNCH, VERSION])
    assert read.pop("socket") == "nothing"
    assert all(answer == "nothing" or "refused: this server is not known" in answer for answer in read.values())
    assert ui.runs() == before


# What a run shows, last, since it leaves runs and releases


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Where the screenshots go: a folder that the environment names, to look at them, or one that is removed."""
    return Path(os.environ.get("UI_PICTURES") or tmp_path)


def _ended(ui: Served, run: str) -> str:
    """How a run ended."""
    with open_instance(ui.place.home) as instance:
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


def test_a_run_is_launched_with_a_choice_and_tells_its_progress(chromium: Browser, ui: Served, pictures: Path) -> None:
    with browser.window_of(chromium) as window:
        page = window.page
        page.goto(f"{ui.address}{LOCATION}/jobs/people_release/playground")
        expect(page.get_by_text("duckdb").first).to_be_visible()
        page.evaluate("text => document.querySelector('.CodeMirror').CodeMirror.setValue(text)", CHOICE)
        expect(page.get_by_text("700MB").first).to_be_visible()
        page.screenshot(path=pictures / "launchpad.png")
        page.get_by_role("button", name="Launch Run").click()
        page.wait_for_url("**/runs/*-*-*-*-*")
        run = page.url.split("/runs/")[1].split("?")[0]
        page.goto("about:blank")  # a page that follows the run would draw each line anew meanwhile
        assert _ended(ui, run) == "SUCCESS"
        with open_instance(ui.place.home) as instance:
            stored = instance.get_run_by_id(run)
        assert stored is not None
        assert stored.run_config["resources"]["runtime"]["config"]["threads"] == 1
        page.goto(f"{ui.address}/runs/{run}")
        _shows_a_line(page, "people: 400 people, 5 columns")
        _shows_a_line(page, "models and folds, about")
        page.screenshot(path=pictures / "event-log.png")
    assert window.hosts == {"127.0.0.1"}
    assert (ui.place.home.releases / "people" / "current").resolve() == ui.place.release.resolve()


def test_an_alert_arrives_and_the_run_says_so(chromium: Browser, ui: Served, web: WebServer, pictures: Path) -> None:
    """Of a run that was started elsewhere: the daemon hears of all runs of the home."""
    assert ui.place.run(sabotage=sabotage.the_source_is_gone_when_it_is_read).exit_code == 2
    while not web.taken:
        time.sleep(0.5)
    (posted,) = web.taken
    assert (posted["dataset"], posted["event"]) == ("people", "failed")
    assert "people.csv" in posted["sentence"]
    run = posted["address"].split("/runs/")[1]
    assert _ended(ui, run) == "FAILURE"
    with browser.window_of(chromium) as window:
        window.page.goto(f"{ui.address}/runs/{run}")
        _shows_a_line(window.page, "Alert of the run to webhook 127.0.0.1: delivered.")
        window.page.screenshot(path=pictures / "alert.png")
