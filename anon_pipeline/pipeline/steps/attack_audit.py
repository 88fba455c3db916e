"""The audit of the release: attacks by an adversary, before publication."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anon_pipeline.anonymize.grouping import stored_classes
from anon_pipeline.anonymize.policy import protected_columns, tree_of
from anon_pipeline.anonymize.recode import MICROSECONDS
from anon_pipeline.anonymize.repair import Repair
from anon_pipeline.anonymize.storage import load_cells
from anon_pipeline.arrays import IntArray
from anon_pipeline.attack.table_audit import Earlier
from anon_pipeline.audit.people import Audited, audit, bounds
from anon_pipeline.audit.regrouping import regrouped
from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.errors import percent
from anon_pipeline.home import write_file
from anon_pipeline.keys import Key
from anon_pipeline.learning.problem import Fitting
from anon_pipeline.pipeline import sequential_publication
from anon_pipeline.pipeline.checks.audit import AUDIT
from anon_pipeline.pipeline.left_out import cells_left_out, may_leave_out
from anon_pipeline.pipeline.metadata import Markdown, MetadataItem, picture
from anon_pipeline.pipeline.progress import log_progress
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.step import PEOPLE, Run, StepDef, StepResult, log
from anon_pipeline.plain_json import finite
from anon_pipeline.privacy.judge import statistics_of
from anon_pipeline.release import ledger, manifest
from anon_pipeline.release.publish import CLASSES, CONTROL, DATA
from anon_pipeline.report import kept_columns
from anon_pipeline.report.attack_pictures import picture as chart_of_attacks
from anon_pipeline.spec import ColumnType

#: The number of former releases that the attacker has, too.
EARLIER = 3


def attack(
    run: Run, folder: Path, people: Stage, predictions: Stage, anonymizer_tree: Stage, anonymized_table: Stage
) -> StepResult:
    """Attack a twin of the release, made without some control people, and write what every attack came to.

    The twin is of people who are released. Its members and its control people together are everybody of whom it is
    made, so that what is counted of both adds up to what the source counts, and less the release to what those have
    who are left out of it. (Where people are held out, the twin is the release, and figures have noise.)
    """
    spec, engine = run.spec, run.engine
    stored = SourceFacts.from_json(people.facts)
    types = stored.types()
    held_out, left_out = None, None
    if spec.audit.control == "twin" and may_leave_out(spec):
        left_out = cells_left_out(predictions, anonymizer_tree)
    known = engine.sample(people.folder / DATA, spec, types, spec.audit.sample, left_out)
    if spec.audit.control == "held_out" and people.facts["held_out"]:  # of fewer than three people, nobody is
        held_out = engine.sample(people.folder / CONTROL, spec, types, spec.audit.sample)
    workers, regrouping = run.workers(len(known.hash)), _regrouping(run, people, predictions, anonymizer_tree)
    with workers.meanwhile(regrouped, *regrouping) if regrouping else nullcontext() as replayed:
        content = audit(
            Audited(spec, run.key, known, types),
            _earlier(run, stored),
            held_out,
            run.measuring_seed,
            Fitting(run.load_model, workers, log_progress(f"{spec.dataset}: attack_audit", "models")),
        )
        if replayed is not None:
            content["replayed"] = [replay_of_column.to_json() for replay_of_column in replayed()]
    if held_out is not None:
        sizes = np.sort(pd.read_parquet(anonymized_table.folder / CLASSES)["class_size"].to_numpy(np.int64))
        content["is_the_release"] = content.get("class_sizes") == manifest.class_sizes(sizes)
    content["bounds"] = [{**dataclasses.asdict(bound), "holds": bound.holds} for bound in bounds(spec, content)]
    write_file(folder / AUDIT, json.dumps(finite(content)))
    for sentence in kept_columns.sentences(content):
        log.warning("%s: %s", spec.dataset, sentence)
    if "skipped" in content:
        log.info("%s: no attack: %s", spec.dataset, content["skipped"])
    return StepResult(metadata=_metadata(content), metrics=_figures(content))


STEP = StepDef(
    "attack_audit",
    (PEOPLE, "predictions", "anonymizer_tree", "anonymized_table"),
    frozenset({"scikitlearn", "mlflow"}),
    attack,
)


def _regrouping(
    run: Run, people: Stage, predictions: Stage, anonymizer_tree: Stage
) -> tuple[Repair, IntArray, Key] | tuple[()]:
    """The inputs for grouping the release again; empty if no demand depends on sensitive values.

    With a demand on a population a class depends on the whole table, so that this is not measured.
    """
    spec = run.spec
    protected = protected_columns(spec)
    if not protected or spec.population is not None:
        return ()
    cells = load_cells(predictions.folder)
    counted = statistics_of(
        run.engine.sensitive_of_cells(people.folder / DATA, cells, protected), spec.answers, spec.categories
    )
    if spec.across_releases is not None:
        repair, released = sequential_publication.repair_of(run, people, anonymizer_tree, cells, counted)
    else:
        repair = tree_of(spec, run.key).repair_of(cells, counted)
        released = stored_classes(anonymizer_tree.folder, cells)
    return repair, released, run.key


def _earlier(run: Run, stored: SourceFacts) -> list[Earlier]:
    """The newest former releases that have the same columns and are small enough to be attacked as a whole."""
    spec, engine, types = run.spec, run.engine, stored.types()
    versions = [entry.version for entry in ledger.standing(run.home, spec.dataset)]
    former = []
    for version in versions[::-1][:EARLIER]:
        folder = run.home.releases / spec.dataset / version
        columns = engine.columns(folder / DATA) if (folder / DATA).exists() else {}
        if set(columns) == set(spec.released) and engine.rows(folder / DATA) <= spec.audit.sample:
            dates = any(types[name] is ColumnType.DATE for name in spec.quasi_identifiers)
            classes = None if dates else pd.read_parquet(folder / CLASSES)
            former.append(Earlier(in_units_of(stored, engine.frame(folder / DATA, types), columns), classes))
    return former


def in_units_of(stored: SourceFacts, frame: pd.DataFrame, columns: Mapping[str, str]) -> pd.DataFrame:
    """A frame of a release whose dates count as people's do: it may show days where these have times, and the reverse.

    Parameters
    ----------
    columns : the types of the release's columns
    """
    changed = {}
    for column in stored.columns:
        shown = columns.get(column.name, "VARCHAR")  # a range is a text
        if column.type is ColumnType.DATE and shown != "VARCHAR" and (shown == "DATE") != (column.storage == "DATE"):
            days = frame[column.name]
            changed[column.name] = days * MICROSECONDS[0] if shown == "DATE" else days // MICROSECONDS[0]
    return frame.assign(**changed)


def _figures(content: dict[str, Any]) -> dict[str, Any]:
    """Metrics for MLflow: the leak of every attack, and the AUC of every membership attack on a model."""
    figures = {
        _metric(finding["name"]): finding["leak"]["leak"]
        for finding in content["findings"]
        if finding["leak"] is not None
    }
    for whom in ("models", "guide"):
        for finding in content.get(whom, {}).get("membership", []):
            figures[_plain(f"membership_auc_{finding['model']}_{finding['attack']}")] = finding["auc"]
    for replay_of_column in content.get("replayed", []):
        figures |= {
            f"replayed_{name}__{replay_of_column['column']}": replay_of_column[name]
            for name in ("certain", "undecided")
        }
    return figures


def _metric(attack: str) -> str:
    """The name of an attack's metric: the words of the attack, followed by the name of its column, if any."""
    words, colon, column = attack.partition(": ")
    return f"attack_{_plain(words)}" + (f"__{column}" if colon else "")


def _plain(words: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in words)


def _metadata(content: dict[str, Any]) -> dict[str, MetadataItem]:
    rows = ["| attack | on people in it | on others | leak |", "|---|---|---|---|"]
    for finding in content["findings"]:
        others = "-" if finding["control"] is None else percent(finding["control"]["rate"])
        leak = "-" if finding["leak"] is None else f"{percent(finding['leak']['leak'])} ({finding['verdict']})"
        rows.append(f"| {finding['name']} | {percent(finding['attack']['rate'])} | {others} | {leak} |")
    metadata: dict[str, MetadataItem] = {"attacks": Markdown("\n".join(rows))}
    if content["findings"]:
        metadata["picture"] = picture("attacks with controls", chart_of_attacks(content))
    if "skipped" in content:
        metadata["skipped"] = content["skipped"]
    return metadata
