"""Pictures of the similarity of a release to its source: single columns, pairs of columns, and predictions of a model.

They follow the conventions of `charts`: horizontal positions in percent, text in pixels, colours of the page or fills.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from anon_pipeline.report.charts import AFTER, BEFORE, TEXT, TRACK, known, percent, rect, short, svg, text
from anon_pipeline.report.likeness import strength

#: The most columns in the picture of associations: those whose associations have changed most.
MOST_COLUMNS = 16


def legend(y: int) -> list[str]:
    """The legend: the colour of before, and that of after."""
    return [
        rect("before", BEFORE, "0", "12", y, 12),
        text("before", "18", y + 11),
        rect("after", AFTER, "96", "12", y, 12),
        text("after", "114", y + 11),
    ]


def marginal_chart(name: str, marginal: Mapping[str, Any]) -> str:
    """The shares of people with each value of a column in the release, as a bar per group."""
    rows = list(zip(marginal["groups"], _shares(marginal["after"]), strict=True))
    longest = max((share for _, share in rows), default=0) or 1
    head, pitch, left, reach = 26, 22, 33.0, 50.0
    body = [f'<g font-weight="600">{text(short(name, 40), "0", 13)}</g>']
    for number, (label, share) in enumerate(rows):
        y = head + number * pitch
        body.append(text(short(label, 15), "0", y + 13))
        if share:
            body.append(rect("after", AFTER, f"{left:g}%", f"{reach * share / longest:.2f}%", y + 3, 12))
        body.append(text(percent(share), "100%", y + 13, anchor="end"))
    described = [f"{label}: {percent(share)}" for label, share in rows]
    return svg(f"{name}, as released", described, head + len(rows) * pitch, body)


def comparison_chart(name: str, column: Mapping[str, Any]) -> str:
    """The shares of people in each group of a column, in source and release, as two bars per group."""
    shares = list(zip(column["groups"], _shares(column["before"]), _shares(column["after"]), strict=True))
    longest = max((share for _, *pair in shares for share in pair), default=0) or 1
    head, pitch, left, reach = 48, 34, 33.0, 50.0
    body = [f'<g font-weight="600">{text(short(name, 40), "0", 13)}</g>']
    body += legend(22)
    for number, (label, *pair) in enumerate(shares):
        y = head + number * pitch
        body.append(text(short(label, 15), "0", y + 20))
        for place, (kind, fill, share) in enumerate(zip(("before", "after"), (BEFORE, AFTER), pair, strict=True)):
            if share:
                body.append(rect(kind, fill, f"{left:g}%", f"{reach * share / longest:.2f}%", y + 3 + 13 * place, 11))
            body.append(text(percent(share), "100%", y + 13 + 13 * place, anchor="end"))
    described = [f"{label}: {percent(before)} before, {percent(after)} after" for label, before, after in shares]
    return svg(f"{name}, in the source and as released", described, head + len(shares) * pitch, body)


def association_chart(associations: Mapping[str, Any], title: str = "How columns hang together") -> str:
    """A square of all pairs: below the diagonal the source, above it the release; a fuller cell is more associated."""
    pairs = {frozenset(pair["columns"]): pair for pair in associations["pairs"]}
    names = _most_changed(list(associations["columns"]), pairs.values())
    head, pitch, left = 48, 24, 36.0
    width = (100 - left) / max(len(names), 1)
    body = legend(0)
    for row, name in enumerate(names):
        y = head + row * pitch
        body.append(text(f"{row + 1}  {short(name, 13)}", "0", y + 16))
        body.append(text(str(row + 1), f"{left + (row + 0.5) * width:.2f}%", head - 8, anchor="middle"))
        for column, other in enumerate(names):
            pair = pairs.get(frozenset((name, other)))
            value = None if pair is None else pair["before" if column < row else "after"]
            kind, fill = ("before", BEFORE) if column < row else ("after", AFTER)
            place = (f"{left + column * width:.2f}%", f"{width - 0.3:.2f}%", y, pitch - 2)
            if pair is None:  # a column with itself, or two that are published unchanged
                continue
            body.append(rect("track", TRACK, *place))
            if known(value) and abs(value) >= 0.005:
                body.append(f'<g fill-opacity="{min(abs(value), 1):.2f}">{rect(kind, fill, *place)}</g>')
    described = [
        f"{' and '.join(pair['columns'])}: {strength(pair['before'])} before, {strength(pair['after'])} after"
        for pair in pairs.values()
    ]
    return svg(title, described, head + len(names) * pitch, body)


def reliability_chart(calibration: Mapping[str, Any], title: str = "What the model says, and what is true") -> str:
    """Predicted values across, observed values upwards, in groups of people; on the diagonal, predictions are right."""
    curves = {when: (calibration[when]["predicted"], calibration[when]["observed"]) for when in ("before", "after")}
    values = [value for pair in curves.values() for axis in pair for value in axis]
    low, high = min(values), max(values)
    low, high = (0.0, 1.0) if low >= 0 and high <= 1 else (low, high)
    span = (high - low) or 1.0
    head, height, left, right = 30, 230, 12.0, 97.0
    bottom = head + height

    def across(value: float) -> str:
        return f"{left + (right - left) * (value - low) / span:.2f}%"

    def upwards(value: float) -> float:
        return round(bottom - height * (value - low) / span, 2)

    body = [*legend(0)]
    ends = [_number(low, high), _number(high, high)]
    for value, words, anchor in zip((low, high), ends, ("start", "end"), strict=True):
        body.append(text(words, across(value), bottom + 18, anchor=anchor))
        body.append(text(words, "0", int(upwards(value)) + 5))
    body.append(text("said", across((low + high) / 2), bottom + 18, anchor="middle"))
    body.append(text("true", "0", head + height // 2 + 5))
    body.append(_line("axis", TEXT, (across(low), across(high)), (upwards(low), upwards(high)), dashed=True))
    for kind, fill in (("before", BEFORE), ("after", AFTER)):
        points = [(across(predicted), upwards(true)) for predicted, true in zip(*curves[kind], strict=True)]
        body += [_line(kind, fill, (x, to_x), (y, to_y)) for (x, y), (to_x, to_y) in pairwise(points)]
        body += [f'<circle class="{kind}" fill="{fill}" cx="{x}" cy="{y}" r="4"/>' for x, y in points]
    described = [
        f"{when}: {_number(predicted, high)} said, {_number(true, high)} true"
        for when, pair in curves.items()
        for predicted, true in zip(*pair, strict=True)
    ]
    return svg(title, described, bottom + 26, body)


def _line(kind: str, stroke: str, x: tuple[str, str], y: tuple[float, float], dashed: bool = False) -> str:
    dashes = ' stroke-dasharray="4 4"' if dashed else ' stroke-width="2"'
    return f'<line class="{kind}" stroke="{stroke}"{dashes} x1="{x[0]}" x2="{x[1]}" y1="{y[0]}" y2="{y[1]}"/>'


def _number(value: float, high: float) -> str:
    return percent(value) if high <= 1 else f"{value:,.4g}"


def _shares(people: Sequence[int]) -> list[float]:
    everybody = sum(people)
    return [person / everybody if everybody else 0.0 for person in people]


def _most_changed(names: list[str], pairs: Any) -> list[str]:
    """The columns with the most changed associations, at most `MOST_COLUMNS`, in their original order."""
    changed = dict.fromkeys(names, 0.0)
    for pair in pairs:
        if known(pair["before"]) and known(pair["after"]):
            for name in pair["columns"]:
                changed[name] = max(changed.get(name, 0.0), abs(pair["after"] - pair["before"]))
    kept = sorted(names, key=lambda name: -changed[name])[:MOST_COLUMNS]
    return [name for name in names if name in kept]
