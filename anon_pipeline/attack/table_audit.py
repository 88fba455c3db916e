"""Every attack on a table, in one call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from anon_pipeline.attack.inference import inference
from anon_pipeline.attack.intersection import Earlier, intersection
from anon_pipeline.attack.linkage import linkage, row_order
from anon_pipeline.attack.membership import membership
from anon_pipeline.attack.minimality import minimality
from anon_pipeline.attack.rates import Finding
from anon_pipeline.attack.released import Knowledge
from anon_pipeline.attack.singling_out import singling_out
from anon_pipeline.attack.targets import read_attacked

__all__ = ["Earlier", "Knowledge", "audit_table"]


def audit_table(
    released: pd.DataFrame,
    origin: npt.NDArray[np.int64] | None,
    original: pd.DataFrame,
    control: pd.DataFrame | None,
    knowledge: Knowledge,
    classes: pd.DataFrame | None = None,
    earlier: Sequence[Earlier] = (),
    targets: int = 2000,
    seed: int = 0,
) -> list[Finding]:
    """Attack a released table with everything this package knows.

    Parameters
    ----------
    released : one row per released person, N rows, by any tool
    origin : position in `original` of the person behind each released row, -1 for none, shape (N,); None if unknown
    original : the raw people who are in the release
    control : raw people like them who are not; without them a leak is not told from statistics
    knowledge : the columns and their roles
    classes : our own published table of what each class stands for, where there is one
    earlier : releases that were published before and hold some of the same people
    targets : members, and control people, who are attacked at most
    seed : of all that is drawn; the same tables and seed give the same findings, in whatever order their rows are
    """
    control = None if control is None or not len(control) else control
    attacked = read_attacked(released, origin, original, control, knowledge, classes, seed)
    return [
        *linkage(attacked, targets),
        *row_order(attacked),
        *intersection(attacked, earlier, original, control, targets),
        *singling_out(attacked),
        *inference(attacked, targets),
        *minimality(attacked, targets),
        *membership(attacked, targets),
    ]
