"""Ten million people, a hundred million: what each step from a Parquet file to a verified release costs.

    python -m benchmarks.large [--rows 10000000] [--spread 1] [--refine 0] [--engine duckdb] [--memory 4GB] [--pipeline]

The people are Adult's, drawn again and again, with ages and hours moved by up to four years and hours. Guidance is
given (a fixed linear score), so no model is trained; `--pipeline` measures a whole run with its own model instead.
Ratios are to what DuckDB needs, in the same run, to scan and rewrite the same file once and to group it once.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import yaml

from anon_pipeline.anonymize.policy import tree_of
from anon_pipeline.anonymize.recode import recoded_table
from anon_pipeline.engine.base import Recoding
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.sql import literal
from anon_pipeline.learning.cells import NOBODY, StoredPeople, guided_cells
from anon_pipeline.privacy.verdict import verify_by_columns
from anon_pipeline.spec import ReleaseSpec
from benchmarks.machine import memory, processor, versions

ADULT = Path(__file__).parent.parent / "data" / "adult" / "adult.parquet"
CATEGORIES = ("workclass", "education", "marital_status", "occupation", "race", "sex", "native_country")
QUASI_IDENTIFIERS = ("age", *CATEGORIES, "hours_per_week")
K = 50
PACKAGES = ("duckdb", "numpy", "pyarrow", "pandas", "scikit-learn")


def generate(rows: int, destination: Path) -> None:
    """Write people drawn from Adult by a hash of their number, the same on every machine."""
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar=false")
    connection.execute(f"CREATE TABLE adult AS SELECT row_number() OVER () - 1 AS i, * FROM {literal(str(ADULT))}")
    drawn = f"SELECT (hash(range) % (SELECT count(*) FROM adult))::BIGINT AS i, range AS number FROM range({rows})"
    moved = "CAST(hash(number, {}) % 9 AS INTEGER) - 4"
    connection.execute(
        f"COPY (SELECT greatest(17, least(90, age + {moved.format(1)})) AS age, {', '.join(CATEGORIES)}, "
        f"greatest(1, least(99, hours_per_week + {moved.format(2)})) AS hours_per_week, income "
        f"FROM ({drawn}) JOIN adult USING (i)) TO {literal(str(destination))} (FORMAT parquet)"
    )


class GivenGuide:
    """Guidance without a trained model: a linear score of age, hours and education."""

    def guidance(self, features: pd.DataFrame, fold: Any) -> Any:  # noqa: ARG002 (nobody is in a fold)
        code, levels = pd.factorize(features["education"])
        steps = np.array([sum(map(ord, str(level))) % 17 for level in levels]) / 17
        return (0.4 * features["age"] / 90 + 0.2 * features["hours_per_week"] / 99 + 0.4 * steps[code]).to_numpy()[
            :, None
        ]


def write_spec(folder: Path, table: Path, spread: float, refine: int | None = None) -> ReleaseSpec:
    columns: dict[str, Any] = {name: {"role": "quasi_identifier", "type": "categorical"} for name in CATEGORIES}
    columns |= {name: {"role": "quasi_identifier", "type": "numeric"} for name in ("age", "hours_per_week")}
    columns["income"] = {"role": "sensitive", "type": "categorical"}
    content = {
        "dataset": "large",
        "source": {"path": str(table)},
        "target": "income",
        "columns": columns,
        "privacy": {"k_anonymity": {"k": K}},
        # With spread 0 the criterion is that of the paper, which needs categories in the order of their guidance only.
        "guide": {"spread": spread, "orders": "both" if spread else "guidance"},
    }
    if refine is not None:
        content["grouping"] = {"refine": refine}
    (folder / "release.yaml").write_text(yaml.safe_dump(content))
    return ReleaseSpec.load(folder / "release.yaml")


def cpu() -> float:
    """Processor seconds of this process and of its ended children."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )


class Stopwatch:
    """Processor and wall seconds of each named step, and its start (seconds since 1970)."""

    def __init__(self) -> None:
        self.steps: dict[str, tuple[float, float]] = {}
        self.began: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        self.began[name] = time.time()
        before = cpu(), time.perf_counter()
        yield
        self.steps[name] = (cpu() - before[0], time.perf_counter() - before[1])


def machine_limit(table: Path, folder: Path, memory: str) -> Stopwatch:
    """The time that DuckDB needs to rewrite the table, and to group it by its quasi-identifiers."""
    watch = Stopwatch()
    connection = duckdb.connect(config={"memory_limit": memory, "temp_directory": str(folder)})
    connection.execute("SET enable_progress_bar=false")
    source = literal(str(table))
    with watch.step("scan and rewrite"):
        connection.execute(f"COPY (FROM {source}) TO {literal(str(folder / 'copy.parquet'))} (FORMAT parquet)")
    names = ", ".join(QUASI_IDENTIFIERS)
    with watch.step("group once"):
        connection.execute(f"SELECT count(*) FROM (SELECT {names}, count(*) FROM {source} GROUP BY {names})").fetchall()
    return watch


def release(
    engine_name: str, table: Path, folder: Path, memory: str, spread: float, refine: int | None
) -> tuple[Stopwatch, dict[str, Any]]:
    """The time of each step from the Parquet file to a release, read again, counted and hashed; and a summary."""
    import sklearn.tree  # noqa: F401 (its import is no work on the table)

    watch = Stopwatch()
    engine = engine_of(engine_name, folder, memory)
    spec = write_spec(folder, table, spread, refine)
    with watch.step("read, type, count equal people, hash"):
        facts = engine.store_source(spec, folder / "stored.parquet")
    with watch.step("cells with guidance"):
        cells = guided_cells(
            StoredPeople(engine, folder / "stored.parquet", spec, facts.types()), GivenGuide(), NOBODY, 1.0
        )
    with watch.step("fit, summarize"):
        tree = tree_of(spec, None)
        class_of_cell = tree.fit_apply_cells(cells)
    with watch.step("write and hash"):
        shown = recoded_table(tree.summaries_, spec.recode.form)
        recoding = Recoding(cells, class_of_cell, shown)
        rows, content = engine.write_release(
            folder / "stored.parquet", recoding, spec.released, folder / "data.parquet"
        )
    with watch.step("count again"):
        verdict = verify_by_columns(engine, folder / "data.parquet", spec.quasi_identifiers, K, ["income"])
    found = {
        "people": facts.rows,
        "cells": len(cells.counts),
        "classes": len(tree.sizes_),
        "smallest": verdict.smallest_class,
        "released": rows,
        "holds": verdict.holds and rows == facts.rows,
        "information lost": float(np.mean(list(tree.information_loss_.values()))),
        "content": content[:16],
    }
    return watch, found


def whole_pipeline(table: Path, folder: Path, memory: str) -> dict[str, Any]:
    """`anon-pipeline run` on the table: its own model, checks, audit, utility, publication; wall seconds per step."""
    from anon_pipeline.home import Home
    from anon_pipeline.pipeline.instance import open_instance
    from anon_pipeline.pipeline.launch import launch
    from anon_pipeline.pipeline.runtime import Runtime

    home = Home(folder / "home").prepare()
    outcome = launch(write_spec(folder, table, 1.0), home, Runtime(home=str(home.root), memory_limit=memory))
    with open_instance(home) as instance:
        stats = instance.get_run_step_stats(outcome.run_id)
    steps = {one.step_key.partition("__")[2] or one.step_key: one.end_time - one.start_time for one in stats}
    return {"exit": outcome.exit_code, "failures": outcome.failures, "cpu": cpu(), "steps": steps}


def engine_of(name: str, folder: Path, memory: str) -> Any:
    if name == "duckdb":
        return DuckDBEngine(folder / "spill", memory)
    from anon_pipeline.engine.spark import SparkEngine

    return SparkEngine(folder / "spill")


def in_child(work: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """The result of a function run in a process of its own, and that process's peak memory in GB."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_answer, args=(theirs, work, arguments))
    process.start()
    theirs.close()
    try:
        answer: tuple[Any, float] = ours.recv()
    finally:
        process.join()
    return answer


def _answer(pipe: Any, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    result = work(*arguments)
    pipe.send((result, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000_000])
    parser.add_argument("--spread", type=float, nargs="+", default=[0.0, 1.0])
    parser.add_argument("--refine", type=int, help="refine tables of so many cells at most; the default where absent")
    parser.add_argument("--engine", nargs="+", default=["duckdb"])
    parser.add_argument("--memory", default="1500MB", help="DuckDB's memory limit")
    parser.add_argument("--folder", type=Path, help="where the tables are kept; a temporary folder where absent")
    parser.add_argument("--pipeline", action="store_true", help="a whole run with its own model instead")
    options = parser.parse_args()
    print(f"{processor()}, {memory()}, DuckDB may use {options.memory}; {versions(*PACKAGES)}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        (folder / "spill").mkdir(exist_ok=True)
        for rows in options.rows:
            table = folder / f"people-{rows}.parquet"
            if not table.exists():
                in_child(generate, rows, table)
            if options.pipeline:
                found, peak = in_child(whole_pipeline, table, folder, options.memory)
                print(f"\n{rows:,} people, anon-pipeline run: exit {found['exit']} {' '.join(found['failures'])}")
                print(f"cpu s {found['cpu']:.0f}, peak memory {peak:.2f} GB\n\n| step | wall s |\n|---|---|")
                for name, seconds in found["steps"].items():
                    print(f"| {name} | {seconds:.1f} |", flush=True)
                continue
            limit, _ = in_child(machine_limit, table, folder, options.memory)
            floor = sum(seconds for seconds, _ in limit.steps.values())
            print(f"\n{rows:,} people. Floor:", ", ".join(f"{name} {one[0]:.1f}" for name, one in limit.steps.items()))
            for engine in options.engine:
                for spread in options.spread:
                    (watch, found), peak = in_child(
                        release, engine, table, folder, options.memory, spread, options.refine
                    )
                    total = sum(seconds for seconds, _ in watch.steps.values())
                    print(f"\n{engine}, spread {spread:g}, k = {K}: {json.dumps(found)}")
                    print("\n| step | cpu s | wall s |\n|---|---|---|")
                    for name, (seconds, wall) in watch.steps.items():
                        print(f"| {name} | {seconds:.2f} | {wall:.2f} |")
                    print(
                        f"| all | {total:.2f} = {total / floor:.2f} x floor | peak memory {peak:.2f} GB |", flush=True
                    )


if __name__ == "__main__":
    main()
