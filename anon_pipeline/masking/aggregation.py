"""The table technique that releases counts and means per group instead of people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field, model_validator
from typing_extensions import override

from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.masking.base import ANY, NUMERIC, Applied, Columns, Context, Fact, Guarantee, TableTechnique
from anon_pipeline.masking.grouping import groups_of
from anon_pipeline.masking.numbers import to_floats
from anon_pipeline.masking.rounded_means import rounded, unit_of
from anon_pipeline.spec import ColumnType, ReleaseSpec, Strict

#: The column of counts, and the prefix of the name of a column of means.
PEOPLE, MEAN = "people", "mean_"


class Dominance(Strict):
    """A mean is hidden where few contributions make up most of the total, or one can be worked out by another.

    The first is the (n, k) rule: the n largest make up more than `share`. The second is the p% rule: who has the second
    largest subtracts it from the total, and is left with the largest and with what all others have together; it is
    hidden where the others have less than `p_percent` of the largest (Hundepool et al. 2012, section 4.2).
    """

    n: int = Field(default=1, ge=1, le=100)
    share: float = Field(default=0.85, gt=0, lt=1)
    p_percent: float = Field(default=20, ge=0, lt=100)


class Aggregate(TableTechnique):
    """The table becomes one of groups: how many people each has, and the means of some columns.

    Threshold, dominance and p% rules (A. Hundepool et al.: Statistical Disclosure Control, Wiley 2012, section 4.2).
    A group of fewer people than the threshold is left out, and the next smallest with it until at least two groups
    with at least `threshold` people together are: they are what whoever knows the number of all people has left after
    subtracting (secondary suppression, section 4.3). Readers also know how many people share values of the columns
    `known`. So a small group is hidden by the same rule among people with the same known values, or all of these are
    left out; and no mean is of a quasi-identifier, unless `known` is stated. A mean is shown only of at least
    `threshold` known values that keep the rules of `Dominance`, and in steps that do not tell of how many values it is
    (`rounded_means`). No totals of the averaged columns are shown, so that no hidden mean can be had as a difference. A
    second table of the same people with other groups is judged beside this one (`privacy.linked_releases.tables`).
    """

    technique: Literal["aggregate"] = "aggregate"
    means: tuple[str, ...] = Field(default=(), description="the columns whose means are shown")
    threshold: int = Field(default=10, ge=2, le=2**31, description="groups of fewer people are left out")
    dominance: Dominance = Field(default=Dominance(), description="when a mean is hidden: (n, k) and p% rules")
    known: tuple[str, ...] | None = Field(
        default=None, description="columns whose values readers know of everybody; the quasi-identifiers where absent"
    )

    meaning: ClassVar[str] = "releases counts and means per group instead of people"
    guarantee: ClassVar[Guarantee] = "k"
    use_when: ClassVar[str] = "readers need figures and not people"
    accepts: ClassVar = ANY

    @model_validator(mode="after")
    def _has_free_names(self) -> Self:
        taken = {PEOPLE, *(MEAN + name for name in self.means)} & set(self.columns)
        if taken:
            raise ValueError(f"columns: {min(taken)} is a name of the table that is made; rename that column")
        unknown = set(self.known or ()) - set(self.columns)
        if unknown:
            raise ValueError(f"known: {min(unknown)} is none of the columns of the groups")
        return self

    @property
    def used(self) -> tuple[str, ...]:
        return (*self.columns, *self.means)

    @property
    def averaged(self) -> tuple[str, ...]:
        return self.means if self.known is None else ()

    @property
    def grouped_by(self) -> tuple[str, ...]:
        return self.columns

    @property
    def stated_known(self) -> tuple[str, ...] | None:
        return self.known

    @property
    def smallest_group(self) -> int:
        return self.threshold

    @property
    def sources(self) -> dict[str, tuple[str, ...]]:
        means = {MEAN + name: (name,) for name in self.means}
        return {**{name: (name,) for name in self.columns}, PEOPLE: self.columns, **means}

    def accepted(self, column: str) -> frozenset[ColumnType]:
        return NUMERIC if column in self.means else ANY

    def columns_after(self, kinds: Mapping[str, ColumnType]) -> dict[str, ColumnType]:
        new_columns = dict.fromkeys([PEOPLE, *(MEAN + name for name in self.means)], ColumnType.NUMERIC)
        return {name: kinds[name] for name in self.columns} | new_columns

    @override
    def apply(self, columns: Columns, context: Context) -> Applied:
        groups = groups_of([columns[name] for name in self.columns])
        counts = np.bincount(groups)
        first = np.full(len(counts), len(groups))
        np.minimum.at(first, groups, np.arange(len(groups)))
        left_out = self._in_company(counts, self._known_alike(columns, first))
        kept = np.flatnonzero(~left_out)
        written: Columns = {name: columns[name].take(pa.array(first[kept])) for name in self.columns}
        written[PEOPLE] = pa.array(counts[kept])
        hidden = 0
        for name in self.means:
            values = to_floats(columns[name])
            means, unsafe = self._means(values, groups, len(counts))
            unit = unit_of(values[~(left_out | unsafe)[groups]])  # a value behind no mean decides no step
            written[MEAN + name] = pa.array(rounded(means, counts, unit)[kept], mask=unsafe[kept])
            hidden += int(unsafe[kept].sum())
        order = pa.table(written).sort_by([(name, "ascending") for name in self.columns])
        sorted_groups = {name: order.column(name).combine_chunks() for name in order.column_names}
        facts: dict[str, Fact] = {
            "groups": len(kept),
            "groups_left_out": int(left_out.sum()),
            "people_left_out": int(counts[left_out].sum()),
            "means_hidden": hidden,
        }
        return Applied(sorted_groups, replaces_table=True, facts=facts)

    @property
    def known_beside_others(self) -> tuple[str, ...]:
        """The columns of the groups that readers know, if they do not know them all."""
        known = tuple(name for name in self.columns if name in (self.known or ()))
        return known if len(known) < len(self.columns) else ()

    def _known_alike(self, columns: Columns, first: IntArray) -> IntArray:
        """A number for each group that it shares with the groups of the same known values, shape (n,)."""
        known = self.known_beside_others
        if not known:
            return np.zeros(len(first), dtype=np.int64)
        return groups_of([columns[name] for name in known])[first]

    def _in_company(self, counts: IntArray, alike: IntArray) -> npt.NDArray[np.bool_]:
        """Which groups are left out, so that others hide those that are too small; shape (n,).

        They are hidden among the groups of the same known values first (`alike`, shape (n,)), then among all.
        """
        left_out = np.zeros(len(counts), dtype=bool)
        order = np.argsort(alike, kind="stable")
        ordered = alike[order]
        for number in np.unique(alike[counts < self.threshold]).tolist():
            together = order[slice(*np.searchsorted(ordered, (number, number + 1)))]
            left_out[together] = self._left_out(counts[together])
        if left_out.sum() > 1 and counts[left_out].sum() >= self.threshold:
            return left_out
        return left_out | self._left_out(counts)

    def _left_out(self, counts: IntArray) -> npt.NDArray[np.bool_]:
        """Which groups are left out: those that are too small, and others that hide them; shape (n,)."""
        ascending = np.argsort(counts, kind="stable")
        left_out = np.zeros(len(counts), dtype=bool)
        small = int((counts < self.threshold).sum())
        if small:
            enough = int(np.searchsorted(np.cumsum(counts[ascending]), self.threshold)) + 1
            left_out[ascending[: max(small, 2, enough)]] = True
        return left_out

    def _means(self, values: FloatArray, groups: IntArray, n: int) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """The mean per group, and which of the means must not be shown, each of shape (n,)."""
        known = ~np.isnan(values)
        values, groups = values[known], groups[known]
        sizes = np.bincount(groups, minlength=n)
        order = np.lexsort((-np.abs(values), groups))
        rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        sizes_of = {
            number: np.bincount(groups[top], np.abs(values[top]), minlength=n)
            for number in {1, 2, self.dominance.n}
            for top in [order[rank < number]]
        }
        total = np.bincount(groups, np.abs(values), minlength=n)
        dominated = sizes_of[self.dominance.n] > self.dominance.share * total
        dominated |= total - sizes_of[2] < self.dominance.p_percent / 100 * sizes_of[1]
        means: FloatArray = np.bincount(groups, values, minlength=n) / np.maximum(sizes, 1)
        return means, (sizes < self.threshold) | dominated


def aggregate_of(spec: ReleaseSpec) -> Aggregate:
    """The last step of a spec that releases a table of groups (`spec.aggregates`)."""
    last = spec.steps[-1]
    assert isinstance(last, Aggregate)  # noqa: S101 (called for such specs only)
    return last


def aggregate_for_readers(spec: ReleaseSpec) -> Aggregate:
    """The same step with the columns that readers know: the quasi-identifiers, unless the step names others."""
    step = aggregate_of(spec)
    known = tuple(name for name in step.columns if name in spec.quasi_identifiers)
    return step if step.known is not None else step.model_copy(update={"known": known})
