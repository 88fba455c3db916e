"""All definitions of a code location: a folder more under `data/` is a graph more, without code."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home, data_folder
from anon_pipeline.pipeline.aggregation import build_group_checks
from anon_pipeline.pipeline.assets import build_assets
from anon_pipeline.pipeline.automation import build_job, build_retention, build_schedule, build_sensor
from anon_pipeline.pipeline.checks import build_checks
from anon_pipeline.pipeline.freshness import freshness
from anon_pipeline.pipeline.frontier import build_frontier
from anon_pipeline.pipeline.runtime import BAD_INPUT, Runtime
from anon_pipeline.spec import ReleaseSpec


def build_definitions(
    specs: Sequence[ReleaseSpec] | None = None, runtime: Runtime | None = None, data: Path | None = None
) -> dg.Definitions:
    """Definitions for some specs, or for every dataset folder under `data`.

    Parameters
    ----------
    specs : these datasets only
    runtime : where and with what to run; the default home and engine where absent
    data : folder of dataset folders; `$ANON_PIPELINE_DATA` or `data` where absent
    """
    assets: list[Any] = []
    checks: list[Any] = []
    jobs: list[Any] = []
    schedules: list[Any] = []
    sensors: list[Any] = []
    if specs is None:
        specs, broken = _specs_under(data or data_folder())
        assets += [_broken_dataset(name, sentence) for name, sentence in broken.items()]
    for spec in specs:
        job = build_job(spec)
        assets += [*build_assets(spec), *build_frontier(spec)]
        checks += [*build_checks(spec), *build_group_checks(spec)]
        jobs.append(job)
        schedules += [one for one in (build_schedule(spec, job), build_retention(spec)) if one is not None]
        sensors.append(build_sensor(spec, job))
    return dg.Definitions(
        assets=assets,
        asset_checks=checks,
        jobs=jobs,
        schedules=schedules,
        sensors=sensors,
        executor=dg.in_process_executor,
        # Dagster may have been here first, and makes its folders readable by all: prepare() closes the private zone.
        resources={"runtime": runtime or Runtime(home=str(Home.default().prepare().root))},
    )


def _specs_under(data: Path) -> tuple[list[ReleaseSpec], dict[str, str]]:
    """The specs found, and a sentence for each folder whose spec cannot be used."""
    specs: dict[str, ReleaseSpec] = {}
    broken: dict[str, str] = {}
    for file in sorted(data.glob("*/release.yaml")):
        try:
            spec = ReleaseSpec.load(file)
            freshness(spec)  # a schedule that is none is told here, and hides no other dataset
            if spec.dataset in specs:
                raise InputError(f"{file}: the dataset {spec.dataset} stands in another folder too; rename one")
            specs[spec.dataset] = spec
        except InputError as error:
            broken["".join(letter if letter.isalnum() else "_" for letter in file.parent.name)] = str(error)
    return list(specs.values()), broken


def _broken_dataset(name: str, sentence: str) -> dg.AssetsDefinition:
    """A visible asset in place of a graph that cannot be built, so that one bad spec does not hide the others."""

    @dg.asset(name="spec", key_prefix=name, group_name=name, description=f"This dataset cannot be built. {sentence}")
    def unusable_spec() -> None:
        raise dg.Failure(sentence, metadata={"exit_code": BAD_INPUT}, allow_retries=False)

    return unusable_spec
