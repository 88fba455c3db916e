"""A run on a small table, from training to classes, repeated in memory by somebody who has the code and the spec."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.policy import protected_columns, tree_of
from anon_pipeline.engine.content import row_hashes, sample_hash
from anon_pipeline.errors import Refused
from anon_pipeline.keys import Key
from anon_pipeline.learning.cells import folds_of_sample
from anon_pipeline.learning.guide import train
from anon_pipeline.learning.models import Task
from anon_pipeline.learning.problem import Problem
from anon_pipeline.spec import ColumnType, ReleaseSpec


@dataclass(frozen=True, eq=False)
class Rerun:
    """The known columns of n people, and the way in which a run would group them.

    Attributes
    ----------
    spec : the policy; its target is a category, and the only sensitive column
    known : the quasi-identifiers as in the source, a row per person
    """

    spec: ReleaseSpec
    known: pd.DataFrame

    def tree(self, target: npt.NDArray[np.object_], key: Key) -> AnonymizerTree | None:
        """The fitted tree if the people have these values of the target; None where it would be refused."""
        spec, names = self.spec, self.spec.released
        frame = self.known.assign(**{spec.target: target})
        hashes = sample_hash(row_hashes([pa.array(frame[name]) for name in names], names))
        order = np.argsort(hashes, kind="stable")
        frame = frame.iloc[order].reset_index(drop=True)
        identifying = frame[spec.quasi_identifiers]  # whole numbers stay whole: chance depends on the text of values
        frame = frame.astype(dict.fromkeys(frame.select_dtypes("number"), np.float64))
        sample, guide = folds_of_sample(hashes[order], spec.guide, key)
        types = {name: _type(frame[name]) for name in spec.features}
        features, learned = frame[spec.features], frame[spec.target]
        trained = train(Problem(features, learned, Task.CLASSIFICATION, types, spec.seed), guide, sample.fold)
        protected = protected_columns(spec)
        sensitive = frame[protected] if protected else None
        try:
            return tree_of(spec, key).fit(identifying, trained.guidance(features, sample.fold), sensitive)
        except Refused:
            return None


def _type(column: pd.Series) -> ColumnType:
    return ColumnType.NUMERIC if column.dtype.kind == "f" else ColumnType.CATEGORICAL
