"""The report of a refusal: what does not hold, what to do about it, and nothing that is another's business."""

from typing import Any

import pytest

from anon_pipeline.report import refusal as refusal_report
from anon_pipeline.report.refusal import Refusal
from anon_pipeline_tests.report import test_attacks
from anon_pipeline_tests.report.pages import Reader, check, manifest_content


def refusal(**changes: Any) -> Refusal:
    """A refusal for the sake of a bound on attacks, changed."""
    spec = manifest_content()["spec"] | {"suppression": {"limit": 0.01}, "audit": {"singling_out": 0.8}}
    failed = check("", "singling_out", "what being in it adds is at most 80 %", 0.9, passed=False)
    checks = [check("", "k_anonymity", "every class has at least 10 people", 10), failed | {"remedy": "leave it out"}]
    parts = {
        "dataset": "adult",
        "description": "people",
        "created": "2026-02-03T03:00:12+00:00",
        "where": "audit_checks",
        "reasons": [],
        "checks": checks,
        "spec": spec,
        "standing": "3f9c1a7be042",
        "audit": test_attacks.content() | {"bounds": [{"name": "singling_out"}]},
    }
    return Refusal(**parts | changes)


def page(**changes: Any) -> Reader:
    return Reader(refusal_report.render(refusal(**changes)))


def test_it_says_what_failed_and_what_to_change() -> None:
    text = page().text
    assert "Nothing was published. The release 3f9c1a7be042 stands as it was." in text
    assert "It ended in the step audit checks." in text
    assert "What being in it adds is at most 80 % Failed \u00b7 measured: 90 %" in text
    assert "Leave it out." in text
    assert "k_anonymity: Every class has at least 10 people (passed, measured: 10)" in text
    assert text.index("Leave it out") < text.index("k_anonymity: Every")


def test_it_shows_the_keys_that_decide() -> None:
    text = page().text
    assert "privacy.k_anonymity k 10" in text
    assert "privacy.l_diversity column income, kind distinct, l 2" in text
    assert "suppression.limit 1 % of the people" in text
    assert "audit.singling_out 80 %" in text


def test_a_step_that_refused_tells_why() -> None:
    text = page(checks=[], audit={}, reasons=["no grouping <holds>; lower l"], standing=None).text
    assert "No grouping <holds>; lower l" in text
    assert "No release of this dataset stands." in text
    assert "What attacks achieved" not in text


@pytest.mark.parametrize("crashed", [True, False])
def test_a_check_without_a_remedy_is_told_all_the_same(crashed: bool) -> None:
    broken = check("", "has_types", "no other type", None, passed=False, crashed=crashed)
    assert ("Crashed" if crashed else "Failed") in page(checks=[broken]).text


def test_it_needs_nothing_but_itself() -> None:
    spec = manifest_content()["spec"]
    written = refusal_report.render(Refusal("a", "", "", "release", ["no"], [], spec, None)).lower()
    assert not any(outside in written for outside in ("http://", "https://", "src=", "@import", "<script"))
