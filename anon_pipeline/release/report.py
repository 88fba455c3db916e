"""The report: one page about one release, for whoever must answer for it. Made from the manifest and nothing else.

This module puts the manifest into words and numbers as text; `report.html` says where they stand on the page. Parts the
manifest does not have are left out, and what is no number reads "not measured". The verdict fails closed: a promise
without a count that bears it out is a broken one.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from anon_pipeline.release import audit_report, charts, masking_map, masking_report
from anon_pipeline.release.audit_report import AuditWords
from anon_pipeline.release.charts import NOT_MEASURED, count, known, minus, percent
from anon_pipeline.release.masking_report import MaskingWords

#: What a promise means to the people it protects.
MEANINGS = {
    "k_anonymity": "Whoever looks for one person by these columns finds at least {k} rows that look the same.",
    "k_map": "Every class fits at least {k} people of the population, whoever of them is in the table.",
    "l_diversity": "To know a person's class is not to know their {column}.",
    "alpha_k_anonymity": "In no class is one value of {column} nearly certain.",
    "t_closeness": "In every class {column} is distributed much as in the whole table.",
    "beta_likeness": "No value of {column} becomes much likelier for a person whose class is known.",
    "delta_disclosure": "The class of a person makes no value of {column} much likelier or much less likely.",
    "delta_presence": "Whether a person is in the table at all stays uncertain.",
}

#: How each score is called, explained and written.
METRICS = {
    "accuracy": ("Accuracy", "people predicted rightly", "share"),
    "balanced_accuracy": ("Balanced accuracy", "the same, every value of the target counting alike", "share"),
    "roc_auc": ("ROC AUC", "0.5 is guessing, 1 is perfect ranking", "plain"),
    "r2": ("R\u00b2", "share of the target's variance explained", "plain"),
    "mae": ("Mean absolute error", "in units of the target; smaller is better", "plain"),
}
SMALLER_IS_BETTER = {"mae"}
HEADLINES = ("roc_auc", "accuracy", "r2")

#: What is measured of every sensitive column: words, the term, how it is written, and what an absent number means.
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
class Promise:
    """One demand and what the published file says to it."""

    name: str
    demand: str
    meaning: str
    measured: str
    holds: bool


@dataclass(frozen=True)
class Score:
    """One score before and after, in words and as cells of a table (value, interval)."""

    name: str
    meaning: str
    before: tuple[str, str]
    after: tuple[str, str]
    difference: tuple[str, str]
    sentence: str


@dataclass(frozen=True)
class Fate:
    """What happened to one column."""

    name: str
    role: str
    what: str
    why: str
    lost: str
    is_target: bool


@dataclass(frozen=True)
class Risk:
    """One number an attacker cares about, before and after."""

    name: str
    term: str
    before: str
    after: str


@dataclass(frozen=True)
class Sensitive:
    """What the classes say about the sensitive columns."""

    columns: list[str]
    measures: list[tuple[str, str, list[str]]]  # words, term, one text per column
    settled: str  # for how many people the class has one single value, in words
    unprotected: list[str]  # no demand names them
    chart: Markup | None


@dataclass(frozen=True)
class Check:
    """One blocking check."""

    name: str
    asset: str
    demand: str
    measured: str
    state: str  # passed, failed, crashed

    @property
    def passed(self) -> bool:
        return self.state == "passed"

    @property
    def sentence(self) -> str:
        measured = "" if self.measured == NOT_MEASURED else f", measured: {self.measured}"
        return f"{self.name}: {self.demand} ({self.state}{measured})"


@dataclass(frozen=True)
class Page:
    """All that the template shows, as text."""

    dataset: str
    description: str
    version: str
    created: str
    day: str
    released: bool
    lead: str
    broken: list[str]
    facts: list[tuple[str, str]]
    promises: list[Promise]
    utility_intro: str
    scores: list[Score]
    loss_mean: str
    loss_chart: Markup | None
    sizes: dict[str, str]
    size_chart: Markup | None
    before_after: Markup | None
    columns: list[Fate]
    quasi_identifiers: list[str]
    kept: list[str]
    risks: list[Risk]
    sensitive: Sensitive | None
    attacks: AuditWords | None
    attack_chart: Markup | None
    masking: MaskingWords | None
    maps: list[tuple[str, Markup]]  # captions and pictures
    checks: list[Check]
    commands: list[tuple[str, str]]
    citation: str
    hashes: list[tuple[str, str]]
    provenance: list[tuple[str, str]] = field(default_factory=list)
    packages: list[tuple[str, str]] = field(default_factory=list)
    lineage: list[tuple[str, str]] = field(default_factory=list)
    previous: str = ""


def render(content: dict[str, Any]) -> str:
    """The page of a release as HTML that needs nothing but itself.

    Parameters
    ----------
    content : the manifest, as `publish` assembles it
    """
    return _template().render(page=describe(content))


@cache
def _template() -> Template:
    loader = PackageLoader("anon_pipeline", "release")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["breakable"] = _breakable
    environment.filters["capitalized"] = _sentence
    return environment.get_template("report.html")


def describe(content: Mapping[str, Any]) -> Page:
    """The manifest in words."""
    spec = _part(content, "spec")
    declared = _part(spec, "columns")
    quasi = [name for name, column in declared.items() if _part(column).get("role") == "quasi_identifier"]
    kept = [name for name, column in declared.items() if _part(column).get("role") in ("sensitive", "insensitive")]
    promises = _promises(content)
    checks = _checks(content)
    broken = [f"{one.demand}: {one.measured}" for one in promises if not one.holds]
    broken += [one.sentence for one in checks if not one.passed]
    attacks = audit_report.in_words(_part(content, "audit"), _part(spec, "audit"), _part(content, "source").get("rows"))
    broken += attacks.broken if attacks is not None else []
    if not promises:
        broken.append("No count of the published file bears out any promise.")
    measured = _part(content, "measured")
    loss = _part(measured, "information_loss")
    sizes = _part(measured, "class_sizes")
    utility = _part(content, "utility")
    scores = [_score(name, one) for name, one in _part(utility, "metrics").items()]
    risk = _part(measured, "risk") or _part(content, "risk")
    created, day = _times(content.get("created"))
    return Page(
        dataset=_words(content.get("dataset")),
        description=_words(content.get("description")),
        version=_words(content.get("version")),
        created=created,
        day=day,
        released=not broken,
        lead=_lead(content, quasi, "table" if broken else "release"),
        broken=broken,
        facts=_facts(content),
        promises=promises,
        utility_intro=_utility_intro(utility) if scores else "",
        scores=scores,
        loss_mean=percent(loss["mean"]) if loss.get("mean") is not None else "",
        loss_chart=_share_chart(
            _in_order(_part(loss, "columns"), declared), "Share of each column's information that is lost"
        ),
        sizes={name: count(sizes.get(name)) for name in ("classes", "smallest", "median", "mean", "largest")}
        if sizes
        else {},
        size_chart=_picture(charts.class_size_chart(sizes["groups"])) if sizes.get("groups") else None,
        before_after=_records_chart(risk),
        columns=_fates(spec, _part(content, "source"), _part(loss, "columns")),
        quasi_identifiers=quasi,
        kept=kept,
        risks=_risks(_part(risk, "before"), _part(risk, "after")),
        sensitive=_sensitive(_part(measured, "sensitive"), spec),
        attacks=attacks,
        attack_chart=_picture(attacks.picture) if attacks is not None and attacks.picture else None,
        maps=[
            (masking_map.caption(one), _picture(masking_map.map_chart(one)))
            for one in content.get("maps") or []
            if one.get("before")
        ],
        masking=masking_report.in_words(content.get("masking"), _part(content, "source").get("rows")),
        checks=checks,
        commands=_commands(spec, quasi),
        citation=_citation(content, day),
        hashes=_hashes(content),
        provenance=_provenance(content),
        packages=[(name, _words(version)) for name, version in sorted(_part(content, "software", "packages").items())],
        lineage=[
            (name, ", ".join(sources)) for name, sources in _part(content, "lineage").items() if list(sources) != [name]
        ],
        previous=_words(content.get("previous")),
    )


# The verdict


def _promises(content: Mapping[str, Any]) -> list[Promise]:
    """What was counted for each demand of the spec; a demand that nobody counted does not hold."""
    asked = list(_part(content, "spec").get("privacy") or [])
    waiting = [(_name_of(demand), demand) for demand in asked]
    promises = []
    for finding in content.get("verified") or []:
        place = next((number for number, (name, _) in enumerate(waiting) if name == finding.get("name")), None)
        demand = waiting.pop(place)[1] if place is not None else {}
        holds = finding.get("holds") is True and not finding.get("failing")
        promises.append(
            Promise(
                name=_plain_name(_words(demand.get("model") or finding.get("name"))),
                demand=_sentence(_words(finding.get("demand"))),
                meaning=_meaning(demand) if holds else "",
                measured=_measured(_words(demand.get("model")), finding.get("measured"), finding.get("failing")),
                holds=holds,
            )
        )
    for _, demand in waiting:
        parameters = ", ".join(
            f"{key} {value}" for key, value in demand.items() if key != "model" and value is not None
        )
        model = _plain_name(_words(demand.get("model")))
        promises.append(Promise(model, _sentence(f"{model} with {parameters}"), "", NOT_MEASURED, False))
    return promises


def _name_of(demand: Mapping[str, Any]) -> str:
    """As `privacy.judge.name_of` calls it."""
    column = demand.get("column")
    return f"{demand.get('model')}" if column is None else f"{demand.get('model')}_{column}"


def _meaning(demand: Mapping[str, Any]) -> str:
    pattern = MEANINGS.get(str(demand.get("model")), "")
    try:
        return pattern.format(**{str(key): value for key, value in demand.items()})
    except (KeyError, IndexError, ValueError):
        return ""


def _measured(model: str, measured: Any, failing: Any) -> str:
    """The worst value over all classes, and how many classes fail."""
    text = _value(measured)
    if text != NOT_MEASURED:
        text = f"{text} in the smallest class" if model == "k_anonymity" else f"{text} in the worst class"
    if failing:
        text += f"; {count(failing)} {'class fails' if failing == 1 else 'classes fail'}"
    return text


def _lead(content: Mapping[str, Any], quasi: list[str], what: str) -> str:
    """The release, or mere table, in two or three sentences, from what was counted in the published file."""
    rows = _part(content, "rows")
    sentences = []
    if known(rows.get("released")):
        of = f" of {count(rows['source'])}" if known(rows.get("source")) else ""
        sentences.append(f"{count(rows['released'])}{of} people are in this {what}.")
    if rows.get("suppressed"):
        sentences.append(f"{count(rows['suppressed'])} were left out to protect them.")
    coarsened = _part(content, "coarsened")
    if coarsened:
        bins = ", ".join(f"{name} ({count(number)} steps)" for name, number in coarsened.items())
        sentences.append(
            f"There were too many distinct people to count, so these columns were coarsened first: {bins}."
        )
    smallest = next(
        (one.get("measured") for one in content.get("verified") or [] if one.get("name") == "k_anonymity"), None
    )
    if known(smallest) and smallest >= 2 and quasi:
        columns = f"the {len(quasi)} columns" if len(quasi) > 1 else "the column"
        sentences.append(
            f"Each looks the same as at least {count(smallest - 1)} others on {columns} "
            "by which a person could be recognized."
        )
    return " ".join(sentences)


def _facts(content: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The few numbers that most readers come for: (value, what it is)."""
    measured = _part(content, "measured")
    facts = []
    smallest = _part(measured, "class_sizes").get("smallest")
    if known(smallest):
        facts.append((count(smallest), "people in the smallest class"))
    classes = _part(measured, "class_sizes").get("classes")
    if known(classes):
        facts.append((count(classes), "classes of people who look alike"))
    metrics = _part(content, "utility", "metrics")
    headline = next((name for name in HEADLINES if known(_part(metrics, name, "difference").get("mean"))), None)
    if headline is not None:
        title, _, form = METRICS[headline]
        change = _change(_part(metrics, headline, "difference")["mean"], form)
        facts.append((change, f"{title}, for a model trained on it"))
    mean = _part(measured, "information_loss").get("mean")
    if known(mean):
        facts.append((percent(mean), "of the columns' information lost"))
    return facts


# What it cost


def _utility_intro(utility: Mapping[str, Any]) -> str:
    model = utility.get("model")
    kind = f"{_plain_name(str(model))} model" if model else "model"
    text = f"A {kind} was trained twice: once on the people as they are, once on them as they are released."
    if known(utility.get("folds")) and known(utility.get("rows")):
        text += (
            f" Both then predicted the same people, whom neither had seen, in {count(utility['folds'])} rounds "
            f"that cover all {count(utility['rows'])} people. In each round the classes were formed anew."
        )
    return text


def _score(metric: str, comparison: Any) -> Score:
    name, meaning, form = METRICS.get(metric, (_plain_name(metric).capitalize(), "", "plain"))
    before, after, difference = (_part(comparison, when) for when in ("before", "after", "difference"))
    return Score(
        name=name,
        meaning=meaning,
        before=_estimate(before, form),
        after=_estimate(after, form),
        difference=_estimate(difference, form, change=True),
        sentence=_comparison(metric, name, before, after, difference, form),
    )


def _comparison(
    metric: str,
    name: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    difference: Mapping[str, Any],
    form: str,
) -> str:
    """One score in words."""
    mean, low, high = (difference.get(part) for part in ("mean", "low", "high"))
    start = f"{name} was {_level(before.get('mean'), form)} before and {_level(after.get('mean'), form)} after"
    if not known(mean):
        return f"{name}: the difference was not measured."
    if not (known(low) and known(high)):
        return f"{start}; how sure that difference is was not measured."
    interval = f"95\u00a0% interval {_interval(low, high, form, _change)}"
    if low <= 0 <= high:
        return f"{start}: no difference that can be told from chance ({interval})."
    worse = (mean > 0) == (metric in SMALLER_IS_BETTER)
    return f"{start}: {'a loss' if worse else 'a gain'} of {_change(abs(mean), form).removeprefix('+')} ({interval})."


def _estimate(estimate: Mapping[str, Any], form: str, change: bool = False) -> tuple[str, str]:
    write = _change if change else _level
    low, high = estimate.get("low"), estimate.get("high")
    interval = _interval(low, high, form, write) if known(low) and known(high) else ""
    return write(estimate.get("mean"), form), interval


def _interval(low: float, high: float, form: str, write: Callable[[Any, str], str]) -> str:
    """Both ends, with their unit once."""
    first, unit = write(low, form), re.search(r"\u00a0%$| points$", write(high, form))
    return f"{first.removesuffix(unit.group() if unit else '')} to {write(high, form)}"


def _level(value: Any, form: str) -> str:
    if not known(value):
        return NOT_MEASURED
    return f"{minus(f'{100 * value:.2f}')}\u00a0%" if form == "share" else minus(_digits(value))


def _change(value: Any, form: str) -> str:
    if not known(value):
        return NOT_MEASURED
    text = f"{100 * value:+.2f}" if form == "share" else _digits(value, "+")
    text = minus(text if text.strip("+-0.") else text.removeprefix("+"))
    return f"{text} points" if form == "share" else text


def _digits(value: float, sign: str = "") -> str:
    return (
        f"{value:{sign},.0f}"
        if abs(value) >= 10_000
        else f"{value:{sign}.4f}"
        if abs(value) < 10
        else f"{value:{sign}.2f}"
    )


# The columns


def _fates(spec: Mapping[str, Any], source: Mapping[str, Any], losses: Mapping[str, Any]) -> list[Fate]:
    facts = {one.get("name"): one for one in source.get("columns") or []}
    protected = {demand.get("column") for demand in spec.get("privacy") or []}
    fates = []
    for name, column in _part(spec, "columns").items():
        column = _part(column)
        role = _words(column.get("role"))
        kind = _words(column.get("type") or facts.get(name, {}).get("type"))
        lost = percent(losses[name]) if name in losses else NOT_MEASURED if role == "quasi_identifier" else ""
        fates.append(
            Fate(
                name=name,
                role=_plain_name(role),
                what=_what(role, kind, column, _part(spec, "recode"), name in protected),
                why=_words(column.get("why")),
                lost=lost,
                is_target=name == spec.get("target"),
            )
        )
    return fates


def _what(role: str, kind: str, column: Mapping[str, Any], recode: Mapping[str, Any], is_protected: bool) -> str:
    """What happened to a column, in words."""
    if role == "quasi_identifier":
        if recode.get("form") == "range":
            shown = "set of values" if kind == "categorical" else "interval" if kind else "range"
        else:
            numeric = _words(recode.get("numeric")) or "median"
            shown = "most common value" if kind == "categorical" else numeric if kind else "representative"
        text = f"Generalized: the {shown} of the class"
        return f"{text}, in steps of {count(column['grid'])}." if known(column.get("grid")) else f"{text}."
    return {
        "sensitive": f"Kept as it is; {'a' if is_protected else 'no'} promise protects it.",
        "insensitive": "Kept as it is.",
        "identifier": "Removed: it names a person.",
        "exclude": "Left out.",
    }.get(role, "")


# What an attacker could still learn


def _risks(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Risk]:
    """The table of risks; a number of either side that is not known by name is shown under its own."""
    first, then = _leaves(before), _leaves(after)
    risks = []
    for path in dict.fromkeys([*first, *then]):
        if path[0] in ("records", "classes", "records_by_class_size"):
            continue
        if path[0] == "population_uniqueness" and path[-1] != "share":
            continue  # how each estimate was come by stands in the manifest
        if path[0] == "journalist" and first.get(path) is None and then.get(path) is None:
            continue  # only where a population is known
        if path == ("marketer",) and all(one.get(path) == one.get(("prosecutor", "mean")) for one in (first, then)):
            continue  # without a population the two are one
        name, term, write = _risk_words(path)
        risks.append(Risk(name, term, write(first.get(path)), write(then.get(path))))
    return risks


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
        ("marketer",): ("Rows matched rightly when all are matched at once", "marketer", percent),
    }
    if path in fixed:
        return fixed[path]
    if path[:2] == ("prosecutor", "share_above") and len(path) == 3:
        return f"People whose chance to be picked is above {_threshold(path[2])}", "prosecutor", percent
    if path[0] == "population_uniqueness" and len(path) == 3:
        return "People unique in the whole population (estimate)", path[1], percent
    return _plain_name(" ".join(path)).capitalize(), "", _value


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


def _records_chart(risk: Mapping[str, Any]) -> Markup | None:
    before, after = (_part(risk, when, "records_by_class_size") for when in ("before", "after"))
    labels = [label for label in dict.fromkeys([*before, *after]) if before.get(label) or after.get(label)]
    if not before or not after or not labels:
        return None
    title = "People by the size of their class, before and after"
    return _picture(
        charts.before_after_chart(
            labels, [before.get(one) for one in labels], [after.get(one) for one in labels], title
        )
    )


def _sensitive(measures: Mapping[str, Any], spec: Mapping[str, Any]) -> Sensitive | None:
    if not measures:
        return None
    columns = list(_in_order(measures, _part(spec, "columns")))
    names = [name for name in MEASURES if any(name in _part(measures, column) for column in columns)]
    others = dict.fromkeys(name for column in columns for name in _part(measures, column) if name not in MEASURES)
    rows = []
    for name in [*names, *others]:
        words, term, write, absent = MEASURES.get(name, (_plain_name(name).capitalize(), "", _value, NOT_MEASURED))
        texts = []
        for column in columns:
            given = _part(measures, column)
            # A measure that is there without a number is infinite; JSON has no infinity.
            endless = name in given and (given[name] is None or given[name] == float("inf"))
            texts.append(absent if endless else write(given.get(name)))
        rows.append((words, term, texts))
    shares = {
        column: _part(measures, column).get("homogeneity", _part(measures, column).get("homogeneous"))
        for column in columns
    }
    protected = {demand.get("column") for demand in spec.get("privacy") or []}
    return Sensitive(
        columns=columns,
        measures=rows,
        settled=_listed(
            [f"{one} for {percent(share)} of the people" for one, share in shares.items() if known(share) and share]
        ),
        unprotected=[column for column in columns if column not in protected],
        chart=_share_chart(shares, "People whose class has one single value of the column"),
    )


# Checks, proof and origin


def _checks(content: Mapping[str, Any]) -> list[Check]:
    """All checks, those that did not pass first."""
    checks = [
        Check(
            name=_words(one.get("name")),
            asset=_words(one.get("asset")),
            demand=_sentence(_words(one.get("demand"))),
            measured=_value(one.get("measured")),
            state="crashed" if one.get("crashed") else "passed" if one.get("passed") is True else "failed",
        )
        for one in content.get("checks") or []
    ]
    return sorted(checks, key=lambda check: check.passed)


def _commands(spec: Mapping[str, Any], quasi: list[str]) -> list[tuple[str, str]]:
    """What to type, and what it does."""
    commands = [
        ("anon-pipeline releases verify", "Checks that no file of this release and no line of the ledger was altered.")
    ]
    k = next((one.get("k") for one in spec.get("privacy") or [] if one.get("model") == "k_anonymity"), None)
    if quasi and k is not None:
        command = f"anon-pipeline verify data.parquet --quasi-identifiers {shlex.quote(','.join(quasi))} --k {k}"
        sensitive = [name for name, one in _part(spec, "columns").items() if _part(one).get("role") == "sensitive"]
        if sensitive:
            command += f" --sensitive {shlex.quote(','.join(sensitive))}"
        commands.append((command, "Counts the classes again in the published table, without trusting this page."))
    return commands


def _citation(content: Mapping[str, Any], day: str) -> str:
    parts = [_words(content.get("dataset")), f"release {_words(content.get('version'))}", day]
    made = _words(_part(content, "software").get("anon_pipeline"))
    cited = ", ".join(part for part in parts if part)
    return f"{cited}. Anonymized with anon-pipeline{f' {made}' if made else ''}."


def _hashes(content: Mapping[str, Any]) -> list[tuple[str, str]]:
    hashes = [(f"{name}, content", _words(value)) for name, value in _part(content, "content_hashes").items()]
    hashes += [(f"{name}, file", _words(_part(one).get("sha256"))) for name, one in _part(content, "files").items()]
    return hashes


def _provenance(content: Mapping[str, Any]) -> list[tuple[str, str]]:
    source, software, runs = (_part(content, name) for name in ("source", "software", "runs"))
    spec = _part(content, "spec")
    rows = [
        ("Source", f"{count(source.get('rows'))} rows"),
        ("Source, content", source.get("content_hash")),
        ("Spec", content.get("spec_hash")),
        ("Target", spec.get("target")),
        ("Guiding model", _guide(_part(spec, "guide"))),
        ("Seed", spec.get("seed")),
        ("Code", software.get("code")),
        ("anon-pipeline", software.get("anon_pipeline")),
        ("Python", software.get("python")),
        ("Dagster run", runs.get("dagster")),
        ("MLflow run", runs.get("mlflow")),
        ("Previous release", content.get("previous") or "none, this is the first"),
    ]
    return [(name, _words(value)) for name, value in rows if value is not None]


def _guide(guide: Mapping[str, Any]) -> str | None:
    if not guide:
        return None
    model = guide.get("model")
    named = (
        ", ".join(f"{key} {value}" for key, value in model.items())
        if isinstance(model, Mapping)
        else _plain_name(str(model))
    )
    parts = [named]
    parts += [f"guided by {guide['on']}"] * ("on" in guide)
    parts += [f"{_plain_name(str(guide['predictions']))} predictions"] * ("predictions" in guide)
    parts += [f"{guide['folds']} folds"] * (guide.get("predictions") == "out_of_fold" and "folds" in guide)
    parts += [f"spread {count(guide['spread'])}"] * ("spread" in guide)
    parts += [f"orders: {guide['orders']}"] * ("orders" in guide)
    return ", ".join(parts)


# Small things


def _part(content: Any, *path: str) -> Mapping[str, Any]:
    """A mapping inside the manifest; empty where it is absent or None."""
    for name in path:
        content = content.get(name) if isinstance(content, Mapping) else None
    return content if isinstance(content, Mapping) else {}


def _share_chart(shares: Mapping[str, Any], title: str) -> Markup | None:
    return _picture(charts.share_chart(dict(shares), title)) if shares else None


def _breakable(name: str) -> Markup:
    """The name of a column, which a narrow page may break after an underscore."""
    return Markup(str(escape(name)).replace("_", "_<wbr>"))  # noqa: S704 (escaped before)


def _picture(chart: str) -> Markup:
    return Markup(charts.inline(chart))  # noqa: S704 (charts escape what they are given)


def _in_order(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The same mapping, in the order of the spec."""
    return {name: values[name] for name in dict.fromkeys([*names, *values]) if name in values}


def _value(value: Any) -> str:
    """Any measured value as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or isinstance(value, float):
        return count(value)
    if isinstance(value, int):
        return count(value)
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def _listed(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _words(value: Any) -> str:
    return "" if value is None else str(value)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _plain_name(name: str) -> str:
    """ "k_anonymity" as one would write it."""
    written = {"quasi_identifier": "quasi-identifier", "exclude": "excluded", "out_of_fold": "out-of-fold"}
    if name in written:
        return written[name]
    name = name.replace("_", " ")
    for model in (
        "k anonymity",
        "l diversity",
        "t closeness",
        "beta likeness",
        "delta disclosure",
        "delta presence",
        "k map",
    ):
        name = name.replace(model, model.replace(" ", "-"))
    return name.replace("alpha k-anonymity", "(alpha, k)-anonymity")


def _times(created: Any) -> tuple[str, str]:
    """The moment and the day of a release."""
    try:
        moment = datetime.fromisoformat(str(created))
    except ValueError:
        return _words(created), _words(created)
    zone = " UTC" if moment.utcoffset() is not None and not moment.utcoffset() else ""
    return f"{moment:%Y-%m-%d %H:%M}{zone}", f"{moment:%Y-%m-%d}"
