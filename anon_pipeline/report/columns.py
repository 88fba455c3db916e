"""The processing of each column, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anon_pipeline.report import masking as masking_report
from anon_pipeline.report.charts import NOT_MEASURED, count, known, lost, percent
from anon_pipeline.report.wording import listed, part, plain_name, words

#: Roles of columns that are in the release.
RELEASED = ("quasi_identifier", "sensitive", "insensitive")

#: The days of a year, and from how many years on spans of dates are told in years.
YEAR, LONG = 365.25, 2


@dataclass(frozen=True)
class ColumnSummary:
    """The processing of one column."""

    name: str
    role: str
    what: str
    why: str
    lost: str
    is_target: bool


def column_summaries(content: Mapping[str, Any]) -> list[ColumnSummary]:
    """Every column that the spec names, in its order."""
    spec = part(content, "spec")
    source = {column.get("name"): column for column in part(content, "source").get("columns") or []}
    loss = part(content, "measured", "information_loss")
    steps = part(loss, "steps")
    # A column in which hardly anybody differs from the others has no step, and nothing is told of it.
    of_column = {
        name: lost(share, steps.get(name, loss.get("step")))
        for name, share in part(loss, "columns").items()
        if name not in steps or known(steps[name])
    }
    statistics = part(content, "measured", "columns")
    masked = masking_report.by_column(content.get("masking"))
    protected = {demand.get("column") for demand in spec.get("privacy") or []}
    summaries = []
    for name, column in part(spec, "columns").items():
        column = part(column)
        role = words(column.get("role"))
        kind = words(column.get("type") or source.get(name, {}).get("type"))
        if role == "quasi_identifier":
            what = _generalized(kind, column, part(spec, "recode"), part(statistics, name))
        else:
            what = _kept_or_not(role, name in protected, name in masked)
        if name in masked and role in RELEASED:
            what = f"Masked: {masked[name]}. {what}"
        summaries.append(
            ColumnSummary(
                name=name,
                role=plain_name(role),
                what=what,
                why=words(column.get("why")),
                lost=of_column.get(name, NOT_MEASURED if role == "quasi_identifier" else ""),
                is_target=name == spec.get("target"),
            )
        )
    return summaries


def as_in_the_source(content: Mapping[str, Any], *roles: str) -> list[str]:
    """The columns with these roles whose values no step has changed."""
    masked = masking_report.by_column(content.get("masking"))
    return [name for name in _with_role(content, roles) if name not in masked]


def as_masked(content: Mapping[str, Any], *roles: str) -> list[str]:
    """The columns with these roles whose values masking changed, each with the technique: "name (encrypt)"."""
    masked = masking_report.by_column(content.get("masking"))
    return [f"{name} ({masked[name]})" for name in _with_role(content, roles) if name in masked]


def _with_role(content: Mapping[str, Any], roles: Sequence[str]) -> list[str]:
    declared = part(content, "spec", "columns")
    return [name for name, column in declared.items() if part(column).get("role") in roles]


def _generalized(kind: str, column: Mapping[str, Any], recode: Mapping[str, Any], statistics: Mapping[str, Any]) -> str:
    """ "1,204 ranges, typical width 3 years; each class shows its most common value." """
    labelled = recode.get("form") == "range" and bool(column.get("hierarchy"))
    if labelled:
        each = "each class shows its group of the hierarchy, and classes.parquet has the finer "
        each += "set of values" if kind == "categorical" else "interval"
    elif recode.get("form") == "range":
        how = "set of values" if kind == "categorical" else "interval" if kind else "range"
        each = f"each class shows its {how}"
    else:
        each = f"each class shows its {_representative(kind, column, recode) if kind else 'representative'}"
    if known(column.get("grid")):
        each += f", in steps of {_measure(column['grid'], words(statistics.get('unit')))}"
    text = "; ".join(filter(None, [_spread(kind, statistics), each]))
    sentences = [f"{text[:1].upper()}{text[1:]}.", *_hierarchy(column)]
    but = "" if kind == "categorical" else ", but for those who have none"
    if statistics.get("exact"):
        sentences.append(f"For {percent(statistics['exact'])} of the people the whole class has a single value{but}.")
    if labelled and statistics.get("unlabelled"):
        sentences.append(f"For {percent(statistics['unlabelled'])} of the people that group is everybody, *.")
    elif statistics.get("withheld"):
        sentences.append(f"For {percent(statistics['withheld'])} of the people no value is told.")
    return " ".join(sentences)


def _representative(kind: str, column: Mapping[str, Any], recode: Mapping[str, Any]) -> str:
    """What a class shows in place of its members' values; few people's own value is never named."""
    if kind == "categorical":
        return "middle value in the stated order" if column.get("levels") else "most common value"
    value = "date" if kind == "date" else "number"
    return f"{words(recode.get('numeric')) or 'median'}, or the nearest {value} that k people share"


def _hierarchy(column: Mapping[str, Any]) -> list[str]:
    """The stated hierarchy or order of the column's values, which gives the labels of classes."""
    sentences = []
    if column.get("levels"):
        sentences.append(f"Its order is stated: {', '.join(map(str, column['levels']))}.")
    if isinstance(column.get("hierarchy"), str):
        sentences.append(f"Classes are named by the {column['hierarchy']}.")
    stated = part(column, "hierarchy")
    if stated.get("file") is not None:
        sentences.append(f"Classes are named by the groups of {stated['file']}.")
    elif stated.get("prefix"):
        sentences.append(
            f"Classes are named by the first {listed([count(long) for long in stated['prefix']])} letters."
        )
    if stated.get("strict"):
        sentences.append("No class cuts through a group.")
    return sentences


def _spread(kind: str, statistics: Mapping[str, Any]) -> str:
    """The number of ranges or sets of values, and the width of a typical one; empty if not counted."""
    number, width = statistics.get("groups"), statistics.get("width")
    if not known(number) or not known(width):
        return ""
    if kind == "categorical":
        several = f"{count(number)} {'set' if number == 1 else 'sets'} of values"
        return f"{several}, typically {'of a single value' if width == 1 else f'{count(width)} values together'}"
    several = f"{count(number)} {'range' if number == 1 else 'ranges'}"
    unit = words(statistics.get("unit"))
    is_long = kind == "date" and unit == "days" and width >= LONG * YEAR
    return f"{several}, typical width {_years(width) if is_long else _measure(width, unit)}"


def _years(days: float) -> str:
    """ "about 29 years" for 10,590 days; below ten years with a decimal."""
    years = days / YEAR
    return f"about {count(round(years) if years >= 10 else round(years, 1))} years"


def _measure(number: float, unit: str) -> str:
    """ "3 years"; for one "1 year", since specs name units in the plural."""
    return f"{count(number)} {unit.removesuffix('s') if number == 1 else unit}".rstrip()


def _kept_or_not(role: str, is_protected: bool, is_masked: bool) -> str:
    kept = f"Published as {'masking left it' if is_masked else 'in the source'}"
    return {
        "sensitive": f"{kept}; {'a' if is_protected else 'no'} promise protects it.",
        "insensitive": f"{kept}.",
        "identifier": "Removed: it names a person.",
        "exclude": "Left out.",
    }.get(role, "")
