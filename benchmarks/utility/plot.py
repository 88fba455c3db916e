"""One picture per data set: score and information lost over k, a line per method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

COLOURS = ("#0b5cad", "#6ba3d6", "#123a63", "#b3541e", "#3f7d3a", "#8a5aa8", "#777777", "#b8960c")
WIDTH, HEIGHT, LEFT, TOP, GAP = 380, 260, 56, 34, 60


def picture(name: str, mean: dict[str, dict[str, dict[str, float]]], ks: Sequence[int]) -> str:
    """An SVG with two panels; the dashed line is the score of raw people."""
    methods = list(dict.fromkeys(method for k in ks for method in mean[str(k)]))
    raw = mean["raw"]["raw"]["mean"]
    panels = [
        _panel(0, "score", "mean", mean, ks, methods, raw),
        _panel(1, "information lost", "lost", mean, ks, methods, None),
    ]
    legend = []
    for number, method in enumerate(methods):
        x, y = LEFT + (number % 4) * 190, TOP + HEIGHT + 62 + 20 * (number // 4)
        legend.append(
            f'<line x1="{x}" x2="{x + 24}" y1="{y - 4}" y2="{y - 4}" stroke="{COLOURS[number]}" stroke-width="2.5"/>'
        )
        legend.append(f'<text x="{x + 30}" y="{y}">{escape(method)}</text>')
    width, height = 2 * (WIDTH + GAP) + 20, TOP + HEIGHT + 110
    title = f"{escape(name)}: score and information lost over k"
    font = 'font-family="sans-serif" font-size="13"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {font} role="img">'
        f'<title>{title}</title><rect width="{width}" height="{height}" fill="white"/>'
        f"{''.join(panels)}{''.join(legend)}</svg>\n"
    )


def _panel(
    place: int,
    heading: str,
    figure: str,
    mean: dict[str, dict[str, dict[str, float]]],
    ks: Sequence[int],
    methods: Sequence[str],
    dashed: float | None,
) -> str:
    values = {m: [mean[str(k)].get(m, {}).get(figure, math.nan) for k in ks] for m in methods}
    shown = [one for line in values.values() for one in line if not math.isnan(one)] + (
        [] if dashed is None else [dashed]
    )
    low, high = min(shown), max(shown)
    reach = (high - low) or 1.0
    x0 = LEFT + place * (WIDTH + GAP)

    def at(k: int, value: float) -> tuple[float, float]:
        across = (math.log(k) - math.log(ks[0])) / max(math.log(ks[-1]) - math.log(ks[0]), 1e-9)
        return x0 + across * WIDTH, TOP + HEIGHT - (value - low) / reach * HEIGHT

    parts = [f'<text x="{x0}" y="{TOP - 14}" font-weight="bold">{heading}</text>']
    parts.append(f'<path d="M{x0} {TOP}V{TOP + HEIGHT}H{x0 + WIDTH}" fill="none" stroke="#333"/>')
    for k in ks:
        parts.append(f'<text x="{at(k, low)[0]:.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{k}</text>')
    parts.append(f'<text x="{x0 + WIDTH / 2}" y="{TOP + HEIGHT + 36}" text-anchor="middle">k</text>')
    for share in (0.0, 0.5, 1.0):
        value = low + share * reach
        parts.append(f'<text x="{x0 - 6}" y="{at(ks[0], value)[1] + 4:.1f}" text-anchor="end">{value:.2f}</text>')
    if dashed is not None:
        y = at(ks[0], dashed)[1]
        parts.append(f'<path d="M{x0} {y:.1f}H{x0 + WIDTH}" stroke="#333" stroke-dasharray="4 4"/>')
    for number, method in enumerate(methods):
        points = [at(k, one) for k, one in zip(ks, values[method], strict=True) if not math.isnan(one)]
        drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{drawn}" fill="none" stroke="{COLOURS[number]}" stroke-width="2.5"/>')
    return "".join(parts)
