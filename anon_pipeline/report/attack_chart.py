"""The picture of an audit: a row from 0 to 100 % per attack, with its success, its control and the blind guess.

Pure functions from numbers to text, by the conventions of `charts`. The three marks differ in shape, not in colour
alone: a circle for people in the release, a square for people who are not, an upright line for the blind guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anon_pipeline.report import charts
from anon_pipeline.report.charts import AFTER, BEFORE, NOT_MEASURED, TEXT, TRACK, known, percent

#: Percent of the width that is free beside 0 and 100 %, so that no mark is cut off.
INSET = 1.5

HEAD, PITCH, HEADING, ROW = 54, 50, 34, 20  # pixels: above the rows, from row to row, of a group's heading, of a row
LETTERS = 48  # longest label; a phone does not wrap lines of a picture


@dataclass(frozen=True)
class Mark:
    """A share with its interval; low and high are None if it is known exactly."""

    share: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, rate: Mapping[str, Any] | None) -> Mark | None:
        """A mark from a rate in the form of `Finding.to_json`; None if nobody was attacked or it is no number."""
        if not rate or not known(rate.get("rate")):
            return None
        low, high = rate.get("low"), rate.get("high")
        return cls(rate["rate"], low, high) if known(low) and known(high) else cls(rate["rate"])

    @property
    def words(self) -> str:
        if self.low is None or self.high is None or self.low == self.high:
            return percent(self.share)
        return f"{percent(self.share)} ({percent(self.low)} to {percent(self.high)})"


@dataclass(frozen=True)
class ChartRow:
    """One attack.

    Attributes
    ----------
    label : what is attacked
    outcome : the result in a few words
    attack, control, baseline : success on people in the release, on others, and of a blind guess; None if not measured
    of : the people of whom the attack's share is
    """

    label: str
    outcome: str
    attack: Mark | None
    control: Mark | None = None
    baseline: Mark | None = None
    of: str = "of the people in it"


def audit_chart(groups: Mapping[str, Sequence[ChartRow]], title: str = "What attacks achieved") -> str:
    """The chart of all attacks, each under the heading of its group."""
    body = [*_legend(), *_scale(HEAD - 6)]
    described = []
    y = HEAD
    for heading, rows in groups.items():
        if not rows:
            continue
        body.append(charts.text(heading, "0", y + 20).replace("<text ", '<text font-weight="600" ', 1))
        y += HEADING
        for row in rows:
            body += _row(row, y)
            described.append(f"{heading}, {_described(row)}")
            y += PITCH
    return charts.svg(title, described, y, body)


def _row(row: ChartRow, y: int) -> list[str]:
    top = y + 18
    middle = top + ROW // 2
    body = [
        charts.text(charts.short(row.label, LETTERS), "0", y + 12),
        charts.text(row.outcome, "100%", y + 12, anchor="end"),
        charts.rect("track", TRACK, "0", "100%", top, ROW),
    ]
    if row.attack is None:
        return body
    if row.baseline is not None:
        body.append(_shifted(charts.rect("tick", TEXT, _at(row.baseline.share), "2", top, ROW), -1))
    if row.control is not None:
        body += _interval(row.control, "before", BEFORE, middle + 4)
        body.append(_shifted(charts.rect("before", BEFORE, _at(row.control.share), "8", middle + 1, 8), -4))
    body += _interval(row.attack, "after", AFTER, middle - 5)
    body.append(_circle("after", AFTER, _at(row.attack.share), middle - 4))
    return body


def _described(row: ChartRow) -> str:
    if row.attack is None:
        return f"{row.label}: {NOT_MEASURED}, {row.outcome}"
    parts = [f"{row.attack.words} {row.of}"]
    parts += [f"{row.control.words} of others"] if row.control is not None else []
    parts += [f"{percent(row.baseline.share)} by blind guess"] if row.baseline is not None else []
    return f"{row.label}: {', '.join(parts)}, {row.outcome}"


def _legend() -> list[str]:
    return [
        _shifted(_circle("after", AFTER, "0", 11), 5),
        _shifted(charts.text("people in it", "0", 15), 16),
        _shifted(charts.rect("before", BEFORE, "34%", "8", 7, 8), 0),
        _shifted(charts.text("people not in it", "34%", 15), 14),
        charts.rect("tick", TEXT, "72%", "2", 2, 18),
        _shifted(charts.text("blind guess", "72%", 15), 10),
    ]


def _scale(y: int) -> list[str]:
    """The labels at 0, 50 and 100 %."""
    return [
        charts.text("0\u00a0%", _at(0.0), y),
        charts.text("50\u00a0%", _at(0.5), y, anchor="middle"),
        charts.text("100\u00a0%", _at(1.0), y, anchor="end"),
    ]


def _interval(mark: Mark, kind: str, fill: str, y: int) -> list[str]:
    if mark.low is None or mark.high is None or mark.high <= mark.low:
        return []
    left, right = _place(mark.low), _place(mark.high)
    return [charts.rect(kind, fill, f"{left:.2f}%", f"{right - left:.2f}%", y, 2)]


def _circle(kind: str, fill: str, x: str, y: int) -> str:
    return f'<circle class="{kind}" fill="{fill}" cx="{x}" cy="{y}" r="5"/>'


def _shifted(element: str, pixels: int) -> str:
    """The element, moved to the right by some pixels, since positions are percentages."""
    head, space, rest = element.partition(" ")
    return f'{head} transform="translate({pixels} 0)"{space}{rest}' if pixels else element


def _place(share: float) -> float:
    return INSET + (100 - 2 * INSET) * min(max(share, 0.0), 1.0)


def _at(share: float) -> str:
    return f"{_place(share):.2f}%"
