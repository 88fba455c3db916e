"""What a question costs, moves and may be off by: public numbers, computed here by hand."""

import csv
import io
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from anon_pipeline.differential_privacy import answering, intervals, mechanisms, statement, statistics
from anon_pipeline.differential_privacy.accounting import NANO, epsilon_of, nano_for
from anon_pipeline.differential_privacy.budget import Allowance, Budget
from anon_pipeline.differential_privacy.plan import Measurement
from anon_pipeline.differential_privacy.queries import Share
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.spec import PublicDomain
from anon_pipeline_tests.differential_privacy.tables import PERSON, counting, plan_of, spec_of

BY_CITY = "SELECT city, COUNT(*), AVG(age) FROM people GROUP BY city"
COUNT = "SELECT COUNT(*) FROM people"


@pytest.mark.parametrize(
    ("measurement", "moved"),
    [
        (Measurement("people"), 1),
        (Measurement("count"), 3),
        (Measurement("known", "age"), 3),
        (Measurement("sum", "age"), 3 * 9),  # 0 to 9
        (Measurement("sum", "weight"), 3 * 4),  # -2 to 4 quarters
        (Measurement("centred", "age"), 3 * 5),  # the middle of ten places is the fifth: 4 below it, 5 above it
        (Measurement("centred", "weight"), 3 * 3),  # that of seven is the fourth
        (Measurement("quantile", "age", 1, 4), 3 * 3),
        (Measurement("quantile", "age", 3, 4), 3 * 3),
        (Measurement("quantile", "age", 1, 2), 3 * 1),
    ],
    ids=lambda each: each.measures if isinstance(each, Measurement) else "",
)
def test_a_person_moves_a_number_by_so_much_at_most(measurement: Measurement, moved: int) -> None:
    plan = plan_of(spec_of(PERSON), BY_CITY)
    assert plan.groups_of_unit == 2
    assert plan.moves(measurement) == moved
    assert plan.squared_sensitivity(measurement) == 2 * moved**2
    of_row = plan_of(spec_of("row"), COUNT)
    assert of_row.moves(measurement) == max(1, moved // 3)
    assert of_row.squared_sensitivity(measurement) == of_row.moves(measurement) ** 2


def test_noise_has_the_scale_of_what_a_person_moves() -> None:
    """That of the Gaussian is S / sqrt(2 rho), that of a choice 2 S / sqrt(8 rho) in each of a person's groups."""
    sql = "SELECT city, COUNT(*), MEDIAN(age) FROM people GROUP BY city"
    plan = plan_of(spec_of(PERSON), sql, nano_rho=NANO)
    rho = plan.share / NANO
    assert rho == 0.25
    count, *quantiles = plan.measurements
    assert plan.scale(count) == pytest.approx(math.sqrt(2 * 3**2 / (2 * rho)))
    for quantile in quantiles:
        assert plan.scale(quantile) == pytest.approx(2 * 3 / math.sqrt(8 * rho / 2))
    told = plan.described()
    assert [one["scale"] for one in told] == [plan.scale(each) for each in plan.measurements]
    assert [one["mechanism"] for one in told] == ["discrete Gaussian"] + 3 * ["exponential mechanism (Gumbel)"]
    assert {one["rho"] for one in told} == {rho} and not any("threshold" in one for one in told)


def test_groups_that_nobody_listed_have_a_threshold() -> None:
    unlisted = plan_of(spec_of(PERSON), "SELECT street, COUNT(*), SUM(age) FROM people GROUP BY street")
    assert unlisted.threshold == mechanisms.smallest_threshold(2, 3, unlisted.share, unlisted.cost.atto_delta)
    count, total = unlisted.described()
    assert count["threshold"] == unlisted.threshold and count["delta"] == pytest.approx(1e-7)
    assert count["mechanism"] == "discrete Gaussian with threshold" and "threshold" not in total
    assert plan_of(spec_of(PERSON), BY_CITY).threshold is None


def test_as_many_groups_may_be_asked_for_as_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement, "MOST_GROUPS", 4)  # three cities, and those who have none
    assert len(plan_of(spec_of(), BY_CITY).cells()) == 4
    monkeypatch.setattr(statement, "MOST_GROUPS", 3)
    with pytest.raises(InputError, match="makes 4 groups, and 3 are the most"):
        plan_of(spec_of(), BY_CITY)


def test_numbers_count_in_the_interval_where_they_lie() -> None:
    spec = spec_of()
    visits = ["-7", "0", "0.99", "1", "2.5", "3", "8", "9", "100", "?"]
    frame = pd.DataFrame({"patient": "p", "age": "1", "weight": "1", "visits": visits, "city": "Cork", "street": "x"})
    with counting(spec) as count:
        plan = plan_of(spec, "SELECT visits, COUNT(*) FROM people GROUP BY visits")
        assert count(plan, frame).numbers(Measurement("count"), plan.cells()) == [3, 2, 4, 1]


def test_the_share_may_be_as_small_as_the_number_of_groups() -> None:
    by_city = "SELECT city, COUNT(*) FROM people GROUP BY city"
    assert plan_of(spec_of(PERSON), by_city, nano_rho=2).share == 2
    with pytest.raises(InputError, match="too small"):
        plan_of(spec_of(PERSON), by_city, nano_rho=1)


def test_the_ends_of_a_quantile_are_sought_as_far_off_as_noise_may_move_them() -> None:
    plan = plan_of(spec_of("row"), "SELECT QUANTILE_CONT(age, 0.25) FROM people")
    scale = plan.scale(plan.measurements[0])
    distance = math.ceil(scale * math.log(11 / 0.025))  # ten places, and what lies beyond them
    assert [plan.off(each) for each in plan.measurements] == [0, -distance, distance]
    assert answering.width(plan, plan.statement.statistics[0]) == {"rank": math.ceil(scale * math.log(10 / 0.05) / 4)}


def test_bounds_of_the_noisy_maximum_are_rounded_up() -> None:
    assert intervals.rank_error(50, 2, 3.0) == 11  # 10.36
    assert intervals.end_of_quantile(11, 3.0) == 19  # 18.26


def test_a_mean_is_in_the_unit_of_its_column() -> None:
    """Places of a quarter around the middle of the grid, .25."""
    plan = plan_of(spec_of("row"), "SELECT AVG(weight), SUM(weight) FROM people", nano_rho=10 * NANO)
    mean, total = plan.statement.statistics
    centred, known, summed = plan.measurements
    drawn = {centred: 200, known: 100, summed: 8}
    answer = answering.figure(plan, mean, drawn)
    assert answer["value"] == 0.75
    below, above = intervals.ratio(200, 100, (plan.scale(centred), plan.scale(known)))
    assert answer["low"] == pytest.approx(0.25 + 0.25 * below) and answer["high"] == pytest.approx(0.25 + 0.25 * above)
    assert 0.7 < answer["low"] < 0.75 < answer["high"] < 0.8
    furthest = 3 * intervals.reach(plan.scale(known))  # of seven places, the ends are three from the middle
    assert answering.width(plan, mean) == {
        "value_times_rows": pytest.approx(math.hypot(intervals.reach(plan.scale(centred)), furthest) / 4),
        "rows": intervals.half_width(plan.scale(known)),
    }
    around = intervals.half_width(plan.scale(summed))
    assert answering.figure(plan, total, drawn) == {
        "value": 2.0,
        "low": (8 - around) / 4,
        "high": (8 + around) / 4,
    }
    assert answering.width(plan, total) == {"value": around / 4}


@pytest.mark.parametrize("number", [0, 2, 5, 10])
def test_the_preview_of_a_mean_is_no_narrower_than_the_interval_of_any_mean(number: int) -> None:
    """At an end of the range 83 of 100 figures were within what was said of 95."""
    plan = plan_of(spec_of("row"), "SELECT AVG(age) FROM people", nano_rho=10 * NANO)
    (mean,), people = plan.statement.statistics, 1_000_000
    centred, known = plan.measurements
    places = plan.asked.domains["age"].size
    place = number * (places - 1) // 10
    drawn = {centred: people * (place - (places - 1) // 2), known: people}
    scales = (plan.scale(centred), plan.scale(known))
    below, above = intervals.ratio(drawn[centred], drawn[known], scales)
    step = plan.asked.domains["age"].step or 1
    assert (above - below) / 2 * people * step <= answering.width(plan, mean)["value_times_rows"] * 1.0001


def test_a_mean_of_nobody_may_be_anything_and_none_lies_beyond_the_range() -> None:
    plan = plan_of(spec_of("row"), "SELECT AVG(weight) FROM people", nano_rho=10 * NANO)
    (mean,) = plan.statement.statistics
    centred, known = plan.measurements
    assert answering.figure(plan, mean, {centred: 5, known: 0}) == {"value": None, "low": -0.5, "high": 1}
    beyond = [answering.figure(plan, mean, {centred: sign * 900, known: 100}) for sign in (-1, 1)]
    assert beyond == [{"value": end, "low": end, "high": end} for end in (-0.5, 1)]


def test_labels_of_groups() -> None:
    domains = spec_of().differential_privacy
    assert domains is not None

    def label(column: str, place: Any) -> Any:
        return answering.label(domains.domains[column], place)

    assert [label("visits", place) for place in range(3)] == ["[0, 1)", "[1, 3)", "[3, 9]"]
    assert [label("city", place) for place in (0, 2, None)] == ["Aberdeen", "Cork", None]
    assert [label("weight", place) for place in (0, 6)] == [-0.5, 1]
    assert label("street", "High") == "High"
    days = PublicDomain(bins=(20240101, 20240201, 20240301.5), why="days as numbers")
    assert [answering.label(days, place) for place in (0, 1)] == ["[20240101, 20240201)", "[20240201, 20240301.5]"]


@pytest.mark.parametrize(
    ("sql", "of_numbers", "of_counts"),
    [
        (COUNT, False, True),
        ("SELECT AVG(age) FROM people", True, False),
        ("SELECT SUM(age), COUNT(age) FROM people", True, True),
        ("SELECT MEDIAN(age) FROM people", True, False),
    ],
)
def test_an_answer_notes_what_its_own_figures_need(sql: str, of_numbers: bool, of_counts: bool) -> None:
    notes = answering.notes(plan_of(spec_of("row"), sql))
    assert any("beyond the public range" in note for note in notes) == of_numbers
    assert any("by half a step at most" in note for note in notes) == of_numbers
    assert any("may be below 0" in note for note in notes) == of_counts


def test_a_threshold_is_one_more_than_a_person_has_where_there_is_hardly_any_noise() -> None:
    assert [mechanisms.smallest_threshold(1, rows, 10_000 * NANO, 10**17) for rows in (1, 3)] == [2, 4]


def test_a_mechanism_may_cost_its_whole_share() -> None:
    mechanisms._assert_within(0.5, NANO // 2)
    with pytest.raises(AssertionError, match="more than its share"):
        mechanisms._assert_within(math.nextafter(0.5, 1), NANO // 2)


def test_what_a_question_may_cost_is_stated_once() -> None:
    asked = spec_of("row").differential_privacy
    assert asked is not None
    assert Share(rho=0.01).nano_rho(asked) == NANO // 100
    assert Share(epsilon=0.5).nano_rho(asked) == nano_for(0.5, asked.conversion_delta)
    for both_or_none in (Share(), Share(0.5, 0.01)):
        with pytest.raises(InputError, match="what the question may cost"):
            both_or_none.nano_rho(asked)
    with pytest.raises(InputError, match="is no positive number"):
        Share(epsilon=0).nano_rho(asked)


def test_groups_stand_in_the_order_of_their_values() -> None:
    cells = [("b", None), (None, 1), ("a", 2), ("b", 3), (None, None), ("a", 10)]
    assert sorted(cells, key=answering._order) == [
        ("a", 2), ("a", 10), ("b", 3), ("b", None), (None, 1), (None, None),
    ]  # fmt: skip


def test_answers_are_a_table_of_a_figure_a_line() -> None:
    figure = {"value": 3, "low": 1, "high": 5}
    written = statistics.as_table({"by_city": {"rows": [{"sex": "f", "city": "Cork", "count": figure}]}})
    header, line = csv.reader(io.StringIO(written))
    assert line == ["by_city", '{"city": "Cork", "sex": "f"}', "count", "3", "1", "5"]
    assert len(header) == len(line)


def test_a_file_of_answers_costs_what_its_answers_cost(tmp_path: Path) -> None:
    answers: dict[str, dict[str, Any]] = {
        name: {"cost": {"rho": rho, "threshold_delta": delta}, "neighbours": {"unit": "row"}, "mechanisms": [name]}
        for name, rho, delta in (("first", 0.1, 2e-8), ("second", 0.02, 0.0), ("third", 0.003, 1e-8))
    }
    spec = spec_of("row")
    assert spec.differential_privacy is not None
    state = Budget(Home(tmp_path / "var").prepare(), Allowance.of(spec.differential_privacy)).state()
    answers["second"]["neighbours"] = {"unit": "person", "groups": 2, "rows": 3}
    told = statistics.protection(spec, answers, state)
    assert told["neighbours"] == answers["second"]["neighbours"]  # one group of a question without groups is not all
    assert (told["rho"], told["threshold_delta"]) == (0.123, 3e-8)
    assert told["epsilon"] == pytest.approx(epsilon_of(123_000_000, told["delta"]))
    assert told["mechanisms"] == {name: [name] for name in answers}
