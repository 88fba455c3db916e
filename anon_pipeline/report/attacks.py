"""The results of attacks in words and numbers, for the report, the commands and Dagster. Aggregates only.

The input is the plain data of `audit.audit`, as in the manifest; `audit_report.html` arranges the words on the page.
Absent parts, also in the manifests of older releases, are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from anon_pipeline.attack.models_audit import FITTED
from anon_pipeline.attack.rates import LEAK, NO_LEAK
from anon_pipeline.report.attack_pictures import picture
from anon_pipeline.report.attack_summary import SummaryRow, summary
from anon_pipeline.report.attack_words import GROUPS, MODELS, OUTCOMES, REPLAYED, TALLIED, bound_value, strength
from anon_pipeline.report.charts import NOT_MEASURED, count, known, percent
from anon_pipeline.spec.parts import SINGLE_BOUNDS

ALL_KNOWN = "linkage, all quasi-identifiers"

#: The three criteria in the words of the opinion, and the method of the rule in the words of the rule.
OPINION = (
    ("Singling out", "singling_out", "\u201cto isolate some or all records which identify an individual\u201d"),
    ("Linkability", "linkability", "\u201cto link, at least, two records concerning the same data subject\u201d"),
    (
        "Inference",
        "inference",
        "\u201cto deduce, with significant probability, the value of an attribute from the values of a set of other "
        "attributes\u201d",
    ),
)
VERY_SMALL = (
    "\u201cthe risk is very small that the information could be used, alone or in combination with other reasonably "
    "available information, by an anticipated recipient to identify an individual\u201d"
)

#: What a bound is compared with, by `audit.bounds_on`.
OF_AN_UPPER_END = "at the upper end of the 95\u00a0% interval"
OF_AN_ESTIMATE = "by the estimate itself, which may be too low by chance"


@dataclass(frozen=True)
class Row:
    """One attack in figures."""

    name: str
    attack: str
    control: str
    baseline: str
    leak: str
    verdict: str


@dataclass(frozen=True)
class AttackGroup:
    """A group of attacks: sentences on its strongest findings, numbers of the worst classes, and other sentences."""

    title: str
    question: str
    summary: str
    sentences: list[str]
    numbers: list[str]
    rest: list[str]


@dataclass(frozen=True)
class BoundWords:
    """A demand on the attacks and the measured value."""

    demand: str
    measured: str
    holds: bool

    @property
    def sentence(self) -> str:
        return f"{self.demand}: {self.measured}"


@dataclass(frozen=True)
class Criterion:
    """A criterion in the words of a regulator, beside the measured results."""

    name: str
    source: str
    words: str
    measured: str


@dataclass(frozen=True)
class AuditWords:
    """All words of the report about the attacks.

    Attributes
    ----------
    who : paragraphs that say who was attacked, and which tables were used instead of which
    skipped : why there was no attack; empty if there was one
    picture : the chart as SVG; empty if nothing was measured
    summary : a line per group of attacks, for a quick reader
    broken : sentences about demanded bounds that do not hold or were not measured
    """

    who: list[str]
    skipped: str
    picture: str
    summary: list[SummaryRow]
    groups: list[AttackGroup]
    rows: list[Row]
    bounds: list[BoundWords]
    criteria: list[Criterion]
    broken: list[str] = field(default_factory=list)


def in_words(
    content: Mapping[str, Any], demanded: Mapping[str, Any] | None = None, everybody: int | None = None
) -> AuditWords | None:
    """The attacks of a release in words.

    Parameters
    ----------
    content : the result of `audit.audit`; empty if a release was never attacked
    demanded : `audit` of the spec, so that bounds without a measurement are reported, and what bounds are compared with
    everybody : number of people in the source, so that a sample is reported as such

    Returns
    -------
    None if there is nothing to report.
    """
    of = OF_AN_ESTIMATE if (demanded or {}).get("bounds_on") == "estimate" else OF_AN_UPPER_END
    bounds = [_bound(bound, of) for bound in content.get("bounds") or []]
    broken = [bound.sentence for bound in bounds if not bound.holds]
    missing = _demanded(demanded or {}) - len(bounds)
    if missing > 0:
        what = "bound on attacks is" if missing == 1 else "bounds on attacks are"
        broken.append(
            f"{missing} {what} demanded, and nothing was measured against {'it' if missing == 1 else 'them'}."
        )
    if not content and not broken:
        return None
    findings = list(content.get("findings") or [])
    return AuditWords(
        who=_who(content, everybody),
        skipped=str(content.get("skipped") or ("" if content else "This release was not attacked.")),
        picture=picture(content),
        summary=summary(content),
        groups=[*_groups(findings), *_group_of_replays(content), *_groups_of_models(content)],
        rows=table(findings),
        bounds=bounds,
        criteria=_criteria(findings) if findings else [],
        broken=broken,
    )


def table(findings: Sequence[Mapping[str, Any]]) -> list[Row]:
    """A row of figures per attack, in the order of the findings."""
    return [
        Row(
            name=str(finding["name"]),
            attack=_share(finding["attack"]),
            control=_share(finding["control"]),
            baseline=_share(finding["baseline"]),
            leak=_leak(finding["leak"]),
            verdict=OUTCOMES.get(finding["verdict"], str(finding["verdict"])),
        )
        for finding in findings
    ]


# The attacked people


def _who(content: Mapping[str, Any], everybody: int | None) -> list[str]:
    if not known(content.get("members")) or not known(content.get("control")):
        return []
    members, control = count(content["members"]), count(content["control"])
    if content.get("control_kind") == "held_out":
        how = (
            f"{control} people, drawn under the private key, were kept out of this release, so that it could be "
            f"attacked on {members} people who are in it and on those {control} who are not."
        )
    else:
        how = (
            f"A twin of this release was attacked: the same rules and the same seed, with a model of its own, applied "
            f"to {members} of the people. The other {control}, drawn under the private key, were kept out of the "
            "twin only, so that nobody had to be left out of the release itself."
        )
    why = (
        "Attacks were tried on people who are in it and, where they can be, on people who are not. "
        "What succeeds on both is true of people in general, and no release of statistics can hide it. What succeeds "
        "more often on those who are in it is what it gives away: the share of the cases in which others would have "
        "been safe."
    )
    sampled = known(everybody) and known(content.get("people")) and content["people"] < everybody
    some = f" All this on a sample of {count(content['people'])} of {count(everybody)} people." if sampled else ""
    return [f"{how}{some}", why]


# The findings


def _groups(findings: Sequence[Mapping[str, Any]]) -> list[AttackGroup]:
    groups = []
    for criterion, (title, question) in GROUPS.items():
        of_group = [finding for finding in findings if finding["criterion"] == criterion]
        if not of_group:
            continue
        strongest = _strongest(of_group)
        groups.append(
            AttackGroup(
                title=title,
                question=question,
                summary=_summary(of_group),
                sentences=[*(_sentence(finding) for finding in strongest), *_meaning(strongest)],
                numbers=[sentence for finding in of_group for sentence in _numbers(finding)],
                rest=[_sentence(finding) for finding in of_group if finding not in strongest],
            )
        )
    return groups


def _meaning(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The meaning of a leak by conditions on all columns, since k does not bound it."""
    if not any(finding["name"] == "singling out, all columns" and finding["verdict"] == LEAK for finding in findings):
        return []
    return [
        "Such a condition is a class together with values that are kept as they are: who is the only one of their "
        "class with such a value is singled out, however large k is. It does not tell who they are; fewer kept "
        "columns, or coarser ones, lower it."
    ]


def _strongest(findings: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The strongest attack of each kind that found a leak; if none did, the strongest of all."""
    leaks = [finding for finding in findings if finding["verdict"] == LEAK]
    if not leaks:
        return [max(findings, key=strength)]
    best: dict[str, Mapping[str, Any]] = {}
    for finding in leaks:
        kind = _kind(finding)
        best[kind] = max(best.get(kind, finding), finding, key=strength)
    return list(best.values())


def _kind(finding: Mapping[str, Any]) -> str:
    """The kind of an attack: for inference the column, otherwise the name up to the first comma."""
    name = str(finding["name"])
    return name.partition(": ")[2] if finding["criterion"] == "inference" else name.partition(",")[0]


def _summary(findings: Sequence[Mapping[str, Any]]) -> str:
    """ "Of 4 attacks 3 found a leak and 1 was too weak to tell." """
    tally = {verdict: sum(finding["verdict"] == verdict for finding in findings) for verdict in TALLIED}
    parts = [f"{number} {TALLIED[verdict][number > 1]}" for verdict, number in tally.items() if number]
    number = len(findings)
    return f"Of {number} attacks {_listed(parts)}." if number > 1 else f"The one attack {parts[0].partition(' ')[2]}."


def _numbers(finding: Mapping[str, Any]) -> list[str]:
    """Numbers and shares of the worst classes, never the value of a class."""
    details = finding.get("details") or {}
    name, column = str(finding["name"]), _kind(finding)
    sentences = []
    if name == ALL_KNOWN:
        fewest = (details.get("candidate_records") or {}).get("min")
        if known(fewest):
            sentences.append(f"The fewest records among which a person cannot be told apart: {count(fewest)}.")
        if known(details.get("expected_links")):
            links = max(round(details["expected_links"]), 0)
            sentences.append(f"Links to be expected if everybody were attacked so: about {count(links)}.")
    if details.get("homogeneous_groups"):
        several = details["homogeneous_groups"] != 1
        sentences.append(
            f"{count(details['homogeneous_groups'])} class{'es' if several else ''}, with "
            f"{percent(details.get('in_homogeneous_groups'))} of the people, settle{'' if several else 's'} {column}."
        )
    if details.get("groups_all_rare"):
        sentences.append(f"Classes in which everybody has a rare {column}: {count(details['groups_all_rare'])}.")
    gain = details.get("largest_gain")
    if known(gain) and gain > 0 and not details.get("groups_all_rare"):
        sentences.append(
            f"In the worst class a rare {column} is {100 * gain:.0f} points more frequent than in the whole table."
        )
    if details.get("in_narrow_groups"):
        sentences.append(
            f"{percent(details['in_narrow_groups'])} of the people are in classes whose {column} has a narrow range."
        )
    return sentences


def _group_of_replays(content: Mapping[str, Any]) -> list[AttackGroup]:
    replayed = content.get("replayed") or []
    if not replayed:
        return []
    sentences = [_of_replay(column) for column in replayed]
    summary = (
        "The values of two members of a class are exchanged, and the odds that they are grouped so again are counted. "
        "What this finds is there; it is no proof that nothing else is. It does not see what training the "
        "model again would tell, nor what several people's values tell together."
    )
    return [AttackGroup(*REPLAYED, summary=summary, sentences=sentences, numbers=[], rest=[])]


def _of_replay(column: Mapping[str, Any]) -> str:
    bound = f" (at most {percent(column['high'])} of all, with 95 % confidence)" if "high" in column else ""
    return (
        f"{column['column']}: of {count(column['people'])} people in classes with several values, the value of "
        f"{percent(column['certain'])} is told{bound}, since every other was found to give the class "
        f"{count(column.get('seldom', 10))} times more seldom, or never; of {percent(column['undecided'])} nothing "
        "could be counted."
    )


def _groups_of_models(content: Mapping[str, Any]) -> list[AttackGroup]:
    models, guide = content.get("models") or {}, content.get("guide") or {}
    if not models and not guide:
        return []
    of_guide = [_of_guide(_sentence(finding)) for finding in guide.get("membership") or []]
    bought = sorted(models.get("bought") or [], key=lambda finding: -float(finding["before"]))
    inferred = [*(models.get("inference") or []), *(guide.get("inference") or [])]
    leaks = [_of_guide(_sentence(finding)) for finding in inferred if finding["verdict"] == LEAK]
    skipped = [
        f"{who}: not attacked, since {reason}"
        for who, reason in (("Models trained anew", models.get("skipped")), (FITTED_WORDS, guide.get("skipped")))
        if reason
    ]
    rest = [_sentence(finding) for finding in [*bought[1:], *(models.get("membership") or [])]]
    rest += [_of_guide(_sentence(finding)) for finding in inferred if finding["verdict"] != LEAK]
    summary = ""
    if known(models.get("members")):
        each = count(models["members"] + models.get("non_members", 0))
        summary = (
            f"The same way to train, on {each} people half of whom are members, once as they are and once as a release "
            "shows them. Models of so few people remember more of each than one of the whole table."
        )
    return [
        AttackGroup(
            *MODELS,
            summary=summary,
            sentences=[*skipped, *(_sentence(finding) for finding in bought[:1]), *of_guide, *leaks],
            numbers=[],
            rest=rest,
        )
    ]


FITTED_WORDS = "The model that guided the grouping"


def _of_guide(sentence: str) -> str:
    return sentence.replace(FITTED, FITTED_WORDS, 1)


# Bounds


def _bound(bound: Mapping[str, Any], of: str) -> BoundWords:
    measured = bound.get("measured")
    told = f"{bound_value(str(bound.get('name')), measured)} {of}"
    return BoundWords(
        demand=_capital(str(bound.get("demand") or bound.get("name") or "")),
        measured=told if known(measured) else NOT_MEASURED,
        holds=bound.get("holds") is True and known(measured),
    )


def _demanded(audit: Mapping[str, Any]) -> int:
    """The number of bounds that a spec demands."""
    single = sum(audit.get(name) is not None for name in SINGLE_BOUNDS)
    return single + len(audit.get("attribute_inference") or {})


# In the words of regulators


def _criteria(findings: Sequence[Mapping[str, Any]]) -> list[Criterion]:
    source = "Article 29 Working Party, Opinion 05/2014 (WP\u00a0216)"
    criteria = [
        Criterion(
            name, source, words, _measured([finding for finding in findings if finding["criterion"] == criterion])
        )
        for name, criterion, words in OPINION
    ]
    hipaa = "HIPAA, expert determination, 45\u00a0CFR\u00a0164.514(b)(1)"
    return [*criteria, Criterion("Very small risk", hipaa, VERY_SMALL, _identified(findings))]


def _measured(findings: Sequence[Mapping[str, Any]]) -> str:
    """The strongest attack of a criterion in figures."""
    if not findings:
        return "Not attacked."
    best = max(findings, key=strength)
    name = f"\u201c{best['name']}\u201d"
    if best["verdict"] == LEAK:
        text = (
            f"The strongest attack, {name}, gives away {_leak(best['leak'])}: it succeeds in {_share(best['attack'])} "
        )
        return f"{text}of the cases, and for people not in it in {_share(best['control'])}. {_summary(findings)}"
    if best["verdict"] == NO_LEAK and best["leak"] is None:
        return f"No leak was found: {name} succeeds for everybody who is not in it, too. {_summary(findings)}"
    if best["verdict"] == NO_LEAK:
        return f"No leak was found; the upper end for {name} is {percent(best['leak']['high'])}. {_summary(findings)}"
    return f"No figure: {name} succeeds in {_share(best['attack'])} of the cases. {_summary(findings)}"


def _identified(findings: Sequence[Mapping[str, Any]]) -> str:
    """How often an attacker with all quasi-identifiers, without and with mistakes, identifies somebody."""
    known_all = [finding for finding in findings if str(finding["name"]).startswith(ALL_KNOWN)]
    if not known_all:
        return "Not attacked."
    shares = {finding["knowledge"]["wrong"]: _share(finding["attack"]) for finding in known_all}
    text = f"Who knows every quasi-identifier of a person picks the right record in {shares.pop(0.0, NOT_MEASURED)} "
    text += "of the cases"
    if shares:
        text += f"; {_listed([f'in {share} with {percent(wrong)} of that wrong' for wrong, share in shares.items()])}"
    return (
        f"{text}. The rule names no number: an expert weighs this with who receives the data, and what else they can "
        "get hold of."
    )


# Helpers


def _sentence(finding: Mapping[str, Any]) -> str:
    """The finding's sentence, with no line break before a percent sign."""
    return str(finding["sentence"]).replace(" %", "\u00a0%")


def _share(rate: Mapping[str, Any] | None) -> str:
    return percent(rate["rate"]) if rate else "\u2013"


def _leak(leak: Mapping[str, Any] | None) -> str:
    if not leak:
        return "\u2013"
    return f"{percent(leak['leak'])} ({percent(leak['low'])} to {percent(leak['high'])})"


def _listed(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
