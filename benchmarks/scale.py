"""What Spark needs for each person, measured at two sizes, and what that makes of billions of people on a cluster.

    python -m benchmarks.scale [--rows 2000000 8000000] [--people 1e9 1e10] [--cores 32 500] [--price 0.05]

The people and the steps are those of `benchmarks.large`. Spark's own event log says what its tasks needed; the driver
is measured from outside. Between the two sizes everything is taken to grow with the people; what is left over at none
is the fixed part. Only the fit grows with the cells. On paper there are `grouping.refine` of them, with which it takes
longest: up to that number classes are refined, and the tree alone takes less even with `grouping.cells`, the most that
there can be. The larger clusters are on paper: nobody has run them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from anon_pipeline.spec.parts import Grouping
from benchmarks.large import generate, in_child, release

FIT = "fit, summarize"  # the step that works on cells, not on people

LOGGED = """
spark.eventLog.enabled          true
spark.eventLog.rolling.enabled  false
spark.eventLog.compress         false
spark.eventLog.dir              file://{folder}
"""


@dataclass(frozen=True)
class Need:
    """The needs of a step: processor seconds of Spark's tasks and of the driver, and bytes.

    Attributes
    ----------
    shuffled : bytes sent from task to task; on a cluster nearly all of them cross the network
    written : bytes that the tasks write and the driver reads
    answered : bytes that the tasks send to the driver directly
    """

    tasks: float = 0.0
    driver: float = 0.0
    shuffled: float = 0.0
    written: float = 0.0
    answered: float = 0.0

    def __add__(self, other: Need) -> Need:
        return Need(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))

    def less(self, other: Need, factor: float) -> Need:
        """This need less `factor` times another, no part below zero."""
        return Need(*(max(0.0, getattr(self, one.name) - factor * getattr(other, one.name)) for one in fields(self)))

    def times(self, factor: float) -> Need:
        return Need(*(factor * getattr(self, one.name) for one in fields(self)))


def observed(table: Path, folder: Path, spread: float) -> tuple[Any, dict[str, Any], float]:
    """The steps of one release on Spark, a summary of the release, and the peak memory of the JVM in GB."""
    from pyspark import SparkContext

    watch, found = release("spark", table, folder, "4GB", spread, None)
    status = Path(f"/proc/{SparkContext._gateway.proc.pid}/status").read_text()
    SparkContext._active_spark_context.stop()  # this ends the event log
    return watch, found, int(status.split("VmHWM:")[1].split()[0]) / 2**20


def tasks_of(log: Path) -> Iterator[tuple[float, Need]]:
    """The start of each task, and its needs."""
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerTaskEnd" and (metrics := event.get("Task Metrics")):
            yield (
                event["Task Info"]["Launch Time"] / 1000,
                Need(
                    tasks=metrics["Executor CPU Time"] / 1e9,
                    shuffled=metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"],
                    written=metrics["Output Metrics"]["Bytes Written"],
                    answered=metrics["Result Size"],
                ),
            )


def measured(rows: int, folder: Path, spread: float) -> tuple[dict[str, Need], dict[str, Any], tuple[float, float]]:
    """The needs of each step of a release of `rows` people, a summary of it, and the peaks of driver and JVM in GB."""
    table, logs = folder / f"people-{rows}.parquet", folder / f"events-{rows}"
    logs.mkdir()
    (folder / "spill").mkdir(exist_ok=True)
    in_child(generate, rows, table)
    (logs / "spark-defaults.conf").write_text(LOGGED.format(folder=logs))
    os.environ["SPARK_CONF_DIR"] = str(logs)
    (watch, found, jvm), driver = in_child(observed, table, folder, spread)
    names, starts = list(watch.began), list(watch.began.values())
    needs = {name: Need(driver=seconds) for name, (seconds, _) in watch.steps.items()}
    (log,) = (one for one in logs.iterdir() if one.suffix != ".conf")
    for began, need in tasks_of(log):
        if place := bisect_right(starts, began):
            needs[names[place - 1]] += need
    return needs, found, (driver, jvm)


def show(title: str, needs: dict[str, Need]) -> None:
    print(f"\n{title}\n\n| step | tasks, cpu s | driver, cpu s | shuffled | written | answered |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, need in (*needs.items(), ("all", sum(needs.values(), Need()))):
        amounts = (need.shuffled, need.written, need.answered)
        print(f"| {name} | {need.tasks:,.1f} | {need.driver:,.1f} |", *(f"{one / 1e9:,.3f} GB |" for one in amounts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs=2, default=[2_000_000, 8_000_000])
    parser.add_argument("--spread", type=float, default=1.0)
    parser.add_argument("--people", type=float, nargs="+", default=[1e9, 1e10])
    parser.add_argument("--cores", type=int, nargs="+", default=[32, 500])
    parser.add_argument("--price", type=float, default=0.05, help="of a core for an hour, with its memory, in dollars")
    options = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as temporary:
        runs = [measured(rows, Path(temporary), options.spread) for rows in options.rows]
    for rows, (needs, found, peaks) in zip(options.rows, runs, strict=True):
        show(f"{rows:,} people: {json.dumps(found)}; driver {peaks[0]:.2f} GB, JVM {peaks[1]:.2f} GB", needs)
    (small, large), (fewer, more) = (run[0] for run in runs), options.rows
    per_person = {name: large[name].less(small[name], 1).times(1 / (more - fewer)) for name in large}
    show("Per million people", {name: need.times(1e6) for name, need in per_person.items()})
    cells, peaks = [run[1]["cells"] for run in runs], [run[2][0] for run in runs]
    each = (peaks[1] - peaks[0]) / (cells[1] - cells[0])
    print(f"\nThe driver with {Grouping().cells:,} cells: {peaks[1] + each * (Grouping().cells - cells[1]):.1f} GB")
    for people, cores in zip(options.people, options.cores, strict=True):
        needs = {name: small[name].less(one, fewer) + one.times(people) for name, one in per_person.items()}
        needs[FIT] = large[FIT].times(Grouping().refine / runs[1][1]["cells"])
        show(f"On paper: {people:,.0f} people on {cores} cores", needs)
        whole = sum(needs.values(), Need())
        side_by_side, alone = whole.tasks / cores / 60, whole.driver / 60
        print(f"\n{side_by_side:.1f} minutes of tasks on all cores, {alone:.1f} minutes of the driver alone")
        price = (side_by_side + alone) / 60 * cores * options.price
        print(f"{price:,.2f} dollars at {options.price} for a core and hour")


if __name__ == "__main__":
    main()
