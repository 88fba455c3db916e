"""The anonymizer that a spec asks for, and its use on a part of the people."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pandas as pd

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.axes import Orders
from anon_pipeline.anonymize.description import hierarchies_of, levels_of
from anon_pipeline.anonymize.frames import with_columns
from anon_pipeline.anonymize.hierarchy import Calendar
from anon_pipeline.errors import InputError
from anon_pipeline.keys import Key
from anon_pipeline.privacy.base import privacy_models
from anon_pipeline.privacy.population import PopulationModel
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.spec import ColumnType, ReleaseSpec, Role
from anon_pipeline.tables import Cells

#: More days since 1970 than any date of the years 1 to 9999 has, before or after.
MOST_DAYS = 3_000_000


class TreeOfPart(AnonymizerTree):
    """The anonymizer of a part of the people, such as a fold: all of them together have been checked before.

    In a part, more of the people have a text of their own than in the whole table.
    """

    def _check_texts(self, cells: Cells) -> None:
        pass


def tree_of(spec: ReleaseSpec, key: Key | None, in_folds: bool = False) -> AnonymizerTree:
    """The unfitted anonymizer of a spec, under the dataset's private key, or one that is kept nowhere.

    Within the folds of the utility measurement it shows representatives instead of ranges. Demands on a population are
    left out there, since a fold's training part is no sample of the population. Calendars are left out too: dates are
    numbers there, and a calendar only names their ranges.
    """
    hierarchies = hierarchies_of(spec)
    if in_folds:
        hierarchies = {
            name: hierarchy for name, hierarchy in hierarchies.items() if not isinstance(hierarchy, Calendar)
        }
    demands = [demand for demand in privacy_models(spec.privacy) if demand.name != "k_anonymity"]
    if in_folds:
        demands = [demand for demand in demands if not isinstance(demand, PopulationModel)]
    return (TreeOfPart if in_folds else AnonymizerTree)(
        k=spec.fitted_k,
        spread=spec.guide.spread,
        orders=orders_of(spec),
        # Sequential publication sends cohorts down a tree, so its measurements are of trees without refinement.
        refine=0 if spec.across_releases else spec.grouping.refine,
        grids=grids_of(spec),
        levels=levels_of(spec),
        hierarchies=hierarchies,
        demands=demands,
        key=key,
        answers=[name for name in protected_columns(spec) if name in spec.answers],
        suppression=spec.suppression.limit,
        form="value" if in_folds else spec.recode.form,
        random_state=spec.seed,
    )


def orders_of(spec: ReleaseSpec) -> Orders:
    """The category orders that the tree may split; with several targets each has an order of its own.

    An order that mixes several targets would serve none of them.
    """
    return "each" if len(spec.guide.targets) > 1 and spec.guide.orders == "both" else spec.guide.orders


def grids_of(spec: ReleaseSpec) -> dict[str, float]:
    """The grids that a spec states, by quasi-identifier."""
    return {name: grid for name in spec.quasi_identifiers if (grid := spec.columns[name].grid) is not None}


def protected_columns(spec: ReleaseSpec) -> list[str]:
    """The sensitive columns that some demand names."""
    named = {demand.sensitive_column for demand in spec.privacy}
    return [name for name in spec.with_role(Role.SENSITIVE) if name in named]


def protected_of(spec: ReleaseSpec, people: pd.DataFrame, types: Mapping[str, ColumnType]) -> pd.DataFrame | None:
    """The sensitive columns of some people as demands count them; None where no demand names one.

    Columns that `types` calls dates are numbers in `people`, and dates to the demands on them.
    """
    protected = protected_columns(spec)
    dates = [name for name in protected if types.get(name) is ColumnType.DATE]
    return with_columns(people[protected], {name: _moments(people[name]) for name in dates}) if protected else None


def anonymize_part(
    spec: ReleaseSpec,
    key: Key,
    part: pd.DataFrame,
    guidance: npt.NDArray[np.float64],
    types: Mapping[str, ColumnType] = MappingProxyType({}),
) -> pd.DataFrame:
    """A part of the people as a release of them alone would show it; suppressed people are left out."""
    tree = tree_of(spec, key, in_folds=True)
    tree.fit(part[spec.quasi_identifiers], guidance, protected_of(spec, part, types))
    released = part[tree.apply(part[spec.quasi_identifiers]) >= 0]
    return with_columns(released, tree.transform(released[spec.quasi_identifiers]))


def _moments(numbers: pd.Series) -> pd.Series:
    """Moments from days since 1970, or from microseconds where there are more than any day of the year 9999 has."""
    known = numbers.notna().to_numpy()
    values = numbers.fillna(0.0).to_numpy(np.float64).astype(np.int64)
    unit = "D" if np.abs(values).max(initial=0) <= MOST_DAYS else "us"
    moments = values.astype(f"datetime64[{unit}]").astype("datetime64[us]")
    return pd.Series(np.where(known, moments, np.datetime64("NaT")), index=numbers.index)


def check_feasible(spec: ReleaseSpec, everybody: ClassStatistics) -> None:
    """Refuse a demand that no grouping of these people can meet; `everybody` is all of them in one class.

    Raises
    ------
    InputError
        For the first such demand.
    """
    for demand in privacy_models(spec.privacy):
        sentence = demand.impossible(everybody)
        if sentence is not None:
            raise InputError(f"privacy.{demand.name}: {sentence}; lower the demand")


def mean_loss(losses: dict[str, float]) -> float:
    """Mean over the quasi-identifiers of the share of information lost."""
    return float(np.mean(list(losses.values())))
