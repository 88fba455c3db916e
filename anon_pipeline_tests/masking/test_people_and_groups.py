"""Sampling, aggregation, local suppression and synthetic columns."""

from __future__ import annotations

import hashlib
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.keys import Key
from anon_pipeline.masking.aggregation import Aggregate, aggregate_for_readers, aggregate_of
from anon_pipeline.masking.execution import Resources, StepReport, apply_steps
from anon_pipeline.masking.grouping import groups_of, keys_of
from anon_pipeline.masking.local_suppression import _fill_up, _ways, suppressed
from anon_pipeline.masking.synthetic import _classes, _feature, _filled
from anon_pipeline.spec import ColumnType, ReleaseSpec
from anon_pipeline_tests.masking.tables import CATEGORICAL, KEY, NUMERIC, people, step

RNG = np.random.default_rng(11)


def done(table: pa.Table, technique: str, key: Key = KEY, **parameters: Any) -> tuple[pa.Table, StepReport]:
    kinds = {
        name: CATEGORICAL if pa.types.is_string(table.schema.field(name).type) else NUMERIC
        for name in table.column_names
    }
    made, (report,) = apply_steps(table, kinds, {}, [step(technique, **parameters)], Resources(key=key))
    return made, report


#: Of what is left: columns, values of each, rows, k and the digest.
PINNED_SUPPRESSION = [
    (3, 3, 30, 2, "56157caa79fa"),
    (3, 5, 80, 3, "06c5ba3279b8"),
    (4, 3, 120, 5, "10eba6b519a0"),
    (5, 2, 60, 4, "5a299ac519c5"),
    (2, 9, 50, 3, "795e84b32318"),
]


# ------------------------------------------------------------------ sampling


def test_a_sample_has_its_share_and_everybody_the_same_chance() -> None:
    table = pa.table({"v": np.arange(1000)})
    drawn = Counter[int]()
    for seed in range(60):
        made, report = done(table, "sample", Key(bytes([seed] * 32)), share=0.3)
        assert len(made) == 300 == report.facts["rows_kept"]
        drawn.update(made.column("v").to_pylist())
    counts = np.array([drawn[one] for one in range(1000)])
    assert abs(((counts - 18) ** 2).sum() / (60 * 0.3 * 0.7) - 1000) < 200


def test_strata_are_sampled_in_proportion() -> None:
    table = pa.table({"s": ["a"] * 500 + ["b"] * 49 + ["c"] * 7 + [None] * 44, "v": np.arange(600)})
    made, report = done(table, "sample", columns=["s"], share=0.1)
    assert Counter(made.column("s").to_pylist()) == {"a": 50, "b": 5, "c": 1, None: 4}
    assert report.facts == {"rows_kept": 60, "strata": 4}


# ------------------------------------------------------------------ aggregation


def test_groups_show_counts_and_means_by_the_rules() -> None:
    table = pa.table(
        {
            "town": ["Ulm"] * 20 + ["Bonn"] * 12 + ["Köln"] * 11 + ["Bern"] * 5 + [None] * 10,
            "income": [100.0] * 20 + [1.0] * 11 + [1000.0] + [5.0] * 9 + [None] * 2 + [7.0] * 5 + [-3.0] * 10,
        }
    )
    made, report = done(table, "aggregate", columns=["town"], means=["income"], threshold=10)
    found = {row["town"]: (row["people"], row["mean_income"]) for row in made.to_pylist()}
    # Bern has too few; the next smallest (those without a town) go too, or Bern's count would be a difference. Bonn's
    # mean is one person's, and Köln's is one of nine known values.
    assert found == {"Ulm": (20, 100.0), "Bonn": (12, None), "Köln": (11, None)}
    assert report.facts == {"groups": 3, "groups_left_out": 2, "people_left_out": 15, "means_hidden": 2}
    looser, _ = done(
        table,
        "aggregate",
        columns=["town"],
        means=["income"],
        threshold=5,
        dominance={"n": 1, "share": 0.999, "p_percent": 0},
    )
    found = {row["town"]: (row["people"], row["mean_income"]) for row in looser.to_pylist()}
    # 1011 / 12 in steps of a fifth: twelve people, whose incomes are whole numbers.
    assert found["Bonn"] == (12, 84.2) and found[None] == (10, -3.0) and found["Bern"] == (5, 7.0)
    twice, _ = done(
        table, "aggregate", columns=["town"], means=["income"], threshold=5, dominance={"n": 2, "share": 0.1}
    )
    assert {row["town"]: row["mean_income"] for row in twice.to_pylist()}["Ulm"] == pytest.approx(100.0)
    assert {row["town"]: row["mean_income"] for row in twice.to_pylist()}["Bern"] is None


def test_groups_are_left_out_until_they_hide_each_other() -> None:
    towns = [town for town, number in {"a": 30, "b": 13, "c": 12, "d": 4, "e": 3}.items() for _ in range(number)]
    made, report = done(pa.table({"town": towns}), "aggregate", columns=["town"], threshold=10)
    # The two that are too small are 7 people together: as a difference, a count below the threshold.
    assert made.to_pylist() == [{"town": "a", "people": 30}, {"town": "b", "people": 13}]
    assert (report.facts["groups_left_out"], report.facts["people_left_out"]) == (3, 19)
    enough, _ = done(pa.table({"town": [*towns, *"ffffff"]}), "aggregate", columns=["town"], threshold=10)
    assert enough.column("town").to_pylist() == ["a", "b", "c"]


def test_groups_of_no_means_and_names_that_are_taken() -> None:
    made, _ = done(pa.table({"a": ["x"] * 10, "b": [1] * 10}), "aggregate", columns=["b", "a"])
    assert made.to_pylist() == [{"b": 1, "a": "x", "people": 10}]
    with pytest.raises(ValueError, match="people is a name of the table that is made"):
        step("aggregate", columns=["people"])


def test_a_table_of_groups_says_which_columns_it_is_made_from() -> None:
    made = step("aggregate", columns=["b", "a"], means=["x", "y"], threshold=7)
    assert isinstance(made, Aggregate) and made.smallest_group == 7
    assert list(made.sources.items()) == [
        ("b", ("b",)), ("a", ("a",)), ("people", ("b", "a")), ("mean_x", ("x",)), ("mean_y", ("y",)),
    ]  # fmt: skip


def test_the_last_step_of_a_spec_makes_the_groups() -> None:
    sample = {"technique": "sample", "share": 0.5}
    group = {"technique": "aggregate", "columns": ["town"]}
    for before in (1, 2, 3):
        spec = ReleaseSpec.model_validate(
            {
                "dataset": "people",
                "source": {"path": "people.csv"},
                "target": "ill",
                "columns": {"town": {"role": "quasi_identifier"}, "ill": {"role": "sensitive"}},
                "privacy": {"k_anonymity": {"k": 5}},
                "steps": [*[sample] * before, group],
            }
        )
        assert aggregate_of(spec) is spec.steps[before]


def test_readers_know_the_quasi_identifiers_unless_the_step_names_others() -> None:
    columns = {"town": {"role": "quasi_identifier"}, "age": {"role": "quasi_identifier"}, "ill": {"role": "sensitive"}}
    for stated, known in ((None, ("town", "age")), ([], ()), (["ill"], ("ill",))):
        group = {"technique": "aggregate", "columns": ["ill", "town", "age"]}
        group |= {} if stated is None else {"known": stated}
        content = {"dataset": "people", "source": {"path": "people.csv"}, "target": "ill", "columns": columns}
        spec = ReleaseSpec.model_validate(content | {"privacy": {"k_anonymity": {"k": 5}}, "steps": [group]})
        assert aggregate_for_readers(spec).known == known
        assert ("known" in spec.policy()["steps"][0]) is (stated is not None)
    with pytest.raises(ValueError, match="known: born is none of the columns of the groups"):
        step("aggregate", columns=["town"], known=["born"])


def test_a_small_group_is_hidden_among_people_of_the_same_known_values() -> None:
    """An attack: readers know that 15 people live in Ulm. Of the 14 who are shown they subtract, and one is ill."""
    people = {("Ulm", "no"): 14, ("Ulm", "yes"): 1, ("Bonn", "no"): 20, ("Bonn", "yes"): 12, ("Kiel", "yes"): 3,
              ("Rom", "flu"): 11, ("Rom", "no"): 30, ("Rom", "yes"): 4}  # fmt: skip
    rows = [group for group, number in people.items() for _ in range(number)]
    table = pa.table({"town": [town for town, _ in rows], "ill": [ill for _, ill in rows]})
    known, report = done(table, "aggregate", columns=["town", "ill"], threshold=10, known=["town"])
    shown = {(row["town"], row["ill"]): row["people"] for row in known.to_pylist()}
    assert shown == {group: people[group] for group in (("Bonn", "no"), ("Bonn", "yes"), ("Rom", "no"))}
    assert (report.facts["groups_left_out"], report.facts["people_left_out"]) == (5, 33)
    for known_columns in ([], ["town", "ill"]):
        made, _ = done(table, "aggregate", columns=["town", "ill"], threshold=10, known=known_columns)
        assert {(row["town"], row["ill"]) for row in made.to_pylist()} == {
            group
            for group, number in people.items()
            if number >= 12  # 11 hide 8
        }


# ------------------------------------------------------------------ local suppression


@pytest.mark.parametrize(
    ("rows", "k", "filled"),
    [
        ([[0, 0], [1, 1], [1, 1], [1, 1]], 2, [[0, 0], [0, 0], [1, 1], [1, 1]]),  # a group can spare the first of three
        ([[1, 1], [1, 1], [1, 1], [0, 0], [2, 2], [2, 2], [2, 2]], 2,
         [[0, 0], [1, 1], [1, 1], [0, 0], [2, 2], [2, 2], [2, 2]]),
        ([[1, 1]] * 3 + [[0, 0]] + [[2, 0]] * 4, 3, [[0, 0]] * 5 + [[2, 0]] * 3),
        ([[0, 0], [1, 1], [2, 2], [1, 1], [2, 2]], 2, [[0, 0], [0, 0], [2, 2], [0, 0], [2, 2]]),
        ([[0, 0], [0, 0], [1, 1], [1, 1], [1, 1]], 2, [[0, 0], [0, 0], [1, 1], [1, 1], [1, 1]]),
    ],
)  # fmt: skip
def test_who_shows_nothing_is_joined_by_as_few_as_reach_k(
    rows: list[list[int]], k: int, filled: list[list[int]]
) -> None:
    changed = np.array(rows)
    _fill_up(changed, k)
    assert changed.tolist() == filled


def test_ways_to_suppress_go_from_the_cheapest_to_the_dearest() -> None:
    suppress = ["".join("abc"[i] for i in np.flatnonzero(~kept)) for kept in _ways([2.0, 1.0, 1.0])]
    assert suppress == ["c", "b", "a", "bc", "ac", "ab"]


def test_cells_that_k_people_share_already_stay() -> None:
    codes = np.array([[1, 1], [1, 1], [2, 2], [2, 2]])
    assert suppressed(codes, 2, [1, 1]).tolist() == codes.tolist()
    alike, report = done(pa.table({"a": ["x"] * 3}), "local_suppression", columns=["a"], k=3)
    assert alike.column("a").to_pylist() == ["x"] * 3 and report.facts == {"cells": 0, "rows": 0, "cells.a": 0}


@pytest.mark.parametrize(("columns", "values", "n", "k", "pinned"), PINNED_SUPPRESSION)
def test_local_suppression_shows_the_same_in_every_version(
    columns: int, values: int, n: int, k: int, pinned: str
) -> None:
    codes = np.random.default_rng(n).integers(0, values, (n, columns))
    found = suppressed(codes, k, [1.0 + 0.5 * (i % 2) for i in range(columns)])
    assert min(Counter(map(tuple, found.tolist())).values()) >= k
    assert hashlib.sha256(found.astype("<i8").tobytes()).hexdigest()[:12] == pinned


def cells(before: npt.NDArray[np.int64], after: npt.NDArray[np.int64]) -> int:
    return int((before != after).sum())


def least(codes: npt.NDArray[np.int64], k: int) -> int:
    """The fewest cells by trying all."""
    n, p = codes.shape
    best = n * p
    for mask in product((0, 1), repeat=n * p):
        if sum(mask) < best:
            tried = np.where(np.array(mask).reshape(n, p), 0, codes)
            if min(Counter(map(tuple, tried.tolist())).values()) >= k:
                best = sum(mask)
    return best


def test_at_most_two_cells_more_than_the_fewest_are_suppressed_on_average() -> None:
    more = 0
    for _ in range(12):
        codes = RNG.integers(1, 4, (5, 2))
        found = suppressed(codes, 2, [1, 1])
        assert min(Counter(map(tuple, found.tolist())).values()) >= 2
        more += cells(codes, found) - least(codes, 2)
    assert more <= 24


def test_where_no_group_can_spare_anybody_a_whole_one_joins_who_show_nothing() -> None:
    rows = np.array([[0, 0], [1, 1], [1, 1], [2, 2], [2, 2]])
    _fill_up(rows, 2)
    assert rows.tolist() == [[0, 0], [0, 0], [0, 0], [2, 2], [2, 2]]


def test_important_columns_are_suppressed_last() -> None:
    table = pa.table({"a": ["x"] * 6 + ["p", "p", "q", "q"], "b": ["x"] * 6 + ["u", "w", "u", "w"]})
    for importance, column in (({"a": 5.0}, "b"), ({"b": 5.0}, "a")):
        _, report = done(table, "local_suppression", columns=["a", "b"], k=2, importance=importance)
        assert report.facts[f"cells.{column}"] == 4 == report.facts["cells"] == report.facts["rows"]
    _, report = done(pa.table({"a": ["x"] * 4, "b": ["u"] * 4}), "local_suppression", columns=["a", "b"], k=3)
    assert report.facts["cells"] == 0 and report.guarantee == "k"


def test_larger_tables_reach_k_with_few_cells() -> None:
    codes = np.column_stack([RNG.geometric(0.3, 3000), RNG.geometric(0.4, 3000), RNG.integers(1, 4, 3000)])
    found = suppressed(codes, 5, [1, 1, 1])
    assert min(Counter(map(tuple, found.tolist())).values()) >= 5
    rare = np.array(
        [one < 5 for one in np.array(list(map(Counter(map(tuple, codes.tolist())).get, map(tuple, codes.tolist()))))]
    )
    assert rare.sum() <= cells(codes, found) < 1.6 * rare.sum()
    assert (found[~rare] == codes[~rare]).all(axis=1).mean() > 0.99


def test_too_few_rows_and_foreign_weights_are_refused() -> None:
    with pytest.raises(InputError, match=r"steps\.0: the table has 2 rows, fewer than k = 3"):
        done(pa.table({"a": ["x", "y"]}), "local_suppression", columns=["a"], k=3)
    with pytest.raises(ValueError, match=r"importance\.b: is none of the columns"):
        step("local_suppression", columns=["a"], k=2, importance={"b": 1})
    with pytest.raises(ValueError, match="must be numbers above 0"):
        step("local_suppression", columns=["a"], k=2, importance={"a": 0})
    with pytest.raises(ValueError, match="are more than 12"):
        step("local_suppression", columns=[str(i) for i in range(13)], k=2)
    assert len(step("local_suppression", columns=[str(i) for i in range(12)], k=2).used) == 12


def test_keys_are_shared_by_equal_rows_only_however_many_columns() -> None:
    codes = [RNG.integers(0, 2000, 500) for _ in range(9)]  # too much for one integer without renumbering
    codes = [np.concatenate([column, column[:100]]) for column in codes]
    key = keys_of(codes)
    assert len(np.unique(key)) == len({*zip(*(column.tolist() for column in codes), strict=True)})
    assert (key[:100] == key[500:]).all()
    assert groups_of([pa.array(["a", None, "a", None])]).tolist() in ([0, 1, 0, 1], [1, 0, 1, 0])


# ------------------------------------------------------------------ synthetic columns


def example(n: int = 3000) -> tuple[pa.Table, dict[str, ColumnType]]:
    sex = RNG.choice(["f", "m"], n)
    age = RNG.integers(18, 80, n)
    income = 1000 * age + np.where(sex == "f", 0, 20_000) + RNG.normal(0, 2000, n)
    gaps = RNG.random(n) < 0.1
    table = pa.table({"sex": sex, "age": age, "income": pa.array(income, mask=gaps), "id": np.arange(n)})
    return table, {"sex": CATEGORICAL, "age": NUMERIC, "income": NUMERIC, "id": NUMERIC}


@pytest.mark.long
def test_synthetic_columns_keep_relations_and_lose_people() -> None:
    table, _ = example()
    made, report = done(table, "synthesize", columns=["income"], given=["age", "sex"])
    assert made.column("age").equals(table.column("age")) and report.guarantee == "none"
    assert any("no formal guarantee" in note for note in report.notes)
    real, synthetic = (np.array(one.column("income").to_pylist(), dtype=float) for one in (table, made))
    age, sex = np.array(table.column("age")), np.array(table.column("sex").to_pylist())
    known = ~np.isnan(synthetic)
    assert np.corrcoef(synthetic[known], age[known])[0, 1] == pytest.approx(
        np.corrcoef(real[~np.isnan(real)], age[~np.isnan(real)])[0, 1], abs=0.03
    )
    assert synthetic[known & (sex == "m")].mean() - synthetic[known & (sex == "f")].mean() == pytest.approx(
        20_000, rel=0.2
    )
    assert (~known).mean() == pytest.approx(0.1, abs=0.03)
    assert (synthetic[known] == real[known]).mean() < 0.15
    assert set(synthetic[known]) <= set(real[~np.isnan(real)])


def test_full_synthesis_draws_every_column() -> None:
    table, _ = example()
    table = table.drop(["id"])
    made, report = done(table, "synthesize", columns=["sex", "age", "income"], mode="full")
    assert len(made) == len(table) and report.facts["own_value.sex"] < 0.01  # type: ignore[operator]
    for name in ("sex", "age"):
        before, after = (
            np.unique(np.array(one.column(name).to_pylist()), return_counts=True)[1] for one in (table, made)
        )
        assert len(before) == len(after) and np.abs(before - after).max() < 150
    age = np.array(made.column("age").to_pylist(), dtype=float)
    income = np.array(made.column("income").to_pylist(), dtype=float)
    known = ~np.isnan(income)
    assert np.corrcoef(age[known], income[known])[0, 1] > 0.7
    with pytest.raises(InputError, match=r"steps\.0\.columns: the mode full names every one; income would stay real"):
        done(table, "synthesize", columns=["sex", "age"], mode="full")


def test_a_hybrid_keeps_a_part_of_the_people_as_they_are() -> None:
    table, _ = example()
    made, report = done(table, "synthesize", columns=["age"], given=["income"], mode="hybrid", share=0.25)
    same = np.array(made.column("age")) == np.array(table.column("age"))
    assert 0.7 < same.mean() < 0.85 and report.facts["rows_synthetic"] == pytest.approx(750, abs=90)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({}, "given: is empty; name the columns that stay"),
        ({"mode": "full", "given": ["b"]}, "given: has no meaning in the mode full"),
        ({"mode": "hybrid", "given": ["b"]}, "share: belongs to the mode hybrid"),
        ({"given": ["b"], "share": 0.5}, "share: belongs to the mode hybrid"),
        ({"given": ["a"]}, "named twice"),
    ],
)
def test_modes_that_make_no_sense_are_refused(parameters: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        step("synthesize", columns=["a"], **parameters)


def test_a_table_of_many_categories_is_synthesized() -> None:
    names = [f"name {i}" for i in range(400)]
    table = pa.table({"a": RNG.choice(names, 2000), "b": RNG.choice(names, 2000)})
    made, _ = apply_steps(
        table,
        {"a": CATEGORICAL, "b": CATEGORICAL},
        {},
        [step("synthesize", columns=["a"], given=["b"])],
        Resources(key=KEY),
    )
    assert set(made.column("a").to_pylist()) <= set(names) and len(people(3)[0]) == 3


def test_numbers_and_categories_become_features_of_a_tree() -> None:
    assert _filled(np.array([1.0, 3.0, np.nan])).tolist() == [1, 3, -1]  # the least less one deviation less 1
    assert _filled(np.array([np.nan, np.nan])).tolist() == [0, 0]
    assert _filled(np.array([1e300, -1e300])).tolist() == [1e37, -1e37]
    assert _classes(pa.array(["a", "b", "b", None])).tolist() == [2, 0, 0, 1]
    many = _classes(pa.array([str(i) for i in range(60)] + ["59", "59", "58"]))
    assert many[[59, 58, 0]].tolist() == [0, 1, 2] and many.max() == 50 and (many == 50).sum() == 10
    target = np.array([1.0, 3.0, 5.0, 7.0, 9.0])
    means = _feature(pa.array(["a", "a", "b", "c", None]), CATEGORICAL, target, np.array([0, 1, 2, 4]))
    assert means.tolist() == [2, 2, 5, 0, 9]
    assert _feature(pa.array([4, 2]), NUMERIC, target[:2], np.arange(2)).tolist() == [4, 2]


@pytest.mark.parametrize(("n", "is_mixed"), [(20, False), (19, True)])
def test_a_tree_is_grown_where_two_leaves_have_enough_people(n: int, is_mixed: bool) -> None:
    group = np.arange(n) % 2
    made, _ = done(pa.table({"x": 100.0 * group, "g": group}), "synthesize", columns=["x"], given=["g"], leaf=10)
    assert (np.array(made.column("x")) != 100 * group).any() == is_mixed


def test_ties_of_a_tree_are_broken_by_a_number_of_31_bits_under_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    import sklearn.tree

    states = []

    class Watched(sklearn.tree.DecisionTreeRegressor):  # type: ignore[misc]
        def fit(self, *parts: Any) -> Any:
            states.append(self.random_state)
            return super().fit(*parts)

    monkeypatch.setattr(sklearn.tree, "DecisionTreeRegressor", Watched)
    table = pa.table({"x": np.arange(8.0), "g": np.arange(8)})
    for number in range(12):
        done(table, "synthesize", Key(bytes([number] * 32)), columns=["x"], given=["g"], leaf=2)
    assert len(set(states)) == 12 and max(states) < 2**31 and max(states) > 2**29
