"""Grouping for the next release: the former tree is kept as long as a new one would not be much better.

Cells are counted per cohort here, so that everything about a person depends on their cell: the last column is the
number of their cohort (cohorts.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from anon_pipeline.anonymize import classes, encoding, enforce, recode, storage, tree
from anon_pipeline.anonymize.axes import Orders, SplitFeature
from anon_pipeline.anonymize.chance import Chance
from anon_pipeline.anonymize.criterion import criterion_outputs
from anon_pipeline.anonymize.grouping import Grouping
from anon_pipeline.anonymize.repair import Repair
from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import write_file
from anon_pipeline.keys import Key
from anon_pipeline.privacy.base import PrivacyModel
from anon_pipeline.privacy.judge import judge
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.sequential.cohorts import NOT_RELEASED, WITHHELD, MinimumCohortSize, place
from anon_pipeline.tables import Cells, Domain

#: The class of people who are withheld or suppressed.
NO_CLASS = -1


@dataclass(frozen=True, eq=False)
class Routing:
    """A tree together with the values of its codes, so that it can be applied to later tables."""

    tree: tree.SplitTree
    domains: tuple[Domain, ...]

    def apply(self, cells: Cells) -> npt.NDArray[np.int32]:
        """The codes of this tree for the values of other cells, shape (C, p).

        Raises
        ------
        InputError
            Where the cells have other columns than the tree, or columns of another kind.
        """
        known = {domain.name: domain for domain in self.domains}
        codes = np.empty((len(cells.codes), len(self.domains)), dtype=np.int32)
        named = {domain.name: position for position, domain in enumerate(cells.domains)}
        for position, domain in enumerate(self.domains):
            if domain.name not in named:
                raise InputError(f"the former release was grouped by {domain.name}, which is no quasi-identifier now")
            column = named[domain.name]
            codes[:, position] = _translation(known[domain.name], cells.domains[column])[cells.codes[:, column]]
        return codes

    def save(self, path: Path) -> None:
        """Write it as JSON. It holds the values of the table's columns: keep it in the private zone."""
        write_file(path, json.dumps(storage.tree_to_json(self.tree, self.domains)))

    @classmethod
    def load(cls, path: Path) -> Routing:
        """Read a routing that `save` wrote."""
        return cls(*storage.tree_from_json(json.loads(path.read_text(encoding="utf-8"))))

    def has_columns(self, domains: Sequence[Domain]) -> bool:
        """Whether it is a tree of these columns: one of others, or of texts that are numbers now, groups nobody."""
        own, asked = ({(domain.name, domain.ordered) for domain in of} for of in (self.domains, domains))
        return own == asked


def _translation(known: Domain, new: Domain) -> npt.NDArray[np.int32]:
    """The code in `known` of every code of `new`, missing first, shape (m + 1,)."""
    if known.ordered:
        values = new.readable(new.values)
        kind: Any = {"i": "Int64", "f": "Float64", "M": "datetime64[us]"}[values.dtype.kind]
        column = pd.Series(pd.array([None, *values.tolist()], dtype=kind))
    else:
        column = pd.Series([None, *new.values.tolist()], dtype=object)
    return encoding.apply_domain(known, column)


@dataclass(frozen=True)
class Demands:
    """The demands on every class, and the parameters of the tree (see `AnonymizerTree`)."""

    models: Sequence[PrivacyModel]
    spread: float
    orders: Orders
    grids: Mapping[str, float]
    seed: int
    suppression: float = 0.0


@dataclass(frozen=True, eq=False)
class SequentialGrouping:
    """The grouping of a table that follows former releases.

    Attributes
    ----------
    routing : the tree it was made with
    kept : whether that is the tree of the former release
    lost, lost_otherwise : share of the criterion's variance lost with this tree, and with the other tree (or nan), of
        columns that are not nearly constant
    grouping : the classes
    """

    routing: Routing
    kept: bool
    lost: float
    lost_otherwise: float
    grouping: Grouping


@dataclass(frozen=True, eq=False)
class PeopleByCohort:
    """The people of a table that follows former releases.

    Attributes
    ----------
    cells : distinct tuples of quasi-identifiers and, as the last column, cohort; a cohort's value is its number, or
        `WITHHELD`
    people : the sensitive columns, counted per cell
    former_class : of each cohort in the newest former release, -1 for none; by the number of the cohort, (cohorts,)
    withheld : how many more people are withheld, of whom there is no cell
    """

    cells: Cells
    people: ClassStatistics
    former_class: IntArray
    withheld: int = 0

    def numbers(self) -> IntArray:
        """The cohort of each cell, 0 for newcomers, `WITHHELD` for people who are withheld, shape (C,)."""
        numbers: IntArray = np.r_[0, self.cells.domains[-1].values.astype(np.int64)][self.cells.codes[:, -1]]
        return numbers


@dataclass(frozen=True, eq=False, kw_only=True)
class RepairOfNodes(Repair):
    """Classes of a tree as the cells of a repair, so that they are merged as wholes and no cohort is split.

    Attributes
    ----------
    tuples : the quasi-identifiers of the people, which are the same in every release, while their cohort is not
    people_of_node : the tuples of each node, a 0-1 matrix of shape (nodes, C)
    """

    tuples: Cells
    people_of_node: sparse.csr_array

    def chance(self, key: Key) -> Chance:
        """The random decisions under the key; none where no demand depends on sensitive values."""
        return Chance(key if self.people.sensitive else None, Chance.of(key, self.tuples).joined(self.people_of_node))


def group_sequentially(
    cohorts: PeopleByCohort,
    former: Routing | None,
    minimum_size: MinimumCohortSize,
    demands: Demands,
    refit: float,
    key: Key,
) -> SequentialGrouping:
    """Group the people of a table that follows former releases.

    Trees and classes are those of the table without the people who are withheld for company. Otherwise they would
    differ by who left, and somebody who knows all people could tell whom of those who are gone the tree was made with.

    Parameters
    ----------
    former : the tree of the last release, if there is one
    refit : a new tree takes its place if it loses less by at least this share
    key : the dataset's private key, for the draws by which classes that fail a demand are merged

    Raises
    ------
    Refused
        If no grouping meets the demands.
    InputError
        If nobody can be released.
    """
    cells = cohorts.cells
    cohort = cohorts.numbers()
    staying = np.flatnonzero(cohort != WITHHELD)
    if not len(staying):
        raise InputError(f"nobody can be released: of no cohort are {minimum_size.k} people left")
    plain, _ = distinct_tuples(cells.part(staying))
    outputs = _outputs(cohorts, demands)
    fitted = tree.fit_tree(plain, minimum_size.split_threshold, demands.spread, demands.orders, demands.seed)
    fresh = Routing(fitted, plain.domains)
    tried = [(fresh, place(fitted, cells.codes[:, :-1], cohort, cells.counts, minimum_size))]
    if former is not None and former.has_columns(plain.domains):
        tried.append((former, place(former.tree, former.apply(cells), cohort, cells.counts, minimum_size)))
    losses = [_lost(outputs[staying], cells.counts[staying], node[staying]) for _, node in tried]
    kept = len(tried) == 2 and losses[1] <= losses[0] * (1 + refit)
    routing, node = tried[kept]
    # People who are withheld for company were drawn at random, so that of their variance about the same part is lost.
    share = cells.counts[staying].sum() / (cells.n + cohorts.withheld)
    telling = _outputs(cohorts, demands, telling=True)[staying]
    losses = [1 - (1 - _lost(telling, cells.counts[staying], node[staying])) * share for _, node in tried]
    if not (node != NOT_RELEASED).any():
        raise InputError(f"nobody can be released: of no cohort are {minimum_size.k} people left")
    class_of_cell = _meeting_demands(cohorts, node, outputs, demands, key)
    number = int(class_of_cell.max()) + 1
    grouped = _without_cohorts(cells)
    summaries = recode.summarize(grouped, class_of_cell, number, minimum_size.k, demands.grids)
    return SequentialGrouping(
        routing=routing,
        kept=kept,
        lost=losses[kept],
        lost_otherwise=losses[not kept] if len(tried) == 2 else float("nan"),
        grouping=Grouping(
            class_of_cell=class_of_cell,
            withheld_people=int(cells.counts[node == NOT_RELEASED].sum()) + cohorts.withheld,
            sizes=classes.sizes(grouped, class_of_cell, number),
            summaries=summaries,
            information_loss=classes.information_loss(grouped, class_of_cell, number, summaries),
        ),
    )


def distinct_tuples(cells: Cells) -> tuple[Cells, IntArray]:
    """The distinct tuples of quasi-identifiers alone, and the number of the tuple of each cell."""
    # Cells are in the order of their codes, so that those of one tuple follow one another.
    first = np.r_[True, (cells.codes[1:, :-1] != cells.codes[:-1, :-1]).any(axis=1)]
    starts = np.flatnonzero(first)
    plain = Cells(
        cells.domains[:-1],
        cells.codes[starts, :-1],
        np.add.reduceat(cells.counts, starts),
        np.add.reduceat(cells.guidance, starts, axis=0),
    )
    return plain, np.cumsum(first) - 1


def _without_cohorts(cells: Cells) -> Cells:
    """The same cells without the column of cohorts; tuples that differ only in the cohort occur several times."""
    return Cells(cells.domains[:-1], cells.codes[:, :-1], cells.counts, cells.guidance)


def _lost(outputs: FloatArray, counts: IntArray, node: IntArray) -> float:
    """The share of the criterion's variance that is lost: that within classes, and all of withheld people."""
    weight = counts / counts.sum()
    centred = outputs - np.einsum("c,co->o", weight, outputs)
    total = float(np.einsum("c,co->", weight, centred**2))
    if total <= 0:
        return 0.0
    present = node != NOT_RELEASED
    _, group = np.unique(node[present], return_inverse=True)
    people = np.bincount(group, weights=weight[present])
    between = 0.0
    for column in centred[present].T:
        between += float((np.bincount(group, weights=weight[present] * column) ** 2 / people).sum())
    return max(0.0, 1.0 - between / total)


def _repair_of(
    cohorts: PeopleByCohort, node: IntArray, outputs: FloatArray, demands: Demands
) -> tuple[RepairOfNodes, IntArray]:
    """The classes that the tree makes, with what is demanded of them.

    Parameters
    ----------
    node : the node at which each cell is released, or `NOT_RELEASED`, shape (C,)
    outputs : the criterion of each cell, shape (C, o)

    Returns
    -------
    What is to be repaired, a cell for each node with people; and the cell of each of the `cohorts`, or `NO_CLASS`.
    """
    cells, present = cohorts.cells, node != NOT_RELEASED
    placed = np.full(len(node), NO_CLASS, dtype=np.int64)
    placed[present] = np.unique(node[present], return_inverse=True)[1]
    number = int(placed.max()) + 1
    people_of_node = classes.members(placed, number)
    together = cohorts.people.without(~present).pool(people_of_node)
    repair = RepairOfNodes(
        Cells((), np.arange(number, dtype=np.int32)[:, None], together.sizes, np.zeros((number, 1), np.int64)),
        (SplitFeature(0, np.arange(number, dtype=np.int32)),),
        np.arange(number),
        (people_of_node @ (outputs * cells.counts[:, None])) / together.sizes[:, None],
        together,
        demands.models,
        int(demands.suppression * cells.n),
        mixes=False,
        former=_former_of_nodes(cohorts, placed),
        tuples=_without_cohorts(cells),
        people_of_node=people_of_node,
    )
    return repair, placed


def repair_of_release(
    cohorts: PeopleByCohort,
    routing: Routing,
    minimum_size: MinimumCohortSize,
    demands: Demands,
    class_of_cell: IntArray,
) -> tuple[RepairOfNodes, IntArray]:
    """A release ready to be grouped again: what was repaired, and the class of each of its cells, shape (nodes,).

    Parameters
    ----------
    routing : the tree that the release was made with
    class_of_cell : the released class of each cell of the cohorts, shape (C,)
    """
    cells = cohorts.cells
    node = place(routing.tree, routing.apply(cells), cohorts.numbers(), cells.counts, minimum_size)
    repair, placed = _repair_of(cohorts, node, _outputs(cohorts, demands), demands)
    class_of_node = np.full(len(repair.class_of_cell), NO_CLASS)
    class_of_node[placed[placed >= 0]] = class_of_cell[placed >= 0]
    return repair, class_of_node


def _outputs(cohorts: PeopleByCohort, demands: Demands, telling: bool = False) -> FloatArray:
    """The criterion of each cell, that of the table without people who are withheld, nought for these, shape (C, o).

    Where it is to be told, columns do not count in which hardly anybody differs from all others: each has the same
    variance, which would be that of one person.
    """
    staying = np.flatnonzero(cohorts.numbers() != WITHHELD)
    plain, cell = distinct_tuples(cohorts.cells.part(staying))
    if telling:
        plain = plain.of_columns([place for place, domain in enumerate(plain.domains) if not domain.nearly_constant])
    known = criterion_outputs(plain, demands.spread, demands.seed)[cell]
    outputs = np.zeros((len(cohorts.cells.counts), known.shape[1]))
    outputs[staying] = known
    return outputs


def _former_of_nodes(cohorts: PeopleByCohort, placed: IntArray) -> IntArray:
    """Of each node the class in which all of its people were who are in the newest former release, -1 for no such."""
    number = cohorts.numbers()
    former = np.where(number > 0, cohorts.former_class[np.maximum(number, 0)], NO_CLASS)
    known = (placed >= 0) & (former >= 0)
    return enforce.former_classes(former[known], placed[known], int(placed.max()) + 1)


def _meeting_demands(
    cohorts: PeopleByCohort, node: IntArray, outputs: FloatArray, demands: Demands, key: Key
) -> IntArray:
    """The class of each cell after classes that fail a demand were merged as wholes, so that no cohort is split."""
    repair, placed = _repair_of(cohorts, node, outputs, demands)
    class_of_node = repair.repaired(key)
    number = int(class_of_node.max()) + 1
    reached = repair.people.without(class_of_node < 0).pool(classes.members(class_of_node, number))
    failed = [finding for finding in judge(demands.models, reached) if not finding.holds]
    if failed:
        demanded = [
            f"{finding.name}: no grouping was found in which {finding.demand}, with people of one history kept together"
            for finding in failed
        ]
        raise Refused(demanded, demanded)
    return np.where(placed >= 0, class_of_node[placed], NO_CLASS)
