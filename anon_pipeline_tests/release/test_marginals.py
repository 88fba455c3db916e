"""The bars of a release: people by groups of the values that its classes show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from hypothesis import given, settings

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.recode import hidden_values, recoded_table
from anon_pipeline.anonymize.recoding_statistics import column_statistics
from anon_pipeline.release.marginals import NO_SINGLE_VALUE, NOT_NAMED, marginals
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.people import Table, tables

few = settings(max_examples=times(30))


@few
@given(tables())
def test_bars_are_of_whole_classes_and_of_everybody(table: Table) -> None:
    tree = AnonymizerTree(k=table.k).fit(table.frame, table.guidance)
    for one in marginals(tree.summaries_, tree.sizes_, table.k).values():
        assert sum(one["after"]) == len(table.frame)
        assert len(one["groups"]) == len(one["after"])
        assert all(people >= table.k for people in one["after"])


@few
@given(tables())
def test_bars_follow_from_what_is_released(table: Table) -> None:
    """Told of a table in which everybody has what their class shows, they are the same."""
    tree = AnonymizerTree(k=table.k).fit(table.frame, table.guidance)
    released = tree.transform(table.frame)
    for name, one in marginals(tree.summaries_, tree.sizes_, table.k).items():
        values, people = released[name].dropna().astype(str), dict(zip(one["groups"], one["after"], strict=True))
        for value, count in values[values != "*"].value_counts().items():  # as texts: no category without people
            assert people.get(value, count) == count


def test_people_of_whom_nothing_is_told_are_counted_as_such() -> None:
    """Two towns that one person each bears, and an age that one has and one lacks: the class shows neither."""
    frame = pd.DataFrame({"town": ["a", "b", *["c"] * 4], "age": [1, None, 60, 60, 60, 60]})
    tree = AnonymizerTree(k=2, grids={"age": 1}).fit(frame, [0, 0, 9, 9, 9, 9])
    for one in marginals(tree.summaries_, tree.sizes_, 2).values():
        assert one["groups"][-1] == NOT_NAMED
        assert one["after"][-1] == 2


@few
@given(tables())
def test_of_ranges_as_many_are_not_told_as_there_are_rows_without_one(table: Table) -> None:
    """237 of 900 were not told in the bars, without a value that stands for them, and 211 rows showed no range."""
    tree = AnonymizerTree(k=table.k).fit(table.frame, table.guidance)
    recoded = recoded_table(tree.summaries_, "range")
    hidden = hidden_values(tree.summaries_, recoded, "range")
    withheld = column_statistics(tree.summaries_, tree.sizes_, {}, hidden)
    for name, one in marginals(tree.summaries_, tree.sizes_, table.k, hidden).items():
        people = dict(zip(one["groups"], one["after"], strict=True))
        assert sum(people.values()) == len(table.frame)
        assert people.get(NOT_NAMED, 0) == round(withheld[name]["withheld"] * len(table.frame))
        assert all(number >= table.k for number in people.values())


def test_a_range_of_which_no_number_stands_for_all_is_told() -> None:
    """The reader sees the range; of the number that would stand for it nothing is shown."""
    ages = [20, 20, 31, 42, 53, 64, 75, 75]
    tree = AnonymizerTree(k=2, grids={"age": 1}).fit(pd.DataFrame({"age": ages}), [0] * 8)
    summary = replace(tree.summaries_[0], withheld=np.ones(len(tree.sizes_), dtype=bool))
    shown = np.zeros(len(tree.sizes_), dtype=bool)
    (of_ranges,) = marginals([summary], tree.sizes_, 2, {"age": shown}).values()
    assert (of_ranges["groups"], of_ranges["after"]) == ([NO_SINGLE_VALUE], [8])
    (of_values,) = marginals([summary], tree.sizes_, 2).values()
    assert (of_values["groups"], of_values["after"]) == ([NOT_NAMED], [8])
