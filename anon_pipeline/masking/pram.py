"""The column technique that changes categories at random by a known matrix (PRAM)."""

from __future__ import annotations

import itertools
import math
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field, field_validator, model_validator
from typing_extensions import override

from anon_pipeline.arrays import FloatArray
from anon_pipeline.errors import InputError
from anon_pipeline.masking.base import (
    CATEGORICAL,
    MISSINGNESS_IS_RELEASED,
    Applied,
    Columns,
    ColumnTechnique,
    Context,
    Fact,
    Guarantee,
)
from anon_pipeline.masking.draws import ALL, places
from anon_pipeline.masking.grouping import codes_of
from anon_pipeline.masking.texts import as_named, as_texts

#: The matrix has the square of this many entries.
MOST_CATEGORIES = 2000
#: The least probability that counts as one: of 128 bits, 32 then still tell how large it is.
LEAST = 2.0**-96


class Pram(ColumnTechnique):
    """Each category stays or becomes another one, with stated probabilities.

    P. Kooiman, L. Willenborg, J. Gouweleeuw: PRAM: a method for disclosure limitation of microdata, Statistics
    Netherlands 1997. The matrix P (a row per true category) is stated, or made from a probability of retention p: p on
    the diagonal, the rest shared evenly, which is k-ary randomized response (P. Kairouz, S. Oh, P. Viswanath, JMLR
    2016). `invariant` follows it by the matrix that goes back, weighted by the column's own frequencies t, as J.
    Gouweleeuw et al. (Journal of Official Statistics 14(4), 1998) do: t R = t, so frequencies are kept in expectation.

    With a stated matrix, or stated categories, it is locally differentially private with epsilon = max ln(p_ij / p_kj),
    which is reported. That a value is missing stays to be seen, and is not covered. Where the matrix is invariant, or
    its categories are those of the column, it is made from everybody's values and promises nothing; then another
    matrix means that all is drawn anew.
    """

    technique: Literal["pram"] = "pram"
    retention: float | None = Field(default=None, gt=0, lt=1, description="the probability that a value stays")
    matrix: dict[str, dict[str, float]] | None = Field(
        default=None, min_length=1, description="the probabilities, by true and by shown category"
    )
    categories: tuple[str, ...] | None = Field(
        default=None, min_length=2, description="all categories there are, with retention; by default the column's own"
    )
    invariant: bool = Field(default=False, description="whether the column's frequencies are kept in expectation")

    meaning: ClassVar[str] = "changes categories at random, with stated probabilities"
    guarantee: ClassVar[Guarantee] = "local DP"
    use_when: ClassVar[str] = "each person must be able to deny a category; state `categories` for the guarantee"
    accepts: ClassVar = CATEGORICAL
    random: ClassVar[bool] = True

    @field_validator("categories", "matrix", mode="before")
    @classmethod
    def _names_categories(cls, stated: Any) -> Any:
        if isinstance(stated, dict):
            return {category: as_named(row) for category, row in as_named(stated).items()}
        return as_named(stated)

    @model_validator(mode="after")
    def _has_one_matrix(self) -> Pram:
        if (self.retention is None) == (self.matrix is None):
            raise ValueError("retention: give either the probability that a value stays or the whole matrix")
        if self.categories is not None and self.matrix is not None:
            raise ValueError("categories: the matrix names them already; remove them")
        if len(set(self.categories or ())) < len(self.categories or ()):
            raise ValueError("categories: one stands twice; name each once")
        for true, row in (self.matrix or {}).items():
            if set(row) - set(self.matrix or {}):
                raise ValueError(f"matrix.{true}: names a category that has no row of its own")
            if any(not 0 <= share <= 1 for share in row.values()) or abs(sum(row.values()) - 1) > 1e-9:
                raise ValueError(f"matrix.{true}: must be probabilities whose sum is 1")
        return self

    def apply(self, columns: Columns, context: Context) -> Applied:
        ((name, column),) = columns.items()
        texts = as_texts(column)
        codes, distinct = codes_of(texts)
        stated = self.categories or (tuple(self.matrix) if self.matrix else None)
        names = sorted(distinct.to_pylist()) if stated is None else list(stated)
        place = {category: number for number, category in enumerate(names)}
        if len(names) > MOST_CATEGORIES:
            raise InputError(
                f"{context.place}: the column has {len(names)} categories, more than {MOST_CATEGORIES}; group them "
                "first, or take pseudonymize"
            )
        unknown = [category not in place for category in distinct.to_pylist()]
        if any(unknown):
            raise InputError(
                f"{context.place}: the column has {sum(unknown)} categories that are not stated; add or suppress them"
            )
        known = np.flatnonzero(codes)
        positions = np.array([place[category] for category in distinct.to_pylist()], dtype=np.int64)
        true = positions[codes[known] - 1] if len(known) else np.zeros(0, dtype=np.int64)
        matrix = self._matrix(names)
        frequencies = np.bincount(true, minlength=len(names))
        if self.invariant and len(true):
            matrix = invariant_of(matrix, frequencies / len(true))
        draws = context.draws.at(known).bound(names, frequencies.tolist() if self.invariant else None)
        drawn, masked = draws.blocks(), np.empty(len(known), dtype=np.int64)
        for category in np.unique(true):
            rows = true == category
            masked[rows] = places(drawn[rows], ends_of(matrix[category]))
        indices = np.zeros(len(column), dtype=np.int64)
        indices[known] = masked
        gaps = np.ones(len(column), dtype=bool)
        gaps[known] = False
        released = pa.DictionaryArray.from_arrays(pa.array(indices, mask=gaps), pa.array(names, pa.string()))
        facts: dict[str, Fact] = {
            "categories": len(names),
            "least_retention": float(np.diag(matrix).min()) if len(names) else 1.0,
        }
        if self.is_locally_private:
            facts, notes = {"epsilon": epsilon_of(matrix), **facts}, [MISSINGNESS_IS_RELEASED]
        elif self.is_made_from_the_column:
            notes = ["the matrix was made from the column itself, and so from everybody's values: no local DP"]
        else:
            notes = ["some category can come from some but not from all others, so epsilon is infinite"]
        return Applied(
            {name: released.cast(pa.string()).cast(_type_of(names, column.type))},
            facts=facts,
            notes=tuple(notes),
            guarantee="local DP" if self.is_locally_private else "none",
        )

    @property
    def is_made_from_the_column(self) -> bool:
        """Whether the matrix depends on the values of people."""
        return self.invariant or (self.matrix is None and self.categories is None)

    @property
    @override
    def is_locally_private(self) -> bool:
        if self.is_made_from_the_column:
            return False
        return bool(np.isfinite(epsilon_of(self._matrix(list(self.categories or self.matrix or ())))))

    def _matrix(self, names: list[str]) -> FloatArray:
        if self.matrix is not None:
            return np.array([[self.matrix[true].get(released, 0.0) for released in names] for true in names])
        m, retention = len(names), self.retention or 0.0
        if m < 2:
            return np.ones((m, m))
        matrix: FloatArray = np.full((m, m), (1 - retention) / (m - 1))
        np.fill_diagonal(matrix, retention)
        return matrix


def invariant_of(matrix: FloatArray, frequencies: FloatArray) -> npt.NDArray[np.float64]:
    """R = P Q with t R = t, where q_jk = t_k p_kj / sum_m t_m p_mj, shape of `matrix`.

    Parameters
    ----------
    matrix : P, shape (m, m), rows sum to 1
    frequencies : t, the categories' shares, shape (m,)
    """
    joint = frequencies[:, None] * matrix  # t_k p_kj
    released = joint.sum(axis=0)  # the share of j in the release
    back = np.divide(joint, released, out=np.zeros_like(joint), where=released > 0).T
    empty = released == 0
    back[empty, empty] = 1.0  # j never occurs in the release, so this row is never used
    result: npt.NDArray[np.float64] = matrix @ back
    return result


def ends_of(probabilities: FloatArray) -> list[int]:
    """Where the part of 2^128 that each probability of a row has ends, but for the last; the row is made to add up.

    Floats are taken as the exact numbers that they are, so a probability far below 2^-52 is not lost.
    """
    parts = [int(math.ldexp(each, 128)) if each >= LEAST else 0 for each in probabilities.tolist()]
    total = sum(parts)
    return [ALL * so_far // total for so_far in itertools.accumulate(parts[:-1])]


def epsilon_of(matrix: FloatArray) -> float:
    """max over i, k, j of ln(p_ij / p_kj): how much a released category can reveal about the true one.

    It is that of the probabilities that are drawn (`ends_of`): below `LEAST` one is none, and rows are made to add up.
    """
    if len(matrix) < 2:
        return 0.0
    drawn = np.where(matrix < LEAST, 0.0, matrix)
    drawn = drawn / drawn.sum(axis=1, keepdims=True)
    most, least = drawn.max(axis=0), drawn.min(axis=0)
    possible = most > 0
    if (least[possible] == 0).any():
        return float("inf")
    return float(np.log(most[possible] / least[possible]).max())


def _type_of(names: list[str], stored: pa.DataType) -> pa.DataType:
    """The type of the column, if every category is a value of it, and else text; what was drawn does not count."""
    try:
        pa.array(names, pa.string()).cast(stored)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.string()
    return stored
