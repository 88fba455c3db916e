"""Figures of the source are told with noise, so that no value of a person is ruled out by one that is published."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from anon_pipeline.arrays import IntArray
from anon_pipeline.keys import Key
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.release import fineness
from anon_pipeline.release.facts import losses, risk_of
from anon_pipeline.release.noise import NO_NOISE, SCALE, Noise
from benchmarks.source_figures import Source

KEY = Key(bytes(range(32)))


def keys(number: int) -> list[Key]:
    return [Key(place.to_bytes(32, "big")) for place in range(number)]


def test_noise_is_two_draws_of_the_laplace_distribution() -> None:
    for release in ((), ("v",)):
        drawn = [Noise(KEY, "people", "v", ("risk", str(place)))._drawn(1, *release) for place in range(4000)]
        assert stats.kstest(drawn, stats.laplace.cdf).pvalue > 1e-3
    told = np.array([Noise(key, "people", "v").steps(0.5, 0.05) - 10 for key in keys(4000)])
    assert told.mean() == pytest.approx(0, abs=0.05)
    assert (told**2).mean() == pytest.approx(4 * SCALE**2 + 1 / 12, abs=0.06)


def test_every_figure_of_every_release_has_noise_of_its_own() -> None:
    """Noise that two figures shared would leave with them once one is subtracted from the other."""
    noise = Noise(KEY, "people", "v1").of("information_loss", "age")
    others = [
        replace(noise, key=Key(bytes(32))),
        replace(noise, dataset="others"),
        Noise(KEY, "people", "v1").of("information_loss", "city"),
    ]
    assert len({one._drawn(1) for one in [noise, *others]}) == 4
    assert len({one._drawn(1, release) for one in [noise, *others] for release in ("v1", "v2")}) == 8
    assert noise._drawn(1) == Noise(KEY, "people", "v2").of("information_loss").of("age")._drawn(1.0)


@pytest.mark.long
def test_one_draw_stays_in_the_mean_of_many_releases_and_the_other_between_two() -> None:
    """Else a year of releases tells a figure exactly, or two releases tell by how much one has changed."""
    means, changes = [], []
    for key in keys(300):
        steps = np.array([Noise(key, "people", f"v{month}").of("loss").steps(1e9, 1.0) - 1e9 for month in range(200)])
        means.append(steps.mean())
        changes.append(steps[0] - steps[1])
    assert np.std(means) > 0.9 * math.sqrt(2) * SCALE
    assert np.std(changes) > 0.9 * 2 * SCALE


def test_a_figure_that_is_told_in_two_steps_cannot_be_solved_for() -> None:
    """Of a dataset of about 2,500 people shares stand in steps of .02 in some months and of .05 in others.

    With one draw in both sizes, the means of either tell the share that has none of it.
    """
    solved, share = [], 0.4137
    for key in keys(40):
        means = [
            np.mean(
                [step * Noise(key, "people", f"v{month}").of("loss").steps(share, step) for month in range(of, 150, 2)]
            )
            for of, step in enumerate((0.02, 0.05))
        ]
        solved.append((0.05 * means[0] - 0.02 * means[1]) / 0.03)
    assert fineness.step_of(2_499) == 0.05 and fineness.step_of(2_500) == 0.02
    assert np.std(solved) > 0.02 * math.sqrt(2) * SCALE  # as much as one mean by itself has; a third of it was left


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_whether_a_figure_is_exactly_that_of_another_release_does_not_show(value: float, other: float) -> None:
    """Noise that followed from the value told that nobody's value had changed, where all figures were told alike."""
    noise = Noise(KEY, "people", "v1").of("loss")
    added = [noise.steps(figure, 1e-6) - figure / 1e-6 for figure in (value, other)]
    assert abs(added[0] - added[1]) <= 1


def test_names_of_figures_are_not_joined() -> None:
    """A column called as two others together would else share their noise."""
    whole = Noise(KEY, "people", "v")
    drawn = {whole.of(*names)._drawn(1) for names in (("a", "b"), ("ab",), ("a, b",), ('a", "b',), ("a",))}
    assert len(drawn) == 5


def test_what_is_told_with_noise_is_still_a_share_a_number_or_a_correlation() -> None:
    for key in keys(300):
        noise = Noise(key, "people", "v")
        assert 0 <= fineness.coarse(0.01, 100, noise) <= 1 and 0 <= fineness.coarse(0.99, 100, noise) <= 1
        assert -1 <= fineness.coarse(-0.99, 100, noise, signed=True) <= 1
        assert 0 <= fineness.coarse(3, 100, noise) <= 100 and 0 <= fineness.coarse(98, 100, noise) <= 100
        number = fineness.moved_together(95, 400, 10, noise)
        assert number is not None and 0 <= number <= 400


def test_the_same_number_of_people_has_the_same_noise_wherever_it_is_told() -> None:
    sizes = np.r_[np.ones(176, dtype=np.int64), np.full(112, 2)]
    numbers = set()
    for key in keys(40):
        told = fineness.risk(risk_of(ClassStatistics(sizes=sizes), None), 400, Noise(key, "people", "v"))
        assert told is not None and told["marketer"] == told["prosecutor"]["mean"]
        assert told["unique_records"] == told["records_by_class_size"]["1"]
        numbers.add(told["unique_records"])
    assert len(numbers) > 2


@pytest.mark.long
@pytest.mark.parametrize("times", [1, 12])
def test_noise_leaves_risks_that_can_be(times: int) -> None:
    """The mean risk is the number of classes over that of the people, and fewer people have a higher risk.

    With noise of their own the two disagreed by more than a step in a quarter of the manifests of 400 people.
    """
    sizes = np.repeat([1, 2, 4, 10, 20], np.array([200, 40, 20, 4, 2]) * times)
    people = int(sizes.sum())
    for key in keys(200):
        told = fineness.risk(risk_of(ClassStatistics(sizes=sizes), None), people, Noise(key, "people", "v"))
        assert told is not None
        mean = told["prosecutor"]["mean"]
        assert mean == pytest.approx(told["classes"] / people, abs=0.51 * fineness.step_of(people))
        assert told["marketer"] == mean
        above = [share for share in told["prosecutor"]["share_above"].values() if share is not None]
        assert above == sorted(above, reverse=True)


@pytest.mark.long
def test_noise_does_not_make_people_unique() -> None:
    """The largest risk of a source is 1 if somebody is unique; noise may not say so where nobody is."""
    nobody = risk_of(ClassStatistics(sizes=np.full(40, 10)), None)
    somebody = risk_of(ClassStatistics(sizes=np.ones(400, dtype=np.int64)), None)
    told = {
        name: [fineness.risk(before, 400, Noise(key, "people", "v")) for key in keys(500)]
        for name, before in (("nobody", nobody), ("somebody", somebody))
    }
    says_so = {name: np.mean([one["prosecutor"]["max"] == 1.0 for one in of if one]) for name, of in told.items()}
    assert says_so["nobody"] < 0.01 and says_so["somebody"] == 1


# The attacker knows all values but one, the code, and the classes


PEOPLE = 400


def population(seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    age, kind = random.integers(18, 80, PEOPLE), random.choice(list("abcdefg"), PEOPLE)
    return pd.DataFrame(
        {
            "age": age,
            "town": np.where(random.random(PEOPLE) < 0.3, kind, random.choice(list("pqrst"), PEOPLE)),
            "job": random.choice([f"job {place}" for place in range(9)], PEOPLE),
            "hours": np.clip(random.normal(25 + age / 4, 12, PEOPLE).round(), 1, 80),
            "kind": kind,
        }
    )


def flat(content: object, name: str = "") -> list[tuple[str, object]]:
    if isinstance(content, dict | list):
        parts = content.items() if isinstance(content, dict) else enumerate(content)
        return [pair for key, part in parts for pair in flat(part, f"{name}.{key}")]
    return [(name, content)]


def ruled_out(source: Source, tries: int, draws: list[Noise]) -> float:
    """The share of values that are not the true one and with which the published figures cannot be, or hardly ever.

    Without noise a value is ruled out where it gives other figures. With noise the attacker, who has no key, draws
    the figures of either value again and again; a value is ruled out if nearly all of what the true one makes of some
    figure is never made by it.
    """

    def told(codes: IntArray) -> list[dict[str, object]]:
        return [dict(flat(figures)) for figures in source.figures(codes, draws)]

    true, out = told(source.codes), []
    for changed in source.tried(tries):
        other = told(changed)
        out.append(
            any(sum(one[name] not in {of[name] for of in other} for one in true) > 0.5 * len(draws) for name in true[0])
        )
    return float(np.mean(out))


@pytest.mark.slow
def test_no_value_is_ruled_out_by_the_figures_of_the_source() -> None:
    """Rounded alone, the figures of 400 people rule out more than a tenth of the values."""
    source = Source(population(1))
    assert ruled_out(source, 60, [NO_NOISE]) > 0.1
    assert ruled_out(source, 12, [Noise(key, "people", "v") for key in keys(40)]) == 0


@pytest.mark.long
def test_the_tenth_person_who_differs_does_not_decide_whether_a_column_counts() -> None:
    """Of nine people with another value a column counts as one of a single value, of which nothing is lost."""

    def counts(apart: int) -> float:
        """The share of keys under which the column counts."""
        candidate = {
            "released": 1000, "suppressed": 0, "waiting": 0, "information_loss": {"x": 0.5}, "apart": {"x": apart},
        }  # fmt: skip
        return float(
            np.mean([losses(candidate, Noise(key, "people", "v"))["steps"]["x"] is not None for key in keys(400)])
        )

    nine, ten = counts(9), counts(10)
    assert 0.1 < nine <= ten + 0.05 and ten - nine < 0.25
    assert counts(0) < 0.03 and counts(1) < 0.03 and counts(30) > 0.97
