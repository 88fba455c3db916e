"""What former releases add, in words: a demand across releases that nobody measured is a broken one."""

from typing import Any

import pytest

from anon_pipeline.cli.tables import show_release
from anon_pipeline_tests.report.pages import manifest_content, read


def followed(**measured: Any) -> dict[str, Any]:
    """A manifest of a third release in which people are followed."""
    content = manifest_content()
    content["spec"]["across_releases"] = {"k": 10, "window": 12}
    content["rows"] |= {"waiting": 7}
    content["across_releases"] = {
        "k": 10,
        "former": ["77d0e2b61c55", "1b2c3d4e5f60"],
        "unknown": [],
        "newcomers": 1250,
        "waiting": 7,
        "kept": True,
        "lost": 0.191,
        "lost_otherwise": 0.187,
        "measured": {"releases": 3, "people": 48293, "fewest": 11, "below": 0, "alone": 0} | measured,
    }
    return content


def test_the_demand_is_a_promise_beside_the_others() -> None:
    page = read(followed())
    assert page.headings_at(2)[0] == "Released"
    assert "At least 10 people share a person's class in each of 3 releases" in page.text
    assert "Holds \u00b7 at least 11 for the person with the fewest" in page.text
    assert "7 are held back until enough others can be shown with them." in page.text


def test_a_single_person_is_told_in_the_singular() -> None:
    content = followed(below=1)
    content["across_releases"] |= {"newcomers": 1, "waiting": 1}
    text = read(content).text
    assert "1 person has fewer than demanded" in text
    assert "About 1 person is new in the source." in text
    assert "1 person is held back until enough others" in text


def test_it_is_said_what_was_compared_and_what_that_cost() -> None:
    text = read(followed()).text
    assert "laid side by side with 77d0e2b61c55 and 1b2c3d4e5f60, person by person. About 1,250 people are new" in text
    assert (
        "The tree of the last release was kept: 19.1 % of what trees are fitted to varies within its leaves, a new one "
        "18.7 %." in text
    )
    assert "This release was judged alone" not in text


@pytest.mark.parametrize("measured", [{"fewest": 9}, {"below": 3}, {"fewest": None}])
def test_people_with_too_few_candidates_turn_the_verdict(measured: dict[str, Any]) -> None:
    page = read(followed(**measured))
    assert page.headings_at(2)[0] == "Not fit for release"
    assert "Whoever has the former releases, too" not in page.text


def test_a_demand_that_nobody_measured_turns_the_verdict() -> None:
    content = followed()
    content["across_releases"] = None
    assert read(content).headings_at(2)[0] == "Not fit for release"


def test_a_first_release_has_no_former_ones() -> None:
    content = followed(releases=1)
    content["across_releases"] |= {"former": [], "lost_otherwise": None}
    text = read(content).text
    assert "This is the first release in which people are followed" in text
    assert "people are new" not in text


def test_where_nobody_is_followed_the_report_says_that_releases_were_not_compared() -> None:
    assert "This release was judged alone" in read(manifest_content()).text


def test_the_command_tells_the_demand_and_who_is_not_in_the_release(capsys: pytest.CaptureFixture[str]) -> None:
    content = manifest_content()
    content["rows"] |= {"source": 50_000, "waiting": 587, "sampled_out": 900, "held_out": 120, "without_target": 100}
    content["spec"]["across_releases"] = {"k": 5, "window": 3}
    content["across_releases"] = {"measured": {"releases": 3, "fewest": 6, "below": 0}}
    show_release(content, None, new=True)
    told = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert (
        "48,293 released, 549 suppressed, 587 held back, 900 left out at random, 120 kept out for the attacks, "
        "about 100 left out without a target" in told
    )
    assert "at least 5 people share a person's class in each of 3 releases: measured at least 6 for the person" in told


def test_nothing_is_told_of_people_whom_nothing_kept_out(capsys: pytest.CaptureFixture[str]) -> None:
    show_release(manifest_content() | {"rows": {"source": 9, "released": 9, "suppressed": 0, "waiting": 0}}, None, True)
    told = capsys.readouterr().out
    assert "9 released, 0 suppressed " in told and "share a person's class" not in told
