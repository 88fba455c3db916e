"""The web server answers its own pages and programs of the machine, whatever a page of another origin sends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.pipeline.web.guard import Guard

PORT = 3000
OWN = {"host": ["127.0.0.1:3000"]}
JSON = {"content-type": ["application/json"]}
GUARD = Guard.at(PORT)


@pytest.mark.parametrize("host", ["127.0.0.1:3000", "localhost:3000", "LOCALHOST:3000", "[::1]:3000"])
def test_its_own_pages_and_programs_are_answered(host: str) -> None:
    own = {"host": [host], "origin": [f"http://{host}"], "sec-fetch-site": ["same-origin"]}
    assert GUARD.refusal("GET", "/", {"host": [host]}) is None
    assert (
        GUARD.refusal("POST", "/graphql", {"host": [host], "content-type": ["application/json; charset=utf-8"]}) is None
    )
    assert GUARD.refusal("POST", "/graphql", own | JSON) is None
    assert GUARD.refusal("GET", "/graphql", own | {"upgrade": ["websocket"]}) is None


def test_a_link_of_another_site_opens_a_page_and_nothing_else() -> None:
    link = {"sec-fetch-site": ["cross-site"], "sec-fetch-mode": ["navigate"], "sec-fetch-dest": ["document"]}
    assert GUARD.refusal("GET", "/runs", OWN | link) is None
    assert GUARD.refusal("GET", "/graphql", OWN | link)
    assert GUARD.refusal("POST", "/graphql", OWN | link | JSON)
    assert GUARD.refusal("GET", "/runs", OWN | link | {"sec-fetch-dest": ["iframe"]})
    assert GUARD.refusal("GET", "/runs", OWN | {"sec-fetch-site": ["same-site"], "sec-fetch-mode": ["no-cors"]})


names = st.text(min_size=1, max_size=30) | st.sampled_from(
    [
        "evil.test:3000",
        "127.0.0.1",
        "127.0.0.1:3001",
        "0.0.0.0:3000",
        "localhost:3000.evil.test",
        "localhost.evil.test:3000",
        "evil.test@127.0.0.1:3000",
        "127.0.0.1:3000@evil.test",
        "null",
        "127.1:3000",
        "localhost.:3000",
    ]
)
kinds = st.text(max_size=20) | st.sampled_from(
    [
        "text/plain",
        "application/graphql",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "text/plain; application/json",
        "application/json, text/plain",
    ]
)


@pytest.mark.long
@given(
    name=names,
    method=st.sampled_from(["GET", "HEAD", "POST", "OPTIONS", "PUT"]),
    path=st.sampled_from(["/", "/graphql"]),
)
def test_no_other_name_and_no_other_origin_is_answered(name: str, method: str, path: str) -> None:
    if name.lower() in GUARD.hosts:
        return
    assert GUARD.refusal(method, path, {"host": [name]} | JSON)
    assert GUARD.refusal(method, path, {"host": [*OWN["host"], name]} | JSON)
    for origin in (name, f"http://{name}", f"https://{name}", f"file://{name}"):
        if origin not in {f"http://{one}" for one in GUARD.hosts} | {f"https://{one}" for one in GUARD.hosts}:
            assert GUARD.refusal(method, path, OWN | JSON | {"origin": [origin]})
            assert GUARD.refusal("GET", path, OWN | {"origin": [origin], "upgrade": ["websocket"]})


@given(kind=st.lists(kinds, max_size=2), method=st.sampled_from(["POST", "PUT", "DELETE", "OPTIONS"]))
def test_orders_are_taken_by_post_with_json_only(kind: list[str], method: str) -> None:
    if [one.split(";")[0].strip().lower() for one in kind] != ["application/json"]:
        assert GUARD.refusal(method, "/graphql", OWN | ({"content-type": kind} if kind else {}))
    if method != "POST":
        assert GUARD.refusal(method, "/graphql", OWN | JSON)


def test_more_names_are_added_one_by_one() -> None:
    guard = Guard.at(PORT, ["Dagster.example.org", "localhost:4000", ""])
    proxied = {"host": ["dagster.example.org"], "origin": ["https://dagster.example.org"]} | JSON
    assert guard.refusal("POST", "/graphql", proxied) is None
    assert guard.refusal("GET", "/", {"host": ["localhost:4000"]}) is None
    assert guard.refusal("GET", "/", {"host": ["dagster.example.org:8080"]})
    assert guard.refusal("GET", "/", {"host": [""]})
    assert Guard.at(80).refusal("GET", "/", {"host": ["localhost"]}) is None
