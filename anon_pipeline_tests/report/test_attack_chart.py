"""The picture of an audit: every mark where its number is, and nothing a user writes breaks out of it."""

import math
from xml.etree import ElementTree

import pytest

from anon_pipeline.report import charts
from anon_pipeline.report.attack_chart import INSET, ChartRow, Mark, audit_chart

SVG = "{http://www.w3.org/2000/svg}"
ROW = ChartRow("by all columns", "gives away 10 %", Mark(0.5, 0.4, 0.6), Mark(0.25, 0.2, 0.3), Mark(0.1))


def elements(picture: str, tag: str, kind: str) -> list[dict[str, str]]:
    """Those of the rows: the legend's have positions in round percents or none."""
    return [one.attrib for one in ElementTree.fromstring(picture).iter(f"{SVG}{tag}") if one.attrib["class"] == kind]


def at(share: float) -> str:
    return f"{INSET + (100 - 2 * INSET) * share:.2f}%"


def test_marks_stand_at_their_shares_and_intervals_reach_from_end_to_end() -> None:
    picture = audit_chart({"Linked": [ROW]})
    assert [one["cx"] for one in elements(picture, "circle", "after")][-1] == at(0.5)
    assert [one["x"] for one in elements(picture, "rect", "tick")][-1] == at(0.1)
    interval, square = elements(picture, "rect", "before")[1:]
    assert square["x"] == at(0.25)
    assert interval["x"] == at(0.2)
    assert float(interval["width"].rstrip("%")) == pytest.approx(0.1 * (100 - 2 * INSET), abs=0.02)


def test_the_three_marks_differ_in_shape_and_not_in_colour_alone() -> None:
    picture = audit_chart({"Linked": [ROW]})
    assert {one["r"] for one in elements(picture, "circle", "after")} == {"5"}
    assert {"8"} <= {one["width"] for one in elements(picture, "rect", "before")}
    assert {one["width"] for one in elements(picture, "rect", "tick")} == {"2"}


def test_what_lies_outside_of_the_lane_stays_at_its_end() -> None:
    picture = audit_chart({"Linked": [ChartRow("a", "leak", Mark(1.4, -0.3, 2.0))]})
    assert elements(picture, "circle", "after")[-1]["cx"] == at(1)


def test_an_attack_that_was_not_tried_has_a_lane_and_words_but_no_mark() -> None:
    picture = audit_chart({"Linked": [ChartRow("by 2 columns", "nothing to attack", None, Mark(0.2), Mark(0.1))]})
    assert len(elements(picture, "circle", "after")) == 1  # the legend's
    assert "nothing to attack" in picture
    assert "by 2 columns: not measured" in (ElementTree.fromstring(picture).findtext(f"{SVG}desc") or "")


def test_without_a_control_there_is_no_square() -> None:
    assert len(elements(audit_chart({"Linked": [ChartRow("a", "leak", Mark(0.5))]}), "rect", "before")) == 1


def test_whoever_does_not_see_it_is_told_every_number() -> None:
    root = ElementTree.fromstring(audit_chart({"Linked": [ROW]}, title="Attacks"))
    assert root.attrib["role"] == "img"
    assert root.findtext(f"{SVG}title") == "Attacks"
    described = (root.findtext(f"{SVG}desc") or "").replace("\u00a0", " ")
    assert described == (
        "Linked, by all columns: 50 % (40 % to 60 %) of the people in it, 25 % (20 % to 30 %) of others, "
        "10 % by blind guess, gives away 10 %"
    )


def test_a_group_without_attacks_has_no_heading() -> None:
    picture = audit_chart({"Linked": [], "Inferred": [ROW]})
    assert "Linked" not in picture
    assert "Inferred" in picture


def test_it_stands_alone_and_leaves_no_address_inside_a_page() -> None:
    picture = audit_chart({"Linked": [ROW]})
    marks = [one for one in ElementTree.fromstring(picture).iter() if "class" in one.attrib and one.tag != f"{SVG}svg"]
    assert all(one.attrib["fill"].startswith("#") for one in marks)
    assert "http" not in charts.inline(picture)


def test_names_of_columns_are_text_and_no_markup() -> None:
    nasty = '<script>alert("1")</script>&\x00'
    picture = audit_chart({nasty: [ChartRow(nasty, nasty, Mark(0.5))]})
    assert "<script" not in picture
    ElementTree.fromstring(picture)


@pytest.mark.parametrize("rate", [None, {}, {"rate": None}, {"rate": math.nan}])
def test_what_is_no_number_is_no_mark(rate: dict[str, float] | None) -> None:
    assert Mark.of(rate) is None


def test_the_same_numbers_give_the_same_text() -> None:
    assert audit_chart({"Linked": [ROW]}) == audit_chart({"Linked": [ROW]})
