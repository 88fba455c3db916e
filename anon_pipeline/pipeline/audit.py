"""The asset that attacks a release before it leaves, and the blocking checks of the bounds that a spec sets."""

import base64
import dataclasses
import json
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from anon_pipeline.anonymize.grouping import Grouping
from anon_pipeline.anonymize.policy import protected_columns, tree_of
from anon_pipeline.anonymize.storage import load_cells
from anon_pipeline.attack.table_audit import Earlier
from anon_pipeline.audit.people import Bound, audit, bounds
from anon_pipeline.audit.regrouping import regrouped
from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.home import write_file
from anon_pipeline.keys import measuring_seed
from anon_pipeline.pipeline.checks import keep_answers, result_of
from anon_pipeline.pipeline.expectations import Question, ask
from anon_pipeline.pipeline.following import people_of
from anon_pipeline.pipeline.runtime import Runtime, log
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.technical_names import owners, technical
from anon_pipeline.plain_json import finite
from anon_pipeline.privacy.judge import statistics_of
from anon_pipeline.release import ledger, manifest
from anon_pipeline.release.publish import CLASSES, CONTROL, DATA
from anon_pipeline.report.attacks import picture
from anon_pipeline.spec import ColumnType, ReleaseSpec

#: Former releases that the attacker has, too.
EARLIER = 3


def bound_names(spec: ReleaseSpec) -> list[str]:
    """The blocking checks on the audit: one per bound of the spec."""
    return [one.name for one in bounds(spec, {"findings": []})]


def build_audit(spec: ReleaseSpec) -> list[dg.AssetsDefinition]:
    """The asset `attack_audit`, unless the spec switches it off."""
    if not spec.audit.enabled:
        return []

    @dg.asset(
        key_prefix=spec.dataset,
        group_name=spec.dataset,
        owners=owners(spec.owner),
        code_version=manifest.code_hash()[:12],
        pool=spec.dataset,
        deps=[dg.AssetKey([spec.dataset, people_of(spec)]), dg.AssetKey([spec.dataset, "anonymized_table"])],
        kinds={"scikitlearn", "mlflow"},
        check_specs=[
            dg.AssetCheckSpec(
                technical(one.name),
                asset=[spec.dataset, "attack_audit"],
                blocking=True,
                description=f"By attack: {one.demand}.",
            )
            for one in bounds(spec, {"findings": []})
        ],
        description="What an adversary makes of it: a twin of the release, made without some control people, is "
        "attacked on people who are in it and on those who are not; so are models trained on people and on releases.",
    )
    def attack_audit(context: dg.AssetExecutionContext, runtime: Runtime) -> dg.MaterializeResult:
        with runtime.step(context, spec, "attack_audit") as noted:
            stages, engine = runtime.stages(spec), runtime.engine(spec)
            raw = stages.load(people_of(spec))
            candidate = stages.load("anonymized_table", {"raw_data": raw})
            types = SourceFacts.from_json(raw.facts).types()
            people = engine.sample(raw.folder / DATA, spec, types, spec.audit.sample)
            held_out = None
            if spec.audit.control == "held_out":
                held_out = engine.sample(raw.folder / CONTROL, spec, types, spec.audit.sample)
            content = audit(
                spec,
                runtime.key(spec),
                people,
                types,
                runtime.tracking().load_model,
                _earlier(spec, runtime, types),
                held_out,
                measuring_seed(spec, runtime.place()),
            )
            if held_out is not None:
                sizes = np.sort(pd.read_parquet(candidate.folder / CLASSES)["class_size"].to_numpy(np.int64))
                content["is_the_release"] = content.get("class_sizes") == manifest.class_sizes(sizes)
            replayed = _replayed(spec, runtime, raw)
            if replayed is not None:
                content["replayed"] = replayed
            found = bounds(spec, content)
            content["bounds"] = [{**dataclasses.asdict(one), "holds": one.holds} for one in found]
            with stages.store("attack_audit", {"raw_data": raw, "anonymized_table": candidate}, {}) as folder:
                write_file(folder / "audit.json", json.dumps(finite(content)))
            answers = ask([_question(one) for one in found]) if found else []
            audited = stages.load("attack_audit", {"raw_data": raw, "anonymized_table": candidate})
            keep_answers(runtime, spec, "audit_checks", {"attack_audit": audited}, answers)
            noted.update(_figures(content))
            if "skipped" in content:
                log.info("%s: no attack: %s", spec.dataset, content["skipped"])
        key = dg.AssetKey([spec.dataset, "attack_audit"])
        return dg.MaterializeResult(
            metadata=_metadata(content), check_results=[result_of(answer, key) for answer in answers]
        )

    return [attack_audit]


def _replayed(spec: ReleaseSpec, runtime: Runtime, raw: Stage) -> list[dict[str, Any]] | None:
    """What grouping the people of the release again tells of them; None where no demand looks at sensitive values.

    Where people are followed, or a demand is about a population, a class depends on the whole table: not measured.
    """
    protected = protected_columns(spec)
    if not protected or spec.across_releases is not None or spec.population is not None:
        return None
    cells_stage = runtime.stages(spec).load("predictions", {"raw_data": raw})
    tree_stage = runtime.stages(spec).load("anonymizer_tree", {"predictions": cells_stage})
    cells = load_cells(cells_stage.folder)
    people = statistics_of(
        runtime.engine(spec).sensitive_of_cells(raw.folder / DATA, cells.domains, cells, protected), spec.answers
    )
    repair = tree_of(spec, runtime.key(spec)).repair_of(cells, people)
    released = Grouping.load(tree_stage.folder, cells).class_of_cell
    return [one.to_json() for one in regrouped(repair, released, runtime.key(spec))]


def _earlier(spec: ReleaseSpec, runtime: Runtime, types: dict[str, ColumnType]) -> list[Earlier]:
    """The newest former releases that show the same columns and are small enough to be attacked whole."""
    home, engine = runtime.place(), runtime.engine(spec)
    versions = [entry.version for entry in ledger.standing(home, spec.dataset)]
    found = []
    for version in versions[::-1][:EARLIER]:
        folder = home.releases / spec.dataset / version
        shown = engine.columns(folder / DATA) if (folder / DATA).exists() else {}
        if set(shown) == set(spec.released) and engine.rows(folder / DATA) <= spec.audit.sample:
            dates = any(types[name] is ColumnType.DATE for name in spec.quasi_identifiers)
            classes = None if dates else pd.read_parquet(folder / CLASSES)
            found.append(Earlier(engine.frame(folder / DATA, types), classes))
    return found


def _question(bound: Bound) -> Question:
    return Question(
        bound.name,
        bound.demand,
        "ExpectColumnMinToBeBetween",
        {"column": "bound_holds", "min_value": 1},
        pd.DataFrame({"bound_holds": [int(bound.holds)]}),
        measured="not measured" if bound.measured is None else bound.measured,
        remedy="raise k, demand t_closeness or beta_likeness of the column, or keep fewer columns as they are",
    )


def _figures(content: dict[str, Any]) -> dict[str, Any]:
    """What MLflow keeps: the leak of every attack, and the AUC of every membership attack on a model."""
    figures = {_metric(one["name"]): one["leak"]["leak"] for one in content["findings"] if one["leak"] is not None}
    for whom in ("models", "guide"):
        for one in content.get(whom, {}).get("membership", []):
            figures[_plain(f"membership_auc_{one['model']}_{one['attack']}")] = one["auc"]
    for one in content.get("replayed", []):
        figures |= {f"replayed_{name}__{one['column']}": one[name] for name in ("certain", "undecided")}
    return figures


def _metric(attack: str) -> str:
    """The metric of an attack: in its words, before the name of a column that it may be on."""
    words, colon, column = attack.partition(": ")
    return f"attack_{_plain(words)}" + (f"__{column}" if colon else "")


def _plain(words: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in words)


def _metadata(content: dict[str, Any]) -> dict[str, Any]:
    rows = ["| attack | on people in it | on others | leak |", "|---|---|---|---|"]
    for one in content["findings"]:
        others = "-" if one["control"] is None else f"{one['control']['rate']:.1%}"
        leak = "-" if one["leak"] is None else f"{one['leak']['leak']:.1%} ({one['verdict']})"
        rows.append(f"| {one['name']} | {one['attack']['rate']:.1%} | {others} | {leak} |")
    metadata: dict[str, Any] = {"attacks": dg.MetadataValue.md("\n".join(rows))}
    if content["findings"]:
        drawn = base64.b64encode(picture(content).encode()).decode()
        metadata["picture"] = dg.MetadataValue.md(f"![attacks with controls](data:image/svg+xml;base64,{drawn})")
    if "skipped" in content:
        metadata["skipped"] = content["skipped"]
    return metadata
