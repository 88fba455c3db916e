"""The output of commands on stdout as tables and sentences, if they print no JSON."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from anon_pipeline.cli.app import out
from anon_pipeline.cli.terminal import Terminal
from anon_pipeline.errors import number_of, percent
from anon_pipeline.spec import Role

if TYPE_CHECKING:  # the types of results; the command that makes a result imports them
    from anon_pipeline.audit.foreign_table import AttackedTable
    from anon_pipeline.learning.tradeoff import TradeOffPoint
    from anon_pipeline.pipeline.dry_run import DryRun
    from anon_pipeline.pipeline.masked_files import Masked
    from anon_pipeline.privacy.verdict import Verdict
    from anon_pipeline.profiling.new_dataset import NewDataset
    from anon_pipeline.release.difference import Change
    from anon_pipeline.release.ledger import Entry

#: Rows of a table: the name of a fact, and the fact.
Rows = Iterator[tuple[str | Text, str | Text]]


def show_dry_run(planned: DryRun) -> None:
    """Print the steps and the cost of a dry run, and the extent of its checks."""
    table = Table(title=f"{planned.dataset}: a run could start", title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column()
    read = "every row was read" if planned.read else "what each row holds was not looked at"
    table.add_row("people", read if planned.people is None else f"{planned.people:,}; {read}")
    for number, (step, checks) in enumerate(planned.steps.items()):
        asked = f", {len(checks)} check{'s' * (len(checks) > 1)}" if checks else ""
        table.add_row("" if number else "steps", step + asked)
    for heading, span, unit in (
        ("time", planned.cpu_seconds, "cpu s"),
        ("memory", planned.memory_gb, "GB at its peak"),
    ):
        text = "not estimated" if span is None else f"about {span[0]:g} to {span[1]:g} {unit} (an estimate)"
        table.add_row(heading, text)
    out.print(table)


def show_release(manifest: dict[str, Any], folder: Path | None, new: bool, withdrawn: bool = False) -> None:
    """Print a release: its demands, whether they hold, and its cost."""
    table = Table(title=f"{manifest['dataset']} {manifest['version']}", title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column()
    spent = " or spent" if manifest.get("kind") == "synthetic" else ""
    standing = "released" if new else f"stands already; nothing new was published{spent}"
    table.add_row("state", "withdrawn; only its manifest is left" if withdrawn else standing)
    for heading, text in _rows_of(manifest):
        table.add_row(heading, text)
    if folder is not None:
        table.add_row("folder", str(folder))
    out.print(table)


def _rows_of(manifest: dict[str, Any]) -> Rows:
    if manifest.get("kind") == "synthetic":
        return _of_synthetic_rows(manifest)
    if manifest.get("groups"):
        return _of_groups(manifest)
    if "questions" in manifest:
        return _of_statistics(manifest)
    return _of_people(manifest)


def _of_people(manifest: dict[str, Any]) -> Rows:
    from anon_pipeline.report.sequential import promise
    from anon_pipeline.report.utility import METRICS, of_few_folds

    rows, measured = manifest["rows"], manifest["measured"]
    sizes = measured["class_sizes"]
    yield "people", _people(rows)
    yield "classes", f"{sizes['classes']:,}; the smallest has {sizes['smallest']:,} people"
    yield "information lost", _information_lost(measured["information_loss"])
    yield from _demands(manifest)
    if (across := promise(manifest)) is not None:
        yield "demand", f"{across.demand[0].lower()}{across.demand[1:]}: measured {across.measured}"
    for metric, estimates in manifest["utility"]["metrics"].items():
        is_error = metric in METRICS and METRICS[metric][2] == "error"
        before, after = (interval(estimates[when], is_error=is_error) for when in ("before", "after"))
        change = interval(estimates["difference"], "+", is_error)
        yield metric, f"{before} before, {after} after; difference {change}"
    if rough := of_few_folds(manifest["utility"]):
        yield "to be weighed", rough


def _people(rows: dict[str, Any]) -> str:
    """How many people are in the release, and how many are not, for each reason that there is."""
    others = (("waiting", "held back"), ("sampled_out", "left out at random"), ("held_out", "kept out for the attacks"))
    parts = [f"{rows['released']:,} released", f"{rows['suppressed']:,} suppressed"]
    parts += [f"{rows[reason]:,} {what}" for reason, what in others if rows.get(reason)]
    if rows.get("without_target"):
        parts.append(f"about {rows['without_target']:,} left out without a target")
    return ", ".join(parts)


def _information_lost(loss: dict[str, Any]) -> str:
    """The share of the variance that is lost; in a small table, where it is told in coarse steps, with these."""
    from anon_pipeline.report.charts import in_steps, lost

    step = loss.get("step")
    return f"{lost(loss['mean'], step)} of the quasi-identifiers' variance{in_steps(step)}".replace("\u00a0", "")


def _of_statistics(manifest: dict[str, Any]) -> Rows:
    privacy = manifest["differential_privacy"]
    yield "differential privacy", f"epsilon {privacy['epsilon']:.4g} at delta {privacy['delta']:g}"
    for name, query in manifest["questions"].items():
        yield Text(name), Text(query)


def _of_synthetic_rows(manifest: dict[str, Any]) -> Rows:
    privacy = manifest["differential_privacy"]
    yield "rows", f"{manifest['rows']['synthetic']:,} synthetic rows, nobody's"
    yield "promise", f"epsilon {privacy['epsilon']:.4g} at delta {privacy['delta']:.4g} for every {privacy['unit']}"
    yield "budget", f"rho {privacy['rho']:.4g} of that of the subject {privacy['subject']}"
    if manifest.get("model"):
        yield "model", f"{manifest['model']['kind']} of {manifest['model']['target']}, in model.zip"


def _of_groups(manifest: dict[str, Any]) -> Rows:
    groups = manifest["groups"]
    yield "people", f"{groups['people']:,} counted, {groups['people_left_out']:,} in groups that are left out"
    yield "groups", f"{groups['groups']:,}; the smallest counts {groups['smallest']:,} people"
    if groups["means"]:
        yield (
            "means",
            f"{', '.join(groups['means'])}; {number_of(groups['means_hidden'], 'value is', 'values are')} hidden",
        )
    yield "note", groups["note"]
    yield from _demands(manifest)


def _demands(manifest: dict[str, Any]) -> Rows:
    for finding in manifest["verified"]:
        yield "demand", f"{finding['demand']}: measured {number(finding['measured'])}"


def interval(estimate: dict[str, float | None], sign: str = "", is_error: bool = False) -> str:
    """A mean and the ends of its interval."""
    if estimate["mean"] is None:
        return "not defined"
    text = _score(estimate["mean"], sign, is_error)
    if estimate["low"] is None or estimate["high"] is None:
        return text
    low, high = (_score(end, sign, is_error) for end in (estimate["low"], estimate["high"]))
    return f"{text} ({low} to {high})"


def _score(value: float, sign: str, is_error: bool) -> str:
    """A score; a large error, such as one of salaries, has fewer decimals, and a small one more."""
    from anon_pipeline.report.utility import SMALL_ERROR, small_error

    if is_error and 0 < abs(value) < SMALL_ERROR:
        return small_error(value, sign)
    decimals = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 4
    return f"{value:{sign},.{decimals}f}"


def number(value: float | None) -> str:
    """A number for people."""
    if value is None or math.isinf(value):
        return "infinite"
    return f"{value:,.4g}" if isinstance(value, float) and value % 1 else f"{value:,.0f}"


def yes_or_no(holds: bool) -> str:
    """Whether a demand holds; a demand that does not hold is highlighted."""
    return "yes" if holds else "NO"


def show_verdict(name: str, verdict: Verdict) -> None:
    """Print the demands on a table, the measured values and the failures."""
    table = Table(title=f"{name}: {'holds' if verdict.holds else 'does not hold'}", title_justify="left")
    for heading in ("demand", "measured", f"{'groups' if verdict.groups else 'classes'} that fail", "holds"):
        table.add_column(heading)
    for finding in verdict.findings:
        table.add_row(finding.demand, number(finding.measured), f"{finding.failing:,}", yes_or_no(finding.holds))
    out.print(table)
    out.print(
        f"{number_of(verdict.rows, 'group', 'groups')}; the smallest counts "
        f"{number_of(verdict.smallest_class, 'person', 'people')}"
        if verdict.groups
        else f"{number_of(verdict.rows, 'row', 'rows')} in {number_of(verdict.classes, 'class', 'classes')}; the "
        f"smallest has {verdict.smallest_class:,}; {number_of(verdict.rows_below, 'row stands', 'rows stand')} in "
        "classes that are too small"
    )
    for who, risk in verdict.risk.items():
        figures = ", ".join(
            f"{'highest' if name == 'max' else name} {100 * value:.3g}%" for name, value in risk.items()
        )
        out.print(f"{who} risk of being re-identified: {figures}")
    for column, measures in verdict.sensitive.items():
        figures = ", ".join(f"{name} {number(value)}" for name, value in measures.items())
        out.print(f"{column}: {figures}")
    for problem in verdict.problems:
        out.print(problem)
    for note in verdict.notes:
        out.print(f"note: {note}", highlight=False, soft_wrap=True)


def show_attacks(name: str, attacked: AttackedTable) -> None:
    """Print a line per attack, with its meaning."""
    from anon_pipeline.report import attacks as audit_report

    table = Table(
        title=f"{name}: {number_of(attacked.rows, 'row', 'rows')}", title_justify="left", box=None, pad_edge=False
    )
    for heading in ("attack", "people in it", "others", "blind guess", "leak", "verdict"):
        table.add_column(heading, no_wrap=True)
    for row in audit_report.table(attacked.to_json()["findings"]):
        table.add_row(
            *(Text(cell) for cell in (row.name, row.attack, row.control, row.baseline, row.leak, row.verdict))
        )
    Terminal(width=max(out.width, 200)).print(table)  # a line per attack, also in a narrow window
    for finding in attacked.findings:
        out.print(f"\n{finding.name}: {finding.sentence}", highlight=False, soft_wrap=True)
    for note in attacked.notes:
        out.print(f"\n{note}", highlight=False, soft_wrap=True)


def show_new_dataset(name: str, new_dataset: NewDataset) -> None:
    """Print the proposed roles of a new dataset, and the lines that a person must decide."""
    profile = new_dataset.profile
    sampled = "" if profile.looked_at == profile.rows else f", by looking at {profile.looked_at:,} of them"
    table = Table(
        title=f"{name}: {number_of(profile.rows, 'row', 'rows')}{sampled}",
        title_justify="left",
        show_header=False,
        box=None,
        pad_edge=False,
    )
    table.add_column(style="bold")
    table.add_column()
    for role in Role:
        of_role = [proposal.name for proposal in profile.columns if proposal.role is role and proposal.question is None]
        if of_role:
            table.add_row(role.value, Text(", ".join(of_role)))
    _print_unpadded(table)
    decide = "decide these lines of it, a reason stands above each column:"
    if not new_dataset.open:
        decide = "no line is left open, but read each: a reason stands above each column"
    sentences = [f"wrote {new_dataset.file}; {decide}"]
    sentences += [f"  line {line}, {question.place}: {question.question}" for line, question in new_dataset.open]
    sentences.append(f"then: anon-pipeline run {shlex.quote(str(new_dataset.file.parent))}")
    for sentence in sentences:
        out.print(sentence, highlight=False, soft_wrap=True)


def _print_unpadded(table: Table) -> None:
    """Print a table without frame; in a pipe or a file, where blanks stay in the way, without those at the ends."""
    if out.is_terminal:
        out.print(table)
        return
    with out.capture() as captured:
        out.print(table)
    for line in captured.get().splitlines():
        out.print(line.rstrip(), highlight=False, soft_wrap=True)


def show_tradeoff(dataset: str, points: Sequence[TradeOffPoint], files: Sequence[Path]) -> None:
    """Print the cost and the protection of each setting, with a column per setting."""
    from anon_pipeline.report import tradeoff

    headings, rows = tradeoff.table(points, brief=True)
    table = Table(title=f"{dataset}: the privacy-utility trade-off", title_justify="left")
    table.add_column()
    for row in rows:  # a column per setting, since there are more measures than settings
        table.add_column(Text(row[0]), justify="right")
    for number, heading in enumerate(headings[1:], start=1):
        table.add_row(Text(heading), *(Text(row[number]) for row in rows))
    out.print(table)
    if any(point.current for point in points):
        out.print("* what the spec says")
    for sentence in tradeoff.notes(points):
        out.print(sentence, highlight=False)
    out.print(f"written: {', '.join(str(file) for file in files)}", highlight=False, soft_wrap=True)


def show_masking(name: str, masked: Masked) -> None:
    """Print the effects of each masking step."""
    table = Table(
        title=f"{name}: {number_of(masked.rows, *(('group', 'groups') if masked.groups else ('row', 'rows')))}",
        title_justify="left",
    )
    for heading in ("columns", "technique", "guarantee", "cells changed"):
        table.add_column(heading)
    for report in masked.reports:
        changed = ", ".join(percent(cost.changed) for cost in report.costs.values()) or "-"
        table.add_row(Text(", ".join(report.columns) or "-"), report.technique, report.guarantee, changed)
    out.print(table)


def show_ledger(entries: Sequence[Entry]) -> None:
    """Print releases and withdrawals, a line each."""
    table = Table()
    for heading in ("#", "time", "dataset", "version", "action", "why"):
        table.add_column(heading)
    for entry in entries:
        table.add_row(
            str(entry.sequence), entry.time, entry.dataset, entry.version, entry.action, Text(entry.why or "")
        )
    out.print(table)


def show_difference(first: str, second: str, changes: Sequence[Change]) -> None:
    """Print the changes between two releases, a line each."""
    if not changes:
        out.print(f"{first} and {second} tell the same of themselves", highlight=False)
        return
    table = Table(title=f"{first} and {second}", title_justify="left")
    for heading in ("part", "what", first, second):
        table.add_column(heading, overflow="fold")
    for change in changes:
        table.add_row(Text(change.part), Text(change.what), Text(_plain(change.before)), Text(_plain(change.after)))
    out.print(table)


def _plain(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
