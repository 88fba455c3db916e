"""All definitions of a code location: each folder under `data/` becomes a graph, without further code."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home, data_folder
from anon_pipeline.pipeline.automation.anew import build_anew_job
from anon_pipeline.pipeline.automation.jobs import (
    build_job,
    build_retention,
    build_schedule,
    build_statistics_job,
    build_statistics_schedule,
)
from anon_pipeline.pipeline.automation.sensor import build_sensor
from anon_pipeline.pipeline.automation.upkeep import (
    build_alerts_of_late_releases,
    build_alerts_of_runs,
    build_prune_job,
    build_prune_schedule,
)
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.runtime import BAD_INPUT, EXIT_CODE, RUNTIME, Runtime
from anon_pipeline.pipeline.technical_names import technical
from anon_pipeline.pipeline.wrapping import asset_of, checks_of
from anon_pipeline.spec import ReleaseSpec

log = logging.getLogger("anon_pipeline")


@dataclass(frozen=True)
class _Parts:
    """The definitions of one or several datasets in a code location."""

    assets: list[Any] = field(default_factory=list)
    checks: list[Any] = field(default_factory=list)
    jobs: list[Any] = field(default_factory=list)
    schedules: list[Any] = field(default_factory=list)
    sensors: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, spec: ReleaseSpec, runtime: Runtime) -> "_Parts":
        job, statistics, graph = build_job(spec, runtime), build_statistics_job(spec, runtime), graph_of(spec)
        anew = build_anew_job(spec, runtime)
        schedules = build_schedule(spec, job), build_retention(spec), build_statistics_schedule(spec, statistics)
        return cls(
            [asset_of(graph, step) for step in graph.steps],
            [checks_of(graph, checks) for checks in graph.checks],
            [planned for planned in (job, anew, statistics) if planned is not None],
            [schedule for schedule in schedules if schedule is not None],
            [build_sensor(spec, job, anew)],
        )

    def __add__(self, other: "_Parts") -> "_Parts":
        return _Parts(
            self.assets + other.assets,
            self.checks + other.checks,
            self.jobs + other.jobs,
            self.schedules + other.schedules,
            self.sensors + other.sensors,
        )

    def names(self) -> set[str]:
        """The names that must be unique in a code location."""
        kinds = {"job": self.jobs, "schedule": self.schedules, "sensor": self.sensors}
        return {f"{kind} {definition.name}" for kind, definitions in kinds.items() for definition in definitions}

    def definitions(self, runtime: Runtime) -> dg.Definitions:
        return dg.Definitions(
            assets=self.assets,
            asset_checks=self.checks,
            jobs=self.jobs,
            schedules=self.schedules,
            sensors=self.sensors,
            executor=dg.in_process_executor,
            resources={RUNTIME: runtime.as_resource()},
        )


def build_definitions(
    specs: Sequence[ReleaseSpec] | None = None, runtime: Runtime | None = None, data: Path | None = None
) -> dg.Definitions:
    """Definitions for some specs, or for every dataset folder under `data`.

    Parameters
    ----------
    specs : these datasets only
    runtime : where and with what to run; the default home and engine where absent
    data : the folder with the folders of datasets; `$ANON_PIPELINE_DATA` or `data` if absent
    """
    # Dagster may have made its folders already, readable by all: prepare() closes the private zone.
    runtime = runtime or Runtime(home=str(Home.default().prepare().root))
    if specs is not None:
        return sum((_Parts.of(spec, runtime) for spec in specs), _upkeep(specs, runtime)).definitions(runtime)
    return _under(data or data_folder(), runtime).definitions(runtime)


def _upkeep(specs: Sequence[ReleaseSpec], runtime: Runtime) -> _Parts:
    """The upkeep of a code location, beside its datasets: alerts and the pruning."""
    home = Home(Path(runtime.home))
    prune = build_prune_job(home, specs)
    sensors = build_alerts_of_runs(home, specs), build_alerts_of_late_releases(home, specs)
    return _Parts(
        jobs=[prune],
        schedules=[build_prune_schedule(prune)],
        sensors=[sensor for sensor in sensors if sensor is not None],
    )


def _under(data: Path, runtime: Runtime) -> _Parts:
    """The definitions of every dataset folder: a graph per usable spec, an asset with a sentence for every other."""
    whole, broken, taken, specs = _Parts(), dict[str, str](), set[str](), list[ReleaseSpec]()
    for file in sorted(data.glob("*/release.yaml")):
        try:
            spec, parts = _loaded(file, runtime)
            names = {f"dataset {spec.dataset}", *parts.names()}
            if names & taken:
                raise InputError(f"{file}: the {min(names & taken)} stands in another folder too; rename one")
        except InputError as error:
            broken[file.parent.name] = str(error)
        else:
            whole, taken, specs = whole + parts, taken | names, [*specs, spec]
    return (
        whole + _upkeep(specs, runtime) + _Parts([_broken_dataset(name, sentence) for name, sentence in broken.items()])
    )


def _loaded(file: Path, runtime: Runtime) -> tuple[ReleaseSpec, _Parts]:
    """The dataset of a spec and its graph.

    Raises
    ------
    InputError
        For any error, also of Dagster, so that one bad dataset does not hide the others.
    """
    spec = ReleaseSpec.load(file)
    try:
        parts = _Parts.of(spec, runtime)
        dg.Definitions.validate_loadable(parts.definitions(runtime))
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    except Exception as error:
        log.exception("%s: no graph can be built of this spec", file)
        raise InputError(
            f"{file}: no graph can be built of this spec ({type(error).__name__}); Dagster's log says why"
        ) from None
    return spec, parts


def _broken_dataset(name: str, sentence: str) -> dg.AssetsDefinition:
    """A visible asset in place of a graph that cannot be built, so that one bad spec does not hide the others."""

    @dg.asset(
        name="spec",
        key_prefix=technical(name),
        group_name=technical(name),
        description=f"The dataset in the folder {name} cannot be built. {sentence}",
    )
    def unusable_spec() -> None:
        raise dg.Failure(sentence, metadata={EXIT_CODE: BAD_INPUT}, allow_retries=False)

    return unusable_spec
