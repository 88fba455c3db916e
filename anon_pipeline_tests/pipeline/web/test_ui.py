"""The UI as a process: it can be stopped, however it was started."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from anon_pipeline.pipeline.web import ui


@pytest.fixture
def in_the_background() -> Any:
    """A shell without job control starts what it puts into the background with Ctrl-C ignored; Dagster copies that."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, signal.SIG_IGN)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_ui_that_was_started_in_the_background_cannot_be_stopped(
    in_the_background: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers: list[Any] = []

    def started(*_: Any, **__: Any) -> None:
        handlers.extend(signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM))

    monkeypatch.setattr(ui.dev, "open_ipc_subprocess", ui.dev.open_ipc_subprocess)  # which `main` replaces
    monkeypatch.setattr(ui.dev, "dev_command", started)
    ui.main()
    assert handlers == [signal.default_int_handler] * 2
