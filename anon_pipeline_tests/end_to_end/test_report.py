"""A second release of the same people under other words of its owner: what its report and its manifest tell."""

from __future__ import annotations

import json

import pandas as pd

from anon_pipeline_tests.end_to_end.harness import Place, policy, release_folders, write_dataset
from anon_pipeline_tests.pipeline.in_steps import released_in_steps
from anon_pipeline_tests.report.pages import Reader


def test_words_of_the_owner_change_the_report_and_no_table(published: Place) -> None:
    former = published.release
    stated = {"approver": "A. Person", "purpose": "teaching", "recipients": ["everybody"], "license": "CC0"}
    write_dataset(published.dataset, spec=policy() | stated)
    released_in_steps(published)
    (folder,) = [folder for folder in release_folders(published.home, "people") if folder != former]
    before, after = (json.loads((place / "manifest.json").read_text()) for place in (former, folder))

    assert after["content_hashes"] == before["content_hashes"]
    assert {(one["part"], one["what"]) for one in after["changes"]} == {("policy", name) for name in stated}
    page = Reader((folder / "report.html").read_text(encoding="utf-8")).text
    assert "Approved by A. Person Purpose teaching Recipients everybody License CC0" in page
    assert "What changed since the release before this one" in page and "Policy, purpose \u2013 teaching" in page

    table = pd.read_parquet(folder / "data.parquet")
    for one in after["examples"]:  # whole classes of the published table, and nothing else
        written = table[list(one["recoded"])].map(
            lambda value: f"{value:g}" if isinstance(value, float) else str(value)
        )
        members = table[(written == pd.Series(one["recoded"])).all(axis=1)]
        assert len(members) == one["people"] >= 10
        assert dict(one["kept"]["ill"]["values"]) == members["ill"].value_counts().to_dict()
    (unasked,) = [check for check in after["checks"] if check["applies"] is False]
    assert unasked["name"] == "has_no_person_twice"  # nobody has an identifier
    assert "1 had nothing to check: has_no_person_twice." in page
