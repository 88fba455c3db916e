"""Column techniques that randomize each category by itself, so that only counts can be estimated (local DP)."""

from __future__ import annotations

import math
from abc import abstractmethod
from decimal import Decimal, localcontext
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, field_validator, model_validator
from typing_extensions import override

from anon_pipeline.arrays import IntArray
from anon_pipeline.errors import InputError
from anon_pipeline.masking.base import (
    CATEGORICAL,
    MISSINGNESS_IS_RELEASED,
    Applied,
    Columns,
    ColumnTechnique,
    Context,
    Guarantee,
)
from anon_pipeline.masking.draws import ALL, Draws, places
from anon_pipeline.masking.grouping import codes_of
from anon_pipeline.masking.texts import as_named, as_texts

#: The digit of `unary_encoding` for a category that a person reports, and for one that they do not report.
REPORTED, NOT_REPORTED = "1", "0"
#: With so many digits probabilities are computed, far more than 128 bits have.
DIGITS = 80
#: In place of the number of a category.
ABSENT = -1


class LocalRandomizer(ColumnTechnique):
    """Each person reports a category so that the report is nearly as likely from any other category.

    Every technique of this kind reports the true category with probability p and another one with probability q, and
    so its counts can be estimated without bias: see `masking/frequency_estimates.py`.
    """

    epsilon: float = Field(gt=0, le=50, allow_inf_nan=False, description="of one value, for good")
    categories: tuple[str, ...] = Field(
        min_length=2, max_length=2000, description="all categories there may be, stated without looking at the data"
    )
    missing: str | None = Field(default=None, description="the category that a missing value counts as")
    other: str | None = Field(default=None, description="the category that a value counts as which is not stated")

    guarantee: ClassVar[Guarantee] = "local DP"
    accepts: ClassVar = CATEGORICAL
    random: ClassVar[bool] = True

    @field_validator("categories", "missing", "other", mode="before")
    @classmethod
    def _names_categories(cls, stated: Any) -> Any:
        return as_named(stated)

    @model_validator(mode="after")
    def _names_categories_once(self) -> LocalRandomizer:
        if len(set(self.categories)) < len(self.categories):
            raise ValueError("categories: one stands twice; name each once")
        for name, category in (("missing", self.missing), ("other", self.other)):
            if category is not None and category not in self.categories:
                raise ValueError(f"{name}: {category!r} is not among the categories; add it there")
        return self

    @property
    def hides_missing(self) -> bool:
        return self.missing is not None

    @property
    @abstractmethod
    def rates(self) -> tuple[float, float]:
        """p and q: the probability that a category is reported by a person who has it, and by one who has another."""

    @abstractmethod
    def reports(self, true: IntArray, draws: Draws) -> pa.Array:
        """The reports of people whose categories have these numbers, shape (n,)."""

    @abstractmethod
    def counts(self, answers: pa.Array) -> tuple[IntArray, int]:
        """How often each category is reported in a released column, shape (k,), and the number of people who report.

        Raises
        ------
        ValueError
            With a sentence where the column has other values than such reports.
        """

    @override
    def apply(self, columns: Columns, context: Context) -> Applied:
        ((name, column),) = columns.items()
        codes, distinct = codes_of(as_texts(column))
        place = {category: number for number, category in enumerate(self.categories)}
        otherwise = ABSENT if self.other is None else place[self.other]
        numbers = [place.get(value, otherwise) for value in distinct.to_pylist()]
        if ABSENT in numbers:
            raise InputError(
                f"{context.place}: the column has values that are not among the categories; add them, or name the "
                "category that they count as: other"
            )
        missing = ABSENT if self.missing is None else place[self.missing]
        true = np.array([missing, *numbers], dtype=np.int64)[codes]
        known = np.flatnonzero(true != ABSENT)
        answers = self.reports(true[known], context.draws.at(known))
        positions = np.full(len(true), len(known), dtype=np.int64)
        positions[known] = np.arange(len(known))
        released = pa.concat_arrays([answers, pa.nulls(1, pa.string())]).take(pa.array(positions))
        p, q = self.rates
        return Applied(
            {name: released},
            facts={"epsilon": self.epsilon, "categories": len(self.categories), "p": p, "q": q},
            notes=(*(() if self.missing is not None else (MISSINGNESS_IS_RELEASED,)), self._advice()),
        )

    def _advice(self) -> str:
        better = best_encoding(len(self.categories), self.epsilon)
        if better in (self.technique, self.chosen.technique):
            return f"counts are estimated with `anon-pipeline estimate`; {better} errs least at this epsilon"
        return f"counts are estimated with `anon-pipeline estimate`; {better} would err less at this epsilon"

    @property
    def chosen(self) -> LocalRandomizer:
        """The randomizer that is carried out."""
        return self


class RandomizedResponse(LocalRandomizer):
    """Each category stays with probability p = e^epsilon / (e^epsilon + k - 1), or becomes any other one.

    S. Warner, Journal of the American Statistical Association 60, 1965; for k categories P. Kairouz, S. Oh and P.
    Viswanath, JMLR 17, 2016. Each other category comes out with q = 1 / (e^epsilon + k - 1), and p / q = e^epsilon. It
    errs less than `unary_encoding` where k < 3 e^epsilon + 2 (T. Wang, J. Blocki, N. Li and S. Jha, USENIX Security
    2017).
    """

    technique: Literal["randomized_response"] = "randomized_response"

    meaning: ClassVar[str] = "shows the true category with a stated probability, else any other one"
    use_when: ClassVar[str] = "each person must be able to deny a category, and there are few: k < 3 e^epsilon + 2"

    @property
    @override
    def rates(self) -> tuple[float, float]:
        rest = (len(self.categories) - 1) * math.exp(-self.epsilon)  # in this form nothing overflows
        return 1 / (1 + rest), math.exp(-self.epsilon) / (1 + rest)

    @override
    def reports(self, true: IntArray, draws: Draws) -> pa.Array:
        k = len(self.categories)
        stays = places(draws.blocks(), [ALL - (k - 1) * part_of_another(self.epsilon, k - 1)]) == 0
        moved = (true + 1 + draws.any_of(k - 1)) % k
        answers = np.where(stays, true, moved)
        return pa.array(self.categories, pa.string()).take(pa.array(answers))

    @override
    def counts(self, answers: pa.Array) -> tuple[IntArray, int]:
        codes, distinct = codes_of(as_texts(answers))
        place = {category: number for number, category in enumerate(self.categories)}
        names = distinct.to_pylist()
        if any(name not in place for name in names):
            raise ValueError("it holds values that are not among the categories of the step")
        counts = np.zeros(len(place), dtype=np.int64)
        counts[[place[name] for name in names]] = np.bincount(codes, minlength=len(names) + 1)[1:]
        return counts, int(counts.sum())


class UnaryEncoding(LocalRandomizer):
    """Each person reports every category or does not: their own with p = 1/2, any other with q = 1 / (e^epsilon + 1).

    The optimized unary encoding of T. Wang, J. Blocki, N. Li and S. Jha, Locally differentially private protocols for
    frequency estimation, USENIX Security 2017. A report is a text of one digit per category, in their order: 1 where it
    is reported. Its error does not grow with the number of categories.
    """

    technique: Literal["unary_encoding"] = "unary_encoding"

    meaning: ClassVar[str] = "shows, for every category, a noisy answer to whether it is the person's"
    use_when: ClassVar[str] = "each person must be able to deny a category, and there are many: k >= 3 e^epsilon + 2"

    @property
    @override
    def rates(self) -> tuple[float, float]:
        return 0.5, 1 / (math.exp(self.epsilon) + 1)

    @override
    def reports(self, true: IntArray, draws: Draws) -> pa.Array:
        k, half = len(self.categories), ALL // 2
        ends = [min(part_of_another(self.epsilon, 1), half), half]
        digits = np.empty((len(true), k), dtype=np.uint8)
        for number in range(k):  # all people at once, category by category
            digits[:, number] = places(draws.blocks(), ends) <= (true == number)
        written = pa.py_buffer((digits + ord(NOT_REPORTED)).tobytes())
        fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(k), len(true), [None, written])
        return fixed.cast(pa.binary()).cast(pa.string())

    @override
    def counts(self, answers: pa.Array) -> tuple[IntArray, int]:
        texts = as_texts(answers).drop_null()
        k = len(self.categories)
        pattern = f"^[{NOT_REPORTED}{REPORTED}]*$"
        fits = pc.and_(pc.equal(pc.binary_length(texts), k), pc.match_substring_regex(texts, pattern))
        if not pc.all(fits).as_py() and len(texts):
            raise ValueError(f"it holds values that are no texts of {k} digits 0 and 1; read the column as text")
        digits: npt.NDArray[np.uint8] = np.frombuffer("".join(texts.to_pylist()).encode(), dtype=np.uint8)
        return (digits.reshape(len(texts), k) == ord(REPORTED)).sum(axis=0).astype(np.int64), len(texts)


class LocalFrequencies(LocalRandomizer):
    """`randomized_response` where k < 3 e^epsilon + 2, else `unary_encoding`: whichever errs less on the counts.

    The rule is that of T. Wang, J. Blocki, N. Li and S. Jha, USENIX Security 2017, and looks at what the spec states
    alone.
    """

    technique: Literal["local_frequencies"] = "local_frequencies"

    meaning: ClassVar[str] = "shows each category by randomized response or unary encoding, whichever errs less"
    use_when: ClassVar[str] = "each person must be able to deny a category, and only the counts are wanted"

    @property
    @override
    def chosen(self) -> LocalRandomizer:
        best = best_encoding(len(self.categories), self.epsilon)
        model = RandomizedResponse if best == "randomized_response" else UnaryEncoding
        return model.model_validate(self.model_dump(exclude={"technique"}))

    @property
    @override
    def rates(self) -> tuple[float, float]:
        return self.chosen.rates

    @override
    def reports(self, true: IntArray, draws: Draws) -> pa.Array:
        return self.chosen.reports(true, draws)

    @override
    def counts(self, answers: pa.Array) -> tuple[IntArray, int]:
        return self.chosen.counts(answers)


def part_of_another(epsilon: float, added: int) -> int:
    """The part of 2^128 with the probability 1 / (e^epsilon + added) that another category than the true one has.

    It is rounded up, by enough to make up for how unevenly `Draws.any_of` divides, so that epsilon holds as it is
    stated. In 52 bits it was 0 from an epsilon of about 36.7 on, so that whatever was shown was true for certain.
    """
    with localcontext(prec=DIGITS):
        return int(ALL / (Decimal(epsilon).exp() + added)) + 2


def best_encoding(categories: int, epsilon: float) -> Literal["randomized_response", "unary_encoding"]:
    """The technique of less error on the counts of k categories: k < 3 e^epsilon + 2 (Wang et al. 2017)."""
    return "randomized_response" if categories < 3 * math.exp(epsilon) + 2 else "unary_encoding"
