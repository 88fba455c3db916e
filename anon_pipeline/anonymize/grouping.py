"""The classes of a table's cells and what they show, whichever way they were made; stored as files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anon_pipeline.anonymize import classes, storage
from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.recode import Summary, narrowed, summarize
from anon_pipeline.arrays import IntArray
from anon_pipeline.home import write_file
from anon_pipeline.tables import Cells, Domain

TREE, CLASSES, SUMMARIES = "tree.json", "classes.npz", "summaries.json"


@dataclass(frozen=True, eq=False)
class Grouping:
    """The classes of a table's cells.

    Attributes
    ----------
    class_of_cell : class of each cell, -1 for people who are left out, shape (C,)
    withheld_people : people who are left out until enough others can be released with them
    sizes : people per class, shape (J,)
    summaries : what each class shows, per quasi-identifier
    information_loss : share of each quasi-identifier's variance lost
    """

    class_of_cell: IntArray
    withheld_people: int
    sizes: IntArray
    summaries: list[Summary]
    information_loss: dict[str, float]

    @property
    def table(self) -> pd.DataFrame:
        """One row per class, as `AnonymizerTree.classes_`."""
        return classes.class_table(self.sizes, self.summaries)

    @classmethod
    def of_tree(cls, tree: AnonymizerTree, cells: Cells) -> Grouping:
        """The classes that a fitted tree gives its cells."""
        return cls.of_fitted(tree, tree.partition_.apply(cells.codes))

    @classmethod
    def of_fitted(cls, tree: AnonymizerTree, class_of_cell: IntArray) -> Grouping:
        """The classes of a fitted tree, which is asked for no cell again: `class_of_cell` is what it gave them."""
        return cls(class_of_cell, 0, tree.sizes_, tree.summaries_, tree.information_loss_)

    def shown_in(
        self,
        storage: Mapping[str, str],
        bins: Mapping[str, Domain],
        cells: Cells,
        k: int,
        grids: Mapping[str, float],
    ) -> Grouping:
        """The same classes, with some columns shown by what follows from released people alone.

        Parameters
        ----------
        storage : narrower types of columns that all their values fit, `BIGINT` or `DATE`, by name
        bins : the columns whose bins enclose nobody else, by name
        """
        columns = [place for place, domain in enumerate(cells.domains) if domain.name in {*storage, *bins}]
        if not columns:
            return self
        some = cells.of_columns(columns)
        domains = [bins.get(domain.name, domain) for domain in some.domains]
        domains = [narrowed(of, storage[of.name]) if of.name in storage else of for of in domains]
        some = replace(some, domains=tuple(domains))
        again = {of.domain.name: of for of in summarize(some, self.class_of_cell, len(self.sizes), k, grids)}
        return replace(self, summaries=[again.get(summary.domain.name, summary) for summary in self.summaries])

    def in_order(self) -> Grouping:
        """The same classes, numbered by what they show and not by the leaf that they came from.

        The order of leaves reveals the model's predictions for their people; a published table must not have it.
        """
        table = self.table
        by = [*(name for name in table.columns if name != "class_size"), "class_size"]
        order = table.sort_values(by, key=_comparable, kind="stable").index.to_numpy()
        number = np.append(np.argsort(order), -1)  # the last is the place of class -1
        return replace(
            self,
            class_of_cell=number[self.class_of_cell],
            sizes=self.sizes[order],
            summaries=[summary.of_classes(order) for summary in self.summaries],
        )

    def save(self, folder: Path) -> None:
        """Write it into a folder of the private zone; it holds the values of the table's columns."""
        self.save_classes(folder)
        content = {
            "information_loss": self.information_loss,
            "summaries": storage.summaries_to_json(self.summaries),
        }
        write_file(folder / SUMMARIES, json.dumps(content))

    def save_classes(self, folder: Path) -> None:
        """Write the class of each cell alone, beside a tree that has all the rest."""
        np.savez(
            folder / CLASSES, class_of_cell=self.class_of_cell, withheld_people=self.withheld_people, sizes=self.sizes
        )

    @classmethod
    def load(cls, folder: Path, cells: Cells) -> Grouping:
        """Read what `save`, or a tree's own, wrote there."""
        if (folder / TREE).exists():
            tree = AnonymizerTree.load(folder / TREE)
            return cls.of_fitted(tree, _stored(folder)) if (folder / CLASSES).exists() else cls.of_tree(tree, cells)
        content = json.loads((folder / SUMMARIES).read_text(encoding="utf-8"))
        with np.load(folder / CLASSES, allow_pickle=False) as arrays:
            return cls(
                class_of_cell=arrays["class_of_cell"],
                withheld_people=int(arrays["withheld_people"]),
                sizes=arrays["sizes"],
                summaries=storage.summaries_from_json(content["summaries"]),
                information_loss=content["information_loss"],
            )


def stored_classes(folder: Path, cells: Cells) -> IntArray:
    """The class of each cell alone, of what is stored in a folder, shape (C,)."""
    if (folder / CLASSES).exists():
        return _stored(folder)
    return Grouping.load(folder, cells).class_of_cell  # stored by a version that asked the tree again


def _stored(folder: Path) -> IntArray:
    with np.load(folder / CLASSES, allow_pickle=False) as arrays:
        class_of_cell: IntArray = arrays["class_of_cell"]
    return class_of_cell


def _comparable(column: pd.Series[Any]) -> pd.Series[Any]:
    """A column of the class table in a form that can be sorted: sets and texts as texts, all else as it is."""
    return column.map(repr) if column.dtype == object else column
