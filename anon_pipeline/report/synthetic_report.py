"""The page of a synthetic release: the meaning of epsilon, the measurements, and the closeness of the rows to them.

Made from the manifest only, and so from noisy counts alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from anon_pipeline.report import charts
from anon_pipeline.report.charts import count, percent
from anon_pipeline.report.origin import stated
from anon_pipeline.report.templates import template
from anon_pipeline.report.wording import listed, part, times, words
from anon_pipeline.spec import PublicDomain, in_full

KIND = "synthetic"
#: Values for comparison in the picture of the meaning of epsilon.
EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
#: The most lines of the tables of counts and of values.
MOST_COUNTS, MOST_VALUES = 40, 12


@dataclass(frozen=True)
class SyntheticPage:
    """The content of the page, as text."""

    dataset: str
    description: str
    version: str
    created: str
    withdrawn: str
    lead: str
    stated: list[tuple[str, str]]
    meaning: list[str]
    promises: list[tuple[str, str]]
    cautions: list[str]
    mechanisms: list[tuple[str, str, str, str]]
    counts: list[tuple[str, str, str, str, str]]
    columns: list[tuple[str, list[tuple[str, str, str, str]]]]
    selections: dict[str, str]
    domains: list[tuple[str, str, str]]
    checks: list[tuple[str, str]]
    software: list[tuple[str, str]]
    picture: Markup


def right_guesses(epsilon: float, delta: float) -> float:
    """The largest share of right guesses on whether a person is in the table, if both are equally likely before.

    (e^epsilon + delta) / (1 + e^epsilon), for the best test of the two (P. Kairouz, S. Oh and P. Viswanath, ICML 2015).
    """
    return min(1.0, (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon)))


def is_synthetic(content: Mapping[str, Any]) -> bool:
    """Whether a manifest belongs to a synthetic release."""
    return content.get("kind") == KIND


def lead(content: Mapping[str, Any]) -> str:
    """The release in two sentences."""
    privacy = part(content, "differential_privacy")
    rows = part(content, "rows").get("synthetic")
    return (
        f"{count(rows)} synthetic rows, none of which is a person's: they were drawn from noisy counts. "
        f"Epsilon is {_number(privacy.get('epsilon'))} at delta {_small(privacy.get('delta'))} for every "
        f"{words(privacy.get('unit'))} of the source."
    )


def describe(content: Mapping[str, Any], withdrawn: str = "") -> SyntheticPage:
    """The manifest in words."""
    privacy = part(content, "differential_privacy")
    epsilon, delta = float(privacy.get("epsilon", math.inf)), float(privacy.get("delta", 1))
    columns, domains = part(content, "spec", "columns"), part(privacy, "domains")
    return SyntheticPage(
        dataset=words(content.get("dataset")),
        description=words(content.get("description")),
        version=words(content.get("version")),
        created=times(content.get("created"))[0],
        withdrawn=withdrawn,
        lead=lead(content),
        stated=stated(content),
        meaning=_meaning(privacy, epsilon, delta),
        promises=_promises(privacy),
        cautions=_cautions(content),
        mechanisms=_mechanisms(privacy),
        counts=_counts(part(content, "quality").get("counts") or []),
        columns=[(name, _values(name, part(content, "quality", "values"), domains)) for name in domains],
        selections=_selections(part(content, "quality", "values")),
        domains=[
            (name, _domain(part(domain)), words(part(domain).get("why")))
            for name, domain in domains.items()
            if name in columns
        ],
        checks=[
            (words(check["demand"]), "passed" if check["passed"] else "failed") for check in content.get("checks") or []
        ],
        software=[(name, words(package)) for name, package in sorted(part(content, "software", "packages").items())],
        picture=Markup(charts.inline(_picture(epsilon, delta))),  # noqa: S704 (charts escape their input)
    )


def render(content: Mapping[str, Any], withdrawn: str = "") -> str:
    """The page as HTML without external files."""
    return template("synthetic_report.html").render(page=describe(content, withdrawn))


def _meaning(privacy: Mapping[str, Any], epsilon: float, delta: float) -> list[str]:
    times_likelier = math.exp(epsilon) if epsilon < 50 else math.inf
    unit = "row" if privacy.get("unit") == "row" else "person"
    return [
        f"Think of somebody who knows every {unit} of the source but one, knows this program, and tosses a coin on "
        f"whether the last {unit} is in it. Without the release they are right in 50 of 100 cases. With it, they are "
        f"right in at most {right_guesses(epsilon, delta) * 100:.1f} of 100.",
        f"Whatever the release shows was at most {_number(times_likelier)} times likelier with that {unit} than "
        f"without, but for events that happen once in {count(round(1 / delta))} releases.",
        "This holds whatever else is known or comes to be known. It is about what taking part adds: that smokers fall "
        "ill can be learned from others, and is true of who did not take part as well.",
    ]


def _promises(privacy: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = privacy.get("rows_per_unit")
    counted = f"{count(rows)} {'row is' if rows == 1 else 'rows are'} counted at most"
    return [
        ("Unit", f"{words(privacy.get('unit'))}, of which {counted}"),
        ("Neighbours", words(privacy.get("neighbours"))),
        ("Epsilon and delta", f"{_number(privacy.get('epsilon'))} and {_small(privacy.get('delta'))}"),
        ("rho (zero-concentrated)", _number(privacy.get("rho"))),
        ("Conversion", words(privacy.get("conversion"))),
        ("Budget", f"that of the subject {words(privacy.get('subject'))}"),
        ("Public domains", f"SHA-256 {words(privacy.get('domains_sha256'))}"),
        ("Number of rows", words(privacy.get("size"))),
    ]


def _cautions(content: Mapping[str, Any]) -> list[str]:
    subject = words(part(content, "differential_privacy").get("subject"))
    cautions = [
        f"What was asked of the people of {subject} before and after this adds up: `anon-pipeline budget show` tells "
        "the whole. Budgets of other publishers about the same people add up, too, and nobody can see them.",
        "The rows keep what was counted: each column, and the sets of columns below. What hangs on other combinations "
        "is smoothed away; small groups are the least certain.",
        "Intervals computed from synthetic rows as if they were people are too narrow. The error bars below are those "
        "of the noise.",
        "The promise rests on public domains that were written without looking at the data, and on an operator who "
        "keeps the private zone private.",
    ]
    if content.get("model") is not None:
        cautions.append(
            "The model in model.zip was made of the same counts and rows and costs nothing more. It is in MLflow's "
            "format and is unpickled when it is loaded: load it only if you trust who published it."
        )
    return cautions


def _mechanisms(privacy: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    return [
        (
            listed(list(mechanism["measures"]))
            if isinstance(mechanism["measures"], list)
            else words(mechanism["measures"]),
            words(mechanism["mechanism"]),
            _number(mechanism["scale"]),
            _number(mechanism["rho"]),
        )
        for mechanism in privacy.get("mechanisms") or []
    ]


def _counts(quality: list[Mapping[str, Any]]) -> list[tuple[str, str, str, str, str]]:
    return [
        (
            listed(list(measured["columns"])),
            count(measured["cells"]),
            f"±{count(round(measured['error_bar']))}",
            percent(measured["distance"]),
            percent(measured["noise"]),
        )
        for measured in quality[:MOST_COUNTS]
    ]


def _values(name: str, values: Mapping[str, Any], domains: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """The largest values of a column: label, noisy count with its interval, synthetic count."""
    counted = list(enumerate(values.get(name) or []))
    domain = part(domains, name)
    largest = sorted(counted, key=lambda pair: -pair[1]["noisy"])[:MOST_VALUES]
    chosen = sorted(largest) if domain.get("values") is None else largest
    return [
        (
            _label(domain, place, len(counted) - 1),
            count(round(value["noisy"])),
            f"{count(round(value['low']))} to {count(round(value['high']))}",
            count(value["synthetic"]),
        )
        for place, value in chosen
    ]


def _selections(values: Mapping[str, Any]) -> dict[str, str]:
    """What to know of a column of which the largest counts are shown: some are the largest by their noise."""
    return {
        name: f"The {MOST_VALUES} largest of {count(len(counted))} noisy counts. Some can be among the "
        "largest by their noise: such counts are rather too large than too small, and fewer than 95 % of the intervals "
        "may hold."
        for name, counted in values.items()
        if len(counted) > MOST_VALUES
    }


def _label(domain: Mapping[str, Any], place: int, missing: int) -> str:
    if place == missing:
        return "missing"
    if domain.get("values") is not None:
        return words(domain["values"][place])
    if domain.get("bins") is not None:
        return f"{in_full(domain['bins'][place])} to {in_full(domain['bins'][place + 1])}"
    public = PublicDomain.model_validate(domain)
    first = place * public.places_of_interval
    last = min(first + public.places_of_interval, public.size) - 1
    low, high = in_full(public.number_at(first)), in_full(public.number_at(last))
    return low if first == last else f"{low} to {high}"


def _domain(domain: Mapping[str, Any]) -> str:
    if domain.get("values") is not None:
        return f"{count(len(domain['values']))} values"
    if domain.get("bins") is not None:
        edges = [in_full(edge) for edge in domain["bins"]]
        return f"{count(len(edges) - 1)} intervals from {edges[0]} to {edges[-1]}"
    low, high, step = map(in_full, (*domain["range"], domain["step"]))
    return f"{low} to {high} in steps of {step}"


def _picture(epsilon: float, delta: float) -> str:
    """The chart of the share of right guesses, for this release and for other epsilons."""
    rows = {other: f"at epsilon {other:g}" for other in EPSILONS if abs(other - epsilon) > 0.05 * other}
    rows[epsilon] = f"this release, epsilon {_number(epsilon)}"
    shares = {"a coin toss, without any release": 0.5}
    shares |= {rows[other]: right_guesses(other, delta) for other in sorted(rows)}
    return charts.share_chart(shares, "How often the best guess at who took part is right, at most")


def _number(value: Any) -> str:
    return f"{float(value):,.4g}" if isinstance(value, int | float) else "not stated"


def _small(value: Any) -> str:
    return f"{float(value):g}" if isinstance(value, int | float) else "not stated"
