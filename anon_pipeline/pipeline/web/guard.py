"""The rule that decides which requests a web server answers: those of its own pages and of programs on this machine.

The server has no login, and every page in the owner's browser can send requests to loopback. A browser states the
origin of a request (Origin, Sec-Fetch-Site) and the name that it looked up (Host). Before it sends JSON to another
origin, it asks that origin. So a page of another origin can start nothing, and a page under a name that was made to
resolve to loopback can read nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

#: Names under which a proxy or a tunnel reaches the server, separated by commas; `--allow-host` adds to it.
ALLOW_HOSTS = "ANON_PIPELINE_ALLOW_HOSTS"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
READING = ("GET", "HEAD")
#: The path for both queries and mutations.
GRAPHQL = "/graphql"
#: Headers of every answer: no other page may frame these pages or load their files.
ANSWERED_WITH = {
    "x-frame-options": "DENY",
    "content-security-policy": "frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


@dataclass(frozen=True)
class Guard:
    """The names of the server, each as a browser writes it into Host: `name` or `name:port`.

    Attributes
    ----------
    hosts : the names in lower case
    """

    hosts: frozenset[str]

    @classmethod
    def at(cls, port: int, more: Iterable[str] = ()) -> Guard:
        """The guard of a server on loopback at this port, which also has `more` names."""
        names = [f"{name}:{port}" for name in LOOPBACK] + [*LOOPBACK] * (port == 80)
        return cls(frozenset(name.strip().lower() for name in [*names, *more] if name.strip()))

    def refusal(self, method: str, path: str, headers: Mapping[str, list[str]]) -> str | None:
        """Why a request is refused; None if it is answered.

        Parameters
        ----------
        method : the method of HTTP; GET for a websocket
        headers : all values of each header, by its name in lower case
        """
        host = headers.get("host", [])
        if len(host) != 1 or host[0].lower() not in self.hosts:
            return "this server is not known under that name; `anon-pipeline ui --allow-host NAME` adds one"
        for origin in headers.get("origin", []):
            scheme, _, name = origin.lower().partition("://")
            if scheme not in ("http", "https") or name not in self.hosts:
                return "a page of another origin asks"
        opens = headers.get("sec-fetch-mode") == ["navigate"] and headers.get("sec-fetch-dest") == ["document"]
        own = all(site in ("same-origin", "none") for site in headers.get("sec-fetch-site", []))
        if not own and not (opens and method == "GET"):
            return "a page of another site asks"
        websocket = headers.get("upgrade", [""])[0].lower() == "websocket"
        if method in READING:
            if path.rstrip("/").endswith(GRAPHQL) and not websocket:
                return "GraphQL is asked by POST with JSON"
            return None
        kind = [value.split(";")[0].strip().lower() for value in headers.get("content-type", [])]
        if method != "POST" or kind != ["application/json"]:
            return "what is more than reading is asked by POST with JSON"
        return None
