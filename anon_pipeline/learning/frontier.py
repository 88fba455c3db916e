"""The price list: what each setting of a spec would cost, measured side by side, so that a steward can choose."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from anon_pipeline.anonymize.classes import members
from anon_pipeline.anonymize.policy import anonymize_part, mean_loss, tree_of
from anon_pipeline.engine.base import Engine
from anon_pipeline.errors import InputError, Refused
from anon_pipeline.learning.cells import folds_of_sample, guided_cells
from anon_pipeline.learning.guide import LoadLogged, task_of, train
from anon_pipeline.learning.utility import Folds, compare, prepare
from anon_pipeline.privacy.judge import statistics_of
from anon_pipeline.privacy.measures import describe
from anon_pipeline.privacy.risk import reidentification_risk
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.spec import ColumnType, ReleaseSpec, Role
from anon_pipeline.tables import Cells, scale_of

Settings = dict[str, Any]
Progress = Callable[[str], None]


def combinations(lists: Mapping[str, Sequence[Any]]) -> list[Settings]:
    """Every combination of the values of each path, the first path varying slowest."""
    return [dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values())]


def price_list(
    spec: ReleaseSpec,
    settings: Sequence[Settings],
    engine: Engine,
    table: Path,
    types: dict[str, ColumnType],
    load_logged: LoadLogged | None = None,
    with_utility: bool = True,
    progress: Progress = lambda _: None,
) -> list[dict[str, Any]]:
    """Measure each setting on the same people, the same guidance and the same folds.

    Parameters
    ----------
    table : the stored source, as `Engine.store_source` writes it
    settings : dotted paths of the spec and their values; the model M must not be among them

    Returns
    -------
    One row per setting: the settings, classes, smallest_class, information_lost, homogeneity per sensitive column,
    prosecutor_max, prosecutor_mean, suppressed (a share) and utility; or the settings and `refused`, a sentence.

    Raises
    ------
    InputError
        For a setting that the spec does not allow.
    """
    specs = [spec.replaced(setting) for setting in settings]
    if any(one.guide.model != spec.guide.model for one in specs):
        raise InputError("guide.model: the price list is measured with one model; run a sweep for each")
    task = task_of(types[spec.target])
    features = {name: types[name] for name in spec.features}
    people = engine.sample(table, spec, types, spec.guide.sample)
    folds, guide = folds_of_sample(people.hash, spec.guide)
    trained = train(people.features, people.target, guide, task, features, spec.seed, folds, load_logged)
    scale = scale_of(trained.guidance(people.features, folds))
    cells = guided_cells(engine, table, spec, types, trained, people.hash, scale)
    counted = statistics_of(engine.sensitive_of_cells(table, cells.domains, cells, spec.with_role(Role.SENSITIVE)))
    progress(f"{len(cells.counts):,} distinct people counted")
    prepared = None
    if with_utility:
        scored = engine.sample(table, spec, types, spec.utility.sample)
        frame = pd.concat([scored.features, scored.target], axis=1)
        prepared = prepare(
            frame, spec.target, features, task, spec.guide, spec.utility.folds, spec.seed, load_logged,
            lambda done, of: progress(f"raw models, fold {done} of {of}"),
        )  # fmt: skip
    rows = []
    for setting, one in zip(settings, specs, strict=True):
        progress(", ".join(f"{path} {value}" for path, value in setting.items()))
        census = None if one.population is None else engine.census(one, types, one.population)
        try:
            rows.append({"settings": setting, **_priced(one, cells, counted, census, prepared)})
        except (Refused, InputError) as refusal:
            rows.append({"settings": setting, "refused": str(refusal)})
    return rows


def _priced(
    spec: ReleaseSpec, cells: Cells, counted: ClassStatistics, census: pd.DataFrame | None, prepared: Folds | None
) -> dict[str, Any]:
    tree = tree_of(spec).fit_cells(cells, counted, census)
    class_of_cell = tree.partition_.apply(cells.codes)
    classes = counted.without(class_of_cell < 0).pool(members(class_of_cell, len(tree.sizes_)))
    risk = reidentification_risk(classes)
    row: dict[str, Any] = {
        "classes": len(tree.sizes_),
        "smallest_class": int(tree.sizes_.min()),
        "information_lost": mean_loss(tree.information_loss_),
        "suppressed": 1 - int(tree.sizes_.sum()) / cells.n,
        "prosecutor_max": risk.prosecutor.max,
        "prosecutor_mean": risk.prosecutor.mean,
        "homogeneity": {column: measures["homogeneity"] for column, measures in describe(classes).items()},
    }
    if prepared is not None:
        row["utility"] = compare(prepared, lambda part, guidance: anonymize_part(spec, part, guidance)).as_dict()
    return row
