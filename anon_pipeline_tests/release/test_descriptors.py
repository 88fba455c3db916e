"""Croissant, Frictionless, DCAT and the dataset card: valid by their own readers, and telling nothing new."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import rdflib
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.home import sha256_of
from anon_pipeline.release.descriptors import croissant, data_package, dataset_card, dcat
from anon_pipeline.release.descriptors.described import Described, column_of, described, licence_of
from anon_pipeline.release.descriptors.written import DESCRIPTORS, write
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.release.lineage_facts import facts

DATA, CLASSES = "data.parquet", "classes.parquet"
DATA_3 = "http://www.w3.org/ns/dcat#"


def manifest(**changes: Any) -> dict[str, Any]:
    content = facts(previous="ba9876543210", description="People of a town.")
    content["spec"] = {**content["spec"], "license": "CC BY 4.0", "purpose": "research", **changes}
    return content


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release folder with every kind of column."""
    folder = tmp_path_factory.mktemp("release")
    table = pd.DataFrame(
        {
            "age": [20, 20, 20, 50, 50, 50, 50],
            "place": ["Ulm", "Ulm", "Ulm", "Bonn", "Bonn", "Bonn", None],
            "ill": [True, False, False, True, False, True, True],
            "visits": [0.5, 1.0, None, 2.0, 3.0, 1.0, 0.0],
        }
    )
    table["seen"] = pd.to_datetime("2026-01-02T03:04:05")
    table["clock"] = [time(3, 4), *[time(22, 30)] * 5, None]
    table.to_parquet(folder / DATA, index=False)
    classes = {"class_size": [3, 4], "age": [20, 50], "age_low": [18, 41], "place_values": [["Ulm"], ["Bonn", "Köln"]]}
    pd.DataFrame(classes).to_parquet(folder / CLASSES, index=False)
    write(folder, manifest(), (DATA, CLASSES))
    return folder


def release(folder: Path, **changes: Any) -> Described:
    return described(folder, manifest(**changes), (DATA, CLASSES))


#: In a process of its own: the library's logging closes the stderr that it found, which here is pytest's. It leaves
#: without Python's end: pandas gives Arrow a Python file, whose threads now and then abort there (apache/arrow#34314).
LIBRARY = """
import json, os, sys
import mlcroissant
try:
    dataset = mlcroissant.Dataset(jsonld=sys.argv[1])
    issues = dataset.metadata.ctx.issues
    found = {"errors": sorted(issues.errors), "warnings": sorted(issues.warnings)}
    for records, field in (("data", "data/age"), ("classes", "classes/class_size")):
        found[field] = [int(row[field]) for row in dataset.records(records)]
except mlcroissant.ValidationError as error:
    found = {"refused": str(error)}
print(json.dumps(found), flush=True)
os._exit(0)
"""


def asked_of_croissants_library(file: Path) -> dict[str, Any]:
    ended = subprocess.run([sys.executable, "-c", LIBRARY, file], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


@pytest.mark.long
def test_croissants_own_library_finds_nothing_wrong_and_loads_the_rows(folder: Path) -> None:
    found = asked_of_croissants_library(folder / "croissant.json")
    assert (found["errors"], found["warnings"]) == ([], [])
    assert found["data/age"] == [20] * 3 + [50] * 4
    assert found["classes/class_size"] == [3, 4]
    content = json.loads(croissant.render(release(folder)))
    del content["recordSet"][0]["field"][0]["source"]["fileObject"]
    (folder.parent / "broken.json").write_text(json.dumps(content))
    assert "refused" in asked_of_croissants_library(folder.parent / "broken.json")


@pytest.mark.long
def test_frictionless_finds_the_tables_as_described(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import frictionless

    monkeypatch.chdir(folder)
    report = frictionless.validate("datapackage.json")
    assert report.valid, report.flatten(["type", "message"])
    content = json.loads(data_package.render(release(folder)))
    assert [one["hash"] for one in content["resources"]] == [f"sha256:{sha256_of(folder / n)}" for n in (DATA, CLASSES)]
    content["resources"][0]["schema"]["fields"][1]["type"] = "integer"  # place
    assert not frictionless.validate(content, type="package").valid


def test_dcat_is_read_as_what_was_meant(folder: Path) -> None:
    graph = rdflib.Graph().parse(folder / "dcat.jsonld", format="json-ld")
    (dataset,) = graph.subjects(rdflib.RDF.type, rdflib.URIRef(DATA_3 + "Dataset"))
    assert str(dataset) == "urn:anon-pipeline:people:0123456789ab"
    (former,) = graph.objects(dataset, rdflib.URIRef(DATA_3 + "previousVersion"))
    assert str(former) == "urn:anon-pipeline:people:ba9876543210"
    files = list(graph.objects(dataset, rdflib.URIRef(DATA_3 + "distribution")))
    sizes = {int(str(graph.value(file, rdflib.URIRef(DATA_3 + "byteSize")))) for file in files}
    assert sizes == {(folder / name).stat().st_size for name in (DATA, CLASSES)}
    hashes = {str(one) for one in graph.objects(None, rdflib.URIRef("http://spdx.org/rdf/terms#checksumValue"))}
    assert hashes == {sha256_of(folder / name) for name in (DATA, CLASSES)}
    assert "https://creativecommons.org/licenses/by/4.0/" in {str(one) for one in graph.objects(dataset)}
    words = {str(term).partition("#")[2] for _, term, _ in graph if str(term).startswith(DATA_3)}
    assert words <= {  # all that are said are terms of DCAT 3
        "version", "previousVersion", "keyword", "distribution", "downloadURL", "accessURL", "mediaType", "byteSize",
    }  # fmt: skip


def test_the_hub_loads_the_data_and_not_the_classes_beside_it(folder: Path) -> None:
    _, front, body = (folder / "README.md").read_text().split("---\n", 2)
    said = yaml.safe_load(front)
    assert (said["license"], said["size_categories"]) == ("cc-by-4.0", ["n<1K"])
    assert [(one["data_files"], one.get("default")) for one in said["configs"]] == [(DATA, True), (CLASSES, None)]
    for heading in ("# people", "## What was done", "## What to keep in mind when training", "## Licence"):
        assert f"\n{heading}\n" in body
    assert "Everybody in a class has the same values there" in body


@pytest.mark.parametrize(
    ("stated", "identifier"),
    [("CC BY 4.0", "CC-BY-4.0"), ("cc-by-sa-4.0", "CC-BY-SA-4.0"), ("ODbL 1.0", "ODbL-1.0"), ("ask Ms Braun", "")],
)
def test_a_licence_is_known_by_its_name_or_told_in_its_own_words(stated: str, identifier: str, folder: Path) -> None:
    assert licence_of(stated).identifier == identifier
    card = yaml.safe_load(dataset_card.render(release(folder, license=stated)).split("---\n")[1])
    assert card["license"] == (identifier.lower() or "other")
    assert card.get("license_name") == (None if identifier else stated)


def test_without_a_licence_none_is_claimed(folder: Path) -> None:
    bare = release(folder, license=None)
    assert "license" not in json.loads(croissant.render(bare))
    assert "licenses" not in json.loads(data_package.render(bare))
    assert "dct:license" not in json.loads(dcat.render(bare))
    assert "The policy states none" in dataset_card.render(bare)


@pytest.mark.parametrize(
    ("type_", "kind", "of"),
    [
        ("int32", "integer", "integer"), ("double", "number", "number"), ("decimal128(18, 3)", "number", "number"),
        ("decimal128(38, 0)", "integer", "integer"), ("bool", "boolean", "boolean"), ("date32[day]", "date", "date"),
        ("time64[us]", "time", "time"), ("time32[s]", "time", "time"),
        ("timestamp[us, tz=UTC]", "datetime", "datetime"), ("list<element: double>", "array", "number"),
        ("dictionary<values=string, indices=int8, ordered=0>", "string", "string"),
    ],
)  # fmt: skip
def test_a_column_has_the_type_that_the_file_has(type_: str, kind: str, of: str) -> None:
    column = column_of("age", type_, manifest())
    assert (column.kind, column.of) == (kind, of)


def test_equal_releases_have_equal_descriptors_and_name_no_place(folder: Path, tmp_path: Path) -> None:
    for name in (DATA, CLASSES):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    write(tmp_path, manifest(), (DATA, CLASSES))
    for name in DESCRIPTORS:
        content = (tmp_path / name).read_text()
        assert content == (folder / name).read_text()
        for secret in ("secret", "people.csv", str(tmp_path), "a" * 64):  # the last is the commitment to the source
            assert secret not in content


def test_no_value_of_a_person_and_no_column_that_is_left_out_is_described(folder: Path) -> None:
    """A description names columns of the released files; the card's table also says which columns were removed."""
    for name in ("croissant.json", "datapackage.json", "dcat.jsonld"):
        content = (folder / name).read_text()
        assert "Bonn" not in content and '"name": "name"' not in content
    assert "Bonn" not in (folder / "README.md").read_text()


@pytest.mark.long
@settings(max_examples=times(25), deadline=None)
@given(st.text(min_size=1, max_size=40))
def test_whatever_the_spec_says_stays_text(folder: Path, words: str) -> None:
    """Somebody else's description cannot add a key to the front matter, a heading or a link to the card."""
    content = manifest(license=words, owner=words) | {"description": words}
    said = described(folder, content, (DATA,))
    for render in (croissant.render, data_package.render, dcat.render):
        json.loads(render(said))
    card = dataset_card.render(said)
    harmless = dataset_card.render(described(folder, manifest(license="x", owner="x"), (DATA,)))
    assert yaml.safe_load(card.split("\n---\n", 1)[0]).keys() <= {*dataset_card.front_matter(said)}
    assert [line for line in card.splitlines() if line.startswith("#")] == [
        line for line in harmless.splitlines() if line.startswith("#")
    ]
