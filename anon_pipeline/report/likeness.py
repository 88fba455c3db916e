"""The similarity of the released columns to the source, in words; `likeness_chart` has the pictures."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from anon_pipeline.report.charts import count, known, minus
from anon_pipeline.report.wording import blurred, listed, part

MEASURES = {
    "pearson": "correlation",
    "correlation_ratio": "correlation ratio",
    "spearman": "correlation of ranks",
    "rank_correlation_ratio": "correlation ratio of ranks",
    "cramers_v": "Cram\u00e9r's V",
}
#: Those that can be negative.
SIGNED = {"pearson", "spearman"}
#: The number of described pairs, and the smallest change that is described.
TOLD, LITTLE = 5, 0.02


def sentences(measured: Mapping[str, Any]) -> list[str]:
    """How the associations between columns have changed: the whole in a sentence, then the largest changes."""
    pairs = [pair for pair in part(measured, "associations").get("pairs") or [] if known(_change(pair))]
    if not pairs:
        return []
    changes = sorted(pairs, key=lambda pair: -abs(_change(pair) or 0))
    typical = median(abs(_change(pair) or 0) for pair in pairs)
    most = abs(_change(changes[0]) or 0)
    whole = (
        f"0 is no tie between two columns, 1 means that one settles the other. Of {count(len(pairs))} pairs the "
        f"typical one has changed by {strength(typical)}, the one that changed most by {strength(most)}"
        f"{_steps(part(measured, 'associations').get('step'), blurred(measured))}."
    )
    by_noise = part(measured, "associations").get("step") if measured.get("noise") else None
    told = [pair for pair in changes[:TOLD] if abs(_change(pair) or 0) >= LITTLE and not _is_noise(pair, by_noise)]
    return [whole, *map(_change_in_words, told)]


def _is_noise(pair: Mapping[str, Any], step: Any) -> bool:
    """Whether noise may have changed a tie: by a step, of the square where ties cannot be negative.

    Noise changes one pair of twenty by more.
    """
    before, after = (pair[when] if pair["measure"] in SIGNED else pair[when] ** 2 for when in ("before", "after"))
    return known(step) and bool(abs(after - before) < 1.5 * step)


def _steps(step: Any, how: str) -> str:
    if not known(step):
        return ""
    return f", {how} so that a single person seldom shows: correlations to steps of {step:g}, other ties by squares"


def strength(value: Any) -> str:
    """ "0.43", with a true minus sign."""
    return minus(f"{value:.2f}") if known(value) else "not defined"


def _change_in_words(pair: Mapping[str, Any]) -> str:
    before, after = pair["before"], pair["after"]
    verb = "weaker" if abs(after) < abs(before) else "stronger"
    numbers = f"{strength(before)} before, {strength(after)} after"
    return f"{listed(list(pair['columns']))}: {verb}, {numbers} ({MEASURES.get(pair['measure'], pair['measure'])})"


def _change(pair: Mapping[str, Any]) -> float | None:
    before, after = pair.get("before"), pair.get("after")
    return after - before if known(before) and known(after) else None
