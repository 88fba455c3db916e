"""Every published byte, walked: what changes when one person's value does, and why it must.

Each release is made twice, in homes of their own and under one private key, from tables that differ in one person's
value. What is random or a moment of time in a release is replaced by its name first (`SET_ASIDE`); everything else in
every file, file name and folder name is compared byte for byte.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.home import Home, sha256_of
from anon_pipeline.report.wording import times
from anon_pipeline_tests.end_to_end.harness import Place, policy, released, scratch, write_dataset
from anon_pipeline_tests.pipeline.in_steps import released_in_steps

KEY, SECRET = "BYTES_KEY", "a7" * 32

#: What differs from run to run, whatever the data: it is random, a moment, or a hash over such.
SET_ASIDE = {
    "source.commitment": "HMAC of the source under a random secret: a random number without it (see test_restore.py)",
    "created": "the moment of publication",
    "runs.dagster": "a random UUID",
    "runs.mlflow": "a random UUID",
    "files.manifest.json.sha256": "covers those above; stands in the ledger",
    "files.report.html.sha256": "covers those above",
    "files.prov.json.sha256": "covers those above",
    "files.openlineage.jsonl.sha256": "covers those above",
    "files.croissant.json.sha256": "covers those above",
    "files.datapackage.json.sha256": "covers those above",
    "files.dcat.jsonld.sha256": "covers those above",
}

#: Parts of the manifest that hang on the sensitive value of a person who is released, and why they must.
#: "table" means: everybody who has the released tables can count it again, so it tells nothing that they do not.
MAY_DIFFER = {
    "version": "table: names their content",
    "content_hashes": "table",
    "files": "table: hashes and sizes",
    "measured.class_sizes": "table; the grouping follows the model that learns from the sensitive values",
    "measured.columns": "table",
    "measured.marginals": "table",
    "measured.sensitive": "table",
    "measured.associations": "contract: how columns hang together before, with noise, and after, in steps of 1/sqrt(n)",
    "measured.information_loss": "contract: what it costs; of quasi-identifiers, with noise, in steps of 1/sqrt(n)",
    "measured.risk": "after: table. before hangs on quasi-identifiers alone, with noise, in steps of sqrt(n) people",
    "utility": "contract: accuracy before and after; folds and models are drawn under the private key, 4 digits",
    "audit": "contract: attacks on a twin; who is in it and is attacked is drawn under the private key, 4 digits; "
    "those with a rare value in steps of 1/sqrt(n)",
    "examples": "table: a few of its classes, whole",
    "verified": "table",
    "checks": "table",
}
MUST_DIFFER = {"version", "content_hashes", "files", "measured.sensitive"}


class Keyed:
    """Gives a command the private key."""

    def __call__(self) -> None:
        os.environ[KEY] = SECRET


def everyone() -> pd.DataFrame:
    """150 people with an identifier that nobody is followed by, and with a column that the spec leaves out."""
    random = np.random.default_rng(8)
    n = 150
    age = random.integers(18, 80, n)
    return pd.DataFrame(
        {
            "name": [f"name-{i}" for i in range(n)],
            "diary": [f"page {i % 9}" for i in range(n)],
            "weight": random.integers(1, 9, n) * 10.0,
            "age": age,
            "city": random.choice(["Aberdeen", "Bergen", "Cork"], n),
            "lat": np.round(44.9 + random.integers(0, 3, n) / 10, 4),
            "lon": np.round(-93.2 + random.integers(0, 3, n) / 10, 4),
            "ill": np.where(age + random.normal(0, 15, n) > 50, "yes", "no"),
            "visits": random.integers(0, 5, n),
        }
    )


def plain() -> dict[str, Any]:
    spec = policy()
    left_out = {"diary": {"role": "exclude"}, "weight": {"role": "exclude", "type": "numeric"}}
    columns = {"name": {"role": "identifier"}, **left_out, **spec["columns"]}
    del columns["sex"]
    columns |= {"lat": {"role": "exclude"}, "lon": {"role": "exclude"}}
    return {
        **spec,
        "columns": columns,
        "sampling_weight": "weight",
        "draws": {"environment": KEY},
        "utility": {"folds": 2, "models": []},
        "audit": {"models": False, "targets": 100},
    }


def masked() -> dict[str, Any]:
    """With steps on columns and on positions; the excluded column is one that no step needs."""
    spec = plain()
    spec["columns"]["age"] |= {"steps": [{"technique": "round", "to": 5}]}
    spec["columns"] |= {name: {"role": "insensitive", "type": "numeric"} for name in ("lat", "lon")}
    spec["steps"] = [{"technique": "donut", "columns": ["lat", "lon"], "inner": 200, "outer": 900}]
    return {**spec, "recode": {"form": "range"}, "audit": {"enabled": False}}


def groups() -> dict[str, Any]:
    spec = plain()
    del spec["audit"], spec["sampling_weight"]
    step = {"technique": "aggregate", "columns": ["city", "ill"], "means": ["visits"], "threshold": 10}
    return {**spec, "steps": [step]}


SPECS = {"plain": plain, "masked": masked, "groups": groups}


def release(root: Path, frame: pd.DataFrame, spec: dict[str, Any]) -> Place:
    """By the command, in a home that has its databases already: to make them is no part of a release."""
    place = released()[0].copy(root).without_releases()
    write_dataset(place.dataset, frame, spec)
    ended = place.run("--json", sabotage=Keyed())
    assert ended.exit_code == 0, ended.said
    return place


def in_steps(root: Path, frame: pd.DataFrame, spec: dict[str, Any]) -> Place:
    """By the steps of a run, one after the other: what Dagster and MLflow are told of it is in no release."""
    place = Place(Home(root / "home"), write_dataset(root / "people", frame, spec))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(KEY, SECRET)
        released_in_steps(place)
    return place


#: How the releases of everybody as they are were made, under each spec; what is held against them is made in steps, so
#: that the command is seen to publish what its steps do.
MADE = {"plain": release, "masked": in_steps, "groups": in_steps}


class Releases(dict[str, Place]):
    """The releases of everybody as they are, by the name of their spec, each made when it is first asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __missing__(self, name: str) -> Place:
        self[name] = MADE[name](self.root / name, everyone(), SPECS[name]())
        return self[name]


@pytest.fixture(scope="module")
def before(template: Place) -> Iterator[Releases]:
    root = scratch()
    yield Releases(root)
    shutil.rmtree(root)


def manifest_of(place: Place) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((place.release / "manifest.json").read_text())
    return content


def set_aside(place: Place) -> dict[str, str]:
    """What differs from run to run, by name."""
    content = manifest_of(place)
    content["files"]["manifest.json"] = {"sha256": sha256_of(place.release / "manifest.json")}
    found = {}
    for name in SET_ASIDE:
        first, _, rest = name.partition(".")
        if first == "files":
            found[name] = content["files"][rest.removesuffix(".sha256")]["sha256"]
        else:
            found[name] = content[first][rest] if rest else content[first]
    return found


def walked(place: Place) -> dict[str, bytes]:
    """Every byte under releases/, by name, with a name in the place of what differs from run to run."""
    aside = {value.encode(): f"<{name}>".encode() for name, value in set_aside(place).items()}
    written, day = times(manifest_of(place)["created"])
    aside |= {written.encode(): b"<created>", day.encode(): b"<day>"}
    found = {}
    for name, content in place.releases().items():
        for value, written in aside.items():
            content = content.replace(value, written)
        if name.endswith("ledger.jsonl"):
            content = without_time(content)
        found[name] = content
    return found


def without_time(ledger: bytes) -> bytes:
    """Lines of the ledger without their moment, which may be a second later than that of the manifest."""
    lines = [json.loads(line) for line in ledger.splitlines()]
    return json.dumps([line | {"time": ""} for line in lines]).encode()


def differing(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    """The files that are not the same, with the place where they first differ."""
    assert set(one) == set(other)  # folders and files have the same names
    found = []
    for name in one:
        if one[name] != other[name]:
            at = next((i for i, (a, b) in enumerate(zip(one[name], other[name], strict=False)) if a != b), -1)
            found.append(f"{name}: {one[name][max(0, at - 80) : at + 80]!r}")
    return found


@pytest.mark.parametrize("name", SPECS)
def test_no_byte_hangs_on_a_value_that_is_not_released(name: str, before: Releases, folder: Path) -> None:
    """One person's excluded value, and the identifier that nobody is followed by: longer, and of another kind.

    The weight of the survey is another by some powers of ten, with which the individual risk is another, too.
    """
    frame = everyone()
    frame.loc[17, "weight"] = 1e6
    frame.loc[17, ["name", "diary"]] = ["somebody else altogether", "a secret of its own"]
    frame.loc[17, "lat" if name != "masked" else "diary"] = 12.5
    place = in_steps(folder, frame, SPECS[name]())
    assert differing(walked(before[name]), walked(place)) == []


def test_the_walk_sees_a_change(before: Releases) -> None:
    """Else the test above would hold of anything."""
    one = walked(before["plain"])
    for name in one:
        other = {**one, name: one[name] + b"x"}
        assert differing(one, other)
    assert set(one) == {
        "ledger.jsonl",
        *(f"people/{before['plain'].release.name}/{file}" for file in os.listdir(before["plain"].release)),
    }


def test_what_hangs_on_a_released_sensitive_value_is_listed_with_its_reason(before: Releases, folder: Path) -> None:
    frame = everyone()
    frame.loc[17, "ill"] = "no" if frame.loc[17, "ill"] == "yes" else "yes"
    place = in_steps(folder, frame, plain())
    changed = {section_of(path) for path in paths_that_differ(manifest_of(before["plain"]), manifest_of(place))}
    changed -= {"created", "runs", "source.commitment"}
    assert changed <= set(MAY_DIFFER), sorted(changed - set(MAY_DIFFER))
    assert changed >= MUST_DIFFER


def paths_that_differ(one: Any, other: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The places of two manifests that do not say the same."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted(set(one) | set(other)):
            yield from paths_that_differ(one.get(name), other.get(name), (*path, name))
    elif one != other:
        yield path


def section_of(path: tuple[str, ...]) -> str:
    return ".".join(path[:2]) if path[0] in ("measured", "source", "rows") else path[0]
