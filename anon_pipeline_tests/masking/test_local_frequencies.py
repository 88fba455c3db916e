"""Local differential privacy of categories: the stated probabilities, unbiased counts, intervals that cover."""

from __future__ import annotations

import itertools
import json
import math
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError
from scipy import stats
from typer.testing import CliRunner

from anon_pipeline.cli import app
from anon_pipeline.errors import InputError
from anon_pipeline.masking.frequency_estimates import estimate_counts, interval, randomizer_of
from anon_pipeline.masking.local_randomizers import LocalRandomizer, RandomizedResponse, UnaryEncoding, best_encoding
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.masking.tables import CATEGORICAL, OTHER_KEY, masked, step

#: One correct run in a million fails.
FALSE_ALARM = 1e-6
COUNTRIES = [f"country {number}" for number in range(42)]


def randomizer(technique: str, epsilon: float, categories: list[str], **others: Any) -> LocalRandomizer:
    made = step(technique, epsilon=epsilon, categories=categories, **others)
    assert isinstance(made, LocalRandomizer)
    return made


def test_the_rates_are_those_of_the_papers() -> None:
    direct = randomizer("randomized_response", 1.540445, ["a", "b", "c"])
    assert direct.rates == pytest.approx((0.7, 0.15), abs=1e-6)
    p, q = randomizer("unary_encoding", 2, COUNTRIES).rates
    assert (p, q) == pytest.approx((0.5, 1 / (math.e**2 + 1)))
    assert p * (1 - q) / (q * (1 - p)) == pytest.approx(math.e**2), "two digits differ between two people"
    assert sum((direct.rates[0], *[direct.rates[1]] * 2)) == pytest.approx(1)
    assert randomizer("randomized_response", 50, COUNTRIES).rates[0] == pytest.approx(1)


@pytest.mark.long
def test_reports_come_out_with_the_stated_probabilities() -> None:
    """Whole reports, from each true category: what epsilon is about. Half an epsilon more would be seen.

    The chance to miss that is below 1e-100: the chi-square statistic has a noncentrality of 3,000 and more.
    """
    n, categories = 60_000, ["a", "b", "c"]
    for technique in ("randomized_response", "unary_encoding"):
        made = randomizer(technique, 1, categories)
        p, q = made.rates
        for number, category in enumerate(categories):
            shown, _ = masked(pa.array([category] * n), CATEGORICAL, made)
            values, counts = np.unique(shown.to_numpy(zero_copy_only=False), return_counts=True)
            if technique == "randomized_response":
                expected = [p if one == category else q for one in values]
            else:
                chances = [p if place == number else q for place in range(3)]
                expected = [
                    math.prod(c if digit == "1" else 1 - c for c, digit in zip(chances, one, strict=True))
                    for one in values
                ]
            assert stats.chisquare(counts, np.array(expected) * n).pvalue > FALSE_ALARM


def test_estimates_and_intervals_are_those_of_the_formula() -> None:
    """With p = 1/2, q = 1/4 and 100 people: (reported - 25) * 4, and at c the variance c / 4 + (100 - c) * 3 / 16."""
    made = randomizer("unary_encoding", math.log(3), ["a", "b", "c", "d"])
    reports = ["1110"] * 10 + ["1010"] * 30 + ["0010"] * 10 + ["0000"] * 50
    found = estimate_counts(pa.array([*reports, None]), made)
    assert (found.people, found.technique, found.epsilon) == (100, "unary_encoding", math.log(3))
    assert (found.p, found.q) == pytest.approx((0.5, 0.25))
    for told, category, reported in zip(found.counts, "abcd", (40, 10, 50, 0), strict=True):
        count = (reported - 25) * 4
        assert (told.category, told.reported, told.count) == (category, reported, pytest.approx(count))
        fits = [
            c
            for c in np.linspace(0, 100, 5001)
            if abs(reported - c / 2 - (100 - c) / 4) <= 0.5 + 1.959963985 * math.sqrt(c / 4 + (100 - c) * 3 / 16)
        ]
        ends = (min(fits), max(fits)) if fits else (0, 0)
        assert (told.low, told.high) == pytest.approx(ends, abs=0.02)


@pytest.mark.parametrize("kind", ["randomized_response", "unary_encoding"])
@pytest.mark.parametrize("epsilon", [0.5, 2, 4, 6])
def test_intervals_cover_as_said_where_people_are_few_and_categories_rare(kind: str, epsilon: float) -> None:
    """By the exact distribution of the reports: an interval of two people among 50 held the two in 78 of 100 cases."""
    p, q = randomizer(kind, epsilon, ["a", "b", "c"]).rates
    for n, count in itertools.product((10, 50, 200), (0, 1, 2, 5, 10)):
        of_them = stats.binom.pmf(np.arange(count + 1), count, p)
        chance = np.convolve(of_them, stats.binom.pmf(np.arange(n - count + 1), n - count, q))
        low, high = interval(np.arange(n + 1), n, (p, q))
        estimate = np.clip((np.arange(n + 1) - n * q) / (p - q), 0, n)
        assert (low <= estimate + 1e-9).all() and (estimate <= high + 1e-9).all()
        assert chance[(low <= count + 1e-9) & (count <= high + 1e-9)].sum() > 0.949


@pytest.mark.parametrize(
    ("technique", "categories", "note"),
    [
        ("randomized_response", 10, "randomized_response errs least"),
        ("randomized_response", 11, "unary_encoding would err less"),
        ("unary_encoding", 10, "randomized_response would err less"),
        ("unary_encoding", 11, "unary_encoding errs least"),
        ("local_frequencies", 10, "randomized_response errs least"),
        ("local_frequencies", 11, "unary_encoding errs least"),
    ],
)
def test_a_note_says_which_technique_errs_least(technique: str, categories: int, note: str) -> None:
    names = [str(number) for number in range(categories)]
    _, (report,) = masked(pa.array(names), CATEGORICAL, randomizer(technique, 1, names))
    assert any(f"{note} at this epsilon" in told for told in report.notes)
    assert any("missing is shown" in told for told in report.notes)


def test_counts_are_estimated_by_the_last_step() -> None:
    response, prefix = randomizer("randomized_response", 1, ["a", "b"]), step("prefix", length=1)
    for before in range(4):
        assert randomizer_of([*[prefix] * before, response], "v") is response
    with pytest.raises(InputError, match=r"columns\.v: does not end with"):
        randomizer_of([response, prefix], "v")


def test_the_rule_takes_what_errs_less() -> None:
    assert best_encoding(8, math.log(2)) == "unary_encoding", "where both err alike"
    assert best_encoding(7, math.log(2)) == "randomized_response"
    assert best_encoding(2, 1) == best_encoding(10, 1) == "randomized_response"
    assert best_encoding(11, 1) == best_encoding(42, 1) == "unary_encoding"
    assert best_encoding(42, 3) == "randomized_response"
    for k, epsilon in ((2, 1.0), (16, 1.0), (42, 1.0), (42, 3.0), (8, 0.5)):
        named = [str(number) for number in range(k)]
        deviation = {}
        for technique in ("randomized_response", "unary_encoding"):
            p, q = randomizer(technique, epsilon, named).rates
            deviation[technique] = q * (1 - q) / (p - q) ** 2  # of a count that is small beside n
        assert min(deviation, key=lambda one: deviation[one]) == best_encoding(k, epsilon)
        assert randomizer("local_frequencies", epsilon, named).chosen.technique == best_encoding(k, epsilon)


@pytest.mark.long
@pytest.mark.parametrize("technique", ["randomized_response", "unary_encoding"])
def test_counts_are_unbiased_and_their_intervals_cover(technique: str) -> None:
    n, k, rounds = 4_000, 12, 100
    made = randomizer(technique, 1.5, [str(number) for number in range(k)])
    truth = np.random.default_rng(3).multinomial(n, np.arange(1, k + 1) / (k * (k + 1) / 2))
    column = pa.array(np.repeat([str(number) for number in range(k)], truth))
    errors, covered = [], 0
    for number in range(rounds):
        tells_apart = {"id": pa.array(np.arange(n) + n * number)}
        shown, _ = masked(column, CATEGORICAL, made, others=tells_apart)
        counts = estimate_counts(shown, made).counts
        errors.append([one.count - true for one, true in zip(counts, truth, strict=True)])
        covered += sum(one.low <= true <= one.high for one, true in zip(counts, truth, strict=True))
    bias = np.mean(errors, axis=0) / (np.std(errors, axis=0, ddof=1) / math.sqrt(rounds))
    assert np.abs(bias).max() < 6
    assert stats.binomtest(covered, rounds * k, 0.95).pvalue > FALSE_ALARM


def test_missing_and_unstated_values_count_as_the_spec_says() -> None:
    column = pa.array(["a", None, "z", "b"] * 50)
    shown, reports = masked(
        column, CATEGORICAL, randomizer("randomized_response", 1, ["a", "b", "none"], missing="none", other="none")
    )
    assert shown.null_count == 0 and not any("missing is shown" in note for note in reports[0].notes)
    with pytest.raises(InputError, match="not among the categories") as caught:
        masked(column, CATEGORICAL, randomizer("unary_encoding", 1, ["a", "b"]))
    assert "z" not in str(caught.value).split("columns.v.steps.0")[-1].replace("randomized", "")
    kept, reports = masked(column, CATEGORICAL, randomizer("unary_encoding", 1, ["a", "b"], other="b"))
    assert kept.null_count == 50 and reports[0].guarantee == "local DP" and reports[0].facts["epsilon"] == 1
    assert estimate_counts(kept, randomizer("unary_encoding", 1, ["a", "b"], other="b")).people == 150


def test_who_has_no_target_is_not_left_out_where_reports_hide_it() -> None:
    """Who is known to be in the source and is not in the table would have none for certain."""
    asked = {"technique": "local_frequencies", "epsilon": 1, "categories": ["a", "none"]}
    content = {
        "dataset": "people", "source": {"path": "people.csv"}, "target": "ill", "missing_target": "leave_out",
        "privacy": {"k_anonymity": {"k": 5}},
    }  # fmt: skip
    for hides in (False, True):
        steps = [asked | ({"missing": "none"} if hides else {})]
        columns = {"age": {"role": "quasi_identifier"}, "ill": {"role": "sensitive", "steps": steps}}
        with pytest.raises(ValidationError, match="hides who has no value") if hides else nullcontext():
            ReleaseSpec.model_validate(content | {"columns": columns})


def test_an_unchanged_row_repeats_its_report_and_another_key_gives_another() -> None:
    column, made = pa.array(["a", "b"] * 500), randomizer("randomized_response", 1, ["a", "b"])
    ids = {"id": pa.array(np.arange(1000))}
    first, again = (masked(column, CATEGORICAL, made, others=ids)[0] for _ in range(2))
    assert first.equals(again)
    assert not first.equals(masked(column, CATEGORICAL, made, others=ids, key=OTHER_KEY)[0])


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"epsilon": 0, "categories": ["a", "b"]}, "greater than 0"),
        ({"epsilon": 1, "categories": ["a"]}, "at least 2"),
        ({"epsilon": 1, "categories": ["a", "a"]}, "one stands twice"),
        ({"epsilon": 1, "categories": ["a", "b"], "other": "c"}, "'c' is not among the categories"),
        ({"categories": ["a", "b"]}, "Field required"),
    ],
)
def test_what_makes_no_sense_is_refused(parameters: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        step("randomized_response", **parameters)


@pytest.mark.parametrize("technique", ["randomized_response", "unary_encoding"])
def test_where_nobody_answered_every_count_is_zero(technique: str) -> None:
    made = randomizer(technique, 1, ["a", "b"])
    for answers in (pa.array([], pa.string()), pa.array([None, None], pa.string())):
        counts, people = made.counts(answers)
        assert counts.tolist() == [0, 0] and people == 0


def test_columns_that_hold_no_reports_are_refused() -> None:
    unary, direct = randomizer("unary_encoding", 1, ["a", "b"]), randomizer("randomized_response", 1, ["a", "b"])
    for column in (["011"], ["0"], ["ab"], ["1é"], ["01", "011"], ["0", "10", None]):
        with pytest.raises(ValueError, match="2 digits"):
            estimate_counts(pa.array(column), unary)
    with pytest.raises(ValueError, match="not among the categories"):
        estimate_counts(pa.array(["a", "c"]), direct)
    with pytest.raises(InputError, match="does not end with"):
        randomizer_of([], "v")
    empty = estimate_counts(pa.array([None, None], pa.string()), unary)
    assert empty.people == 0 and [one.high for one in empty.counts] == [0, 0]


@pytest.mark.long
def test_the_command_reads_the_spec_or_the_manifest_beside_the_table(tmp_path: Path) -> None:
    made = randomizer("local_frequencies", 2, ["a", "b", "c"])
    shown, _ = masked(pa.array(["a"] * 900 + ["b"] * 100), CATEGORICAL, made)
    pq.write_table(pa.table({"v": shown}), tmp_path / "data.parquet")
    runner = CliRunner()

    def command(*arguments: str) -> Any:
        return runner.invoke(app, ["estimate", str(tmp_path / "data.parquet"), *arguments])

    absent = command("--column", "v")
    assert isinstance(absent.exception, InputError) and "--spec" in str(absent.exception)
    steps = [made.model_dump(mode="json")]
    (tmp_path / "manifest.json").write_text(json.dumps({"spec": {"columns": {"v": {"steps": steps}}}}))
    told = json.loads(command("--column", "v", "--json").stdout)
    assert told["people"] == 1000 and told["technique"] == "randomized_response"
    assert sum(one["count"] for one in told["counts"]) == pytest.approx(1000)
    assert told["counts"][0]["low"] < 900 < told["counts"][0]["high"]
    assert "95 % interval" in command("--column", "v").stdout
    assert isinstance(command("--column", "w").exception, InputError)
    (tmp_path / "broken").mkdir()
    (tmp_path / "manifest.json").write_text(json.dumps({"spec": {"columns": {"v": {"steps": [{"technique": 3}]}}}}))
    assert isinstance(command("--column", "v").exception, InputError)


def test_other_techniques_are_no_randomizers() -> None:
    assert {RandomizedResponse, UnaryEncoding} <= set(LocalRandomizer.__subclasses__())
    with pytest.raises(InputError):
        randomizer_of([step("pram", retention=0.5)], "v")


@pytest.mark.parametrize(
    "answers",
    [
        pa.array(np.array([1, 2], dtype=np.float16)),
        pa.array([["a"], ["b"]], pa.list_(pa.string())),
        pa.array([b"\xff", b"a"], pa.binary()),
    ],
    ids=["half floats", "lists", "bytes"],
)
def test_values_of_types_that_no_step_reports_are_refused_without_a_word_of_them(
    tmp_path: Path, answers: pa.Array
) -> None:
    """Half floats and lists ended the command with an internal error."""
    pq.write_table(pa.table({"v": answers}), tmp_path / "data.parquet")
    steps = [randomizer("randomized_response", 2, ["a", "b"]).model_dump(mode="json")]
    (tmp_path / "manifest.json").write_text(json.dumps({"spec": {"columns": {"v": {"steps": steps}}}}))
    ended = CliRunner().invoke(app, ["estimate", str(tmp_path / "data.parquet"), "--column", "v"])
    assert isinstance(ended.exception, InputError)
    assert re.search(r"column v: it holds \S+( \S+)? values, which no step reports$", str(ended.exception))
