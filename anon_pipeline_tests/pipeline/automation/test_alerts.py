"""Alerts reach a real web server, a real mail server and a real program; once, and without data or secrets.

The attacker reads every alert, and every log about alerts. They know the code, the spec, and all rows but one of a
table that was refused or could not be read. They want that row, or the key of a target.
"""

import http.server
import json
import logging
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from aiosmtpd.controller import Controller

from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import Home
from anon_pipeline.pipeline.automation.alerts import DELIVERED, FOLDER, Alert, send, send_once
from anon_pipeline.pipeline.automation.operations import FILE, Operations
from anon_pipeline.pipeline.automation.upkeep import build_alerts_of_late_releases, build_alerts_of_runs
from anon_pipeline.pipeline.build import build_definitions
from anon_pipeline.pipeline.instance import open_instance
from anon_pipeline.pipeline.runtime import Runtime
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import people, policy, write_dataset
from anon_pipeline_tests.watchdog import generous

ALERT = Alert("a-run", "people", "refused", "k_anonymity: every class has at least 10 people", "http://ui/runs/a-run")
TOKEN = "T0ken-of-the-webhook"


class WebServer:
    """Takes what is posted; answers as told."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        self.status = 200
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.taken.append({"path": self.path, **json.loads(body)})
                self.send_response(outer.status)
                self.send_header("location", "/elsewhere")
                self.end_headers()

            do_GET = do_POST

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def web() -> Iterator[WebServer]:
    with closing(WebServer()) as server:
        yield server


class Mailbox:
    """What the mail server took."""

    def __init__(self) -> None:
        self.mails: list[tuple[list[str], str]] = []

    async def handle_DATA(self, server: object, session: object, envelope: Any) -> str:
        self.mails.append((envelope.rcpt_tos, envelope.content.decode()))
        return "250 OK"


@pytest.fixture
def mail() -> Iterator[tuple[Mailbox, int]]:
    mailbox = Mailbox()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    controller = Controller(mailbox, "127.0.0.1", port)
    controller.ready_timeout = generous()
    controller.start()
    try:
        yield mailbox, port
    finally:
        controller.stop()


def write(home: Home, text: str) -> Operations:
    """An `operations.yaml` as an operator writes it, and what is read of it."""
    file = home.root / FILE
    file.write_text(text)
    file.chmod(0o600)
    return Operations.of(home)


# What reaches whom


def test_an_alert_has_one_time_however_long_its_targets_take() -> None:
    made = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    alert = Alert("a-run", "people", "refused", "a sentence", "http://ui/runs/a-run", made)
    assert alert.to_json()["time"] == made.isoformat()
    assert ALERT.time.tzinfo is not None and ALERT.to_json()["time"] == ALERT.time.isoformat(timespec="seconds")


def test_a_webhook_a_mailbox_and_a_program_get_the_same(
    home: Home, web: WebServer, mail: tuple[Mailbox, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mailbox, port = mail
    monkeypatch.setenv("ALERT_WEBHOOK", f"{web.address}/{TOKEN}")
    operations = write(
        home,
        f"""
alerts:
- webhook: {{url_variable: ALERT_WEBHOOK}}
- email: {{to: [steward@example.org, night@example.org], sender: anon@example.org, server: 127.0.0.1, port: {port},
    security: none}}
- command: [tee, {tmp_path}/told]
- command: [touch, {tmp_path}/never]
  on: [late]
""",
    )
    outcomes = send(operations.alerts, ALERT)
    assert outcomes == {
        "webhook ALERT_WEBHOOK": DELIVERED,
        "email steward@example.org, night@example.org": DELIVERED,
        "command tee": DELIVERED,
    }
    (posted,) = web.taken
    assert posted.pop("path") == f"/{TOKEN}"
    assert datetime.fromisoformat(posted["time"]).tzinfo is not None
    assert {name: posted[name] for name in ("dataset", "event", "sentence", "address")} == {
        "dataset": "people",
        "event": "refused",
        "sentence": ALERT.sentence,
        "address": "http://ui/runs/a-run",
    }
    assert posted["text"] == f"people: refused\n{ALERT.sentence}\nhttp://ui/runs/a-run"
    assert json.loads((tmp_path / "told").read_text()) == posted
    ((receivers, content),) = mailbox.mails
    assert receivers == ["steward@example.org", "night@example.org"]
    assert "Subject: people: refused" in content
    assert ALERT.sentence in content
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (f"webhook: {{url: 'http://127.0.0.1:1/{TOKEN}'}}", "cannot be reached (ConnectionRefusedError)"),
        ("webhook: {url_variable: NO_SUCH_VARIABLE}", "the variable NO_SUCH_VARIABLE is not set"),
        ("webhook: {url_variable: FILE_ADDRESS}", "FILE_ADDRESS holds no http or https address"),
        ("command: [/no/such/program]", "cannot be run (No such file or directory)"),
        (f"command: ['false', {TOKEN}]", "ended with exit code 1"),
        ("command: [sh, -c, 'sleep 1000']", "has not ended within 0.2 s"),
        (
            "email: {to: [a@example.org], sender: b@example.org, server: 127.0.0.1, port: 1, security: none}",
            "the mail server cannot be reached (ConnectionRefusedError)",
        ),
    ],
)
def test_a_target_that_takes_nothing_is_told_without_its_secret(
    target: str, why: str, home: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("FILE_ADDRESS", "file:///etc/passwd")
    if "sleep" in target:
        monkeypatch.setattr("anon_pipeline.pipeline.automation.alerts.ANSWERS_WITHIN", 0.2)
    operations = write(home, f"alerts:\n- {target}\n")
    with caplog.at_level(logging.WARNING, "anon_pipeline"):
        (outcome,) = send(operations.alerts, ALERT).values()
    assert outcome == why
    assert f": {why}" in caplog.text
    assert TOKEN not in caplog.text


@pytest.mark.parametrize("status", [302, 404, 500])
def test_an_answer_that_is_not_yes_is_told_and_followed_nowhere(status: int, home: Home, web: WebServer) -> None:
    web.status = status
    operations = write(home, f"alerts:\n- webhook: {{url: '{web.address}/{TOKEN}'}}\n")
    assert send(operations.alerts, ALERT) == {"webhook 127.0.0.1": f"answered {status}"}
    assert [posted["path"] for posted in web.taken] == [f"/{TOKEN}"]


def test_a_mail_is_not_sent_unencrypted_where_that_was_asked_for(home: Home, mail: tuple[Mailbox, int]) -> None:
    mailbox, port = mail
    operations = write(
        home, f"alerts:\n- email: {{to: [a@example.org], sender: b@example.org, server: 127.0.0.1, port: {port}}}\n"
    )
    assert send(operations.alerts, ALERT) == {
        "email a@example.org": "the mail server refused it (SMTPNotSupportedError)"
    }
    assert mailbox.mails == []


def test_nothing_is_sent_twice_even_by_two_at_once(home: Home, web: WebServer) -> None:
    operations = write(home, f"alerts:\n- webhook: {{url: '{web.address}'}}\n")
    threads = [threading.Thread(target=send_once, args=(home, operations.alerts, ALERT)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(web.taken) == 1
    file = home.private / FOLDER / "a-run.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text())["outcomes"] == {"webhook 127.0.0.1": DELIVERED}


# The file


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("alerts: [", "is not YAML"),
        ("alerts: [{}]", "alerts.0: is one of command, webhook and email"),
        ("alerts: [{command: [a], webhook: {url: 'http://a'}}]", "alerts.0: is one of command, webhook and email"),
        ("alerts: [{webhook: {}}]", "alerts.0.webhook: takes either url, or url_variable"),
        ("alerts: [{webhook: {url: 'ftp://T0ken-of-the-webhook'}}]", "alerts.0.webhook.url: "),
        ("alerts: [{command: [a], on: [success]}]", "alerts.0.on.0: "),
        (
            "alerts: [{email: {to: [a], sender: b, server: c, user: d, password: e}}]",
            "alerts.0.email.password: Extra inputs are not permitted",
        ),
        (
            "alerts: [{email: {to: [a], sender: b, server: c, user: d, password_variable: E, security: none}}]",
            "alerts.0.email: does not send a password unencrypted",
        ),
        ("prune: {older_than: soon}", "prune.older_than: 'soon' is no period; write for example 30d"),
        ("[]", "the file: "),
    ],
)
def test_a_file_that_cannot_be_used_is_told_by_place_and_without_secrets(text: str, sentence: str, home: Home) -> None:
    with pytest.raises(InputError) as told:
        write(home, text)
    assert f"{FILE}: {sentence}" in str(told.value)
    assert TOKEN not in str(told.value)


def test_a_file_that_others_can_write_is_not_believed(home: Home, tmp_path: Path) -> None:
    """Else they could run a command as the service."""
    write(home, f"alerts: [{{command: [touch, {tmp_path}/owned]}}]")
    (home.root / FILE).chmod(0o666)
    with pytest.raises(InputError, match="others can write it, and it names commands to run"):
        Operations.of(home)


def test_without_a_file_nobody_is_told(home: Home) -> None:
    assert Operations.of(home) == Operations()


def test_the_example_of_the_page_can_be_used_with_every_target(home: Home) -> None:
    page = (Path(__file__).parents[3] / "docs" / "operations.md").read_text()
    example = page.partition("# var/operations.yaml\n")[2].partition("```")[0]
    operations = write(home, re.sub(r"(?m)^# (?=- | )", "", example))
    assert [sum(kind is not None for kind in (one.command, one.webhook, one.email)) for one in operations.alerts] == [
        1
    ] * 3
    assert [one.on for one in operations.alerts][2] == ("failed", "late")


# The sensors, in a real instance


@pytest.fixture
def place(home: Home, tmp_path: Path) -> tuple[ReleaseSpec, Home]:
    folder = write_dataset(tmp_path / "people", spec=policy() | {"schedule": "0 3 * * *"})
    return ReleaseSpec.load(folder), home


def tick(sensor: dg.SensorDefinition, instance: dg.DagsterInstance, cursor: str | None) -> str | None:
    """One look of a sensor; its cursor afterwards."""
    context = dg.build_sensor_context(instance, cursor=cursor, definitions=dg.Definitions(sensors=[sensor]))
    return sensor.evaluate_tick(context).cursor


@pytest.mark.long
def test_a_run_that_fails_is_told_once_and_never_quotes_anybody(
    place: tuple[ReleaseSpec, Home], web: WebServer, caplog: pytest.LogCaptureFixture
) -> None:
    """A row that is no number, and a program that is gone; the run's page says who was told."""
    spec, home = place
    write(
        home,
        "address: https://dagster.example.org\nalerts:\n"
        f"- webhook: {{url: '{web.address}'}}\n- command: [/no/program]\n",
    )
    sensor = build_alerts_of_runs(home, [spec])
    frame = people().astype({"age": object})
    frame.loc[7, "age"] = "Zebulon Quackenbush"
    frame.to_csv(spec.source_path, index=False)
    job = build_definitions([spec], Runtime(home=str(home.root))).resolve_job_def("people_release")
    with open_instance(home) as instance:
        cursor = tick(sensor, instance, None)
        run = job.execute_in_process(instance=instance, raise_on_error=False)
        assert not run.success
        earlier = cursor
        cursor = tick(sensor, instance, cursor)
        tick(sensor, instance, cursor)
        tick(sensor, instance, earlier)  # the daemon was killed before it stored the cursor
        lines = [entry.message for entry in instance.all_logs(run.run_id)]
        stored = instance.get_run_by_id(run.run_id)
    (posted,) = web.taken
    assert (posted["dataset"], posted["event"]) == ("people", "failed")
    assert posted["sentence"].startswith("raw_data: ") or "age" in posted["sentence"]
    assert posted["address"] == f"https://dagster.example.org/runs/{run.run_id}"
    assert "Zebulon" not in json.dumps(posted) + caplog.text + "".join(map(str, lines))
    assert "Alert of the run to webhook 127.0.0.1: delivered." in lines
    assert "Alert of the run to command program: cannot be run (No such file or directory)." in lines
    assert stored is not None
    assert stored.status is dg.DagsterRunStatus.FAILURE


@pytest.mark.long
def test_a_refusal_is_told_by_demand_without_what_was_measured(place: tuple[ReleaseSpec, Home], web: WebServer) -> None:
    """Whoever knows all rows but one could compare an exact figure of the refused table with each guess at the last."""
    spec, home = place
    write(home, f"alerts:\n- webhook: {{url: '{web.address}'}}\n")

    @dg.asset(key_prefix="people", name="anonymized_table", check_specs=[])
    def table() -> None: ...

    @dg.asset_check(asset=table, blocking=True)
    def t_closeness() -> dg.AssetCheckResult:
        metadata = {"check": "t_closeness_ill", "demand": "t is at most 0.2", "measured": 0.31415}
        return dg.AssetCheckResult(passed=False, description="t is 0.31415", metadata=metadata)

    definitions = dg.Definitions(assets=[table], asset_checks=[t_closeness])
    sensor = build_alerts_of_runs(home, [spec])
    with open_instance(home) as instance:
        cursor = tick(sensor, instance, None)
        job = definitions.resolve_implicit_global_asset_job_def()
        job.execute_in_process(instance=instance, raise_on_error=False, tags={"anon_pipeline/dataset": "people"})
        job.execute_in_process(instance=instance, raise_on_error=False)  # of somebody else's code location
        for _ in range(3):
            cursor = tick(sensor, instance, cursor)
    (posted,) = web.taken
    assert (posted["event"], posted["sentence"]) == ("refused", "t_closeness_ill: t is at most 0.2")
    assert "0.31" not in json.dumps(posted)


@pytest.mark.long
def test_a_demand_that_nobody_can_meet_is_told_without_what_was_measured(
    home: Home, web: WebServer, tmp_path: Path
) -> None:
    """The attacker knows all rows but the illness of one person, and reads the alert of a run that could not begin.

    It said the entropy of the whole table in six digits. Tried with every value of that person, only one fitted.
    """
    write(home, f"alerts:\n- webhook: {{url: '{web.address}'}}\n")
    diverse = {"column": "ill", "l": 3, "kind": "entropy"}
    spec = policy() | {"privacy": {"k_anonymity": {"k": 10}, "l_diversity": diverse}}
    for ill in ("yes", "no"):
        frame = people()
        frame.loc[7, "ill"] = ill
        loaded = ReleaseSpec.load(write_dataset(tmp_path / "people", frame, spec))
        sensor = build_alerts_of_runs(home, [loaded])
        job = build_definitions([loaded], Runtime(home=str(home.root))).resolve_job_def("people_release")
        with open_instance(home) as instance:
            cursor = tick(sensor, instance, None)
            assert not job.execute_in_process(instance=instance, raise_on_error=False).success
            tick(sensor, instance, cursor)
    sick, well = (posted["sentence"] for posted in web.taken)
    assert sick == well
    assert sick.startswith("privacy.l_diversity: the exponential of the entropy of ill is … in the whole table")


@pytest.mark.long
@pytest.mark.parametrize(
    ("refused", "told"),
    [
        (
            Refused(["t_closeness: at most 0.2; the best is 0.4132"], demanded=["t_closeness: at most 0.2"]),
            "t_closeness: at most 0.2",
        ),
        (Refused(["12 people of column x7 have 3.5e-05 of 4,096.5 %"]), "… people of column x7 have … of … %"),
    ],
)
def test_a_step_that_refuses_is_told_without_what_was_measured(
    refused: Refused, told: str, place: tuple[ReleaseSpec, Home], web: WebServer
) -> None:
    """Whoever knows all rows but one, and the figure that was measured, would try it with every value of the last."""
    spec, home = place
    write(home, f"alerts:\n- webhook: {{url: '{web.address}'}}\n")

    @dg.asset(key_prefix="people", name="anonymizer_tree")
    def tree(context: dg.AssetExecutionContext) -> None:
        with Runtime(home=str(home.root)).step(context, spec, "anonymizer_tree"):
            raise refused

    job = dg.Definitions(assets=[tree]).resolve_implicit_global_asset_job_def()
    sensor = build_alerts_of_runs(home, [spec])
    with open_instance(home) as instance:
        cursor = tick(sensor, instance, None)
        job.execute_in_process(instance=instance, raise_on_error=False, tags={"anon_pipeline/dataset": "people"})
        tick(sensor, instance, cursor)
    (posted,) = web.taken
    assert (posted["event"], posted["sentence"]) == ("refused", told)


@pytest.mark.long
def test_a_killed_run_is_told(place: tuple[ReleaseSpec, Home], web: WebServer) -> None:
    spec, home = place
    write(home, f"alerts:\n- webhook: {{url: '{web.address}'}}\n")
    sensor = build_alerts_of_runs(home, [spec])
    tags = {"anon_pipeline/dataset": "people"}
    killed = dg.DagsterRun("people_release", status=dg.DagsterRunStatus.STARTED, tags=tags)
    with open_instance(home) as instance:
        cursor = tick(sensor, instance, None)
        instance.run_storage.add_run(killed)
        instance.report_run_failed(killed, "The command that ran it was killed.")
        tick(sensor, instance, cursor)
    (posted,) = web.taken
    assert (posted["event"], "process was killed" in posted["sentence"]) == ("failed", True)


@pytest.mark.long
def test_a_file_that_cannot_be_used_is_told_in_the_run_and_changes_nothing_of_it(
    place: tuple[ReleaseSpec, Home],
) -> None:
    spec, home = place
    (home.root / FILE).write_text("alerts: [")
    (home.root / FILE).chmod(0o600)
    sensor = build_alerts_of_runs(home, [spec])
    failed = dg.DagsterRun("people_release", tags={"anon_pipeline/dataset": "people"})
    with open_instance(home) as instance:
        cursor = tick(sensor, instance, None)
        instance.run_storage.add_run(failed)
        instance.report_run_failed(failed)
        tick(sensor, instance, cursor)
        lines = [entry.message for entry in instance.all_logs(failed.run_id)]
    assert any(f"No alert of the run was sent: {home.root / FILE}: is not YAML" in line for line in lines)


@pytest.mark.long
def test_a_late_release_is_told_once_until_the_next_one(
    place: tuple[ReleaseSpec, Home], web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, home = place
    write(home, f"alerts:\n- webhook: {{url: '{web.address}'}}\n")
    sensor = build_alerts_of_late_releases(home, [spec])
    assert sensor is not None
    now = datetime(2026, 3, 1, tzinfo=UTC)

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return now

    monkeypatch.setattr("anon_pipeline.pipeline.automation.upkeep.datetime", Clock)
    with open_instance(home) as instance:
        cursor = tick(sensor, instance, None)  # the first look, at a dataset that was never released
        now += timedelta(hours=29)
        cursor = tick(sensor, instance, cursor)
        assert web.taken == []
        now += timedelta(hours=2)  # a day and a quarter are over
        for _ in range(3):
            cursor = tick(sensor, instance, cursor)
        assert [posted["event"] for posted in web.taken] == ["late"]
        assert "there has been none since 01 March 2026, 00:00 UTC" in web.taken[0]["sentence"]
        instance.report_runless_asset_event(dg.AssetMaterialization(["people", "release"]))
        now = datetime.fromtimestamp(time.time(), UTC) + timedelta(hours=29)
        cursor = tick(sensor, instance, cursor)
        assert len(web.taken) == 1
        now += timedelta(hours=2)
        for _ in range(2):
            cursor = tick(sensor, instance, cursor)
    assert [posted["event"] for posted in web.taken] == ["late", "late"]
    assert web.taken[1]["address"] == "http://127.0.0.1:3000/assets/people/release"
    assert "the last release came on" in web.taken[1]["sentence"]


def test_without_a_schedule_nothing_is_late(home: Home) -> None:
    assert build_alerts_of_late_releases(home, [ReleaseSpec.model_validate(policy())]) is None
