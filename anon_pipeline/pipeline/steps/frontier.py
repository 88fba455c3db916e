"""The privacy-utility trade-off: what each setting under `frontier:` in the spec would cost and protect.

It releases nothing, and no release waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.learning.tradeoff import TradeOffPoint
from anon_pipeline.pipeline.metadata import Markdown, MetadataItem, picture
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import PEOPLE, Run, StepDef, StepResult
from anon_pipeline.pipeline.tradeoff import measured
from anon_pipeline.release.publish import DATA
from anon_pipeline.report import tradeoff as shown
from anon_pipeline.spec import ReleaseSpec, TradeOff


def measure(run: Run, folder: Path, people: Stage) -> StepResult:
    """Measure each setting, and write a table and a picture."""
    assert isinstance(run.spec.frontier, TradeOff)  # noqa: S101 (the graph has this step where the spec asks for it)
    types = SourceFacts.from_json(people.facts).types()
    points = measured(run, people.folder / DATA, types, run.spec.frontier.settings(), True)
    shown.write(points, run.spec.dataset, folder)
    counts: dict[str, Any] = {
        "settings": len(points),
        "refused": sum(point.refused is not None for point in points),
    }
    facts = {**counts, "prices": shown.as_json(points)}
    return StepResult(facts, metadata={**counts, **_metadata(run.spec, points)}, metrics=counts)


STEP = StepDef("frontier", (PEOPLE,), frozenset({"scikitlearn"}), measure, in_release=False)


def _metadata(spec: ReleaseSpec, points: Sequence[TradeOffPoint]) -> dict[str, MetadataItem]:
    headings, rows = shown.table(points)
    return {
        "price_list": Markdown(shown.markdown_table(headings, rows)),
        "refusals": Markdown("\n".join(f"- {note}" for note in shown.notes(points)) or "none"),
        "picture": picture("what each setting costs and protects", shown.picture(points, spec.dataset)),
    }
