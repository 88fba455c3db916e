"""The report as Markdown, for a pull request or a wiki: the words and tables of the page, without its pictures.

Written for GitHub's dialect (https://github.github.com/gfm/). Texts of users are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from anon_pipeline.report.release_report import Page, describe
from anon_pipeline.visible import visible

#: Characters with a meaning in Markdown or HTML at any position.
SPECIAL = re.compile(r"([\\`*_\[\]<>|~#&$])")
#: The start of a text that would begin a list.
LIST = re.compile(r"^(?:([-+])|(\d+)([.)]))(?=\s|-|$)")

NOTHING = "\u2013"


def render(content: Mapping[str, Any], withdrawn: str = "") -> str:
    """The report of a release as Markdown, ending in a newline.

    Parameters
    ----------
    content : the manifest
    withdrawn : as for `release_report.render`
    """
    page = describe(content, withdrawn)
    parts = [_verdict(page), _risk(page), _cost(page), _columns(page), _sizes(page), _masking(page), _attacker(page)]
    return "\n\n".join(block for part in [*parts, _verify(page), _checks(page), _origin(page)] for block in part) + "\n"


def text(words: str) -> str:
    """A text in one line that Markdown shows unchanged."""
    plain = " ".join(visible(words).split())
    escaped = SPECIAL.sub(r"\\\1", plain)
    return LIST.sub(lambda match: f"\\{match[1]}" if match[1] else f"{match[2]}\\{match[3]}", escaped)


def code(words: str) -> str:
    """The text as code; its fence is longer than any run of backticks inside."""
    plain = " ".join(visible(words).split())
    if not plain:
        return ""
    longest = max((len(run) for run in re.findall("`+", plain)), default=0)
    padding = " " if plain[0] == "`" or plain[-1] == "`" else ""
    return f"{'`' * (longest + 1)}{padding}{plain}{padding}{'`' * (longest + 1)}"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], numbers_from: int) -> str:
    """A table whose columns from the given one on are numbers; the cells are Markdown already."""
    ruler = ["---" if place < numbers_from else "--:" for place in range(len(headings))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [headings, ruler, *rows])


def items(sentences: Iterable[str]) -> str:
    """A list; the sentences are Markdown already."""
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _verdict(page: Page) -> list[str]:
    blocks = [f"# {text(page.dataset)}: release report"]
    blocks += [text(page.description)] if page.description else []
    blocks.append(f"Release {code(page.version)}{f', {text(page.created)}' if page.created else ''}")
    blocks.append(f"## {'✅' if page.released else '❌'} {page.verdict}")
    blocks += [f"**{text(page.withdrawn)}**"] if page.withdrawn else []
    blocks += [text(page.lead)] if page.lead else []
    blocks += [items(f"{text(name)}: {text(value)}" for name, value in page.stated)] if page.stated else []
    if page.broken:
        blocks += ["What does not hold:", items(map(text, page.broken))]
    if page.figures:
        rows = [
            [text(figure.what), text(figure.before) or NOTHING, f"**{text(figure.value)}**"] for figure in page.figures
        ]
        blocks.append(table(["", "Before", "After"], rows, 1))
    blocks.append("### What was promised, and what was measured")
    promises = [
        f"**{text(promise.demand)}**: {'holds' if promise.holds else '**does not hold**'}, {text(promise.measured)} "
        f"({text(promise.name)}). {text(promise.meaning)}".rstrip()
        for promise in page.promises
    ]
    blocks.append(items(promises) if promises else "Nothing on record.")
    if page.cautions:
        blocks += ["### What to weigh before passing it on", items(map(text, page.cautions))]
    return [*blocks, *_changes(page)]


def _changes(page: Page) -> list[str]:
    if page.changes is None or not page.changes.first:
        return []
    rows = [[text(change.what), text(change.before), text(change.after)] for change in page.changes.first]
    headings = ["What", text(page.changes.previous), "This release"]
    return ["### What changed since the release before this one", table(headings, rows, 1)]


def _risk(page: Page) -> list[str]:
    if not page.risks:
        return []
    rows = [[_termed(risk.name, risk.term), text(risk.before), text(risk.after)] for risk in page.risks]
    of_source = f"Figures of before are counted in the source, so they are {page.blurred}: a single person seldom shows"
    said = " ".join(filter(None, [f"{of_source} in them.", page.coarsened]))
    return ["## Risk of being found", text(said), table(["Risk", "Before", "After"], rows, 1)]


def _cost(page: Page) -> list[str]:
    if not page.scores and not page.loss_mean and not page.associations:
        return []
    blocks = ["## What it cost"]
    if page.scores:
        rows = [
            [_termed(score.name, score.meaning), *map(_estimate, (score.before, score.after, score.difference))]
            for score in page.scores
        ]
        blocks += [text(page.utility_intro), table(["Score", "Before", "After", "Difference"], rows, 1)]
    if page.models:
        rows = [
            [text(name), *map(_estimate, (score.before, score.after, score.difference))] for name, score in page.models
        ]
        headings = ["Model", "Before", "After", "Difference"]
        blocks += [f"### The same with other models: {text(page.models[0][1].name)}", table(headings, rows, 1)]
    if page.group_sentences:
        introduction, *losses = map(text, page.group_sentences)
        blocks += ["### For whom it works", introduction, *([items(losses)] if losses else [])]
    if page.calibration:
        blocks += ["### Whether its answers can be taken at their word", text(" ".join(page.calibration))]
    if page.associations:
        introduction, *changes = map(text, page.associations)
        blocks += ["### How columns hang together", introduction, *([items(changes)] if changes else [])]
    if page.loss_mean:
        blocks.append(f"Mean share of the columns' variation that is hidden inside classes: {text(page.loss_mean)}.")
    return blocks


def _columns(page: Page) -> list[str]:
    rows = [
        [
            code(column.name).replace("|", "\\|"),
            text(f"{column.role}, target" if column.is_target else column.role),
            " ".join(filter(None, [text(column.what), text(f"({column.why})") if column.why else ""])),
            text(column.lost) or NOTHING,
        ]
        for column in page.columns
    ]
    headings = ["Column", "Role", "What happened, and why it has its role", "Lost"]
    note = [text(page.lost_note)] if page.lost_note else []
    return ["## What happened to each column", table(headings, rows, 3), *note, *_examples(page)] if rows else []


def _examples(page: Page) -> list[str]:
    if page.examples is None:
        return []
    headings = ["Column", *(f"Class of {text(people)} people" for people in page.examples.people)]
    rows = [
        [code(name).replace("|", "\\|"), *map(text, texts)]
        for name, texts in page.examples.recoded + page.examples.kept
    ]
    return ["### What a reader of the release sees", table(headings, rows, len(headings))]


def _sizes(page: Page) -> list[str]:
    if not page.sizes:
        return []
    sizes = {name: text(number) for name, number in page.sizes.items()}
    return [
        "## How large the classes are",
        f"{sizes['classes']} {'class' if sizes['classes'] == '1' else 'classes'}. The smallest has "
        f"{sizes['smallest']} people, the middle one {sizes['median']}, the largest {sizes['largest']}; the mean is "
        f"{sizes['mean']}.",
    ]


def _masking(page: Page) -> list[str]:
    if page.masking is None:
        return []
    steps = [
        f"**{text(step.columns)}: {text(step.technique)}**. {text(' '.join([*step.costs, step.linked]))} "
        f"Guarantee: {text(step.guarantee)}."
        for step in page.masking.steps
    ]
    return ["## What was masked", *map(text, page.masking.intro), items(steps)]


def _attacker(page: Page) -> list[str]:
    blocks = ["## What an attacker could still learn"]
    if page.sensitive is not None:
        rows = [[_termed(name, term), *map(text, cells)] for name, term, cells in page.sensitive.measures]
        columns = [code(column).replace("|", "\\|") for column in page.sensitive.columns]
        blocks.append(table(["Measure", *columns], rows, 1))
    if page.attacks is not None:
        blocks += [text(page.attacks.skipped)] if page.attacks.skipped else []
        bounds = [
            f"{text(bound.sentence)} ({'holds' if bound.holds else '**fails**'})" for bound in page.attacks.bounds
        ]
        blocks += [items(bounds)] if bounds else []
        rows = [
            list(map(text, (row.name, row.verdict, row.attack, row.control, row.baseline, row.leak)))
            for row in page.attacks.rows
        ]
        headings = ["Attack", "Verdict", "People in it", "Others", "Blind guess", "Leak"]
        blocks += [table(headings, rows, 2)] if rows else []
    blocks += [text(" ".join(page.across))] if page.across else []
    uncovered = [f"{', '.join(page.kept)}: published as in the source."] * bool(page.kept)
    uncovered += [f"{', '.join(page.kept_masked)}: published as masking left it."] * bool(page.kept_masked)
    if not page.across:
        uncovered.append("Two releases about the same people, laid side by side, can tell more than either.")
    uncovered.append("What is true of a whole group stays true of its members, whether they are in the table or not.")
    return [*blocks, "Not covered by these figures:", items(map(text, uncovered))]


def _verify(page: Page) -> list[str]:
    steps = [f"{text(what)} {code(command)}" for command, what in page.commands]
    hashes = [f"{text(name)}: {code(value)}" for name, value in page.hashes]
    return ["## Verify and cite", items([*steps, f"To cite this release: {text(page.citation)}", *hashes])]


def _checks(page: Page) -> list[str]:
    rows = [
        [
            text(check.demand),
            f"**{text(check.state)}**" if check.holds_back else text(check.state),
            text(check.measured),
        ]
        for check in page.checks
    ]
    return ["## Checks", table(["Demand", "Result", "Measured"], rows, 2)] if rows else []


def _origin(page: Page) -> list[str]:
    rows = [f"{text(name)}: {text(value)}" for name, value in page.provenance]
    return ["## Where it came from", items(rows)] if rows else []


def _termed(name: str, term: str) -> str:
    return text(f"{name} ({term})" if term else name)


def _estimate(estimate: tuple[str, str]) -> str:
    value, interval = estimate
    return text(f"{value} ({interval})" if interval else value)
