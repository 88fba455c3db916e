"""The table technique that draws new values of columns from trees on the columns before them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field, model_validator

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.masking.base import Applied, Columns, Context, TableTechnique
from anon_pipeline.masking.draws import Draws
from anon_pipeline.masking.grouping import codes_of
from anon_pipeline.masking.numbers import to_floats, two_digits
from anon_pipeline.spec import ColumnType

NO_GUARANTEE = "no formal guarantee: synthetic values are drawn from real ones, and can be a person's own"
#: A tree of categories distinguishes this many of the most frequent ones; it takes all others for one category.
MOST_CLASSES = 50


class Synthesize(TableTechnique):
    """Each column is drawn from the leaf of a tree on the columns before it: synthetic data without a model of ours.

    Sequential CART (J. Reiter: Using CART to generate partially synthetic public use microdata, Journal of Official
    Statistics 21(3), 2005; B. Nowok, G. Raab, C. Dibben: synthpop, Journal of Statistical Software 74(11), 2016). The
    first column of all is drawn from its distribution. Values come from real people of the leaf, missing ones too.

    `partial`: the named columns are synthetic, drawn to fit those `given`, which stay as they are. `full`: every column
    is named and synthetic. `hybrid`: as partial or full, but only for a random `share` of the people.
    """

    technique: Literal["synthesize"] = "synthesize"
    mode: Literal["partial", "full", "hybrid"] = Field(default="partial", description="what becomes synthetic")
    given: tuple[str, ...] = Field(default=(), description="columns that stay, and that the others are to fit")
    share: float | None = Field(default=None, gt=0, lt=1, description="the part of the people, in the mode hybrid")
    leaf: int = Field(default=10, ge=2, le=10**6, description="the fewest people of a leaf that values are drawn from")
    train: int = Field(default=100_000, ge=100, description="trees are made from at most so many people")

    meaning: ClassVar[str] = "draws columns anew from trees on the columns before them; no formal guarantee"
    use_when: ClassVar[str] = "relations must stay usable and values need not be true; audit it like everything else"
    random: ClassVar[bool] = True

    @model_validator(mode="after")
    def _fits_its_mode(self) -> Self:
        if self.mode == "partial" and not self.given:
            raise ValueError("given: is empty; name the columns that stay as they are, or take the mode full")
        if self.mode == "full" and self.given:
            raise ValueError("given: has no meaning in the mode full, where every column is synthetic; remove it")
        if (self.mode == "hybrid") != (self.share is not None):
            raise ValueError("share: belongs to the mode hybrid, which needs it")
        return self

    @property
    def used(self) -> tuple[str, ...]:
        return (*self.columns, *self.given)

    def objection(self, kinds: Mapping[str, ColumnType]) -> str | None:
        real = [name for name in kinds if name not in self.columns]
        if self.mode == "full" and real:
            return f"columns: the mode full names every one; {', '.join(real)} would stay real and fit nothing"
        return None

    def apply(self, columns: Columns, context: Context) -> Applied:
        n = context.rows
        if not n:
            return Applied({name: columns[name] for name in self.columns}, notes=(NO_GUARANTEE,))
        train = np.arange(min(n, self.train))  # the canonical order is random, so the first are a random sample
        donors: dict[str, IntArray] = {name: np.arange(n) for name in self.given}
        for name in self.columns:
            donors[name] = self._drawn(name, columns, donors, train, context)
        synthetic = np.ones(n, dtype=bool)
        if self.share is not None:
            synthetic = context.draws.uniform() < self.share
        masked = {
            name: columns[name].take(pa.array(np.where(synthetic, donors[name], np.arange(n)))) for name in self.columns
        }
        own = {f"own_value.{name}": two_digits((donors[name] == np.arange(n)).mean()) for name in self.columns}
        return Applied(masked, facts={"rows_synthetic": int(synthetic.sum()), **own}, notes=(NO_GUARANTEE,))

    def _drawn(
        self, name: str, columns: Columns, donors: Mapping[str, IntArray], train: IntArray, context: Context
    ) -> IntArray:
        """The row from which each person's value of a column is taken, shape (n,)."""
        from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

        n = len(columns[name])
        is_category = context.kinds[name] is ColumnType.CATEGORICAL
        target = _classes(columns[name]) if is_category else _filled(to_floats(columns[name]))
        if not donors or len(train) < 2 * self.leaf:
            return train[context.draws.below(np.full(n, len(train)))]
        real, synthetic = [], []
        for before, donor in donors.items():
            feature = _feature(columns[before], context.kinds[before], target.astype(float), train)
            real.append(feature[train])
            synthetic.append(feature[donor])
        tree = (DecisionTreeClassifier if is_category else DecisionTreeRegressor)(
            min_samples_leaf=self.leaf, random_state=int(context.draws.number() * 2**31)
        )
        tree.fit(np.column_stack(real), target[train])
        leaves = tree.apply(np.column_stack(real))
        return _from_leaves(leaves, tree.apply(np.column_stack(synthetic)), train, context.draws)


def _from_leaves(leaves: IntArray, asked: IntArray, train: IntArray, draws: Draws) -> IntArray:
    """For each entry of `asked`, a leaf, a random person of `train` in this leaf."""
    order = np.argsort(leaves, kind="stable")
    sizes = np.bincount(leaves)  # no leaf is empty, since the tree was fitted on these people
    first = np.cumsum(sizes) - sizes
    chosen: IntArray = train[order[first[asked] + draws.below(sizes[asked])]]
    return chosen


def _filled(values: FloatArray) -> FloatArray:
    """Numbers as a feature or target of a tree; missing ones get a number below all others."""
    known = values[~np.isnan(values)]
    if not len(known):
        return np.zeros(len(values))
    filled: FloatArray = np.nan_to_num(values, nan=float(known.min() - known.std() - 1))
    return np.clip(filled, -1e37, 1e37)  # a tree stores features as 32-bit floats


def _classes(column: pa.Array) -> npt.NDArray[np.int64]:
    """Categories as their rank by frequency, 0 the most frequent; those after the first `MOST_CLASSES` share a rank."""
    codes, _ = codes_of(column)
    counts = np.bincount(codes)
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return np.minimum(rank, MOST_CLASSES)[codes]


def _feature(column: pa.Array, kind: ColumnType, target: FloatArray, train: IntArray) -> FloatArray:
    """A column as a feature of a tree; a category becomes the mean of the target among its people."""
    if kind is not ColumnType.CATEGORICAL:
        return _filled(to_floats(column))
    codes, categories = codes_of(column)
    size = len(categories) + 1
    sums = np.bincount(codes[train], target[train], minlength=size)
    counts = np.bincount(codes[train], minlength=size)
    means = np.divide(sums, counts, out=np.zeros(size), where=counts > 0)
    return means[codes]
