"""All attacks on models together: they compare a model trained on the raw table with one trained on its release.

The caller trains and anonymizes; the attacks are in `membership_inference` and `model_inference`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from anon_pipeline.arrays import BoolArray
from anon_pipeline.attack import lira, membership_inference, model_inference, roc
from anon_pipeline.attack.lira import ShadowScores
from anon_pipeline.attack.membership_inference import MembershipFinding
from anon_pipeline.attack.model_answers import Model, Question, Train
from anon_pipeline.attack.rates import Finding, percent
from anon_pipeline.errors import InputError
from anon_pipeline.workers import ALONE, Progress, Workers

RAW = "The model trained on the raw table"
RELEASE = "The model trained on the release"
FITTED = "The given model"


@dataclass(frozen=True)
class Bought:
    """How much anonymization weakened a membership attack, measured on the same people.

    Attributes
    ----------
    attack : as in `MembershipFinding`
    before, after : AUC against the model trained on the raw table and on the release
    change, low, high : `after` minus `before`, with its 95 % interval (paired, DeLong)
    """

    attack: str
    before: float
    after: float
    change: float
    low: float
    high: float

    def sentence(self) -> str:
        """The same in plain words."""
        end = "less" if self.high < 0 else "more" if self.low > 0 else None
        verdict = f"The release-trained model tells {end} about who it was trained on" if end else "No difference shows"
        text = f"{verdict}: {membership_inference.ATTACKS[self.attack]}, an attacker tells members from others in "
        text += f"{percent(self.before)} of the pairs before and {percent(self.after)} after "
        return text + f"(change {self.change * 100:+.1f} points, {self.low * 100:+.1f} to {self.high * 100:+.1f})."


@dataclass(frozen=True)
class ModelsAudit:
    """The results of the attacks on one or two models; every figure is an aggregate.

    Attributes
    ----------
    members, non_members : people asked about, each half of the sample
    membership : per model, the membership attacks
    bought : per membership attack, the change from raw to release; empty for a single model
    inference : per model, attribute inference for each attribute and then model inversion
    """

    members: int
    non_members: int
    membership: tuple[MembershipFinding, ...]
    inference: tuple[Finding, ...]
    bought: tuple[Bought, ...] = field(default=())

    def strongest(self, model: str) -> MembershipFinding:
        """The membership attack with the largest AUC against a model (`RAW`, `RELEASE` or `FITTED`)."""
        against = [finding for finding in self.membership if finding.model == model]
        if not against:
            raise InputError("no such model was attacked")
        return max(against, key=lambda finding: finding.auc)

    def sentences(self) -> list[str]:
        """Everything in plain words, one sentence a result."""
        findings: list[MembershipFinding | Bought] = [*self.membership, *self.bought]
        return [finding.sentence() for finding in findings] + [finding.sentence for finding in self.inference]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "members": self.members,
            "non_members": self.non_members,
            "membership": [finding.to_json() for finding in self.membership],
            "bought": [{**asdict(bought), "sentence": bought.sentence()} for bought in self.bought],
            "inference": [finding.to_json() for finding in self.inference],
        }


@dataclass(frozen=True)
class Effort:
    """How much is tried.

    Attributes
    ----------
    sample : people in the game, half of them members; at least 2,000 are needed to judge .1 % FPR
    shadows : shadow models, an even number, at least 4
    asked : most members, and most non-members, that attribute inference and inversion are tried on
    seed : of all random draws
    delta : for which an empirical lower bound of epsilon is stated
    """

    sample: int = 4000
    shadows: int = 16
    asked: int = 1000
    seed: int = 0
    delta: float = roc.DELTA


DEFAULT_EFFORT = Effort()


def audit_models(
    people: pd.DataFrame,
    question: Question,
    trains: Mapping[str, Train],
    effort: Effort = DEFAULT_EFFORT,
    workers: Workers = ALONE,
    progress: Progress | None = None,
) -> ModelsAudit:
    """Attack a model trained on raw people and one trained on a release of the same people.

    Both are trained on the same random half of a sample. With the shadow models there are 2 (shadows + 1) trainings,
    each on sample / 2 people. Models of so few people remember each person better than a model of the whole table does,
    and a release of so few people has larger boxes. So the figures are about this way to train and to anonymize, and
    not about a certain file.

    Parameters
    ----------
    people : the table, in canonical row order, so that the same people give the same sample; people without a target
        are left out
    trains : by `RAW` and `RELEASE`, `(part, seed) -> fitted model`, where `part` has all columns of `people`; the
        second anonymizes the part, then trains on that. Both models are asked about raw rows
    workers : run trainings side by side; pickle must then be able to store both ways to train
    progress : called with (trainings done, trainings) after each

    Raises
    ------
    InputError
        For columns that are not there, too few people, or a training or a model that fails.
    """
    pool = _drawn(people, question.target, effort.sample, effort.seed)
    halves = lira.draw_halves(len(pool), effort.shadows, effort.seed)
    shadow_scores = lira.train_all_shadows(trains, pool, question, halves, workers, progress)
    membership = [
        finding
        for name, scores_of_model in shadow_scores.items()
        for finding in membership_inference.findings(scores_of_model, name, delta=effort.delta)
    ]
    groups = [np.flatnonzero(side) for side in (halves.member, ~halves.member)]
    rows = np.sort(np.concatenate([group[_some(len(group), effort.asked, effort.seed)] for group in groups]))
    inference = [
        finding
        for name, scores_of_model in shadow_scores.items()
        for finding in _inference(scores_of_model.model, pool.iloc[rows], halves.member[rows], question, name)
    ]
    return ModelsAudit(
        members=int(halves.member.sum()),
        non_members=int((~halves.member).sum()),
        membership=tuple(membership),
        inference=tuple(inference),
        bought=tuple(_bought(shadow_scores[RAW], shadow_scores[RELEASE])),
    )


def audit_fitted(
    model: Model,
    members: pd.DataFrame,
    non_members: pd.DataFrame,
    question: Question,
    effort: Effort = DEFAULT_EFFORT,
) -> ModelsAudit:
    """Attack a fitted model, such as the one that guides the grouping, without training another one.

    Parameters
    ----------
    members, non_members : people the model was and was not trained on, of the same population, in canonical row order

    Raises
    ------
    InputError
        For columns that are not there, an empty group, or a model that fails to answer.
    """
    target, seed, half = question.target, effort.seed, effort.sample // 2
    inside, outside = _drawn(members, target, half, seed), _drawn(non_members, target, half, seed)
    membership = membership_inference.attack_by_loss(model, inside, outside, question, name=FITTED, delta=effort.delta)
    fewer = _drawn(inside, target, effort.asked, seed), _drawn(outside, target, effort.asked, seed)
    people = pd.concat(fewer, ignore_index=True)
    member = np.arange(len(people)) < len(fewer[0])
    inference = _inference(model, people, member, question, FITTED)
    return ModelsAudit(len(inside), len(outside), (membership,), tuple(inference))


def _inference(model: Model, people: pd.DataFrame, member: BoolArray, question: Question, name: str) -> list[Finding]:
    findings = model_inference.attribute_inference(model, people, member, question, name=name)
    return [*findings, model_inference.model_inversion(model, people, member, question, name=name)]


def _bought(raw: ShadowScores, release: ShadowScores) -> list[Bought]:
    """The change of each attack's AUC; both models were asked about the same people."""
    result = []
    before, after = membership_inference.scores(raw), membership_inference.scores(release)
    for attack in before:
        first = roc.check_scores(after[attack], release.halves.member)
        second = roc.check_scores(before[attack], raw.halves.member)
        change, low, high = roc.auc_difference(first, second)
        result.append(Bought(attack, roc.auc(*second).value, roc.auc(*first).value, change, low, high))
    return result


def _drawn(people: pd.DataFrame, target: str, sample: int, seed: int) -> pd.DataFrame:
    """A random sample of the people who have a target, in the order of the table."""
    if target in people:  # if the target is absent, the attacks say so
        people = people[people[target].notna()]
    return people.iloc[_some(len(people), sample, seed)].reset_index(drop=True)


def _some(n: int, sample: int, seed: int) -> npt.NDArray[np.int64]:
    """Places of a random sample among n people, ascending; all places if n is not larger than the sample."""
    return np.sort(np.random.default_rng(np.random.SeedSequence([seed, n, sample])).permutation(n)[:sample])
