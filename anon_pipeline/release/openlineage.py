"""The release as OpenLineage events (spec 2-0-2), for the catalogs of other makers: its origin, column by
column. Names, types and counts; no path, no secret, no row."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anon_pipeline.masking.aggregation import aggregate_of
from anon_pipeline.spec import ReleaseSpec, Role

#: The namespace of the job, its source and the release; their places are not revealed.
NAMESPACE = "anon-pipeline"


def write(file: Path, spec: ReleaseSpec, manifest: dict[str, Any], storage: dict[str, str], size: int) -> None:
    """Write the events START and COMPLETE of a publication, one per line, with OpenLineage's own file transport.

    Both have the moment of publication, and the run's id follows from the version. So equal releases have equal events
    except for the time.

    Parameters
    ----------
    manifest : the manifest without the hashes of files; uses `source`, `rows`, `lineage`, `version` and `created`
    storage : types of the released columns
    size : size of the released table, in bytes
    """
    from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
    from openlineage.client.facet_v2 import dataset_version_dataset, documentation_job, processing_engine_run

    # Only the transport, since the client around it would add settings from the environment and configuration files.
    from openlineage.client.transport.file import FileConfig, FileTransport

    producer = f"pkg:pypi/anon-pipeline@{manifest['software']['anon_pipeline']}"
    documentation = documentation_job.DocumentationJobFacet(spec.description or spec.dataset, producer=producer)
    engine = processing_engine_run.ProcessingEngineRunFacet(
        manifest["software"]["anon_pipeline"], "anon_pipeline", producer=producer
    )
    run = Run(
        str(uuid.uuid5(uuid.NAMESPACE_URL, f"urn:{NAMESPACE}:{spec.dataset}:{manifest['version']}")),
        {"processing_engine": engine},
    )
    stored = dict.fromkeys(column["name"] for column in manifest["source"]["columns"])  # how they are stored is private
    commitment = dataset_version_dataset.DatasetVersionDatasetFacet(manifest["source"]["commitment"], producer=producer)
    read = InputDataset(
        NAMESPACE, _source(spec), facets={"schema": _schema(spec, stored, producer), "version": commitment}
    )
    version = dataset_version_dataset.DatasetVersionDatasetFacet(manifest["version"], producer=producer)
    released = OutputDataset(
        NAMESPACE,
        spec.dataset,
        facets={
            "schema": _schema(spec, {name: storage[name] for name in spec.released}, producer),
            "columnLineage": _lineage(spec, manifest, producer),
            "version": version,
        },
        outputFacets={"outputStatistics": _statistics(manifest, size, producer)},
    )
    transport = FileTransport(FileConfig(str(file), append=True))
    for state, outputs in ((RunState.START, []), (RunState.COMPLETE, [released])):
        transport.emit(
            RunEvent(
                eventType=state,
                eventTime=manifest["created"],
                run=run,
                job=Job(NAMESPACE, f"{spec.dataset}.release", {"documentation": documentation}),
                inputs=[read],
                outputs=outputs,
                producer=producer,
            )
        )


def _source(spec: ReleaseSpec) -> str:
    """The name of the source as a dataset."""
    return f"{spec.dataset}.source"


def _schema(spec: ReleaseSpec, storage: Mapping[str, str | None], producer: str) -> Any:
    """The columns of a table: names, types and roles."""
    from openlineage.client.facet_v2 import schema_dataset

    fields = [
        schema_dataset.SchemaDatasetFacetFields(
            name, type_, _description(spec, name), ordinal_position=number, fields=None
        )
        for number, (name, type_) in enumerate(storage.items(), start=1)
    ]
    return schema_dataset.SchemaDatasetFacet(fields, producer=producer)


def _lineage(spec: ReleaseSpec, manifest: dict[str, Any], producer: str) -> Any:
    """The source columns that each released column shows, and those that affect the grouping."""
    from openlineage.client.facet_v2 import column_lineage_dataset as facet

    sources: dict[str, list[str]] = manifest["lineage"]

    def taken_from(column: str, how: facet.Transformation) -> facet.InputField:
        return facet.InputField(NAMESPACE, _source(spec), column, [how])

    # The guide uses all released columns, so all of them affect the grouping.
    grouping = aggregate_of(spec).columns if spec.aggregates else list(sources)
    grouped_by = facet.Transformation(
        "INDIRECT", "GROUP_BY", "decides, together with the others, who is shown alike", masking=True
    )
    return facet.ColumnLineageDatasetFacet(
        fields={
            name: facet.Fields(
                [taken_from(column, facet.Transformation("DIRECT", **_how(spec, name))) for column in columns]
            )
            for name, columns in sources.items()
        },
        dataset=[
            taken_from(source, grouped_by)
            for source in sorted({source for name in grouping for source in sources[name]})
        ],
        producer=producer,
    )


def _statistics(manifest: dict[str, Any], size: int, producer: str) -> Any:
    """Rows and bytes of the released table."""
    from openlineage.client.facet_v2 import output_statistics_output_dataset as facet

    return facet.OutputStatisticsOutputDatasetFacet(
        rowCount=manifest["rows"]["released"], size=size, fileCount=1, producer=producer
    )


def _description(spec: ReleaseSpec, name: str) -> str | None:
    """The role of a column and the reason for it."""
    if name not in spec.columns:
        return None
    column = spec.columns[name]
    return f"{column.role}: {column.why}" if column.why else str(column.role)


def _how(spec: ReleaseSpec, name: str) -> dict[str, Any]:
    """The transformation of a column's values for the release."""
    if spec.aggregates:
        return {"subtype": "AGGREGATION", "description": "shown per group of people", "masking": True}
    if spec.columns[name].role is Role.QUASI_IDENTIFIER:
        return {"subtype": "AGGREGATION", "description": "shown as the person's class shows itself", "masking": True}
    treated = {name for step in spec.steps for name in step.used}
    if spec.columns[name].steps or spec.columns[name].made or name in treated:
        return {"subtype": "TRANSFORMATION", "description": "masked", "masking": True}
    return {"subtype": "IDENTITY", "description": "kept as it is", "masking": False}
