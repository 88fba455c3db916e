"""Singling out in words: column, trials, interval and remedy, beside the promise and beside the other attack."""

from typing import Any

from anon_pipeline.attack.rates import Known, Rates, finding, known, wilson
from anon_pipeline.report import singled_out
from anon_pipeline_tests.report.pages import manifest_content, read


def attack(name: str, hits: int, trials: int, others: int, by_column: dict[str, float] | None) -> dict[str, Any]:
    rates = Rates(wilson(hits, trials), wilson(others, trials), known(0.01))
    details = {} if by_column is None else {"by_column": by_column}
    return finding(f"singling out, {name}", "singling_out", Known(("age",)), "isolates", rates, details).to_json()


def told(*findings: dict[str, Any]) -> str:
    content = manifest_content() | {"audit": {"findings": list(findings)}}
    return " ".join(singled_out.sentences(content)).replace("\u00a0", " ")


ONE = attack("one column", 14, 14, 0, {"visits": 13, "age": 1})
ALL = attack("all columns", 223, 400, 48, {"income": 0.0, "capital_gain": 0.7, "visits": 0.9})


def test_all_that_one_needs_to_judge_it_is_in_one_place() -> None:
    text = told(ONE, ALL)
    assert text.startswith("Nobody is alone by the 3 columns that others may know. Together with the 2")
    assert "By one value of visits and age, 14 of 14 conditions tried were met by exactly one person (100 %, " in text
    assert "95 % interval 78.5 to 100 %); being in the release adds 100 % (" in text
    assert "above all of visits and capital_gain, 223 of 400 conditions tried" in text
    assert text.index("223 of 400") < text.index("14 of 14")  # the one that was tried more often
    assert "coarser values of visits, capital_gain and age by a masking step" in text


def test_a_number_that_is_told_in_steps_is_told_as_about_so_many() -> None:
    content = manifest_content() | {"audit": {"findings": [ALL], "control_kind": "held_out"}}
    assert "about 223 of 400 conditions tried" in " ".join(singled_out.sentences(content))
    assert "about" not in told(ALL)


def test_an_older_release_that_names_no_column_is_told_without() -> None:
    text = told(attack("all columns", 223, 400, 48, None))
    assert "By a class and kept values, 223 of 400 conditions" in text
    assert "coarser values of the kept columns" in text


def test_where_nobody_is_isolated_more_than_others_nothing_is_said() -> None:
    assert told(attack("all columns", 48, 400, 48, {"visits": 0.1})) == ""
    assert told() == ""


def test_nobody_is_said_to_be_hidden_where_somebody_stands_alone() -> None:
    content = manifest_content() | {"audit": {"findings": [ALL]}}
    content["measured"]["risk"]["after"]["unique_records"] = 3
    assert not any("Nobody" in sentence for sentence in singled_out.sentences(content))


def test_it_stands_in_the_verdict() -> None:
    page = read(manifest_content() | {"audit": {"findings": [ALL]}}).text
    assert "223 of 400" in page[page.index("What to weigh") : page.index("Risk of being found")]
