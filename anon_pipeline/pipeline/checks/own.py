"""The checks of a steward's own: a suite of Great Expectations, or a Python module, in the folder of the dataset.

`expectations.json` is a suite as Great Expectations writes it. It may come from somebody else, so it may hold
expectations with plain arguments, but nothing that is evaluated. `expectations.py` is code and needs `--allow-code`.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyarrow.parquet as pq

from anon_pipeline.errors import InputError
from anon_pipeline.pipeline.checks.answers import require_answers
from anon_pipeline.pipeline.expectations.questions import AGGREGATES, RELEASED, Question
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import CheckDef, Run
from anon_pipeline.release import manifest
from anon_pipeline.release.facts import losses
from anon_pipeline.release.publish import DATA
from anon_pipeline.spec import ReleaseSpec, Role
from anon_pipeline.spec.permission import refuse_private, require_code

NAME = "own_checks"
SUITE, MODULE = "expectations.json", "expectations.py"
#: Prefix of the functions of the module that are checks.
PREFIX = "expect_"
#: Arguments that pandas or Great Expectations would evaluate as code.
EVALUATED = ("row_condition", "condition_parser", "unexpected_rows_query")
#: Arguments that name columns.
COLUMNS = ("column", "column_A", "column_B", "column_list", "column_set")
REMEDY = "nothing was published; change the spec or the source, or the suite"


@dataclass(frozen=True)
class Own:
    """A check of a steward's own.

    Attributes
    ----------
    name : name of the check; manifest and report show it and the demand
    kind : type of the expectation; None for a function of the module
    arguments : arguments of the expectation
    over : the table that it is about; None if only the function itself can tell
    """

    name: str
    demand: str
    kind: str | None
    arguments: dict[str, Any]
    over: Literal["aggregates", "release"] | None


def checks_beside(spec: ReleaseSpec, battery: CheckDef) -> list[CheckDef]:
    """The steward's own checks on the step that a battery checks, where the folder of the dataset has any.

    Raises
    ------
    InputError
        Where a file cannot be used, before anything is made.
    """
    names = checks_of(spec)
    if not names:
        return []
    if taken := sorted(names.keys() & battery.checks(spec).keys()):
        raise InputError(f"{spec.folder / SUITE}: {taken[0]} is what another check is called; give yours another name")

    def asked(run: Run, **needs: Stage) -> list[Question]:
        return ask_own(run, needs[battery.of])

    return [CheckDef(NAME, battery.of, (battery.of,), checks_of, asked, _facts)]


def checks_of(spec: ReleaseSpec) -> dict[str, str]:
    """The checks, with the description that Dagster shows before each is first asked."""
    return {own.name: f"The steward's own: {own.demand}." for own in read_own(spec)}


def require(spec: ReleaseSpec, own_checks: Stage | None) -> list[dict[str, Any]]:
    """The stored answers, with one for each check in the current files, all passed.

    Raises
    ------
    Refused
        If an answer is missing or did not pass.
    InputError
        If a file was changed since.
    """
    if own_checks is not None and own_checks.facts != _facts(spec):
        raise InputError(f"{NAME}: {SUITE} or {MODULE} was changed since; materialize {spec.dataset}/{NAME} again")
    return require_answers(own_checks, checks_of(spec))


def read_own(spec: ReleaseSpec) -> list[Own]:
    """The checks in the files of the dataset's folder; Great Expectations is not imported, and no code is run.

    Raises
    ------
    InputError
        Where a file is no such suite or module, or its code is not allowed.
    """
    own = [*_of_suite(spec), *_of_module(spec)]
    names = [check.name for check in own]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f'{spec.folder / SUITE}: {name} is asked twice; give each a name: "meta": {{"name": ...}}')
    return own


def _facts(spec: ReleaseSpec) -> dict[str, Any]:
    files = [spec.folder / name for name in (SUITE, MODULE)]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.is_file()}


def _of_suite(spec: ReleaseSpec) -> list[Own]:
    file = spec.folder / SUITE
    if not file.is_file():
        return []
    refuse_private(file, str(file))
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError(f"{file}: is no JSON; write the suite as Great Expectations does") from None
    written = content.get("expectations") if isinstance(content, dict) else None
    if not isinstance(written, list) or not written or not all(isinstance(item, dict) for item in written):
        raise InputError(f'{file}: has no list of expectations; write {{"name": ..., "expectations": [...]}}')
    suite_meta = content.get("meta")
    default = suite_meta.get("over", RELEASED) if isinstance(suite_meta, dict) else RELEASED
    return [_of_item(spec, file, item, default) for item in written]


def _of_item(spec: ReleaseSpec, file: Path, item: dict[str, Any], default: object) -> Own:
    """One expectation of the suite."""
    kind, arguments, meta = item.get("type"), item.get("kwargs", {}), item.get("meta") or {}
    if not isinstance(kind, str) or kind not in _known_types():
        raise InputError(f"{file}: {str(kind)[:100]!r} is no expectation of Great Expectations; correct its type")
    if not isinstance(arguments, dict) or not isinstance(meta, dict):
        raise InputError(f"{file}: {kind}: kwargs and meta are mappings; write them as Great Expectations does")
    evaluated = sorted({key for key in _keys(arguments) if key.startswith("$") or key in EVALUATED})
    if evaluated:
        raise InputError(f"{file}: {kind}: {evaluated[0]} would be evaluated as code; write it in {MODULE} instead")
    over = meta.get("over", default)
    if over not in (AGGREGATES, RELEASED):
        raise InputError(f"{file}: {kind}: meta.over is {AGGREGATES} or {RELEASED}")
    columns = [name for key in COLUMNS for name in _as_list(arguments.get(key))]
    known = spec.released if over == RELEASED else aggregate_names(spec)
    for name in columns:
        if name not in known:
            raise InputError(f"{file}: {kind}: {over} has no column {name!r}; it has {', '.join(known)}")
    listed = ", ".join(map(str, columns))
    name = meta.get("name") or (f"{kind}({listed})" if columns else kind)
    # The demand is published, so it does not include the arguments, which may hold values.
    demand = item.get("description") or kind.replace("_", " ") + (f" of {listed}" if columns else "")
    return Own(str(name), str(demand), kind, arguments, over)


def _of_module(spec: ReleaseSpec) -> list[Own]:
    """The functions of the module by their names; the module is only parsed here, and run when the checks are asked."""
    file = spec.folder / MODULE
    if not file.is_file():
        return []
    refuse_private(file, str(file))
    require_code(MODULE, str(file))
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        raise InputError(f"{file}: is no Python; run it alone to see why") from None
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith(PREFIX)]
    if not functions:
        raise InputError(f"{file}: has no function whose name starts with {PREFIX}; each gives one expectation")
    return [
        Own(function.name, _first_line(function) or function.name.replace("_", " "), None, {}, None)
        for function in functions
    ]


def _first_line(function: ast.FunctionDef) -> str:
    return (ast.get_docstring(function) or "").split("\n")[0].rstrip(".")


def ask_own(run: Run, candidate: Stage) -> list[Question]:
    """The questions to the candidate for release, or to its aggregates."""
    spec, tables = run.spec, dict[str, pd.DataFrame]()
    questions = []
    for own in read_own(spec):
        expectation, over = (own.kind, own.over) if own.over is not None else _from_module(spec, own.name)
        if over not in tables:
            released = over == RELEASED
            tables[over] = pd.read_parquet(candidate.folder / DATA) if released else _aggregates(run, candidate)
        question = Question(own.name, own.demand, expectation, own.arguments, tables[over], remedy=REMEDY, own_of=over)
        questions.append(question)
    return questions


def _from_module(spec: ReleaseSpec, name: str) -> tuple[Any, str]:
    """The expectation that a function of the module returns, and the table that it is about."""
    file = spec.folder / MODULE
    require_code(MODULE, str(file))
    try:
        module_spec = importlib.util.spec_from_file_location(f"{spec.dataset}_expectations", file)
        module = importlib.util.module_from_spec(module_spec)  # type: ignore[arg-type]
        module_spec.loader.exec_module(module)  # type: ignore[union-attr]
        expectation = getattr(module, name)()
        over = (getattr(expectation, "meta", None) or {}).get("over", RELEASED)
        kind = expectation.expectation_type
    except (Exception, SystemExit) as error:
        problem = type(error).__name__
    else:
        if over in (AGGREGATES, RELEASED) and isinstance(kind, str):
            return expectation, over
        problem = f"meta.over is neither {AGGREGATES} nor {RELEASED}"
    raise InputError(f"{file}: {name} gives no expectation ({problem}); run it in Python to see why")


def aggregate_names(spec: ReleaseSpec) -> list[str]:
    """The columns of the table of aggregates: one row of figures that the manifest publishes, too."""
    if spec.is_synthetic:
        return ["rows"]
    if spec.aggregates:
        return ["groups"]
    sizes = ["classes", "smallest_class", "median_class_size", "mean_class_size", "largest_class"]
    losses = [f"information_loss_{name}" for name in spec.quasi_identifiers]
    return ["released", "suppressed", *sizes, "information_loss", *losses]


def _aggregates(run: Run, candidate: Stage) -> pd.DataFrame:
    """One row of figures, as fine as in the manifest, so that no answer reveals more than the published figures."""
    spec, engine, data = run.spec, run.engine, candidate.folder / DATA
    if spec.is_synthetic or spec.aggregates:
        return pd.DataFrame([{aggregate_names(spec)[0]: pq.ParquetFile(data).metadata.num_rows}])
    sizes = manifest.class_sizes(engine.classes(data, spec.quasi_identifiers, spec.with_role(Role.SENSITIVE)).sizes)
    told = losses(candidate.facts, run.noise(candidate.facts["version"]))
    figures = {
        "released": candidate.facts["released"],
        "suppressed": candidate.facts["suppressed"],
        "classes": sizes["classes"],
        "smallest_class": sizes["smallest"],
        "median_class_size": sizes["median"],
        "mean_class_size": sizes["mean"],
        "largest_class": sizes["largest"],
        "information_loss": told["mean"],
        **{f"information_loss_{name}": value for name, value in told["columns"].items()},
    }
    return pd.DataFrame([figures])[aggregate_names(spec)]


def _keys(content: Any) -> Iterable[str]:
    """All keys, at any depth."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield str(key)
            yield from _keys(value)
    elif isinstance(content, list):
        for value in content:
            yield from _keys(value)


def _as_list(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


@cache
def _known_types() -> frozenset[str]:
    """The installed types of expectations, from the names of their files, since importing them takes seconds."""
    package = importlib.util.find_spec("great_expectations")
    places = [] if package is None else package.submodule_search_locations or []
    return frozenset(
        file.stem for place in places for file in (Path(place) / "expectations" / "core").glob(f"{PREFIX}*.py")
    )
