"""The knowledge that classes give an attacker, before and after: risks, and measures on sensitive columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anon_pipeline.report.charts import NOT_MEASURED, count, known, percent
from anon_pipeline.report.wording import in_order, listed, part, plain_name, value_text

#: What "before" leaves out, if columns were coarsened before people were counted.
COARSENED = (
    "People were counted with coarsened columns, as said above; by their exact values more of them may be alone before."
)
#: The measures of every sensitive column: words, the term, the format, and the meaning of an absent number.
MEASURES = {
    "homogeneity": ("People whose class has one single value", "homogeneity", percent, NOT_MEASURED),
    "homogeneous": ("People whose class has one single value", "homogeneity", percent, NOT_MEASURED),
    "best_guess": ("How often the best guess from the class is right", "mean over people", percent, NOT_MEASURED),
    "baseline": ("How often the best guess without the class is right", "baseline", percent, NOT_MEASURED),
    "alpha": ("Largest share of one value in a class", "\u03b1", percent, NOT_MEASURED),
    "distinct_l": ("Fewest different values in a class", "distinct l", count, NOT_MEASURED),
    "entropy_l": ("The same, counting rare values less", "entropy l", count, NOT_MEASURED),
    "recursive_c": ("Most common value against all others", "recursive c, for l = 2", count, "no limit"),
    "t": ("Largest distance of a class from the table", "t", count, NOT_MEASURED),
    "beta": ("Largest relative gain of a value", "\u03b2", count, NOT_MEASURED),
    "delta": ("Largest logarithmic change of a share", "\u03b4", count, "no limit"),
}


@dataclass(frozen=True)
class Risk:
    """One risk, before and after."""

    name: str
    term: str
    before: str
    after: str


@dataclass(frozen=True)
class Sensitive:
    """The measures on sensitive columns in classes."""

    columns: list[str]
    measures: list[tuple[str, str, list[str]]]  # words, term, one text per column
    homogeneity: str  # the number of people whose class has one single value, in words
    unprotected: list[str]  # sensitive columns without a demand
    shares: dict[str, Any]  # shares of people whose class has one single value, by column


def risks(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Risk]:
    """The table of risks; a number without a title here is shown under its key."""
    first, then = _leaves(before), _leaves(after)
    rows = []
    for path in dict.fromkeys([*first, *then]):
        if path[0] in ("records", "classes", "records_by_class_size"):
            continue
        if path[0] == "population_uniqueness" and path[-1] != "share":
            continue  # the method of each estimate is in the manifest
        if path[0] == "journalist" and first.get(path) is None and then.get(path) is None:
            continue  # only if a population is known
        if path == ("marketer",) and all(side.get(path) == side.get(("prosecutor", "mean")) for side in (first, then)):
            continue  # without a population the two are the same
        name, term, write = _risk_words(path)
        rows.append(Risk(name, term, write(first.get(path)), write(then.get(path))))
    return rows


def sensitive(measures: Mapping[str, Any], spec: Mapping[str, Any]) -> Sensitive | None:
    """The measures of every sensitive column side by side; None if nothing was measured."""
    if not measures:
        return None
    columns = list(in_order(measures, part(spec, "columns")))
    names = [name for name in MEASURES if any(name in part(measures, column) for column in columns)]
    others = dict.fromkeys(name for column in columns for name in part(measures, column) if name not in MEASURES)
    rows = []
    for name in [*names, *others]:
        name_of, term, write, absent = MEASURES.get(name, (plain_name(name).capitalize(), "", value_text, NOT_MEASURED))
        texts = []
        for column in columns:
            given = part(measures, column)
            # A measure that exists without a number is infinite; JSON has no infinity.
            endless = name in given and (given[name] is None or given[name] == float("inf"))
            texts.append(absent if endless else write(given.get(name)))
        rows.append((name_of, term, texts))
    shares = {
        column: part(measures, column).get("homogeneity", part(measures, column).get("homogeneous"))
        for column in columns
    }
    protected = {demand.get("column") for demand in spec.get("privacy") or []}
    return Sensitive(
        columns=columns,
        measures=rows,
        homogeneity=listed(
            [
                f"{column} for {percent(share)} of the people"
                for column, share in shares.items()
                if known(share) and share
            ]
        ),
        unprotected=[column for column in columns if column not in protected],
        shares=shares,
    )


def records(risk: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """People by the size of their class: (sizes, people before, people after); empty if a side is not known."""
    before, after = (part(risk, when, "records_by_class_size") for when in ("before", "after"))
    if not before or not after:
        return []
    labels = dict.fromkeys([*before, *after])
    return [(label, before.get(label), after.get(label)) for label in labels if before.get(label) or after.get(label)]


def _risk_words(path: tuple[str, ...]) -> tuple[str, str, Any]:
    fixed = {
        ("unique_records",): ("People alone in their class", "unique records", count),
        ("prosecutor", "max"): (
            "Chance to pick the right row, for the person easiest to find",
            "prosecutor, max",
            percent,
        ),
        ("prosecutor", "mean"): ("The same, for the average person", "prosecutor, mean", percent),
        ("journalist", "max"): (
            "The same without knowing who is in the table, at worst",
            "journalist, max",
            percent,
        ),
        ("journalist", "mean"): (
            "The same without knowing who is in the table, on average",
            "journalist, mean",
            percent,
        ),
        ("weighted", "max"): (
            "Chance to pick the right person of the population that the weights stand for, at most",
            "individual risk, max",
            percent,
        ),
        ("weighted", "mean"): ("The same, for the average person, at most", "individual risk, mean", percent),
        ("weighted", "population"): ("People whom the weights stand for, at least", "sum of weights", count),
        ("weighted", "smallest_class"): (
            "Of those, people who look alike, at least",
            "smallest sum of weights",
            count,
        ),
        ("marketer",): ("Rows matched rightly when all are matched at once", "marketer", percent),
    }
    if path in fixed:
        return fixed[path]
    if path[:2] == ("prosecutor", "share_above") and len(path) == 3:
        return f"People whose chance to be picked is above {_threshold(path[2])}", "prosecutor", percent
    if path[0] == "population_uniqueness" and len(path) == 3:
        return "People unique in the whole population (estimate)", path[1], percent
    return plain_name(" ".join(path)).capitalize(), "", value_text


def _threshold(text: str) -> str:
    try:
        return percent(float(text))
    except ValueError:
        return text


def _leaves(tree: Mapping[str, Any], path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    leaves: dict[tuple[str, ...], Any] = {}
    for name, value in tree.items():
        here = (*path, str(name))
        leaves.update(_leaves(value, here) if isinstance(value, Mapping) else {here: value})
    return leaves
