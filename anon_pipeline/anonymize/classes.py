"""Equivalence classes over cells: which cell belongs to which, how large each is, what the grouping loses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from anon_pipeline.anonymize.labels import NO_LABEL
from anon_pipeline.anonymize.recode import CategorySummary, OrderedSummary, Summary, released_cells
from anon_pipeline.anonymize.tree import SplitTree, hash_of_codes
from anon_pipeline.arrays import BoolArray, IntArray
from anon_pipeline.privacy.statistics import histogram
from anon_pipeline.tables import Cells

#: Of every column, the classes that show a value.
ALL_SHOWN: Mapping[str, BoolArray] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Partition:
    """Which class a tuple belongs to: the class of its leaf, unless the tuple is a cell listed in `elsewhere`.

    Attributes
    ----------
    tree : the fitted tree with L leaves
    class_of_leaf : the class 0 ... J - 1 that most people of each leaf belong to, -1 where they are suppressed,
        shape (L,)
    elsewhere : codes of the cells in another class than that of their leaf, ordered by their hashes, shape (m, p)
    class_elsewhere : the class of each of them, shape (m,)
    """

    tree: SplitTree
    class_of_leaf: IntArray
    elsewhere: npt.NDArray[np.int32]
    class_elsewhere: IntArray

    @classmethod
    def of(cls, tree: SplitTree, cells: Cells, leaf: IntArray, class_of_cell: IntArray) -> Partition:
        """The classes of cells, -1 for those that are left out, in a tree of which `leaf` is the leaf of each."""
        if np.array_equal(leaf, class_of_cell):  # as it is in large tables, where the rest takes a second
            return cls(tree, np.arange(tree.leaves), cells.codes[:0], leaf[:0])
        order = np.lexsort((class_of_cell, leaf))
        starts = np.flatnonzero(np.r_[True, (np.diff(leaf[order]) != 0) | (np.diff(class_of_cell[order]) != 0)])
        people = np.add.reduceat(cells.counts[order], starts)
        cell_of_class = order[starts]  # a cell of each class of each leaf
        # The last of a leaf has most people.
        best = cell_of_class[np.lexsort((-class_of_cell[cell_of_class], people, leaf[cell_of_class]))]
        class_of_leaf = np.full(tree.leaves, -1, dtype=np.int64)
        class_of_leaf[leaf[best]] = class_of_cell[best]
        elsewhere = np.flatnonzero(class_of_leaf[leaf] != class_of_cell)
        elsewhere = elsewhere[np.argsort(hash_of_codes(cells.codes[elsewhere]), kind="stable")]
        return cls(tree, class_of_leaf, cells.codes[elsewhere], class_of_cell[elsewhere])

    def apply(self, codes: npt.NDArray[np.int32]) -> IntArray:
        """The class of each tuple of codes, shape (n, p) to (n,)."""
        classes = self.class_of_leaf[self.tree.apply(codes)]
        if len(self.elsewhere):
            known, sought = hash_of_codes(self.elsewhere), hash_of_codes(codes)
            first = np.searchsorted(known, sought)
            end = np.searchsorted(known, known, side="right")  # of the run of equal hashes that each stands in
            listed = np.flatnonzero(known.take(first, mode="clip") == sought)
            first, last = first[listed], end[first[listed]]
            for step in range(int((last - first).max(initial=0))):  # more than one only where hashes of cells collide
                place = np.flatnonzero(first + step < last)
                row, entry = listed[place], first[place] + step
                same = (self.elsewhere[entry] == codes[row]).all(axis=1)
                classes[row[same]] = self.class_elsewhere[entry[same]]
        return classes


def members(class_of_cell: IntArray, classes: int) -> sparse.csr_array:
    """Which cells each class has, as a 0-1 matrix of shape (J, C); a suppressed cell stands in none."""
    order = np.argsort(class_of_cell, kind="stable")  # quicker than sparse's own way
    size = np.bincount(class_of_cell + 1, minlength=classes + 1)
    ones = np.ones(len(order) - size[0], dtype=np.int64)
    shape = classes, len(class_of_cell)
    return sparse.csr_array((ones, order[size[0] :], np.cumsum(size) - size[0]), shape=shape)


def sizes(cells: Cells, class_of_cell: IntArray, classes: int) -> IntArray:
    """People per class, shape (J,)."""
    kept = released_cells(class_of_cell)
    return np.bincount(class_of_cell[kept], weights=cells.counts[kept], minlength=classes).astype(np.int64)


def information_loss(
    cells: Cells,
    class_of_cell: IntArray,
    classes: int,
    summaries: Sequence[Summary] = (),
    hidden: Mapping[str, BoolArray] = ALL_SHOWN,
) -> dict[str, float]:
    """Share of each quasi-identifier's variance that lies within classes, 0 (nothing lost) to 1 (all).

    For numbers, dates and the places of ordered categories this is the within-class sum of squares over the total.
    For other categories it is the within-class Gini impurity over the total, where a missing value is a category;
    `summaries` spare counting them again. A constant column has nothing to lose. Suppressed people (class -1) have
    lost all: each counts as far from the column's centre as the average person. Of a class that shows no value
    (`hidden`, by column, shape (J,)), where the class lies is lost as well: its members count as far from the column's
    centre as they are.
    """
    kept = released_cells(class_of_cell)
    suppressed = 1.0 - cells.counts[kept].sum() / cells.n
    lost: dict[str, float] = {}
    counted = {summary.domain.name: summary.members for summary in summaries if isinstance(summary, CategorySummary)}
    for column, domain in enumerate(cells.domains):
        code = cells.codes[:, column].astype(np.int64)
        group, count = class_of_cell[kept], cells.counts[kept]
        if domain.positions is not None:
            value = np.r_[np.nan, domain.positions.astype(np.float64)][code]
            known = ~np.isnan(value)
            if not known.any():
                lost[domain.name] = 0.0
                continue
            value = value - np.average(value[known], weights=cells.counts[known])
            total = float((cells.counts[known] * value[known] ** 2).sum())
            inside, is_known = value[kept], known[kept]
            people = np.bincount(group[is_known], weights=count[is_known], minlength=classes)
            summed = np.bincount(group[is_known], weights=count[is_known] * inside[is_known], minlength=classes)
            squares = float((count[is_known] * inside[is_known] ** 2).sum())
            within = squares - float((summed**2 / np.maximum(people, 1))[_shown(hidden, domain.name, classes)].sum())
        else:
            share = np.bincount(code, weights=cells.counts, minlength=len(domain)) / cells.n
            total = cells.n * (1.0 - float((share**2).sum()))
            members = counted.get(domain.name)
            if members is None:
                members = histogram(group, code[kept], count, (classes, len(domain)))
            people = np.asarray(members.sum(axis=1)).ravel()
            alike = np.bincount(
                np.repeat(np.arange(classes), np.diff(members.indptr)),
                weights=members.data.astype(float) ** 2,
                minlength=classes,
            )
            inside_of_class = people - alike / np.maximum(people, 1)
            if domain.name in hidden:
                about_all = people * (1.0 + float((share**2).sum())) - 2 * np.asarray(members @ share)
                inside_of_class = np.where(hidden[domain.name], about_all, inside_of_class)
            within = float(inside_of_class.sum())
        lost[domain.name] = float(min(1.0, max(0.0, within / total) + suppressed)) if total > 1e-9 else 0.0
    return lost


def _shown(hidden: Mapping[str, BoolArray], column: str, classes: int) -> BoolArray:
    """The classes that show a value of a column, shape (J,)."""
    return ~hidden[column] if column in hidden else np.ones(classes, dtype=bool)


def loss_as_released(
    cells: Cells, class_of_cell: IntArray, losses: dict[str, float], released_class: IntArray
) -> dict[str, float]:
    """The information loss within the equivalence classes of the released table, in which groups may look alike.

    `losses` is that within the groups, and `released_class` the equivalence class of each, shape (J,).
    """
    number = int(released_class.max()) + 1
    if number == len(released_class):
        return losses
    lost = information_loss(cells, np.where(class_of_cell < 0, -1, released_class[class_of_cell]), number)
    return {name: lost[name] for name in losses}  # without the cohorts of sequential publication


def counting_withheld(lost: dict[str, float], cells: Cells, withheld: int) -> dict[str, float]:
    """The same losses where more people are withheld, of whom there is no cell; each has lost all, as if suppressed."""
    share = cells.n / (cells.n + withheld)
    varied = {domain.name for domain in cells.domains if domain.apart}  # a constant column has nothing to lose
    return {name: 1.0 - (1.0 - loss) * share if name in varied else loss for name, loss in lost.items()}


def loss_as_told(
    cells: Cells,
    class_of_cell: IntArray,
    losses: dict[str, float],
    released_class: IntArray,
    hidden: Mapping[str, BoolArray] = ALL_SHOWN,
) -> dict[str, float]:
    """The information loss that a release tells: `loss_as_released`, with lone extremes moved in, hidden values lost.

    A number far from all others would decide the variance, and with it the loss, so that whoever knows all other
    numbers could compute it (`Domain.without_extremes`). Of groups that show no value of a column (`hidden`, by column,
    shape (J,); see `recode.hidden_values`) nobody learns where they lie in it, however much alike their members are.
    """
    lost = loss_as_released(cells, class_of_cell, losses, released_class)
    number = int(released_class.max()) + 1
    hiding = {name: np.bincount(released_class[of], minlength=number) > 0 for name, of in hidden.items() if of.any()}
    domains = {place: domain.without_extremes for place, domain in enumerate(cells.domains) if domain.name in lost}
    changed = [
        place
        for place, domain in domains.items()
        if domain is not cells.domains[place] or cells.domains[place].name in hiding
    ]
    if not changed:
        return lost
    some = replace(cells, domains=tuple(domains[place] for place in changed), codes=cells.codes[:, changed])
    alike = np.where(class_of_cell < 0, -1, released_class[class_of_cell])
    return lost | information_loss(some, alike, number, hidden=hiding)


def class_table(people: IntArray, summaries: list[Summary]) -> pd.DataFrame:
    """One row per class: its size and, per quasi-identifier, its representative and what it stands for.

    A number or date `age` gives the columns age, age_low, age_high and age_missing. An end is missing where it is open;
    both ends are missing where no value is published. age_missing is None where some members have no value and this is
    not published. A category `race` gives race and race_values, the list of its published categories. A column `zip`
    with a hierarchy also gives zip_label and zip_level: the lowest node that covers the class and may be named, in the
    hierarchy's words, and its level (0: the value itself; None where fewer than two members have a value).
    """
    columns: dict[str, object] = {"class_size": people}
    for summary in summaries:
        name = summary.domain.name
        if isinstance(summary, OrderedSummary):
            unknown = summary.known < 2
            domain = summary.domain
            columns[name] = _nullable(domain.readable(summary.representative), summary.withheld)
            columns[f"{name}_low"] = _nullable(domain.readable(summary.low), unknown | summary.open_low)
            columns[f"{name}_high"] = _nullable(domain.readable(summary.high), unknown | summary.open_high)
            unpublished = (summary.missing > 0) & ~summary.missing_told
            columns[f"{name}_missing"] = pd.arrays.BooleanArray(summary.missing_told, unpublished)
        else:
            names = np.array([None, *summary.domain.values, "*"], dtype=object)  # code -1 is the last
            columns[name] = names[summary.representative]
            columns[f"{name}_values"] = summary.sets()
        if summary.labels is not None:
            columns[f"{name}_label"] = summary.labels.texts
            columns[f"{name}_level"] = _nullable(summary.labels.levels, summary.labels.levels == NO_LABEL)
    return pd.DataFrame(columns)


def _nullable(values: np.ndarray, missing: np.ndarray) -> Any:
    if values.dtype.kind == "M":
        return pd.array(np.where(missing, np.datetime64("NaT"), values).astype("datetime64[us]"))
    nullable = pd.Series(values, dtype="Int64" if values.dtype.kind == "i" else "Float64")
    nullable[missing] = pd.NA
    return nullable.array
