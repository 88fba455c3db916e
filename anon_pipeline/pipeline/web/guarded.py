"""The guard before a web server on loopback, as ASGI middleware, for both Dagster's and MLflow's servers."""

from __future__ import annotations

from collections.abc import Callable

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from anon_pipeline.pipeline.web.guard import ANSWERED_WITH, Guard

HOST = "127.0.0.1"
POLICY_VIOLATION = 1008


class Guarded:
    """Passes on the requests that the guard allows; all others get 403 and a sentence, and never reach the server.

    Parameters
    ----------
    guard : decides which requests are answered at all
    allowed : called with the method, the path and the query of a request that the guard allows; returns why it is
        refused, or None
    """

    def __init__(
        self, app: ASGIApp, guard: Guard, allowed: Callable[[str, str, str], str | None] = lambda *_: None
    ) -> None:
        self._app, self._guard, self._allowed = app, guard, allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        if scope["type"] == "websocket":
            headers["upgrade"] = ["websocket"]
        method, path, query = (
            scope.get("method", "GET"),
            scope["path"],
            scope.get("query_string", b"").decode("latin-1"),
        )
        why = self._guard.refusal(method, path, headers) or self._allowed(method, path, query)
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
