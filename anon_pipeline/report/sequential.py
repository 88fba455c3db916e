"""The risk from former releases that an attacker has, too, in words, under sequential publication."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anon_pipeline.report.charts import NOT_MEASURED, count, counted, known, percent
from anon_pipeline.report.verdict import Promise
from anon_pipeline.report.wording import listed, part


def promise(content: Mapping[str, Any]) -> Promise | None:
    """The demand across releases with its measured value, without which it does not hold; None without this demand."""
    asked = part(content, "spec", "across_releases")
    measured = part(content, "across_releases", "measured")
    if not asked:
        return None
    fewest, k = measured.get("fewest"), asked.get("k")
    holds = known(fewest) and known(k) and fewest >= k and measured.get("below") == 0
    releases = f"each of {count(measured['releases'])} releases" if known(measured.get("releases")) else "every release"
    least = "at least " if holds else ""
    text = f"{least}{count(fewest)} for the person with the fewest" if known(fewest) else NOT_MEASURED
    if measured.get("below"):
        text += f"; {counted(measured['below'], 'person has', 'people have')} fewer than demanded"
    return Promise(
        name="across releases",
        demand=f"At least {count(k)} people share a person's class in {releases}",
        meaning=f"Whoever has the former releases, too, is left with {count(k)} people who could be this one."
        if holds
        else "",
        measured=text,
        holds=holds,
    )


def sentences(content: Mapping[str, Any]) -> list[str]:
    """The releases with which this one was intersected, and the cost of that; empty without sequential publication."""
    facts = part(content, "across_releases")
    if not facts:
        return []
    former = [str(version) for version in facts.get("former") or []]
    unknown = [str(version) for version in facts.get("unknown") or []]
    texts = [
        f"This release was laid side by side with {listed(former)}, person by person."
        if former
        else "This is the first release in which people are followed from one to the next."
    ]
    if unknown:
        texts.append(f"It was not compared with {listed(unknown)}, of which it is not kept who is in which class.")
    if former and known(facts.get("newcomers")):
        texts.append(f"About {counted(facts['newcomers'], 'person is', 'people are')} new in the source.")
    if facts.get("waiting"):
        texts.append(
            f"{counted(facts['waiting'], 'person is', 'people are')} held back until enough others can be shown with "
            "them."
        )
    if former and known(facts.get("lost")):
        which = "The tree of the last release was kept" if facts.get("kept") else "A new tree was fitted"
        other = "a new one" if facts.get("kept") else "the former one"
        beside = f", {other} {percent(facts['lost_otherwise'])}" if known(facts.get("lost_otherwise")) else ""
        texts.append(f"{which}: {percent(facts['lost'])} of what trees are fitted to varies within its leaves{beside}.")
    return texts
