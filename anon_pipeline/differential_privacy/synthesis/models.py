"""Models of a synthetic release, made from its noisy counts or trained on its rows, so at no further cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from anon_pipeline.differential_privacy.synthesis.coded_table import Axis
from anon_pipeline.differential_privacy.synthesis.junction_tree import FloatArray
from anon_pipeline.differential_privacy.synthesis.made_table import Synthetic
from anon_pipeline.errors import InputError
from anon_pipeline.learning.models import Task, build_model, rounds_of
from anon_pipeline.learning.public_naive_bayes import Codes, PublicNaiveBayes
from anon_pipeline.spec import ColumnType, ReleaseSpec

#: Naive Bayes learns the weights of its columns from synthetic rows; the noisier these are, the more alike the weights.
HELD = 25.0


def model_of(spec: ReleaseSpec, synthetic: Synthetic) -> Any:
    """The model that the spec asks for, fitted and frozen: fitting it again, as happens to a guide, does not change it.

    Raises
    ------
    InputError
        Where naive Bayes would have to predict a number.
    """
    from sklearn.frozen import FrozenEstimator

    assert spec.model is not None  # noqa: S101 - the graph has this step for specs with a model only
    is_number = _axis(synthetic, spec.target).domain.numeric
    frame = synthetic.table.select(list(spec.features)).to_pandas()
    target = synthetic.table.column(spec.target).to_pandas()
    known = target.notna().to_numpy()
    frame, target = frame[known], target[known]
    if spec.model.kind == "naive_bayes":
        if is_number:
            raise InputError("model.kind: naive_bayes predicts values of a list; take synthetic for a number")
        return FrozenEstimator(naive_bayes(spec, synthetic).fit(frame, target))
    kinds = {
        name: ColumnType.NUMERIC if _axis(synthetic, name).domain.numeric else ColumnType.CATEGORICAL
        for name in spec.features
    }
    for name, kind in kinds.items():
        frame[name] = frame[name].astype(np.float64 if kind is ColumnType.NUMERIC else object)
    task = Task.REGRESSION if is_number else Task.CLASSIFICATION
    rounds = rounds_of(len(frame), None if is_number else target.unique())
    return FrozenEstimator(build_model("gradient_boosting", task, kinds, 0, None, rounds).fit(frame, target))


def naive_bayes(spec: ReleaseSpec, synthetic: Synthetic) -> PublicNaiveBayes:
    """Naive Bayes from the counts of each column with the target that the model of all measurements expects."""
    names = [axis.name for axis in synthetic.axes]
    target = names.index(spec.target)
    to_classes = synthetic.measurements.codes[target]
    classes = synthetic.axes[target].domain.values or ()
    columns, counts, noise = [], [], []
    for name in spec.features:
        place = names.index(name)
        expected = synthetic.model.counts(tuple(sorted((place, target))))
        expected = expected if place < target else expected.T
        mapping = synthetic.measurements.codes[place]
        table: FloatArray = expected[mapping][:, to_classes[: len(classes)]]  # values that share a code share chances
        noise += _noise_of(synthetic, place, target)
        columns.append(_codes(synthetic.axes[place]))
        counts.append(table)
    held = HELD * float(np.mean(noise)) ** 2 if noise else 0.0
    return PublicNaiveBayes(tuple(columns), counts, classes, held)


def _noise_of(synthetic: Synthetic, place: int, target: int) -> list[float]:
    """The total variation that noise alone is expected to cause in the first counts of a column with the target."""
    tables = (table for table in synthetic.measurements.first if {place, target} <= set(table.columns))
    return [float(np.sqrt(2 / np.pi * table.variance).sum() / 2 / synthetic.model.total) for table in tables]


def _codes(axis: Axis) -> Codes:
    domain = axis.domain
    if domain.values is not None:
        return Codes(axis.name, values=domain.values)
    if domain.bins is not None:
        return Codes(axis.name, cuts=tuple(domain.bins[1:-1]))
    low, step = (domain.range or (0.0, 0.0))[0], domain.step or 1.0
    return Codes(axis.name, cuts=tuple(low + (axis.width * place - 0.5) * step for place in range(1, axis.intervals)))


def _axis(synthetic: Synthetic, name: str) -> Axis:
    return next(axis for axis in synthetic.axes if axis.name == name)
