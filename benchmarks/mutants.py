"""Mutants: small mistakes planted into the code, one at a time, to see whether the tests of the same room notice.

A mutant that no test notices is a promise that could stop being kept. Each is drawn at random (`--seed`) from all
places of a room where a comparison, a sign, a constant, a guard or a mask can be changed, and is tried with the tests
that run the changed line, the quickest first. Mutants that change nothing which anybody could notice are listed, with
the reason, in `mutants_equivalent.yaml`; they count neither as killed nor as survived.

    python -m benchmarks.mutants --rooms privacy release --number 40 --minutes 20
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import io
import json
import multiprocessing
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
EQUIVALENT = Path(__file__).with_name("mutants_equivalent.yaml")

#: What is mutated, and the tests that have to notice; the pipeline's gates and not its wiring.
ROOMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "anonymize": (("anonymize",), ("anonymize",)),
    "privacy": (("privacy",), ("privacy",)),
    "engine": (("engine",), ("engine",)),
    "release": (("release",), ("release",)),
    "pipeline": (("pipeline/checks.py", "pipeline/expectations.py", "pipeline/stages.py"), ("pipeline",)),
    "masking": (("masking",), ("masking", "pipeline/test_masking_attacks.py")),
    "attack": (("attack",), ("attack",)),
}

#: Loaded once before mutants are forked off; a mutant imports the package itself anew.
HEAVY = ("numpy", "pandas", "scipy.sparse", "sklearn.tree", "duckdb", "pyarrow.parquet", "hypothesis", "pydantic")

#: In the copy: how long each test took.
SECONDS = "seconds.json"

#: Pytest's options in place of the project's: no doctests, and nothing written beside the tests.
PLAIN = ("-q", "-o", "addopts=", "-p", "no:cacheprovider")

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
NAMES = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "any": "all",
    "all": "any",
    "floor": "ceil",
    "ceil": "floor",
    "argmin": "argmax",
    "argmax": "argmin",
}


@dataclass(frozen=True)
class Mutant:
    """One change: where (`line` is the first of the statement), what stood there and what stands there now."""

    file: str
    function: str
    line: int
    before: str
    after: str
    source: str

    @property
    def name(self) -> str:
        return f"{self.file}:{self.function}: {self.before} -> {self.after}"


def mutated(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """The nodes by which a node may be replaced: pairs of the node and its replacement."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        yield node, ast.Compare(node.left, [COMPARISONS[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        if not any(
            isinstance(side, ast.Constant | ast.JoinedStr) and _is_text(side) for side in (node.left, node.right)
        ):
            yield node, ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        yield node, ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert | ast.USub):
        yield node, node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield node, ast.Constant(node.value + 1)
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield node, ast.Attribute(node.value, NAMES[node.attr], node.ctx)
    elif isinstance(node, ast.Name) and node.id in ("min", "max", "any", "all"):
        yield node, ast.Name(NAMES[node.id], node.ctx)
    elif isinstance(node, ast.If) and len(node.body) == 1 and isinstance(node.body[0], ast.Raise) and not node.orelse:
        yield node, ast.Pass()


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def mutants_of(file: Path) -> Iterator[Mutant]:
    """Every mutant of a file; docstrings, annotations and texts of messages stay as they are."""
    source = file.read_text(encoding="utf-8")

    def visit(node: ast.AST, function: str, line: int) -> Iterator[Mutant]:
        for child in ast.iter_child_nodes(node):
            annotation = child is getattr(node, "returns", None)
            if annotation or isinstance(child, ast.JoinedStr | ast.AnnAssign | ast.arg | ast.Raise):
                continue
            inner, of_statement = function, child.lineno if isinstance(child, ast.stmt) else line
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inner = f"{function}.{child.name}".strip(".")
            if function:
                for old, new in mutated(child):
                    yield _changed(file, source, function, of_statement, old, new)
            yield from visit(child, inner, of_statement)

    yield from visit(ast.parse(source), "", 0)


def _changed(file: Path, source: str, function: str, line: int, old: ast.AST, new: ast.AST) -> Mutant:
    lines = source.encode().splitlines(keepends=True)
    assert isinstance(old, ast.expr | ast.stmt)
    assert old.end_lineno is not None
    assert old.end_col_offset is not None
    start = sum(map(len, lines[: old.lineno - 1])) + old.col_offset
    end = sum(map(len, lines[: old.end_lineno - 1])) + old.end_col_offset
    text = ast.unparse(new) if isinstance(new, ast.Pass | ast.Constant | ast.Name) else f"({ast.unparse(new)})"
    whole = source.encode()
    before = ast.unparse(old.test if isinstance(old, ast.If) else old)
    return Mutant(
        str(file.relative_to(ROOT)),
        function,
        line,
        f"if {before}: raise" if isinstance(old, ast.If) else before,
        ast.unparse(new),
        (whole[:start] + text.encode() + whole[end:]).decode(),
    )


_SECONDS: dict[str, float] = defaultdict(float)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """As a plugin of pytest: lines are noted under the test, its fixtures included, that runs them first."""
    import coverage

    test, start = item.nodeid.partition("[")[0], time.perf_counter()
    watching = coverage.Coverage.current()
    if watching is not None:
        watching.switch_context(test)
    yield
    _SECONDS[test] += time.perf_counter() - start


def pytest_sessionfinish() -> None:
    """How long each test took, for who runs the quickest first."""
    Path(SECONDS).write_text(json.dumps(_SECONDS))


@dataclass(frozen=True)
class Coverage:
    """Which tests run a line, the quickest first."""

    tests: dict[tuple[str, int], list[str]]

    @classmethod
    def measured(cls, copy: Path, packages: tuple[str, ...], tests: tuple[str, ...]) -> Coverage:
        """Run the room's tests once with every line watched, by test.

        Raises
        ------
        SystemExit
            Where a test fails without any mutant.
        """
        data, settings = copy / ".coverage", copy / ".coveragerc"
        data.unlink(missing_ok=True)
        settings.write_text(f"[run]\nsource = anon_pipeline\ndata_file = {data}\n")
        shadow_scores = [sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest"]
        ended = subprocess.run(
            [*shadow_scores, *PLAIN, "-p", "benchmarks.mutants", *(f"anon_pipeline_tests/{one}" for one in tests)],
            cwd=copy,
            env=_environment(copy),
            capture_output=True,
            text=True,
        )
        if ended.returncode:
            sys.exit(f"the tests fail without any mutant:\n{(ended.stdout + ended.stderr)[-3000:]}")
        found: dict[tuple[str, int], dict[str, float]] = defaultdict(dict)
        with contextlib.closing(sqlite3.connect(data)) as store:
            from coverage.numbits import numbits_to_nums

            rows = store.execute(
                "SELECT file.path, context.context, line_bits.numbits FROM line_bits "
                "JOIN file ON file.id = line_bits.file_id JOIN context ON context.id = line_bits.context_id"
            )
            seconds = json.loads((copy / SECONDS).read_text())
            for path, test, bits in rows:
                if test and any(f"anon_pipeline/{one}" in path for one in packages):
                    for line in numbits_to_nums(bits):
                        found[str(Path(path).relative_to(copy)), line][test] = seconds[test]
        return cls({place: sorted(tests, key=tests.__getitem__) for place, tests in found.items()})

    def of(self, mutant: Mutant) -> list[str]:
        return self.tests.get((mutant.file, mutant.line), [])


def _environment(copy: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "HYPOTHESIS_PROFILE": "default"}


def _judge(copy: str, tests: list[str]) -> None:
    """In a process of its own: exit code 0 where every test passes with the mutant."""
    os.chdir(copy)
    sys.path.insert(0, copy)
    sys.dont_write_bytecode = True
    os.environ.update(_environment(Path(copy)))
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
        os._exit(int(pytest.main(["-x", *PLAIN, *tests])))


def is_killed(copy: Path, mutant: Mutant, tests: list[str], patience: float) -> bool:
    """Whether a test notices; one that hangs (longer than `patience` seconds) is noticed, too."""
    target = copy / mutant.file
    original = target.read_text(encoding="utf-8")
    target.write_text(mutant.source, encoding="utf-8")
    try:
        process = multiprocessing.get_context("fork").Process(target=_judge, args=(str(copy), tests))
        process.start()
        process.join(patience)
        if process.is_alive():
            process.kill()
            process.join()
            return True
        return process.exitcode != 0
    finally:
        target.write_text(original, encoding="utf-8")


def equivalents() -> dict[str, str]:
    """Mutants judged to change nothing that matters, with the reason of each."""
    return {one["mutant"]: one["reason"] for one in yaml.safe_load(EQUIVALENT.read_text()) or []}


def drawn(packages: tuple[str, ...], number: int, seed: int) -> list[Mutant]:
    """Mutants of a room in random order, each file with a share by its size."""
    files = []
    for package in packages:
        place = ROOT / "anon_pipeline" / package
        files += [place] if place.suffix else sorted(place.glob("*.py"))
    every = [mutant for file in files for mutant in mutants_of(file)]
    random.Random(seed).shuffle(every)
    return every[:number]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS), choices=list(ROOMS))
    parser.add_argument("--number", type=int, default=40, help="mutants per room")
    parser.add_argument("--minutes", type=float, default=20, help="budget per room")
    parser.add_argument("--patience", type=float, default=600, help="seconds after which a mutant is taken to hang")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    known = equivalents()
    for module in HEAVY:
        with contextlib.redirect_stderr(io.StringIO()):
            importlib.import_module(module)
    print(f"{'room':10} {'tried':>6} {'killed':>7} {'equivalent':>11} {'survived':>9} {'rate':>7}")
    survivors: list[str] = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder)
        for name in ("anon_pipeline", "anon_pipeline_tests", "data", "docs", "benchmarks"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "var"))
        for name in ("pyproject.toml", "README.md", "Makefile"):
            shutil.copy(ROOT / name, copy)
        for room in chosen.rooms:
            packages, tests = ROOMS[room]
            covered, end = Coverage.measured(copy, packages, tests), time.monotonic() + 60 * chosen.minutes
            tried = killed = equivalent = 0
            for mutant in drawn(packages, chosen.number, chosen.seed):
                if time.monotonic() > end:
                    break
                if mutant.name in known:
                    equivalent += 1
                    continue
                tried += 1
                run_it = covered.of(mutant)
                if run_it and is_killed(copy, mutant, run_it, chosen.patience):
                    killed += 1
                else:
                    why = "" if run_it else " (no test runs the line)"
                    survivors.append(f"{mutant.name}{why} [line {mutant.line}]")
            rate = f"{killed / tried:.0%}" if tried else "-"
            print(f"{room:10} {tried:6} {killed:7} {equivalent:11} {tried - killed:9} {rate:>7}", flush=True)
    print(*("", "survived:", *survivors), sep="\n")


if __name__ == "__main__":
    main()
