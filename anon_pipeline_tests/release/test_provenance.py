"""PROV-JSON: valid by W3C's schema and by a reader of another maker, and complete."""

import importlib.resources
import json
from typing import Any

import jsonschema
import pytest
from prov.model import ProvDocument, ProvUsage

from anon_pipeline.release import provenance
from anon_pipeline_tests.release.lineage_facts import facts

TABLES = {"data.parquet": "d" * 64, "classes.parquet": "c" * 64}


def schema() -> Any:
    """The schema of https://www.w3.org/submissions/prov-json/schema, of which the package prov has a copy."""
    return json.loads((importlib.resources.files("prov") / "tests/schemas/prov-json.schema.json").read_text())


@pytest.mark.parametrize("previous", [None, "ba9876543210"])
def test_it_is_valid(previous: str | None) -> None:
    content = json.loads(provenance.render(facts(previous=previous), TABLES))
    kind = jsonschema.validators.validator_for(schema())
    validator = kind(schema(), format_checker=kind.FORMAT_CHECKER)
    validator.validate(content)
    for change in ({"used": {"_:one": {"prov:activity": "anon:x"}}}, {"rows": {}}, {"entity": {"anon:x": {"y": None}}}):
        with pytest.raises(jsonschema.ValidationError):
            validator.validate(content | change)


def test_another_makers_reader_reads_what_was_meant() -> None:
    document = ProvDocument.deserialize(
        content=provenance.render(facts(previous="ba9876543210"), TABLES), format="json"
    )
    said = document.get_provn()
    for fact in (
        "used(anon:people.0123456789ab.publication, anon:people.source, -)",
        "wasGeneratedBy(anon:people.0123456789ab, anon:people.0123456789ab.publication, 2026-01-02T03:04:05+00:00)",
        "wasAssociatedWith(anon:people.0123456789ab.publication, anon:program, anon:people.policy)",
        "hadMember(anon:people.0123456789ab, anon:people.0123456789ab.data.parquet)",
    ):
        assert fact in said.replace("_:used_source; ", ""), f"{fact}\n{said}"
    assert "prov:Revision" in said
    assert len(list(document.get_records(ProvUsage))) == 2


@pytest.mark.parametrize(
    ("owner", "named"), [("team:stewards", "team:stewards"), (None, "the steward of this dataset")]
)
def test_who_answers_for_the_release_is_the_owner_if_the_spec_names_one(owner: str | None, named: str) -> None:
    spec = facts()["spec"] | {"owner": owner}
    agents = json.loads(provenance.render(facts(spec=spec), TABLES))["agent"]
    assert named in {agent["prov:label"] for agent in agents.values()}


def test_what_is_no_number_in_json_is_not_written() -> None:
    source = facts()["source"] | {"rows": float("nan")}
    with pytest.raises(ValueError, match="not JSON compliant"):
        provenance.render(facts(source=source), TABLES)


def test_every_hash_is_there_and_no_place() -> None:
    text = provenance.render(facts(), TABLES)
    for hash_ in ("a" * 64, "c" * 64, "d" * 64, facts()["spec_hash"]):
        assert hash_ in text
    assert "secret" not in text
    assert text == provenance.render(facts(), TABLES)
