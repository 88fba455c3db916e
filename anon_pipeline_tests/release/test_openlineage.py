"""OpenLineage: events that the specification allows, with the origin of every column, and no place or secret."""

import inspect
import json
import os
import typing
from enum import Enum
from pathlib import Path
from typing import Any

import attr
import jsonschema
import pytest
from openlineage.client import event_v2, facet_v2
from openlineage.client.generated.base import BaseFacet

from anon_pipeline.release import openlineage
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.release.lineage_facts import SPEC, STORAGE, facts

#: What https://openlineage.io/spec/2-0-2/OpenLineage.json demands of every run event, in our own words.
FACETS = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "required": ["_producer", "_schemaURL"],
        "properties": {name: {"type": "string", "format": "uri"} for name in ("_producer", "_schemaURL")},
    },
}
DATASET = {
    "type": "object",
    "required": ["namespace", "name"],
    "properties": {
        "namespace": {"type": "string"},
        "name": {"type": "string"},
        "facets": FACETS,
        "inputFacets": FACETS,
        "outputFacets": FACETS,
    },
}
RUN_EVENT = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["eventTime", "producer", "schemaURL", "run", "job"],
    "properties": {
        "eventType": {"enum": ["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]},
        "eventTime": {"type": "string", "format": "date-time"},
        "producer": {"type": "string", "format": "uri"},
        "schemaURL": {"type": "string", "format": "uri"},
        "run": {
            "type": "object",
            "required": ["runId"],
            "properties": {"runId": {"type": "string", "format": "uuid"}, "facets": FACETS},
        },
        "job": {
            **DATASET,
            "properties": {"namespace": {"type": "string"}, "name": {"type": "string"}, "facets": FACETS},
        },
        "inputs": {"type": "array", "items": DATASET},
        "outputs": {"type": "array", "items": DATASET},
    },
}


def written(file: Path, spec: ReleaseSpec = SPEC, **changes: Any) -> list[dict[str, Any]]:
    openlineage.write(file, spec, facts(**changes), STORAGE, 1_000)
    return [json.loads(line) for line in file.read_text().splitlines()]


#: The client's classes of facets by the address of the published schema that each was generated from.
FACET_CLASSES = {
    one._get_schema(): one
    for module in vars(facet_v2).values()
    if inspect.ismodule(module)
    for one in vars(module).values()
    if inspect.isclass(one) and issubclass(one, BaseFacet)
}


def rebuilt(kind: Any, value: Any) -> Any:
    """The value as an object of the client's own classes, which are generated from the published schemas.

    A key that a class does not know, one that it demands and that is absent, a facet that nobody has published, and a
    value of another type all fail.
    """
    if options := [one for one in typing.get_args(kind) if one is not type(None)]:
        if typing.get_origin(kind) is list:
            assert isinstance(value, list)
            return [rebuilt(options[0], one) for one in value]
        if typing.get_origin(kind) is dict:
            return {name: rebuilt(options[1], one) for name, one in value.items()}
        return None if value is None else rebuilt(options[0], value)
    if not attr.has(kind):
        assert isinstance(value, kind) or (issubclass(kind, Enum) and kind(value))
        return value
    given = dict(value)
    if issubclass(kind, BaseFacet):
        published = FACET_CLASSES[given.pop("_schemaURL")]
        assert issubclass(published, kind)
        kind = published
    given.pop("schemaURL", None)
    kinds = typing.get_type_hints(kind)
    names = {one.name if one.name in given else one.alias: one.alias for one in attr.fields(kind)}
    types = {one.alias: kinds[one.name] for one in attr.fields(kind)}
    return kind(**{names.get(name, name): rebuilt(types[names[name]], one) for name, one in given.items()})


def test_the_events_are_what_the_specification_allows(tmp_path: Path) -> None:
    events = written(tmp_path / "events.jsonl")
    assert [event["eventType"] for event in events] == ["START", "COMPLETE"]
    for event in events:
        jsonschema.Draft202012Validator(
            RUN_EVENT, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
        ).validate(event)
        again = rebuilt(event_v2.RunEvent, event)
        assert isinstance(again, event_v2.RunEvent)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["eventType"], "DONE"),
        (["run", "runId"], None),
        (["outputs", 0, "facets", "columnLineage", "fields", "age", "inputFields", 0, "field"], None),
        (["outputs", 0, "facets", "schema", "fields", 0, "colour"], "red"),
        (["outputs", 0, "facets", "schema", "_schemaURL"], "https://openlineage.io/other.json"),
        (["outputs", 0, "outputFacets", "outputStatistics", "rowCount"], "seven"),
    ],
)
def test_the_validation_finds_what_is_not_allowed(tmp_path: Path, path: list[Any], value: Any) -> None:
    """Else the test above would show nothing."""
    event = written(tmp_path / "events.jsonl")[1]
    place = event
    for step in path[:-1]:
        place = place[step]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    with pytest.raises((AssertionError, KeyError, TypeError, ValueError)):
        rebuilt(event_v2.RunEvent, event)


def test_every_released_column_has_its_origin(tmp_path: Path) -> None:
    (released,) = written(tmp_path / "events.jsonl")[1]["outputs"]
    assert [field["name"] for field in released["facets"]["schema"]["fields"]] == SPEC.released
    places = [field["ordinal_position"] for field in released["facets"]["schema"]["fields"]]
    assert places == list(range(1, len(places) + 1))
    fields = released["facets"]["columnLineage"]["fields"]
    assert {name: [one["field"] for one in said["inputFields"]] for name, said in fields.items()} == {
        name: [name] for name in SPEC.released
    }
    assert {name: said["inputFields"][0]["transformations"][0]["subtype"] for name, said in fields.items()} == {
        "age": "AGGREGATION", "place": "AGGREGATION", "ill": "IDENTITY", "visits": "IDENTITY",
    }  # fmt: skip
    assert {name: said["inputFields"][0]["transformations"][0]["masking"] for name, said in fields.items()} == {
        "age": True, "place": True, "ill": False, "visits": False,
    }  # fmt: skip
    grouped_by = released["facets"]["columnLineage"]["dataset"]
    assert sorted(one["field"] for one in grouped_by) == sorted(SPEC.released)
    assert all(one["transformations"][0]["masking"] for one in grouped_by)
    assert released["facets"]["version"]["datasetVersion"] == "0123456789ab"
    statistics = released["outputFacets"]["outputStatistics"]
    assert (statistics["rowCount"], statistics["fileCount"]) == (7, 1)


def test_a_column_is_described_by_its_role_and_the_reason_for_it() -> None:
    assert openlineage._description(SPEC, "age") == "quasi_identifier: known to neighbours"
    assert openlineage._description(SPEC, "visits") == "insensitive"
    assert openlineage._description(SPEC, "people") is None  # the count of a table of groups


def test_a_masked_column_is_not_said_to_be_kept(tmp_path: Path) -> None:
    columns = {name: {"role": column.role} for name, column in SPEC.columns.items()}
    columns["visits"] |= {"steps": [{"technique": "round", "to": 10}]}  # type: ignore[dict-item]
    masked = ReleaseSpec.model_validate(
        {"dataset": "people", "source": {"path": "p.csv"}, "target": "ill", "columns": columns}
        | {"privacy": {"k_anonymity": {"k": 3}}}
    )
    (released,) = written(tmp_path / "events.jsonl", masked)[1]["outputs"]
    (origin,) = released["facets"]["columnLineage"]["fields"]["visits"]["inputFields"]
    assert origin["transformations"][0]["masking"]


def test_a_column_of_a_table_of_groups_is_aggregated() -> None:
    step = {"technique": "aggregate", "columns": ["age", "ill"], "threshold": 10}
    columns = {name: {"role": column.role, "type": column.type} for name, column in SPEC.columns.items()}
    grouped = ReleaseSpec.model_validate(
        {"dataset": "people", "source": {"path": "p.csv"}, "target": "ill", "columns": columns, "steps": [step]}
        | {"privacy": {"k_anonymity": {"k": 3}}}
    )
    how = openlineage._how(grouped, "people")
    assert how == {"subtype": "AGGREGATION", "description": "shown per group of people", "masking": True}


def test_equal_releases_have_equal_events_whatever_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenLineage's client reads its settings from the environment and from files; what is written here does not."""
    written(tmp_path / "first.jsonl")
    monkeypatch.setenv("OPENLINEAGE__TAGS__RUN__WHO", "Zebulon")
    monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
    monkeypatch.chdir(tmp_path)
    Path("openlineage.yml").write_text("transport: {type: http, url: http://nowhere.invalid}")
    written(tmp_path / "second.jsonl")
    assert (tmp_path / "first.jsonl").read_bytes() == (tmp_path / "second.jsonl").read_bytes()


def test_no_place_is_named(tmp_path: Path) -> None:
    text = (tmp_path / "events.jsonl").read_text() if written(tmp_path / "events.jsonl") else ""
    assert text
    for secret in ("secret", "people.csv", str(tmp_path), os.uname().nodename):
        assert secret not in text


def test_the_job_is_described_by_the_spec_or_named_after_the_dataset(tmp_path: Path) -> None:
    for description in ("", "What people earn"):
        told = written(tmp_path / f"{description}.jsonl", SPEC.model_copy(update={"description": description}))
        assert told[0]["job"]["facets"]["documentation"]["description"] == (description or SPEC.dataset)
