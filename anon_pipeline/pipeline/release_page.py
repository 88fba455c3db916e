"""What Dagster's page of a release shows: the words, figures and pictures of the report, from the same manifest."""

import base64
from collections.abc import Mapping
from typing import Any

import dagster as dg

from anon_pipeline.report import charts
from anon_pipeline.report import risk as risk_report
from anon_pipeline.report.markdown import code, items, table, text
from anon_pipeline.report.release_report import describe
from anon_pipeline.report.wording import in_order, part


def release_page(content: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata for a published release.

    Parameters
    ----------
    content : its manifest
    """
    page = describe(content)
    measured = part(content, "measured")
    promises = [
        f"{text(one.demand)}: {'holds' if one.holds else 'fails'}, {text(one.measured)}" for one in page.promises
    ]
    rows = [[text(one.what), text(one.before), text(one.value)] for one in page.figures]
    columns = [[code(one.name).replace("|", "\\|"), text(one.what), text(one.lost)] for one in page.columns]
    records = risk_report.records(part(measured, "risk"))
    losses = in_order(part(measured, "information_loss", "columns"), part(content, "spec", "columns"))
    pictures = {}
    if records:
        pictures["risk_picture"] = picture(
            "people by the size of their class, before and after",
            charts.before_after_chart(
                [label for label, _, _ in records],
                [before for _, before, _ in records],
                [after for _, _, after in records],
            ),
        )
    if losses:
        pictures["loss_picture"] = picture("share of each column that is lost", charts.share_chart(losses))
    return {
        "verdict": dg.MetadataValue.md(f"**{page.verdict}.** {text(page.lead)}"),
        "promised": dg.MetadataValue.md(items(promises)),
        "before_and_after": dg.MetadataValue.md(table(["", "before", "after"], rows, 1)),
        "to_weigh": dg.MetadataValue.md(items(map(text, page.cautions)) or "nothing"),
        "columns": dg.MetadataValue.md(table(["column", "what happened", "lost"], columns, 2)),
        **pictures,
    }


def picture(what: str, chart: str) -> dg.MarkdownMetadataValue:
    """A chart that Dagster shows inline."""
    drawn = base64.b64encode(chart.encode()).decode()
    return dg.MetadataValue.md(f"![{what}](data:image/svg+xml;base64,{drawn})")
