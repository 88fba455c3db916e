"""Alerts: their content, and how they are sent to a command, a webhook or a mailbox. Dagster is not imported.

An alert may leave the organization. It holds the dataset, the event, the sentence of the run and the address of the
run's page. It never holds a row, nor a figure measured on people who were not released.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import smtplib
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from anon_pipeline.home import Home
from anon_pipeline.pipeline.automation.operations import Email, Event, Target, Webhook

#: Seconds that a target may take to answer; Dagster gives the sensor that waits for it a minute.
ANSWERS_WITHIN = 10
#: The folder of the private zone with one file per alert: its content, and the result per target.
FOLDER = "alerts"

#: The result of an alert that arrived.
DELIVERED = "delivered"

log = logging.getLogger("anon_pipeline")


@dataclass(frozen=True)
class Alert:
    """One alert.

    Attributes
    ----------
    name : the unique name of this alert; an alert with the same name is sent once
    event : the event that it reports
    sentence : the reason
    address : the address of the page that shows the run
    time : when it was made, the same for every target
    """

    name: str
    dataset: str
    event: Event
    sentence: str
    address: str
    time: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def subject(self) -> str:
        return f"{self.dataset}: {self.event}"

    @property
    def text(self) -> str:
        return f"{self.subject}\n{self.sentence}\n{self.address}"

    def to_json(self) -> dict[str, str]:
        """The alert as JSON, with a `text` for chat programs."""
        return {
            "text": self.text,
            "dataset": self.dataset,
            "event": self.event,
            "sentence": self.sentence,
            "address": self.address,
            "time": self.time.isoformat(timespec="seconds"),
        }


class _Undelivered(Exception):
    """The reason why a target did not accept an alert, without secrets."""


def send_once(home: Home, targets: tuple[Target, ...], alert: Alert) -> dict[str, str] | None:
    """Send an alert to every target that wants it, unless it was sent before.

    It counts as sent before the first attempt. So a kill may leave it unsent, but nobody gets it twice.

    Returns
    -------
    the result by target, or None if it was sent before
    """
    file = home.private_folder(FOLDER) / f"{alert.name}.json"
    try:
        file.touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        return None
    outcomes = send(targets, alert)
    file.write_text(json.dumps({**alert.to_json(), "outcomes": outcomes}, indent=2) + "\n", encoding="utf-8")
    return outcomes


def send(targets: tuple[Target, ...], alert: Alert) -> dict[str, str]:
    """Send an alert to every target that wants it, now; returns the result by target. Never raises."""
    wanting = [target for target in targets if alert.event in target.on]
    if not wanting:
        return {}
    with ThreadPoolExecutor(len(wanting)) as threads:
        answers = list(threads.map(lambda target: _outcome(target, alert), wanting))
    outcomes: dict[str, str] = {}
    for target, answer in zip(wanting, answers, strict=True):
        name = described(target)
        outcomes[name if name not in outcomes else f"{name} ({len(outcomes) + 1})"] = answer
        if answer != DELIVERED:
            log.warning("the alert %s did not reach %s: %s", alert.subject, name, answer)
    return outcomes


def _outcome(target: Target, alert: Alert) -> str:
    try:
        if target.command is not None:
            _run(target.command, alert)
        elif target.webhook is not None:
            _post(target.webhook, alert)
        elif target.email is not None:
            _mail(target.email, alert)
    except _Undelivered as why:
        return str(why)
    except Exception as error:  # its text may hold an address with a token in it
        return f"not delivered ({type(error).__name__})"
    return DELIVERED


def described(target: Target) -> str:
    """A target without its secrets: the program, the host, or the mailboxes."""
    if target.command is not None:
        return f"command {Path(target.command[0]).name}"
    if target.webhook is not None:
        return f"webhook {urlsplit(target.webhook.url).hostname if target.webhook.url else target.webhook.url_variable}"
    return f"email {', '.join(target.email.to) if target.email else ''}"


def _secret(variable: str) -> str:
    value = os.environ.get(variable)
    if not value:
        raise _Undelivered(f"the variable {variable} is not set")
    return value


def _run(command: tuple[str, ...], alert: Alert) -> None:
    """Run a program, without a shell, with the alert as JSON on its standard input."""
    try:
        process = subprocess.Popen(  # noqa: S603 (the operator's own command)
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise _Undelivered(f"cannot be run ({error.strerror})") from None
    try:
        process.communicate(json.dumps(alert.to_json()).encode(), timeout=ANSWERS_WITHIN)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise _Undelivered(f"has not ended within {ANSWERS_WITHIN} s") from None
    if process.returncode != 0:
        raise _Undelivered(f"ended with exit code {process.returncode}")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Does not follow redirects, so that the content is not sent to another address."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _post(webhook: Webhook, alert: Alert) -> None:
    url = webhook.url or _secret(str(webhook.url_variable))
    if urlsplit(url).scheme not in ("http", "https"):
        raise _Undelivered(f"{webhook.url_variable} holds no http or https address")
    request = urllib.request.Request(  # noqa: S310 (checked above)
        url, json.dumps(alert.to_json()).encode(), {"Content-Type": "application/json"}, method="POST"
    )
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=ANSWERS_WITHIN):
            pass
    except urllib.error.HTTPError as error:
        raise _Undelivered(f"answered {error.code}") from None
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise _Undelivered(f"cannot be reached ({type(reason).__name__})") from None


def _mail(email: Email, alert: Alert) -> None:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = alert.subject, email.sender, ", ".join(email.to)
    message.set_content(alert.text)
    tls: Mapping[str, Any] = {"context": ssl.create_default_context()}
    try:
        with (
            smtplib.SMTP_SSL(email.server, email.port, timeout=ANSWERS_WITHIN, **tls)
            if email.security == "tls"
            else smtplib.SMTP(email.server, email.port, timeout=ANSWERS_WITHIN)
        ) as server:
            if email.security == "starttls":
                server.starttls(**tls)
            if email.user is not None:
                server.login(email.user, _secret(str(email.password_variable)))
            server.send_message(message)
    except smtplib.SMTPException as error:
        raise _Undelivered(f"the mail server refused it ({type(error).__name__})") from None
    except OSError as error:
        raise _Undelivered(f"the mail server cannot be reached ({type(error).__name__})") from None
