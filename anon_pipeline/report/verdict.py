"""The verdict in words: the promises, the counts from the published file, and whether it may be released.

It fails closed: a promise without a count that confirms it is broken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anon_pipeline.attack.rates import LEAK
from anon_pipeline.report import attack_words, kept_columns, singled_out
from anon_pipeline.report import utility as utility_report
from anon_pipeline.report.charts import NOT_MEASURED, count, in_steps, known, lost, percent
from anon_pipeline.report.columns import as_in_the_source, as_masked
from anon_pipeline.report.wording import listed, part, plain_name, sentence, value_text, words

#: The state of a check that had nothing to check, which does not count as passed.
NOT_APPLICABLE = "not applicable"
#: The meaning of each promise for the protected people.
MEANINGS = {
    "k_anonymity": "Whoever looks for one person by these columns finds at least {k} rows that look the same.",
    "k_map": "Every class fits at least {k} people of the population, whoever of them is in the table.",
    "l_diversity": "To know a person's class is not to know their {column} for certain.",
    "alpha_k_anonymity": "Who guesses a person's {column} by their class is right for at most {alpha} of the class.",
    "t_closeness": "In every class {column} is distributed as in the whole table, up to a distance of {t} (1 is the "
    "largest).",
    "beta_likeness": "No value of {column} is more than {times} times as frequent in a class as in the whole table.",
    "delta_disclosure": "No value of {column} is {times} times as frequent in a class as in the whole table, or as "
    "many times rarer.",
    "delta_presence": "Of the people of the population who fit a class, {min} to {max} are in the table.",
}
#: The same of the kind of delta-disclosure that looks at the values of a class only.
OBSERVED = (
    "No value of {column} that a class has is {times} times as frequent there as in the whole table, or as many times "
    "rarer; which values a class lacks is not bounded."
)
#: Models that measure a share of people.
OF_SHARES = ("alpha_k_anonymity", "delta_presence")
#: From this share of people on who are held back, the release is not to be taken for the whole table.
MANY_WAITING = 0.05


@dataclass(frozen=True)
class Promise:
    """One demand with the count from the published file."""

    name: str
    demand: str
    meaning: str
    measured: str
    holds: bool


@dataclass(frozen=True)
class Check:
    """One blocking check."""

    name: str
    asset: str
    demand: str
    measured: str
    state: str  # passed, failed, crashed, not applicable

    @property
    def passed(self) -> bool:
        return self.state == "passed"

    @property
    def holds_back(self) -> bool:
        """Whether it blocks the release; a check that had nothing to check neither passes nor blocks."""
        return self.state not in ("passed", NOT_APPLICABLE)

    @property
    def sentence(self) -> str:
        measured = "" if self.measured == NOT_MEASURED else f", measured: {self.measured}"
        return f"{self.name}: {self.demand} ({self.state}{measured})"


@dataclass(frozen=True)
class Figure:
    """One of the few numbers that most readers look for, after and (if useful) before."""

    value: str
    what: str
    before: str = ""


def promises(content: Mapping[str, Any]) -> list[Promise]:
    """Each demand of the spec with its count; a demand without a count does not hold."""
    asked = list(part(content, "spec").get("privacy") or [])
    pending = [(_name_of(demand), demand) for demand in asked]
    counted = []
    for finding in content.get("verified") or []:
        place = next((number for number, (name, _) in enumerate(pending) if name == finding.get("name")), None)
        demand = pending.pop(place)[1] if place is not None else {}
        holds = finding.get("holds") is True and not finding.get("failing")
        counted.append(
            Promise(
                name=plain_name(words(demand.get("model") or finding.get("name"))),
                demand=sentence(words(finding.get("demand"))),
                meaning=_meaning(demand) if holds else "",
                measured=_measured(words(demand.get("model")), finding.get("measured"), finding.get("failing")),
                holds=holds,
            )
        )
    for _, demand in pending:
        parameters = ", ".join(
            f"{key} {value}" for key, value in demand.items() if key != "model" and value is not None
        )
        model = plain_name(words(demand.get("model")))
        counted.append(Promise(model, sentence(f"{model} with {parameters}"), "", NOT_MEASURED, False))
    return counted


def checks(content: Mapping[str, Any]) -> list[Check]:
    """All checks, those that did not pass first."""
    bounds = {words(bound.get("name")) for bound in part(content, "audit").get("bounds") or []}
    asked = []
    for check in content.get("checks") or []:
        name, measured = words(check.get("name")), check.get("measured")
        asked.append(
            Check(
                name=name,
                asset=words(check.get("asset")),
                demand=sentence(words(check.get("demand"))),
                measured=attack_words.bound_value(name, measured) if name in bounds else value_text(measured),
                state=_state(check),
            )
        )
    return sorted(asked, key=lambda check: (not check.holds_back, check.passed))


def _state(check: Mapping[str, Any]) -> str:
    if check.get("crashed"):
        return "crashed"
    if check.get("passed") is not True:
        return "failed"
    return NOT_APPLICABLE if check.get("applies") is False else "passed"


def broken(promises: Sequence[Promise], checks: Sequence[Check]) -> list[str]:
    """A sentence for everything that does not hold; empty if everything holds."""
    sentences = [f"{promise.demand}: {promise.measured}" for promise in promises if not promise.holds]
    sentences += [check.sentence for check in checks if check.holds_back]
    return sentences if promises else [*sentences, "No count of the published file bears out any promise."]


def some_left_out(content: Mapping[str, Any]) -> bool:
    """Whether people who were masked are not in the release; who was kept out for the audit was never masked."""
    return any(part(content, "rows").get(why) for why in ("sampled_out", "suppressed", "waiting"))


def lead(content: Mapping[str, Any], quasi: list[str], what: str) -> str:
    """The release, or mere table, in two or three sentences, from the counts in the published file."""
    rows = part(content, "rows")
    sentences = []
    if known(rows.get("released")):
        of = f" of {count(rows['source'])}" if known(rows.get("source")) else ""
        sentences.append(f"{count(rows['released'])}{of} people are in this {what}.")
    if "without_target" in rows:
        sentences.append(without_target(content))
    if rows.get("sampled_out"):
        sentences.append(f"{count(rows['sampled_out'])} were left out at random: a part of the people was drawn.")
    if rows.get("suppressed"):
        sentences.append(f"{count(rows['suppressed'])} were left out to protect them.")
    if rows.get("waiting"):
        sentences.append(f"{count(rows['waiting'])} are held back until enough others can be shown with them.")
    if rows.get("held_out"):
        sentences.append(f"{count(rows['held_out'])} were kept out of it so that it could be attacked.")
    coarsened = content.get("coarsened")
    if coarsened and isinstance(coarsened, list | dict):  # with the number of bins in older manifests
        names = ", ".join(map(str, coarsened))
        sentences.append(
            f"There were too many distinct people to count, so these columns were coarsened first: {names}."
        )
    smallest = next(
        (finding.get("measured") for finding in content.get("verified") or [] if finding.get("name") == "k_anonymity"),
        None,
    )
    if known(smallest) and smallest >= 2 and quasi:
        columns = f"the {len(quasi)} columns" if len(quasi) > 1 else "the column"
        sentences.append(
            f"Each looks the same as at least {count(smallest - 1)} others on {columns} "
            "by which a person could be recognized."
        )
    return " ".join(sentences)


def without_target(content: Mapping[str, Any]) -> str:
    """The sentence that people without a target are not in the release, with their approximate number."""
    target, number = plain_name(words(part(content, "spec").get("target"))), part(content, "rows").get("without_target")
    about = f"about {count(number)} people" if known(number) else "how many is not told of so few people"
    return f"Whoever has no value of {target} in the source was left out beforehand: {about}."


def figures(content: Mapping[str, Any]) -> list[Figure]:
    """At most four: unique people, re-identification risk, loss of a model, loss of detail."""
    measured = part(content, "measured")
    risk = part(measured, "risk") or part(content, "risk")
    before, after = part(risk, "before"), part(risk, "after")
    found = []
    if known(after.get("unique_records")):
        what = "people alone by the columns that others may know"
        found.append(_figure(after["unique_records"], before.get("unique_records"), count, what))
    worst = part(after, "prosecutor").get("max")
    if known(worst):
        beside = kept_columns.picked_by_them(part(content, "audit"))
        if beside is not None and beside > worst:
            by_class = f"at worst {percent(worst)} by their class alone"
            what = f"chance to pick a person\u2019s row by kept columns too, on average; {by_class}"
            found.append(Figure(percent(beside), what))
        else:
            at_first = part(before, "prosecutor").get("max")
            found.append(_figure(worst, at_first, percent, "chance to pick a person\u2019s row, at worst"))
    headline = utility_report.headline(part(content, "utility", "metrics"))
    if headline is not None:
        found.append(Figure(headline.after[0], f"{headline.name} of a model trained on it", headline.before[0]))
    loss = part(measured, "information_loss")
    if known(loss.get("mean")):
        what = f"detail lost in the columns, on average{in_steps(loss.get('step'))}"
        found.append(Figure(lost(loss.get("mean"), loss.get("step")), what))
    return found


def cautions(content: Mapping[str, Any]) -> list[str]:
    """A sentence on each risk that no promise covers, and that matters before the release is passed on."""
    declared = part(content, "spec", "columns")
    protected = {demand.get("column") for demand in part(content, "spec").get("privacy") or []}
    measures = part(content, "measured", "sensitive")
    audit = part(content, "audit")
    sentences = [] if audit and not audit.get("skipped") else [_not_attacked(audit)]
    findings = audit.get("findings") or []
    leaks = [finding for finding in findings if finding.get("verdict") == LEAK]
    if leaks:
        at_most = {
            title: percent(
                max(float(part(finding, "leak").get("leak") or 0) for finding in leaks if finding["criterion"] == name)
            )
            for name, (title, _) in attack_words.GROUPS.items()
            if any(finding["criterion"] == name for finding in leaks)
        }
        shares = listed([f"{share} ({title.lower()})" for title, share in at_most.items()])
        sentences.append(
            f"{count(len(leaks))} of {count(len(findings))} attacks found out more about people in this release than "
            f"about others, in at most {shares} of the cases."
        )
    sentences += kept_columns.sentences(audit)
    sentences += singled_out.sentences(content)
    bare = [
        name for name, column in declared.items() if part(column).get("role") == "sensitive" and name not in protected
    ]
    if bare:
        homogeneity = [(name, part(measures, name).get("homogeneity")) for name in bare]
        settled_for = [
            f"{name} for {percent(share)} of the people" for name, share in homogeneity if known(share) and share
        ]
        rest = f", and the class alone settles {listed(settled_for)}" if settled_for else ""
        sentences.append(f"No promise protects {listed(bare)}{rest}.")
    told_of = part(content, "measured", "columns")
    if untold := [name for name in told_of if part(told_of, name).get("withheld") == 1]:
        sentences.append(
            f"No row has a value of {listed(untold)}: the source has none, or none that enough people share."
        )
    since = "since the spec holds that nobody else knows it"
    if kept := as_in_the_source(content, "insensitive"):
        sentences.append(f"Published as in the source, {since}: {listed(kept)}.")
    if masked := as_masked(content, "insensitive"):
        sentences.append(f"Published as masking left it, without being grouped, {since}: {listed(masked)}.")
    if rough := utility_report.of_few_folds(part(content, "utility")):
        sentences.append(rough)
    rows = part(content, "rows")
    waiting, released = (rows.get(name) for name in ("waiting", "released"))
    if known(waiting) and known(released) and waiting > MANY_WAITING * (waiting + released):
        sentences.append(
            f"{percent(waiting / (waiting + released))} of the people are held back: above all those who came, left or "
            "returned at other times than most, so a figure of this release may not be that of the whole table."
        )
    return sentences


def _not_attacked(audit: Mapping[str, Any]) -> str:
    why = audit.get("skipped") or "the audit is switched off"
    return (
        f"This release was not attacked before it left, since {why}: nobody has measured whether it gives away who is "
        "in it, or more about these people than about others."
    )


def _figure(after: Any, before: Any, write: Callable[[Any], str], what: str) -> Figure:
    return Figure(write(after), what, write(before) if known(before) else "")


def _name_of(demand: Mapping[str, Any]) -> str:
    """The name of a demand, as from `privacy.judge.name_of`."""
    column = demand.get("column")
    return f"{demand.get('model')}" if column is None else f"{demand.get('model')}_{column}"


def _meaning(demand: Mapping[str, Any]) -> str:
    model = str(demand.get("model"))
    pattern = OBSERVED if model == "delta_disclosure" and demand.get("kind") == "observed" else MEANINGS.get(model, "")
    try:
        return pattern.format(**{str(key): value for key, value in demand.items()} | _limits(model, demand))
    except (KeyError, IndexError, ValueError, TypeError, OverflowError):
        return ""


def _limits(model: str, demand: Mapping[str, Any]) -> dict[str, str]:
    """The limits of a demand as a reader can picture them: shares in percent, and gains as "3 times"."""
    limits = {name: percent(demand[name]) for name in ("alpha", "min", "max") if name in demand}
    if model == "beta_likeness":
        limits["times"] = count(1 + demand["beta"])
    if model == "delta_disclosure":
        limits["times"] = count(math.exp(demand["delta"]))
    return limits


def _measured(model: str, measured: Any, failing: Any) -> str:
    """The worst value over all classes, and the number of failing classes."""
    text = percent(measured) if model in OF_SHARES else value_text(measured)
    if text != NOT_MEASURED:
        text = f"{text} in the smallest class" if model == "k_anonymity" else f"{text} in the worst class"
    if failing:
        text += f"; {count(failing)} {'class fails' if failing == 1 else 'classes fail'}"
    return text
