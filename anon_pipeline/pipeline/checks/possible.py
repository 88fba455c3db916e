"""Demands that no grouping of the stored people can meet are refused before any work starts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from anon_pipeline.anonymize.policy import check_feasible, protected_columns
from anon_pipeline.engine.base import Engine
from anon_pipeline.privacy.judge import statistics_of
from anon_pipeline.privacy.population_table import PEOPLE
from anon_pipeline.spec import ColumnType, ReleaseSpec


def require_possible(spec: ReleaseSpec, engine: Engine, table: Path, types: Mapping[str, ColumnType]) -> None:
    """Check the demands on all people of a stored table as one class.

    Raises
    ------
    InputError
        For the first demand that even this class cannot meet.
    """
    everybody = statistics_of(engine.classes(table, [], protected_columns(spec)), spec.answers)
    if spec.population is not None:
        people = engine.population_table(spec, types, spec.population)[PEOPLE].sum()
        everybody = dataclasses.replace(everybody, population=np.array([people]), population_unmatched=0)
    check_feasible(spec, everybody)
