"""The report of a synthetic release as Markdown, for a pull request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anon_pipeline.report.markdown import items, table, text
from anon_pipeline.report.synthetic_report import describe


def render(content: Mapping[str, Any], withdrawn: str = "") -> str:
    """The page in Markdown, without its picture and its tables of values.

    Parameters
    ----------
    content, withdrawn : as for `synthetic_report.render`
    """
    page = describe(content, withdrawn)
    parts = [f"# {text(page.dataset)} {page.version}", text(page.withdrawn), text(page.lead)]
    parts += [items(f"{text(name)}: {text(value)}" for name, value in page.stated)]
    parts += ["## What epsilon means", *map(text, page.meaning)]
    parts += ["## What was promised", items(f"{text(name)}: {text(value)}" for name, value in page.promises)]
    parts += ["## What to weigh", items(map(text, page.cautions))]
    header = ["counted together", "numbers", "error bar", "distance", "of it noise"]
    rows = [[text(cell) for cell in line] for line in page.counts]
    parts += ["## How near the rows come to the counts", table(header, rows, 1)]
    parts += ["## Checks", items(f"{text(demand)}: {state}" for demand, state in page.checks)]
    return "\n\n".join(part for part in parts if part) + "\n"
