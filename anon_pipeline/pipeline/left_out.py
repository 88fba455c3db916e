"""The people of a table who are in no released row: a figure that counts them would tell what no table shows."""

from __future__ import annotations

import numpy as np

from anon_pipeline.anonymize.grouping import stored_classes
from anon_pipeline.anonymize.storage import load_cells
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline.tables import Cells


def may_leave_out(spec: ReleaseSpec) -> bool:
    """Whether people who are grouped may be missing from the release: as suppressed, or waiting for others."""
    return spec.suppression.limit > 0 or spec.across_releases is not None


def cells_left_out(predictions: Stage, anonymizer_tree: Stage) -> Cells:
    """The cells whose people are in no class."""
    cells = load_cells(predictions.folder)
    class_of_cell = stored_classes(anonymizer_tree.folder, cells)
    return cells.part(np.flatnonzero(class_of_cell < 0))
