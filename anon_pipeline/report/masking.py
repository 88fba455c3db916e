"""The effects of the masking steps in words and numbers, for the report. Aggregates only.

The input is the plain data of the asset `masked_data`, as in the manifest (a `StepReport` per step);
`masking_report.html` arranges the words on the page. Absent parts are left out, and without steps the whole section.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anon_pipeline.masking.catalog import TECHNIQUES, Parameter, catalog
from anon_pipeline.masking.cost import SAMPLE
from anon_pipeline.masking.synthetic import NO_GUARANTEE
from anon_pipeline.report.charts import NOT_MEASURED, count, known, percent

#: The extent of a local guarantee.
OVER_RELEASES = (
    " in all releases under this key together, as long as the row and this step stay as they are; each change of "
    "either, and each other noisy column of the same person, adds its own epsilon"
)
#: Parameters that name columns, which are already in the heading of a step.
PLACES = {"columns"}
#: Parameters that are shares and are written as percentages.
SHARES = {"share", "inner_share", "retention"}
#: The technique that changes no values, but leaves people out.
PART_OF_THE_PEOPLE = "sample"


@dataclass(frozen=True)
class StepWords:
    """One step.

    Attributes
    ----------
    columns, technique, meaning : the columns and the technique of the step, and its effect
    parameters : each as "name: value (meaning)"
    guarantee : the guarantee of the step by itself
    costs : a sentence per column on its information loss
    linked : whether rows can be linked to their originals again; empty if not measured
    reported : facts that the technique reports, each as "name: value"
    notes : sentences that matter for a decision on the release
    """

    columns: str
    technique: str
    meaning: str
    parameters: list[str]
    guarantee: str
    costs: list[str]
    linked: str
    reported: list[str]
    notes: list[str]


@dataclass(frozen=True)
class MaskingWords:
    """All words of the report about masking: sentences on all steps together, then each step."""

    intro: list[str]
    steps: list[StepWords]


def in_words(masking: Any, rows: Any = None, left_out: bool = False) -> MaskingWords | None:
    """The masking of a release in words; None if there was none.

    Parameters
    ----------
    masking : `manifest["masking"]`
    rows : the number of people in the source, if known
    left_out : whether some people who were masked are not in the release
    """
    reports = _reports(masking)
    if not reports:
        return None
    return MaskingWords(_intro(reports, rows, left_out), [_step(report) for report in reports])


def by_column(masking: Any) -> dict[str, str]:
    """The techniques that changed or made each column, in their order, as "rank swap, bin".

    Parameters
    ----------
    masking : `manifest["masking"]`
    """
    techniques: dict[str, list[str]] = {}
    for report in _reports(masking):
        for name in _changed(report):
            techniques.setdefault(name, []).append(str(report.get("technique")).replace("_", " "))
    return {name: ", ".join(names) for name, names in techniques.items()}


def _changed(report: Mapping[str, Any]) -> list[str]:
    """The columns that a step changed or made; their costs are measured for some of them only."""
    if report.get("technique") == PART_OF_THE_PEOPLE:
        return []
    new_column = (report.get("parameters") or {}).get("into")  # replaces its input columns
    return list(dict.fromkeys([*([str(new_column)] if new_column else _named(report)), *(report.get("costs") or {})]))


def _named(report: Mapping[str, Any]) -> list[str]:
    """The columns that a step works on, without those that it only reads."""
    stated = (report.get("parameters") or {}).get("columns")
    return [str(name) for name in (report.get("columns") if stated is None else stated) or []]


def _reports(masking: Any) -> list[Mapping[str, Any]]:
    return [step for step in masking if isinstance(step, Mapping)] if isinstance(masking, Sequence) else []


def _intro(reports: Sequence[Mapping[str, Any]], rows: Any, left_out: bool) -> list[str]:
    number = len(reports)
    sentences = [
        f"Before anybody was grouped, {number} masking {'step' if number == 1 else 'steps'} changed the columns, in "
        "this order. Everywhere else in this report, \u201cbefore\u201d means after these steps and before the "
        "grouping, and the attacker is one who knows masked values.",
    ]
    if known(rows) and rows > SAMPLE:
        sentences.append(f"What a step cost was measured on {count(SAMPLE)} people chosen at random.")
    if left_out and any(report.get("costs") for report in reports):
        sentences.append(
            "What a step cost is counted among everybody who was masked, and so also among people who are not in the "
            "release: they were left out afterwards."
        )
    bare = [report for report in reports if report.get("guarantee") in (None, "none")]
    if bare:
        number_of = f"{count(len(bare))} of the {count(number)} promise nothing by themselves"
        if len(bare) == 1:
            number_of = f"{'It' if number == 1 else f'One of the {count(number)}'} promises nothing by itself"
        sentences.append(
            f"{number_of}: what is left is grouped where the spec says so, and judged and attacked with the "
            "whole release."
        )
    drawn = [_columns(report) for report in reports if report.get("technique") == "synthesize"]
    if drawn:
        sentences.append(f"Synthetic: {', '.join(drawn)}. This has {NO_GUARANTEE}.")
    return sentences


def _step(report: Mapping[str, Any]) -> StepWords:
    technique = str(report.get("technique"))
    row = next((row for row in catalog() if row.technique == technique), None)
    described = {parameter.name: parameter for parameter in row.parameters} if row is not None else {}
    stated = report.get("parameters") or {}
    costs = report.get("costs") or {}
    return StepWords(
        columns=_columns(report),
        technique=technique.replace("_", " "),
        meaning=_sentence(row.meaning) if row is not None else "",
        parameters=[
            f"{name.replace('_', ' ')}: {_parameter(name, value)}{_meaning(name, described)}"
            for name, value in stated.items()
            if name not in PLACES and value is not None and value not in ([], {})
        ],
        guarantee=_guarantee(report),
        costs=[_cost(name, cost, len(costs) > 1) for name, cost in costs.items()],
        linked=_linked(report.get("linkage")),
        reported=[
            f"{name.replace('_', ' ')}: {_value(value)}"
            for name, value in (report.get("facts") or {}).items()
            if name not in stated
        ],
        notes=[f"{_sentence(str(note))}." for note in report.get("notes") or []],
    )


def _columns(report: Mapping[str, Any]) -> str:
    names = _named(report)
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]])) if names else "the whole table"


def _guarantee(report: Mapping[str, Any]) -> str:
    facts, stated = report.get("facts") or {}, report.get("parameters") or {}
    if report.get("guarantee") == "k":
        k = stated.get("k", stated.get("threshold"))
        people = f"at least {count(k)} people" if known(k) else "k people"
        if report.get("technique") == "microaggregate" or "by" in stated:  # who lacks a value is shown without one
            return f"{people} share each value that it leaves; who has none is not counted"
        return f"{people} share what it leaves"
    if report.get("guarantee") == "local DP":
        if known(facts.get("epsilon")):
            return f"local differential privacy with epsilon {_value(facts['epsilon'])} per value{OVER_RELEASES}"
        if known(facts.get("epsilon_per_metre")):
            epsilon = _value(facts["epsilon_per_metre"])
            return f"geo-indistinguishability with epsilon {epsilon} per metre{OVER_RELEASES}"
        return f"local differential privacy{OVER_RELEASES}"
    technique = TECHNIQUES.get(str(report.get("technique")))
    if technique is not None and technique.guarantee != "none":
        return "none as it was used here"
    return "none by itself"


def _cost(name: str, cost: Mapping[str, Any], named: bool) -> str:
    """ "81 % of the cells changed; the distribution moved by 0.017 (earth mover's distance between ranks); ..."."""
    changed = cost.get("changed")
    sentences = [f"{percent(changed)} of the cells changed" if known(changed) else f"cells changed: {NOT_MEASURED}"]
    if known(cost.get("distance")):
        sentences.append(f"the distribution moved by {_value(float(cost['distance']))} ({cost.get('measure')})")
    else:
        sentences.append("no distance between the distributions, since the values are of another kind now")
    if known(cost.get("correlation")):
        sentences.append(f"correlations with other columns changed by at most {_value(float(cost['correlation']))}")
    return f"{name + ': ' if named else ''}{'; '.join(sentences)}."


def _linked(linkage: Any) -> str:
    if not isinstance(linkage, Mapping) or not known(linkage.get("rate")):
        return ""
    return (
        f"{percent(linkage['rate'])} of the rows can be linked to their original again by this alone "
        f"({count(linkage['rows'])} looked for among {count(linkage['pool'])})."
    )


def _meaning(name: str, described: Mapping[str, Parameter]) -> str:
    meaning = described[name].meaning if name in described else ""
    meaning = meaning.partition(";")[0].strip()
    return f" ({meaning})" if meaning else ""


def _parameter(name: str, value: Any) -> str:
    return percent(value) if name in SHARES else _value(value)


def _value(value: Any) -> str:
    """A parameter or a fact as text; for a long one, its size only."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return count(value)
    if isinstance(value, float):
        return "0" if abs(value) < 5e-16 else f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, Mapping):
        words = {"environment": "the environment variable {}", "file": "the file {}"}
        places = [words[name].format(item) for name, item in value.items() if name in words and item is not None]
        if places:
            return places[0]
        if len(value) > 6 or any(isinstance(item, Mapping | list | tuple) for item in value.values()):
            return f"{count(len(value))} entries"
        return ", ".join(f"{name} {_value(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return f"{count(len(value))} entries" if len(value) > 12 else ", ".join(map(_value, value))
    return str(value)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
