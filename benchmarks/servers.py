"""Reading many people from a server of a database into the private zone: memory and processor time of our own process.

    python -m benchmarks.servers [--server postgresql|mysql] [--rows 10000000] [--memory 500MB]

A server is started on a socket of its own and filled by itself; it is no part of what is measured. The same people are
then read from a Parquet file, likewise in a process of its own, and both must have one content.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.servers import store_server
from anon_pipeline.spec import ReleaseSpec, Source
from anon_pipeline_tests import mariadb, postgresql

VARIABLE = "BENCHMARK_DSN"
ROLES = {
    "age": "quasi_identifier",
    "town": {"role": "quasi_identifier", "type": "categorical"},
    "sex": {"role": "quasi_identifier", "type": "categorical"},
    "education": {"role": "quasi_identifier", "type": "categorical"},
    "pay": "insensitive",
    "ill": "sensitive",
}


@contextmanager
def filled_postgresql(rows: int) -> Iterator[str]:
    with postgresql.running_server() as server:
        server.execute(
            "CREATE UNLOGGED TABLE people AS SELECT (18 + i % 70)::smallint AS age, 'town ' || i * 7919 % 211 AS town, "
            "CASE WHEN i % 2 = 0 THEN 'f' ELSE 'm' END AS sex, 'degree ' || i * 31 % 16 AS education, "
            "(1000 + i % 90000 / 8.0)::numeric(12, 2) AS pay, CASE WHEN i % 5 = 0 THEN 'yes' ELSE 'no' END AS ill "
            f"FROM generate_series(1::bigint, {rows}) AS i; GRANT SELECT ON people TO reader"
        )
        yield server.address()


@contextmanager
def filled_mysql(rows: int) -> Iterator[str]:
    with mariadb.running_server() as server:
        server.execute(
            "USE clinic",
            "CREATE TABLE people (age smallint, town varchar(20), sex char(1), education varchar(20), "
            "pay decimal(12, 2), ill varchar(3))",
            "INSERT INTO people SELECT 18 + seq % 70, CONCAT('town ', seq * 7919 % 211), IF(seq % 2 = 0, 'f', 'm'), "
            "CONCAT('degree ', seq * 31 % 16), 1000 + seq % 90000 / 8, IF(seq % 5 = 0, 'yes', 'no') "
            f"FROM seq_1_to_{rows}",
            "GRANT SELECT ON clinic.* TO reader@localhost",
        )
        yield server.address()


SERVERS = {"postgresql": filled_postgresql, "mysql": filled_mysql}


def _peak() -> float:
    """The peak memory of this process in MB (VmHWM)."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1000


def _read(folder: Path, source: dict[str, Any], memory: str, answers: Any) -> None:
    """Read the source as the asset `raw_data` does, in a process of its own."""
    content = {
        "dataset": "people",
        "source": source,
        "target": "ill",
        "columns": {name: {"role": role} if isinstance(role, str) else role for name, role in ROLES.items()},
        "privacy": {"k_anonymity": {"k": 10}},
    }
    (folder / "release.yaml").write_text(yaml.safe_dump(content))
    spec, before = ReleaseSpec.load(folder), time.perf_counter()
    own = resource.getrusage(resource.RUSAGE_SELF)
    at_start = own.ru_utime + own.ru_stime
    facts = DuckDBEngine(folder, memory, 2).store_source(spec, folder / "stored.parquet")
    own = resource.getrusage(resource.RUSAGE_SELF)
    answers.put(
        {
            "peak_mb": round(_peak()),
            "cpu_seconds": round(own.ru_utime + own.ru_stime - at_start, 1),
            "seconds": round(time.perf_counter() - before, 1),
            "rows": facts.rows,
            "content": facts.content_hash,
        }
    )


def measured(folder: Path, source: dict[str, Any], memory: str) -> dict[str, Any]:
    folder.mkdir()
    processes = multiprocessing.get_context("spawn")
    answers = processes.Queue()
    process = processes.Process(target=_read, args=(folder, source, memory, answers))
    process.start()
    figures: dict[str, Any] = answers.get()
    process.join()
    shutil.rmtree(folder)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", choices=sorted(SERVERS), default="postgresql")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--memory", default="500MB", help="what DuckDB may use")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, SERVERS[arguments.server](arguments.rows) as address:
        os.environ[VARIABLE] = address
        said = {"database": arguments.server, "connection": {"env": VARIABLE}, "table": "people"}
        file = Path(temporary) / "people.parquet"
        from_server = measured(Path(temporary) / "server", said, arguments.memory)
        store_server(Source.model_validate(said), Path(temporary), file, lambda _: None)
        from_file = measured(Path(temporary) / "file", {"path": str(file)}, arguments.memory)
    assert from_server.pop("content") == from_file.pop("content"), "the same people"
    ratio = round(from_server["cpu_seconds"] / from_file["cpu_seconds"], 2)
    print(json.dumps({"server": from_server, "file": from_file, "cpu_ratio": ratio}, indent=2))


if __name__ == "__main__":
    main()
