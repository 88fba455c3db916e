"""Sentences of the report and of the dataset card claim no more safety, and no finer figures, than there are."""

from __future__ import annotations

from typing import Any

import pytest

from anon_pipeline.release.descriptors.dataset_card import render
from anon_pipeline.release.descriptors.described import Described
from anon_pipeline.report import markdown, release_report, verdict
from anon_pipeline_tests.release.lineage_facts import facts
from anon_pipeline_tests.report.pages import finding, manifest_content, read


@pytest.mark.parametrize(
    ("demand", "meaning"),
    [
        ({"model": "alpha_k_anonymity", "column": "x", "alpha": 0.99, "k": 2}, "right for at most 99 % of the class."),
        ({"model": "t_closeness", "column": "x", "t": 0.9}, "up to a distance of 0.9 (1 is the largest)."),
        ({"model": "beta_likeness", "column": "x", "beta": 8.0}, "more than 9 times as frequent in a class as"),
        ({"model": "delta_disclosure", "column": "x", "delta": 2.0, "kind": "strict"}, "x is 7.389 times as frequent"),
        (
            {"model": "delta_disclosure", "column": "x", "delta": 2.0, "kind": "observed"},
            "a class lacks is not bounded",
        ),
        ({"model": "delta_presence", "population": "p", "min": 0.0, "max": 1.0}, "0 % to 100 % are in the table."),
        ({"model": "delta_disclosure", "column": "x", "delta": 1e9, "kind": "strict"}, ""),
    ],
)
def test_a_weak_demand_is_not_told_as_a_strong_one(demand: dict[str, Any], meaning: str) -> None:
    """A t of .9, or a delta-presence from 0 to 1, allows nearly everything, which was not said.

    The attacker reads the class of a person: under delta-presence with a max of 1 they may be sure that the person is
    in the table, where the report said that this stays uncertain.
    """
    name = f"{demand['model']}_x" if "column" in demand else demand["model"]
    content = manifest_content() | {"verified": [finding(name, "the demand", 0.5)]}
    content["spec"]["privacy"] = [demand]
    (promise,) = verdict.promises(content)
    told = promise.meaning.replace("\u00a0", " ")
    assert meaning in told and bool(told) == bool(meaning)
    assert promise.holds


def test_the_attacker_of_the_table_of_risks_knows_no_kept_column() -> None:
    """Who knows a kept value, too, may find one row: the table of risks does not count such attackers."""
    text = read(manifest_content()).text
    assert "by which a person could be recognized, but no column that is kept" in text
    assert "a single person seldom shows in them" in text


def test_nothing_lost_in_coarse_steps_is_at_most_half_a_step_everywhere() -> None:
    content = manifest_content()
    loss = content["measured"]["information_loss"]
    loss.update({"mean": 0.0, "step": 0.1, "columns": dict.fromkeys(loss["columns"], 0.0)})
    assert release_report.describe(content).loss_mean.replace("\u00a0", " ") == "at most 5 %, in steps of 10 %"
    losses = release_report.draw(content).losses
    assert losses is not None and "at most 5" in losses and ">0\u00a0%<" not in losses


def test_the_card_of_a_masked_table_says_on_what_it_was_tested() -> None:
    content = facts(previous=None, description="")
    assert "Test on rows that were never anonymized" in render(Described(content, ()))
    steps = [{"technique": "noise", "columns": ["visits"], "guarantee": "none", "parameters": {}, "costs": {}}]
    card = render(Described({**content, "masking": steps}, ()))
    assert "masked in the same way, but not grouped" in card and "never anonymized" not in card


@pytest.mark.parametrize(("drawn", "share", "whom"), [(0, "10 %", "people"), (500, "20 %", "drawn people")])
def test_groups_left_out_are_a_share_of_those_who_were_counted(drawn: int, share: str, whom: str) -> None:
    """Of 1,000 people 500 were drawn, and 100 of these are in no group shown: that is not a tenth of anybody."""
    content = manifest_content() | {
        "source": {"rows": 1000},
        "rows": {"source": 1000, "sampled_out": drawn},
        "groups": {"groups": 5, "smallest": 20, "people": 900 - drawn, "people_left_out": 100, "columns": ["sex"]},
    }
    told = [(figure.value.replace("\u00a0", " "), figure.what) for figure in release_report.describe(content).figures]
    assert (share, f"of the {whom} are in no group shown") in told


def test_people_who_were_counted_coarsely_are_not_said_to_be_counted_as_they_are() -> None:
    """With coarsened columns fewer are alone than in the source: "before" is then no figure of it "as it is"."""
    told = "by their exact values more of them may be alone before"
    content = manifest_content()
    assert told not in read(content).text and told not in markdown.render(content)
    for coarsened in (["age", "born"], {"age": 64, "born": 60}):  # an older manifest says into how many bins
        content["coarsened"] = coarsened
        assert told in read(content).text and told in markdown.render(content)
        assert "these columns were coarsened first: age, born." in read(content).text
