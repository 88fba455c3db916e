"""What kept columns tell, in words, where it is more than the classes tell."""

from typing import Any

from anon_pipeline.attack.rates import BY_KEPT_COLUMNS, Known, Rates, finding, known, wilson
from anon_pipeline.report import kept_columns
from anon_pipeline.report.attack_words import label
from anon_pipeline_tests.report.pages import manifest_content, read


def attack(name: str, hits: int, by_column: dict[str, float] | None = None) -> dict[str, Any]:
    rates = Rates(wilson(hits, 400), wilson(2, 200), known(0.01))
    return finding(name, "linkability", Known(("age",)), "links", rates, {"by_column": by_column}).to_json()


def told(*findings: dict[str, Any]) -> str:
    return " ".join(kept_columns.sentences({"findings": list(findings)})).replace("\u00a0", " ")


ALONE = attack(kept_columns.BY_CLASS, 34)
TELLS = {"visits": 0.01, "months": 0.9, "code": 0.4}


def test_the_columns_that_tell_much_are_named_with_what_lowers_it() -> None:
    text = told(ALONE, attack(BY_KEPT_COLUMNS, 290, TELLS))
    assert text.startswith("Kept columns tell what the grouping hides, above all months and code: who knows how")
    assert "in 72.5 % of the cases (67.9 % to 76.6 %), in place of 8.5 %." in text
    assert "exclude months and code, coarser values" in text and "visits" not in text


def test_where_it_is_not_told_how_much_each_tells_none_is_named() -> None:
    assert "exclude the kept columns" in told(ALONE, attack(BY_KEPT_COLUMNS, 290))


def test_nothing_is_said_where_they_tell_no_more_than_the_classes() -> None:
    assert told(ALONE, attack(BY_KEPT_COLUMNS, 38, TELLS)) == ""
    assert told(ALONE) == told(attack(BY_KEPT_COLUMNS, 290, TELLS)) == told() == ""


def test_it_stands_before_what_is_weighed_in_the_report() -> None:
    page = read(manifest_content() | {"audit": {"findings": [ALONE, attack(BY_KEPT_COLUMNS, 290, TELLS)]}})
    assert "Kept columns tell what the grouping hides, above all months and code" in page.text.replace("\u00a0", " ")


def test_the_first_figures_say_how_often_a_row_is_picked_and_not_what_the_classes_alone_allow() -> None:
    text = read(manifest_content() | {"audit": {"findings": [ALONE, attack(BY_KEPT_COLUMNS, 290, TELLS)]}}).text
    text = text.replace("\u00a0", " ").replace("\u2019", "'")
    first = "chance to pick a person's row by kept columns too, on average; at worst 10 % by their class alone 72.5 %"
    assert first in text and "row, at worst 10 %" not in text
    usual = read(manifest_content() | {"audit": {"findings": [ALONE, attack(BY_KEPT_COLUMNS, 38, TELLS)]}}).text
    assert "row, at worst 10 %" in usual.replace("\u00a0", " ")


def test_its_label_is_that_of_one_attack_among_those_that_link() -> None:
    assert label(BY_KEPT_COLUMNS) == "by all columns and kept ones"
