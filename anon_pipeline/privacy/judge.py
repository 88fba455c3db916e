"""The verdict on a table: each demand of a spec is checked against the classes counted in that table."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from anon_pipeline.distinct import factorized
from anon_pipeline.engine.base import ClassCounts, Engine
from anon_pipeline.engine.typed import natural_type
from anon_pipeline.errors import InputError
from anon_pipeline.privacy.base import privacy_models
from anon_pipeline.privacy.class_table import classes_that_differ
from anon_pipeline.privacy.delta_presence import DeltaPresence
from anon_pipeline.privacy.population import PopulationModel
from anon_pipeline.privacy.population_table import boxed, boxed_alike, told_by_ends
from anon_pipeline.privacy.statistics import ClassStatistics, Histogram, histogram
from anon_pipeline.spec import ColumnType, Demand, ReleaseSpec


@dataclass(frozen=True)
class Finding:
    """The result of checking one demand.

    Attributes
    ----------
    name : the privacy model, followed by its column where it has one
    demand : the demand in words
    measured : the worst value over all classes, None where it is infinite
    failing : number of classes that do not meet it
    """

    name: str
    demand: str
    measured: float | None
    failing: int

    @property
    def holds(self) -> bool:
        return self.failing == 0


def name_of(demand: Demand) -> str:
    """ "l_diversity_income": the model and the column it protects."""
    column = demand.sensitive_column
    return demand.name if column is None else f"{demand.name}_{column}"


def names_of(demands: Sequence[Demand]) -> list[str]:
    """A name for each demand that no other has: a second one of the same model and column ends in `_2`."""
    plain, names = {name_of(demand) for demand in demands}, []
    for demand in demands:
        name, number = name_of(demand), 1
        while name in names or (number > 1 and name in plain):
            number += 1
            name = f"{name_of(demand)}_{number}"
        names.append(name)
    return names


def statistics_of(
    counts: ClassCounts, answers: Collection[str] = (), categories: Collection[str] = ()
) -> ClassStatistics:
    """Class statistics of a table that an engine has grouped.

    Parameters
    ----------
    answers : the columns in which missing is a value
    categories : the columns that are declared to hold categories
    """
    sensitive = {}
    for column, frame in counts.sensitive.items():
        missing = frame["value"].isna().to_numpy()
        code, values = factorized(frame["value"][~missing], sort=True)
        codes = pd.Series(0, index=frame.index, dtype="int64")
        codes[~missing] = code + int(missing.any())
        known: tuple[Any, ...] = tuple(values.tolist())
        values_with_missing = (None, *known) if missing.any() else known
        sensitive[column] = Histogram(
            values=values_with_missing,
            counts=histogram(
                np.asarray(frame["class"], dtype=np.int64),
                np.asarray(codes, dtype=np.int64),
                np.asarray(frame["count"], dtype=np.int64),
                (len(counts.sizes), len(values_with_missing)),
            ),
            ordered=column in counts.ordered,
            missing_is_a_value=column in answers,
            categorical=column in categories,
        )
    return ClassStatistics(sizes=counts.sizes, sensitive=sensitive)


def judge(demands: Sequence[Demand], classes: ClassStatistics) -> list[Finding]:
    """Check every demand against the classes; a table without classes meets none."""
    return [judgement.finding for judgement in judge_classes(demands, classes)]


@dataclass(frozen=True, eq=False)
class Judgement:
    """A finding, and which of the classes hold, shape (J,)."""

    finding: Finding
    holds: npt.NDArray[np.bool_]


def judge_classes(demands: Sequence[Demand], classes: ClassStatistics) -> list[Judgement]:
    """`judge`, class by class."""
    judgements = []
    for model in privacy_models(demands):
        holds = model.holds(classes) if len(classes.sizes) else np.zeros(1, dtype=bool)
        measured = model.measured(classes) if len(classes.sizes) else math.nan
        finding = Finding(
            name_of(model), model.demand(), measured if math.isfinite(measured) else None, int((~holds).sum())
        )
        judgements.append(Judgement(finding, holds))
    return judgements


def judge_release(
    engine: Engine, spec: ReleaseSpec, types: Mapping[str, ColumnType], counts: ClassCounts, class_table: Path
) -> list[Judgement]:
    """Check the demands of a spec against a release (or a candidate for one), read again from its two files.

    Demands on a population are checked against the boxes of the class table, of which those that hold the same people
    are one, all others against `counts`, the classes counted in the data. Where the two do not agree, no class meets a
    demand on a population.

    Raises
    ------
    InputError
        For a demand on a population without a readable class table.
    """
    counted = statistics_of(counts, spec.answers, spec.categories)
    judgements = []
    for demand in spec.privacy:
        if isinstance(demand, PopulationModel):
            if not class_table.is_file():
                raise InputError(f"privacy.{demand.name}: can be judged only beside the release's {class_table.name}")
            judgements.append(_beside_population(demand, engine, spec, types, counts, class_table))
            continue
        judgements += judge_classes([demand], counted)
    return judgements


def _beside_population(
    demand: PopulationModel,
    engine: Engine,
    spec: ReleaseSpec,
    types: Mapping[str, ColumnType],
    counts: ClassCounts,
    class_table: Path,
) -> Judgement:
    try:
        classes = pd.read_parquet(class_table)
    except (OSError, pa.ArrowException):
        raise InputError(f"{class_table.name}: cannot be read; it is no intact Parquet file") from None
    differ = classes_that_differ(classes, counts, spec)
    if differ:
        demanded = f"{demand.demand()}, by a {class_table.name} that agrees with the table, and this one does not"
        return Judgement(Finding(name_of(demand), demanded, None, differ), np.zeros(differ, dtype=bool))
    population_table = engine.population_table(spec, types, demand.population)
    return judge_classes([demand], boxed_alike(classes, spec.quasi_identifiers, population_table))[0]


def classes_beside_population(
    engine: Engine, spec: ReleaseSpec, types: Mapping[str, ColumnType], class_table: Path
) -> ClassStatistics | None:
    """The rows of a class table with the people of the population in each box; None where no demand names a population.

    Parameters
    ----------
    class_table : one that `judge_release` has found to agree with its data
    """
    if spec.population is None:
        return None
    return boxed(
        pd.read_parquet(class_table),
        spec.quasi_identifiers,
        engine.population_table(spec, types, spec.population),
    )


def told_of_presence(engine: Engine, spec: ReleaseSpec, types: Mapping[str, ColumnType], class_table: Path) -> int:
    """How many ends and categories of a class table tell who is in it, more surely than `delta_presence` allows."""
    return sum(
        told_by_ends(
            pd.read_parquet(class_table),
            spec.quasi_identifiers,
            engine.population_table(spec, types, demand.population),
            demand.max,
        )
        for demand in spec.privacy
        if isinstance(demand, DeltaPresence)
    )


def types_of(spec: ReleaseSpec, storage: Mapping[str, str]) -> dict[str, ColumnType]:
    """The types of a spec's quasi-identifiers: as declared, else as a table stores them."""
    known = [name for name in spec.quasi_identifiers if name in storage]
    return {name: spec.columns[name].type or natural_type(storage[name]) for name in known}
