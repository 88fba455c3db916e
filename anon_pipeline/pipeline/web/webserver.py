"""Dagster's web server on loopback, with the guard before it: `python -m anon_pipeline.pipeline.web.webserver`.

It takes the arguments of `dagster-webserver` except the host: it listens on 127.0.0.1.
"""

import os
from typing import Any

import uvicorn
from dagster_webserver import cli
from dagster_webserver.webserver import DagsterWebserver
from starlette.middleware import Middleware

from anon_pipeline.pipeline.web.guard import ALLOW_HOSTS, Guard
from anon_pipeline.pipeline.web.guarded import HOST, Guarded


class GuardedWebserver(DagsterWebserver):
    """Dagster's web server, whose outermost layer is the guard."""

    guard: Guard

    def build_middleware(self) -> list[Middleware]:
        return [Middleware(Guarded, guard=self.guard), *super().build_middleware()]


def serve(
    context: Any, _host: str, port: int | None, path_prefix: str, log_level: str, live_data_poll_rate: int | None = None
) -> None:
    """Replaces `host_dagster_ui_with_workspace_process_context`, which would bind the host without a guard."""
    port = port or cli.DEFAULT_WEBSERVER_PORT
    GuardedWebserver.guard = Guard.at(port, os.environ.get(ALLOW_HOSTS, "").split(","))
    app = GuardedWebserver(context, path_prefix, live_data_poll_rate).create_asgi_app(lifespan=cli._lifespan)
    uvicorn.run(app, host=HOST, port=port, log_level=log_level)


if __name__ == "__main__":
    cli.host_dagster_ui_with_workspace_process_context = serve  # type: ignore[assignment]
    cli.main()  # type: ignore[no-untyped-call]
