"""The release as a dataset card: README.md with the front matter of the Hugging Face Hub
(https://huggingface.co/docs/hub/datasets-cards): its processing, advice for training, and the licence."""

from __future__ import annotations

from typing import Any

import yaml

from anon_pipeline.release.descriptors.described import Described
from anon_pipeline.report import release_report, synthetic_report
from anon_pipeline.report.markdown import code, items, table, text
from anon_pipeline.report.release_report import Page
from anon_pipeline.report.wording import part

#: The Hub's names for sizes of tables: the number that the rows are below, and the name.
SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
    (100_000_000, "10M<n<100M"),
    (1_000_000_000, "100M<n<1B"),
)
TASKS = {"classification": "tabular-classification", "regression": "tabular-regression"}


def render(release: Described) -> str:
    """The card as Markdown; equal for equal manifests and tables. Texts of users are escaped."""
    front = yaml.safe_dump(front_matter(release), sort_keys=False, allow_unicode=True, width=120)
    synthetic = synthetic_report.is_synthetic(release.manifest)
    body = _of_synthetic_rows(release) if synthetic else _of_people(release)
    return f"---\n{front}---\n\n" + "\n\n".join(filter(None, body)) + "\n"


def front_matter(release: Described) -> dict[str, Any]:
    """The metadata for the Hub: licence, tags, size, and the file with the data (not the class table)."""
    licence, task = release.licence, part(release.manifest, "utility").get("task")
    rows = part(release.manifest, "rows")
    number = rows.get("released", rows.get("synthetic"))
    content: dict[str, Any] = {
        "pretty_name": release.dataset,
        "license": "unknown" if licence is None else licence.identifier.lower() or "other",
    }
    if licence is not None and not licence.identifier:
        content["license_name"] = licence.name
    content["tags"] = release.keywords
    if task in TASKS:
        content["task_categories"] = [TASKS[task]]
    if isinstance(number, int):
        content["size_categories"] = [next((name for most, name in SIZES if number < most), "n>1T")]
    content["configs"] = [
        {"config_name": file.title, "data_files": file.name, **({"default": True} if place == 0 else {})}
        for place, file in enumerate(release.tables)
    ]
    return content


def _of_people(release: Described) -> list[str]:
    page = release_report.describe(release.manifest)
    blocks = [f"# {text(release.dataset)}", text(page.description), text(page.lead), _stated(page.stated)]
    blocks += ["## What was done", items(_promises(page)), _columns(page)]
    blocks += ["## What to keep in mind when training", items(_advice(page)), _scores(page)]
    blocks += ["## What it does not protect against", items(map(text, page.cautions))] if page.cautions else []
    return [*blocks, *_licence(release), *_files(release)]


def _of_synthetic_rows(release: Described) -> list[str]:
    page = synthetic_report.describe(release.manifest)
    blocks = [f"# {text(release.dataset)}", text(page.description), text(page.lead), _stated(page.stated)]
    blocks += ["## What was done", items(f"{text(name)}: {text(value)}" for name, value in page.promises)]
    blocks += ["## What to keep in mind when training", items(map(text, page.cautions))]
    return [*blocks, *_licence(release), *_files(release)]


def _stated(stated: list[tuple[str, str]]) -> str:
    return items(f"{text(name)}: {text(value)}" for name, value in stated)


def _promises(page: Page) -> list[str]:
    return [f"{text(promise.demand)}: measured {text(promise.measured)}." for promise in page.promises]


def _columns(page: Page) -> str:
    rows = [
        [
            code(column.name).replace("|", "\\|"),
            text(f"{column.role}, target" if column.is_target else column.role),
            text(column.what),
            text(column.lost) or "\u2013",
        ]
        for column in page.columns
    ]
    return table(["Column", "Role", "What happened", "Lost"], rows, 3) if rows else ""


def _advice(page: Page) -> list[str]:
    """Advice for training a model, from the way in which the table was made."""
    if page.of_groups:
        return ["A row is a group of people, not a person: weigh it by the number of its people."]
    shown = ", ".join(map(code, page.quasi_identifiers))
    ungrouped, real = "never anonymized", "Real values"
    if page.masking:
        ungrouped, real = "masked in the same way, but not grouped", "Values"
    advice = [
        f"{shown} show what a class of people has in common, not a person's own value. Everybody in a class has the "
        "same values there, so differences within a class are gone.",
        "Do not split the rows at random to find out how well a model does on people: rows of one class stand on both "
        f"sides. Test on rows that were {ungrouped}, as the figures below were.",
        f"A model that learned from this table expects what it was shown. {real} of new people may be given to it; "
        "that is how it was tested.",
    ]
    if page.loss_mean:
        advice.append(f"Share of the variation of these columns that is hidden inside classes: {text(page.loss_mean)}.")
    return advice + list(map(text, page.group_sentences[1:]))


def _scores(page: Page) -> str:
    if not page.scores:
        return ""
    rows = [
        [text(score.name), *(text(f"{value} ({bounds})") for value, bounds in (score.before, score.after))]
        for score in page.scores
    ]
    return text(page.utility_intro) + "\n\n" + table(["Score", "Before", "After"], rows, 1)


def _licence(release: Described) -> list[str]:
    licence = release.licence
    if licence is None:
        return ["## Licence", "The policy states none. Ask whoever answers for this release before you use it."]
    return ["## Licence", f"[{text(licence.name)}]({licence.url})" if licence.url else text(licence.name)]


def _files(release: Described) -> list[str]:
    told = [f"{code(file.name)}: {', '.join(code(column.name) for column in file.columns)}" for file in release.tables]
    others = "`manifest.json` says what was demanded and measured, and has the hash of every file."
    return ["## Files", items(told), others, f"Version {code(release.version)}."]
