"""The price list as a steward reads it: a table, a picture, and the files that hold them. Measures nothing itself."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anon_pipeline.errors import InputError
from anon_pipeline.home import write_file
from anon_pipeline.learning.scores import Estimate
from anon_pipeline.learning.tradeoff import Measured, Price, Settings
from anon_pipeline.learning.utility import SMALLER_IS_BETTER
from anon_pipeline.plain_json import finite
from anon_pipeline.report.charts import Panel, count, minus, percent, price_list_chart
from anon_pipeline.spec import K_PATH

CSV, PICTURE, MARKDOWN = "frontier.csv", "frontier.svg", "frontier.md"

#: The score whose loss the picture shows: the first of these that was measured.
SHOWN_SCORES = ("roc_auc", "accuracy", "r2", "mae")
NONE = "-"


def label(settings: Settings) -> str:
    """ "k 10, t_closeness.t 0.2": what was set, as short as it can be said."""
    return ", ".join(
        f"{'k' if path == K_PATH else path.removeprefix('privacy.')} {settings[path]}" for path in settings
    )


def table(prices: Sequence[Price], brief: bool = False) -> tuple[list[str], list[list[str]]]:
    """Headings, and a row of texts per setting; what the spec says itself is marked by an asterisk.

    A `brief` one, for a terminal, has of accuracy the change of the first score of `SHOWN_SCORES` only.
    """
    columns, scores = _sensitive(prices), _shown_score(prices) if brief else _scores(prices)
    parts = ("difference",) if brief else ("before", "after", "difference")
    headings = ["setting", "classes", "smallest", "information lost", *(f"one value only: {name}" for name in columns)]
    headings += ["largest risk", "mean risk", "suppressed"]
    headings += [f"{score}: {part}" for score in scores for part in parts]
    rows = []
    for price in prices:
        name = f"{label(price.settings)}{' *' if price.current else ''}"
        if price.measured is None:
            rows.append([name, "refused", *[NONE] * (len(headings) - 2)])
            continue
        one = price.measured
        row = [name, count(one.classes), count(one.smallest_class), percent(one.information_lost)]
        row += [percent(one.homogeneity[column]) for column in columns]
        row += [percent(one.largest_risk), percent(one.mean_risk), percent(one.suppressed)]
        for score in scores:
            found = None if price.utility is None else price.utility.metrics[score]
            told = [NONE] * 3 if found is None else [_told(found.before), _told(found.after), _change(found.difference)]
            row += told[-len(parts) :]
        rows.append(row)
    return headings, rows


def notes(prices: Sequence[Price]) -> list[str]:
    """A sentence per setting that was refused, in whole or in the measurement of accuracy."""
    found = [(price, "refused", price.refused) for price in prices if price.refused is not None]
    found += [(price, "accuracy not measured", price.utility_refused) for price in prices if price.utility_refused]
    return [f"{label(price.settings)}: {what}; {sentence}" for price, what, sentence in found]


def picture(prices: Sequence[Price], dataset: str) -> str:
    """One row of bars per setting: information lost, accuracy lost, homogeneity, risk, suppression."""

    def shares(title: str, note: str, values: list[float | None]) -> Panel:
        return Panel(title, note, values, [percent(value) for value in values])

    def of(name: str) -> list[float | None]:
        return [None if price.measured is None else getattr(price.measured, name) for price in prices]

    panels = [shares("information lost", "", of("information_lost"))]
    for score in _shown_score(prices):
        lost = [_lost(price, score) for price in prices]
        words = [NONE if value is None else minus(f"{value:.4f}") for value in lost]
        panels.append(Panel(f"{score} lost", "", lost, words))
    for column in _sensitive(prices):
        told = [None if price.measured is None else price.measured.homogeneity[column] for price in prices]
        panels.append(shares("one value only", column, told))
    panels += [shares("largest risk", "", of("largest_risk")), shares("suppressed", "", of("suppressed"))]
    names = [f"{label(price.settings)}{' (the spec)' if price.current else ''}" for price in prices]
    refused = [price.refused for price in prices]
    return price_list_chart(names, panels, refused, f"{dataset}: what each setting costs and protects")


def markdown(prices: Sequence[Price], dataset: str) -> str:
    """The table with its notes, as a page."""
    headings, rows = table(prices)
    lines = [f"# {dataset}: the price list", "", markdown_table(headings, rows), ""]
    lines += ["An asterisk marks what the spec says.", ""] if any(price.current for price in prices) else []
    lines += [f"- {_cell(note)}" for note in notes(prices)]
    lines += [""] if notes(prices) else []
    lines += [
        "Information lost: share of the quasi-identifiers' variance within classes, mean over them. One value only: "
        "share of the people in classes where everybody has the same value of that column, who give it away. Risk: "
        "the chance of picking out a person known to be in the table. Scores: of the same kind of model, trained on "
        "the raw and on the anonymized training part and scored on the same raw rows; differences with their 95 % "
        "interval over the folds. Nobody has checked a release with these settings: to have one, put the setting into "
        "the spec and run it.",
        "",
        f"![what each setting costs and protects]({PICTURE})",
        "",
    ]
    return "\n".join(lines)


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that a cell's text cannot break."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def as_csv(prices: Sequence[Price]) -> str:
    """One line per setting, every number in full; what is not known is empty."""
    columns, scores = _sensitive(prices), _scores(prices)
    paths = list(dict.fromkeys(path for price in prices for path in price.settings))
    lines = []
    for price in prices:
        line: dict[str, Any] = {path: price.settings.get(path) for path in paths}
        line |= {"current": price.current, "refused": price.refused}
        for name in Measured.__dataclass_fields__:
            if name == "homogeneity":
                told = price.measured.homogeneity if price.measured else {}
                line |= {f"homogeneity_{column}": told.get(column) for column in columns}
            else:
                line[name] = None if price.measured is None else getattr(price.measured, name)
        for score in scores:
            found = None if price.utility is None else price.utility.metrics[score]
            for when in ("before", "after", "difference"):
                estimate: Estimate | None = None if found is None else getattr(found, when)
                for end in ("mean", "low", "high"):
                    name = f"{score}_{when}" if end == "mean" else f"{score}_{when}_{end}"
                    line[name] = None if estimate is None else getattr(estimate, end)
        lines.append(line | {"utility_refused": price.utility_refused})
    written = io.StringIO()
    writer = csv.DictWriter(written, list(lines[0]) if lines else paths, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return written.getvalue()


def as_json(prices: Sequence[Price]) -> list[dict[str, Any]]:
    """Plain data without numbers that JSON lacks."""
    return [finite(price.as_dict()) for price in prices]


def write(prices: Sequence[Price], dataset: str, folder: Path) -> list[Path]:
    """Write the three files into a folder; only its owner may read them.

    Raises
    ------
    InputError
        Where the folder cannot be written.
    """
    contents = {CSV: as_csv(prices), PICTURE: picture(prices, dataset), MARKDOWN: markdown(prices, dataset)}
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, content in contents.items():
            write_file(folder / name, content)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror}); name another folder with --out") from None
    return [folder / name for name in contents]


def _sensitive(prices: Sequence[Price]) -> list[str]:
    return next((list(price.measured.homogeneity) for price in prices if price.measured is not None), [])


def _scores(prices: Sequence[Price]) -> list[str]:
    return next((list(price.utility.metrics) for price in prices if price.utility is not None), [])


def _shown_score(prices: Sequence[Price]) -> list[str]:
    """The score to show where there is room for one; none where accuracy was not measured."""
    return [score for score in SHOWN_SCORES if score in _scores(prices)][:1]


def _lost(price: Price, score: str) -> float | None:
    change = None if price.utility is None else price.utility.metrics[score].difference.mean
    return change if change is None or score in SMALLER_IS_BETTER else 0.0 - change


def _told(estimate: Estimate) -> str:
    return NONE if estimate.mean is None else minus(f"{estimate.mean:.4f}")


def _change(estimate: Estimate) -> str:
    if estimate.mean is None:
        return NONE
    if estimate.low is None or estimate.high is None:
        return minus(f"{estimate.mean:+.4f}")
    return f"{minus(f'{estimate.mean:+.4f}')} ({minus(f'{estimate.low:+.4f}')} to {minus(f'{estimate.high:+.4f}')})"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
