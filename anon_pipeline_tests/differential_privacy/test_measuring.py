"""What one unit can change of the measurements, what they cost, and whether the noise keeps its word."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from anon_pipeline.differential_privacy import mechanisms
from anon_pipeline.differential_privacy.accounting import NANO, epsilon_of, nano_for
from anon_pipeline.differential_privacy.synthesis import measuring
from anon_pipeline.differential_privacy.synthesis.coded_table import CodedTable, axes_of, read_coded
from anon_pipeline.differential_privacy.synthesis.estimation import fit, total_of
from anon_pipeline.differential_privacy.synthesis.measuring import Settings, candidates, first_sets, measure
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError
from anon_pipeline_tests.differential_privacy import synthetic_people

#: One correct run in a million fails.
FALSE_ALARM = 1e-6


def random_table(random: np.random.Generator, rows: int, sizes: tuple[int, ...] = (3, 4, 2, 3)) -> CodedTable:
    codes = np.stack([random.integers(0, size, rows) for size in sizes], axis=1).astype(np.int32)
    return CodedTable(sizes, codes, np.ones(rows, dtype=np.int64))


def without(table: CodedTable, rows: np.ndarray) -> CodedTable:
    kept = np.setdiff1d(np.arange(len(table.codes)), rows)
    return CodedTable(table.sizes, table.codes[kept], table.people[kept])


@pytest.mark.long
def test_no_unit_moves_a_count_or_a_choice_by_more_than_is_declared() -> None:
    """1,000 random tables, every unit removed in turn; a unit of `most` rows is any so many rows."""
    random = np.random.default_rng(11)
    for number in range(1000):
        table = random_table(random, int(random.integers(3, 9)))
        most = 1 + number % 3
        sets = [*first_sets(table.sizes, (2,)), *candidates(table.sizes, (2,))]
        tables = [measuring._counted(table, one, 10**7, most, []) for one in first_sets(table.sizes, (2,))]
        model = fit(table.sizes, tables, total_of(tables), steps=5) if number % 10 == 0 else None
        for start in range(len(table.codes)):
            less = without(table, np.arange(start, min(start + most, len(table.codes))))
            for one in sets:
                moved = table.counts(one) - less.counts(one)
                assert (moved**2).sum() <= most**2
                if model is not None:
                    errors = [measuring._error(model, counts.counts(one), one, 3.0) for counts in (table, less)]
                    assert abs(errors[0] - errors[1]) <= most


@pytest.mark.long
def test_a_person_counts_with_so_many_rows_whatever_they_and_others_hold(tmp_path: Path) -> None:
    """Through the engine: every person of small tables removed in turn, also one without an identifier."""
    random = np.random.default_rng(5)
    unit = {"person": "id", "groups": 1, "rows": 2}
    for number in range(6):
        table = synthetic_people.people(14, seed=number)
        ids = [None if random.random() < 0.1 else f"p{one}" for one in random.integers(0, 5, len(table))]
        table = table.set_column(0, "id", pa.array(ids, pa.string()))

        def read(rows: pa.Table, folder: Path) -> np.ndarray:
            wanted = synthetic_people.content()["differential_privacy"] | {"unit": unit}
            spec = synthetic_people.write(folder, rows, differential_privacy=wanted)
            coded = read_coded(DuckDBEngine(folder / "scratch"), spec, axes_of(spec))
            return coded.counts((0, 1, 2, 3))

        whole = read(table, tmp_path / f"{number}")
        assert whole.sum() <= 2 * len(set(ids) - {None})
        for person in set(ids):
            less = read(table.filter(pa.array([one != person for one in ids])), tmp_path / f"{number}-{person}")
            assert np.abs(whole - less).sum() <= (0 if person is None else 2)


@pytest.mark.long
def test_the_cost_is_at_most_the_share_and_every_scale_is_that_of_its_cost() -> None:
    table = random_table(np.random.default_rng(1), 500, (3, 4, 2, 3, 5))
    for rows in (1, 3):
        settings = Settings((2,), nano_for(1, 1e-6), rows, 5, 10_000)
        found = measure(table, settings)
        assert settings.nano_rho * 0.99 < found.nano_rho <= settings.nano_rho
        assert epsilon_of(found.nano_rho, 1e-6) <= 1
        for one in found.mechanisms:
            rho = one.nano_rho / NANO
            least = rows * math.sqrt(1 / (2 * rho)) if one.measures is not None else 2 * rows / math.sqrt(8 * rho)
            assert one.scale >= least
        assert [one.measures for one in found.mechanisms if one.measures][: len(found.first)] == [
            one.columns for one in found.first
        ]
    with pytest.raises(InputError, match="too small"):
        measure(table, Settings((2,), 3, 1, 5, 10_000))


@pytest.mark.parametrize("rounds", [3, 24, 100])
def test_of_few_columns_the_whole_budget_is_spent(rounds: int) -> None:
    """It was divided by the rounds, also where there are fewer pairs: 61 % of what was paid for was not used."""
    table = random_table(np.random.default_rng(3), 900)
    nano_rho = nano_for(1, 1e-6)
    measured = measure(table, Settings((2,), nano_rho, 1, rounds, 10_000))
    assert 0.97 * nano_rho < measured.nano_rho <= nano_rho


def lower_bound(drawn: np.ndarray, beside: np.ndarray, delta: float) -> float:
    """A bound of epsilon from below, with half the draws to choose the event and half to count it (Clopper-Pearson)."""
    half = len(drawn) // 2
    cuts = np.quantile(np.r_[drawn[:half], beside[:half]], np.linspace(0.01, 0.99, 99))
    rates = [((drawn[:half] >= cut).mean(), (beside[:half] >= cut).mean()) for cut in cuts]
    cut = cuts[int(np.argmax([math.log((one + 1e-4) / (other + 1e-4)) for one, other in rates]))]
    hits = [int((one[half:] >= cut).sum()) for one in (drawn, beside)]
    low = stats.beta.ppf(FALSE_ALARM, hits[0], half - hits[0] + 1) if hits[0] else 0.0
    high = stats.beta.ppf(1 - FALSE_ALARM, hits[1] + 1, half - hits[1])
    return math.log(max(low - delta, 1e-12) / high)


@pytest.mark.long
def test_the_noise_of_a_count_keeps_its_word_and_mutants_are_caught() -> None:
    """At the level of single measurements, where a passing test says something. One row more or less.

    At a tenth of the scale the 5,000 counted draws show an epsilon of about 3. For it to fall to 1, the rarer event
    would have to be drawn some ten times as often as it is: tens of deviations off.
    """
    table = random_table(np.random.default_rng(2), 40, (2, 2))
    less, share, n = without(table, np.array([0])), nano_for(1, 1e-6), 10_000
    cell = np.ravel_multi_index(tuple(table.codes[0]), table.sizes)

    def bound(spent: int) -> float:
        def drawn(of: CodedTable) -> np.ndarray:
            stacked = np.repeat(of.counts((0, 1)).ravel()[cell], n)
            return mechanisms.gaussian_counts(stacked, 1, spent)

        return lower_bound(drawn(table).astype(float), drawn(less).astype(float), 1e-6)

    assert bound(share) <= 1
    assert bound(share * 100) > 1, "a tenth of the scale is caught"


def test_each_mechanism_is_told_by_its_own_name() -> None:
    found = measure(random_table(np.random.default_rng(2), 50, (3, 3, 2)), Settings((2,), 10**8, 1, 2, 1000))
    told = measuring.described(found, ["age", "city", "ill"])
    counts, choices = "discrete Gaussian", "exponential mechanism (Gumbel)"
    assert [one["measures"] for one in told if one["mechanism"] == counts][:2] == [["age", "ill"], ["city", "ill"]]
    assert {one["measures"] for one in told if one["mechanism"] == choices} == {"which columns are counted next"}
    assert len(told) == 2 + 2 * len(found.later)
    assert sum(float(str(one["rho"])) for one in told) == pytest.approx(found.nano_rho / NANO) and all(
        float(str(one["scale"])) > 0 for one in told
    )


def test_targets_and_their_pairs_are_what_is_counted() -> None:
    assert first_sets((3, 4, 2), (2,)) == [(0, 2), (1, 2)]
    assert first_sets((3, 4), ()) == [(0,), (1,)]
    assert first_sets((3, 4), (0, 1)) == [(0, 1)]
    assert candidates((3, 4, 2), (2,)) == [(0, 1, 2)]
    assert set(candidates((3, 4, 20), (2,))) == {(0, 1, 2), (0, 1)}
    wide = candidates((3, 4, 20, 20), (2, 3))
    assert {(0, 1, 2), (0, 1, 3), (0, 1), (2, 3)} == set(wide)
    one_is_wide = candidates((3, 4, 2, 200), (2, 3))
    assert {(0, 1, 2), (0, 1, 3), (0, 1), (2, 3)} == set(one_is_wide)
    assert candidates((3, 4, 5), ()) == [(0, 1), (0, 2), (1, 2)]


@pytest.mark.long
def test_a_canary_is_no_surer_than_epsilon_says() -> None:
    """LiRA's game on the fitted model, which naive Bayes is made of: one person with a rare value in or out.

    A passing audit of whole models is weak evidence; the mutant with no noise to speak of shows that it sees something.
    """
    random = np.random.default_rng(3)
    table = random_table(random, 60, (5, 3, 2))
    codes = table.codes.copy()
    codes[codes[:, 0] >= 3, 0] = 0
    codes[0] = (3, 2, 1)
    table = CodedTable(table.sizes, codes, table.people)
    less = without(table, np.array([0]))

    def scores(of: CodedTable, spent: int, runs: int) -> np.ndarray:
        found = []
        for _ in range(runs):
            measured = measure(of, Settings((2,), spent, 1, 1, 1000))
            model = fit(measured.sizes, measured.tables, total_of(measured.tables), steps=15)
            place = measured.codes[0][3]
            found.append(model.counts((0, 2))[place, measured.codes[2][1]])
        return np.array(found)

    runs = 100
    claim = nano_for(1, 1e-6)
    assert lower_bound(scores(table, claim, runs), scores(less, claim, runs), 1e-6) <= 1
    loose = claim * 100_000
    assert np.mean(scores(table, loose, 5)) > np.mean(scores(less, loose, 5)) + 0.5


def test_the_noise_that_is_drawn_is_the_noise_that_is_recorded() -> None:
    """A bound of rows that is forgotten where noise is drawn, and not where it is recorded, is caught."""
    table = random_table(np.random.default_rng(6), 50, (60, 50))
    for rows in (1, 4):
        one = measuring._counted(table, (0, 1), 10**8, rows, [])
        off = (one.counts - table.counts((0, 1))).ravel()
        assert stats.chi2.sf((off**2 / one.variance.ravel()).sum(), off.size) > FALSE_ALARM
        assert stats.chi2.cdf((off**2 / one.variance.ravel()).sum(), off.size) > FALSE_ALARM
        assert one.variance.flat[0] >= rows**2 * NANO / (2 * 10**8)


@pytest.mark.long
def test_a_choice_is_as_uncertain_as_it_is_recorded_to_be() -> None:
    """Of two scores a gap apart the smaller one is taken with probability 1 / (1 + e^(gap / scale))."""
    for rows in (1, 4):
        drawn: list[measuring.Mechanism] = []
        picked = [measuring._chosen([0, -40], rows, 10**7, drawn) for _ in range(3000)]
        scale = drawn[0].scale
        assert scale >= 2 * rows / math.sqrt(8 * 10**7 / NANO)
        assert stats.binomtest(sum(picked), 3000, 1 / (1 + math.exp(40 / scale))).pvalue > FALSE_ALARM


def test_an_error_is_what_noise_alone_would_not_cause() -> None:
    class Fitted:
        def counts(self, columns: tuple[int, ...]) -> np.ndarray:
            return np.array([10.4, 19.6])

    error = measuring._error(Fitted(), np.array([13, 20]), (0,), 2.0)  # type: ignore[arg-type]
    assert error == 3 - math.ceil(2 * 2 * math.sqrt(2 / math.pi))


def test_an_error_of_counts_that_are_no_numbers_moves_with_a_row_by_a_row() -> None:
    class NoModel:
        def counts(self, columns: tuple[int, ...]) -> np.ndarray:
            return np.array([np.nan, 3.0])

    errors = [measuring._error(NoModel(), np.array([rows, 8]), (0,), 3.0) for rows in (5, 6)]  # type: ignore[arg-type]
    assert abs(errors[0] - errors[1]) == 1
