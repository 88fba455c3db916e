"""Bar charts as inline SVG: pure functions from numbers to text, the same text for the same numbers.

A chart has two uses. Inside the report, the page sets the colours by classes (light, dark or paper). Alone, as a
`data:` picture, the literal fills apply; they are readable on white and on black. Horizontal positions are percentages
of the width, and sizes of text are pixels: on a phone the bars get shorter, but the text does not.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from anon_pipeline import errors

NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'
NOT_MEASURED = "not measured"
#: Steps of shares that are told, so that nobody takes a rounded share for an exact one.
COARSE = 0.01

#: Literal fills for a picture outside of a page, with contrasts on white and on black of 4.5 to 1 for text, 3 to 1 for
#: bars.
TEXT, AFTER, BEFORE, TRACK = "#767676", "#2e8576", "#8a929b", "#8a929b33"

WIDTH = 640  # pixels of a picture outside of a page
LABELS, BARS = 26.0, 40.0  # percent: the start of the bars, and the length of the longest
PANEL = 128  # pixels of a panel in a picture outside of a page
BAR_OF_PANEL = 0.8  # share of its panel that the longest bar takes
GAP = 1.6  # percent between a bar and its number


def class_size_chart(groups: Sequence[Mapping[str, Any]], title: str = "People by the size of their class") -> str:
    """The chart of how many people are in small and in large classes.

    Parameters
    ----------
    groups : `{"size": "10-19", "classes": 3, "people": 41}`, small classes first, from `manifest.class_sizes`
    """
    rows = _up_to_the_last([(size_label(str(group["size"])), group["people"], group["classes"]) for group in groups])
    everybody = sum(people for _, people, _ in rows)
    longest = max((people for _, people, _ in rows), default=0)
    pitch, thickness = 28, 16
    body = []
    for number, (label, people, _) in enumerate(rows):
        middle = number * pitch + pitch // 2
        share = f" · {percent(people / everybody)}" if people else ""
        body.append(text(label, "0", middle + 4))
        body.append(_bar(people, longest, middle - thickness // 2, thickness, "after", AFTER))
        body.append(text(f"{count(people)}{share}", _behind(people, longest), middle + 4))
    described = [
        f"classes of {label}: {count(people)} people in {counted(classes, 'class', 'classes')}"
        for label, people, classes in rows
    ]
    return svg(title, described, len(rows) * pitch, [_axis(0, len(rows) * pitch), *body])


def share_chart(shares: Mapping[str, float | None], title: str = "Share by column", step: Any = None) -> str:
    """Horizontal bars from 0 to 100 %, one per name; an unknown share has a note instead of a bar.

    `step` is what the shares are rounded to, where it is coarse enough to be told.
    """
    pitch, top, thickness = 44, 15, 8
    body = []
    for number, (label, share) in enumerate(shares.items()):
        y = number * pitch
        body.append(text(short(label, 34), "0", y + top))
        body.append(text(lost(share, step), "100%", y + top, anchor="end"))
        body.append(rect("track", TRACK, "0", "100%", y + top + 8, thickness))
        if known(share) and share:
            body.append(rect("after", AFTER, "0", f"{100 * min(max(share, 0.0), 1.0):.2f}%", y + top + 8, thickness))
    return svg(title, [f"{label}: {lost(share, step)}" for label, share in shares.items()], len(shares) * pitch, body)


def before_after_chart(
    labels: Sequence[str],
    before: Sequence[float | None],
    after: Sequence[float | None],
    title: str = "Before and after",
) -> str:
    """Two bars per label on one common scale, the upper before and the lower after; negative numbers have no bar."""
    rows = list(zip(labels, before, after, strict=True))
    longest = max((value for _, *pair in rows for value in pair if known(value)), default=0)
    head, pitch, thickness = 32, 44, 14
    body = [
        rect("before", BEFORE, f"{LABELS:g}%", "12", 4, 12),
        text("before", f"{LABELS + 5:g}%", 15),
        rect("after", AFTER, f"{LABELS + 25:g}%", "12", 4, 12),
        text("after", f"{LABELS + 30:g}%", 15),
    ]
    for number, (label, *pair) in enumerate(rows):
        middle = head + number * pitch + pitch // 2
        body.append(text(short(size_label(label), 14), "0", middle + 4))
        for value, kind, fill, y in zip(
            pair, ("before", "after"), (BEFORE, AFTER), (middle - 15, middle + 1), strict=True
        ):
            body.append(_bar(value, longest, y, thickness, kind, fill))
            body.append(text(count(value), _behind(value, longest), y + thickness - 3))
    described = [f"{size_label(label)}: {count(first)} before, {count(then)} after" for label, first, then in rows]
    height = head + len(rows) * pitch
    return svg(title, described, height, [_axis(head, height), *body])


@dataclass(frozen=True)
class Panel:
    """One measure of a privacy-utility trade-off.

    Attributes
    ----------
    title, note : the heading, in two lines
    values : one per setting; the largest has the longest bar, and values that are not above 0 have none
    words : the values as texts
    """

    title: str
    note: str
    values: Sequence[float | None]
    words: Sequence[str]


def trade_off_chart(
    labels: Sequence[str],
    panels: Sequence[Panel],
    refused: Sequence[str | None],
    title: str = "What each setting costs and protects",
) -> str:
    """Small multiples: one row per setting, one column of bars per measure, each column with its own scale.

    Parameters
    ----------
    labels : the settings
    refused : per setting, the sentence that replaces its bars, or None
    """
    column = 100 / max(len(panels), 1)
    width = max(WIDTH, PANEL * len(panels))
    letters = int(width / 7)  # that fit into a line
    head, pitch, thickness = 48, 56, 8
    body = []
    for number, panel in enumerate(panels):
        body.append(text(short(panel.title, int(letters / len(panels))), f"{number * column:.2f}%", 15))
        body.append(text(short(panel.note, int(letters / len(panels))), f"{number * column:.2f}%", 32))
    described = []
    for row, (label, refusal) in enumerate(zip(labels, refused, strict=True)):
        y = head + row * pitch
        body.append(_rule(y))
        body.append(text(short(label, letters), "0", y + 17))
        if refusal is not None:
            body.append(text(short(f"refused: {refusal}", letters), "0", y + 37))
            described.append(f"{label}: refused, {refusal}")
            continue
        for number, panel in enumerate(panels):
            value, left = panel.values[row], number * column
            longest = max((value for value in panel.values if known(value)), default=0)
            body.append(text(panel.words[row], f"{left:.2f}%", y + 35))
            if known(value) and value > 0:
                reach = BAR_OF_PANEL * column * value / longest
                body.append(rect("after", AFTER, f"{left:.2f}%", f"{reach:.2f}%", y + 41, thickness))
        words = ", ".join(f"{panel.title} {panel.note} {panel.words[row]}".replace("  ", " ") for panel in panels)
        described.append(f"{label}: {words}")
    return svg(title, described, head + len(labels) * pitch, body, width)


def inline(picture: str) -> str:
    """A chart as a part of an HTML page, without the declaration of the namespace."""
    return picture.replace(NAMESPACE, "", 1)


def known(value: object) -> TypeGuard[float]:
    """Whether this is a number."""
    return isinstance(value, int | float) and math.isfinite(value)


def percent(share: Any) -> str:
    """ "14.2 %"; a share close to 0 or 1 is never rounded to 0 or 100 %."""
    if not known(share):
        return NOT_MEASURED
    return f"{minus(errors.percent(share).removesuffix('%'))}\u00a0%"


def lost(share: Any, step: Any) -> str:
    """A share of the detail that is lost: what is rounded to nothing in coarse steps is at most half a step."""
    nothing = known(share) and share == 0 and known(step) and step >= COARSE
    return f"at most {percent(step / 2)}" if nothing else percent(share)


def in_steps(step: Any) -> str:
    """That a share is rounded to coarse steps; nothing where they are fine, or not stated."""
    return f", in steps of {percent(step)}" if known(step) and step >= COARSE else ""


def count(value: Any) -> str:
    """ "48,842"; fractions are shown with four digits, large ones with their whole part."""
    if not known(value):
        return NOT_MEASURED
    if float(value).is_integer() or abs(value) >= 1000:
        return minus(f"{value:,.0f}")
    return minus(f"{value:.4g}")


def counted(value: Any, singular: str, plural: str) -> str:
    """A number with its noun; the plural where it is not known.

    >>> counted(1, "class", "classes"), counted(1250, "class", "classes")
    ('1 class', '1,250 classes')
    """
    return f"{count(value)} {singular if value == 1 else plural}"


def minus(number: str) -> str:
    """A number with a true minus sign, and without one before zero."""
    return number.replace("-", "\u2212") if number.strip("-0.") else number.removeprefix("-")


def size_label(size: str) -> str:
    """ "10-19" and "500+" in words."""
    return re.sub(r"^(\d+)\+$", r"\1 or more", re.sub(r"^(\d+)-(\d+)$", "\\1\u2013\\2", size))


def _up_to_the_last(rows: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """The rows without the empty groups of the largest classes, which have no information."""
    last = max((number for number, (_, people, _) in enumerate(rows) if people), default=len(rows) - 1)
    return rows[: last + 1]


def _reach(value: Any, longest: float) -> float:
    """Width of a bar in percent of the picture."""
    return BARS * max(float(value), 0.0) / longest if known(value) and longest > 0 else 0.0


def _bar(value: Any, longest: float, y: int, thickness: int, kind: str, fill: str) -> str:
    reach = _reach(value, longest)
    return rect(kind, fill, f"{LABELS:g}%", f"{reach:.2f}%", y, thickness) if reach else ""


def _behind(value: Any, longest: float) -> str:
    return f"{LABELS + _reach(value, longest) + GAP:.2f}%"


def rect(kind: str, fill: str, x: str, width: str, y: int, height: int) -> str:
    """A bar: `kind` is its class inside a page, `fill` its colour outside of a page."""
    return f'<rect class="{kind}" fill="{fill}" x="{x}" y="{y}" width="{width}" height="{height}" rx="2"/>'


def text(words: str, x: str, y: int, anchor: str = "start") -> str:
    """A line of text; y is its baseline."""
    none = ' class="none"' if words in ("0", NOT_MEASURED) else ""
    return f'<text{none} fill="{TEXT}" x="{x}" y="{y}" text-anchor="{anchor}">{_escape(words)}</text>'


def _axis(top: int, bottom: int) -> str:
    return (
        f'<line class="axis" stroke="{TEXT}" stroke-opacity="0.5" '
        f'x1="{LABELS:g}%" x2="{LABELS:g}%" y1="{top}" y2="{bottom}"/>'
    )


def _rule(y: int) -> str:
    return f'<line class="axis" stroke="{TEXT}" stroke-opacity="0.5" x1="0" x2="100%" y1="{y}" y2="{y}"/>'


def svg(title: str, described: Iterable[str], height: int, body: Iterable[str], width: int = WIDTH) -> str:
    """The whole picture; `described` is its description in words, for people who cannot see it."""
    return (
        f'<svg{NAMESPACE} class="chart" role="img" width="{width}" height="{height}" '
        f'font-family="system-ui, sans-serif" font-size="13">'
        f"<title>{_escape(title)}</title><desc>{_escape('; '.join(described))}</desc>{''.join(body)}</svg>"
    )


def short(label: str, length: int) -> str:
    """A label of at most `length` letters."""
    return label if len(label) <= length else f"{label[: length - 1]}\u2026"


def _escape(words: str) -> str:
    """Text for XML; characters that are not allowed in XML become the replacement character."""
    return html.escape(re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", words))
