"""The facts of a manifest, computed from the stored facts of the steps by pure functions, without files or people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from anon_pipeline.anonymize.policy import mean_loss
from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.privacy.measures import describe
from anon_pipeline.privacy.risk import reidentification_risk
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.privacy.uniqueness import population_uniqueness
from anon_pipeline.release import attack_figures, fineness, manifest, masking_figures
from anon_pipeline.release.noise import NO_NOISE, Noise
from anon_pipeline.spec import ReleaseSpec

Facts = dict[str, Any]


@dataclass(frozen=True)
class Evidence:
    """The facts about a candidate for release whose checks have passed.

    Attributes
    ----------
    source, people, candidate, utility : facts of the steps that made them; `people` were grouped
    coarsened : bins by column, if there were too many distinct people; which columns, is published
    distinct_people : the classes in the source: people who share each combination of quasi-identifiers
    classes : the classes of the candidate, counted from its file
    beside_population : its class table with the population's people per class; None without a population
    examples : a few of its classes
    attacks : results of the attacks; None if none were requested
    across_releases : the entry on sequential publication; None without it
    maps : maps of released positions
    checks : all answers
    runs : ids in Dagster and MLflow
    noise : that of all figures which are counted from the source
    """

    source: Facts
    people: Facts
    candidate: Facts
    utility: Facts
    coarsened: Mapping[str, int]
    distinct_people: ClassStatistics
    classes: ClassStatistics
    beside_population: ClassStatistics | None
    examples: Sequence[Facts]
    attacks: Facts | None
    across_releases: Facts | None
    maps: Sequence[Facts]
    checks: Sequence[Facts]
    runs: Mapping[str, str]
    noise: Noise


@dataclass(frozen=True)
class GroupEvidence:
    """The facts about a table of groups whose checks have passed.

    Attributes
    ----------
    source, masked : facts of the steps that stored the people
    groups : the counts of the table
    last_step : the report of the step that made the groups
    checks : all answers
    runs : ids in Dagster and MLflow
    noise : that of all figures which are counted from the source
    """

    source: Facts
    masked: Facts
    groups: Facts
    last_step: Facts
    checks: Sequence[Facts]
    runs: Mapping[str, str]
    noise: Noise


def facts_of_people(spec: ReleaseSpec, of: Evidence) -> dict[str, Any]:
    """The facts of a release of people, each as fine as may be published."""
    source, candidate = SourceFacts.from_json(of.source), of.candidate
    grouped = of.distinct_people.n
    without_target = _without_target(spec, source, of.noise)
    stated = _stated_fraction(spec, source.rows, of.people["held_out"] + (without_target.get("without_target") or 0))
    after_steps = SourceFacts.from_json(of.people).rows
    before, after = (
        risk_of(counted, None if stated is None else stated * counted.n / after_steps)
        for counted in (of.distinct_people, of.classes)
    )
    if of.beside_population is not None:
        after |= fineness.beside_population(asdict(reidentification_risk(of.beside_population)))
        before |= {"marketer": None}  # the source is not compared with the population
    # Weights that are not released do not follow from the release, so figures from them stay in the private zone.
    if candidate.get("weighted") is not None and spec.sampling_weight in spec.released:
        after |= fineness.weighted(candidate["weighted"], candidate["released"])
    attacks = attack_figures.audit(of.attacks, spec.audit, of.noise)
    return {
        "source": _source(spec, of.source),
        "coarsened": [*of.coarsened],  # into how many bins says how many people have which values
        "rows": {
            "source": source.rows + of.people["held_out"],
            **without_target,
            "sampled_out": source.rows - after_steps,
            "held_out": of.people["held_out"],
            "released": candidate["released"],
            "suppressed": candidate["suppressed"],
            "waiting": candidate["waiting"],
        },
        "across_releases": of.across_releases,
        "measured": {
            "class_sizes": manifest.class_sizes(of.classes.sizes),
            "columns": candidate["columns"],
            "marginals": candidate["marginals"],
            "associations": fineness.associations(candidate["associations"], grouped, of.noise),
            "information_loss": losses(candidate, of.noise),
            "sensitive": describe(of.classes),
            "risk": {"before": fineness.risk(before, grouped, of.noise), "after": after},
            "noise": of.noise.scale,
        },
        "utility": fineness.utility(of.utility, of.noise.of("utility")),
        "audit": attacks,
        "masking": masking_figures.masking(of.people.get("masking"), of.noise),
        "maps": of.maps,
        "examples": of.examples,
        "checks": attack_figures.checks(of.checks, attacks),
        "runs": of.runs,
    }


def losses(candidate: Facts, noise: Noise) -> Facts:
    """The information that a candidate loses, by column and on average, in the steps in which it may be published.

    The step of a column follows from how many people differ, with noise as well: one of them would else decide it.
    """
    grouped = sum(int(candidate[of]) for of in ("released", "suppressed", "waiting"))
    columns, steps = {}, {}
    for name, share in candidate["information_loss"].items():
        of_column = noise.of("information_loss", name)
        apart = fineness.in_steps(candidate["apart"][name], fineness.DECIDING, of_column.of("apart"))
        step = steps[name] = fineness.step_of_loss(grouped, apart)
        columns[name] = 0.0 if step is None else fineness.share_in_steps(share, step, of_column)
    mean = fineness.lost({"mean": mean_loss(columns)}, grouped, NO_NOISE)["mean"]  # of what is told
    return {"columns": columns, "mean": mean, "step": fineness.step_of(grouped), "steps": steps}


def facts_of_groups(spec: ReleaseSpec, of: GroupEvidence) -> dict[str, Any]:
    """The facts of a release of groups instead of rows of people."""
    rows = SourceFacts.from_json(of.source).rows
    return {
        "source": _source(spec, of.source),
        "rows": {
            "source": rows,
            **_without_target(spec, SourceFacts.from_json(of.source), of.noise),
            "sampled_out": rows - SourceFacts.from_json(of.masked).rows,
            "released": of.groups["groups"],
        },
        "groups": of.groups,
        "masking": [_without_rows(step) for step in [*of.masked["masking"], of.last_step]],
        "checks": of.checks,
        "runs": of.runs,
    }


def risk_of(classes: ClassStatistics, sampling_fraction: float | None) -> dict[str, Any]:
    """Re-identification risk as plain data, with estimates of the population's uniques if its size is known."""
    risk = asdict(reidentification_risk(classes))
    if sampling_fraction is not None:
        estimates = population_uniqueness(classes.sizes, sampling_fraction)
        risk["population_uniqueness"] = {name: asdict(estimate) for name, estimate in estimates.items()}
    return risk


def _stated_fraction(spec: ReleaseSpec, rows: int, left_out: int) -> float | None:
    """The share of the population that the people are who are left after the steps; None where none is stated.

    Who was held out, or left out since they have no target, belongs to the stated share, too. So do those who are
    withheld or suppressed, of whom the caller knows.

    Parameters
    ----------
    rows : people of the source without those
    left_out : how many they are, as it is told: an exact number would follow from the share
    """
    stated = spec.sampling_fraction
    return stated if stated is None or not left_out else stated * rows / (rows + left_out)


def _source(spec: ReleaseSpec, facts: Facts) -> dict[str, Any]:
    source = SourceFacts.from_json(facts)
    columns = manifest.source_columns(spec, source)
    table = {} if source.table is None else {"table": source.table}
    kinds = {"kinds": facts["kinds"]} if "kinds" in facts else {}
    return {"rows": source.rows, "content_hash": facts["read"], "columns": columns, **kinds, **table}


def _without_target(spec: ReleaseSpec, source: SourceFacts, noise: Noise) -> Facts:
    """The number of people left out because they have no target, coarsened, since it is counted in the source alone.

    If the spec leaves such people out, the entry exists even if there are none.
    """
    if spec.missing_target != "leave_out":
        return {}
    return {"without_target": fineness.coarse(source.left_out, source.rows, noise.of("without_target"))}


def _without_rows(report: dict[str, Any]) -> dict[str, Any]:
    """The report of a step without its figures on single rows, since no rows are released."""
    return {**masking_figures.stated(report), "costs": {}, "linkage": None}
