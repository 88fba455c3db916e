"""The privacy-utility trade-off: the cost and protection of each setting of a spec, so that a steward can choose.

Only aggregates leave this module. `report.tradeoff` shows the result.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from anon_pipeline.anonymize.classes import loss_as_told, members
from anon_pipeline.anonymize.policy import anonymize_part, check_feasible, mean_loss, protected_columns, tree_of
from anon_pipeline.anonymize.recode import equivalence_classes, hidden_values, recoded_table
from anon_pipeline.errors import InputError, Refused
from anon_pipeline.keys import Key, seed_under
from anon_pipeline.learning.cells import StoredPeople, folds_of_sample, guided_cells
from anon_pipeline.learning.models import task_of
from anon_pipeline.learning.problem import PLAINLY, Fitting, Problem, unit_of
from anon_pipeline.learning.targets import train_guide
from anon_pipeline.learning.utility import CrossValidation, Folds, Utility, compare_fold, prepare, summarize
from anon_pipeline.learning.without_target import scored, taught
from anon_pipeline.privacy.judge import statistics_of
from anon_pipeline.privacy.population_table import PEOPLE
from anon_pipeline.privacy.risk import attribute_inference, prosecutor
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.spec import ReleaseSpec, Role
from anon_pipeline.tables import Cells, scale_of

#: Values by dotted path, as `ReleaseSpec.replaced` takes them.
Settings = dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """The cost and protection of the classes of a setting.

    Attributes
    ----------
    classes, smallest_class : number of classes, and people in the smallest
    information_lost : mean over the quasi-identifiers of the share of variance lost
    suppressed : share of the people who are left out
    homogeneity : per sensitive column, share of the people in classes where everybody has the same value
    largest_risk, mean_risk : the risk that a person known to be in the table is re-identified (prosecutor risk)
    """

    classes: int
    smallest_class: int
    information_lost: float
    suppressed: float
    homogeneity: dict[str, float]
    largest_risk: float
    mean_risk: float


@dataclass(frozen=True)
class TradeOffPoint:
    """A point of the privacy-utility trade-off.

    Attributes
    ----------
    settings : the values that were set
    current : whether the spec has these values already
    refused : why a release with this setting is impossible; everything else is then None
    utility : accuracy before and after; None where it was not asked for or cannot be measured
    utility_refused : why accuracy cannot be measured: the demands cannot be met in some training part
    """

    settings: Settings
    current: bool
    refused: str | None = None
    measured: Measured | None = None
    utility: Utility | None = None
    utility_refused: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Counted:
    """The counts that all settings share: the cells, and all sensitive columns per cell."""

    cells: Cells
    people: ClassStatistics


def trade_off(
    stored: StoredPeople,
    key: Key,
    settings: Sequence[Settings],
    with_utility: bool = True,
    fitting: Fitting = PLAINLY,
) -> list[TradeOffPoint]:
    """Measure each setting on the same people, the same guidance and the same folds.

    Parameters
    ----------
    key : the dataset's private key
    settings : as `spec.TradeOff.settings` gives them; they vary the grouping, never the model M
    fitting : its progress is called with (trees fitted, trees to fit) after each tree

    Raises
    ------
    InputError
        For a setting that the spec cannot have.
    """
    spec = stored.spec
    specs = [spec.replaced(setting) for setting in settings]
    quietly = replace(fitting, progress=None)
    counted = _count(stored, key, quietly)
    prepared = _prepare(stored, key, quietly) if with_utility else None
    population_table = functools.cache(functools.partial(stored.engine.population_table, spec, stored.types))
    populations = [None if varied.population is None else population_table(varied.population) for varied in specs]

    # A task is a tree, and all are in the same queue, since a small k takes much longer than a large one.
    tasks: list[tuple[Any, ...]] = [
        (_measure, varied, key, counted, population) for varied, population in zip(specs, populations, strict=True)
    ]
    if prepared is not None:
        alone = replace(prepared, folds=())
        tasks += [
            (compare_fold, alone, fold, functools.partial(anonymize_part, varied, key, types=stored.types))
            for fold in prepared.folds
            for varied in specs
        ]
    done = fitting.workers.map(_or_refusal, tasks, fitting.progress)
    fitted, scored = done[: len(specs)], done[len(specs) :]
    points = []
    for number, setting in enumerate(settings):
        point = TradeOffPoint(setting, current=specs[number].policy() == spec.policy())
        if isinstance(fitted[number], str):
            points.append(replace(point, refused=fitted[number]))
            continue
        point = replace(point, measured=fitted[number])
        if prepared is not None:
            parts = scored[number :: len(specs)]
            refused = next((part for part in parts if isinstance(part, str)), None)
            if refused is None:
                point = replace(point, utility=summarize(prepared, parts))
            else:
                point = replace(point, utility_refused=f"in a training part: {refused}")
        points.append(point)
    return points


def _count(stored: StoredPeople, key: Key, fitting: Fitting) -> Counted:
    """The cells as the pipeline counts them, with M trained as in the pipeline."""
    engine, table, spec, types = stored.engine, stored.table, stored.spec, stored.types
    people = engine.sample(table, spec, types, spec.guide.sample)
    sample, guide = folds_of_sample(people.hash, spec.guide, key, taught(spec, people.target))
    problem = Problem.of_spec(spec, types, people.features, people.target)
    trained = train_guide(problem, guide, sample.trained, fitting)
    scale = scale_of(trained.guidance(people.features, sample.fold))
    cells = guided_cells(stored, trained, sample, scale)
    sensitive = engine.sensitive_of_cells(table, cells, spec.with_role(Role.SENSITIVE))
    return Counted(cells, statistics_of(sensitive, spec.answers, spec.categories))


def _prepare(stored: StoredPeople, key: Key, fitting: Fitting) -> Folds:
    """The cross-validation as in the pipeline, with the raw models fitted."""
    spec, types = stored.spec, stored.types
    people = scored(spec, stored.engine.sample(stored.table, spec, types, spec.utility.sample))
    frame = pd.concat([people.features, people.target], axis=1)
    features = {name: types[name] for name in spec.features}
    seed = seed_under(key, spec.dataset)
    problem = Problem.within(frame, spec.target, task_of(types[spec.target]), features, seed)
    storage = stored.engine.columns(stored.table)[spec.target]
    problem = replace(problem, unit=unit_of(types[spec.target], storage))
    return prepare(problem, CrossValidation(spec.guide, spec.utility.folds), fitting)


def _measure(spec: ReleaseSpec, key: Key, counted: Counted, population_table: pd.DataFrame | None) -> Measured:
    """Fit the tree of a setting and measure its classes, demands included.

    Raises
    ------
    InputError, Refused
        Where its demands cannot be met.
    """
    cells, people = counted.cells, counted.people
    everybody = people.merge(np.zeros(len(people.sizes), dtype=np.int64), 1)
    if population_table is not None:
        everybody = replace(everybody, population=np.array([population_table[PEOPLE].sum()]), population_unmatched=0)
    check_feasible(spec, everybody)
    protected = {name: people.sensitive[name] for name in protected_columns(spec)}
    tree = tree_of(spec, key)
    class_of_cell = tree.fit_apply_cells(cells, replace(people, sensitive=protected), population_table)
    classes = people.without(class_of_cell < 0).pool(members(class_of_cell, len(tree.sizes_)))
    # Two groups that show the same values are one equivalence class of the released table.
    recoded = recoded_table(tree.summaries_, spec.recode.form)
    alike, hidden = equivalence_classes(recoded), hidden_values(tree.summaries_, recoded, spec.recode.form)
    classes = classes.merge(alike, int(alike.max()) + 1)
    risk = prosecutor(classes.sizes)
    return Measured(
        classes=len(classes.sizes),
        smallest_class=int(classes.sizes.min()),
        information_lost=mean_loss(loss_as_told(cells, class_of_cell, tree.information_loss_, alike, hidden)),
        suppressed=1 - int(tree.sizes_.sum()) / cells.n,
        homogeneity={name: inference.homogeneous for name, inference in attribute_inference(classes).items()},
        largest_risk=risk.max,
        mean_risk=risk.mean,
    )


def _or_refusal(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function, or its message where it refuses."""
    try:
        return function(*arguments)
    except (Refused, InputError) as refusal:
        return _sentence(refusal)


def _sentence(refusal: Refused | InputError) -> str:
    return "; ".join(refusal.failed) if isinstance(refusal, Refused) else str(refusal)
