"""The checks of a spec and its source before any work starts: without Dagster, MLflow, pandas, or a home.

Every refusal here is one that a step would give later; checks that are not cheap are left to the steps.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from anon_pipeline.anonymize.description import described, hierarchies_of, levels_of
from anon_pipeline.attack import MOST_KNOWN
from anon_pipeline.engine.durations import require_stated_units
from anon_pipeline.engine.first_look import FirstLook, first_look
from anon_pipeline.engine.sources import require_there
from anon_pipeline.errors import InputError
from anon_pipeline.masking.step_keys import secrets_of
from anon_pipeline.privacy.base import privacy_models
from anon_pipeline.privacy.statistics import ClassStatistics, Histogram
from anon_pipeline.spec import ColumnType, HierarchyFile, ImportedModel, ReleaseSpec
from anon_pipeline.spec.locations import is_address
from anon_pipeline.spec.permission import require_code
from anon_pipeline.tables import Domain


def require_startable(spec: ReleaseSpec, however_large: bool = False) -> FirstLook:
    """Facts about the source, if nothing speaks against a run yet.

    Parameters
    ----------
    however_large : whether every row of a file is read, also if that is not cheap, and the target's values are counted

    Raises
    ------
    InputError
        For a key or a file that is missing, columns that do not fit the spec, fewer people than k, values that the
        levels or the hierarchy of a column lack, and demands that no grouping of the people can meet, as far as that is
        cheap to see.
    """
    secrets_of(spec)
    if isinstance(spec.guide.model, ImportedModel):
        require_code("guide.model.import", spec.guide.model.import_)
    _require_files(spec)
    _require_attackable(spec)
    if spec.is_synthetic:  # people are read for noisy counts only
        require_there(spec)
        return FirstLook()
    demands = [demand for demand in privacy_models(spec.privacy) if demand.sensitive_column is not None]
    as_stored = not spec.masks and spec.audit.control != "held_out"  # otherwise other people or values are grouped
    counted = {str(demand.sensitive_column) for demand in demands} | set(_described(spec))
    counted = counted if as_stored else set()
    if however_large and spec.target is not None:
        counted.add(spec.target)
    looked = first_look(spec, sorted(counted), however_large)
    if as_stored:
        _require_described(spec, looked)
    for demand in demands:
        if not as_stored or demand.sensitive_column not in looked.values:
            continue
        sentence = demand.impossible(_everybody(looked, str(demand.sensitive_column), spec))
        if sentence is not None:
            raise InputError(f"privacy.{demand.name}: {sentence}; lower the demand")
    require_stated_units(spec)
    return looked


def _require_attackable(spec: ReleaseSpec) -> None:
    """Refuse more quasi-identifiers than the attacks know, which come after nearly everything else."""
    number = len(spec.quasi_identifiers)
    if spec.audit.enabled and not spec.is_synthetic and not spec.aggregates and number > MOST_KNOWN:
        raise InputError(
            f"columns: {number} have the role quasi_identifier, and the attacks of the audit know at most "
            f"{MOST_KNOWN}; exclude those that matter least, or leave the attacks out (audit: {{enabled: false}})"
        )


def _require_files(spec: ReleaseSpec) -> None:
    """Require the files that the spec names beside the source."""
    for name, column in spec.columns.items():
        if isinstance(column.hierarchy, HierarchyFile) and not (spec.folder / column.hierarchy.file).is_file():
            raise InputError(
                f"columns.{name}.hierarchy: {column.hierarchy.file}: there is no such file beside the spec"
            )
    if spec.population is not None and not is_address(spec.population) and not (spec.folder / spec.population).exists():
        raise InputError(f"privacy: population: {spec.population}: there is no such file beside the spec")


def _described(spec: ReleaseSpec) -> list[str]:
    """The quasi-identifiers whose categories have levels or a hierarchy; of aggregates, none has."""
    columns = {} if spec.aggregates else {name: spec.columns[name] for name in spec.quasi_identifiers}
    return [
        name
        for name, column in columns.items()
        if column.type is ColumnType.CATEGORICAL and (column.levels is not None or column.hierarchy is not None)
    ]


def _require_described(spec: ReleaseSpec, looked: FirstLook) -> None:
    """Require levels and hierarchies to know all texts of their columns; other values are left to the steps."""
    domains = []
    for name in _described(spec):
        found = looked.values.get(name)
        people = {} if found is None else dict(zip(found.values, found.people, strict=True))
        missing, texts = people.pop(None, 0), sorted(text for text in people if isinstance(text, str))
        if texts and len(texts) == len(people):
            counts = np.array([missing, *(people[text] for text in texts)], dtype=np.int64)
            domains.append(Domain(name, ColumnType.CATEGORICAL, np.array(texts, dtype=object), counts))
    known = {domain.name for domain in domains}
    levels = {name: stated for name, stated in levels_of(spec).items() if name in known}
    described(domains, levels, {name: of for name, of in hierarchies_of(spec).items() if name in known})


def _everybody(looked: FirstLook, column: str, spec: ReleaseSpec) -> ClassStatistics:
    """The statistics of all people as one class, for one sensitive column."""
    found = looked.values[column]
    counts = sparse.csr_array(np.array([found.people], dtype=np.int64))
    histogram = Histogram(
        found.values,
        counts,
        found.ordered,
        missing_is_a_value=column in spec.answers,
        categorical=column in spec.categories,
    )
    return ClassStatistics(np.array([sum(found.people)], dtype=np.int64), {column: histogram})
