"""A release of counts and means per group in place of people: the table, its blocking checks, its publication.

No model is trained, nobody is grouped by a tree, and nothing is attacked: there are no rows of people.
"""

import dataclasses
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from anon_pipeline.engine.base import Engine, SourceFacts
from anon_pipeline.errors import InputError
from anon_pipeline.keys import private_key
from anon_pipeline.masking.aggregation import PEOPLE, aggregate_of
from anon_pipeline.masking.execution import apply_steps
from anon_pipeline.masking.memory import require_memory, usable_memory
from anon_pipeline.pipeline.checks import keep_answers, require_answers, result_of, source_checks_of
from anon_pipeline.pipeline.documentation import described
from anon_pipeline.pipeline.expectations import Question, ask
from anon_pipeline.pipeline.freshness import freshness
from anon_pipeline.pipeline.masking import MASKED, RAW
from anon_pipeline.pipeline.release_page import release_page
from anon_pipeline.pipeline.runtime import Runtime, log
from anon_pipeline.pipeline.stages import Stage
from anon_pipeline.plain_json import finite
from anon_pipeline.privacy.group_table import compare_groups, group_columns, read_groups, threshold_of
from anon_pipeline.release import manifest
from anon_pipeline.release.publish import DATA, REPORT, publish
from anon_pipeline.report.groups import NOTE
from anon_pipeline.spec import ReleaseSpec

AGGREGATED, CHECKS = "aggregated_table", "candidate_checks"

#: Checks and what Dagster shows of them before they were first asked.
GROUP_CHECKS = {
    "k_anonymity": "Every group counts at least as many people as k and the threshold of the step demand.",
    "has_released_columns_only": "The candidate has the columns of the table of groups, and no other.",
    "has_every_group_once": "No group stands in two rows, and every count is a whole number.",
    "counts_the_people": "The count of every group is the number of its masked people.",
    "accounts_for_everybody": "People in groups that are shown, and in those that are left out, are all people.",
    "hides_groups_in_company": "What is left after subtracting is several groups with enough people together.",
    "shows_true_means": "Every mean is that of the group's masked people.",
    "shows_means_of_enough": "Every mean is one of as many known values as the threshold demands.",
    "shows_no_dominated_mean": "No few people make up most of a mean.",
}
#: What to do where the code has broken its own word.
FAULT = f"nothing was published; run {AGGREGATED} again, and if it fails again report a fault of this package"


def build_aggregation(spec: ReleaseSpec, common: dict[str, Any]) -> list[dg.AssetsDefinition]:
    """The assets that follow `masked_data` where a spec's last step is `aggregate`."""
    masked_key, candidate_key = dg.AssetKey([spec.dataset, MASKED]), dg.AssetKey([spec.dataset, AGGREGATED])
    step = aggregate_of(spec)

    @dg.asset(**common, name=AGGREGATED, deps=[masked_key], kinds={"parquet"}, description=described(AGGREGATED, spec))
    def aggregated_table(context: dg.AssetExecutionContext, runtime: Runtime) -> dg.MaterializeResult:
        with runtime.step(context, spec, AGGREGATED) as noted:
            stages, engine = runtime.stages(spec), runtime.engine(spec)
            masked = stages.load(MASKED, {RAW: stages.load(RAW)})
            types = SourceFacts.from_json(masked.facts).types()
            require_memory(int(masked.facts["rows"]), len(types), usable_memory(runtime.limit(spec)))
            people = engine.everybody(masked.folder / DATA).select(step.used)
            kinds = {name: types[name] for name in step.used}
            key = private_key(spec, runtime.place())
            groups, (report,) = apply_steps(people, kinds, {}, [step], spec.dataset, key)
            place = f"steps.{len(spec.steps) - 1}"
            if not len(groups):
                raise InputError(
                    f"{place}: every group counts fewer than {step.threshold} people or is needed to hide one that "
                    "does, so nothing is left to release; group by fewer or coarser columns"
                )
            facts = {"report": finite(dataclasses.asdict(dataclasses.replace(report, place=place)))}
            with stages.store(AGGREGATED, {MASKED: masked}, facts) as folder:
                pq.write_table(groups, folder / DATA, compression="zstd")
            noted.update(report.facts)
            log.info("%s: %s groups", spec.dataset, f"{len(groups):,}")
            columns = engine.columns(stages.load(AGGREGATED).folder / DATA)
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": len(groups),
                "dagster/column_schema": _schema(columns),
                "dagster/column_lineage": _lineage(spec, masked_key),
                **report.facts,
            }
        )

    @dg.asset(
        **common,
        deps=[dg.AssetKey([spec.dataset, RAW]), masked_key, candidate_key],
        kinds={"parquet", "mlflow"},
        description=described("release", spec),
        freshness_policy=freshness(spec),
    )
    def release(context: dg.AssetExecutionContext, runtime: Runtime) -> dg.MaterializeResult:
        with runtime.step(context, spec, "release") as noted:
            stages, engine = runtime.stages(spec), runtime.engine(spec)
            raw = stages.load(RAW)
            masked = stages.load(MASKED, {RAW: raw})
            candidate = stages.load(AGGREGATED, {MASKED: masked})
            answers = [
                *require_answers(runtime, spec, "source_checks", {RAW: raw}, list(source_checks_of(spec))),
                *require_answers(runtime, spec, CHECKS, {AGGREGATED: candidate}, list(GROUP_CHECKS)),
            ]
            told = _told(spec, engine, masked, candidate)
            facts = {
                **_origin(spec, raw, masked, told["groups"]),
                "groups": told,
                "masking": [_without_rows(one) for one in [*masked.facts["masking"], candidate.facts["report"]]],
                "checks": answers,
                "runs": {"dagster": context.run.run_id, "mlflow": noted["mlflow_run"]},
            }
            published = publish(runtime.place(), spec, engine, candidate.folder, finite(facts))
            noted.update(version=published.version, smallest_group=told["smallest"], new=published.new)
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
                "dagster/row_count": told["groups"],
                "dagster/column_schema": _schema(engine.columns(published.folder / DATA)),
                "dagster/column_lineage": _lineage(spec, candidate_key),
            },
        )

    return [aggregated_table, release]


def build_group_checks(spec: ReleaseSpec) -> list[dg.AssetChecksDefinition]:
    """The blocking checks on the table of groups, where a spec releases one."""
    if not spec.aggregates:
        return []
    candidate_key = dg.AssetKey([spec.dataset, AGGREGATED])

    @dg.multi_asset_check(
        name=f"{spec.dataset}_{CHECKS}",
        pool=spec.dataset,
        specs=[
            dg.AssetCheckSpec(name, asset=candidate_key, blocking=True, description=description)
            for name, description in GROUP_CHECKS.items()
        ],
    )
    def candidate_checks(context: dg.AssetCheckExecutionContext, runtime: Runtime):
        with runtime.step(context, spec, CHECKS) as noted:
            stages = runtime.stages(spec)
            masked = stages.load(MASKED, {RAW: stages.load(RAW)})
            candidate = stages.load(AGGREGATED, {MASKED: masked})
            answers = ask(group_questions(spec, runtime.engine(spec), masked, candidate), runtime.processes(spec))
            keep_answers(runtime, spec, CHECKS, {AGGREGATED: candidate}, answers)
            noted["candidate_checks_failed"] = sum(not answer.passed for answer in answers)
        yield from (result_of(answer, candidate_key) for answer in answers)

    return [candidate_checks]


def group_questions(spec: ReleaseSpec, engine: Engine, masked: Stage, candidate: Stage) -> list[Question]:
    """What must hold of the stored table of groups: counted from its file and from the masked people."""
    step, threshold, data = aggregate_of(spec), threshold_of(spec), candidate.folder / DATA
    columns = list(engine.columns(data))
    sizes, totals = pd.DataFrame(), pd.DataFrame()  # an empty table counts as a check that crashed
    if set(columns) == set(spec.released):
        found = engine.groups(data, group_columns(step), masked.folder / DATA)
        shown, beside = read_groups(found), compare_groups(found, step, threshold)
        sizes = pd.DataFrame({"people": shown.counts})
        everybody = int(shown.counts.sum()) + beside.left_out_people
        totals = pd.DataFrame(
            {
                "has_every_group_once": [shown.repeated + shown.not_whole],
                "counts_the_people": [beside.miscounted],
                "accounts_for_everybody": [abs(int(masked.facts["rows"]) - everybody)],
                "hides_groups_in_company": [int(not beside.stays_hidden(threshold))],
                "shows_true_means": [beside.wrong_means],
                "shows_means_of_enough": [beside.means_of_few],
                "shows_no_dominated_mean": [beside.dominated_means],
            }
        )
    largest = "largest value makes" if step.dominance.n == 1 else f"{step.dominance.n} largest values make"
    demands = {
        "has_every_group_once": "no group stands twice or has a count that is no whole number",
        "counts_the_people": "no group has another count than the masked people give",
        "accounts_for_everybody": "nobody is missing who is neither in a group that is shown nor in one that is left "
        "out",
        "hides_groups_in_company": f"if groups are left out, at least two are, with at least {threshold} people "
        "together",
        "shows_true_means": "no mean differs from that of the masked people",
        "shows_means_of_enough": f"no mean is of fewer than {threshold} known values",
        "shows_no_dominated_mean": f"no mean is shown of which the {largest} up more than {step.dominance.share:.0%}",
    }
    return [
        Question(
            "k_anonymity",
            f"every group counts at least {threshold} people",
            "ExpectColumnMinToBeBetween",
            {"column": "people", "min_value": threshold},
            sizes,
            remedy=FAULT,
        ),
        Question(
            "has_released_columns_only",
            "the candidate has the columns of the table of groups, and no other",
            "ExpectColumnDistinctValuesToEqualSet",
            {"column": "name", "value_set": spec.released},
            pd.DataFrame({"name": columns}),
            measured=len(columns),
            remedy=FAULT,
        ),
        *(
            Question(
                name,
                demand,
                "ExpectColumnMaxToBeBetween",
                {"column": name, "max_value": 0},
                totals[[name]] if name in totals else totals,
                remedy=FAULT,
            )
            for name, demand in demands.items()
        ),
    ]


def _told(spec: ReleaseSpec, engine: Engine, masked: Stage, candidate: Stage) -> dict[str, Any]:
    """What the manifest says of a table of groups.

    How many groups are left out stays untold: as many as people would mean that each is one person.
    """
    step, threshold = aggregate_of(spec), threshold_of(spec)
    found = engine.groups(candidate.folder / DATA, group_columns(step), masked.folder / DATA)
    shown, beside = read_groups(found), compare_groups(found, step, threshold)
    return {
        "note": NOTE,
        "columns": list(step.columns),
        "means": list(step.means),
        "threshold": threshold,
        "dominance": step.dominance.model_dump(),
        "groups": len(shown.counts),
        "people": int(shown.counts.sum()),
        "people_left_out": beside.left_out_people,
        "means_hidden": beside.means_hidden,
        "smallest": int(shown.counts.min()),
        "median": float(np.median(shown.counts)),
        "largest": int(shown.counts.max()),
    }


def _origin(spec: ReleaseSpec, raw: Stage, masked: Stage, groups: int) -> dict[str, Any]:
    """Source and rows."""
    source = SourceFacts.from_json(raw.facts)
    columns = manifest.source_columns(spec, source)
    return {
        "source": {"rows": source.rows, "content_hash": raw.facts["read"], "columns": columns},
        "rows": {
            "source": source.rows,
            "sampled_out": source.rows - SourceFacts.from_json(masked.facts).rows,
            "released": groups,
        },
    }


def _without_rows(report: dict[str, Any]) -> dict[str, Any]:
    """What a step did, without what it did to single rows, of which none is released."""
    facts = {name: fact for name, fact in report["facts"].items() if name != "groups_left_out"}
    return {**report, "facts": facts, "costs": {}, "linkage": None}


def _schema(columns: dict[str, str]) -> dg.TableSchema:
    what = {PEOPLE: "how many people the group counts"}
    return dg.TableSchema([dg.TableColumn(name, kind, what.get(name)) for name, kind in columns.items()])


def _lineage(spec: ReleaseSpec, upstream: dg.AssetKey) -> dg.TableColumnLineage:
    """From the candidate each column is as it is; from the masked people as the step says."""
    sources = aggregate_of(spec).sources
    direct = upstream.path[-1] == AGGREGATED
    return dg.TableColumnLineage(
        {
            name: [dg.TableColumnDep(asset_key=upstream, column_name=one) for one in ([name] if direct else of)]
            for name, of in sources.items()
        }
    )
