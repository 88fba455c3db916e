"""Dagster's web server on loopback, with the guard before it: `python -m anon_pipeline.pipeline.webserver`.

It takes the arguments of `dagster-webserver`, all but the host: it listens on 127.0.0.1.
"""

import os
from typing import Any

import uvicorn
from dagster_webserver import cli
from dagster_webserver.webserver import DagsterWebserver
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from anon_pipeline.pipeline.guard import ALLOW_HOSTS, ANSWERED_WITH, Guard

HOST = "127.0.0.1"
POLICY_VIOLATION = 1008


class Guarded:
    """Answers what the guard lets through; all else gets 403 and a sentence before Dagster hears of it."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app, self._guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        if scope["type"] == "websocket":
            headers["upgrade"] = ["websocket"]
        why = self._guard.refusal(scope.get("method", "GET"), scope["path"], headers)
        if why is None:
            await self._app(scope, receive, _with_headers(send))
        elif scope["type"] == "http":
            await PlainTextResponse(f"refused: {why}\n", 403, dict(ANSWERED_WITH))(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})


def _with_headers(send: Send) -> Send:
    more = [(name.encode(), value.encode()) for name, value in ANSWERED_WITH.items()]

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *more]}
        await send(message)

    return sent


class GuardedWebserver(DagsterWebserver):
    """Dagster's web server, whose outermost layer is the guard."""

    guard: Guard

    def build_middleware(self) -> list[Middleware]:
        return [Middleware(Guarded, guard=self.guard), *super().build_middleware()]


def serve(
    context: Any, _host: str, port: int | None, path_prefix: str, log_level: str, live_data_poll_rate: int | None = None
) -> None:
    """In the place of `host_dagster_ui_with_workspace_process_context`, which would bind the host without a guard."""
    port = port or cli.DEFAULT_WEBSERVER_PORT
    GuardedWebserver.guard = Guard.at(port, os.environ.get(ALLOW_HOSTS, "").split(","))
    app = GuardedWebserver(context, path_prefix, live_data_poll_rate).create_asgi_app(lifespan=cli._lifespan)
    uvicorn.run(app, host=HOST, port=port, log_level=log_level)


if __name__ == "__main__":
    cli.host_dagster_ui_with_workspace_process_context = serve  # type: ignore[assignment]
    cli.main()  # type: ignore[no-untyped-call]
