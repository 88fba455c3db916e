"""The order of the classes tells what they show and nothing else."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.anonymize import encoding
from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.classes import Partition
from anon_pipeline.anonymize.grouping import TREE, Grouping, stored_classes
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.people import Table, tables


def grouped(table: Table) -> Grouping:
    learned = [encoding.learn_domain(str(name), table.frame[name]) for name in table.frame]
    codes = np.stack([code for _, code in learned], axis=1)
    cells, _ = encoding.count_cells(tuple(domain for domain, _ in learned), codes, table.guidance)
    return Grouping.of_tree(AnonymizerTree(k=table.k).fit(table.frame, table.guidance), cells)


def plain(table: pd.DataFrame) -> list[Any]:
    return [tuple(map(repr, row)) for row in table.itertuples(index=False)]


@pytest.mark.long
@settings(max_examples=times(60))
@given(tables(), st.randoms(use_true_random=False))
def test_classes_found_in_any_order_are_published_in_one(table: Table, random: Any) -> None:
    found = grouped(table)
    order = list(range(len(found.sizes)))
    random.shuffle(order)
    number = np.argsort(order)
    shuffled = replace(
        found,
        class_of_cell=np.where(found.class_of_cell < 0, -1, number[found.class_of_cell]),
        sizes=found.sizes[order],
        summaries=[summary.of_classes(np.array(order)) for summary in found.summaries],
    )
    assert plain(shuffled.in_order().table) == plain(found.in_order().table)


@pytest.mark.long
@settings(max_examples=times(60))
@given(tables())
def test_everybody_stays_in_their_class(table: Table) -> None:
    found = grouped(table)
    ordered = found.in_order()
    assert found.withheld_people == 0  # a tree withholds nobody
    before, after = plain(found.table), plain(ordered.table)
    assert sorted(before) == sorted(after)
    alone = replace(found, class_of_cell=np.append(found.class_of_cell, -1)).in_order()
    assert alone.class_of_cell.tolist() == [*ordered.class_of_cell.tolist(), -1]  # who is left out stays it
    for old, new in zip(found.class_of_cell, ordered.class_of_cell, strict=True):
        assert (old < 0 and new < 0) or before[old] == after[new]


def test_a_new_tuple_of_a_leaf_is_in_the_class_of_most_of_its_people() -> None:
    values = pd.Series([0] * 4 + [1] * 5 + [2] * 4)
    domain, code = encoding.learn_domain("x", values)
    cells, _ = encoding.count_cells((domain,), code[:, None], np.zeros((13, 1)))
    one_leaf = SimpleNamespace(leaves=1, apply=lambda codes: np.zeros(len(codes), dtype=np.int64))
    partition = Partition.of(one_leaf, cells, np.zeros(3, dtype=np.int64), np.array([1, 0, 1]))  # type: ignore[arg-type]
    assert partition.class_of_leaf.tolist() == [1]  # of 8 people, and not the class of the largest cell
    assert partition.apply(cells.codes).tolist() == [1, 0, 1]


@pytest.mark.long
@settings(max_examples=times(30))
@given(tables())
def test_a_stored_grouping_has_the_class_that_the_tree_gave_each_cell(
    tmp_path_factory: pytest.TempPathFactory, table: Table
) -> None:
    folder = tmp_path_factory.mktemp("grouping")
    learned = [encoding.learn_domain(str(name), table.frame[name]) for name in table.frame]
    codes = np.stack([code for _, code in learned], axis=1)
    cells, _ = encoding.count_cells(tuple(domain for domain, _ in learned), codes, table.guidance)
    tree = AnonymizerTree(k=table.k)
    class_of_cell = tree.fit_apply_cells(cells)
    assert class_of_cell.tolist() == tree.partition_.apply(cells.codes).tolist()
    tree.save(folder / TREE)
    former = Grouping.load(folder, cells)  # as a home keeps it from before cells were stored beside the tree
    assert former.class_of_cell.tolist() == stored_classes(folder, cells).tolist() == class_of_cell.tolist()
    Grouping.of_fitted(tree, class_of_cell[::-1]).save_classes(folder)
    stored = Grouping.load(folder, cells)
    assert stored.class_of_cell.tolist() == class_of_cell[::-1].tolist()  # read, and not asked for again
    assert stored_classes(folder, cells).tolist() == class_of_cell[::-1].tolist()
    assert stored.sizes.tolist() == former.sizes.tolist() and plain(stored.table) == plain(former.table)
