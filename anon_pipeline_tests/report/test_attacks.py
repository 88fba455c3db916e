"""The attacks in words: what tells most comes first, nothing is hidden, nothing is claimed, and bounds fail closed."""

import copy
from typing import Any

import pytest

from anon_pipeline.attack.models_audit import FITTED, RAW, RELEASE
from anon_pipeline.attack.rates import Finding, Known, Rates, finding, known, wilson
from anon_pipeline.report import attack_words
from anon_pipeline.report import attacks as audit_report
from anon_pipeline_tests.report.pages import Reader, manifest_content, read

BOUND = {"name": "linkage", "demand": "linkage is at most 10 %", "measured": 0.09, "limit": 0.1, "holds": True}


def attack(
    name: str, criterion: Any, hits: int, others: int | None, blind: float, wrong: float = 0.0, **details: Any
) -> dict[str, Any]:
    """An attack on 1,000 people and on as many others."""
    control = None if others is None else wilson(others, 1000)
    found: Finding = finding(
        name,
        criterion,
        Known(("age", "city"), wrong),
        f"does {name}",
        Rates(wilson(hits, 1000), control, known(blind)),
        details,
    )
    return found.to_json()


def content() -> dict[str, Any]:
    """An audit with a finding of every kind; to be changed freely."""
    return {
        "people": 10_000,
        "control_kind": "twin",
        "members": 9_000,
        "control": 1_000,
        "findings": [
            attack("linkage, 2 quasi-identifiers", "linkability", 20, 0, 0.001),
            attack(
                "linkage, all quasi-identifiers",
                "linkability",
                80,
                1,
                0.001,
                expected_links=723.4,
                candidate_records={"min": 10.0, "max": 99.0},
            ),
            attack("linkage, all quasi-identifiers, 10% wrong", "linkability", 60, 1, 0.001, 0.1),
            attack("row order", "linkability", 1, 1, 0.001),
            attack("singling out, one column", "singling_out", 300, 290, 0.2),
            attack("inference: income", "inference", 850, 800, 0.75, homogeneous_groups=3, in_homogeneous_groups=0.05),
            attack("inference across groups: income", "inference", 820, 815, 0.75),
            attack("skewness: income", "inference", 600, 400, 0.24, largest_gain=0.73, groups_all_rare=0),
            attack("inference: wealth", "inference", 900, 905, 0.9),
            attack("membership in a register", "membership", 505, 495, 0.5),
        ],
        "models": {
            "members": 2000,
            "non_members": 2000,
            "membership": [membership(RAW, "lira", 0.69), membership(RELEASE, "lira", 0.51)],
            "bought": [
                {"attack": "loss_threshold", "before": 0.53, "after": 0.5, "sentence": "The error tells less."},
                {"attack": "lira", "before": 0.69, "after": 0.51, "sentence": "Shadow models tell less."},
            ],
            "inference": [attack("model_inversion", "inference", 580, 580, 0.58)],
        },
        "guide": {
            "members": 2000,
            "non_members": 2000,
            "membership": [membership(FITTED, "loss_threshold", 0.53)],
            "bought": [],
            "inference": [],
        },
    }


def membership(model: str, attack: str, auc: float) -> dict[str, Any]:
    return {
        "model": model,
        "attack": attack,
        "auc": auc,
        "auc_low": auc - 0.02,
        "auc_high": auc + 0.02,
        "leaks": auc > 0.52,
        "sentence": f"{model}: {attack} {auc}.",
    }


def words(**changes: Any) -> audit_report.AuditWords:
    found = audit_report.in_words({**content(), **changes})
    assert found is not None
    return found


def page(audit: Any, demanded: dict[str, Any] | None = None) -> Reader:
    manifest = manifest_content()
    manifest["audit"] = audit
    if demanded is not None:
        manifest["spec"]["audit"] = demanded
    return read(manifest)


def test_a_release_that_was_never_attacked_has_no_such_part() -> None:
    assert audit_report.in_words({}) is None
    for audit in (None, {}):
        assert "What attacks achieved" not in page(audit).text
    assert "What attacks achieved" not in read(manifest_content()).text


def test_it_is_said_plainly_what_a_twin_is_and_that_nobody_was_left_out() -> None:
    text = page(content()).text
    assert "A twin of this release was attacked: the same rules and the same seed" in text
    assert "9,000 of the people. The other 1,000" in text
    assert "nobody had to be left out of the release itself" in text
    assert "on a sample of 10,000 of 48,842 people" in text
    held_out = page({**content(), "control_kind": "held_out"}).text
    assert "1,000 people, drawn under the private key, were kept out of this release" in held_out
    assert "twin" not in held_out


def test_of_each_kind_the_strongest_leak_comes_first_and_nothing_is_hidden() -> None:
    told = {one.title: one for one in words().groups}
    assert list(told) == ["Linked", "Singled out", "Inferred", "Recognised as member", "Models"]
    (linked,) = told["Linked"].sentences
    assert "does linkage, all quasi-identifiers in 8" in linked
    assert len(told["Linked"].rest) == 3
    assert told["Linked"].summary == "Of 4 attacks 3 found a leak and 1 was too weak to tell."
    (inferred,) = told["Inferred"].sentences
    assert "skewness: income" in inferred
    every = [sentence for one in told.values() for sentence in one.sentences + one.rest]
    assert len(every) == len(set(every)) == len(content()["findings"]) + 2 + 3 + 1


def test_where_nothing_leaks_the_strongest_attack_speaks() -> None:
    told = {one.title: one for one in words().groups}
    assert len(told["Singled out"].sentences) == 1
    assert told["Singled out"].summary == "The one attack found none."


def test_worst_classes_are_told_by_number_only() -> None:
    numbers = [sentence.replace("\u00a0", " ") for one in words().groups for sentence in one.numbers]
    assert numbers == [
        "The fewest records among which a person cannot be told apart: 10.",
        "Links to be expected if everybody were attacked so: about 723.",
        "3 classes, with 5 % of the people, settle income.",
        "In the worst class a rare income is 73 points more frequent than in the whole table.",
    ]


def test_models_are_compared_by_the_attack_that_found_most_and_the_guide_is_named() -> None:
    models = words().groups[-1]
    assert models.sentences == [
        "Shadow models tell less.",
        "The model that guided the grouping: loss_threshold 0.53.",
    ]
    assert "The error tells less." in models.rest


def test_models_that_could_not_be_attacked_say_why() -> None:
    models = words(models={"skipped": "too few people"}, guide={"skipped": "it fails"}).groups[-1]
    assert models.sentences == [
        "Models trained anew: not attacked, since too few people",
        "The model that guided the grouping: not attacked, since it fails",
    ]


def test_every_attack_and_every_model_is_in_the_picture() -> None:
    picture = words().picture.replace("\u00a0", " ")
    rows = ["by 2 columns", "by all columns", "by all columns, 10 % wrong", "row order", "by one column"]
    rows += ["income, from its class", "income, by a model", "income, a rare value", "from a register"]
    rows += ["trained on people", "trained on a release", "the guiding model"]
    for row in rows:
        assert f">{row}<" in picture
    assert picture.count('r="5"') == len(content()["findings"]) + 3 + 1


@pytest.mark.parametrize("name", [one["name"] for one in content()["findings"]])
def test_a_label_fits_beside_its_outcome_on_a_phone(name: str) -> None:
    long = name.replace("income", "a_column_with_a_name_that_does_not_end_for_long")
    assert len(attack_words.label(long)) <= attack_words.LETTERS


def test_an_audit_that_was_skipped_says_why_and_has_no_figures() -> None:
    text = page({"people": 40, "control_kind": "twin", "findings": [], "skipped": "40 people are too few"}).text
    assert "40 people are too few." in text
    assert "regulators" not in text


@pytest.mark.parametrize("others", [None, 1000])
def test_an_attack_without_a_figure_for_its_leak_is_told_all_the_same(others: int | None) -> None:
    findings = [attack("skewness: loss", "inference", 1000, others, 0.1)]
    told = {one.name: one.measured for one in words(findings=findings).criteria}["Inference"]
    assert ("succeeds for everybody who is not in it" in told) == (others is not None)


def test_regulators_are_quoted_and_nothing_is_claimed() -> None:
    text = page(content()).text
    for name in ("Singling out", "Linkability", "Inference", "Very small risk"):
        assert name in text
    assert "Opinion 05/2014 (WP 216)" in text
    assert "45 CFR 164.514(b)(1)" in text
    assert "They are no legal opinion" in text
    assert not any(word in text for word in ("compliant", "GDPR-", "is anonymous.", "certif"))
    criteria = {one.name: one.measured.replace("\u00a0", " ") for one in words().criteria}
    assert "The strongest attack, “linkage, all quasi-identifiers”, gives away 7.9 %" in criteria["Linkability"]
    assert "picks the right record in 8 % of the cases; in 6 % with 10 % of that wrong." in criteria["Very small risk"]
    assert "No leak was found" in criteria["Singling out"]


def test_without_control_people_no_leak_is_claimed_for_a_regulator() -> None:
    alone = [attack("linkage, all quasi-identifiers", "linkability", 80, None, 0.001)]
    criteria = {one.name: one.measured for one in words(findings=alone).criteria}
    assert criteria["Linkability"].startswith("No figure:")
    assert criteria["Singling out"] == "Not attacked."


def test_a_bound_that_holds_is_shown_with_what_was_measured() -> None:
    found = page({**content(), "bounds": [BOUND]}, {"linkage": 0.1})
    assert "Linkage is at most 10 % Holds · 9 % at the upper end of the 95 % interval" in found.text
    assert found.headings_at(2)[0] == "Released"


def test_a_bound_on_an_estimate_is_not_said_to_be_on_an_upper_end() -> None:
    found = page({**content(), "bounds": [BOUND]}, {"linkage": 0.1, "bounds_on": "estimate"})
    assert "Holds · 9 % by the estimate itself, which may be too low by chance" in found.text
    assert "at the upper end of the 95 % interval" not in found.text


@pytest.mark.parametrize(
    "change", [{"holds": False}, {"measured": None}, {"measured": None, "holds": False}, {"holds": None}]
)
def test_a_bound_that_does_not_hold_or_was_not_measured_turns_the_verdict(change: dict[str, Any]) -> None:
    assert page({**content(), "bounds": [BOUND | change]}, {"linkage": 0.1}).headings_at(2)[0] == "Not fit for release"


@pytest.mark.parametrize("audit", [None, {}, {"findings": [], "skipped": "too few people"}])
def test_a_bound_that_is_demanded_but_nowhere_measured_turns_the_verdict(audit: Any) -> None:
    found = page(audit, {"linkage": None, "attribute_inference": {"income": 0.05}, "membership_auc": 0.55})
    assert found.headings_at(2)[0] == "Not fit for release"
    assert "2 bounds on attacks are demanded, and nothing was measured against them." in found.text


def test_a_spec_without_bounds_demands_nothing() -> None:
    found = page(None, {"enabled": True, "linkage": None, "attribute_inference": {}})
    assert found.headings_at(2)[0] == "Released"
    assert "attacks" not in found.text.lower()


def test_the_page_stays_whole_and_what_users_write_is_text() -> None:
    nasty = '<script>alert("x")</script>'
    audit = copy.deepcopy(content())
    audit["findings"] = [
        attack(f"inference: {nasty}", "inference", 850, 700, 0.5, homogeneous_groups=1, in_homogeneous_groups=0.1)
    ]
    found = page({**audit, "bounds": [BOUND | {"demand": nasty}]})
    assert not any(tag == "script" for tag, _ in found.tags)
    assert all("scope" in attributes for tag, attributes in found.tags if tag == "th")
    assert nasty in found.text


def test_a_row_of_figures_per_attack_in_the_order_of_the_findings() -> None:
    rows = audit_report.table(content()["findings"])
    assert [row.name for row in rows] == [one["name"] for one in content()["findings"]]
    assert rows[1].verdict == "leak"
    assert (rows[1].attack, rows[1].control) == ("8\u00a0%", "0.1\u00a0%")
    assert rows[1].leak.startswith("7.9\u00a0% (")
    assert (
        audit_report.table([attack("linkage, 2 quasi-identifiers", "linkability", 80, None, 0.5)])[0].leak == "\u2013"
    )


def test_what_singling_out_by_all_columns_means_is_told_where_it_leaks() -> None:
    def sentences(hits: int) -> str:
        leaking = content()
        leaking["findings"].append(attack("singling out, all columns", "singling_out", hits, 100, 0.1))
        words = audit_report.in_words(leaking)
        assert words is not None
        return " ".join(sentence for one in words.groups for sentence in one.sentences)

    assert "however large k is" in sentences(700)
    assert "however large k is" not in sentences(100)
