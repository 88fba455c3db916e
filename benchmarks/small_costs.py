"""Processor seconds of what should cost little: an error before any work, opening a database, putting a release away.

Run: python -m benchmarks.small_costs [--rows 1000000]
Errors are those of `anon-pipeline run` on broken copies of Adult, each in a process of its own, the median of three.
Places are put a release of ten columns, asked whether it stands there, and read again; servers are not counted.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from anon_pipeline.destinations import delivery
from anon_pipeline.destinations.base import Release
from anon_pipeline.home import Home
from anon_pipeline.release import ledger
from anon_pipeline.spec import Destination
from anon_pipeline_tests.destinations.releases import publish
from anon_pipeline_tests.object_store import BUCKET, running_object_store
from anon_pipeline_tests.postgresql import running_server

ADULT = Path(__file__).parents[1] / "data/adult"
#: The mistakes in copies of Adult: a text of the spec and its replacement, or a file that is removed.
BROKEN: dict[str, tuple[str, str] | str] = {
    "a missing file": "adult.parquet",
    "an unknown column": ("marital_status:", "marital_statu:"),
    "a k above the rows": ("k_anonymity: {k: 10}", "k_anonymity: {k: 100000}"),
}
DSN = "BENCHMARK_DSN"


def of_children(*arguments: str) -> float:
    """Processor seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([Path(sys.executable).with_name("anon-pipeline"), *arguments], capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def errors(folder: Path) -> Iterator[tuple[str, float]]:
    yield "--help", statistics.median(of_children("--help") for _ in range(3))
    for name, broken in BROKEN.items():
        copy = Path(shutil.copytree(ADULT, folder / name))
        if isinstance(broken, str):
            (copy / broken).unlink()
        else:
            text = (copy / "release.yaml").read_text()
            assert broken[0] in text, broken
            (copy / "release.yaml").write_text(text.replace(*broken))
        yield name, statistics.median(of_children("run", str(copy)) for _ in range(3))


def openings(folder: Path) -> Iterator[tuple[str, float]]:
    before = time.process_time()
    for number in range(20):
        duckdb.connect(folder / f"{number}.duckdb").close()
    yield "a database is opened", (time.process_time() - before) / 20
    with duckdb.connect(folder / "one.duckdb") as connection:
        before = time.process_time()
        for _ in range(200):
            connection.cursor().close()
        yield "a connection to an open one", (time.process_time() - before) / 200


def _serve(told: Any, stop: Any) -> None:
    with running_object_store() as store:
        told.put(dict(store.environment))
        stop.wait()


@contextmanager
def store_elsewhere() -> Iterator[None]:
    """An object store in a process of its own, so that its work is not measured."""
    processes = multiprocessing.get_context("spawn")
    told, stop = processes.Queue(), processes.Event()
    process = processes.Process(target=_serve, args=(told, stop))
    process.start()
    os.environ |= told.get()
    try:
        yield
    finally:
        stop.set()
        process.join()


def places(folder: Path, rows: int) -> Iterator[tuple[str, float, float, float]]:
    random = np.random.default_rng(0)
    columns = {f"n{one}": random.integers(0, 1000, rows) for one in range(5)}
    texts = {f"t{one}": np.char.add("value ", random.integers(0, 50, rows).astype(str)) for one in range(5)}
    home = Home(folder / "home").prepare()
    publish(home, "v1", pa.table(columns | texts))
    (folder / "warehouse").mkdir()
    catalogue = "PYICEBERG_CATALOG__BENCHMARK__"
    os.environ[f"{catalogue}URI"] = f"sqlite:///{folder}/catalogue.db"
    os.environ[f"{catalogue}WAREHOUSE"] = f"file://{folder}/warehouse"
    server: dict[str, Any] = {"database": "postgresql", "connection": {"env": DSN}, "schema": "open"}
    for name, stated in (
        ("objects", {"objects": f"s3://{BUCKET}/open"}),
        ("Delta Lake", {"delta": str(folder / "table")}),
        ("PostgreSQL", server),
        ("Iceberg", {"iceberg": "benchmark.open.people"}),
    ):
        place = delivery._place(Destination.model_validate(stated))
        (entry,) = ledger.read(home)
        release = Release.of(home, entry)
        put = _seconds(lambda place=place, release=release: place.put(release))
        again = _seconds(lambda place=place, release=release: _assert(place.holds(release)))
        read = _seconds(lambda place=place, release=release: _assert(not place.problems(release, folder)))
        yield name, put, read, again


def _assert(holds: bool) -> None:
    assert holds


def _seconds(work: Callable[[], None]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as servers:
        folder = Path(temporary)
        os.environ |= {"ANON_PIPELINE_HOME": str(folder / "none"), "ANON_PIPELINE_DATA": str(folder)}
        print("| Of anon-pipeline, or DuckDB | cpu s |\n|---|---|")
        for name, seconds in (*errors(folder), *openings(folder)):
            print(f"| {name} | {seconds:.2g} |", flush=True)
        servers.enter_context(store_elsewhere())
        server = servers.enter_context(running_server())
        os.environ[DSN] = server.address("owner", "")
        print(f"\n| A release of {rows:,} rows | put | read | asked again |\n|---|---|---|---|")
        for name, *figures in places(folder, rows):
            print(f"| {name} | " + " | ".join(f"{figure:.2f}" for figure in figures) + " |", flush=True)


if __name__ == "__main__":
    main()
