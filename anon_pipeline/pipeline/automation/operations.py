"""The operator's settings, in `operations.yaml` of the home: targets of alerts, and how long ended runs are kept."""

from __future__ import annotations

import os
import re
import stat
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, Field, ValidationError, model_validator

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.spec.parts import Strict
from anon_pipeline.spec.written import PlainLoader

FILE = "operations.yaml"
#: The events that an alert can report.
Event = Literal["failed", "refused", "late"]
_UNITS = {"h": 1, "d": 24, "w": 7 * 24}  # hours


def period(text: Any) -> timedelta:
    """A period as people write it: `12h`, `30d`, `8w`.

    >>> period("30d").days
    30

    Raises
    ------
    InputError
        Where it is none.
    """
    if isinstance(text, timedelta):
        return text
    written = re.fullmatch(r"([0-9]{1,5})([hdw])", str(text))
    if written is None:
        raise InputError(f"{text!r} is no period; write for example 30d (d days, h hours, w weeks)")
    return timedelta(hours=int(written[1]) * _UNITS[written[2]])


class Webhook(Strict):
    """An address that takes JSON by POST. One that holds a secret is named by a variable of the environment."""

    url: str | None = Field(default=None, pattern=r"^https?://[^\s/]+\S*$")
    url_variable: str | None = None

    @model_validator(mode="after")
    def _has_one_address(self) -> Webhook:
        if (self.url is None) == (self.url_variable is None):
            raise ValueError("takes either url, or url_variable: the name of the variable that holds it")
        return self


class Email(Strict):
    """A message by SMTP. The password is in a variable of the environment."""

    to: tuple[str, ...] = Field(min_length=1)
    sender: str
    server: str
    port: int = Field(default=587, ge=1, le=65_535)
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: str | None = None
    password_variable: str | None = None

    @model_validator(mode="after")
    def _shows_no_password(self) -> Email:
        if (self.user is None) != (self.password_variable is None):
            raise ValueError("takes user and password_variable, the name of the variable that holds it, or neither")
        if self.user is not None and self.security == "none":
            raise ValueError("does not send a password unencrypted; security is starttls or tls")
        return self


class Target(Strict):
    """Where alerts go, and which: exactly one of a command, a webhook and an e-mail."""

    command: tuple[str, ...] | None = Field(default=None, min_length=1)
    webhook: Webhook | None = None
    email: Email | None = None
    on: tuple[Event, ...] = Field(default=("failed", "refused", "late"), min_length=1)

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Target:
        if sum(kind is not None for kind in (self.command, self.webhook, self.email)) != 1:
            raise ValueError("is one of command, webhook and email")
        return self


class Keep(Strict):
    """What is kept of ended runs, in Dagster and in MLflow: those younger than a period, and the newest of each job."""

    older_than: Annotated[timedelta, BeforeValidator(period)] = timedelta(days=90)
    keep: int = Field(default=20, ge=1)


class Operations(Strict):
    """The content of `operations.yaml`.

    Attributes
    ----------
    address : under which people reach Dagster's pages; alerts link to it
    alerts : where they go
    prune : what is kept of ended runs
    """

    address: str = Field(default="http://127.0.0.1:3000", pattern=r"^https?://\S+$")
    alerts: tuple[Target, ...] = ()
    prune: Keep = Keep()

    @classmethod
    def of(cls, home: Home) -> Operations:
        """What the home's file says, or the defaults where there is none.

        Raises
        ------
        InputError
            Where it cannot be used, or where somebody else could have written the commands in it.
        """
        file = home.root / FILE
        try:
            with file.open(encoding="utf-8") as opened:
                _check_owner(file, os.fstat(opened.fileno()))
                content = yaml.load(opened, Loader=PlainLoader)  # noqa: S506 (a SafeLoader)
        except FileNotFoundError:
            return cls()
        except (OSError, UnicodeDecodeError):
            raise InputError(f"{file}: cannot be read") from None
        except yaml.YAMLError:
            raise InputError(f"{file}: is not YAML") from None
        try:
            return cls.model_validate({} if content is None else content)
        except ValidationError as error:
            raise InputError(f"{file}: {_sentences(error)}") from None


def _check_owner(file: Path, status: os.stat_result) -> None:
    if status.st_uid not in (os.geteuid(), 0) or stat.S_IMODE(status.st_mode) & 0o022:
        raise InputError(
            f"{file}: others can write it, and it names commands to run; own it, and run `chmod 600` on it"
        )


def _sentences(error: ValidationError) -> str:
    """Where something is wrong and what, without the values: one may be a secret."""
    return "; ".join(
        f"{'.'.join(map(str, problem['loc'])) or 'the file'}: {problem['msg'].removeprefix('Value error, ')}"
        for problem in error.errors(include_input=False, include_context=False, include_url=False)
    )
