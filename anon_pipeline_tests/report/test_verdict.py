"""The first screen of the report: the verdict, what it costs, and what no promise covers."""

from typing import Any

import pytest

from anon_pipeline.attack.rates import LEAK, NO_LEAK
from anon_pipeline.report import release_report, verdict
from anon_pipeline_tests.report.pages import Reader, check, finding, manifest_content, read


def test_the_verdict_says_what_was_promised_and_what_was_counted() -> None:
    text = read(manifest_content()).text
    assert "48,293 of 48,842 people are in this release. 549 were left out" in text
    assert "Each looks the same as at least 9 others on the 3 columns" in text
    for demand in manifest_content()["verified"]:
        assert demand["demand"][1:] in text
    assert "10 in the smallest class" in text
    assert "not fit" not in text.lower()


@pytest.mark.parametrize(
    ("audit", "why"),
    [(None, "since the audit is switched off"), ({"skipped": "too few people"}, "since too few people"), ({}, "off")],
)
def test_a_release_that_was_not_attacked_says_so_before_it_is_passed_on(audit: Any, why: str) -> None:
    (first, *_) = verdict.cautions(manifest_content() | {"audit": audit})
    assert first.startswith("This release was not attacked before it left") and why in first
    told = verdict.cautions(manifest_content() | {"audit": {"findings": [attack("none", 0.9, NO_LEAK)]}})
    assert not any("not attacked" in sentence for sentence in told)


@pytest.mark.parametrize(("folds", "told"), [(2, True), (4, True), (5, False), (None, False)])
def test_scores_of_few_folds_are_called_rough(folds: int | None, told: bool) -> None:
    content = manifest_content()
    content["utility"]["folds"] = folds
    sentences = [sentence for sentence in verdict.cautions(content) if "folds only" in sentence]
    assert len(sentences) == told
    assert not told or sentences[0].startswith(f"Accuracy was measured in {folds} folds only")


@pytest.mark.parametrize(("withheld", "told"), [(1.0, True), (0.9996, False)])
def test_a_column_without_any_value_is_to_be_weighed(withheld: float, told: bool) -> None:
    """A month in which the source had lost everybody's age was reported as a loss of at most 2.5 %."""
    content = manifest_content()
    content["measured"]["columns"]["age"]["withheld"] = withheld
    sentences = [
        sentence for sentence in verdict.cautions(content) if sentence.startswith("No row has a value of age:")
    ]
    assert len(sentences) == told


def test_a_failing_demand_turns_the_verdict() -> None:
    content = manifest_content()
    content["verified"][1] = finding(
        "l_diversity_income", "every class has at least 2 distinct values of income", 1.0, 7
    )
    page = read(content)
    assert page.headings_at(2)[0] == "Not fit for release"
    assert "1 in the worst class; 7 classes fail" in page.text
    assert "people are in this table" in page.text
    assert "is not to know their income for certain" not in page.text  # what would be true if it held


def test_a_withdrawn_release_says_so_first_and_why() -> None:
    page = Reader(
        release_report.render(manifest_content(), "This release was withdrawn on 2026-05-04: <someone> objected")
    )
    assert page.headings_at(2)[0] == "Withdrawn"
    assert "Withdrawn This release was withdrawn on 2026-05-04: <someone> objected" in page.text
    content = manifest_content()
    content["verified"] = []
    assert Reader(release_report.render(content, "withdrawn")).headings_at(2)[0] == "Not fit for release"


def test_the_first_screen_has_the_figures_before_and_after() -> None:
    text = read(manifest_content()).text
    first = text[: text.index("What was promised")]
    assert "people alone by the columns that others may know 0 before: 28,790" in first
    assert "chance to pick a person\u2019s row, at worst 10 % before: 100 %" in first
    assert "ROC AUC of a model trained on it 0.9276 before: 0.9292" in first
    assert "detail lost in the columns, on average 11.4 %" in first or "11.5 %" in first


def test_what_no_promise_covers_is_said_before_anything_else_is_explained() -> None:
    content = manifest_content()
    content["spec"]["columns"]["visits"] = {"role": "insensitive", "type": "numeric"}
    content["audit"] = {"findings": [attack("weak", 0.02), attack("strong", 0.31), attack("none", 0.9, NO_LEAK)]}
    page = read(content)
    weighed = page.text[page.text.index("What to weigh") : page.text.index("Risk of being found")]
    assert "2 of 3 attacks found out more about people in this release than about others" in weighed
    assert "in at most 31 % (recognised as member) of the cases." in weighed
    assert (
        "No promise protects capital_gain, and the class alone settles capital_gain for 38.3 % of the people."
        in weighed
    )
    assert "since the spec holds that nobody else knows it: visits." in weighed


def test_people_whom_sampling_left_out_are_told_in_the_verdict() -> None:
    content = manifest_content()
    content["rows"] = {"source": 48842, "sampled_out": 9768, "released": 39074, "suppressed": 0}
    text = read(content).text
    first = text[: text.index("What was promised")]
    assert "39,074 of 48,842 people are in this release. 9,768 were left out at random" in first


@pytest.mark.parametrize(("number", "told"), [(500, "about 500 people."), (None, "how many is not told")])
def test_who_has_no_target_is_told_in_the_verdict(number: int | None, told: str) -> None:
    content = manifest_content()
    content["rows"] |= {"without_target": number}
    assert f"Whoever has no value of income in the source was left out beforehand: {told}" in read(content).text


def test_who_was_scored_is_told_where_people_without_a_target_are_released() -> None:
    content = manifest_content()
    content["spec"]["missing_target"] = "release"
    rows = f"{content['utility']['rows']:,}"
    assert f"rounds that cover {rows} of the people whose income is known" in read(content).text


def test_a_check_that_had_nothing_to_check_is_no_success() -> None:
    content = manifest_content()
    content["checks"].append(check("raw_data", "has_no_person_twice", "no identifier twice", 0) | {"applies": False})
    page = read(content)
    assert page.headings_at(2)[0] == "Released"
    assert "4 of 4 did. 1 had nothing to check: has_no_person_twice." in page.text
    assert "has_no_person_twice 0 not applicable" in page.text
    failing = content["checks"][-1] | {"passed": False}
    assert (
        read(content | {"checks": [failing]}).headings_at(2)[0] == "Not fit for release"
    )  # whatever it says of itself


def test_who_answers_for_it_is_told_in_their_words() -> None:
    content = manifest_content()
    content["spec"] |= {
        "owner": "team:stewards",
        "approver": "A. Person",
        "purpose": "research",
        "recipients": ["universities", "the <public>"],
        "license": "CC BY 4.0",
    }
    text = read(content).text
    stated = "Owner team:stewards Approved by A. Person Purpose research Recipients universities; the <public> License"
    assert stated in text
    assert "Approved by" not in read(manifest_content()).text


def attack(name: str, leak: float, verdict: str = LEAK) -> dict[str, Any]:
    rate = {"successes": 1, "trials": 2, "rate": leak, "low": leak / 2, "high": 2 * leak}
    return {
        "name": name,
        "criterion": "membership",
        "attack": rate,
        "control": rate,
        "baseline": rate,
        "leak": {"leak": leak, "low": leak / 2, "high": 2 * leak},
        "verdict": verdict,
        "sentence": f"{name} works.",
        "knowledge": {"wrong": 0.0},
        "details": {},
    }


def test_every_failed_check_is_in_the_verdict_and_leads_the_table() -> None:
    content = manifest_content()
    content["checks"] += [
        check("anonymized_table", "has_foreign", "rows with a foreign value: none", 4, passed=False),
        check("raw_data", "has_broken", "something that crashed", None, passed=False, crashed=True),
    ]
    page = read(content)
    assert page.headings_at(2)[0] == "Not fit for release"
    assert "has_foreign: Rows with a foreign value: none (failed, measured: 4)" in page.text
    assert "has_broken: Something that crashed (crashed)" in page.text
    assert "4 of 6 did" in page.text
    table = page.text[page.text.index("Each of these had to pass") :]
    assert table.index("has_foreign") < table.index("has_people")


def test_a_promise_that_nobody_counted_is_broken() -> None:
    content = manifest_content()
    del content["verified"][1]
    page = read(content)
    assert page.headings_at(2)[0] == "Not fit for release"
    assert "L-diversity with column income, kind distinct, l 2: not measured" in page.text


def test_two_promises_of_one_name_need_two_counts() -> None:
    content = manifest_content()
    content["spec"]["privacy"].append({"model": "l_diversity", "column": "income", "kind": "entropy", "l": 1.5})
    assert read(content).headings_at(2)[0] == "Not fit for release"


@pytest.mark.parametrize("verified", [None, []])
def test_without_any_count_nothing_is_called_released(verified: object) -> None:
    content = manifest_content()
    content["verified"], content["spec"]["privacy"] = verified, []
    assert read(content).headings_at(2)[0] == "Not fit for release"


def test_a_check_passes_only_if_it_says_so() -> None:
    content = manifest_content()
    content["checks"][0]["passed"] = None
    assert read(content).headings_at(2)[0] == "Not fit for release"


def test_the_cost_is_told_in_words_with_intervals() -> None:
    text = read(manifest_content()).text
    assert (
        "Accuracy was 87.41 % before and 87.37 % after: no difference that can be told from chance "
        "(95 % interval \u22120.19 to +0.11 points)." in text
    )
    assert (
        "ROC AUC was 0.9292 before and 0.9276 after: a loss of 0.0016 (95 % interval \u22120.0025 to \u22120.0007)."
        in text
    )


def test_a_larger_error_is_a_loss() -> None:
    content = manifest_content()
    content["utility"]["metrics"] = {
        "mae": {
            "before": {"mean": 3.0, "low": 2.9, "high": 3.1},
            "after": {"mean": 3.2, "low": 3.1, "high": 3.3},
            "difference": {"mean": 0.2, "low": 0.1, "high": 0.3},
        }
    }
    assert "a loss of 0.2000 (95 % interval +0.1000 to +0.3000)" in read(content).text


@pytest.mark.parametrize(("waiting", "share"), [(0, None), (40, None), (60, "5.7\u00a0%"), (1000, "50\u00a0%")])
def test_many_who_are_held_back_are_not_to_be_weighed(waiting: int, share: str | None) -> None:
    """Of rotating panels many are missing, and only the sentence at the top said so."""
    content = manifest_content()
    content["rows"] = {**content["rows"], "released": 1000, "waiting": waiting}
    held_back = [sentence for sentence in verdict.cautions(content) if "are held back" in sentence]
    assert [sentence.split(" of the people")[0] for sentence in held_back] == ([] if share is None else [share])
