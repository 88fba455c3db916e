"""Bounds on attacks stop a release like any other check, and control people can be kept out of it."""

import json
import stat

import pandas as pd
import pytest

from anon_pipeline_tests.end_to_end.harness import Place, full_policy, people, policy, write_dataset
from anon_pipeline_tests.pipeline.in_steps import released_in_steps
from anon_pipeline_tests.report.pages import Reader


def with_audit(place: Place, **audit: object) -> Place:
    spec = full_policy() | {"utility": policy()["utility"]}  # which nobody looks at here
    spec["audit"] = spec["audit"] | audit
    write_dataset(place.dataset, spec=spec)
    return place


def test_a_bound_that_does_not_hold_publishes_nothing(published: Place) -> None:
    before = published.releases()
    ended = with_audit(published, models=False, linkage=0.0).run()
    assert ended.exit_code == 3, ended.said
    assert ended.stdout == ""
    assert "Refused: linkage: " in ended.sentence
    assert published.releases() == before
    (report,) = (published.home.private / "refusals" / "people").iterdir()
    assert f"What to change: {report}" in ended.sentence
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    page = Reader(report.read_text(encoding="utf-8"))
    assert page.headings_at(2)[:3] == ["Not released", "What the spec says now", "What attacks achieved"]
    assert f"The release {published.release.name} stands as it was." in page.text
    assert "Raise k, or keep fewer columns as they are." in page.text
    assert "audit.linkage 0 %" in page.text
    assert not any(city in page.text for city in people()["city"].unique())


def test_people_held_out_are_in_no_release_and_the_release_itself_is_attacked(published: Place) -> None:
    place = with_audit(published.without_releases(), control="held_out", linkage=0.9)
    (place.home.releases / "ledger.jsonl").unlink(missing_ok=True)
    (place.home.root / "private" / "ledger.head").unlink(missing_ok=True)
    released_in_steps(place)
    manifest = json.loads((place.release / "manifest.json").read_text())
    rows, audit = manifest["rows"], manifest["audit"]
    third, equal_people = len(people()) // 3, int(people().value_counts(dropna=False).max())
    assert rows["held_out"] == audit["control"]
    assert third <= audit["control"] < third + equal_people  # a small table gives a third; equal people stay together
    assert rows["released"] + rows["suppressed"] + rows["held_out"] == rows["source"] == len(people())
    assert len(pd.read_parquet(place.release / "data.parquet")) == rows["released"]
    assert audit["control_kind"] == "held_out"
    assert audit["is_the_release"] is True
    (bound,) = audit["bounds"]
    assert bound["holds"] is True
    assert 0 < bound["measured"] <= 0.9
    (check,) = [one for one in manifest["checks"] if one["name"] == "linkage"]
    assert check["measured"] == bound["measured"]
    assert f"measured {100 * bound['measured']:.4g} %" in check["sentence"]
    of_people = [one for one in audit["findings"] if one["control"] and not one["name"].startswith("row order")]
    of_people = [one for one in of_people if one["criterion"] != "singling_out"]
    for one in of_people:  # numbers of people in steps of about the root of their number, shares in such steps
        assert one["control"]["trials"] % 10 == 0
        assert one["control"]["rate"] == pytest.approx(round(one["control"]["rate"], 1)), one["name"]
    assert len(of_people) >= 5


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
