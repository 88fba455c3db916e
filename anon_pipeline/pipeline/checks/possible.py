"""What no grouping of the stored people can meet is refused before any model is trained."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from anon_pipeline.anonymize.description import described, hierarchies_of, levels_of
from anon_pipeline.anonymize.policy import check_feasible, grids_of, protected_columns
from anon_pipeline.engine.base import Engine
from anon_pipeline.errors import InputError
from anon_pipeline.privacy.judge import statistics_of
from anon_pipeline.privacy.population_table import PEOPLE
from anon_pipeline.spec import ColumnType, ReleaseSpec


def require_possible(spec: ReleaseSpec, engine: Engine, table: Path, types: Mapping[str, ColumnType]) -> None:
    """Check the demands on all people of a stored table as one class, and what the spec says of its quasi-identifiers.

    Raises
    ------
    InputError
        For a grid of a column of categories, for values that the levels or the hierarchy of a column lack, and for the
        first demand that even one class of everybody cannot meet.
    """
    for name in grids_of(spec):
        if types[name] is ColumnType.CATEGORICAL:
            raise InputError(
                f"columns.{name}.grid: a grid is for numbers and dates, and {name} has categories when people are "
                "grouped; leave grid out"
            )
    levels, hierarchies = levels_of(spec), hierarchies_of(spec)
    stated = {name: types[name] for name in spec.quasi_identifiers if name in levels or name in hierarchies}
    if stated:
        described(
            engine.domains(table, stated),
            {name: levels[name] for name in stated if name in levels},
            {name: hierarchies[name] for name in stated if name in hierarchies},
        )
    everybody = statistics_of(engine.classes(table, [], protected_columns(spec)), spec.answers, spec.categories)
    if spec.population is not None:
        people = engine.population_table(spec, types, spec.population)[PEOPLE].sum()
        everybody = dataclasses.replace(everybody, population=np.array([people]), population_unmatched=0)
    check_feasible(spec, everybody)
