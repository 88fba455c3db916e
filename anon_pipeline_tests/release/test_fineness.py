"""Published figures are told so coarsely that one person seldom shows."""

import math
from collections import Counter
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.keys import Key
from anon_pipeline.privacy.risk import reidentification_risk
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.release import fineness
from anon_pipeline.release.facts import risk_of
from anon_pipeline.release.noise import NO_NOISE, Noise


@given(st.floats(-1, 1), st.integers(fineness.FEWEST, 10**9))
def test_a_share_is_told_within_half_a_step_of_what_chance_alone_moves_it_by(share: float, people: int) -> None:
    told = fineness.coarse(share, people, NO_NOISE, signed=True)
    assert 1 / math.sqrt(people) <= fineness.step_of(people) * (1 + 1e-6) <= 2.51 / math.sqrt(people)
    assert abs(told - share) <= fineness.step_of(people) / 2 + 1e-3 * abs(share)


@pytest.mark.long
@pytest.mark.parametrize("people", [400, 48_842, 10**6])
def test_one_person_seldom_moves_a_share(people: int) -> None:
    """Of all shares of n people, about one in sqrt(n) is told otherwise with one person more."""
    shares = np.random.default_rng(0).random(20_000)
    moved = [
        fineness.coarse(float(one), people, NO_NOISE) != fineness.coarse(float(one) + 1 / people, people, NO_NOISE)
        for one in shares
    ]
    assert np.mean(moved) <= 1.3 / math.sqrt(people) + 1e-3


def test_people_are_counted_in_steps_too() -> None:
    assert fineness.coarse({"a": 176, "b": [132, 0], "c": "text", "d": None, "e": True}, 400, NO_NOISE) == {
        "a": 180, "b": [140, 0], "c": "text", "d": None, "e": True,
    }  # fmt: skip


@given(st.integers(100, 10**6), st.floats(0, 1))
def test_of_some_people_never_more_are_counted_than_there_are(people: int, share: float) -> None:
    counted = round(share * people)
    told = fineness.coarse(counted, people, NO_NOISE)
    assert 0 <= told <= people
    assert abs(told - counted) <= math.sqrt(people) * 2.5 / 2  # half a step, which is at most 2.5 times the root


def test_not_more_people_are_unique_than_there_are() -> None:
    before = {"unique_records": 398, "prosecutor": {"max": 1.0, "mean": 1.0}}
    told = fineness.risk(before, 398, NO_NOISE)
    assert told is not None and told["unique_records"] == told["records"] == 398


def test_what_is_rounded_to_nothing_has_no_sign() -> None:
    assert [str(fineness.coarse(share, 1000, NO_NOISE)) for share in (-1e-9, 0.0, 1e-9)] == ["0.0"] * 3


def test_of_few_people_nothing_is_told() -> None:
    assert fineness.coarse({"a": 0.5, "b": 7, "c": "text"}, 24, NO_NOISE) == {"a": None, "b": None, "c": "text"}
    assert fineness.risk({"records": 24}, 24, NO_NOISE) is None
    fewest = fineness.FEWEST
    assert fineness.risk({"records": fewest - 1}, fewest - 1, NO_NOISE) is None
    assert fineness.risk({"records": fewest}, fewest, NO_NOISE) == {"records": fewest}
    of_pair = {"columns": ["a", "b"], "measure": "spearman", "before": 0.11, "after": None, "people": fewest}
    pair = {"pairs": [of_pair | {"apart": (fewest, fewest)}]}
    assert [fineness.associations(pair, people, NO_NOISE)["step"] for people in (fewest - 1, fewest)] == [None, 0.1]
    assert [fineness.coarse(0.11, people, NO_NOISE) for people in (fewest - 1, fewest)] == [None, 0.1]


def test_floats_have_four_digits_and_the_rest_is_left_alone() -> None:
    content = {"a": 0.123456789, "b": [1234.5678, -1e-9 / 3], "c": 123456789, "d": "0.123456", "e": None}
    assert fineness.rounded(content) == {
        "a": 0.1235, "b": [1235.0, -3.333e-10], "c": 123456789, "d": "0.123456", "e": None,
    }  # fmt: skip


def test_ties_before_and_after_are_told_in_the_same_steps() -> None:
    def pair(before: float | None, people: int, apart: int, **more: Any) -> dict[str, Any]:
        plain = {"columns": ["a", "b"], "measure": "spearman", "before": before, "after": 0.1301, "people": people}
        return plain | {"apart": (apart, people)} | more

    pairs = [
        pair(-0.1234, 10_000, 5_000),
        pair(0.3, 10_000, 5_000, measure="cramers_v", after=0.13),
        pair(-0.1234, 2_500, 900),
        pair(-0.1234, 97, 90),
        pair(None, 0, 0),
        pair(0.7, 10_000, 40),
        pair(0.7, 10_000, 8),
        pair(0.7, 400, 300, after=None),
    ]
    told = fineness.associations({"columns": ["a", "b"], "pairs": pairs}, 10_000, NO_NOISE)
    assert told["step"] == 0.01
    assert [(pair["before"], pair["after"]) for pair in told["pairs"]] == [
        (-0.12, 0.13), (0.3, 0.1414), (-0.12, 0.14), (None, None), (None, None),
        (0.7, 0.1), (None, None), (0.7, None),
    ]  # fmt: skip
    assert all(not {"people", "apart"} & set(pair) for pair in told["pairs"]), (
        "how many have a value may be counted in the release only"
    )


#: Noise under many keys.
NOISES = [Noise(Key(place.to_bytes(32)), "people", "v") for place in range(1_000)]


def likely_alike(without: Counter[Any], having: Counter[Any]) -> bool:
    """Whether either table tells what the other one does, about as often."""
    return without.keys() == having.keys() and all(1 / 3 < without[told] / having[told] < 3 for told in having)


def test_one_person_does_not_decide_whether_an_association_is_told() -> None:
    """Nine of 400 had another number than all others: that there was an association told that the last one had, too."""

    def told(apart: int) -> Counter[bool]:
        pair = {"columns": ["a", "b"], "measure": "spearman", "before": 0.4, "after": None, "people": 400}
        content = {"pairs": [pair | {"apart": (apart, 300)}]}
        return Counter(fineness.associations(content, 400, each)["pairs"][0]["before"] is None for each in NOISES)

    assert likely_alike(told(9), told(10)) and told(9)[True] > 100
    assert told(0)[True] > 990 and told(300)[False] == 1_000


@pytest.mark.parametrize("people", [fineness.FEWEST, 400, 2_500])
def test_one_persons_two_values_hardly_decide_the_step_of_an_association(people: int) -> None:
    """Whoever knew of all but one person who has both values saw by the step whether this one has them, too."""

    def told(counting: int) -> Counter[float | None]:
        pair = {"columns": ["a", "b"], "measure": "spearman", "before": -0.1, "after": 0.1301}
        pair |= {"people": counting, "apart": (counting, counting)}
        return Counter(fineness.associations({"pairs": [pair]}, 10_000, each)["pairs"][0]["after"] for each in NOISES)

    without, having = told(people - 1), told(people)
    assert likely_alike(without, having) and len(having) == 2


def of_group(people: int, **metrics: Any) -> dict[str, Any]:
    compared = {
        name: {when: {"mean": mean, "low": -1.0, "high": 1.0, "per_fold": []} for when, mean in scores.items()}
        for name, scores in metrics.items()
    }
    return {"column": "city", "value": "Essen", "people": people, "metrics": compared}


def test_of_a_group_only_the_difference_of_the_accuracy_is_published() -> None:
    """The accuracy itself, and an AUC that is not defined, say that all of a group have one value: a class hides it."""
    alike = of_group(
        2_500,
        accuracy={"before": 1.0, "after": 0.94, "difference": -0.06},
        roc_auc={"before": None, "after": None, "difference": None},
    )
    paid = of_group(2_500, mae={"before": 4e4, "after": 3e4, "difference": -1e4})
    of_few = of_group(97, accuracy={"before": 1.0, "after": 0.9, "difference": -0.1})
    content = {
        "rows": 10_000,
        "subgroups": [alike, paid, of_few],
        "targets": {"x": {"rows": 10_000, "subgroups": [alike]}},
    }
    told = fineness.utility(content, NO_NOISE)
    expected = {
        "column": "city", "value": "Essen", "people": 2_500, "step": 0.02,
        "metrics": {"accuracy": {"difference": {"mean": -0.06}}},
    }  # fmt: skip
    assert told["subgroups"] == told["targets"]["x"]["subgroups"] == [expected]


def of_calibration(people: list[int], observed: list[float]) -> dict[str, Any]:
    groups = {"people": people, "predicted": [0.01234567 + 0.1 * place for place in range(len(people))]}
    return {"of": "yes", "error": {"mean": 0.0123456}, "before": groups | {"observed": observed}, "after": groups | {
        "observed": list(reversed(observed))
    }}  # fmt: skip


@pytest.mark.parametrize("positives", range(4))
def test_calibration_does_not_say_that_nobody_of_a_group_has_the_value(positives: int) -> None:
    """Whoever can tell from the release that somebody belongs to the group would know that person's value."""
    observed = [positives / 1_000, *[0.5] * 8, 1 - positives / 1_000]
    content = {"rows": 10_000, "task": "classification", "calibration": of_calibration([1_000] * 10, observed)}
    published = fineness.utility(content, NO_NOISE)["calibration"]
    assert published["before"]["observed"] == [0.0, *[0.5] * 8, 1.0]
    assert published["step"] == fineness.step_of(1_000) == 0.05
    assert published["before"]["predicted"][0] == 0.01235 and published["error"] == {"mean": 0.01235}
    assert fineness.utility({"rows": 9, "task": "regression", "targets": {"x": content}}, NO_NOISE)["targets"]["x"] == {
        **content, "calibration": published,
    }  # fmt: skip


@given(
    st.lists(st.tuples(st.integers(1, 400), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=10),
    st.lists(st.tuples(st.integers(1, 400), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=10),
)
def test_groups_of_calibration_have_a_hundred_people_and_the_same_mean(
    before: list[tuple[int, float, float]], after: list[tuple[int, float, float]]
) -> None:
    rows = min(sum(people for people, *_ in groups) for groups in (before, after))
    groups = {
        when: dict(zip(("people", "predicted", "observed"), map(list, zip(*those, strict=True)), strict=True))
        for when, those in (("before", before), ("after", after))
    }
    measured = {"of": "yes", "error": {"mean": 0.1}, **groups}
    published = fineness.utility({"rows": rows, "task": "classification", "calibration": measured}, NO_NOISE)[
        "calibration"
    ]
    if rows < fineness.FEWEST:
        assert published == {"of": "yes", "error": {"mean": 0.1}}
        return
    for when, those in (("before", before), ("after", after)):
        everybody = sum(people for people, *_ in those)
        least = fineness.step_of(fineness.FEWEST)
        assert published["step"] <= least and len(published[when]["people"]) <= max(1, everybody // fineness.FEWEST)
        assert all(abs(share / published["step"] - round(share / published["step"])) < 1e-6
                   for share in published[when]["observed"])  # fmt: skip
        if len(published[when]["people"]) == 1:  # everybody together, so that the means can be compared
            for axis, place, room in (("predicted", 1, 1e-3), ("observed", 2, published["step"] / 2 + 1e-9)):
                mean = sum(group[0] * group[place] for group in those) / everybody
                assert published[when][axis][0] == pytest.approx(mean, abs=room)


def groups_of(*groups: tuple[int, float, float]) -> dict[str, Any]:
    return dict(zip(("people", "predicted", "observed"), map(list, zip(*groups, strict=True)), strict=True))


def published_calibration(rows: int, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    measured = {"of": "yes", "error": {"mean": 0.1}, "before": before, "after": after}
    content = {"rows": rows, "task": "classification", "calibration": measured}
    calibration: dict[str, Any] = fineness.utility(content, NO_NOISE)["calibration"]
    return calibration


def test_small_groups_of_calibration_are_joined_with_the_next_and_the_last_with_the_one_before() -> None:
    small = groups_of((60, 0.1, 0.0), (50, 0.2, 0.1), (200, 0.5, 0.5), (30, 0.9, 1.0))
    published = published_calibration(340, small, small)
    assert published["before"] == {"people": [120, 240], "predicted": [0.1455, 0.5522], "observed": [0.0, 0.6]}
    enough = groups_of((100, 0.1, 0.0), (100, 0.2, 0.3), (100, 0.9, 1.0))
    assert published_calibration(300, enough, enough)["before"]["predicted"] == [0.1, 0.2, 0.9]


def test_the_step_of_calibration_is_that_of_the_smallest_group() -> None:
    uneven, even = groups_of((110, 0.1, 0.0), (9_890, 0.5, 0.5)), groups_of((10_000, 0.5, 0.5))
    for pair in ((uneven, even), (even, uneven)):
        assert published_calibration(10_000, *pair)["step"] == fineness.step_of(110) == 0.1


def test_a_hundred_people_are_enough() -> None:
    everybody = groups_of((100, 0.5, 0.42))
    assert published_calibration(100, everybody, everybody)["before"]["observed"] == [0.4]
    assert "before" not in published_calibration(99, everybody, everybody)
    group = of_group(100, accuracy={"before": 1.0, "after": 0.9, "difference": -0.1})
    assert len(fineness.utility({"rows": 1_000, "subgroups": [group]}, NO_NOISE)["subgroups"]) == 1


def test_the_mean_of_numbers_is_not_published_by_group() -> None:
    """One huge number would move the mean of its group, and so say in which group its owner is."""
    measured = of_calibration([1_000] * 10, [*[30.0] * 9, 1e7])
    published = fineness.utility({"rows": 10_000, "task": "regression", "calibration": measured}, NO_NOISE)
    assert published["calibration"] == {"of": "yes", "error": {"mean": 0.01235}}


def test_estimates_of_the_population_keep_two_digits_and_none_of_what_was_fitted() -> None:
    estimate = {
        "model": "snb",
        "sampling_fraction": 0.01,
        "population": 40_000.0,
        "uniques": 1234.5,
        "share": 0.0308625,
    }
    fitted = {**estimate, "converged": True, "parameters": {"alpha": 0.123456789}, "chosen": None}
    told = fineness.risk(
        {"records": 400, "unique_records": 176, "population_uniqueness": {"snb": fitted}}, 400, NO_NOISE
    )
    assert told == {
        "records": 400, "unique_records": 180,
        "population_uniqueness": {"snb": {**estimate, "uniques": 2000.0, "share": 0.05}},
    }  # fmt: skip
    unknown = {**fitted, "uniques": None, "share": None, "converged": False}
    told = fineness.risk({"unique_records": 176, "population_uniqueness": {"snb": unknown}}, 400, NO_NOISE)
    assert told is not None
    assert told["population_uniqueness"]["snb"] == {**estimate, "uniques": None, "share": None}


def test_the_loss_is_told_in_steps_also_of_few() -> None:
    """In all digits it is a hash of the values that classes hide."""
    lost = {"age": 0.2372, "city": 0.2369, "mean": 0.23705}
    assert fineness.lost(lost, 10_000, NO_NOISE) == {"age": 0.24, "city": 0.24, "mean": 0.24}
    assert fineness.lost(lost, 40, NO_NOISE) == {"age": 0.2, "city": 0.2, "mean": 0.2}
    unknown = {"lost": 1.0, "other": None, "never": float("nan")}
    assert fineness.lost(unknown, 300, NO_NOISE) == {"lost": 1.0, "other": None, "never": None}


@pytest.mark.parametrize(("unique", "largest"), [(0, None), (5, None), (12, None), (49, None), (51, 1.0)])
def test_nobody_is_told_that_one_person_is_unique(unique: int, largest: float | None) -> None:
    """The largest risk and the estimates would jump with the first unique person of 400.

    With less than three steps told (of 20 people), noise alone may have made them.
    """
    estimate = {"model": "zayatz", "sampling_fraction": 0.1, "population": 4000.0, "uniques": 1.3, "share": 0.0003}
    before = {
        "unique_records": unique,
        "prosecutor": {"max": 1.0 if unique else 0.2, "mean": 0.1, "share_above": {"0.2": 0.0}},
        "journalist": {"max": 0.5, "mean": 0.1},
        "population_uniqueness": {"zayatz": estimate},
    }
    told = fineness.risk(before, 400, NO_NOISE)
    assert told is not None
    assert told["prosecutor"] == {"max": largest, "mean": 0.1, "share_above": {"0.2": 0.0}}
    assert told["journalist"] == {"max": None, "mean": 0.1}
    assert bool(told["population_uniqueness"]) == (largest is not None)


@pytest.mark.parametrize(
    ("risk", "told"),
    [(0.5, 0.5), (0.4999, 0.2), (0.2, 0.2), (0.1999, 0.1), (1.0, 1.0), (1000.0, 1000.0), (999.0, 500.0), (5.5, 5.0)],
)
def test_of_a_weighted_sample_people_are_told_as_a_lower_bound(risk: float, told: float) -> None:
    of_risk = {"population": risk, "smallest_class": 0.7, "max": 0.0011, "mean": 0.001}
    assert fineness.weighted(of_risk, 100) == {
        "weighted": {"population": told, "smallest_class": 0.5, "max": 0.002, "mean": 0.001}
    }
    assert fineness.weighted(of_risk, 99) == {}


@pytest.mark.long
@pytest.mark.parametrize("size", [10, 20, 50, 100, 200])
def test_one_person_seldom_shows_in_the_risk_of_the_source(size: int) -> None:
    """Who knows all rows but one asks whether that person is one of `size` alike, or alone: a class that grows by one
    takes all of its people into another range of sizes, and below another risk.
    """
    apart = 0
    for table in range(200):
        others = np.random.default_rng(table).integers(1, 40, 60)
        alike, alone = (
            asdict(reidentification_risk(ClassStatistics(sizes=np.array([*others, *classes]))))
            for classes in ([size], [size - 1, 1])
        )
        people = int(others.sum()) + size
        apart += fineness.risk(alike, people, NO_NOISE) != fineness.risk(alone, people, NO_NOISE)
    assert apart < 0.3 * 200


def test_figures_that_one_person_could_move_by_more_than_all_people_are_not_told() -> None:
    told = fineness.risk(asdict(reidentification_risk(ClassStatistics(sizes=np.array([150, 150, 100])))), 400, NO_NOISE)
    assert told is not None
    assert told["records_by_class_size"] == {
        "1": 0, "2": 0, "3-4": 0, "5-9": 0, "10-19": 0,
        "20-49": None, "50-99": None, "100-199": None, "200-499": None, "500-999": None, "1000+": None,
    }  # fmt: skip
    assert told["prosecutor"]["share_above"] == {"0.05": 0.0, "0.09": 0.0, "0.2": 0.0, "0.33": 0.0}


@pytest.mark.long
@pytest.mark.parametrize(("people", "most"), [(500, 8), (1000, 15), (2000, 30)])
def test_one_pair_of_people_alike_seldom_shows_in_the_estimates_of_the_population(people: int, most: int) -> None:
    """Of a table in which nearly everybody is alone, Pitman's estimate moved by .1 and more with one pair."""
    pairs = range(3, most)
    told = [
        fineness.risk(risk_of(ClassStatistics(sizes=np.repeat([1, 2], [people - 2 * of, of])), 0.01), people, NO_NOISE)
        for of in (2, *pairs)
    ]
    assert sum(less != more for less, more in pairwise(told)) < 0.4 * len(pairs)
    estimates = [one["population_uniqueness"] for one in told if one is not None]
    assert {estimate[of]["share"] for estimate in estimates for of in ("pitman", "dankar")} == {None}


def test_the_rule_is_told_of_large_samples_which_it_estimates_without_pitman() -> None:
    told = fineness.risk(risk_of(ClassStatistics(sizes=np.repeat([1, 2], [200, 100])), 0.2), 400, NO_NOISE)
    assert told is not None
    shares = {of: estimate["share"] for of, estimate in told["population_uniqueness"].items()}
    assert shares["pitman"] is None and shares["dankar"] == min(shares["zayatz"], shares["snb"])


@pytest.mark.parametrize(("people", "rows"), [(99, 1_000), (399, 1_000), (1_249, 10_000)])
def test_the_size_of_a_group_of_people_rules_nobody_out(people: int, rows: int) -> None:
    """Whoever knows all but one of a group could tell, at the end of a step, whether the last one belongs to it."""
    told = []
    for more in (0, 2):
        group = of_group(people + more, accuracy={"before": 0.9, "after": 0.84, "difference": -0.06})
        content = {"rows": rows, "subgroups": [group]}
        every = [fineness.utility(content, Noise(Key(bytes([place] * 32)), "people", "v")) for place in range(200)]
        told.append(Counter(str(one["subgroups"]) for one in every))
    first, second = told
    assert first.keys() & second.keys() and len(first) > 1
    assert sum((first - second).values()) <= 0.25 * 200  # two people move few of all tellings, and none for certain
