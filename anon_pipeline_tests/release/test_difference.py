"""What is told of two releases: every figure that differs, nothing that does not, and only from true manifests."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import Home
from anon_pipeline.keys import Key
from anon_pipeline.release import publish
from anon_pipeline.release.difference import Change, changes, difference
from anon_pipeline.release.facts import losses
from anon_pipeline.release.fineness import coarse, step_of
from anon_pipeline.release.noise import Noise
from anon_pipeline.release.publication import MANIFEST, Published
from anon_pipeline_tests.release import test_publish
from anon_pipeline_tests.release.test_publish import FACTS, SPEC, TABLE, candidate_of

engine, home, _plain_report = test_publish.engine, test_publish.home, test_publish._plain_report

STRICTER = SPEC.replaced({"privacy.k_anonymity.k": 4})


@pytest.fixture
def releases(home: Home, engine: DuckDBEngine, tmp_path: Path) -> tuple[Published, Published]:
    twice = {**FACTS, "rows": {"source": 14, "released": 14, "suppressed": 0}}
    twice["utility"] = {"metrics": {"roc_auc": {one: {"mean": 0.9} for one in ("before", "after")}}}
    return (
        publish.publish(home, SPEC, engine, candidate_of(tmp_path / "a", TABLE), FACTS),
        publish.publish(home, STRICTER, engine, candidate_of(tmp_path / "b", pd.concat([TABLE, TABLE])), twice),
    )


@pytest.mark.long
def test_what_differs_is_told_and_nothing_else(home: Home, releases: tuple[Published, Published]) -> None:
    first, second = releases
    told = difference(home, first.version, second.version)
    assert Change("people", "released", 7, 14) in told
    assert Change("demands", "every class has at least 3 people", 3.0, None) in told
    assert Change("demands", "every class has at least 4 people", None, 6.0) in told
    assert Change("utility", "roc_auc after", None, 0.9) in told
    assert {one.part for one in told} == {"people", "demands", "utility"}
    assert difference(home, first.version, first.version) == []
    assert {(one.after, one.before) for one in difference(home, second.version, first.version)} == {
        (one.before, one.after) for one in told
    }


def test_what_a_release_loses_more_is_told_by_column() -> None:
    def losing(mean: float, **columns: float) -> dict[str, object]:
        return {"measured": {"information_loss": {"mean": mean, "columns": columns}, "class_sizes": {"smallest": 3}}}

    assert changes(losing(0.2, age=0.1, city=0.3), losing(0.3, age=0.1, born=0.5)) == [
        Change("information lost", "in the mean", 0.2, 0.3),
        Change("information lost", "city", 0.3, None),
        Change("information lost", "born", None, 0.5),
    ]


def losing(version: str, people: int, more: float = 0.0, noise: bool = True) -> dict[str, Any]:
    """The manifest of a release whose columns lose this much more, with noise of its own."""
    own = Noise(Key(bytes(range(32))), "people", version)
    columns = {name: share + more for name, share in {"age": 0.21, "city": 0.34, "job": 0.475, "town": 0.5}.items()}
    counted = {"released": people, "suppressed": 0, "waiting": 0, "information_loss": columns}
    loss = losses(counted | {"apart": dict.fromkeys(columns, people // 2)}, own)
    return {
        "rows": {"source": people, "without_target": coarse(people // 10, people, own.of("without_target"))},
        "measured": {"information_loss": loss} | ({"noise": own.scale} if noise else {}),
    }


@pytest.mark.long
@pytest.mark.parametrize("people", [400, 5000, 48_842])
def test_noise_alone_is_no_change(people: int) -> None:
    """Of two releases that lose the same, six figures of ten differed by their noise, in every pair of releases."""
    told = [changes(losing(f"{at} a", people), losing(f"{at} b", people)) for at in range(200)]
    assert np.mean([len(one) for one in told]) < 0.3
    assert np.mean([any(of.what in ("in the mean", "without_target") for of in one) for one in told]) < 0.1
    more = [changes(losing(f"{at} a", people), losing(f"{at} b", people, 5 * step_of(people))) for at in range(50)]
    assert np.mean([len(one) for one in more]) > 4
    assert changes(losing("a", people, noise=False), losing("b", people, 2 * step_of(people), noise=False))


@pytest.mark.long
@pytest.mark.parametrize("apart", [{"age": 1900}, {"age": 1900, "sex": 900}, {"age": 1900, "sex": 900, "pension": 45}])
def test_the_mean_of_few_columns_or_of_coarse_ones_changes_by_their_noise(apart: dict[str, int]) -> None:
    """One pair in twenty was told to differ in the mean where nothing did."""

    def of(version: str) -> dict[str, Any]:
        counted = {"released": 2000, "suppressed": 0, "waiting": 0, "information_loss": dict.fromkeys(apart, 0.32)}
        own = Noise(Key(bytes(range(32))), "people", version)
        return {"measured": {"information_loss": losses(counted | {"apart": apart}, own), "noise": own.scale}}

    told = [changes(of(f"{at} a"), of(f"{at} b")) for at in range(500)]
    assert np.mean([any(of.what == "in the mean" for of in one) for one in told]) < 0.015


def test_a_column_of_which_nothing_was_told_is_compared_by_the_step_of_the_other_release() -> None:
    def of(share: float, step: float | None) -> dict[str, Any]:
        loss = {"mean": 0.1, "step": 0.05, "columns": {"age": share}, "steps": {"age": step}}
        return {"measured": {"information_loss": loss, "noise": 0.5}}

    assert changes(of(0.0, None), of(0.4, 0.2)) == []
    assert changes(of(0.0, None), of(0.6, 0.2)) == [Change("information lost", "age", 0.0, 0.6)]
    assert changes(of(0.0, None), of(0.0, None)) == []


def test_sizes_of_classes_that_differ_are_told() -> None:
    def classes(smallest: int, **others: int) -> dict[str, object]:
        return {"measured": {"class_sizes": {"classes": 7, "smallest": smallest, **others}}}

    assert changes(classes(3), classes(4, largest=9)) == [
        Change("classes", "smallest", 3, 4),
        Change("classes", "largest", None, 9),
    ]
    assert changes({}, classes(4)) == [Change("classes", "classes", None, 7), Change("classes", "smallest", None, 4)]


@pytest.mark.long
def test_only_true_manifests_of_one_dataset_are_compared(
    home: Home, engine: DuckDBEngine, releases: tuple[Published, Published], tmp_path: Path
) -> None:
    first, second = releases
    others = SPEC.replaced({"dataset": "others"})
    third = publish.publish(home, others, engine, candidate_of(tmp_path / "c", TABLE), FACTS)
    with pytest.raises(InputError, match=r"is a release of people, .* one of others"):
        difference(home, first.version, third.version)
    with pytest.raises(InputError, match="there is no such release"):
        difference(home, first.version, "000000000000")
    file = second.folder / MANIFEST
    file.chmod(0o644)
    file.write_text(file.read_text().replace('"released": 14', '"released": 15'))
    with pytest.raises(Refused, match="was altered"):
        difference(home, first.version, second.version)


@pytest.mark.long
def test_another_software_is_told_and_a_manifest_that_names_none_is_read(
    home: Home, releases: tuple[Published, Published], monkeypatch: pytest.MonkeyPatch
) -> None:
    def of(*software: dict[str, str] | None) -> list[Change]:
        contents = [{**published.manifest, "software": one} for published, one in zip(releases, software, strict=True)]
        monkeypatch.setattr("anon_pipeline.release.difference.manifest_of", lambda *_: contents.pop(0))
        return [one for one in difference(home, *(one.version for one in releases)) if one.part == "software"]

    assert of({"python": "3.11", "code": "a"}, {"python": "3.12", "code": "a"}) == [
        Change("software", "python", "3.11", "3.12")
    ]
    assert of({"python": "3.11"}, None) == [Change("software", "python", "3.11", None)]
