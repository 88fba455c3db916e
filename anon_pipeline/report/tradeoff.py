"""The privacy-utility trade-off for a steward: a table, a picture, and the files with them. Measures nothing itself."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anon_pipeline.errors import InputError
from anon_pipeline.home import write_file
from anon_pipeline.learning.scores import Estimate
from anon_pipeline.learning.tradeoff import Measured, Settings, TradeOffPoint
from anon_pipeline.learning.utility import SMALLER_IS_BETTER
from anon_pipeline.plain_json import finite
from anon_pipeline.report.charts import Panel, count, minus, percent, trade_off_chart
from anon_pipeline.report.utility import SMALL_ERROR, small_error
from anon_pipeline.spec import K_PATH

CSV, PICTURE, MARKDOWN = "frontier.csv", "frontier.svg", "frontier.md"

#: The score whose loss the picture shows: the first of these that was measured.
HEADLINE_SCORES = ("roc_auc", "accuracy", "r2", "mae")
NONE = "-"


def label(settings: Settings) -> str:
    """ "k 10, t_closeness.t 0.2": a setting in as few words as possible."""
    return ", ".join(
        f"{'k' if path == K_PATH else path.removeprefix('privacy.')} {settings[path]}" for path in settings
    )


def table(points: Sequence[TradeOffPoint], brief: bool = False) -> tuple[list[str], list[list[str]]]:
    """Headings, and a row of texts per setting; the setting of the spec itself is marked by an asterisk.

    A `brief` table, for a terminal, shows accuracy only by the change of the first measured of `HEADLINE_SCORES`.
    """
    columns, scores = _sensitive(points), _shown_score(points) if brief else _scores(points)
    parts = ("difference",) if brief else ("before", "after", "difference")
    headings = ["setting", "classes", "smallest", "information lost", *(f"one value only: {name}" for name in columns)]
    headings += ["largest risk", "mean risk", "suppressed"]
    headings += [f"{score}: {part}" for score in scores for part in parts]
    rows = []
    for point in points:
        name = f"{label(point.settings)}{' *' if point.current else ''}"
        if point.measured is None:
            rows.append([name, "refused", *[NONE] * (len(headings) - 2)])
            continue
        measured = point.measured
        row = [name, count(measured.classes), count(measured.smallest_class), percent(measured.information_lost)]
        row += [percent(measured.homogeneity[column]) for column in columns]
        row += [percent(measured.largest_risk), percent(measured.mean_risk), percent(measured.suppressed)]
        for score in scores:
            comparison = None if point.utility is None else point.utility.metrics[score]
            cells = (
                [NONE] * 3
                if comparison is None
                else [
                    _mean(comparison.before, score),
                    _mean(comparison.after, score),
                    _change(comparison.difference, score),
                ]
            )
            row += cells[-len(parts) :]
        rows.append(row)
    return headings, rows


def notes(points: Sequence[TradeOffPoint]) -> list[str]:
    """A sentence per setting that was refused as a whole, or whose accuracy could not be measured."""
    reasons = [(point, "refused", point.refused) for point in points if point.refused is not None]
    reasons += [(point, "accuracy not measured", point.utility_refused) for point in points if point.utility_refused]
    return [f"{label(point.settings)}: {what}; {sentence}" for point, what, sentence in reasons]


def picture(points: Sequence[TradeOffPoint], dataset: str) -> str:
    """One row of bars per setting: information lost, accuracy lost, homogeneity, risk, suppression."""

    def shares(title: str, note: str, values: list[float | None]) -> Panel:
        return Panel(title, note, values, [percent(value) for value in values])

    def of(name: str) -> list[float | None]:
        return [None if point.measured is None else getattr(point.measured, name) for point in points]

    panels = [shares("information lost", "", of("information_lost"))]
    for score in _shown_score(points):
        lost = [_lost(point, score) for point in points]
        words = [NONE if value is None else _written(value, score) for value in lost]
        panels.append(Panel(f"{score} lost", "", lost, words))
    for column in _sensitive(points):
        homogeneous = [None if point.measured is None else point.measured.homogeneity[column] for point in points]
        panels.append(shares("one value only", column, homogeneous))
    panels += [shares("largest risk", "", of("largest_risk")), shares("suppressed", "", of("suppressed"))]
    names = [f"{label(point.settings)}{' (the spec)' if point.current else ''}" for point in points]
    refused = [point.refused for point in points]
    return trade_off_chart(names, panels, refused, f"{dataset}: what each setting costs and protects")


def markdown(points: Sequence[TradeOffPoint], dataset: str) -> str:
    """The table with its notes, as a page."""
    headings, rows = table(points)
    lines = [f"# {dataset}: the privacy-utility trade-off", "", markdown_table(headings, rows), ""]
    lines += ["An asterisk marks what the spec says.", ""] if any(point.current for point in points) else []
    lines += [f"- {_cell(note)}" for note in notes(points)]
    lines += [""] if notes(points) else []
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


def as_csv(points: Sequence[TradeOffPoint]) -> str:
    """One line per setting, every number with all digits; unknown values are empty."""
    columns, scores = _sensitive(points), _scores(points)
    paths = list(dict.fromkeys(path for point in points for path in point.settings))
    lines = []
    for point in points:
        line: dict[str, Any] = {path: point.settings.get(path) for path in paths}
        line |= {"current": point.current, "refused": point.refused}
        for name in Measured.__dataclass_fields__:
            if name == "homogeneity":
                homogeneity = point.measured.homogeneity if point.measured else {}
                line |= {f"homogeneity_{column}": homogeneity.get(column) for column in columns}
            else:
                line[name] = None if point.measured is None else getattr(point.measured, name)
        for score in scores:
            comparison = None if point.utility is None else point.utility.metrics[score]
            for when in ("before", "after", "difference"):
                estimate: Estimate | None = None if comparison is None else getattr(comparison, when)
                for end in ("mean", "low", "high"):
                    name = f"{score}_{when}" if end == "mean" else f"{score}_{when}_{end}"
                    line[name] = None if estimate is None else getattr(estimate, end)
        lines.append(line | {"utility_refused": point.utility_refused})
    written = io.StringIO()
    writer = csv.DictWriter(written, list(lines[0]) if lines else paths, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return written.getvalue()


def as_json(points: Sequence[TradeOffPoint]) -> list[dict[str, Any]]:
    """Plain data without numbers that JSON does not have."""
    return [finite(point.as_dict()) for point in points]


def write(points: Sequence[TradeOffPoint], dataset: str, folder: Path) -> list[Path]:
    """Write the three files into a folder; only its owner may read them.

    Raises
    ------
    InputError
        If the folder cannot be written.
    """
    contents = {CSV: as_csv(points), PICTURE: picture(points, dataset), MARKDOWN: markdown(points, dataset)}
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, content in contents.items():
            write_file(folder / name, content)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror}); name another folder with --out") from None
    return [folder / name for name in contents]


def _sensitive(points: Sequence[TradeOffPoint]) -> list[str]:
    return next((list(point.measured.homogeneity) for point in points if point.measured is not None), [])


def _scores(points: Sequence[TradeOffPoint]) -> list[str]:
    return next((list(point.utility.metrics) for point in points if point.utility is not None), [])


def _shown_score(points: Sequence[TradeOffPoint]) -> list[str]:
    """The score to show if there is room for one only; empty if accuracy was not measured."""
    return [score for score in HEADLINE_SCORES if score in _scores(points)][:1]


def _lost(point: TradeOffPoint, score: str) -> float | None:
    change = None if point.utility is None else point.utility.metrics[score].difference.mean
    return change if change is None or score in SMALLER_IS_BETTER else 0.0 - change


def _mean(estimate: Estimate, score: str) -> str:
    return NONE if estimate.mean is None else _written(estimate.mean, score)


def _change(estimate: Estimate, score: str) -> str:
    if estimate.mean is None:
        return NONE
    mean = _written(estimate.mean, score, "+")
    if estimate.low is None or estimate.high is None:
        return mean
    return f"{mean} ({_written(estimate.low, score, '+')} to {_written(estimate.high, score, '+')})"


def _written(value: float, score: str, sign: str = "") -> str:
    is_small = score in SMALLER_IS_BETTER and 0 < abs(value) < SMALL_ERROR
    return minus(small_error(value, sign) if is_small else f"{value:{sign}.4f}")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
