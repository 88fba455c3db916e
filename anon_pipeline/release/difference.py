"""The changes from one release of a dataset to another, by their manifests: figures and policy, no values.

Figures of the source have noise, of which one draw is new for each release. Those that differ by no more than it may
make are no changes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.release import ledger
from anon_pipeline.release.exported_report import manifest_of
from anon_pipeline.release.fineness import step_at_least

#: Shown where a release has no such figure, column or demand.
ABSENT = None

#: Parts of the policy that have separate lines.
TOLD_ELSEWHERE = ("columns", "privacy")

#: So many steps two figures differ by noise alone, but for one pair in two hundred.
BY_NOISE = 2


@dataclass(frozen=True)
class Change:
    """One difference between the two releases.

    Attributes
    ----------
    part : people, classes, demands, information lost, utility, columns, policy or software
    what : the name of the figure, column or setting
    before, after : its value in either release, None if absent
    """

    part: str
    what: str
    before: Any
    after: Any


def difference(home: Home, first: str, second: str, dataset: str | None = None) -> list[Change]:
    """The changes from the release `first` to the release `second`.

    Raises
    ------
    InputError
        If there is no such release, or the two are from different datasets.
    Refused
        If a manifest differs from the published one.
    """
    entries = [ledger.published(home, version, dataset) for version in (first, second)]
    if entries[0].dataset != entries[1].dataset:
        raise InputError(f"{first} is a release of {entries[0].dataset}, {second} one of {entries[1].dataset}")
    return changes(*(manifest_of(home, entry) for entry in entries))


def changes(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Change]:
    """The differences between two manifests of a dataset."""
    before, after = (dict(_figures(manifest)) for manifest in (first, second))
    by_noise = [dict(_by_noise(manifest)) for manifest in (first, second)]
    return [
        Change(*name, before.get(name, ABSENT), after.get(name, ABSENT))
        for name in dict.fromkeys([*before, *after])
        if _differ(before.get(name, ABSENT), after.get(name, ABSENT), max(of.get(name, 0.0) for of in by_noise))
    ]


def _differ(before: Any, after: Any, by_noise: float) -> bool:
    if by_noise and before is not ABSENT and after is not ABSENT:
        return bool(abs(after - before) > by_noise * (1 + 1e-9))
    return bool(before != after)


def _by_noise(manifest: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], float]]:
    """By how much each figure with noise may differ from that of a release of the same people."""
    rows, measured = manifest.get("rows") or {}, manifest.get("measured") or {}
    if rows.get("without_target") is not None:
        yield ("people", "without_target"), BY_NOISE * step_at_least(math.sqrt(max(1, rows["source"])))
    loss = measured.get("information_loss") or {}
    if measured.get("noise") and loss:
        yield ("information lost", "in the mean"), _of_mean(loss["steps"].values(), loss["step"])
        for name, step in loss["steps"].items():
            yield ("information lost", name), BY_NOISE * (step or 0.0)


def _of_mean(steps: Collection[float | None], step: float) -> float:
    """The same of the mean of columns with these steps, in whole steps of the mean, at least one.

    Columns have noise of their own, so that of many it hardly moves the mean; of one, or with coarse steps, it does.
    """
    by_noise = BY_NOISE * math.hypot(*(of_column or 0.0 for of_column in steps)) / max(len(steps), 1)
    return step * max(1, math.ceil(by_noise / step - 1e-9))


Figure = tuple[tuple[str, str], Any]


def _figures(manifest: Mapping[str, Any]) -> Iterator[Figure]:
    """All compared figures with their part and name, in the order of the output."""
    yield from _people_and_classes(manifest)
    yield from _measured(manifest)
    yield from _policy(manifest)


def _people_and_classes(manifest: Mapping[str, Any]) -> Iterator[Figure]:
    for name, number in (manifest.get("rows") or {}).items():
        yield ("people", name), number
    sizes = (manifest.get("measured") or {}).get("class_sizes") or {}
    for name, number in sizes.items():
        if name != "groups":
            yield ("classes", name), number
    for name in ("groups", "people", "people_left_out", "smallest"):
        if name in (manifest.get("groups") or {}):
            yield ("groups", name), manifest["groups"][name]


def _measured(manifest: Mapping[str, Any]) -> Iterator[Figure]:
    for finding in manifest.get("verified") or []:
        yield ("demands", finding["demand"]), finding["measured"]
    loss = (manifest.get("measured") or {}).get("information_loss") or {}
    for name, share in {"in the mean": loss.get("mean"), **(loss.get("columns") or {})}.items():
        yield ("information lost", name), share
    for metric, comparison in ((manifest.get("utility") or {}).get("metrics") or {}).items():
        for when in ("before", "after"):
            yield ("utility", f"{metric} {when}"), comparison[when]["mean"]


def _policy(manifest: Mapping[str, Any]) -> Iterator[Figure]:
    spec = manifest.get("spec") or {}
    for name, column in (spec.get("columns") or {}).items():
        for setting, value in column.items():
            yield ("columns", f"{name}: {setting}"), value
    for name, value in spec.items():
        if name not in TOLD_ELSEWHERE:
            yield ("policy", name), value
    for name in ("anon_pipeline", "code", "python"):
        yield ("software", name), (manifest.get("software") or {}).get(name)
