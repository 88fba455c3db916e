"""Raw rows recoded as in a published release, by its class table alone: for models that were trained on the release.

The tree that made the classes stays private, since it holds rare values. Only `classes.parquet` is read here, so that
nothing beyond the release can be learnt. A row goes to the class in which it is most likely, if the members of a class
are spread evenly over the values that the class shows. A class that encloses the row comes before one that does not; of
several that enclose it, the larger and narrower one is taken (classes can overlap). Numbers are compared as float64, so
whole numbers above 2^53 may be mistaken for their neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags

from anon_pipeline.anonymize import encoding
from anon_pipeline.anonymize.containers import given_back, output_of, to_pandas
from anon_pipeline.anonymize.frames import KeepsColumns, check_present, of_frames, with_columns
from anon_pipeline.anonymize.parameters import With, check_parameters
from anon_pipeline.anonymize.recode import SUPPRESSED
from anon_pipeline.arrays import FloatArray, IntArray
from anon_pipeline.errors import InputError
from anon_pipeline.spec import ColumnType

#: Subtracted from a class's log-likelihood for each column in which it does not enclose the row. It is so large that a
#: narrow class cannot make up for it.
OUTSIDE = 1000.0
#: Subtracted where the value may be one of those that the class does not name.
UNNAMED = 4.0
#: So many likelihoods, rows times classes, are computed together.
AT_ONCE = 4_000_000


@dataclass(frozen=True, eq=False)
class Interval:
    """What the J classes show of numbers or dates (as microseconds since 1970); every array has shape (J,).

    Attributes
    ----------
    representative : the classes' values, as the class table has them
    low, high : the ends of the interval around the members, infinite where open, both NaN where no value is published
    missing : whether members have no value: 0, 1, or NaN where that is not published
    """

    name: str
    kind: ColumnType
    representative: pd.Series
    low: FloatArray
    high: FloatArray
    missing: FloatArray

    def distinct(self, column: pd.Series) -> tuple[FloatArray, IntArray]:
        """The different values of some rows, NaN for missing, and which of them each row has."""
        numbers = np.full(len(column), np.nan)
        if not column.isna().all():
            if isinstance(column.dtype, pd.CategoricalDtype):  # pandas reads the names of folders as categories
                column = column.astype(pd.Series(column.cat.categories).convert_dtypes().dtype)
            if (found := encoding.column_type(column)) is not self.kind:
                raise InputError(
                    f"the column {self.name} is {self.kind} in the release, and {found} in this table; convert it to "
                    "what data.parquet has"
                )
            numbers = _numbers(column)
        place, values = pd.factorize(numbers, use_na_sentinel=False)
        return np.asarray(values, dtype=np.float64), place.astype(np.int64)

    def restored(self, chosen: IntArray, like: pd.Series) -> Any:  # noqa: ARG002 (of a type that is known)
        """What the class of each row shows, without pandas' extension types, as `data.parquet` reads."""
        values = self.representative.iloc[chosen]
        if self.kind is ColumnType.NUMERIC:
            whole = pd.api.types.is_integer_dtype(values.dtype) and not values.isna().any()
            values = values.astype("int64" if whole else "float64")
        return values.to_numpy()

    def likelihood(self, values: FloatArray) -> FloatArray:
        """How likely each value is in each class, as a logarithm, shape (m, J)."""
        closed = np.isfinite(self.low) & np.isfinite(self.high)
        width = self.high - self.low
        step = np.nanmin(width, initial=np.inf, where=width > 0)
        # An open class is taken to be as wide as all the closed ones together.
        width[~closed & ~np.isnan(self.low)] = np.ptp(np.r_[self.low[closed], self.high[closed]]) if closed.any() else 1
        spread = float(np.std((self.low + self.high)[closed] / 2)) if closed.any() else 0.0
        value = values[:, None]
        gap = np.maximum(np.maximum(self.low - value, value - self.high), 0.0)
        inside = -np.log(width + (step if np.isfinite(step) else 1.0))
        outside = -OUTSIDE - np.log(spread or 1.0) - gap / (spread or 1.0)
        known = np.where(gap > 0, outside, inside)
        known = np.where(np.isnan(self.low), -OUTSIDE, known)
        unknown = np.select([self.missing == 1, np.isnan(self.missing)], [0.0, -UNNAMED], -OUTSIDE)
        return np.where(np.isnan(value), unknown, known)


@dataclass(frozen=True, eq=False)
class Categories:
    """What the J classes show of a category: `representative`, and all `named` values, "*" for others."""

    name: str
    representative: pd.Series
    named: list[list[str | None]]

    @cached_property
    def texts(self) -> frozenset[str]:
        """All values that some class shows or names."""
        return frozenset(filter(None, chain(self.representative.dropna(), *self.named)))

    def distinct(self, column: pd.Series) -> tuple[npt.NDArray[np.object_], IntArray]:
        """The different values of some rows as texts, None for missing, and which of them each row has."""
        place, values = encoding.known_texts(column, self.texts)
        return np.array([*values, None], dtype=object), np.where(place < 0, len(values), place)

    def restored(self, chosen: IntArray, like: pd.Series) -> Any:
        """What the class of each row shows, as numbers or as true and false where `like` has these."""
        values = self.representative.iloc[chosen]
        if encoding.is_boolean(like):
            truth = values.str.lower().map({"true": True, "false": False})
            return truth.to_numpy(object if truth.isna().any() else bool)
        if pd.api.types.is_numeric_dtype(like.dtype):
            return pd.to_numeric(values, errors="coerce").to_numpy()
        return values.to_numpy()

    def likelihood(self, values: npt.NDArray[np.object_]) -> FloatArray:
        """How likely each value is in each class, as a logarithm, shape (m, J)."""
        place = {value: number for number, value in enumerate(values)}
        sizes = np.array([len(set_) for set_ in self.named])
        has_unnamed = np.array([SUPPRESSED in set_ for set_ in self.named])
        log_fit = np.tile(np.where(has_unnamed, -UNNAMED, -OUTSIDE), (len(values), 1))
        for group, set_ in enumerate(self.named):
            log_fit[[place[value] for value in set_ if value in place], group] = 0.0
        likely: FloatArray = log_fit - np.log(sizes)
        return likely


class ReleaseSpace(KeepsColumns, TransformerMixin, BaseEstimator):
    """The classes of a published release, as far as they are published: a scikit-learn transformer for frames.

    All that it knows is in `classes`, so it needs no `fit`; `fit` only checks the parameter and the columns of a frame.
    Columns other than those of the release stay as they are.

    Parameters
    ----------
    classes : DataFrame of J rows
        The class table of a release, `classes.parquet`, one row per equivalence class.

    Attributes
    ----------
    columns : list of Interval and Categories
        What the classes show of each quasi-identifier, the largest class first.
    feature_names_in_ : ndarray of str, shape (p,)
        The columns of the frame that `fit` saw; absent before.
    n_features_in_ : int
        Their number, p; absent before `fit`.

    Examples
    --------
    >>> import pandas as pd
    >>> classes = pd.DataFrame({"class_size": [5, 4], "city": ["Ulm", "Bonn"], "city_values": [["Ulm"], ["Bonn"]]})
    >>> ReleaseSpace(classes).apply(pd.DataFrame({"city": ["Bonn", "Ulm"]}))
    array([1, 0])
    """

    def __init__(self, classes: pd.DataFrame) -> None:
        self.classes = classes

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read the class table of a release folder.

        Raises
        ------
        InputError
            For a folder without one, or with one that cannot be read as such.
        """
        file = Path(folder) / "classes.parquet"
        if not file.is_file():
            raise InputError(f"{file}: there is no such file; name the folder of a release")
        space = cls(pd.read_parquet(file))
        space._read()
        return space

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002 (scikit-learn passes it)
        """Check the parameter and the columns of a frame; nothing is learned.

        Parameters
        ----------
        X : table of pandas, polars or Arrow of shape (n, p), with all quasi-identifiers of the release
        y : ignored

        Raises
        ------
        InputError
            For `classes` that are no class table, or a frame that lacks a quasi-identifier.
        """
        X = to_pandas(X)
        self._check_frame(X)
        self.feature_names_in_ = np.array(X.columns, dtype=object)
        self.n_features_in_ = len(X.columns)
        return self

    def apply(self, X: Any) -> IntArray:
        """The class of each raw row, its index in `classes`, shape (n,).

        The time grows with the different rows times the classes; memory does not.

        Raises
        ------
        InputError
            For a frame that lacks a quasi-identifier, or has one of another kind.
        """
        places = self._places(to_pandas(X))
        return self._read().classes.index.to_numpy(np.int64)[places]

    def transform(self, X: Any) -> Any:
        """The rows with their quasi-identifiers as their class shows them; other columns stay, in their order.

        Returns
        -------
        table of shape (n, p), of the kind of `X` and with its index and columns
        """
        people = to_pandas(X)
        chosen = self._places(people)
        shown = {column.name: column.restored(chosen, people[column.name]) for column in self.columns}
        recoded = with_columns(people, shown)
        return given_back(recoded, X, output_of(self))

    @property
    def columns(self) -> list[Interval | Categories]:
        """What the classes show of each quasi-identifier."""
        return self._read().columns

    def _check_fitted(self) -> None:
        if not hasattr(self, "feature_names_in_"):
            raise NotFittedError("this ReleaseSpace has seen no frame yet; call fit first")

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return of_frames(tags)

    def _read(self) -> _ClassTable:
        """`classes` in the form in which rows are compared with them; read again after the parameter was set."""
        known: _ClassTable | None = self.__dict__.get("_table")
        if known is None or known.given is not self.classes:
            check_parameters({"classes": self.classes}, {"classes": With(pd.DataFrame, "a pandas DataFrame")})
            if not len(self.classes) or "class_size" not in self.classes.columns:
                raise InputError("classes must be the class table of a release, with the column class_size")
            ordered = self.classes.sort_values("class_size", ascending=False, kind="stable")
            known = self._table = _ClassTable(self.classes, ordered, _columns(ordered))
        return known

    def _check_frame(self, frame: pd.DataFrame) -> None:
        """Refuse an object that is no frame, and a frame that could be misread or lacks a quasi-identifier."""
        if not isinstance(frame, pd.DataFrame):
            encoding.check_frame(frame)
        check_present(frame, [column.name for column in self.columns])
        encoding.check_frame(frame[[column.name for column in self.columns]])

    def _places(self, frame: pd.DataFrame) -> IntArray:
        """The place of each row's class among those of `_read`, shape (n,)."""
        self._check_frame(frame)
        table = self._read()
        values, codes = zip(*(column.distinct(frame[column.name]) for column in table.columns), strict=True)
        different, row = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
        likelihoods = [column.likelihood(known) for column, known in zip(table.columns, values, strict=True)]
        size = np.log(table.classes["class_size"].to_numpy(np.float64))
        chosen = np.empty(len(different), dtype=np.int64)
        for start in range(0, len(different), max(1, AT_ONCE // len(size))):
            some = different[start : start + max(1, AT_ONCE // len(size))]
            likelihood = np.tile(size, (len(some), 1))
            for place, of_column in enumerate(likelihoods):
                likelihood += of_column[some[:, place]]
            chosen[start : start + len(some)] = likelihood.argmax(axis=1)
        return chosen[row.ravel()]


@dataclass(frozen=True, eq=False)
class _ClassTable:
    """A class table that has been read.

    Attributes
    ----------
    given : the parameter it was read from
    classes : its J rows, the largest class first
    columns : what they show of each quasi-identifier
    """

    given: pd.DataFrame
    classes: pd.DataFrame
    columns: list[Interval | Categories]


def _columns(classes: pd.DataFrame) -> list[Interval | Categories]:
    """The quasi-identifiers, recognized by the order of the names in a class table (`classes.class_table`)."""
    names = list(classes.columns)
    columns: list[Interval | Categories] = []
    place = 1
    while place < len(names):
        name, following = names[place], names[place + 1 : place + 4]
        if following[:1] == [f"{name}_values"]:
            named = [list(set_) for set_ in classes[f"{name}_values"]]
            columns.append(Categories(name, classes[name], named))
            place += 2
        elif following == [f"{name}_low", f"{name}_high", f"{name}_missing"]:
            low, high = (_numbers(classes[f"{name}_{end}"]) for end in ("low", "high"))
            bounded = ~(np.isnan(low) & np.isnan(high))
            low = np.where(bounded & np.isnan(low), -np.inf, low)
            high = np.where(bounded & np.isnan(high), np.inf, high)
            missing = classes[f"{name}_missing"].to_numpy(np.float64, na_value=np.nan)
            kind = encoding.column_type(classes[f"{name}_low"])
            columns.append(Interval(name, kind, classes[name], low, high, missing))
            place += 4
        else:
            raise InputError(f"classes.parquet: does not say what the classes stand for in {name}; is it of a release?")
        if names[place : place + 2] == [f"{name}_label", f"{name}_level"]:  # a hierarchy's words for the same
            place += 2
    return columns


def _numbers(column: pd.Series) -> FloatArray:
    values, missing = encoding.ordered_values(column)
    return np.where(missing, np.nan, values.astype(np.float64))
