"""The candidate for release: everybody with the recoded values of their class."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from anon_pipeline.anonymize.classes import counting_withheld, loss_as_told
from anon_pipeline.anonymize.grouping import Grouping
from anon_pipeline.anonymize.policy import grids_of
from anon_pipeline.anonymize.recode import OrderedSummary, Summary, equivalence_classes, hidden_values, recoded_table
from anon_pipeline.anonymize.recoding_statistics import column_statistics
from anon_pipeline.anonymize.storage import load_cells
from anon_pipeline.arrays import IntArray
from anon_pipeline.engine import binning, found_types
from anon_pipeline.engine.base import Recoding, SourceFacts
from anon_pipeline.engine.expressions import PEOPLE as PEOPLE_COUNT
from anon_pipeline.pipeline import sequential_publication
from anon_pipeline.pipeline.metadata import Lineage
from anon_pipeline.pipeline.pages import class_size_metadata, released_schema
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import PEOPLE, Run, StepDef, StepResult
from anon_pipeline.privacy.judge import statistics_of
from anon_pipeline.privacy.sampling_weights import weighted_risk
from anon_pipeline.release import known_classes, manifest
from anon_pipeline.release.associations import associations
from anon_pipeline.release.marginals import marginals
from anon_pipeline.release.publish import CLASSES, DATA
from anon_pipeline.spec import Role
from anon_pipeline.tables import Cells, Domain

#: The ranges of the classes, for the check that the table holds no others.
RANGES = "ranges.parquet"


def recode(run: Run, folder: Path, people: Stage, predictions: Stage, anonymizer_tree: Stage) -> StepResult:
    """Write the table of everybody as their class shows itself, and the table of classes."""
    spec, engine = run.spec, run.engine
    cells = load_cells(predictions.folder)
    grouping = Grouping.load(anonymizer_tree.folder, cells)
    withheld = int(people.facts.get("withheld", 0))  # of whom there is no cell
    storage = _narrower(run, people, cells, grouping)
    k = spec.k if spec.across_releases is None else sequential_publication.smallest_cohort(spec)
    bins = _bins_of_released(run, people, cells, grouping)
    grouping = grouping.shown_in(storage, bins, cells, k, grids_of(spec)).in_order()
    in_no_class = int(cells.counts[grouping.class_of_cell < 0].sum())
    units = {name: column.unit for name, column in spec.columns.items()}
    recoded = recoded_table(grouping.summaries, spec.recode.form)
    released_class = equivalence_classes(recoded)
    hidden = hidden_values(grouping.summaries, recoded, spec.recode.form)
    of_ranges = hidden if spec.recode.form == "range" else {}
    facts: dict[str, Any] = {
        "suppressed": in_no_class + withheld - grouping.withheld_people,
        "waiting": grouping.withheld_people,
        "released": cells.n - in_no_class,
        "bounds": {summary.domain.name: _bounds(summary) for summary in grouping.summaries},
        "information_loss": counting_withheld(
            loss_as_told(cells, grouping.class_of_cell, grouping.information_loss, released_class, hidden),
            cells,
            withheld,
        ),
        "apart": {domain.name: domain.apart for domain in cells.domains},
        "columns": column_statistics(grouping.summaries, grouping.sizes, units, of_ranges),
        "marginals": marginals(grouping.summaries, grouping.sizes, spec.k, of_ranges),
        "associations": _associations(run, people, cells, grouping),
        "weighted": _weighted_risk(run, people, cells, grouping, released_class),
        "narrowed": storage,
    }
    recoding = Recoding(cells, grouping.class_of_cell, recoded, storage)
    _, content = engine.write_release(people.folder / DATA, recoding, spec.released, folder / DATA)
    grouping.table.to_parquet(folder / CLASSES, index=False)
    if spec.across_releases is not None:
        sequential_publication.write_members(run, people, cells, grouping, folder)
    else:
        names = spec.quasi_identifiers
        tuples = engine.classes_of_people(people.folder / DATA, cells, grouping.class_of_cell, *names, distinct=True)
        known_classes.write(tuples, names, folder / known_classes.FILE, people.facts.get("narrowed", ()))
    if spec.recode.form == "range":
        recoded.to_pandas().to_parquet(folder / RANGES, index=False)
    facts["version"] = manifest.version_of(spec, {DATA: content, CLASSES: engine.content_hash(folder / CLASSES)[1]})
    individual_risk = {f"individual_risk_{name}": value for name, value in (facts["weighted"] or {}).items()}
    return StepResult(
        facts,
        facts["released"],
        {
            "schema": released_schema(spec, engine.columns(folder / DATA)),
            "lineage": Lineage(PEOPLE, manifest.lineage(spec)),
            "suppressed": facts["suppressed"],
            **class_size_metadata(manifest.class_sizes(grouping.sizes)),
            **individual_risk,
        },
        {"released": facts["released"], "suppressed": facts["suppressed"], **individual_risk},
    )


STEP = StepDef("anonymized_table", (PEOPLE, "predictions", "anonymizer_tree"), frozenset({"duckdb", "parquet"}), recode)


def _narrower(run: Run, people: Stage, cells: Cells, grouping: Grouping) -> dict[str, str]:
    """The columns that have a narrower type without the people who are in no class, and that type."""
    names = found_types.typed_by_values(run.spec, SourceFacts.from_json(people.facts))
    if not names or (grouping.class_of_cell >= 0).all():
        return {}
    released = run.engine.classes_of_people(people.folder / DATA, cells, grouping.class_of_cell, *names, distinct=True)
    types = found_types.narrower(names, released)
    return {name: found_types.STORAGE[kind] for name, kind in types.items()}


def _bins_of_released(run: Run, people: Stage, cells: Cells, grouping: Grouping) -> dict[str, Domain]:
    """The columns that were put into bins, whose ends and middles are those of the people who are in a class."""
    binned = [domain for domain in cells.domains if domain.binned]
    if not binned or (grouping.class_of_cell >= 0).all():
        return {}
    names = [domain.name for domain in binned]
    rows = run.engine.classes_of_people(people.folder / DATA, cells, grouping.class_of_cell, *names, PEOPLE_COUNT)
    return binning.around(binned, rows)


def _associations(run: Run, people: Stage, cells: Cells, grouping: Grouping) -> dict[str, Any]:
    """Associations of the quasi-identifiers, with each other, the target and sensitive columns, before and after."""
    kept = list(dict.fromkeys([run.spec.target, *run.spec.with_role(Role.SENSITIVE)]))
    counted = run.engine.sensitive_of_cells(people.folder / DATA, cells, kept)
    return associations(
        cells, grouping.class_of_cell, grouping.summaries, grouping.sizes, statistics_of(counted).sensitive
    )


def _weighted_risk(
    run: Run, people: Stage, cells: Cells, grouping: Grouping, released_class: IntArray
) -> dict[str, Any] | None:
    """The re-identification risk in the population, for a sample with weights; None for a table without weights.

    Where a part of the source was drawn (`sample`, control people held out), each weight stands for the others as well.
    """
    weight = run.spec.sampling_weight
    if weight is None:
        return None
    counted = run.engine.sensitive_of_cells(people.folder / DATA, cells, [weight]).sensitive[weight]
    class_of = grouping.class_of_cell[counted["class"].to_numpy()]
    facts = people.facts
    drawn = facts["rows"] / (facts.get("source_rows", facts["rows"]) + facts["held_out"])
    stood_for = counted["value"].to_numpy(dtype=np.float64) * counted["count"].to_numpy() / drawn
    alike = released_class[class_of[class_of >= 0]]
    sizes, weights = np.zeros(released_class.max() + 1, dtype=np.int64), np.zeros(released_class.max() + 1)
    np.add.at(sizes, released_class, grouping.sizes)
    np.add.at(weights, alike, stood_for[class_of >= 0])  # in the order of the values, which is the same on all machines
    return dataclasses.asdict(weighted_risk(sizes, weights))


def _bounds(summary: Summary) -> list[Any] | None:
    """The smallest and the largest number of the classes, for the check that no released number is outside."""
    if not isinstance(summary, OrderedSummary):
        return None
    low, high, representative = (
        values[is_named]
        for values, is_named in (
            (summary.low, (summary.known > 0) & ~summary.open_low),
            (summary.high, (summary.known > 0) & ~summary.open_high),
            (summary.representative, ~summary.withheld),
        )
    )
    named = np.r_[low, high, representative]
    return [named.min().item(), named.max().item()] if len(named) else [0, 0]
