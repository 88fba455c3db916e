"""Mutants: small mistakes planted into the code, one at a time, to see whether the tests of the same room notice.

A mutant that no test notices is a promise that could stop being kept. Each is drawn at random (`--seed`) from all
places of a room that can be changed (`mutations`), and is tried with the tests that run the changed line: first those
that have noticed much in little time. Mutants that change nothing which anybody could notice are listed, with the
reason, in `mutants_equivalent.yaml`; they count neither as killed nor as survived. A list with an entry that fits no
mutant any more is refused.

A mutant gets `--seconds` of tests, by the time that they take without it; one that they do not notice has survived,
so that a rate is at least what is printed. Each is tried in a process forked off one that has loaded the large
libraries and none of ours.

    python -m benchmarks.mutants --rooms privacy release --number 40 --minutes 20
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import io
import json
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import pytest
import yaml

from benchmarks.mutations import Mutant, mutants_of

ROOT = Path(__file__).resolve().parent.parent
EQUIVALENT = Path(__file__).with_name("mutants_equivalent.yaml")


@dataclass(frozen=True)
class Room:
    """A part of the code that is mutated, and the tests that have to notice.

    Attributes
    ----------
    code : files of `anon_pipeline`, as patterns
    tests : files and folders of `anon_pipeline_tests`
    marks : the choice among these tests, as for pytest's `-m`; whole commands and Spark take too long for each mutant
    """

    code: tuple[str, ...]
    tests: tuple[str, ...]
    marks: str = "not slow"

    def files(self, root: Path) -> list[Path]:
        return [file for pattern in self.code for file in sorted((root / "anon_pipeline").glob(pattern))]


ROOMS = {
    "anonymize": Room(("anonymize/*.py",), ("anonymize", "privacy/test_population_table.py")),
    "privacy": Room(("privacy/*.py",), ("privacy",)),
    "engine": Room(
        ("engine/[!s]*.py", "engine/s[!p]*.py"),
        ("engine", "pipeline/test_before_work.py", "pipeline/test_sampling_weights.py", "privacy/test_group_table.py"),
    ),
    "release": Room(("release/*.py", "association.py"), ("release",)),
    # Only the gates, not the wiring of the pipeline.
    "pipeline": Room(
        ("pipeline/checks/*.py", "pipeline/expectations/questions.py", "pipeline/stages.py"),
        tuple(
            f"pipeline/{name}.py"
            for name in (
                "expectations/test_expectations",
                "test_stages",
                "test_people_checks",
                "test_noise_checks",
                "test_aggregation",
                "test_answers",
                "test_own_checks",
            )
        ),
        "",
    ),
    "masking": Room(("masking/*.py",), ("masking",)),
    "attack": Room(("attack/*.py",), ("attack",)),
    "audit": Room(("audit/*.py",), ("audit",)),
    "differential_privacy": Room(
        ("differential_privacy/*.py", "differential_privacy/synthesis/*.py"), ("differential_privacy",)
    ),
    "sequential": Room(
        ("sequential/*.py", "pipeline/sequential_publication.py"),
        ("sequential", "pipeline/test_sequential_publication.py", "pipeline/test_cohorts_of_a_run.py"),
        "",
    ),
    "learning": Room(("learning/*.py",), ("learning",)),
    "profiling": Room(("profiling/*.py",), ("profiling",)),
    "report": Room(("report/*.py",), ("report",)),
    "spec": Room(
        ("spec/*.py",),
        (
            "test_spec.py",
            "test_spec_replaced.py",
            "test_spec_sentences.py",
            "test_spec_together.py",
            "docs/test_reference.py",
        ),
    ),
    "destinations": Room(("destinations/*.py",), ("destinations",)),
    # Whole commands run in processes of their own (`end_to_end`); here are those that tests run in their own.
    "cli": Room(
        ("cli/*.py",),
        (
            *("cli", "audit/test_foreign_table.py", "differential_privacy/test_budget_read_only.py"),
            *("masking/test_local_frequencies.py", "profiling/test_new_dataset.py", "profiling/test_places.py"),
            *("release/test_opening.py", "report/test_release_report.py", "report/test_sequential.py"),
            *("report/test_unseen.py", "test_streams.py"),
        ),
    ),
    # This needs a Java process for each mutant, so it is tried only on request.
    "spark": Room(("engine/spark*.py",), ("engine/test_spark.py", "engine/test_spark_refusals.py"), ""),
}

#: Loaded once before mutants are forked off, where the room's tests load them; a mutant imports the package anew.
HEAVY = (
    *("numpy", "pandas", "scipy.sparse", "scipy.stats", "duckdb", "pyarrow.parquet", "hypothesis.stateful", "pydantic"),
    *("sklearn.tree", "sklearn.ensemble", "sklearn.pipeline", "sklearn.linear_model", "sklearn.model_selection"),
    *("great_expectations", "mlflow", "dagster", "pyspark.sql", "sqlglot", "psycopg", "jinja2", "cryptography"),
)

#: A file of the copy: the time of each test, and the modules that the tests have loaded.
MEASURED = "measured.json"

#: In place of a test, for code that runs when a module is loaded, such as fields of a class; all the file's tests run.
ON_IMPORT = ""

#: Tests of the declared parameters and keys of classes: they run no line of most files, but notice a change in any.
OF_PARAMETERS = ("/test_parameters.py::", "/test_reference.py::")

#: In place of a line: the whole file.
ANYWHERE = 0

#: Pytest's options in place of the project's: no doctests, no files written beside the tests, and only the plugins that
#: these tests need, since each plugin costs time in every process.
PLAIN = (
    *("-q", "-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:unraisableexception", "-p", "no:threadexception"),
    *("-p", "_hypothesis_pytestplugin"),
)

#: The share of its examples that a property test gets where only the lines that it runs are recorded.
EXAMPLES = "0.1"

_SECONDS: dict[str, float] = defaultdict(float)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Hook of pytest: record lines under the test that runs them first, including those of its fixtures."""
    import coverage

    test, start = item.nodeid.partition("[")[0], time.perf_counter()
    watching = coverage.Coverage.current()
    if watching is not None:
        watching.switch_context(test)
    yield
    _SECONDS[test] += time.perf_counter() - start


def pytest_sessionfinish() -> None:
    """Hook of pytest: write the time of each test, so that the quickest can run first, and the loaded modules."""
    Path(MEASURED).write_text(json.dumps({"seconds": _SECONDS, "modules": sorted(sys.modules)}))


@dataclass(frozen=True)
class Coverage:
    """The tests that run each line, their times in seconds, and the number of mutants that each has noticed so far."""

    tests: dict[tuple[str, int], list[str]]
    seconds: dict[str, float]
    kills: Counter[str]

    @classmethod
    def measured(cls, copy: Path, room: Room) -> Coverage:
        """Run the room's tests once, and record the lines that each of them runs.

        Raises
        ------
        SystemExit
            Where a test fails without any mutant.
        """
        data, settings = copy / ".coverage", copy / ".coveragerc"
        data.unlink(missing_ok=True)
        settings.write_text(f"[run]\nsource = anon_pipeline\ndata_file = {data}\n")
        tests = [f"anon_pipeline_tests/{place}" for place in room.tests]
        command = [sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest"]
        ended = subprocess.run(
            [*command, *PLAIN, "-p", "benchmarks.mutants", "-m", room.marks, *tests],
            cwd=copy,
            env={**_environment(copy), "PYTHONDONTWRITEBYTECODE": "", "ANON_PIPELINE_EXAMPLES": EXAMPLES},
            capture_output=True,
            text=True,
        )
        if ended.returncode:
            sys.exit(f"the tests fail without any mutant:\n{(ended.stdout + ended.stderr)[-3000:]}")
        found: dict[tuple[str, int], list[str]] = defaultdict(list)
        mutated_files = {str(file.relative_to(copy)) for file in room.files(copy)}
        measured = json.loads((copy / MEASURED).read_text())
        for module in HEAVY:
            if module in measured["modules"]:
                with contextlib.redirect_stderr(io.StringIO()):
                    importlib.import_module(module)
        gc.freeze()  # no process need search the objects that exist already
        with contextlib.closing(sqlite3.connect(data)) as store:
            from coverage.numbits import numbits_to_nums

            rows = store.execute(
                "SELECT file.path, context.context, line_bits.numbits FROM line_bits "
                "JOIN file ON file.id = line_bits.file_id JOIN context ON context.id = line_bits.context_id"
            )
            for path, test, bits in rows:
                file = str(Path(path).relative_to(copy))
                if file in mutated_files:
                    for line in numbits_to_nums(bits):
                        found[file, line].append(test)
                    found[file, ANYWHERE].append(test)
        of_parameters = [test for test in measured["seconds"] if any(file in test for file in OF_PARAMETERS)]
        for file, line in list(found):
            if found[file, line] == [ON_IMPORT]:
                found[file, line] = [*found[file, ANYWHERE], *of_parameters]
        by_place = {place: sorted(set(tests) - {ON_IMPORT}) for place, tests in found.items()}
        return cls(by_place, measured["seconds"], Counter())

    def of(self, mutant: Mutant, seconds: float) -> list[str]:
        """The tests that run the mutant's statement, the most likely to notice first, as many as `seconds` allow."""
        tests = sorted(
            {*self.tests.get((mutant.file, mutant.line), []), *self.tests.get((mutant.file, mutant.at), [])},
            key=lambda test: (self.seconds[test] + 0.05) / (1 + self.kills[test]),
        )
        until = accumulate(self.seconds[test] for test in tests)
        return [test for test, end in zip(tests, until, strict=True) if end <= seconds or test == tests[0]]


def _environment(copy: Path) -> dict[str, str]:
    own = {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "HYPOTHESIS_PROFILE": "default"}
    return {**os.environ, "PYTHONPATH": str(copy), **own}


class _Noticed:
    """A plugin of pytest that writes down the first test that fails."""

    def __init__(self, report: Path) -> None:
        self._report = report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self._report.exists():
            self._report.write_text(report.nodeid.partition("[")[0])


def _judge(copy: Path, tests: list[str], report: Path) -> None:
    """Run tests in a process of their own; its exit code is 0 if every test passes with the mutant."""
    os.setsid()
    os.chdir(copy)
    sys.path.insert(0, str(copy))
    sys.dont_write_bytecode = True
    os.environ.update(_environment(copy))
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
        os._exit(int(pytest.main(["-x", *PLAIN, *tests], plugins=[_Noticed(report)])))


def noticed_by(copy: Path, mutant: Mutant, tests: list[str], patience: float) -> str | None:
    """The test that notices the mutant, or None; a test that hangs (longer than `patience` seconds) has noticed too."""
    target, report = copy / mutant.file, copy / "noticed"
    report.unlink(missing_ok=True)
    original, times = target.read_bytes(), target.stat()
    target.write_bytes(mutant.source.encode())
    try:
        process = multiprocessing.get_context("fork").Process(target=_judge, args=(copy, tests, report))
        process.start()
        process.join(patience)
        hangs = process.is_alive()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid or 0, signal.SIGKILL)  # and all processes that the tests have started
        process.join()
        if not hangs and process.exitcode == 0:
            return None
        return report.read_text() if report.exists() else "the tests hang" if hangs else "the tests do not start"
    finally:
        target.write_bytes(original)
        os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))  # so that its compiled file is valid again


def equivalents() -> dict[str, str]:
    """Mutants judged equivalent, by name or by file and function, with the reason of each."""
    return {one["mutant"]: one["reason"] for one in yaml.safe_load(EQUIVALENT.read_text()) or []}


def require_matched(root: Path) -> None:
    """
    Raises
    ------
    SystemExit
        Where a listed equivalent judges no mutant of today's code; what it says may hold no longer.
    """
    files = {file for room in ROOMS.values() for file in room.files(root)}
    listed = {root / name.partition(":")[0] for name in equivalents()}
    mutants = [mutant for file in files & listed for mutant in mutants_of(root, file)]
    names = {name for mutant in mutants for name in (mutant.name, f"{mutant.file}:{mutant.function}")}
    stale = [name for name in equivalents() if name not in names]
    if stale:
        sys.exit(f"{EQUIVALENT}: these fit no mutant any more; judge them anew, or remove them: {', '.join(stale)}")


def drawn(root: Path, room: Room, number: int, seed: int) -> list[Mutant]:
    """Mutants of a room in random order; each file has a share by its size."""
    every = [mutant for file in room.files(root) for mutant in mutants_of(root, file)]
    random.Random(seed).shuffle(every)
    return every[:number]


def copied(folder: Path) -> Path:
    """A copy of the project into which mutants are planted."""
    for name in ("anon_pipeline", "anon_pipeline_tests", "data", "docs", "benchmarks"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "var"))
    for name in ("pyproject.toml", "README.md", "Makefile"):
        shutil.copy(ROOT / name, folder)
    return folder


def tried(room: str, copy: Path, chosen: argparse.Namespace) -> str:
    """Try the mutants of a room, print those that survive, and return the room's line of the table."""
    covered, known = Coverage.measured(copy, ROOMS[room]), equivalents()
    end, outcomes = time.monotonic() + 60 * chosen.minutes, Counter[str]()
    for mutant in drawn(copy, ROOMS[room], chosen.number, chosen.seed):
        if time.monotonic() > end:
            break
        if mutant.name in known or f"{mutant.file}:{mutant.function}" in known:
            outcomes["equivalent"] += 1
            continue
        start, run_it = time.monotonic(), covered.of(mutant, chosen.seconds)
        patience = 60 + 10 * sum(covered.seconds[test] for test in run_it)
        killer = noticed_by(copy, mutant, run_it, patience) if run_it else None
        outcomes["killed" if killer else "survived"] += 1
        if killer:
            covered.kills[killer] += 1
        else:
            why = "" if run_it else " (no test runs the line)"
            print(f"survived: {mutant.name}{why} [line {mutant.line}, {time.monotonic() - start:.0f} s]", flush=True)
    every = outcomes["killed"] + outcomes["survived"]
    rate = f"{outcomes['killed'] / every:.0%}" if every else "-"
    return " ".join(
        (
            f"{room:10} {every:6} {outcomes['killed']:7}",
            f"{outcomes['equivalent']:11} {outcomes['survived']:9} {rate:>7}",
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rooms", nargs="+", default=[name for name in ROOMS if name != "spark"], choices=list(ROOMS))
    parser.add_argument("--number", type=int, default=60, help="mutants per room")
    parser.add_argument("--minutes", type=float, default=20, help="budget per room, beside one run of its tests")
    parser.add_argument("--seconds", type=float, default=60, help="of tests per mutant")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    require_matched(ROOT)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = copied(Path(folder))
        table = [f"{'room':10} {'tried':>6} {'killed':>7} {'equivalent':>11} {'survived':>9} {'rate':>7}"]
        for room in chosen.rooms:
            table.append(tried(room, copy, chosen))
            print(table[-1], flush=True)
    print("", *table, sep="\n")


if __name__ == "__main__":
    main()
