"""Noisy statistics of ten million people: what counting under bounds costs, against plain DuckDB and against a sort.

    python -m benchmarks.differential_privacy [--rows 10000000] [--memory 2GB] [--folder FOLDER]

The people are those of `benchmarks.large`, each with the number of a person that about three rows share. Noise is drawn
too; it costs microseconds a figure. The row level stands beside the same GROUP BY in plain DuckDB, the person level
(two groups, two rows) beside a sort of the table by person, as which bounding contributions is often done.
"""

from __future__ import annotations

import argparse
import platform
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import yaml

from anon_pipeline.differential_privacy import answering, queries, reading
from anon_pipeline.differential_privacy.queries import Share
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.sql import literal
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline.spec.written import PlainLoader
from benchmarks.large import ADULT, Stopwatch, generate, in_child

BY_EDUCATION = "SELECT education, COUNT(*), AVG(age) FROM people GROUP BY education"
MEDIAN = "SELECT education, MEDIAN(age) FROM people GROUP BY education"


def generate_visits(rows: int, destination: Path) -> None:
    """Write the people of `benchmarks.large`, about three rows per person."""
    people = destination.with_suffix(".people")
    generate(rows, people)
    person = f"CAST(hash(file_row_number, 5) % {max(rows // 3, 1)} AS BIGINT)"
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar=false")
        connection.execute(
            f"COPY (SELECT * EXCLUDE (file_row_number), {person} AS person "
            f"FROM read_parquet({literal(str(people))}, file_row_number=true)) "
            f"TO {literal(str(destination))} (FORMAT parquet)"
        )
    people.unlink()


def spec_of(table: Path, unit: Any) -> ReleaseSpec:
    """A spec with the public domains of Adult's own policy."""
    policy = yaml.load((ADULT.parent / "release.yaml").read_text(), Loader=PlainLoader)
    asked = policy["differential_privacy"]
    with duckdb.connect() as connection:
        names = [row[0] for row in connection.execute(f"DESCRIBE FROM {literal(str(table))}").fetchall()]
    columns: dict[str, Any] = {name: {"role": "insensitive"} for name in names}
    columns |= {"age": {"role": "quasi_identifier"}, "person": {"role": "identifier"}}
    return ReleaseSpec.model_validate(
        {
            "dataset": "people",
            "source": {"path": str(table)},
            "target": "income",
            "columns": columns,
            "privacy": {"k_anonymity": {"k": 10}},
            "differential_privacy": {
                "unit": unit,
                "budget": asked["budget"],
                "domains": {name: one for name, one in asked["domains"].items() if name in names},
            },
        }
    )


def asked(table: Path, folder: Path, memory: str, unit: Any, sql: str) -> dict[str, tuple[float, float]]:
    """Processor and wall seconds of a question: counting and drawing noise together."""
    spec = spec_of(table, unit)
    plan = queries.plan_of(spec, sql, Share(rho=0.05))
    readable, watch = reading.readable(spec), Stopwatch()
    engine = DuckDBEngine(folder / "spill", memory)
    with watch.step("asked"):
        exact = answering.read(plan, readable, lambda query: engine.aggregated(readable, query))
        answering.draw(plan, exact)
    return watch.steps


def plain(table: Path, folder: Path, memory: str, query: str) -> dict[str, tuple[float, float]]:
    """Processor and wall seconds of a query in plain DuckDB."""
    watch = Stopwatch()
    connection = duckdb.connect(config={"memory_limit": memory, "temp_directory": str(folder)})
    connection.execute("SET enable_progress_bar=false")
    connection.execute("SET preserve_insertion_order=false")
    with watch.step("plain"):
        connection.execute(query.format(source=literal(str(table)), copy=literal(str(folder / "sorted.parquet"))))
    return watch.steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000_000])
    parser.add_argument("--memory", default="1500MB", help="DuckDB's memory limit")
    parser.add_argument("--folder", type=Path, help="where the tables are kept; a temporary folder where absent")
    options = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}, DuckDB {duckdb.__version__}, {options.memory}")
    person = {"person": "person", "groups": 2, "rows": 2}
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for rows in options.rows:
            table = folder / f"visits{rows}.parquet"
            if not table.exists():
                generate_visits(rows, table)
            in_order = "COPY (FROM {source} ORDER BY person) TO {copy} (FORMAT parquet)"
            works: dict[str, tuple[Any, ...]] = {
                "plain GROUP BY": (plain, "SELECT education, count(*), avg(age) FROM {source} GROUP BY education"),
                "row level": (asked, "row", BY_EDUCATION),
                "row level, median": (asked, "row", MEDIAN),
                "sort by person": (plain, in_order),
                "person level": (asked, person, BY_EDUCATION),
                "person level, median": (asked, person, MEDIAN),
            }
            print(f"\n{rows:,} rows\n| | cpu s | wall s | peak GB |\n|---|---|---|---|")
            for name, (work, *arguments) in works.items():
                steps, peak = in_child(work, table, folder, options.memory, *arguments)
                ((used, wall),) = steps.values()
                print(f"| {name} | {used:.2f} | {wall:.1f} | {peak:.2f} |", flush=True)


if __name__ == "__main__":
    main()
