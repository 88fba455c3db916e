"""LiRA beside a slow reading of its definition, person by person, and the halves that a seed draws."""

from __future__ import annotations

import math
from statistics import mean, stdev
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.attack import lira
from anon_pipeline.attack.model_answers import Answer, Question


def shadow_scores(answer: Answer, target: Any, shadows: Any, inside: Any) -> lira.ShadowScores:
    halves = lira.Halves(np.zeros(len(target), bool), np.array(inside, bool), ())
    return lira.ShadowScores(None, halves, answer, np.array(target, float), np.array(shadows, float))


def log_density(value: float, middle: float, deviation: float) -> float:
    return -math.log(deviation) - ((value - middle) / deviation) ** 2 / 2


def slowly(target: Any, shadows: Any, inside: Any, own_variance: bool, online: bool) -> list[float]:
    """The scores of confidences that are nearly normal, for shadow models that do not agree."""
    people = range(len(target))
    sides = [[shadows[inside[:, i] == side, i].tolist() for i in people] for side in (True, False)]
    means = [[mean(answers) for answers in side] for side in sides]
    pooled = [
        math.sqrt(
            sum((answer - mean(answers)) ** 2 for answers in side for answer in answers)
            / sum(len(answers) - 1 for answers in side)
        )
        for side in sides
    ]
    deviations = [
        [stdev(answers) if own_variance else common for answers in side]
        for side, common in zip(sides, pooled, strict=True)
    ]
    if not online:
        return [(target[i] - means[1][i]) / deviations[1][i] for i in people]
    gaps = [means[0][i] - means[1][i] for i in people]
    noise = [sum(deviations[side][i] ** 2 / len(sides[side][i]) for side in (0, 1)) for i in people]
    varying = max(mean((gap - mean(gaps)) ** 2 for gap in gaps) - mean(noise), 0.0)
    shrunk = [mean(gaps) + (gaps[i] - mean(gaps)) * varying / (varying + noise[i]) for i in people]
    return [
        log_density(target[i], mean((means[0][i], means[1][i])) + shrunk[i] / 2, deviations[0][i])
        - log_density(target[i], mean((means[0][i], means[1][i])) - shrunk[i] / 2, deviations[1][i])
        for i in people
    ]


def drawn(seed: int, low: float, high: float) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(seed)
    inside = np.arange(7)[:, None] < np.array([3, 4, 5, 2, 4])
    return random.uniform(low, high, 5), random.uniform(low, high, (7, 5)) + inside * (high - low) / 9, inside


@pytest.mark.parametrize("online", [True, False])
@pytest.mark.parametrize("own_variance", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_scores_are_those_of_the_definition(seed: int, own_variance: bool, online: bool) -> None:
    target, shadows, inside = drawn(seed, -3, 3)
    shadows[:, 3] += 4 * inside[:, 3]  # so that not all of the gaps is noise
    margins = shadow_scores(Answer.MARGIN, target, shadows, inside)
    found = lira.scores(margins, online=online, own_variance=own_variance)
    assert found == pytest.approx(slowly(target, shadows, inside, own_variance, online))
    errors = shadow_scores(Answer.NUMBER, target, shadows, inside)
    found = lira.scores(errors, online=online, own_variance=own_variance)
    assert found == pytest.approx(slowly(-np.abs(target), -np.abs(shadows), inside, own_variance, online))


@pytest.mark.parametrize("online", [True, False])
def test_probabilities_are_judged_by_their_log_odds(online: bool) -> None:
    target, shadows, inside = drawn(0, 0.02, 0.85)
    it = shadow_scores(Answer.PROBABILITY, target, shadows, inside)
    found = lira.scores(it, online=online, own_variance=False)
    odds = [np.log(p / (1 - p)) for p in (target, shadows)]
    assert found == pytest.approx(slowly(*odds, inside, False, online))
    never = shadow_scores(
        Answer.PROBABILITY, [0.0, 1.0], [[0.0, 1.0], [1.0, 0.0]] * 2, [[1, 1], [1, 1], [0, 0], [0, 0]]
    )
    assert lira.scores(never, online=False) == pytest.approx(np.array([-1, 1]) / math.sqrt(2))  # odds of 99 and 1 / 99


@pytest.mark.parametrize(
    ("within", "without", "own"), [(32, 32, True), (40, 32, True), (40, 31, False), (31, 40, False), (33, 33, True)]
)
def test_each_person_has_an_own_variance_where_32_shadow_models_are_on_either_side(
    within: int, without: int, own: bool
) -> None:
    shadows = np.random.default_rng(0).normal(size=(within + without, 3)) * [1, 2, 3]
    inside = np.repeat([[True] * 3, [False] * 3], [within, without], axis=0)
    it = shadow_scores(Answer.MARGIN, [0.0, 1.0, 2.0], shadows, inside)
    assert lira.scores(it).tolist() == lira.scores(it, own_variance=own).tolist()
    assert lira.scores(it).tolist() != lira.scores(it, own_variance=not own).tolist()


def test_no_answer_is_known_more_exactly_than_to_a_thousandth_of_the_deviation_of_all() -> None:
    inside = [[1, 1], [1, 1], [0, 0], [0, 0]]
    it = shadow_scores(Answer.MARGIN, [1.0, 0.5], [[1, 1], [1, 1], [0, 0], [0, 0]], inside)
    assert lira.scores(it, online=False) == pytest.approx([1 / 5e-4, 0.5 / 5e-4])
    alike = shadow_scores(Answer.MARGIN, [1.0, 0.5], np.zeros((4, 2)), inside)
    assert lira.scores(alike, online=False) == pytest.approx([1e12, 5e11])


def test_a_probability_at_the_end_of_what_a_double_tells_from_0_has_no_step() -> None:
    assert lira._resolution(np.array([1e-12, 1 - 1e-13])) == 0.01
    assert lira._resolution(np.array([0.25])) == 0.01
    assert lira._resolution(np.array([0.012])) == pytest.approx(0.006)


MEMBER = [1, 2, 3, 4, 10, 11, 12, 14, 15, 19]
INSIDE = ["00110110011001001011", "11000100110000110010", "11001001000110110101", "00111011101111001100"]
SEEDS = (137642784, 757531472, 1857875483, 1922372500, 127701602)


def test_the_halves_and_seeds_of_a_seed_are_the_same_in_every_version() -> None:
    halves = lira.draw_halves(20, 4, 3)
    assert np.flatnonzero(halves.member).tolist() == MEMBER
    assert ["".join(map(str, row)) for row in halves.inside.astype(int).tolist()] == INSIDE
    assert halves.seeds == SEEDS


class Constant:
    """A model that tells its number, whoever it is asked about."""

    classes_ = np.array(["no", "yes"])

    def __init__(self, probability: float) -> None:
        self.probability = probability

    def predict_proba(self, people: pd.DataFrame) -> Any:
        return np.tile([1 - self.probability, self.probability], (len(people), 1))


def test_two_ways_to_train_are_kept_apart_and_their_trainings_counted_together() -> None:
    people = pd.DataFrame({"a": np.arange(20.0), "ill": ["yes", "no"] * 10})
    halves, told = lira.draw_halves(20, 4, 0), []
    trains = {
        "raw": lambda part, seed: Constant(seed / 2**33),
        "release": lambda part, seed: Constant(0.5 + seed / 2**33),
    }
    found = lira.train_all_shadows(
        trains, people, Question("ill", ["a"]), halves, progress=lambda done, every: told.append((done, every))
    )
    assert told == [(done, 10) for done in range(1, 11)]
    for name, base in (("raw", 0.0), ("release", 0.5)):
        scores = found[name]
        assert scores.model.probability == base + halves.seeds[0] / 2**33
        assert scores.shadows[:, 0] == pytest.approx([base + seed / 2**33 for seed in halves.seeds[1:]])
        assert scores.shadows.shape == (4, 20)
