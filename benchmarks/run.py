"""What a person waits for: the whole job of Adult and of 3,000 people, step by step, in processor and wall seconds.

    python -m benchmarks.run [--against COMMIT] [--threads 1 0] [--datasets adult small] [--repeat 1]

Each run is a process of its own, `anon-pipeline run`, the first in a new home (it makes keys and schemas) and then
`--repeat` more, of which the fastest is shown (with 0, the first). Processor seconds are those of all processes of the
run, read from /proc five times a second. 0 threads means all. `--against` measures another commit in the same minutes,
with the same environment and private key, and gives ratios; it also says whether both released the same table.
What a run imports is measured alone, too: of a small run it is about half.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.machine import processor, versions

ROOT = Path(__file__).parent.parent
ADULT = ROOT / "data" / "adult"
SMALL = 3_000
PACKAGES = ("scikit-learn", "numpy", "pandas", "duckdb", "dagster", "great-expectations", "mlflow")
#: The line on stderr by which a step announces its start.
STEP = re.compile(r"\w+: (\w+) \.\.\.")
#: The imports of a run; older checkouts import the libraries in the usual way.
IMPORTS = """
try:
    from anon_pipeline.imports import large_imports
except ModuleNotFoundError:
    import anon_pipeline.pipeline.launch, great_expectations.expectations, mlflow.store.tracking.sqlalchemy_store
else:
    with large_imports():
        import anon_pipeline.pipeline.launch
    import anon_pipeline.pipeline.expectations.great_expectations, anon_pipeline.pipeline.tracking.mlflow_client
"""
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Measured:
    """One run: the wall and processor seconds at which each step began, and the release."""

    steps: list[tuple[str, float, float]]
    wall: float
    cpu: float
    peak: int
    released: dict[str, Any]

    def by_step(self) -> dict[str, tuple[float, float]]:
        """Wall and processor seconds of each step, and of the time before and after all steps."""
        marks = [("start", 0.0, 0.0), *self.steps, ("", self.wall, self.cpu)]
        return {name: (after[1] - wall, after[2] - cpu) for (name, wall, cpu), after in itertools.pairwise(marks)}


class Meter:
    """Processor seconds and the peak resident memory of all processes of a session together."""

    def __init__(self, session: int) -> None:
        self._session, self._used = session, dict[int, float]()
        self.peak = 0

    def read(self) -> float:
        resident = 0
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # the process has ended
                continue
            if int(fields[3]) == self._session:
                self._used[int(entry.name)] = (int(fields[11]) + int(fields[12])) / TICKS
                resident += int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
        self.peak = max(self.peak, resident)
        return sum(self._used.values())


def measure(checkout: Path, dataset: Path, home: Path, threads: int) -> Measured:
    """Run the pipeline of a checkout once.

    Raises
    ------
    RuntimeError
        Where the run released nothing.
    """
    command = [sys.executable, "-c", "from anon_pipeline.cli import main; main()", "run", str(dataset), "--json"]
    command += ["--threads", str(threads)] if threads else []
    variables = {**os.environ, "PYTHONPATH": str(checkout), "ANON_PIPELINE_HOME": str(home), "COLUMNS": "200"}
    started = time.monotonic()
    run = subprocess.Popen(
        command,
        cwd=checkout,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    meter, said, steps, over = Meter(run.pid), list[str](), list[tuple[str, float, float]](), threading.Event()

    def listen() -> None:
        for line in run.stderr or ():
            said.append(line)
            found = STEP.search(line)
            if found is not None:
                steps.append((found[1], time.monotonic() - started, meter.read()))

    def watch() -> None:
        while not over.wait(0.2):
            meter.read()

    threads_here = [threading.Thread(target=one) for one in (listen, watch)]
    for one in threads_here:
        one.start()
    assert run.stdout is not None  # for the type checker
    answer = run.stdout.read()
    run.wait()
    wall = time.monotonic() - started
    over.set()
    for one in threads_here:
        one.join()
    if run.returncode != 0:
        raise RuntimeError("".join(said[-10:]))
    return Measured(steps, wall, meter.read(), meter.peak, json.loads(answer)["manifest"])


def imports(checkout: Path) -> float:
    """Processor seconds of a process that only imports the modules of a run; the least of three."""
    seconds = []
    for _ in range(3):
        before = os.times()
        variables = os.environ | {"PYTHONPATH": str(checkout)}
        subprocess.run([sys.executable, "-c", IMPORTS], cwd=checkout, env=variables, check=True)
        after = os.times()
        seconds.append(sum(after[2:4]) - sum(before[2:4]))
    return min(seconds)


@contextmanager
def checkouts(against: str | None) -> Iterator[dict[str, Path]]:
    """The folders of code to run: this one and, from git, the commit it is compared with."""
    if against is None:
        yield {"here": ROOT}
        return
    folder = Path(tempfile.mkdtemp()) / "checkout"
    subprocess.run(["git", "-C", str(ROOT), "worktree", "add", "--quiet", "--detach", str(folder), against], check=True)
    try:
        yield {"here": ROOT, against: folder}
    finally:
        subprocess.run(["git", "-C", str(ROOT), "worktree", "remove", "--force", str(folder)], check=True)


def small(folder: Path) -> Path:
    """A dataset of 3,000 people of Adult, whose run makes no attacks."""
    folder.mkdir()
    people = pd.read_parquet(ADULT / "adult.parquet").sample(SMALL, random_state=1)
    people.to_parquet(folder / "adult.parquet", index=False)
    spec = (ADULT / "release.yaml").read_text().replace("dataset: adult", "dataset: small")
    (folder / "release.yaml").write_text(re.sub(r"(?m)^audit:.*$", "audit: {enabled: false}", spec))
    return folder


def table(runs: dict[str, Measured]) -> str:
    """The steps of one run next to those of the other, in Markdown."""
    here, *others = runs
    rows = [
        "| step | wall s | cpu s |" + "".join(f" wall {one} | cpu {one} | wall ratio | cpu ratio |" for one in others)
    ]
    rows.append("|---|--:|--:|" + "--:|--:|--:|--:|" * len(others))
    steps = {name: one.by_step() | {"all": (one.wall, one.cpu)} for name, one in runs.items()}
    for step in dict.fromkeys(step for one in steps.values() for step in one):
        wall, cpu = steps[here].get(step, (0.0, 0.0))
        row = f"| {step} | {wall:.1f} | {cpu:.1f} |"
        for other in others:
            was_wall, was_cpu = steps[other].get(step, (0.0, 0.0))
            row += f" {was_wall:.1f} | {was_cpu:.1f} | {_ratio(was_wall, wall)} | {_ratio(was_cpu, cpu)} |"
        rows.append(row)
    return "\n".join(rows)


def differences(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """The differences of two releases: their tables, and scores that are outside of each other's intervals."""
    found = []
    if ours["content_hashes"] != theirs["content_hashes"]:
        found.append("the released tables differ")
    for metric, one in ours["utility"]["metrics"].items():
        for when in ("before", "after", "difference"):
            a, b = one[when], theirs["utility"]["metrics"][metric][when]
            if a["low"] is not None and not a["low"] <= b["mean"] <= a["high"]:
                found.append(f"{metric} {when}: {a['mean']:.4f} here, {b['mean']:.4f} there")
    return found


def _ratio(before: float, after: float) -> str:
    return f"{before / after:.2f}" if after >= 0.05 else ""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", help="a commit to measure, too")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 0], help="0: all")
    parser.add_argument("--datasets", nargs="+", choices=["adult", "small"], default=["adult", "small"])
    parser.add_argument("--repeat", type=int, default=1, help="runs after the first in a home; 0: the first counts")
    asked = parser.parse_args(arguments)
    print(f"{processor()}; {versions(*PACKAGES)}")
    scratch = Path(tempfile.mkdtemp())
    try:
        datasets = {"adult": ADULT, "small": small(scratch / "small")}
        with checkouts(asked.against) as folders:
            for name, folder in folders.items():
                print(f"{name}: imports alone take {imports(folder):.1f} cpu s")
            for dataset in asked.datasets:
                for threads in asked.threads:
                    best = _best(folders, datasets[dataset], scratch / f"{dataset}-{threads}", threads, asked.repeat)
                    print(f"\n{dataset}, {threads if threads else 'all'} threads\n\n{table(best)}\n")
                    for name, one in best.items():
                        print(f"{name}: peak {one.peak / 1e9:.2f} GB, version {one.released['version']}")
                    if len(best) > 1:
                        ours, theirs = (one.released for one in best.values())
                        print("; ".join(differences(ours, theirs)) or "the same tables, and scores within intervals")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _best(folders: dict[str, Path], dataset: Path, scratch: Path, threads: int, repeat: int) -> dict[str, Measured]:
    """The fastest run of each checkout, all with the private key that the first run makes."""
    best: dict[str, Measured] = {}
    for number in range(1 + repeat):
        for place, (name, folder) in enumerate(folders.items()):
            home = scratch / str(place)
            if number == 0 and place:
                (home / "private").mkdir(parents=True, mode=0o700)
                shutil.copytree(scratch / "0" / "private" / "keys", home / "private" / "keys")
            home.mkdir(parents=True, exist_ok=True)
            one = measure(folder, dataset, home, threads)
            print(f"{name}, run {number + 1}: {one.wall:.1f} s, {one.cpu:.1f} cpu s", file=sys.stderr, flush=True)
            counts = number > 0 or not repeat  # the first run in a home makes keys and schemas
            if counts and (name not in best or one.wall < best[name].wall):
                best[name] = one
    return best


if __name__ == "__main__":
    main()
