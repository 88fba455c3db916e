"""Metadata of results for Dagster's pages: schemas, class sizes, scores, and a release in the words of its report."""

from collections.abc import Mapping
from typing import Any

from anon_pipeline.errors import percent
from anon_pipeline.masking.aggregation import PEOPLE
from anon_pipeline.pipeline.metadata import Column, Markdown, MetadataItem, Schema, picture
from anon_pipeline.report import charts
from anon_pipeline.report import risk as risk_report
from anon_pipeline.report.markdown import code, items, table, text
from anon_pipeline.report.release_report import describe
from anon_pipeline.report.wording import in_order, part
from anon_pipeline.spec import ReleaseSpec


def release_page(content: Mapping[str, Any]) -> dict[str, MetadataItem]:
    """Metadata for a published release.

    Parameters
    ----------
    content : the manifest of the release
    """
    page = describe(content)
    measured = part(content, "measured")
    promises = [
        f"{text(promise.demand)}: {'holds' if promise.holds else 'fails'}, {text(promise.measured)}"
        for promise in page.promises
    ]
    rows = [[text(figure.what), text(figure.before), text(figure.value)] for figure in page.figures]
    columns = [[code(column.name).replace("|", "\\|"), text(column.what), text(column.lost)] for column in page.columns]
    records = risk_report.records(part(measured, "risk"))
    losses = in_order(part(measured, "information_loss", "columns"), part(content, "spec", "columns"))
    pictures: dict[str, MetadataItem] = {}
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
        "verdict": Markdown(f"**{page.verdict}.** {text(page.lead)}"),
        "promised": Markdown(items(promises)),
        "before_and_after": Markdown(table(["", "before", "after"], rows, 1)),
        "to_weigh": Markdown(items(map(text, page.cautions)) or "nothing"),
        "columns": Markdown(table(["column", "what happened", "lost"], columns, 2)),
        **pictures,
    }


def released_schema(spec: ReleaseSpec, storage: Mapping[str, str]) -> Schema:
    """The columns of a table of released people; `storage` is the type of each."""
    return Schema([Column(name, storage[name], role_of(spec, name)) for name in spec.released])


def groups_schema(storage: Mapping[str, str]) -> Schema:
    """The columns of a table of groups."""
    what = {PEOPLE: "how many people the group counts"}
    return Schema([Column(name, kind, what.get(name)) for name, kind in storage.items()])


def role_of(spec: ReleaseSpec, name: str) -> str:
    """The role of a column, and its purpose."""
    column = spec.columns[name]
    return f"{column.role}: {column.why}" if column.why else str(column.role)


def class_size_metadata(sizes: dict[str, Any]) -> dict[str, MetadataItem]:
    """The number and the sizes of classes; `sizes` has the form of `manifest.class_sizes`."""
    people = sum(group["people"] for group in sizes["groups"])
    rows = ["| people in the class | share of all |", "|---|---|"]
    for group in sizes["groups"]:
        if group["people"]:
            share = group["people"] / people
            rows.append(f"| {group['size']} | {'█' * max(1, round(20 * share))} {percent(share)} |")
    return {
        "classes": sizes["classes"],
        "smallest_class": sizes["smallest"],
        "class_sizes": Markdown("\n".join(rows)),  # short enough for Dagster to show it inline
        "class_sizes_picture": picture("people by the size of their class", charts.class_size_chart(sizes["groups"])),
    }


def utility_metadata(facts: dict[str, Any]) -> dict[str, MetadataItem]:
    """The scores before and after; `facts` are those of the step `utility`."""
    rows = ["| score | before | after | difference (95 % interval) |", "|---|---|---|---|"]
    for metric, comparison in facts["metrics"].items():
        before, after, difference = (comparison[when] for when in ("before", "after", "difference"))
        if difference["mean"] is None or before["mean"] is None or after["mean"] is None:
            rows.append(f"| {metric} | not defined | not defined | not defined |")
            continue
        interval = "" if difference["low"] is None else f" ({difference['low']:+.4f} to {difference['high']:+.4f})"
        rows.append(f"| {metric} | {before['mean']:.4f} | {after['mean']:.4f} | {difference['mean']:+.4f}{interval} |")
    return {"scores": Markdown("\n".join(rows)), "people_scored": facts["rows"]}
