"""Boxes hold those they were made for; candidates are those that a slow and simple search finds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anon_pipeline import AnonymizerTree
from anon_pipeline.attack import candidates as module
from anon_pipeline.attack.candidates import find_candidates, misfit
from anon_pipeline.attack.released import Knowledge, encode, read_release
from anon_pipeline.errors import InputError
from anon_pipeline_tests.attack.tables import KNOWLEDGE, QUASI, anonymized, people
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.people import COLUMNS, TEXTS, Table, tables

#: Texts that a range or set cannot tell from its own signs are left to the table of classes.
PLAIN_KINDS = [
    "whole",
    "negative",
    "tenths",
    "single",
    "boolean",
    "nullable_whole",
    "date",
    "moment",
    "zoned",
    "constant",
]


def numeric(frame: pd.DataFrame) -> list[str]:
    return [
        str(name)
        for name in frame
        if not pd.api.types.is_bool_dtype(frame[name])
        and (pd.api.types.is_numeric_dtype(frame[name]) or pd.api.types.is_datetime64_any_dtype(frame[name]))
    ]


def own_group_fits(table: Table, form: str) -> None:
    frame = table.frame.reset_index(drop=True)
    try:
        tree = AnonymizerTree(k=table.k, form=form).fit(frame, table.guidance)
    except InputError:
        assume(False)
    released = tree.transform(frame)
    classes = tree.classes_ if form == "value" else None
    knowledge = Knowledge([str(name) for name in frame], numeric=numeric(frame))
    release = read_release(released, [frame], knowledge, classes)
    codes = encode(release.domains, frame)
    fitting = find_candidates(release, codes, rule="fitting")
    own = fitting.unit[release.group]
    assert fitting.best[np.arange(len(frame)), own].all()
    assert (misfit(release, codes, fitting) == 0).all()


#: Floats beyond 2^53 may lie a few units in the last place outside of the interval that is published.
KINDS = sorted(set(COLUMNS) - {"neighbours"})


@pytest.mark.long
@given(tables(kinds=KINDS))
@settings(max_examples=times(60))
def test_everyone_fits_their_own_class_by_the_published_table_of_classes(table):
    own_group_fits(table, "value")


@pytest.mark.long
@given(tables(kinds=PLAIN_KINDS))
@settings(max_examples=times(60))
def test_everyone_fits_their_own_class_by_its_ranges_and_sets(table):
    own_group_fits(table, "range")


@given(tables())
@settings(max_examples=times(60))
def test_a_raw_row_is_found_again_exactly(table):
    frame = table.frame.reset_index(drop=True)
    knowledge = Knowledge([str(name) for name in frame], numeric=numeric(frame))
    # A person whose text is "*" cannot be told from one that is not shown.
    frame = frame.replace({"*": "star"})
    release = read_release(frame, [frame], knowledge)
    found = find_candidates(release, encode(release.domains, frame))
    assert (found.records() == release.sizes[release.group]).all()
    assert found.best[np.arange(len(frame)), found.unit[release.group]].all()


def slowly(release, codes, columns):
    """Candidate groups of each person, by the most cells that fit."""
    found = []
    for person in codes:
        fits = [
            sum(bool(release.boxes[c].fits(person[[c]])[0, release.box[group, c]]) for c in columns)
            for group in range(len(release.sizes))
        ]
        found.append(set(np.flatnonzero(np.array(fits) == max(fits)).tolist()))
    return found


@pytest.mark.long
@pytest.mark.parametrize("columns", [[0], [1, 3], [0, 1, 2, 3, 4]])
def test_fitting_candidates_are_those_of_a_slow_search(columns, monkeypatch):
    table = people(120, 1)
    released, classes, _ = anonymized(table, k=5)
    release = read_release(released, [table], KNOWLEDGE, classes)
    codes = encode(release.domains, people(40, 2)[list(QUASI)])
    codes = np.maximum(codes, 0)
    monkeypatch.setattr(module, "BLOCK", 100)  # a few people at a time
    found = find_candidates(release, codes, columns, rule="fitting")
    best = found.best.toarray() > 0
    groups = [set(np.flatnonzero(np.isin(found.unit, np.flatnonzero(row))).tolist()) for row in best]
    assert groups == slowly(release, codes, columns)
    assert (found.sizes[found.unit] >= release.sizes).all()


def test_the_likeliest_group_is_the_narrow_one_that_fits():
    table = pd.DataFrame({"x": np.arange(100), "c": np.repeat(["a", "b"], 50)})
    released = pd.DataFrame({"x": ["[0, 99]"] * 80 + ["[40, 49]"] * 10, "c": ["{a, b}"] * 80 + ["a"] * 10})
    release = read_release(released, [table], Knowledge(["x", "c"], numeric=["x"]))
    found = find_candidates(release, encode(release.domains, table))
    inside = (table.x >= 40) & (table.x <= 49)
    assert (found.records() == np.where(inside, 10, 80)).all()
    both = find_candidates(release, encode(release.domains, table), rule="fitting")
    assert (both.records() == np.where(inside, 90, 80)).all()


def test_a_wrong_cell_does_not_lose_a_person_for_who_expects_one():
    table = pd.DataFrame({name: np.arange(100) // 10 for name in "abcd"})
    released = table.map(lambda value: f"[{value}, {value}]")
    release = read_release(released, [table], Knowledge(list("abcd"), numeric=list("abcd")))
    codes = encode(release.domains, table)
    codes[:, 0] = codes[::-1, 0]
    found = find_candidates(release, codes, wrong=0.1)
    assert found.best[np.arange(100), found.unit[release.group]].all()
    assert (found.records() == 10).all()


def test_numbers_are_near_where_only_single_values_are_shown():
    table = pd.DataFrame({"x": [1.0, 2, 3, 50, 51, 52], "y": [1.0, 1, 1, 9, 9, 9]})
    released = pd.DataFrame({"x": [2.0] * 3 + [51.0] * 3, "y": [1.0] * 3 + [9.0] * 3})
    release = read_release(released, [table], Knowledge(["x", "y"], numeric=["x", "y"]))
    found = find_candidates(release, encode(release.domains, table))
    assert (found.unit[release.group] == found.best.toarray().argmax(axis=1)).all()
    assert (found.records() == 3).all()


def test_a_misfit_is_the_mean_over_the_best_groups():
    table = pd.DataFrame({"x": np.arange(10), "c": list("aaaaabbbbb")})
    released = pd.DataFrame({"x": ["[0, 4]", "[0, 9]", "[5, 9]"], "c": ["{b}", "{b}", "{b}"]})
    release = read_release(released, [table], Knowledge(["x", "c"], numeric=["x"]))
    found = find_candidates(release, encode(release.domains, table), rule="fitting")
    assert found.records().tolist() == [2] * 10
    assert misfit(release, encode(release.domains, table), found).tolist() == [1.0] * 5 + [0.0] * 5


def test_the_budget_leaves_people_out_from_the_end():
    table = people(200, 1)
    released, classes, _ = anonymized(table, k=5)
    release = read_release(released, [table], KNOWLEDGE, classes)
    codes = encode(release.domains, table)
    every = find_candidates(release, codes)
    few = find_candidates(release, codes, budget=len(release.sizes) * 5 * 7)
    assert len(few) == 7
    assert (few.records() == every.records()[:7]).all()
    assert len(find_candidates(release, codes, budget=0)) == 1  # one at least


@pytest.mark.parametrize("first", [True, False])
def test_a_misfit_is_counted_for_everybody_of_many(first: bool):
    table = pd.DataFrame({"x": np.arange(1200)})
    shown = "[0, 599]" if first else "[600, 1199]"
    release = read_release(pd.DataFrame({"x": [shown] * 3}), [table], Knowledge(["x"], numeric=["x"]))
    codes = encode(release.domains, table)
    fits = (np.arange(1200) < 600) == first
    assert misfit(release, codes, find_candidates(release, codes)).tolist() == (1.0 - fits).tolist()


def test_a_number_near_to_the_one_shown_is_a_fraction_of_a_misfit():
    table = pd.DataFrame({"x": [0.0, 2, 6, 40], "c": ["a", "b", "a", "b"]})
    release = read_release(
        pd.DataFrame({"x": [2.0] * 3, "c": ["a"] * 3}), [table], Knowledge(["x", "c"], numeric=["x"])
    )
    codes = encode(release.domains, table)
    spread = 2 * np.std([0, 2, 6, 40])
    expected = [2 / spread, 1, 4 / spread, 1 + 1]
    assert misfit(release, codes, find_candidates(release, codes)) == pytest.approx(expected, abs=1e-3)


def test_who_is_not_found_by_looking_up_is_nearest_to_somebody():
    table = pd.DataFrame({"x": [0.0, 1, 5, 9, 10, 20]})
    release = read_release(pd.DataFrame({"x": [1.0, 9, 9]}), [table], Knowledge(["x"], numeric=["x"]))
    found = find_candidates(release, encode(release.domains, table))
    assert found.best.toarray().tolist() == [[1, 0], [1, 0], [1, 1], [0, 1], [0, 1], [0, 1]]
    assert (len(found), found.records().tolist()) == (6, [1, 1, 3, 2, 2, 2])


def test_a_table_of_classes_that_says_nothing_of_missing_values_rules_none_out():
    """Neither a class with a range may be ruled out then, nor one that tells nothing."""
    table = pd.DataFrame({"x": [1, 9, None]})
    released = pd.DataFrame({"x": [1, 5]})
    classes = pd.DataFrame({"class_size": [1, 1], "x": [1, 5], "x_low": [1, None], "x_high": [2, None]})
    release = read_release(released, [table], Knowledge(["x"], numeric=["x"]), classes)
    found = find_candidates(release, encode(release.domains, table), rule="fitting")
    assert found.records().tolist() == [2, 1, 2]


def test_who_is_looked_up_costs_nothing_and_is_found_once():
    """Rows that show single values are looked up, those of the first unit, too."""
    table = pd.DataFrame({"x": [1, 1, 1, 2, 5]})
    release = read_release(pd.DataFrame({"x": [1, 2]}), [table], Knowledge(["x"], numeric=["x"]))
    found = find_candidates(release, encode(release.domains, table), budget=2)
    assert len(found) == 5  # the last one alone is compared with both
    assert found.records().tolist() == [1] * 5


def test_classes_that_show_the_same_are_one_group_with_both_boxes():
    table = pd.DataFrame({"x": [1, 2, 8, 9], "c": ["a", "b", "a", "d"]})
    released = pd.DataFrame({"x": [5] * 4, "c": ["a"] * 4})
    classes = pd.DataFrame(
        {
            "class_size": [2, 2], "x": [5, 5], "x_low": [1, 8], "x_high": [2, 9], "x_missing": [False, False],
            "c": ["a", "a"], "c_values": [["a", "b"], ["a", "d"]],
        }
    )  # fmt: skip
    release = read_release(released, [table], Knowledge(["x", "c"], numeric=["x"]), classes)
    found = find_candidates(release, encode(release.domains, table), rule="fitting")
    assert (misfit(release, encode(release.domains, table), found) == 0).all()
    assert (found.records() == 4).all()


def test_a_class_is_represented_by_what_its_rows_show_and_not_by_its_list() -> None:
    table = pd.DataFrame({"c": ["a", None, "b", "b"]})
    released = pd.DataFrame({"c": [None, None, "b", "b"]})
    classes = pd.DataFrame({"class_size": [2, 2], "c": [None, "b"], "c_values": [["a"], ["b"]]})
    release = read_release(released, [table], Knowledge(["c"]), classes)
    assert release.representative.tolist() == [[0.0], [2.0]]  # missing, and the second category


def test_what_is_withheld_is_a_missing_value_in_columns_that_hold_no_text():
    """One class shows "*" in both columns; a column of truth values can only lack a value there."""
    frame = pd.DataFrame({"b": [True, True, None, False, False], "c": ["a", "a", "a", None, "a"]})
    frame = frame.iloc[[0, 1, 0, 1, 2, 3]].reset_index(drop=True)
    released = frame.assign(b=[True] * 4 + [None] * 2, c=["a"] * 4 + ["*"] * 2)
    classes = pd.DataFrame(
        {"b": [True, "*"], "b_values": [["true"], ["*"]], "c": ["a", "*"], "c_values": [["a"], ["*"]]}
    )
    release = read_release(released, [frame], Knowledge(["b", "c"]), classes)
    codes = encode(release.domains, frame)
    fitting = find_candidates(release, codes, rule="fitting")
    assert (misfit(release, codes, fitting) == 0).all()
    assert fitting.records().tolist() == [6, 6, 6, 6, 2, 2]


def test_a_class_is_found_by_a_number_that_the_release_holds_in_fewer_digits():
    frame = pd.DataFrame({"x": np.array([-0.5, 0.25, 9, 9], dtype=np.float32)})
    released = pd.DataFrame({"x": np.array([-0.1, -0.1, 9, 9], dtype=np.float32)})
    classes = pd.DataFrame({"x": [-0.1, 9], "x_low": [-0.5, 9], "x_high": [0.5, 9], "x_missing": [False, False]})
    release = read_release(released, [frame], Knowledge(["x"], numeric=["x"]), classes)
    codes = encode(release.domains, frame)
    assert (misfit(release, codes, find_candidates(release, codes, rule="fitting")) == 0).all()


def test_rows_that_no_published_class_explains_stand_for_themselves():
    table = pd.DataFrame({"x": [1, 2, 8, 9], "c": ["a", "b", "a", "d"]})
    released = pd.DataFrame({"x": [5, 5, 8, 9], "c": ["a", "a", "a", "d"]})
    classes = pd.DataFrame(
        {"x": [5], "x_low": [1], "x_high": [2], "x_missing": [False], "c": ["a"], "c_values": [["a", "b"]]}
    )
    release = read_release(released, [table], Knowledge(["x", "c"], numeric=["x"]), classes)
    assert find_candidates(release, encode(release.domains, table)).records().tolist() == [2, 2, 1, 1]


def test_what_cannot_be_attacked_is_refused():
    table = people(20, 1)
    with pytest.raises(InputError, match="lacks the columns city"):
        read_release(table.drop(columns="city"), [table], KNOWLEDGE)
    with pytest.raises(InputError, match="no rows"):
        read_release(table[:0], [table], KNOWLEDGE)
    with pytest.raises(InputError, match="at least one"):
        Knowledge([])
    with pytest.raises(InputError, match="one role"):
        Knowledge(["a"], ["a"])


@pytest.mark.long
@given(st.lists(st.sampled_from(TEXTS), min_size=4, max_size=30), st.data())
def test_published_lists_are_read_whatever_their_texts(values, data):
    frame = pd.DataFrame(
        {"c": values, "n": data.draw(st.lists(st.integers(0, 9), min_size=len(values), max_size=len(values)))}
    )
    own_group_fits(Table(frame, np.zeros(len(frame)), 2), "value")
