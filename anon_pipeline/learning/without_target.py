"""People without a known target, where the spec releases them: which people models learn from and are scored on."""

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
    """The people from whom the guiding model learns, shape (n,); None where these are all.

    Raises
    ------
    InputError
        Where there are none.
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

    Their number is published. From the exact number, a reader of the release would know how many of the people who are
    left out of it have a target. So only the first of them are taken, so many that n minus their number is a multiple
    of sqrt(n); one person more or less then seldom changes it. Where the spec releases only people with a target, these
    are all.

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
