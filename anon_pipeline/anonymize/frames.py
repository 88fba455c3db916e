"""What our scikit-learn transformers share: they take frames, and know columns by their names."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils import InputTags, Tags, TransformerTags

from anon_pipeline.errors import InputError, number_of


def of_frames(tags: Tags) -> Tags:
    """The tags of a transformer of frames that may hold texts and missing values, and of no arrays."""
    tags.input_tags = InputTags(two_d_array=False, categorical=True, string=True, allow_nan=True)
    tags.transformer_tags = TransformerTags(preserves_dtype=[])  # a type that cannot hold a value gives way to another
    return tags


def with_columns(frame: pd.DataFrame, columns: Mapping[str, Any]) -> pd.DataFrame:
    """A copy of a frame with other columns in place of its own, or added; `assign` takes none that is called self."""
    changed = frame.copy()
    for name, values in columns.items():
        changed[name] = values
    return changed


class KeepsColumns(ABC):
    """For transformers whose `transform` gives the columns that it takes.

    Attributes
    ----------
    feature_names_in_ : ndarray of shape (p,), set by `fit`
    """

    feature_names_in_: npt.NDArray[np.object_]

    @abstractmethod
    def _check_fitted(self) -> None:
        """Raise `NotFittedError` before `fit`."""

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> npt.NDArray[np.object_]:
        """The columns of what `transform` gives, which are those of `fit`, shape (p,).

        Parameters
        ----------
        input_features : sequence of str, default None
            As scikit-learn has it: where given, the columns of `fit`.

        Raises
        ------
        InputError
            For other columns than those of `fit`.
        """
        self._check_fitted()
        if input_features is not None and list(input_features) != self.feature_names_in_.tolist():
            raise InputError("input_features is not equal to feature_names_in_; leave it out")
        return self.feature_names_in_.copy()


def check_present(frame: pd.DataFrame, names: Sequence[str]) -> None:
    """Refuse a frame that lacks one of the columns; others may stand in it, in any order.

    Raises
    ------
    InputError
        Naming the columns that it lacks.
    """
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise InputError(f"the table lacks the columns {', '.join(absent)}")


def warn_of_rows_left_out(left_out: int, rows: int) -> None:
    """Say that a table is shorter than the one that was given, where scikit-learn may put columns beside it.

    Its ColumnTransformer and FeatureUnion join frames of unlike lengths without an error: those of pandas by the index,
    so that people who are left out stand there with their other columns, and those of polars by position, so that
    everybody stands beside the columns of somebody else.
    """
    warnings.warn(
        f"{left_out:,} of {number_of(rows, 'row', 'rows')} {'is' if left_out == 1 else 'are'} left out. Do not put "
        "other columns beside the rest, as ColumnTransformer and FeatureUnion do: these would show who is left out, "
        "or be those of other people. Take the columns of the rows where apply(...) >= 0",
        UserWarning,
        stacklevel=4,
    )
