"""The copies of the published release at the destinations that the spec names under `publish`."""

from __future__ import annotations

from pathlib import Path

from anon_pipeline.destinations import delivery
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import DESTINATIONS, RELEASE, Run, StepDef, StepResult


def deliver(run: Run, _folder: Path, release: Stage) -> StepResult:
    """Put the release to its places; it stands, whatever happens here."""
    spec, version = run.spec, str(release.facts["version"])
    places = [place.located(spec.folder) for place in spec.publish]
    standing = delivery.deliver(run.home, spec.dataset, version, places)
    return StepResult({"version": version}, metadata={"version": version, "places": ", ".join(standing)})


STEP = StepDef(DESTINATIONS, (RELEASE,), frozenset(), deliver)
