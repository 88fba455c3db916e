"""The page that compares a release with its source. For the private zone: it has aggregates that are not released."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from anon_pipeline.report import charts, likeness, likeness_chart
from anon_pipeline.report import utility as utility_report
from anon_pipeline.report.templates import template
from anon_pipeline.report.utility import Score
from anon_pipeline.report.wording import part, times


@dataclass(frozen=True)
class ComparisonPage:
    """The content of the page, as text."""

    dataset: str
    description: str
    version: str
    created: str
    k: int
    columns: list[tuple[str, Markup, str]]  # name, picture, why there is no comparison
    associations: Markup | None
    changes: list[str]
    scores: list[Score]


def render(manifest: Mapping[str, Any], columns: Sequence[Mapping[str, Any]], k: int) -> str:
    """The page as HTML without external files.

    Parameters
    ----------
    columns : columns of the release, in the form of `anon_pipeline.release.comparison.ComparedColumn`
    k : people in every group of the source
    """
    measured = part(manifest, "measured")
    associations = part(measured, "associations")
    page = ComparisonPage(
        dataset=str(manifest["dataset"]),
        description=str(part(manifest, "spec").get("description") or ""),
        version=str(manifest["version"]),
        created=times(str(manifest["created"]))[0],
        k=k,
        columns=[(str(column["name"]), _picture(column), str(column["why_not"])) for column in columns],
        associations=_inline(likeness_chart.association_chart(associations)) if associations.get("pairs") else None,
        changes=likeness.sentences(measured),
        scores=utility_report.scores(part(manifest, "utility", "metrics")),
    )
    return template("comparison.html").render(page=page)


def _picture(column: Mapping[str, Any]) -> Markup:
    if not column["groups"]:
        return Markup()
    if column["before"] is None:
        return _inline(likeness_chart.marginal_chart(column["name"], column))
    return _inline(likeness_chart.comparison_chart(column["name"], column))


def _inline(chart: str) -> Markup:
    return Markup(charts.inline(chart))  # noqa: S704 (charts escape their input)
