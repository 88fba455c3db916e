"""Nobody moves any measured number further than was stated: over small random tables, everybody removed in turn."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.differential_privacy import mechanisms
from anon_pipeline.differential_privacy.answering import Exact
from anon_pipeline.differential_privacy.plan import Cell, Measurement, Plan
from anon_pipeline_tests.differential_privacy.tables import PERSON, CountMany, counting, counting_many, plan_of, spec_of

TABLES = 1_000  # half of them per unit
STATISTICS = "COUNT(*), COUNT(age), COUNT(street), SUM(weight), AVG(age)"
QUESTIONS = (
    f"SELECT {STATISTICS} FROM people",
    f"SELECT city, {STATISTICS} FROM people GROUP BY city",
    f"SELECT city, visits, {STATISTICS} FROM people WHERE age > 2 OR weight IS NULL GROUP BY city, visits",
    f"SELECT street, {STATISTICS} FROM people GROUP BY street",
)
MEDIANS = "SELECT city, MEDIAN(age), QUANTILE_CONT(weight, 0.9) FROM people GROUP BY city"


def table(random: np.random.Generator) -> pd.DataFrame:
    """A few people with several rows, some values missing, undeclared or beyond their range."""
    rows, crowded = int(random.integers(3, 14)), bool(random.random() < 0.5)
    patients, cities = ["a", "b", "c", "d", "?"], ["Aberdeen", "Bergen", "Cork", "Delft", "?"]
    return pd.DataFrame(
        {
            "patient": random.choice(patients[: 2 if crowded else 5], rows),
            "age": random.choice(["0", "3", "9", "99", "-5", "x", "?"], rows),
            "weight": random.choice(["-0.5", "-7", "0.3", "1", "1e9", "nan", ""], rows),
            "visits": random.choice(["0", "1", "2", "8", "?"], rows),
            "city": random.choice(cities[: random.integers(1, 6)], rows),
            "street": random.choice(["High", "Low", "", "Mid"], rows),
        }
    )


def neighbours(frame: pd.DataFrame, unit: str) -> Iterator[pd.DataFrame]:
    if unit == "row":
        for place in range(len(frame)):
            yield frame.drop(index=place)
    else:
        for person in frame["patient"].unique():
            yield frame[frame["patient"] != person]


def numbers(exact: Exact, one: Measurement, cells: list[Cell]) -> np.ndarray:
    """What noise is added to, or the scores that a quantile is chosen by, a row per group."""
    if one.kind == "quantile":
        histograms = exact.histogram(str(one.column), cells)
        if one.end:
            return np.array(
                [mechanisms.quantile_end_scores(rows, one.part, one.whole, 7 * one.end) for rows in histograms]
            )
        return np.array([mechanisms.quantile_scores(rows, one.part, one.whole) for rows in histograms])
    return np.array(exact.numbers(one, cells)).reshape(-1, 1)


def require_bounded(plan: Plan, before: Exact, after: Exact) -> None:
    cells = sorted({*before.cells, *after.cells}, key=str) if plan.unlisted else plan.cells()
    for one in plan.measurements:
        difference = np.abs(numbers(before, one, cells) - numbers(after, one, cells)).max(axis=1)
        assert np.count_nonzero(difference) <= plan.groups_of_unit, one
        assert difference.max(initial=0) <= plan.moves(one), one
        if one.kind != "quantile":
            assert int((difference**2).sum()) <= plan.squared_sensitivity(one), one


def plans(unit: str) -> list[Plan]:
    spec = spec_of("row" if unit == "row" else PERSON)
    people = ", COUNT(DISTINCT patient)" if unit == "person" else ""
    asked = [question.replace(STATISTICS, STATISTICS + people) for question in QUESTIONS]
    return [plan_of(spec, sql) for sql in [*asked, MEDIANS]]


def each_removed(count: CountMany, made: list[Plan], unit: str, tables: int, seed: int) -> None:
    """Count every table and every neighbour of it, many at once, and hold each pair against the stated bounds."""
    random = np.random.default_rng(seed)
    for plan in made:
        frames: list[pd.DataFrame] = []
        pairs: list[tuple[int, int]] = []
        for _ in range(tables // len(made)):
            frame = table(random)
            whole = len(frames)
            frames.append(frame)
            for less in neighbours(frame, unit):
                pairs.append((whole, len(frames)))
                frames.append(less)
        counted = count(plan, frames)
        for before, after in pairs:
            require_bounded(plan, counted[before], counted[after])


@pytest.mark.long
@pytest.mark.parametrize("unit", ["row", "person"])
def test_nobody_moves_a_measurement_further_than_stated(unit: str) -> None:
    with counting_many(spec_of("row" if unit == "row" else PERSON)) as count:
        each_removed(count, plans(unit), unit, TABLES // 2, seed=19)


@pytest.mark.long
@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (f"place <= {PERSON['groups']}", "place <= 1000"),  # people stand in as many groups as they like
        (f"least(rows, {PERSON['rows']})", "rows"),  # and with as many rows
        ("PARTITION BY person ORDER BY hash", "ORDER BY hash"),  # groups are kept whoever else stands in them
        (f"least(rows, {PERSON['rows']} - counted)", "rows"),
    ],
)
def test_a_bound_that_is_left_out_is_seen(good: str, bad: str) -> None:
    """Each mutant of the SQL is caught by the same test over the same tables."""
    replaced = []

    def mutated(sql: str) -> str:
        replaced.append(good in sql)
        return sql.replace(good, bad)

    with counting_many(spec_of(PERSON), mutated) as count, pytest.raises(AssertionError):
        each_removed(count, plans("person"), "person", 200, seed=7)
    assert any(replaced)


@pytest.mark.long
def test_rows_in_another_order_are_the_same_sums() -> None:
    random = np.random.default_rng(3)
    with counting(spec_of(PERSON)) as count:
        for plan in plans("person"):
            frame = pd.concat([table(random) for _ in range(5)], ignore_index=True)
            one, other = count(plan, frame), count(plan, frame.sample(frac=1, random_state=1))
            cells = sorted({*one.cells, *other.cells}, key=str)
            for measurement in plan.measurements:
                if measurement.kind == "quantile":
                    left, right = (each.histogram(str(measurement.column), cells) for each in (one, other))
                    assert np.array_equal(left, right)
                else:
                    assert one.numbers(measurement, cells) == other.numbers(measurement, cells)


def test_people_keep_other_groups_than_each_other() -> None:
    """With a rule that does not hang on the person everybody drops the same groups, and these seem empty."""
    people = pd.DataFrame([(f"p{number}", city) for number in range(300) for city in ("Aberdeen", "Bergen", "Cork")])
    frame = people.set_axis(["patient", "city"], axis=1).assign(age="1", weight="0", visits="0", street="High")
    spec = spec_of({**PERSON, "groups": 1})
    with counting(spec) as count:
        plan = plan_of(spec, "SELECT city, COUNT(*) FROM people GROUP BY city")
        exact = count(plan, frame)
        kept = exact.numbers(Measurement("count"), [(0,), (1,), (2,)])
    assert sum(kept) == 300
    assert min(kept) > 60


def test_exact_sums_are_those_of_pandas() -> None:
    random = np.random.default_rng(5)
    frame = pd.concat([table(random) for _ in range(40)], ignore_index=True)
    spec = spec_of("row")
    with counting(spec) as count:
        plan = plan_of(spec, f"SELECT city, {STATISTICS} FROM people WHERE visits >= 1 GROUP BY city")
        exact = count(plan, frame)
    age = pd.to_numeric(frame["age"], errors="coerce")
    held = (pd.to_numeric(frame["weight"], errors="coerce").clip(-0.5, 1) * 4 + 0.5).apply(np.floor)
    asked = pd.to_numeric(frame["visits"], errors="coerce") >= 1
    for place, city in enumerate(["Aberdeen", "Bergen", "Cork"]):
        here = asked & (frame["city"] == city)
        assert exact.numbers(Measurement("count"), [(place,)]) == [here.sum()]
        assert exact.numbers(Measurement("known", "age"), [(place,)]) == [(here & age.notna()).sum()]
        named = here & (frame["street"] != "")
        assert exact.numbers(Measurement("known", "street"), [(place,)]) == [named.sum()]
        assert exact.numbers(Measurement("sum", "weight"), [(place,)]) == [held[here].sum()]  # in quarters
        assert exact.numbers(Measurement("centred", "age"), [(place,)]) == [(age[here].clip(0, 9) - 4).sum()]
    outside = asked & ~frame["city"].isin(["Aberdeen", "Bergen", "Cork"])
    assert exact.numbers(Measurement("count"), [(None,)]) == [outside.sum()]
