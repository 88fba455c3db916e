"""What commands show on stdout as tables and sentences, where they print no JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from anon_pipeline.cli.app import out
from anon_pipeline.spec import Role

if TYPE_CHECKING:  # what is shown is imported by the command that makes it
    from anon_pipeline.audit.foreign_table import AttackedTable
    from anon_pipeline.learning.tradeoff import TradeOffPoint
    from anon_pipeline.pipeline.masked_files import Masked
    from anon_pipeline.privacy.verdict import Verdict
    from anon_pipeline.profiling.new_dataset import NewDataset
    from anon_pipeline.release.difference import Change
    from anon_pipeline.release.ledger import Entry


def show_release(manifest: dict[str, Any], folder: Path | None, new: bool) -> None:
    """A release: what was asked, what holds, and what it cost."""
    shown = Table(title=f"{manifest['dataset']} {manifest['version']}", title_justify="left", show_header=False)
    shown.add_column(style="bold")
    shown.add_column()
    if manifest.get("groups"):
        _show_groups(shown, manifest, folder, new)
        return
    rows, measured = manifest["rows"], manifest["measured"]
    sizes = measured["class_sizes"]
    shown.add_row("state", "released" if new else "stands already; nothing new was published")
    shown.add_row("people", f"{rows['released']:,} released, {rows['suppressed']:,} suppressed")
    shown.add_row("classes", f"{sizes['classes']:,}; the smallest has {sizes['smallest']:,} people")
    shown.add_row("information lost", f"{measured['information_loss']['mean']:.1%} of the quasi-identifiers' variance")
    for finding in manifest["verified"]:
        shown.add_row("demand", f"{finding['demand']}: measured {number(finding['measured'])}")
    for metric, one in manifest["utility"]["metrics"].items():
        shown.add_row(
            metric,
            f"{interval(one['before'])} before, {interval(one['after'])} after; "
            f"difference {interval(one['difference'], sign='+')}",
        )
    if folder is not None:
        shown.add_row("folder", str(folder))
    out.print(shown)


def _show_groups(shown: Table, manifest: dict[str, Any], folder: Path | None, new: bool) -> None:
    groups = manifest["groups"]
    shown.add_row("state", "released" if new else "stands already; nothing new was published")
    shown.add_row("people", f"{groups['people']:,} counted, {groups['people_left_out']:,} in groups that are left out")
    shown.add_row("groups", f"{groups['groups']:,}; the smallest counts {groups['smallest']:,} people")
    if groups["means"]:
        shown.add_row("means", f"{', '.join(groups['means'])}; {groups['means_hidden']:,} values are hidden")
    shown.add_row("note", groups["note"])
    for finding in manifest["verified"]:
        shown.add_row("demand", f"{finding['demand']}: measured {number(finding['measured'])}")
    if folder is not None:
        shown.add_row("folder", str(folder))
    out.print(shown)


def interval(estimate: dict[str, float | None], sign: str = "") -> str:
    """A mean and the ends of its interval."""
    if estimate["mean"] is None:
        return "not defined"
    text = f"{estimate['mean']:{sign}.4f}"
    if estimate["low"] is None:
        return text
    return f"{text} ({estimate['low']:{sign}.4f} to {estimate['high']:{sign}.4f})"


def number(value: float | None) -> str:
    """A number as people read it."""
    return (
        "infinite" if value is None else f"{value:,.4g}" if isinstance(value, float) and value % 1 else f"{value:,.0f}"
    )


def yes_or_no(holds: bool) -> str:
    """Whether a demand holds; what does not stands out."""
    return "yes" if holds else "NO"


def show_verdict(name: str, verdict: Verdict) -> None:
    """What was demanded of a table, what was measured, and what fails."""
    shown = Table(title=f"{name}: {'holds' if verdict.holds else 'does not hold'}", title_justify="left")
    for heading in ("demand", "measured", f"{'groups' if verdict.groups else 'classes'} that fail", "holds"):
        shown.add_column(heading)
    for finding in verdict.findings:
        shown.add_row(finding.demand, number(finding.measured), f"{finding.failing:,}", yes_or_no(finding.holds))
    out.print(shown)
    out.print(
        f"{verdict.rows:,} groups; the smallest counts {verdict.smallest_class:,} people"
        if verdict.groups
        else f"{verdict.rows:,} rows in {verdict.classes:,} classes; the smallest has {verdict.smallest_class:,}; "
        f"{verdict.rows_below:,} rows stand in classes that are too small"
    )
    for column, measures in verdict.sensitive.items():
        told = ", ".join(f"{name} {number(value)}" for name, value in measures.items())
        out.print(f"{column}: {told}", markup=False)
    for problem in verdict.problems:
        out.print(problem, markup=False)


def show_attacks(name: str, attacked: AttackedTable) -> None:
    """A line per attack, and what each means."""
    from anon_pipeline.report import attacks as audit_report

    shown = Table(title=f"{name}: {attacked.rows:,} rows", title_justify="left", box=None, pad_edge=False)
    for heading in ("attack", "people in it", "others", "blind guess", "leak", "verdict"):
        shown.add_column(heading, no_wrap=True)
    for row in audit_report.table(attacked.to_json()["findings"]):
        shown.add_row(
            *(Text(cell) for cell in (row.name, row.attack, row.control, row.baseline, row.leak, row.verdict))
        )
    Console(width=max(out.width, 200)).print(shown)  # a line per attack, however narrow the window
    for finding in attacked.findings:
        out.print(f"\n{finding.name}: {finding.sentence}", markup=False, highlight=False, soft_wrap=True)
    for note in attacked.notes:
        out.print(f"\n{note}", markup=False, highlight=False, soft_wrap=True)


def show_new_dataset(name: str, made: NewDataset) -> None:
    """The proposed roles of a new dataset, and the lines that a person decides."""
    found = made.profile
    sampled = "" if found.looked_at == found.rows else f", by looking at {found.looked_at:,} of them"
    shown = Table(
        title=f"{name}: {found.rows:,} rows{sampled}", title_justify="left", show_header=False, box=None, pad_edge=False
    )
    shown.add_column(style="bold")
    shown.add_column()
    for role in Role:
        of_role = [one.name for one in found.columns if one.role is role and one.question is None]
        if of_role:
            shown.add_row(role.value, Text(", ".join(of_role)))
    out.print(shown)
    told = [f"wrote {made.file}; decide these lines of it, a reason stands above each column:"]
    told += [f"  line {line}, {one.place}: {one.question}" for line, one in made.open]
    told.append(f"then: anon-pipeline run {made.file.parent}")
    for sentence in told:
        out.print(sentence, markup=False, highlight=False, soft_wrap=True)


def show_tradeoff(dataset: str, points: Sequence[TradeOffPoint], files: Sequence[Path]) -> None:
    """What each setting costs and protects: a column a setting."""
    from anon_pipeline.report import tradeoff

    headings, rows = tradeoff.table(points, brief=True)
    shown = Table(title=f"{dataset}: the price list", title_justify="left")
    shown.add_column()
    for row in rows:  # a column a setting, since there are more measures than settings
        shown.add_column(Text(row[0]), justify="right")
    for number, heading in enumerate(headings[1:], start=1):
        shown.add_row(Text(heading), *(Text(row[number]) for row in rows))
    out.print(shown)
    if any(point.current for point in points):
        out.print("* what the spec says", markup=False)
    for sentence in tradeoff.notes(points):
        out.print(sentence, markup=False, highlight=False)
    out.print(f"written: {', '.join(str(file) for file in files)}", markup=False, highlight=False, soft_wrap=True)


def show_masking(name: str, masked: Masked) -> None:
    """What each masking step did."""
    shown = Table(title=f"{name}: {masked.rows:,} {'groups' if masked.groups else 'rows'}", title_justify="left")
    for heading in ("columns", "technique", "guarantee", "cells changed"):
        shown.add_column(heading)
    for report in masked.reports:
        changed = ", ".join(f"{cost.changed:.1%}" for cost in report.costs.values()) or "-"
        shown.add_row(Text(", ".join(report.columns) or "-"), report.technique, report.guarantee, changed)
    out.print(shown)


def show_ledger(entries: Sequence[Entry]) -> None:
    """Releases and withdrawals, a line each."""
    shown = Table()
    for heading in ("#", "time", "dataset", "version", "action", "why"):
        shown.add_column(heading)
    for entry in entries:
        shown.add_row(
            str(entry.sequence), entry.time, entry.dataset, entry.version, entry.action, Text(entry.why or "")
        )
    out.print(shown)


def show_difference(first: str, second: str, changes: Sequence[Change]) -> None:
    """What differs between two releases, a line each."""
    if not changes:
        out.print(f"{first} and {second} tell the same of themselves", highlight=False)
        return
    shown = Table(title=f"{first} and {second}", title_justify="left")
    for heading in ("part", "what", first, second):
        shown.add_column(heading, overflow="fold")
    for change in changes:
        shown.add_row(Text(change.part), Text(change.what), Text(_plain(change.before)), Text(_plain(change.after)))
    out.print(shown)


def _plain(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
