"""The assets of a dataset, in the order in which a person's row passes through them from source to release."""

import dataclasses
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from anon_pipeline.anonymize.grouping import TREE, Grouping
from anon_pipeline.anonymize.policy import anonymize_part, mean_loss, protected_columns, tree_of
from anon_pipeline.anonymize.recode import OrderedSummary, Summary, shown_table
from anon_pipeline.anonymize.recoding_statistics import shown_columns
from anon_pipeline.anonymize.storage import load_cells, save_cells
from anon_pipeline.audit.people import control_people
from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.keys import measuring_seed
from anon_pipeline.learning.cells import Sample, folds_of_sample, guided_cells
from anon_pipeline.learning.guide import name_of, task_of
from anon_pipeline.learning.targets import train_guide
from anon_pipeline.learning.utility import measure_utility
from anon_pipeline.pipeline import following
from anon_pipeline.pipeline.aggregation import build_aggregation
from anon_pipeline.pipeline.audit import bound_names, build_audit
from anon_pipeline.pipeline.checks import RAW_CHECKS, candidate_check_names, require_answers
from anon_pipeline.pipeline.documentation import described
from anon_pipeline.pipeline.following import build_following, people_of, people_stage
from anon_pipeline.pipeline.freshness import freshness
from anon_pipeline.pipeline.impossible import require_possible
from anon_pipeline.pipeline.maps import released_maps
from anon_pipeline.pipeline.masking import build_masking, secrets_of
from anon_pipeline.pipeline.progress import told
from anon_pipeline.pipeline.release_page import picture, release_page
from anon_pipeline.pipeline.runtime import Runtime, log
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.pipeline.technical_names import owners
from anon_pipeline.pipeline.utility_figures import utility_figures
from anon_pipeline.plain_json import finite
from anon_pipeline.privacy.judge import statistics_of
from anon_pipeline.privacy.measures import describe
from anon_pipeline.privacy.risk import reidentification_risk
from anon_pipeline.privacy.statistics import ClassStatistics
from anon_pipeline.privacy.uniqueness import population_uniqueness
from anon_pipeline.release import fineness, manifest
from anon_pipeline.release.associations import associations
from anon_pipeline.release.marginals import marginals
from anon_pipeline.release.promises import require_an_answer
from anon_pipeline.release.publish import CLASSES, CONTROL, DATA, REPORT, publish
from anon_pipeline.report.charts import class_size_chart
from anon_pipeline.sequential.release_history import MEMBERS, ROUTING, remember
from anon_pipeline.sequential.republication import without_history
from anon_pipeline.spec import ColumnType, ImportedModel, ReleaseSpec, Role
from anon_pipeline.spec.permission import require_code
from anon_pipeline.tables import Cells, scale_of

IN_SAMPLE = (
    "in_sample guides under no key, so who knows all quasi-identifiers can train the model again for every value of "
    "the target and see which gives the release; use it for comparisons, and out_of_fold for what is published"
)
ASSETS = (
    "raw_data",
    "trained_model",
    "predictions",
    "anonymizer_tree",
    "anonymized_table",
    "utility",
    "attack_audit",
    "release",
)


def build_assets(spec: ReleaseSpec) -> list[dg.AssetsDefinition]:
    """The assets of a dataset, under a key that starts with its name."""
    common: dict[str, Any] = {
        "key_prefix": spec.dataset,
        "group_name": spec.dataset,
        "owners": owners(spec.owner),
        "code_version": manifest.code_hash()[:12],
        "pool": spec.dataset,  # steps of one dataset go one after the other, whoever starts them
    }

    ungrouped = people_of(spec)

    def key(name: str) -> dg.AssetKey:
        return dg.AssetKey([spec.dataset, name])

    @dg.asset(
        **common,
        kinds={"duckdb", "parquet"},
        description=described("raw_data", spec),
    )
    def raw_data(context: dg.AssetExecutionContext, runtime: Runtime) -> dg.MaterializeResult:
        with runtime.step(context, spec, "raw_data") as noted:
            facts: dict[str, Any] = {}
            secrets_of(spec)  # a key that is missing, or code that is not allowed, is told before anything is read
            if isinstance(spec.guide.model, ImportedModel):
                require_code("guide.model.import", spec.guide.model.import_)
            if not spec.source_path.is_relative_to(spec.folder):
                log.info("%s: the source lies outside of the spec's folder: %s", spec.dataset, spec.source_path)
            require_an_answer(runtime.place(), spec)
            with runtime.stages(spec).store("raw_data", {}, facts) as folder:
                stored = runtime.engine(spec).store_source(spec, folder / DATA)
                read, held_out = stored.content_hash, 0
                if spec.audit.enabled and spec.audit.control == "held_out":
                    everybody, stored = stored, _hold_out(spec, runtime, folder, stored.types())
                    held_out = everybody.rows - stored.rows
                facts |= {**stored.to_json(), "held_out": held_out, "read": read}
                if not spec.masks:
                    require_possible(spec, runtime.engine(spec), folder / DATA, stored.types())
            noted["people"] = stored.rows
            log.info("%s: %s people, %s columns", spec.dataset, f"{stored.rows:,}", len(stored.columns))
        return dg.MaterializeResult(
            data_version=dg.DataVersion(stored.content_hash),
            metadata={
                "dagster/row_count": stored.rows,
                "dagster/column_schema": dg.TableSchema(
                    [dg.TableColumn(one.name, one.storage, _role(spec, one.name)) for one in stored.columns]
                ),
                "source": spec.source.path,
                "content_hash": stored.content_hash,
            },
        )

    if spec.aggregates:
        return [raw_data, *build_masking(spec, common), *build_aggregation(spec, common)]

    @dg.asset(
        **common,
        deps=[key(ungrouped)],
        kinds={"scikitlearn"},
        description=described("trained_model", spec),
    )
    def trained_model(context: dg.AssetExecutionContext, runtime: Runtime) -> dg.MaterializeResult:
        with runtime.step(context, spec, "trained_model") as noted:
            stages = runtime.stages(spec)
            raw = stages.load(ungrouped)
            types = SourceFacts.from_json(raw.facts).types()
            people = runtime.engine(spec).sample(raw.folder / DATA, spec, types, spec.guide.sample)
            sample, guide = folds_of_sample(people.hash, spec.guide, runtime.key(spec))
            if spec.guide.predictions == "in_sample":
                log.warning("%s: guide.predictions: %s", spec.dataset, IN_SAMPLE)
            trained = train_guide(
                people.features,
                people.target,
                guide,
                task_of(types[spec.target]),
                {name: types[name] for name in spec.features},
                spec.seed,
                sample.fold,
                runtime.tracking().load_model,
            )
            said = trained.guidance(people.features, sample.fold)
            facts: dict[str, Any] = {
                "model": name_of(spec.guide.model),
                "people": len(people.target),
                "scale": scale_of(said),
            }
            with stages.store("trained_model", {"raw_data": raw}, facts) as folder:
                (folder / "model.pickle").write_bytes(pickle.dumps(trained))
                np.savez(folder / "sample.npz", hash=sample.hash, fold=sample.fold)
            noted.update(facts)
        return dg.MaterializeResult(metadata={**facts, "guidance": f"{spec.guide.on}, {spec.guide.predictions}"})

    @dg.asset(
        **common,
        deps=[key(ungrouped), key("trained_model")],
        kinds={"scikitlearn", "duckdb"},
        description=described("predictions", spec),
    )
    def predictions(context: dg.AssetExecutionContext, runtime: Runtime) -> dg.MaterializeResult:
        with runtime.step(context, spec, "predictions") as noted:
            stages = runtime.stages(spec)
            raw = stages.load(ungrouped)
            model = stages.load("trained_model", {"raw_data": raw})
            types = SourceFacts.from_json(raw.facts).types()
            trained = pickle.loads((model.folder / "model.pickle").read_bytes())  # our own file, in our own zone
            with np.load(model.folder / "sample.npz") as arrays:
                sample = Sample(arrays["hash"], arrays["fold"])
            cells = guided_cells(
                runtime.engine(spec),
                raw.folder / DATA,
                spec,
                types,
                trained,
                sample,
                model.facts["scale"],
                told(f"{spec.dataset}: predictions", "people"),
                spec.across_releases is not None,
            )
            coarsened = {domain.name: len(domain.values) for domain in cells.domains if domain.binned}
            facts = {"people": cells.n, "cells": len(cells.counts), "coarsened": coarsened}
            with stages.store("predictions", {"raw_data": raw, "trained_model": model}, facts) as folder:
                save_cells(cells, folder)
            noted.update(people=cells.n, cells=len(cells.counts))
            log.info("%s: %s distinct people", spec.dataset, f"{len(cells.counts):,}")
            for column, bins in coarsened.items():
                log.info("%s: %s is coarsened into %s bins: too many distinct people", spec.dataset, column, bins)
        return dg.MaterializeResult(
            metadata={"dagster/row_count": cells.n, "cells": len(cells.counts), "coarsened": coarsened}
        )

    @dg.asset(
        **common,
        deps=[key(ungrouped), key("predictions")],
        kinds={"scikitlearn"},
        description=described("anonymizer_tree", spec),
    )
    def anonymizer_tree(context: dg.AssetExecutionContext, runtime: Runtime) -> dg.MaterializeResult:
        with runtime.step(context, spec, "anonymizer_tree") as noted:
            stages = runtime.stages(spec)
            raw = stages.load(ungrouped)
            cells_stage = stages.load("predictions", {"raw_data": raw})
            cells = load_cells(cells_stage.folder)
            protected = protected_columns(spec)
            types = SourceFacts.from_json(raw.facts).types()
            engine = runtime.engine(spec)
            people = statistics_of(
                engine.sensitive_of_cells(raw.folder / DATA, cells.domains, cells, protected), spec.answers
            )
            facts: dict[str, Any] = {}
            with stages.store("anonymizer_tree", {"predictions": cells_stage}, facts) as folder:
                if spec.across_releases is None:
                    census = None if spec.population is None else engine.census(spec, types, spec.population)
                    tree = tree_of(spec, runtime.key(spec)).fit_cells(cells, people, census)
                    tree.save(folder / TREE)
                    grouping = Grouping.of_tree(tree, cells)
                else:
                    found = following.group(spec, runtime, raw, cells, people)
                    found.routing.save(folder / ROUTING)
                    grouping = found.grouping
                    grouping.save(folder)
                    facts |= {"kept": found.kept, "lost": found.lost, "lost_otherwise": found.lost_otherwise}
                facts |= {"classes": len(grouping.sizes), "information_loss": mean_loss(grouping.information_loss)}
            noted.update(facts)
            log.info("%s: %s classes", spec.dataset, f"{facts['classes']:,}")
        return dg.MaterializeResult(
            metadata={
                **_size_metadata(manifest.class_sizes(grouping.sizes)),
                "information_loss": facts["information_loss"],
            }
        )

    @dg.asset(
        **common,
        deps=[key(ungrouped), key("predictions"), key("anonymizer_tree")],
        kinds={"duckdb", "parquet"},
        description=described("anonymized_table", spec),
    )
    def anonymized_table(context: dg.AssetExecutionContext, runtime: Runtime) -> dg.MaterializeResult:
        with runtime.step(context, spec, "anonymized_table") as noted:
            stages = runtime.stages(spec)
            raw = stages.load(ungrouped)
            cells_stage = stages.load("predictions", {"raw_data": raw})
            tree_stage = stages.load("anonymizer_tree", {"predictions": cells_stage})
            cells = load_cells(cells_stage.folder)
            grouping = Grouping.load(tree_stage.folder, cells).in_order()
            suppressed = int(cells.counts[grouping.class_of_cell < 0].sum()) - grouping.waiting
            facts: dict[str, Any] = {
                "suppressed": suppressed,
                "waiting": grouping.waiting,
                "released": cells.n - suppressed - grouping.waiting,
                "bounds": {summary.domain.name: _bounds(summary) for summary in grouping.summaries},
                "information_loss": grouping.information_loss,
                "columns": shown_columns(
                    grouping.summaries, grouping.sizes, {name: one.unit for name, one in spec.columns.items()}
                ),
                "marginals": marginals(grouping.summaries, grouping.sizes, spec.k),
                "associations": _associations(spec, runtime, raw, cells, grouping),
            }
            made_from = {"raw_data": raw, "predictions": cells_stage, "anonymizer_tree": tree_stage}
            with stages.store("anonymized_table", made_from, facts) as folder:
                shown, engine = shown_table(grouping.summaries, spec.recode.form), runtime.engine(spec)
                engine.write_release(
                    raw.folder / DATA, cells.domains, cells, grouping.class_of_cell, shown, spec.released, folder / DATA
                )
                grouping.table.to_parquet(folder / CLASSES, index=False)
                if spec.across_releases is not None:
                    following.write_members(engine, runtime, spec, raw, cells, grouping, folder)
                if spec.recode.form == "range":
                    shown.to_pandas().to_parquet(folder / "ranges.parquet", index=False)
            columns = runtime.engine(spec).columns(stages.load("anonymized_table").folder / DATA)
            noted.update(released=facts["released"], suppressed=suppressed)
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": facts["released"],
                "dagster/column_schema": _schema(spec, columns),
                "dagster/column_lineage": _lineage(spec, key(ungrouped)),
                "suppressed": suppressed,
                **_size_metadata(manifest.class_sizes(grouping.sizes)),
            }
        )

    @dg.asset(
        **common,
        deps=[key(ungrouped), key("anonymized_table")],
        kinds={"scikitlearn", "mlflow"},
        description=described("utility", spec),
    )
    def utility(context: dg.AssetExecutionContext, runtime: Runtime) -> dg.MaterializeResult:
        with runtime.step(context, spec, "utility") as noted:
            stages = runtime.stages(spec)
            raw = stages.load(ungrouped)
            stored = SourceFacts.from_json(raw.facts)
            types = stored.types()
            people = runtime.engine(spec).sample(raw.folder / DATA, spec, types, spec.utility.sample)
            frame = pd.concat([people.features, people.target], axis=1)
            seed = measuring_seed(spec, runtime.place())
            measured = measure_utility(
                frame,
                spec.target,
                {name: types[name] for name in spec.features},
                task_of(types[spec.target]),
                spec.guide,
                spec.utility.folds,
                seed,
                lambda part, guidance: anonymize_part(spec, runtime.key(spec), part, guidance),
                runtime.tracking().load_model,
                told(f"{spec.dataset}: utility", "folds"),
                spec.utility.models,
                {one.name: one.storage for one in stored.columns if one.name in spec.quasi_identifiers},
                spec.k,
            )
            facts = measured.as_dict()
            if len(spec.guide.targets) > 1:
                facts["targets"] = _other_targets(spec, runtime, frame, types, seed)
            with stages.store("utility", {"raw_data": raw}, facts):
                pass
            noted.update(utility_figures(measured))
        return dg.MaterializeResult(metadata=_utility_metadata(facts))

    @dg.asset(
        **common,
        deps=[
            key(name)
            for name in (*dict.fromkeys(["raw_data", ungrouped]), *ASSETS[1:-1])
            if name != "trained_model" and (name != "attack_audit" or spec.audit.enabled)
        ],
        kinds={"parquet", "mlflow"},
        description=described("release", spec),
        freshness_policy=freshness(spec),
    )
    def release(context: dg.AssetExecutionContext, runtime: Runtime) -> dg.MaterializeResult:
        with runtime.step(context, spec, "release") as noted:
            stages, engine = runtime.stages(spec), runtime.engine(spec)
            raw = people_stage(stages, spec)
            cells_stage = stages.load("predictions", {"raw_data": raw})
            tree_stage = stages.load("anonymizer_tree", {"predictions": cells_stage})
            candidate = stages.load("anonymized_table", {"raw_data": raw, "anonymizer_tree": tree_stage})
            measured = stages.load("utility", {"raw_data": raw})
            unmasked = stages.load("raw_data")
            answers = [
                *require_answers(runtime, spec, "source_checks", {"raw_data": unmasked}, list(RAW_CHECKS)),
                *require_answers(
                    runtime, spec, "candidate_checks", {"anonymized_table": candidate}, candidate_check_names(spec)
                ),
            ]
            attacks = None
            if spec.audit.enabled:
                audited = stages.load("attack_audit", {"raw_data": raw, "anonymized_table": candidate})
                answers += require_answers(runtime, spec, "audit_checks", {"attack_audit": audited}, bound_names(spec))
                attacks = json.loads((audited.folder / "audit.json").read_text())
            source = SourceFacts.from_json(unmasked.facts)
            released = engine.classes(candidate.folder / DATA, spec.quasi_identifiers, spec.with_role(Role.SENSITIVE))
            classes = statistics_of(released, spec.answers)
            cells = load_cells(cells_stage.folder)
            alike = cells if spec.across_releases is None else without_history(cells)[0]
            people_before = ClassStatistics(sizes=alike.counts)
            risk_before, risk = (_risk(one, spec.sampling_fraction) for one in (people_before, classes))
            facts: dict[str, Any] = {
                "source": {
                    "rows": source.rows,
                    "content_hash": unmasked.facts["read"],
                    "columns": manifest.source_columns(spec, source),
                },
                "coarsened": cells_stage.facts["coarsened"],
                "rows": {
                    "source": source.rows + raw.facts["held_out"],
                    "sampled_out": source.rows - SourceFacts.from_json(raw.facts).rows,
                    "held_out": raw.facts["held_out"],
                    "released": candidate.facts["released"],
                    "suppressed": candidate.facts["suppressed"],
                    "waiting": candidate.facts["waiting"],
                },
                "across_releases": None
                if spec.across_releases is None
                else following.told(spec, runtime, raw, tree_stage, candidate),
                "measured": {
                    "class_sizes": manifest.class_sizes(released.sizes),
                    "columns": candidate.facts["columns"],
                    "marginals": candidate.facts["marginals"],
                    "associations": fineness.associations(candidate.facts["associations"], cells.n),
                    "information_loss": fineness.rounded(
                        {
                            "columns": candidate.facts["information_loss"],
                            "mean": mean_loss(candidate.facts["information_loss"]),
                        }
                    ),
                    "sensitive": describe(classes),
                    "risk": {"before": fineness.risk(risk_before, people_before.n), "after": risk},
                },
                "utility": fineness.utility(measured.facts),
                "audit": fineness.rounded(attacks),
                "masking": fineness.masking(raw.facts.get("masking"), source.rows),
                "maps": released_maps(spec, candidate.folder / DATA),
                "checks": answers,
                "runs": {"dagster": context.run.run_id, "mlflow": noted["mlflow_run"]},
            }
            published = publish(
                runtime.place(),
                spec,
                engine,
                candidate.folder,
                finite(facts),
                _remember(spec, runtime, tree_stage, candidate),
            )
            noted.update(version=published.version, smallest_class=int(released.sizes.min()), new=published.new)
            if facts["across_releases"] is not None:
                across = facts["across_releases"]["measured"]
                noted.update({f"across_releases_{name}": across[name] for name in ("fewest", "below", "left_below")})
            for when, one in (("before", risk_before), ("after", risk)):
                noted[f"prosecutor_risk_max_{when}"] = one["prosecutor"]["max"]
                noted[f"prosecutor_risk_mean_{when}"] = one["prosecutor"]["mean"]
            for column, measures in facts["measured"]["sensitive"].items():
                noted[f"homogeneity_{column}"] = measures["homogeneity"]
            state = "published" if published.new else "stands already, nothing new is published"
            log.info("%s: release %s %s", spec.dataset, published.version, state)
        return dg.MaterializeResult(
            data_version=dg.DataVersion(published.version),
            metadata={
                "version": published.version,
                "state": state,
                "folder": dg.MetadataValue.path(str(published.folder)),
                "report": f"{REPORT} in that folder",
                **release_page(published.manifest),
                "dagster/row_count": candidate.facts["released"],
                "dagster/column_schema": _schema(spec, engine.columns(published.folder / DATA)),
                "dagster/column_lineage": _lineage(spec, key("anonymized_table")),
                **_size_metadata(manifest.class_sizes(released.sizes)),
                **_utility_metadata(measured.facts),
            },
        )

    before = [
        raw_data,
        *build_masking(spec, common),
        *build_following(spec, common),
        trained_model,
        predictions,
        anonymizer_tree,
        anonymized_table,
    ]
    return [*before, utility, *build_audit(spec), release]


def _other_targets(
    spec: ReleaseSpec, runtime: Runtime, frame: pd.DataFrame, types: dict[str, ColumnType], seed: int
) -> dict[str, Any]:
    """The utility for each further target of the guide, under the same guidance."""
    measured = {}
    for name in spec.guide.targets[1:]:
        others = [one for one in spec.guide.targets if one != name]
        measured[name] = measure_utility(
            frame,
            name,
            {one: types[one] for one in [*spec.features, spec.target]},
            task_of(types[name]),
            spec.guide.model_copy(update={"targets": (name, *others)}),
            spec.utility.folds,
            seed,
            lambda part, guidance: anonymize_part(spec, runtime.key(spec), part, guidance),
            runtime.tracking().load_model,
            told(f"{spec.dataset}: utility for {name}", "folds"),
        ).as_dict()
    return measured


def _hold_out(spec: ReleaseSpec, runtime: Runtime, folder: Path, types: dict[str, ColumnType]) -> SourceFacts:
    """Keep the control people of the audit out of the release: they go into a file of their own."""
    engine = runtime.engine(spec)
    batches = engine.batches(folder / DATA, spec, types, ())
    hashes = np.concatenate([np.repeat(batch.hash, batch.people) for batch in batches])
    chosen = np.unique(hashes[control_people(hashes, spec, measuring_seed(spec, runtime.place()))])
    everybody = folder / "everybody.parquet"
    (folder / DATA).rename(everybody)
    engine.hold_out(everybody, spec, chosen, folder / DATA, folder / CONTROL)
    everybody.unlink()
    return engine.describe(folder / DATA, spec, types)


def _associations(spec: ReleaseSpec, runtime: Runtime, raw: Stage, cells: Cells, grouping: Grouping) -> dict[str, Any]:
    """How the quasi-identifiers hang together, and with the target and the sensitive columns, before and after."""
    kept = list(dict.fromkeys([spec.target, *spec.with_role(Role.SENSITIVE)]))
    counted = runtime.engine(spec).sensitive_of_cells(raw.folder / DATA, cells.domains, cells, kept)
    return associations(
        cells, grouping.class_of_cell, grouping.summaries, grouping.sizes, statistics_of(counted).sensitive
    )


def _remember(spec: ReleaseSpec, runtime: Runtime, tree: Stage, candidate: Stage) -> Callable[[str], None] | None:
    """What keeps the people and the tree of a release for the next one, where people are followed."""
    if spec.across_releases is None:
        return None

    def keep(version: str) -> None:
        following.require_company(spec, runtime, candidate)  # under the ledger's lock
        remember(runtime.place(), spec.dataset, version, candidate.folder / MEMBERS, tree.folder / ROUTING)

    return keep


def _bounds(summary: Summary) -> list[Any] | None:
    """The smallest and the largest number that classes name, for the check that no released number lies beyond."""
    if not isinstance(summary, OrderedSummary):
        return None
    low, high, shown = (
        values[told]
        for values, told in (
            (summary.low, (summary.known > 0) & ~summary.open_low),
            (summary.high, (summary.known > 0) & ~summary.open_high),
            (summary.representative, ~summary.withheld),
        )
    )
    named = np.r_[low, high, shown]
    return [named.min().item(), named.max().item()] if len(named) else [0, 0]


def _risk(classes: ClassStatistics, sampling_fraction: float | None) -> dict[str, Any]:
    """Re-identification risk as plain data, with estimates of the population's uniques where its size is known."""
    risk = dataclasses.asdict(reidentification_risk(classes))
    if sampling_fraction is not None:
        estimates = population_uniqueness(classes.sizes, sampling_fraction)
        risk["population_uniqueness"] = {name: dataclasses.asdict(one) for name, one in estimates.items()}
    return risk


def _schema(spec: ReleaseSpec, columns: dict[str, str]) -> dg.TableSchema:
    return dg.TableSchema([dg.TableColumn(name, columns[name], _role(spec, name)) for name in spec.released])


def _role(spec: ReleaseSpec, name: str) -> str:
    column = spec.columns[name]
    return f"{column.role}: {column.why}" if column.why else str(column.role)


def _lineage(spec: ReleaseSpec, upstream: dg.AssetKey) -> dg.TableColumnLineage:
    return dg.TableColumnLineage(
        {
            name: [dg.TableColumnDep(asset_key=upstream, column_name=source) for source in sources]
            for name, sources in manifest.lineage(spec).items()
        }
    )


def _size_metadata(sizes: dict[str, Any]) -> dict[str, Any]:
    people = sum(group["people"] for group in sizes["groups"])
    rows = ["| people in the class | share of all |", "|---|---|"]
    for group in sizes["groups"]:
        if group["people"]:
            share = group["people"] / people
            rows.append(f"| {group['size']} | {'█' * max(1, round(20 * share))} {share:.1%} |")
    return {
        "classes": sizes["classes"],
        "smallest_class": sizes["smallest"],
        "class_sizes": dg.MetadataValue.md("\n".join(rows)),  # short enough for Dagster to show it inline
        "class_sizes_picture": picture("people by the size of their class", class_size_chart(sizes["groups"])),
    }


def _utility_metadata(facts: dict[str, Any]) -> dict[str, Any]:
    rows = ["| score | before | after | difference (95 % interval) |", "|---|---|---|---|"]
    for metric, comparison in facts["metrics"].items():
        before, after, difference = (comparison[when] for when in ("before", "after", "difference"))
        if difference["mean"] is None or before["mean"] is None or after["mean"] is None:
            rows.append(f"| {metric} | not defined | not defined | not defined |")
            continue
        interval = "" if difference["low"] is None else f" ({difference['low']:+.4f} to {difference['high']:+.4f})"
        rows.append(f"| {metric} | {before['mean']:.4f} | {after['mean']:.4f} | {difference['mean']:+.4f}{interval} |")
    return {"scores": dg.MetadataValue.md("\n".join(rows)), "people_scored": facts["rows"]}
