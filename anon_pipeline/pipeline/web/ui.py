"""Dagster's UI and daemon as started by `dagster dev`, but with the guarded web server instead of Dagster's own.

`python -m anon_pipeline.pipeline.web.ui` takes the arguments of `dagster dev` except the host. Dagster's own server
gets a host name that exists nowhere. So a change in Dagster may break the UI, but never expose it without the guard.
"""

import signal
import sys
from typing import Any

from dagster._cli import dev

THEIRS, OURS = "dagster_webserver", "anon_pipeline.pipeline.web.webserver"
#: Never the name of a machine (RFC 2606).
NOWHERE = "unguarded.invalid"


def main() -> None:
    """Run until stopped."""
    start = dev.open_ipc_subprocess  # type: ignore[attr-defined]

    def guarded(command: list[str], **how: Any) -> Any:
        return start([OURS if part == THEIRS else part for part in command], **how)

    dev.open_ipc_subprocess = guarded  # type: ignore
    # A shell that starts a command in the background has it ignore Ctrl-C, and Dagster gives SIGTERM the same handler.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    dev.dev_command([*sys.argv[1:], "--host", NOWHERE], prog_name="anon-pipeline ui")


if __name__ == "__main__":
    main()
