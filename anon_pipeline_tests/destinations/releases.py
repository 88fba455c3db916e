"""Small releases that stand in a ledger, made without a run, and what a kill is."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.destinations import delivery
from anon_pipeline.errors import NotDelivered
from anon_pipeline.home import Home
from anon_pipeline.release.publication import publish_folder
from anon_pipeline.spec import Destination

DATASET = "people"
#: Names that a server must not take for anything else.
ODD = "wo\"hn'ort; DROP TABLE x --"


def table(of: str, people: int = 6) -> pa.Table:
    """Rows that differ from release to release, with a column of every type that a release has."""
    return pa.table(
        {
            "age": pa.array([20, None] * (people // 2), pa.int32()),
            ODD: [f"{of} ö", None] * (people // 2),
            "born": pa.array([datetime.date(1900, 2, 28)] * people),
            "seen": pa.array([datetime.datetime(2024, 2, 29, 1, 2, 3, 4)] * people, pa.timestamp("us")),
            "score": [0.1, float("inf")] * (people // 2),
            "ill": pa.array(["yes", "no"] * (people // 2)).dictionary_encode(),
            "..": [True, None] * (people // 2),
        }
    )


def publish(home: Home, version: str, rows: pa.Table | None = None) -> str:
    """A release that stands, and is the current one."""
    rows = table(version) if rows is None else rows

    def write(folder: Path) -> dict[str, Any]:
        pq.write_table(rows, folder / "data.parquet")
        pq.write_table(
            pa.table({"class_size": [3], f"{ODD}_values": pa.array([[version]], pa.list_(pa.string()))}),
            folder / "classes.parquet",
        )
        (folder / "report.html").write_text(f"<p>{version}</p>")
        columns = {name: {"role": "quasi_identifier", "why": f"it's {name}"} for name in rows.column_names}
        return {"dataset": DATASET, "version": version, "description": "People's 'table'", "spec": {"columns": columns}}

    publish_folder(home, DATASET, version, write)
    return version


def deliver(home: Home, version: str, place: Destination) -> None:
    delivery.deliver(home, DATASET, version, [place])


class Killed(BaseException):
    """The process ends here."""


@contextmanager
def killed_at(owner: Any, name: str, moment: int) -> Iterator[list[int]]:
    """Let the `moment`-th call of a function of `owner` be the last; what is yielded counts the calls."""
    calls: list[int] = []
    genuine: Callable[..., Any] = getattr(owner, name)

    def counted(*arguments: Any, **named: Any) -> Any:
        if len(calls) == moment:
            raise Killed
        calls.append(1)
        return genuine(*arguments, **named)

    setattr(owner, name, counted)
    try:
        yield calls
    finally:
        setattr(owner, name, genuine)


def failure(home: Home, version: str, place: Destination) -> str:
    """The sentence of a delivery that fails."""
    try:
        deliver(home, version, place)
    except NotDelivered as error:
        return str(error)
    raise AssertionError("it did not fail")
