"""Membership inference: does a model's answer about a person reveal whether the person was in its training data?

There are two attacks. The loss threshold (Yeom, Giacomelli, Fredrikson, Jha: Privacy Risk in Machine Learning, CSF
2018) asks a fitted model and costs nothing. LiRA (Carlini, Chien, Nasr, Song, Terzis, Tramer: Membership Inference
Attacks From First Principles, S&P 2022) trains shadow models to learn how the answer about each person is distributed
with and without the person in the training data, and takes the likelihood ratio.

The attacker of LiRA is the strongest: they draw from the same people, know how the model was trained (and how the table
was anonymized before), and know every feature and the target of the people they ask about. `roc` explains the figures;
`models_audit` compares models before and after anonymization.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from anon_pipeline.arrays import BoolArray, FloatArray
from anon_pipeline.attack import lira, model_answers, roc
from anon_pipeline.attack.lira import ShadowScores
from anon_pipeline.attack.model_answers import Answer, Model, Question
from anon_pipeline.attack.rates import Rate, percent
from anon_pipeline.attack.roc import OperatingPoint


@dataclass(frozen=True)
class MembershipFinding:
    """How well an attack on a model recovers which people were in its training data.

    Attributes
    ----------
    model : which model, in words that go into a sentence
    attack : "loss_threshold", "lira" or "lira_offline"
    answer : which part of the model's answers was used (`model_answers.Answer`)
    members, non_members : number of people asked about (the targets)
    shadows : number of shadow models; 0 for the loss threshold
    auc, auc_low, auc_high : chance to distinguish a member from a non-member, with its 95 % interval; .5 is guessing
    at_1_percent, at_0_1_percent : share of the members found at 1 % and .1 % false accusations; None where there are
        too few non-members (100 and 1,000) for that rate
    epsilon : the empirical lower bound of epsilon (`roc.epsilon_lower_bound`), None where there is none
    """

    model: str
    attack: str
    answer: str
    members: int
    non_members: int
    shadows: int
    auc: float
    auc_low: float
    auc_high: float
    at_1_percent: OperatingPoint | None
    at_0_1_percent: OperatingPoint | None
    epsilon: float | None

    @property
    def leaks(self) -> bool:
        """Whether the attack is better than guessing beyond its 95 % interval, or has a lower bound of epsilon."""
        return self.auc_low > 0.5 or self.epsilon is not None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "leaks": self.leaks, "sentence": self.sentence()}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> MembershipFinding:
        """The finding from the plain data of `to_json`."""
        figures = {name: plain[name] for name in cls.__dataclass_fields__}
        for name in ("at_1_percent", "at_0_1_percent"):
            if (point := plain[name]) is not None:
                found = Rate(**point["true_positive_rate"])
                figures[name] = OperatingPoint(**{**point, "true_positive_rate": found})
        return cls(**figures)

    def sentence(self) -> str:
        """The finding in plain words."""
        text = (
            f"{self.model}: asked about {self.members:,} people it was trained on and {self.non_members:,} it was not, "
            f"an attacker ({ATTACKS[self.attack]}) tells one from the other in {percent(self.auc)} of "
            f"the pairs ({percent(self.auc_low)} to {percent(self.auc_high)}; guessing: 50 %)"
        )
        for rate, share, point in (("1 %", 0.01, self.at_1_percent), ("0.1 %", 0.001, self.at_0_1_percent)):
            if point is None and self.non_members * share >= 1 - 1e-9:
                continue  # it is known and not told
            if point is None:
                text += f"; too few people to say anything at {rate} false accusations"
            else:
                members_found = point.true_positive_rate
                text += f"; at {rate} false accusations they find {percent(members_found.rate)} of the members "
                text += f"({percent(members_found.low)} to {percent(members_found.high)})"
        if self.epsilon is not None:
            text += f"; this attacker's measured lower bound of epsilon is {self.epsilon:.2f}, which guarantees nothing"
        return text + "."


#: How an attacker proceeds, in words, by the name of the attack.
ATTACKS = {
    "loss_threshold": "by the size of its error",
    "lira": "with shadow models",
    "lira_offline": "with shadow models that never saw the person",
}


@dataclass(frozen=True)
class MembershipAttack:
    """The attack and the attacked model, in the words of `MembershipFinding`; `answer` is how the model answers."""

    model: str
    attack: str
    answer: Answer
    shadows: int = 0


# ---------------------------------------------------------------------------------------------------- whole attacks


def attack_by_loss(
    model: Model,
    members: pd.DataFrame,
    non_members: pd.DataFrame,
    question: Question,
    *,
    name: str = "the model",
    delta: float = roc.DELTA,
) -> MembershipFinding:
    """The loss-threshold attack on a fitted model.

    Parameters
    ----------
    members, non_members : people with features and target; the model was trained on the members (or on a release of
        them) and on none of the non-members, who must come from the same population

    Raises
    ------
    InputError
        For columns that are not there, people without a target, an empty group or a model that fails to answer.
    """
    groups = [model_answers.split(people, question.target, question.features) for people in (members, non_members)]
    asked = pd.concat([frame for frame, _ in groups], ignore_index=True)
    truth = pd.concat([labels for _, labels in groups], ignore_index=True)
    member = np.arange(len(asked)) < len(members)
    answer = model_answers.answer_of(model, truth)
    with model_answers.one_thread():
        confidence = model_answers.confidence(model, asked, truth, answer)
    attack = MembershipAttack(name, "loss_threshold", answer)
    return finding(loss_scores(confidence, answer), member, attack, delta)


def findings(shadow_scores: ShadowScores, name: str, *, delta: float = roc.DELTA) -> list[MembershipFinding]:
    """All attacks on a model with shadow models: "lira", "lira_offline", "loss_threshold"."""
    member, answer = shadow_scores.halves.member, shadow_scores.answer
    return [
        finding(scored, member, MembershipAttack(name, attack, answer, _shadows_used(attack, shadow_scores)), delta)
        for attack, scored in scores(shadow_scores).items()
    ]


def _shadows_used(attack: str, shadow_scores: ShadowScores) -> int:
    return 0 if attack == "loss_threshold" else len(shadow_scores.shadows)


def finding(
    scored: FloatArray, member: BoolArray, attack: MembershipAttack, delta: float = roc.DELTA
) -> MembershipFinding:
    """The figures of an attack from its scores of shape (n,), larger for those who look like members."""
    members, non_members = roc.check_scores(scored, member)
    area = roc.auc(members, non_members)
    points = [roc.operating_point(members, non_members, rate, delta=delta) for rate in roc.JUDGED_AT]
    return MembershipFinding(
        model=attack.model,
        attack=attack.attack,
        answer=str(attack.answer),
        members=len(members),
        non_members=len(non_members),
        shadows=attack.shadows,
        auc=area.value,
        auc_low=area.low,
        auc_high=area.high,
        at_1_percent=points[0],
        at_0_1_percent=points[1],
        epsilon=roc.best_epsilon(points),
    )


# ---------------------------------------------------------------------------------------------------- scores


def scores(shadow_scores: ShadowScores) -> dict[str, FloatArray]:
    """By attack, a score of how much each person looks like a member, shape (n,)."""
    return {
        "lira": lira.scores(shadow_scores),
        "lira_offline": lira.scores(shadow_scores, online=False),
        "loss_threshold": loss_scores(shadow_scores.target, shadow_scores.answer),
    }


def loss_scores(confidences: FloatArray, answer: Answer) -> FloatArray:
    """Minus the loss of each person, on any monotone scale: people with a small loss are taken for members."""
    return -np.abs(confidences) if answer is Answer.NUMBER else confidences
