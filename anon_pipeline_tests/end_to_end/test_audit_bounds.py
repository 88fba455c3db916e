"""Bounds on attacks stop a release like any other check, and control people can be kept out of it."""

import json

import pandas as pd
import pytest

from anon_pipeline_tests.end_to_end.harness import Place, full_policy, people, write_dataset


def with_audit(place: Place, **audit: object) -> Place:
    spec = full_policy()
    spec["audit"] = spec["audit"] | audit
    write_dataset(place.dataset, spec=spec)
    return place


def test_a_bound_that_does_not_hold_publishes_nothing(published: Place) -> None:
    before = published.releases()
    ended = with_audit(published, linkage=0.0).run("--json")
    assert ended.exit_code == 3, ended.said
    assert any(failure.startswith("linkage: ") for failure in json.loads(ended.stdout)["failures"])
    assert published.releases() == before


def test_people_held_out_are_in_no_release_and_the_release_itself_is_attacked(published: Place) -> None:
    place = with_audit(published.without_releases(), control="held_out", linkage=0.9)
    (place.home.releases / "ledger.jsonl").unlink(missing_ok=True)
    (place.home.root / "private" / "ledger.head").unlink(missing_ok=True)
    ended = place.run("--json")
    assert ended.exit_code == 0, ended.said
    manifest = json.loads((place.release / "manifest.json").read_text())
    rows, audit = manifest["rows"], manifest["audit"]
    assert rows["held_out"] == audit["control"] == len(people()) // 3  # a small table gives a third
    assert rows["released"] + rows["suppressed"] + rows["held_out"] == rows["source"] == len(people())
    assert len(pd.read_parquet(place.release / "data.parquet")) == rows["released"]
    assert audit["control_kind"] == "held_out"
    assert audit["is_the_release"] is True
    (bound,) = audit["bounds"]
    assert bound["holds"] is True
    assert 0 < bound["measured"] <= 0.9


@pytest.mark.parametrize(
    ("audit", "sentence"),
    [
        ({"enabled": False, "linkage": 0.1}, "a bound without an attack holds nothing"),
        ({"attribute_inference": {"visits": 0.1}}, "is no sensitive column"),
        ({"models": False, "membership_auc": 0.6}, "which audit.models switches off"),
    ],
)
def test_bounds_that_cannot_hold_are_told_before_any_work(
    published: Place, audit: dict[str, object], sentence: str
) -> None:
    ended = with_audit(published, **audit).run()
    assert ended.exit_code == 2
    assert sentence in " ".join(ended.said.split())
