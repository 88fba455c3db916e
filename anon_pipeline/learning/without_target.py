"""People whose target is not known, where the spec releases them all the same: who a model learns from without them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from anon_pipeline.arrays import BoolArray, IntArray
from anon_pipeline.engine.base import Batch
from anon_pipeline.engine.batches import chosen_rows
from anon_pipeline.errors import InputError
from anon_pipeline.spec import ReleaseSpec


def taught(spec: ReleaseSpec, target: pd.Series[Any]) -> BoolArray | None:
    """Whom the model that guides learns from, shape (n,); None where that is everybody.

    Raises
    ------
    InputError
        Where it is nobody.
    """
    if spec.missing_target != "release":
        return None
    known: BoolArray = target.notna().to_numpy()
    if not known.any():
        raise InputError(
            f"target: {spec.target} is missing for all {len(known)} people whom the model would learn from; raise "
            "guide.sample, or choose another target"
        )
    return known


def scored(spec: ReleaseSpec, people: Batch) -> Batch:
    """The people of a sample on whom accuracy is measured: see `scored_rows`."""
    return chosen_rows(people, scored_rows(spec, people.target))


def scored_rows(spec: ReleaseSpec, target: pd.Series[Any]) -> IntArray:
    """Which of n people have a target that models can be trained and scored on, by position.

    Their number is published, and with it in all its digits who knows the release would know how many of the people who
    are left out of it have a target. So of the first of them so many are taken that n less their number is a multiple
    of sqrt(n), and one person more or less seldom changes it. Where the spec releases nobody else it is everybody.

    Raises
    ------
    InputError
        Where they are too few for that.
    """
    if spec.missing_target != "release":
        return np.arange(len(target))
    known = np.flatnonzero(target.notna())
    step = math.ceil(math.sqrt(len(target)))
    missing = len(target) - len(known)
    taken = len(target) - step * (math.floor(missing / step + 0.5) + 1)
    if taken < 1:
        raise InputError(
            f"target: {spec.target} is known of {len(known)} of {len(target)} people, too few to measure what the "
            "release costs; choose another target, or say missing_target: leave_out"
        )
    return known[:taken]
