"""The steps and the approximate cost of a run: nothing is grouped, and nothing is written in the home."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from anon_pipeline.anonymize.description import hierarchies_of
from anon_pipeline.destinations.delivery import require_ready
from anon_pipeline.engine.first_look import FirstLook
from anon_pipeline.home import Home
from anon_pipeline.keys import require_key
from anon_pipeline.learning.models import rounds_of
from anon_pipeline.pipeline.before_work import require_startable
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.masking import planned
from anon_pipeline.release.promises import require_an_answer
from anon_pipeline.release.spec_folders import require_one_dataset
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline.spec.parts import Audit
from anon_pipeline.workers import how_many

#: Measured points (docs/benchmarks.md): people, and peak memory of the process that runs, in GB.
MEMORY = ((0, 0.6), (50_000, 0.8), (1_000_000, 0.9), (10_000_000, 1.14), (100_000_000, 1.6))
#: GB per worker process: forked with little to do, or with models of many people.
OF_A_PROCESS = (0.15, 0.6)
#: Factors around the estimate, between which runs on other data and machines were or may be.
FROM, TO = 0.5, 2.0
#: The number of people in Adult, on which the steps below were measured.
ADULT = 48_842


@dataclass(frozen=True)
class DryRun:
    """The estimates of a run that has not been made.

    Attributes
    ----------
    people : the number of people in the source, before any are held out or left out; None if not counted
    read : whether every row was read; otherwise only the columns were, or nothing of a server or a store
    steps : the steps in their order, each with the names of the checks on its result
    cpu_seconds, memory_gb : ranges around measured values; None if nothing similar was measured
    """

    dataset: str
    people: int | None
    read: bool
    steps: Mapping[str, list[str]]
    cpu_seconds: tuple[float, float] | None
    memory_gb: tuple[float, float] | None

    def to_json(self) -> dict[str, Any]:
        return {
            "dry_run": True,
            "exit_code": 0,
            "dataset": self.dataset,
            "people": self.people,
            "every_row_was_read": self.read,
            "steps": [{"step": step, "checks": checks} for step, checks in self.steps.items()],
            "cpu_seconds": self.cpu_seconds,
            "memory_gb": self.memory_gb,
        }


def dry_run(spec: ReleaseSpec, home: Home, engine: str, threads: int | None, memory: str | None) -> DryRun:
    """Check everything that a run checks before it groups people.

    Raises
    ------
    InputError
        As in a run, for errors in the spec, in the files that it names, in the rows of the source and in the
        destinations, and for a private zone or a key that the run could not use.
    Refused
        If a manifest of a former release differs from the published one.
    """
    _require_schedules(spec)
    hierarchies_of(spec)
    require_an_answer(home, spec)
    require_one_dataset(home, spec)
    home.require_usable()
    require_key(spec, home)
    looked = require_startable(spec, however_large=True)
    _require_steps(spec, looked)
    require_ready(spec.publish, spec.folder)
    graph = graph_of(spec)
    steps: dict[str, list[str]] = {step.name: [] for step in graph.steps if step.in_release}
    for checks in graph.checks:
        if checks.of in steps:
            steps[checks.of] += checks.checks(spec)
    rows, known = looked.rows, engine == "duckdb" and not spec.is_synthetic and not spec.aggregates
    count = how_many(threads or spec.engine.threads, memory or spec.engine.memory_limit)
    return DryRun(
        spec.dataset,
        rows,
        looked.whole,
        steps,
        _range(cpu_seconds(spec, rows, _classes(spec, looked))) if known and rows is not None else None,
        memory_gb(rows, count) if known and rows is not None else None,
    )


def _require_schedules(spec: ReleaseSpec) -> None:
    noise = spec.differential_privacy
    asked = noise.schedule if noise is not None and noise.queries is not None else None
    stated = {"schedule": spec.schedule, "differential_privacy.schedule": asked}
    for key, schedule in stated.items():
        if schedule is not None:
            from anon_pipeline.pipeline.freshness import longest_gap  # Dagster takes seconds to import

            longest_gap(schedule, key)


def _require_steps(spec: ReleaseSpec, looked: FirstLook) -> None:
    """Refuse masking steps that do not fit the columns, as far as the types of these are read or all stated."""
    stated = {name: spec.columns[name].type for name in spec.stored}
    types = looked.types or {name: kind for name, kind in stated.items() if kind is not None}
    if spec.masks and len(types) == len(stated):
        planned(spec, dict(types))


def cpu_seconds(spec: ReleaseSpec, people: int, classes: int = 2) -> float:
    """The estimated processor seconds of a run, from measurements of Adult, of 3,000 and of 10 million people.

    Parameters
    ----------
    classes : the number of values of a target that is no number
    """
    # Boosting has a tree for each class in every round; of two classes, one tree tells both. (5,670 people of Adult
    # take 43 cpu s with two classes, and 93 with 14, of which there are fewer rounds.)
    trees = 1.0
    if spec.guide.model == "gradient_boosting" and classes > 2:
        trees = classes / 2 * rounds_of(people, range(classes)) / rounds_of(people, range(2))
    trained = min(people, spec.guide.sample) / ADULT
    imports, table = 8.0, 6 + 10 * min(people, 10 * ADULT) / ADULT + 4e-6 * people
    models = 5 * trained * spec.guide.folds / 5
    measured = min(people, spec.utility.sample) / ADULT
    utility = 43 * measured * spec.utility.folds / 5 * (1 + len(spec.utility.models)) / 2
    on_table, on_models = _attacks(spec.audit, people)
    return imports + table + 2 + on_table + trees * (models + utility + on_models)


def _attacks(audit: Audit, people: int) -> tuple[float, float]:
    """The seconds of attacks on the table, and on models."""
    if not audit.enabled:
        return 0.0, 0.0
    on_models = 55 * min(people / 2, audit.people) / 8_000 * audit.shadows / 16 if audit.models else 0.0
    return 3 + 45 * min(people, audit.sample) / ADULT, on_models


def _classes(spec: ReleaseSpec, looked: FirstLook) -> int:
    """The number of values of a target of categories, as far as they were counted; else 2."""
    found = looked.values.get(spec.target or "")
    if found is None or not any(isinstance(value, str | bool) for value in found.values):
        return 2
    return sum(value is not None for value in found.values)


def memory_gb(people: int, processes: int) -> tuple[float, float]:
    """The lower and upper estimate of the peak over all processes, interpolated linearly between measured points."""
    (low, less), (high, more) = next((pair for pair in pairwise(MEMORY) if people <= pair[1][0]), MEMORY[-2:])
    of_the_run = less + (more - less) * (people - low) / (high - low)
    beside = 0 if processes == 1 else processes
    least, most = OF_A_PROCESS
    return round(of_the_run * 0.75 + least * beside, 1), round(of_the_run * 1.5 + most * beside, 1)


def _range(estimate: float) -> tuple[float, float]:
    return round(estimate * FROM), round(estimate * TO)
