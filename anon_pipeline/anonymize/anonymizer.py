"""`AnonymizerTree`: the algorithm as a scikit-learn transformer of frames, without Dagster or an engine."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, estimator_html_repr

from anon_pipeline.anonymize import classes, encoding, recode, refinement, storage, tree
from anon_pipeline.anonymize.axes import Orders
from anon_pipeline.anonymize.column_types import in_type_of
from anon_pipeline.anonymize.containers import given_back, output_of, to_pandas
from anon_pipeline.anonymize.criterion import criterion_outputs
from anon_pipeline.anonymize.description import described
from anon_pipeline.anonymize.frames import KeepsColumns, check_present, of_frames, warn_of_rows_left_out
from anon_pipeline.anonymize.guidance import guidance_of
from anon_pipeline.anonymize.hierarchy import Hierarchy
from anon_pipeline.anonymize.ladder import Recount
from anon_pipeline.anonymize.level_columns import LevelColumns
from anon_pipeline.anonymize.notebook import table_of_facts
from anon_pipeline.anonymize.parameters import (
    TEXT,
    ByColumn,
    Constraint,
    Number,
    OneOf,
    Optional,
    Several,
    Whole,
    With,
    check_columns,
    check_parameters,
)
from anon_pipeline.anonymize.repair import Repair
from anon_pipeline.arrays import IntArray
from anon_pipeline.errors import InputError, number_of
from anon_pipeline.home import write_file
from anon_pipeline.keys import Key
from anon_pipeline.privacy.base import PrivacyModel
from anon_pipeline.privacy.k_anonymity import KAnonymity
from anon_pipeline.privacy.population_table import PEOPLE, people_in_own_box
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.tables import Cells, Domain
from anon_pipeline.workers import ALONE, Workers

#: A category of more values is free text or a code, and is grouped by a hierarchy or not at all.
MOST_TEXTS = 100_000
#: Tables of more distinct tuples keep the classes of the tree, since the time to tighten them grows with the cells.
REFINED = 2_000_000
log = logging.getLogger("anon_pipeline")

#: What each parameter may be; names of columns are compared with the table when it is known.
CONSTRAINTS: Mapping[str, Constraint] = {
    "k": Whole(2),
    "spread": Number(),
    "orders": OneOf(("guidance", "both", "each")),
    "refine": Whole(0),
    "grids": Optional(ByColumn(Number(excluded=True))),
    "levels": Optional(ByColumn(Several(TEXT, "a list of different texts", unique=True))),
    "hierarchies": Optional(ByColumn(With(Hierarchy, "a hierarchy"))),
    "demands": Several(With(PrivacyModel, "a privacy model"), "a list of privacy models"),
    "key": Optional(With(Key, "a Key")),
    "answers": Several(TEXT, "a list of names of sensitive columns"),
    "suppression": Number(below=1),
    "form": OneOf(("value", "range")),
    "random_state": Whole(0, 2**32 - 1),
}


class AnonymizerTree(KeepsColumns, TransformerMixin, BaseEstimator):
    """Group people who look alike on their quasi-identifiers and to a model, at least k to a group.

    It is a transformer of scikit-learn's for tables of pandas, polars and Arrow, and gives the kind that it takes:
    arrays have no names of columns, by which a person's values are told apart, so they are refused. All parameters are
    checked when a method that fits is called.

    Parameters
    ----------
    k : int, default 10
        Smallest number of people in an equivalence class, at least 2.
    spread : float, default 1.0
        Weight of the quasi-identifiers beside the guidance, 0 or more; 0 with one-hot labels as guidance is the
        algorithm of Goldsteen et al. (arXiv 2007.13086).
    orders : {"guidance", "both", "each"}, default "both"
        Category orders that the tree may split: by guidance, also by frequency, or also by every column of the
        guidance, where several models guide.
    refine : int, default 2,000,000
        A table of at most so many distinct tuples has its classes improved by local search after the tree
        (refinement.py), and a table of any size its columns weighed by their feature importance
        (feature_importance.py); 0 leaves every tree as it is. Not done at `spread` 0, which has nothing that could be
        improved, nor with a strict hierarchy or demands on a population, which are about what a tree gives, nor where
        the tree of more than 50,000 tuples loses less than a thousandth of the variance.
    grids : mapping of str to float, default None
        Published numbers are multiples of this step, above 0 and finite, in the unit of the column (dates:
        microseconds, or days for an engine's dates); from the data for columns that are absent.
    levels : mapping of str to sequence of str, default None
        The order of a column's categories, lowest first.
    hierarchies : mapping of str to Hierarchy, default None
        Columns whose classes show the words of a hierarchy (`Listed`, `Prefixes` or `Calendar` of
        anonymize/hierarchy.py), which the tree keeps to where it is strict.
    demands : sequence of PrivacyModel, default ()
        Privacy models beyond k-anonymity that every class must meet, such as LDiversity(column="income", l=2).
    key : Key, default None
        The secret under which chance is drawn where there are demands (see enforce.py); the same key gives the same
        classes. With None every fit makes a key that is kept nowhere. `save` leaves it out; pickle and joblib keep it.
    answers : collection of str, default ()
        The sensitive columns in which a missing value is an answer of its own; elsewhere it stands for what is worst
        for the people (see `anon_pipeline.privacy.missing`).
    suppression : float, default 0.0
        Share of the people, from 0 to below 1, who may be left out where that costs less than merging classes; some of
        these classes are left out at random though they meet the demands.
    form : {"value", "range"}, default "value"
        What a class shows: a representative of the column's own type, or texts such as "[25, 37]".
    random_state : int, default 0
        Seed of the tree's tie-breaks, 0 to 2**32 - 1.

    Attributes
    ----------
    sizes_ : ndarray of int64, shape (J,)
        People per equivalence class.
    classes_ : DataFrame of J rows
        Per equivalence class class_size and what each quasi-identifier shows (`classes.class_table`).
    information_loss_ : dict of str to float
        Share of each quasi-identifier's variance lost within classes, 0 to 1. More is lost in a table in which classes
        look alike (`classes.loss_as_released`).
    feature_names_in_ : ndarray of str, shape (p,)
        The quasi-identifiers.
    n_features_in_ : int
        Their number, p.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [23, 25, 24, 61, 67, 64], "city": ["Ulm", "Ulm", "Ulm", "Bonn", "Bonn", "Bonn"]})
    >>> AnonymizerTree(k=3, grids={"age": 1}).fit_transform(people, [0.1, 0.2, 0.1, 0.8, 0.9, 0.9])
       age  city
    0   20   Ulm
    1   20   Ulm
    2   20   Ulm
    3   65  Bonn
    4   65  Bonn
    5   65  Bonn
    """

    domains_: tuple[Domain, ...]
    partition_: classes.Partition
    summaries_: list[recode.Summary]
    sizes_: IntArray
    information_loss_: dict[str, float]

    def __init__(  # noqa: PLR0913 (scikit-learn: a parameter of its own for everything)
        self,
        k: int = 10,
        *,
        spread: float = 1.0,
        orders: Orders = "both",
        refine: int = REFINED,
        grids: Mapping[str, float] | None = None,
        levels: Mapping[str, Sequence[str]] | None = None,
        hierarchies: Mapping[str, Hierarchy] | None = None,
        demands: Sequence[PrivacyModel] = (),
        key: Key | None = None,
        answers: Collection[str] = (),
        suppression: float = 0.0,
        form: Literal["value", "range"] = "value",
        random_state: int = 0,
    ) -> None:
        self.k = k
        self.spread = spread
        self.orders = orders
        self.refine = refine
        self.grids = grids
        self.levels = levels
        self.hierarchies = hierarchies
        self.demands = demands
        self.key = key
        self.answers = answers
        self.suppression = suppression
        self.form = form
        self.random_state = random_state

    def fit(self, X: Any, y: npt.ArrayLike | None = None, sensitive: Any = None) -> Self:
        """Learn the classes of the people in `X`.

        Parameters
        ----------
        X : table of shape (n, p) of pandas, polars or Arrow, the quasi-identifiers
        y : the guidance, tied to `X` by position: numbers or labels of shape (n,) or (n, g); without it people are
            grouped by their quasi-identifiers alone
        sensitive : the columns that `demands` protect, tied to `X` by position

        Raises
        ------
        InputError
            For a frame that could be misread, fewer than k rows, or guidance of another length.
        Refused
            If no grouping meets the demands.
        """
        self._fit_rows(to_pandas(X), y, to_pandas(sensitive))
        return self

    def fit_transform(self, X: Any, y: npt.ArrayLike | None = None, sensitive: Any = None) -> Any:
        """As `fit` and then `transform` of the same people, at less cost: each row's class is looked up once."""
        people = to_pandas(X)
        group = self._fit_rows(people, y, to_pandas(sensitive))
        return given_back(self._recoded(people, group), X, output_of(self))

    def _fit_rows(self, X: pd.DataFrame, y: npt.ArrayLike | None, sensitive: pd.DataFrame | None) -> IntArray:
        """Learn the classes; the class of each row, shape (n,)."""
        self._check_parameters()
        encoding.check_frame(X)
        if len(X) < self.k:
            raise InputError(f"the table has {number_of(len(X), 'row', 'rows')}, fewer than k = {self.k}")
        if sensitive is not None:
            encoding.check_frame(sensitive)
            if len(sensitive) != len(X):
                raise InputError(
                    f"the sensitive columns have {number_of(len(sensitive), 'row', 'rows')}, the table {len(X):,}"
                )
        counted = [] if sensitive is None else list(sensitive.columns)
        check_columns("answers", self.answers, counted, "sensitive column")
        guidance = guidance_of(y, len(X))
        learned = [encoding.learn_domain(str(name), X[name]) for name in X.columns]
        codes = np.stack([code for _, code in learned], axis=1)
        cells, cell = encoding.count_cells(tuple(domain for domain, _ in learned), codes, guidance)
        return self._fit_cells(cells, encoding.count_sensitive(cells, cell, sensitive, self.answers))[cell]

    def fit_cells(
        self,
        cells: Cells,
        people: ClassStatistics | None = None,
        population_table: pd.DataFrame | None = None,
        workers: Workers = ALONE,
    ) -> Self:
        """As `fit_apply_cells`, for those who only need the fitted tree."""
        self.fit_apply_cells(cells, people, population_table, workers)
        return self

    def fit_apply_cells(
        self,
        cells: Cells,
        people: ClassStatistics | None = None,
        population_table: pd.DataFrame | None = None,
        workers: Workers = ALONE,
    ) -> IntArray:
        """Learn the classes from cells that an engine has counted; the same classes as from the rows behind them.

        Parameters
        ----------
        people : the sensitive columns counted per cell; needed where there are demands on them
        population_table : the distinct tuples of the population (privacy/population_table.py); needed for demands on it
        workers : processes for the work on large tables

        Returns
        -------
        The class of each cell, -1 where its people are suppressed, shape (C,).
        """
        self._check_parameters()
        return self._fit_cells(cells, people, population_table, workers)

    def _fit_cells(
        self,
        cells: Cells,
        people: ClassStatistics | None,
        population_table: pd.DataFrame | None = None,
        workers: Workers = ALONE,
    ) -> IntArray:
        """Learn the classes; the class of each cell, shape (C,)."""
        cells = self._described(cells)
        if cells.n < self.k:
            raise InputError(f"the table has {number_of(cells.n, 'row', 'rows')}, fewer than k = {self.k}")
        self._check_texts(cells)
        fitted, leaf, repair = self._before_demands(cells, people, population_table, workers)
        class_of_cell = repair.class_of_cell
        if self.demands:
            class_of_cell = repair.repaired(self.key or Key(secrets.token_bytes(32)))
            repair.refuse_what_fails(class_of_cell)
        self._settle(cells, classes.Partition.of(fitted, cells, leaf, class_of_cell), class_of_cell)
        return class_of_cell

    def _check_texts(self, cells: Cells) -> None:
        """Refuse a column of too many different texts."""
        for domain in cells.domains:
            if domain.ordered or domain.nodes is not None:
                continue
            fact = f"the column {domain.name} has {len(domain.values)} different texts in {cells.n} rows"
            if len(domain.values) > max(30, 0.5 * cells.n):
                # Times of day cannot be made numeric; their first two characters are the hour.
                coarser = "shorten it to its hour (the step prefix, length: 2)"
                coarser = coarser if domain.storage == "TIME" else "make it numeric, shorten it to a prefix,"
                raise InputError(
                    f"{fact}: nearly everyone has a value of their own, so no class could show one; {coarser} or "
                    "exclude it"
                )
            if len(domain.values) > MOST_TEXTS:
                raise InputError(
                    f"{fact}, more than the {MOST_TEXTS} that can be grouped as they are; say what they have in common "
                    f"by columns.{domain.name}.hierarchy, such as {{prefix: [3, 2]}} or {{file: ...}}, or exclude it"
                )

    def repair_of(self, cells: Cells, people: ClassStatistics, population_table: pd.DataFrame | None = None) -> Repair:
        """The classes before the demands are looked at, made from the quasi-identifiers alone, and the demands."""
        self._check_parameters()
        return self._before_demands(self._described(cells), people, population_table, ALONE)[2]

    def _described(self, cells: Cells) -> Cells:
        self._check_columns(cells.domains)
        return replace(cells, domains=described(cells.domains, self.levels or {}, self.hierarchies or {}))

    def _before_demands(
        self,
        cells: Cells,
        people: ClassStatistics | None,
        population_table: pd.DataFrame | None,
        workers: Workers,
    ) -> tuple[tree.SplitTree, IntArray, Repair]:
        """The tree, the leaf of each cell, and the classes with what is asked of them."""
        strict = any(domain.nodes is not None and domain.nodes.strict for domain in cells.domains)
        weighed = self.spread > 0 and population_table is None and not strict and self.refine > 0
        refined = weighed and len(cells.counts) <= self.refine
        if weighed and not refined:
            log.info(
                "%s distinct tuples are more than refine = %s: classes stay as the tree has them",
                f"{len(cells.counts):,}",
                f"{self.refine:,}",
            )
        by_level = LevelColumns.of(cells, self.k)
        how = (self.k, self.spread, self.orders, self.random_state)
        fitted, leaf = tree.fit_leaves(by_level.cells, *how, weighed=weighed)
        fitted = replace(fitted, features=by_level.axes(fitted.features))
        repair = Repair(
            cells,
            fitted.features,
            refinement.refine(by_level.cells, leaf, self.k, self.spread, workers) if refined else leaf,
            criterion_outputs(by_level.cells, self.spread, self.random_state) if self.demands else np.empty(0),
            people or ClassStatistics(sizes=cells.counts),
            [KAnonymity(k=self.k), *self.demands],
            int(self.suppression * cells.n),
            None if population_table is None else self._population_counter(cells, fitted, population_table),
            mixes=self.spread > 0,
        )
        return fitted, leaf, repair

    def _population_counter(self, cells: Cells, fitted: tree.SplitTree, population_table: pd.DataFrame) -> Recount:
        """Counts the people of the population inside each class's box, with the first of the class's cells."""
        names = [domain.name for domain in cells.domains]
        codes = np.stack(
            [encoding.apply_domain(domain, population_table[domain.name]) for domain in cells.domains], axis=1
        )
        leaf_of_tuple, leaf = fitted.apply(codes), fitted.apply(cells.codes)

        def recount(people: ClassStatistics, class_of_cell: IntArray, number: int) -> ClassStatistics:
            summaries = recode.summarize(cells, class_of_cell, number, self.k, self.grids or {})
            table = classes.class_table(classes.sizes(cells, class_of_cell, number), summaries)
            class_of_leaf = np.full(fitted.leaves, -1)
            class_of_leaf[leaf] = class_of_cell
            inside = people_in_own_box(table, names, population_table, class_of_leaf[leaf_of_tuple])
            population = np.zeros(len(leaf), dtype=np.int64)
            present, first = np.unique(class_of_cell, return_index=True)
            population[first[present >= 0]] = inside
            outside = int(population_table[PEOPLE].sum() - population.sum())
            return replace(people, population=population, population_unmatched=outside)

        return recount

    def _settle(self, cells: Cells, partition: classes.Partition, class_of_cell: IntArray) -> None:
        number = int(class_of_cell.max()) + 1
        summaries = recode.summarize(cells, class_of_cell, number, self.k, self.grids or {})
        self._set(
            domains_=cells.domains,
            partition_=partition,
            summaries_=summaries,
            sizes_=classes.sizes(cells, class_of_cell, number),
            information_loss_=classes.information_loss(cells, class_of_cell, number, summaries),
        )

    def _set(self, **fitted: Any) -> Self:
        self.__dict__.pop("classes_", None)
        self.__dict__.update(fitted)
        self.feature_names_in_ = np.array([domain.name for domain in self.domains_], dtype=object)
        self.n_features_in_ = len(self.domains_)
        return self

    @cached_property
    def classes_(self) -> pd.DataFrame:
        """The class table, made when it is asked for: to lay out 100,000 classes takes longer than to find them."""
        self._check_fitted()
        return classes.class_table(self.sizes_, self.summaries_)

    def _check_parameters(self) -> None:
        check_parameters(self.get_params(deep=False), CONSTRAINTS)

    def _check_columns(self, domains: Sequence[Domain]) -> None:
        """Refuse steps for columns that do not exist, or that have none; `described` looks at the other mappings."""
        names = [domain.name for domain in domains]
        check_columns("grids", self.grids or {}, names, "quasi-identifier")
        ordered = [domain.name for domain in domains if domain.ordered]
        check_columns("grids", self.grids or {}, ordered, "column of numbers or dates")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "partition_")

    def __sklearn_tags__(self) -> Tags:
        return of_frames(super().__sklearn_tags__())

    def _check_fitted(self) -> None:
        if not hasattr(self, "partition_"):
            raise NotFittedError("this AnonymizerTree is not fitted yet; call fit first")

    def apply(self, X: Any) -> npt.NDArray[np.int64]:
        """The class of each row, its position in `classes_`, shape (n,); -1 for one that is suppressed."""
        self._check_fitted()
        X = to_pandas(X)
        encoding.check_frame(X)
        check_present(X, [domain.name for domain in self.domains_])
        codes = np.stack([encoding.apply_domain(domain, X[domain.name]) for domain in self.domains_], axis=1)
        return self.partition_.apply(codes)

    def transform(self, X: Any) -> Any:
        """What the class of each row shows, for rows seen in `fit` or not; suppressed rows are left out.

        Returns
        -------
        table of shape (n - suppressed, p), of the kind of `X` and with its index: the quasi-identifiers, in the column
        types of `X` where representatives are shown and none is withheld.
        """
        people = to_pandas(X)
        return given_back(self._recoded(people, self.apply(people)), X, output_of(self))

    def _recoded(self, X: pd.DataFrame, group: IntArray) -> pd.DataFrame:
        """What the class of each row shows; `group` is the class of each row, -1 for one that is left out."""
        kept = group >= 0
        if not kept.all():
            if output_of(self) != "default":
                warn_of_rows_left_out(int((~kept).sum()), len(X))
            X, group = X[kept], group[kept]
        columns = {}
        for summary in self.summaries_:
            name = summary.domain.name
            if self.form == "range":
                columns[name] = np.array(summary.ranges(), dtype=object)[group]
            else:
                columns[name] = in_type_of(X[name], summary, group)
        return pd.DataFrame(columns, index=X.index)

    def _html_repr(self) -> str:
        """scikit-learn's picture of an estimator, and below it, once it is fitted, what became of the people."""
        drawn: str = estimator_html_repr(self)
        fitted = self.__sklearn_is_fitted__()
        return drawn + table_of_facts(self.sizes_, self.information_loss_) if fitted else drawn

    def save(self, path: str | Path) -> None:
        """Write the fitted tree as JSON.

        The key is left out, and so are `demands` and `answers`, since the classes meet them already. Hierarchies are
        left out too, since the tree holds the nodes of its columns' values. The file holds these values: keep it in
        the private zone.
        """
        self._check_fitted()
        left_out = ("demands", "answers", "key", "hierarchies")
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name not in left_out}
        write_file(Path(path), storage.fitted_to_json(parameters, self.__dict__))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote."""
        parameters, fitted = storage.fitted_from_json(Path(path).read_text(encoding="utf-8"))
        return cls(**parameters)._set(**fitted)
