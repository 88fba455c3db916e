"""What is told of the masking steps of a release: the facts that are stated, and what a step cost, in steps.

A cost compares values that are released with values that are not, of which an attacker may know all but one. So it is
told with noise, in steps that one person seldom moves it across, and not at all where one person decides what a whole
group shows.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

from anon_pipeline.release.fineness import DECIDING, coarse, in_steps, rounded, step_of_pair, strength
from anon_pipeline.release.noise import Noise

#: The facts of a masking step that follow from its parameters and its key.
STATED_FACTS = {"bits", "epsilon", "epsilon_per_metre", "expected_metres", "faker", "key_id", "p", "q"}
#: Facts about the matrix of a step that changes categories, and about groups that are released in place of people.
FACTS_OF_A_MATRIX, FACTS_OF_GROUPS = {"categories", "least_retention"}, {"groups", "people_left_out", "means_hidden"}

#: Steps by which one person decides whether all who have the same value show it, or all who have the next rarest; or
#: on which side of a limit all are who have the same value, or lie between a rounded limit and the next.
OF_WHOLE_GROUPS = {"suppress_rare", "local_suppression", "quantile_code", "quantile_bin"}
#: Steps that group everybody anew where one person has another value.
REGROUPING = {"microaggregate", "mdav"}

#: What is told of the cost of a step to a column in which one person changes what a whole group shows.
NOTHING_TOLD: dict[str, Any] = {"changed": None, "distance": None, "measure": None, "correlation": None}


def masking(reports: list[dict[str, Any]] | None, noise: Noise) -> list[dict[str, Any]] | None:
    """The reports of the steps, with coarsened costs, as these are counted from values that are not released.

    A cost keeps its noise whatever steps come before it, for which other columns the step is, and in which order it
    names them: else a spec in which any of this is changed would tell the same cost with other noise each time.
    """
    if reports is None:
        return None
    told, of_groups = [], set[str]()  # the columns in which one person has changed what whole groups show
    steps = Counter[str]()
    for report in reports:
        technique = report["technique"]
        if technique in OF_WHOLE_GROUPS:
            of_groups |= set(report["columns"])
        costs = {
            name: NOTHING_TOLD | {"measure": cost["measure"]}
            if name in of_groups
            else _cost(cost, technique, _of_step(noise, steps, "costs", technique, name))
            for name, cost in report["costs"].items()
        }
        of_step = _of_step(noise, steps, "linkage", technique, *report.get("columns", ()))
        told.append({**stated(report), "costs": costs, "linkage": _linkage(report["linkage"], of_step)})
    return told


def _of_step(noise: Noise, steps: Counter[str], figure: str, technique: str, *columns: str) -> Noise:
    """The noise of a figure of a step: another one only where the same technique is used on the same columns again."""
    step = json.dumps([figure, technique, *sorted(columns)])
    steps[step] += 1
    return noise.of("masking", step, str(steps[step]))


def stated(report: dict[str, Any]) -> dict[str, Any]:
    """The report of a masking step with the facts that follow from the spec and from keys, or that the release shows.

    All others are counted from values that are not released, most of them exactly: how many were rare, how far the
    next people live, which matrix follows from the column. They stay in the private zone. So does whether MDAV has
    kept its guarantee, which depends on how many people have no value.
    """
    names = STATED_FACTS | (FACTS_OF_GROUPS if report["technique"] == "aggregate" else set())
    if report["guarantee"] == "local DP":  # then the matrix is stated
        names |= FACTS_OF_A_MATRIX
    published = {**report, "facts": {name: fact for name, fact in report["facts"].items() if name in names}}
    return published | {"guarantee": "none", "notes": []} if report["technique"] == "mdav" else published


def _cost(cost: dict[str, Any], technique: str, noise: Noise) -> dict[str, Any]:
    """The cost of a step to a column, each figure in the step that goes with the people it was measured on.

    How many cells changed is not told where groups follow from everybody: it is by chance who has the mean or the
    median of a group.
    """
    told: dict[str, Any] = NOTHING_TOLD | {"measure": cost["measure"]}
    if technique not in REGROUPING:
        told["changed"] = coarse(cost["changed"], cost["people"], noise.of("changed"))
    known = in_steps(cost["known"], DECIDING, noise.of("known"))
    told["distance"] = coarse(cost["distance"], known, noise.of("distance"))
    told["correlation"] = _largest_change(cost["correlations"], noise.of("correlation"))
    return told


def _largest_change(changes: list[dict[str, Any]], noise: Noise) -> float | None:
    """By how much the correlation that changed most did, of those with columns that are known of enough people.

    Which it is follows with noise: else one person could decide it, and columns of other types have other steps.
    """
    largest, told = -math.inf, None
    for change in changes:
        of_pair, signed = noise.of(change["other"]), change["signed"]
        people = in_steps(change["people"], DECIDING, of_pair.of("people"))
        step, step_after = (
            step_of_pair(people, dict(zip(("", change["other"]), change[apart], strict=True)), noise.of(apart))
            for apart in ("apart", "apart_after")
        )
        if step is None:
            continue
        exact = [float(change["before"]), 0.0 if step_after is None else float(change["after"])]
        exact = exact if signed else list(map(abs, exact))  # of two kinds of measures the strengths are compared
        before = strength(exact[0], signed, step, of_pair.of("before"))
        after = 0.0 if step_after is None else strength(exact[1], signed, step_after, of_pair.of("after"))
        size = step * of_pair.of("size").steps(abs(exact[0] - exact[1]), step)
        if size > largest:
            largest, told = size, float(rounded(abs(before - after)))
    return told


def _linkage(linkage: dict[str, Any] | None, noise: Noise) -> dict[str, Any] | None:
    if linkage is None:
        return None
    rate = coarse(float(linkage["rate"]), linkage["rows"], noise.of("linkage"))
    return {**linkage, "rate": rate}
