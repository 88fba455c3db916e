"""The decision tree that groups people into classes of at least k, alike in quasi-identifiers and in predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from anon_pipeline.anonymize.classes import counting_withheld
from anon_pipeline.anonymize.grouping import TREE, Grouping
from anon_pipeline.anonymize.policy import mean_loss, protected_columns, tree_of
from anon_pipeline.anonymize.storage import load_cells
from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.errors import number_of
from anon_pipeline.pipeline import sequential_publication
from anon_pipeline.pipeline.pages import class_size_metadata
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import PEOPLE, Run, StepDef, StepResult, log
from anon_pipeline.privacy.judge import statistics_of
from anon_pipeline.release import manifest
from anon_pipeline.release.publish import DATA
from anon_pipeline.sequential.release_history import ROUTING


def group(run: Run, folder: Path, people: Stage, predictions: Stage) -> StepResult:
    """Write the tree and the class of every cell; where people are followed, of the last release's tree if it does."""
    spec, engine = run.spec, run.engine
    cells = load_cells(predictions.folder)
    types = SourceFacts.from_json(people.facts).types()
    counted = engine.sensitive_of_cells(people.folder / DATA, cells, protected_columns(spec))
    protected = statistics_of(counted, spec.answers, spec.categories)
    facts: dict[str, Any] = {}
    if spec.across_releases is None:
        population_table = None if spec.population is None else engine.population_table(spec, types, spec.population)
        workers = run.workers(cells.n)
        tree = tree_of(spec, run.key)
        grouping = Grouping.of_fitted(tree, tree.fit_apply_cells(cells, protected, population_table, workers))
        tree.save(folder / TREE)
        grouping.save_classes(folder)
    else:
        sequential = sequential_publication.group(run, people, cells, protected)
        sequential.routing.save(folder / ROUTING)
        grouping = sequential.grouping
        grouping.save(folder)
        facts |= {"kept": sequential.kept, "lost": sequential.lost, "lost_otherwise": sequential.lost_otherwise}
    lost = counting_withheld(grouping.information_loss, cells, int(people.facts.get("withheld", 0)))
    facts |= {"classes": len(grouping.sizes), "information_loss": mean_loss(lost)}
    log.info("%s: %s", spec.dataset, number_of(facts["classes"], "class", "classes"))
    sizes = class_size_metadata(manifest.class_sizes(grouping.sizes))
    return StepResult(facts, metadata={**sizes, "information_loss": facts["information_loss"]}, metrics=facts)


STEP = StepDef("anonymizer_tree", (PEOPLE, "predictions"), frozenset({"scikitlearn"}), group)
