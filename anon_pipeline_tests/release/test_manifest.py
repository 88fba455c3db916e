"""The manifest's parts: what names a version, what does not, and numbers that JSON can hold."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from anon_pipeline.engine.base import ColumnFacts, SourceFacts
from anon_pipeline.plain_json import finite
from anon_pipeline.release import manifest
from anon_pipeline.spec import ColumnType, ReleaseSpec


def spec(**changes: object) -> ReleaseSpec:
    return ReleaseSpec.model_validate(
        {
            "dataset": "people",
            "source": {"path": "people.csv"},
            "target": "ill",
            "columns": {
                "age": {"role": "quasi_identifier"},
                "ill": {"role": "sensitive"},
                "name": {"role": "identifier"},
                "note": {"role": "exclude"},
            },
            "privacy": {"k_anonymity": {"k": 10}},
        }
        | changes
    )


HASHES = {"data.parquet": "aa", "classes.parquet": "bb"}


def test_a_version_comes_from_what_is_published() -> None:
    version = manifest.version_of(spec(), HASHES)
    assert len(version) == 12
    assert version == manifest.version_of(spec(), dict(reversed(HASHES.items())))
    others = {
        manifest.version_of(spec(seed=1), HASHES),
        manifest.version_of(spec(privacy={"k_anonymity": {"k": 11}}), HASHES),
        manifest.version_of(spec(), HASHES | {"data.parquet": "cc"}),
        manifest.version_of(spec(), HASHES | {"classes.parquet": "cc"}),
    }
    assert len(others | {version}) == 5


def test_when_a_release_is_made_and_where_its_source_lies_do_not_name_it() -> None:
    moved = spec(schedule="0 3 * * *", source={"path": "elsewhere.csv"})
    assert manifest.version_of(moved, HASHES) == manifest.version_of(spec(), HASHES)


def test_lineage_names_released_columns_only() -> None:
    assert manifest.lineage(spec()) == {"age": ["age"], "ill": ["ill"]}


def test_a_made_column_comes_from_the_columns_that_it_was_made_of() -> None:
    columns = {"lat": {"role": "exclude"}, "lon": {"role": "exclude"}, "area": {"role": "quasi_identifier"}}
    step = {"technique": "grid_cell", "columns": ["lat", "lon"], "metres": 1000, "into": "area"}
    made = spec(columns=columns | {"ill": {"role": "sensitive"}}, steps=[step])
    assert manifest.lineage(made) == {"area": ["lat", "lon"], "ill": ["ill"]}


def test_of_masked_and_hidden_columns_no_storage_is_told() -> None:
    """How an identifier is stored, or numbers before they were rounded, says something of values nobody is shown."""
    masked = {"role": "insensitive", "steps": [{"technique": "round", "to": 10}]}
    columns = {"age": {"role": "quasi_identifier"}, "ill": {"role": "sensitive"}, "name": {"role": "identifier"}}
    spec_ = spec(columns=columns | {"visits": masked})
    stored = SourceFacts(
        8,
        "",
        tuple(
            ColumnFacts(name, column.role, ColumnType.NUMERIC, "BIGINT", 0, 8) for name, column in spec_.columns.items()
        ),
        (),
    )
    assert manifest.source_columns(spec_, stored) == [
        {"name": "age", "role": "quasi_identifier", "type": "numeric"},
        {"name": "ill", "role": "sensitive", "type": "numeric"},
        {"name": "name", "role": "identifier"},
        {"name": "visits", "role": "insensitive", "type": "numeric"},
    ]


def test_the_code_hash_is_stable() -> None:
    first = manifest.code_hash()
    manifest.code_hash.cache_clear()
    assert manifest.code_hash() == first
    assert len(first) == 64


def test_software_names_every_package_that_computes() -> None:
    told = manifest.software()
    assert set(told["packages"]) >= {"duckdb", "scikit-learn", "numpy", "pandas", "great-expectations"}
    assert all(told["packages"].values())
    json.dumps(told, allow_nan=False)


def test_software_names_the_machine_down_to_the_routines_of_its_libraries() -> None:
    told = manifest.software()["machine"]
    assert set(told) == {"platform", "libc", "processor", "blas", "simd"}
    assert told["platform"] and told["processor"] and told["blas"]
    kernels = {one["architecture"] for one in threadpool_info() if one["internal_api"] == "openblas"}
    assert all(any(kernel in one for one in told["blas"]) for kernel in kernels)
    if Path("/proc/cpuinfo").exists():
        assert f"\t: {told['processor'].split()[0]}" in Path("/proc/cpuinfo").read_text()


def test_of_a_model_of_the_users_own_the_manifest_says_what_was_relied_on() -> None:
    assert manifest.relied_on(spec()) == {"model": "gradient_boosting", "same_everywhere": True}
    for model, name in (({"import": "ours.models:make"}, "ours.models:make"), ({"mlflow": "models:/m/1"},) * 2):
        own = manifest.relied_on(spec(guide={"model": model}))
        assert own["model"] == (name if isinstance(name, str) else name["mlflow"])
        assert not own["same_everywhere"]
        assert "predicts the same" in own["relied_on"]


@pytest.mark.parametrize(
    "sizes", [[1], [10], [10, 10, 11], [1, 2, 3, 4, 5, 9, 10, 19, 20, 49, 50, 99, 100, 199, 200, 499, 500, 999, 1000]]
)
def test_class_sizes_add_up(sizes: list[int]) -> None:
    told = manifest.class_sizes(np.array(sizes, dtype=np.int64))
    assert told["classes"] == len(sizes) == sum(group["classes"] for group in told["groups"])
    assert sum(group["people"] for group in told["groups"]) == sum(sizes)
    assert (told["smallest"], told["largest"]) == (min(sizes), max(sizes))
    json.dumps(told, allow_nan=False)


def test_the_groups_of_sizes_leave_no_gap() -> None:
    told = manifest.class_sizes(np.arange(1, 1_200, dtype=np.int64))
    ends = [group["size"].removesuffix(" or more").split("-") for group in told["groups"]]
    numbers = [(int(one[0]), int(one[-1])) for one in ends]
    assert all(end + 1 == start for (_, end), (start, _) in pairwise(numbers))
    assert numbers[0][0] == 1


def test_finite_makes_plain_data_that_json_can_hold() -> None:
    told = finite(
        {
            "a": float("nan"),
            "b": [np.inf, (1.5, -np.inf)],
            "c": np.int64(3),
            "d": np.float64("nan"),
            "e": np.bool_(True),
            "f": np.float32("inf"),
            "g": "text",
            "h": None,
        }
    )
    assert json.loads(json.dumps(told, allow_nan=False)) == {
        "a": None, "b": [None, [1.5, None]], "c": 3, "d": None, "e": True, "f": None, "g": "text", "h": None,
    }  # fmt: skip


def test_the_code_hash_is_that_of_the_source_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest.anon_pipeline, "__file__", str(tmp_path / "__init__.py"))
    hashes = []
    for name, text in (("__init__.py", ""), ("a.pyc", "x"), ("notes.txt", "x"), ("page.html", "x"), ("a.py", "x = 1")):
        (tmp_path / name).write_text(text)
        hashes.append(manifest.code_hash.__wrapped__())
    assert hashes[0] == hashes[1] == hashes[2] and len(set(hashes)) == 3
    (tmp_path / "folder.py").mkdir()
    assert manifest.code_hash.__wrapped__() == hashes[-1]


def test_of_groups_of_people_no_storage_is_told() -> None:
    steps = [
        {"technique": "sample", "columns": ["age"], "share": 0.5},
        {"technique": "aggregate", "columns": ["age", "ill"], "threshold": 10},
    ]
    spec_ = spec(steps=steps)
    stored = tuple(
        ColumnFacts(name, spec_.columns[name].role, ColumnType.NUMERIC, "BIGINT", 0, 8) for name in ("age", "ill")
    )
    told = manifest.source_columns(spec_, SourceFacts(8, "", stored, ()))
    assert [sorted(column) for column in told] == [["name", "role", "type"]] * 2
    assert manifest.relied_on(spec_) == {"model": None, "same_everywhere": True}
