"""LiRA: shadow models show how likely an answer is with and without each person in the training data.

N. Carlini, S. Chien, M. Nasr, S. Song, A. Terzis, F. Tramer: Membership Inference Attacks From First Principles, S&P
2022. The results are scores; `membership_inference` and `roc` make figures of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from anon_pipeline.arrays import BoolArray, FloatArray
from anon_pipeline.attack import model_answers
from anon_pipeline.attack.model_answers import Answer, Model, Question, Train
from anon_pipeline.errors import InputError
from anon_pipeline.workers import ALONE, Progress, Tally, Workers

#: With fewer trainings on either side a variance per person is too noisy, and a variance pooled over everybody is
#: better (Carlini et al. 2022, who pool it below 64 shadow models).
ENOUGH_FOR_OWN_VARIANCE = 32


@dataclass(frozen=True, eq=False)
class Halves:
    """The people on whom the attacked model and each shadow model are trained: half of all people each.

    Attributes
    ----------
    member : whether each person is in the half of the attacked model, bool of shape (n,)
    inside : the same for the shadow models, bool of shape (s, n); every person is in exactly half of them, and each of
        them is trained on about half of the people
    seeds : of the s + 1 trainings, the attacked model's first
    """

    member: BoolArray
    inside: BoolArray
    seeds: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ShadowScores:
    """An attacked model, and the confidences of it and its shadow models for everybody.

    Attributes
    ----------
    model : the attacked model, trained on the people where `halves.member`
    answer : how to read the confidences (`model_answers.confidence`)
    target : the attacked model's confidence in each person's truth, shape (n,)
    shadows : the same for the shadow models, shape (s, n)
    """

    model: Model
    halves: Halves
    answer: Answer
    target: FloatArray
    shadows: FloatArray


def draw_halves(n: int, shadows: int, seed: int) -> Halves:
    """Random halves of n people; each person is in half of the shadow models, drawn independently of other people.

    Pairs of a half and its complement would also put each person into half of the models. But the two are opposites:
    what many people share is then as much above the mean in one half as below it in the other, and the gap between
    "with" and "without" is noisier than it seems.

    Raises
    ------
    InputError
        For an odd or too small number of shadow models, or fewer than 20 people.
    """
    if shadows < 4 or shadows % 2:
        raise InputError(f"{shadows} shadow models cannot be had; take an even number, at least 4")
    if n < 20:
        raise InputError(f"{n} people are too few to learn a model from half of them; at least 20 are needed")
    random = np.random.default_rng(np.random.SeedSequence([seed, n, shadows]))
    member = np.zeros(n, dtype=np.bool_)
    member[random.permutation(n)[: n // 2]] = True
    half_of_the_models = np.tile(np.arange(shadows) < shadows // 2, (n, 1))
    inside: BoolArray = random.permuted(half_of_the_models, axis=1).T
    seeds = tuple(int(number) for number in random.integers(2**31 - 1, size=shadows + 1))
    return Halves(member, inside, seeds)


def train_all_shadows(
    trains: Mapping[str, Train],
    people: pd.DataFrame,
    question: Question,
    halves: Halves,
    workers: Workers = ALONE,
    progress: Progress | None = None,
) -> dict[str, ShadowScores]:
    """Train an attacked model and its shadows in each of several ways, by name, and ask all of them about everybody.

    Parameters
    ----------
    workers : trainings go side by side in them; each of `trains` must then be what pickle takes
    progress : called with (trainings done, trainings) after each

    Raises
    ------
    InputError
        For columns that are not there, people without a target, or a training or a model that fails.
    """
    asked, truth = model_answers.split(people, question.target, question.features)
    tally = Tally(progress, after=len(trains) * len(halves.inside))

    def task(train: Train, half: BoolArray, seed: int, answer: Answer | None) -> tuple[Any, ...]:
        return train, people[half].reset_index(drop=True), seed, asked, truth, answer

    first = [task(train, halves.member, halves.seeds[0], None) for train in trains.values()]
    attacked = workers.map(_trained_and_asked, first, tally)
    pairs = list(zip(halves.inside, halves.seeds[1:], strict=True))
    tasks = [
        task(train, half, seed, answer)
        for train, (_, answer, _) in zip(trains.values(), attacked, strict=True)
        for half, seed in pairs
    ]
    confidences = [confidence for _, _, confidence in workers.map(_trained_and_asked, tasks, tally.next())]
    return {
        name: ShadowScores(
            model, halves, answer, confidence, np.stack(confidences[place * len(pairs) : (place + 1) * len(pairs)])
        )
        for place, (name, (model, answer, confidence)) in enumerate(zip(trains, attacked, strict=True))
    }


def _trained_and_asked(
    train: Train, part: pd.DataFrame, seed: int, asked: pd.DataFrame, truth: pd.Series, answer: Answer | None
) -> tuple[Model, Answer, FloatArray]:
    """A model trained on a part, how its answers are read, and its confidences; None as the model of a shadow.

    `answer` is given for shadow models only.
    """
    with model_answers.one_thread():
        model = model_answers.ask(lambda: train(part, seed), "be trained")
        used = model_answers.answer_of(model, truth) if answer is None else answer
        confidence = model_answers.confidence(model, asked, truth, used)
    return (model if answer is None else None), used, confidence


def scores(shadow_scores: ShadowScores, *, online: bool = True, own_variance: bool | None = None) -> FloatArray:
    """How much likelier the attacked model's answer is with each person in its training data than without, shape (n,).

    The score is the log-likelihood ratio of two normal distributions, fitted to the shadow models with and without the
    person. Offline, the attacker has only shadow models that never saw the person: the score is then how many standard
    deviations the confidence lies above theirs.

    The confidence is log(p / (1 - p)) where the model gives probabilities, and the margin where it gives decisions. For
    a regression it is minus the size of the error, whose square is far from normal. Where there are only labels, the
    distributions are Bernoulli. A few shadow models cannot give good estimates for each person, so the variances and
    part of the gap between the means (`_shrunk`) are pooled over the people.

    Parameters
    ----------
    own_variance : whether each person has a variance of their own; by default where there are
        `ENOUGH_FOR_OWN_VARIANCE` shadow models on either side
    """
    inside = shadow_scores.halves.inside
    if own_variance is None:
        own_variance = min(inside.sum(axis=0).min(), (~inside).sum(axis=0).min()) >= ENOUGH_FOR_OWN_VARIANCE
    if shadow_scores.answer is Answer.LABEL:
        return _bernoulli_ratio(shadow_scores.target, shadow_scores.shadows, inside, online)
    target, shadows = shadow_scores.target, shadow_scores.shadows
    if shadow_scores.answer is Answer.PROBABILITY:
        least = _resolution(shadows)
        target, shadows = model_answers.log_odds(target, least), model_answers.log_odds(shadows, least)
    if shadow_scores.answer is Answer.NUMBER:
        target, shadows = -np.abs(target), -np.abs(shadows)
    # No answer is known more exactly than this, even if the few shadow models nearly agree.
    least_deviation = max(1e-3 * float(shadows.std()), 1e-12)
    out_mean, out_deviation = _fit(shadows, ~inside, own_variance, least_deviation)
    if not online:
        offline: FloatArray = (target - out_mean) / out_deviation
        return offline
    in_mean, in_deviation = _fit(shadows, inside, own_variance, least_deviation)
    noise = in_deviation**2 / inside.sum(axis=0) + out_deviation**2 / (~inside).sum(axis=0)
    half_gap = _shrunk(in_mean - out_mean, noise) / 2
    middle = (in_mean + out_mean) / 2
    ratio: FloatArray = _log_normal(target, middle + half_gap, in_deviation)
    return ratio - _log_normal(target, middle - half_gap, out_deviation)


def _fit(
    shadows: FloatArray, chosen: BoolArray, own_variance: bool, least_deviation: float
) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the chosen shadow models' answers about each person, both of shape (n,)."""
    count = chosen.sum(axis=0)
    mean = np.where(chosen, shadows, 0.0).sum(axis=0) / count
    squares = np.where(chosen, (shadows - mean) ** 2, 0.0).sum(axis=0)
    pooled = np.full(len(mean), squares.sum() / (count - 1).sum())
    variance = squares / (count - 1) if own_variance else pooled
    return mean, np.maximum(np.sqrt(variance), least_deviation)


def _shrunk(gap: FloatArray, noise: FloatArray) -> FloatArray:
    """The gap between each person's two means, shrunk towards the mean gap as far as it is noise.

    With few shadow models the gap is mostly chance, even in its sign, and the plain ratio is then a weaker attack than
    the offline one. The shrinkage is empirical Bayes (Efron and Morris, JASA 1973): gaps vary among people around their
    mean, and `noise` is the variance of each gap's error.
    """
    common = gap.mean()
    varying = max(float(((gap - common) ** 2).mean() - noise.mean()), 0.0)
    shrunk: FloatArray = common + (gap - common) * varying / (varying + noise)
    return shrunk


def _log_normal(values: FloatArray, mean: FloatArray, deviation: FloatArray) -> FloatArray:
    """Logarithm of the normal density, up to a constant."""
    log_density: FloatArray = -np.log(deviation) - ((values - mean) / deviation) ** 2 / 2
    return log_density


def _bernoulli_ratio(target: FloatArray, shadows: FloatArray, inside: BoolArray, online: bool) -> FloatArray:
    """The likelihood ratio where it is known only whether the model is right (1) or wrong (0)."""

    def right(chosen: BoolArray) -> FloatArray:  # half a count on either side keeps the logarithm finite
        share: FloatArray = (np.where(chosen, shadows, 0.0).sum(axis=0) + 0.5) / (chosen.sum(axis=0) + 1)
        return share

    without = right(~inside)
    if not online:  # as for the normal distribution: the deviation from the mean without the person
        return (target - without) / np.sqrt(without * (1 - without))
    within = right(inside)
    return np.where(target > 0, np.log(within / without), np.log((1 - within) / (1 - without)))


def _resolution(probability: FloatArray) -> float:
    """Half the smallest step by which the probabilities leave 0 and 1, at most .01.

    A forest of 100 trees has steps of .01, and 0 is then a little less than .01, not infinitely less.
    """
    edge = np.minimum(probability, 1 - probability)
    edge = edge[edge > 1e-12]
    return float(np.clip(np.quantile(edge, 0.01) / 2, 1e-9, 0.01)) if len(edge) else 0.01
