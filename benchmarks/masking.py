"""Masking row by row at ten million people: what five steps cost, against rewriting the same table in DuckDB.

    python -m benchmarks.masking [--rows 1000000 10000000] [--memory 1500MB] [--folder FOLDER]

The people are those of `benchmarks.large`, each with a day of a visit and a postal code of five digits drawn by a hash.
Ours is what the asset `masked_data` does: the steps in the engine, what each of them cost (measured on a sample), the
masked table written, and then described (rows, missing and distinct values of every column, content hash). The ratio is
to what DuckDB needs, in the same run, to scan and rewrite the file that is masked.
"""

from __future__ import annotations

import argparse
import platform
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import yaml

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.sql import literal
from anon_pipeline.home import Home
from anon_pipeline.pipeline.masking import mask, planned
from anon_pipeline.pipeline.step import Run
from anon_pipeline.spec import ReleaseSpec
from benchmarks.large import CATEGORIES, Stopwatch, generate, in_child

#: Five columns with a step each; all steps are row-wise.
STEPS: dict[str, dict[str, Any]] = {
    "age": {"technique": "round", "to": 5},
    "hours_per_week": {"technique": "top_bottom_code", "top": 60},
    "visit": {"technique": "truncate_date", "to": "month"},
    "zip": {"technique": "prefix", "length": 3},
    "occupation": {"technique": "replace", "pattern": "-.*", "by": ""},
}


def generate_visits(rows: int, destination: Path) -> None:
    """Write the people of `benchmarks.large` with a day in 2020 to 2023 and one of 2,000 postal codes."""
    people = destination.with_suffix(".people")
    generate(rows, people)
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar=false")
    day = "DATE '2020-01-01' + CAST(hash(file_row_number, 3) % 1461 AS INTEGER)"
    code = "lpad(CAST(hash(file_row_number, 4) % 2000 * 50 AS VARCHAR), 5, '0')"
    connection.execute(
        f"COPY (SELECT * EXCLUDE (file_row_number), {day} AS visit, {code} AS zip "
        f"FROM read_parquet({literal(str(people))}, file_row_number=true)) "
        f"TO {literal(str(destination))} (FORMAT parquet)"
    )
    people.unlink()


def write_spec(folder: Path, table: Path) -> ReleaseSpec:
    columns: dict[str, Any] = {name: {"role": "quasi_identifier", "type": "categorical"} for name in CATEGORIES}
    columns |= {name: {"role": "quasi_identifier", "type": "numeric"} for name in ("age", "hours_per_week")}
    columns |= {
        "visit": {"role": "quasi_identifier", "type": "date"},
        "zip": {"role": "quasi_identifier", "type": "categorical"},
        "income": {"role": "sensitive", "type": "categorical"},
    }
    for name, step in STEPS.items():
        columns[name]["steps"] = [step]
    content = {
        "dataset": "visits",
        "source": {"path": str(table)},
        "target": "income",
        "columns": columns,
        "privacy": {"k_anonymity": {"k": 10}},
    }
    (folder / "release.yaml").write_text(yaml.safe_dump(content))
    return ReleaseSpec.load(folder / "release.yaml")


def measure(table: Path, folder: Path, memory: str) -> tuple[Stopwatch, int]:
    """Rewrite the stored table, then mask it; returns the times, and the number of rows that were written."""
    import scipy.stats  # noqa: F401 (its import is no work on the table)

    watch = Stopwatch()
    spec = write_spec(folder, table)
    engine = DuckDBEngine(folder / "spill", memory)
    stored, masked = folder / "stored.parquet", folder / "masked.parquet"
    source = engine.store_source(spec, stored)
    connection = duckdb.connect(config={"memory_limit": memory, "temp_directory": str(folder / "spill")})
    connection.execute("SET enable_progress_bar=false")
    with watch.step("scan and rewrite"):
        connection.execute(
            f"COPY (FROM {literal(str(stored))}) TO {literal(str(folder / 'copy.parquet'))} (FORMAT parquet)"
        )
    connection.close()
    plan, secrets = planned(spec, source.types())
    with watch.step("mask"):
        mask(Run(spec, Home(folder / "home"), engine), plan, secrets, source, stored, masked)
    with watch.step("describe"):
        facts = engine.describe(masked, spec, plan.types_after)
    if facts.rows != source.rows:
        raise SystemExit(f"{facts.rows:,} people of {source.rows:,} are left")
    return watch, engine.rows(masked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000_000])
    parser.add_argument("--memory", default="1500MB", help="DuckDB's memory limit")
    parser.add_argument("--folder", type=Path, help="where the tables are kept; a temporary folder where absent")
    options = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}, DuckDB {duckdb.__version__}, {options.memory}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        (folder / "spill").mkdir(parents=True, exist_ok=True)
        for rows in options.rows:
            table = folder / f"visits-{rows}.parquet"
            if not table.exists():
                in_child(generate_visits, rows, table)
            (watch, written), peak = in_child(measure, table, folder, options.memory)
            floor = watch.steps["scan and rewrite"][0]
            print(f"\n{rows:,} people, {len(STEPS)} steps; {written:,} different rows written, peak {peak:.2f} GB")
            print("\n| step | cpu s | times rewriting | wall s |\n|---|---|---|---|")
            for name, (seconds, wall) in watch.steps.items():
                print(f"| {name} | {seconds:.2f} | {seconds / floor:.2f} | {wall:.2f} |", flush=True)


if __name__ == "__main__":
    main()
