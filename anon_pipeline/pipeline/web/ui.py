"""Dagster's UI and daemon as `dagster dev` starts them, with the guarded web server in the place of its own.

`python -m anon_pipeline.pipeline.web.ui` takes the arguments of `dagster dev`, all but the host. Dagster's own server
is told to listen on a name that exists nowhere, so that a change in Dagster can end the UI, but never open it.
"""

import sys
from typing import Any

from dagster._cli import dev

THEIRS, OURS = "dagster_webserver", "anon_pipeline.pipeline.web.webserver"
#: No name of a machine, ever (RFC 2606).
NOWHERE = "unguarded.invalid"


def main() -> None:
    """Run until stopped."""
    start = dev.open_ipc_subprocess  # type: ignore[attr-defined]

    def guarded(command: list[str], **how: Any) -> Any:
        return start([OURS if part == THEIRS else part for part in command], **how)

    dev.open_ipc_subprocess = guarded  # type: ignore
    dev.dev_command([*sys.argv[1:], "--host", NOWHERE], prog_name="anon-pipeline ui")


if __name__ == "__main__":
    main()
