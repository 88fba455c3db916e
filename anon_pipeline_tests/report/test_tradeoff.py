"""The trade-off's files have the same numbers, mark refused settings, and hold what a user wrote as text."""

from __future__ import annotations

import csv
import io
import json
import stat
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from anon_pipeline.errors import InputError
from anon_pipeline.learning.models import Task
from anon_pipeline.learning.scores import Estimate
from anon_pipeline.learning.tradeoff import Measured, TradeOffPoint
from anon_pipeline.learning.utility import Comparison, Utility
from anon_pipeline.report import tradeoff
from anon_pipeline.report import utility as utility_report

K, T = "privacy.k_anonymity.k", "privacy.t_closeness.t"


def utility(score: str, before: float, after: float) -> Utility:
    lost = after - before
    one = Comparison(
        Estimate(before, before - 0.01, before + 0.01, (before, before)),
        Estimate(after, after - 0.01, after + 0.01, (after, after)),
        Estimate(lost, lost - 0.005, lost + 0.005, (lost, lost)),
    )
    return Utility("linear", Task.CLASSIFICATION, 2, 100, (50, 50), (50, 50), {score: one})


MEASURED = Measured(20, 5, 0.125, 0.0, {"ill": 0.25, "pay": 0.0}, 0.2, 0.1)
POINTS = [
    TradeOffPoint({K: 5, T: 0.2}, True, measured=MEASURED, utility=utility("roc_auc", 0.9, 0.85)),
    TradeOffPoint(
        {K: 9, T: 0.2}, False, measured=replace(MEASURED, classes=9, information_lost=0.5), utility_refused="few"
    ),
    TradeOffPoint({K: 999, T: 0.2}, False, refused="the table | has 100 people"),
]


def test_the_table_has_a_row_per_setting_in_order() -> None:
    headings, rows = tradeoff.table(POINTS)
    assert [row[0] for row in rows] == [
        "k 5, t_closeness.t 0.2 *",
        "k 9, t_closeness.t 0.2",
        "k 999, t_closeness.t 0.2",
    ]
    first = dict(zip(headings, rows[0], strict=True))
    assert first["classes"] == "20"
    assert first["information lost"] == "12.5\u00a0%"
    assert first["one value only: ill"] == "25\u00a0%"
    assert first["roc_auc: difference"] == "\u22120.0500 (\u22120.0550 to \u22120.0450)"
    assert dict(zip(headings, rows[1], strict=True))["roc_auc: after"] == "-"
    assert rows[2][1:] == ["refused", *["-"] * (len(headings) - 2)]


def test_on_a_terminal_accuracy_is_one_column_with_its_interval() -> None:
    headings, rows = tradeoff.table(POINTS, brief=True)
    assert headings[-1] == "roc_auc: difference"
    assert [row[-1] for row in rows] == ["\u22120.0500 (\u22120.0550 to \u22120.0450)", "-", "-"]
    assert {len(row) for row in rows} == {len(headings)} == {len(tradeoff.table(POINTS)[0]) - 2}


def test_refusals_are_told_in_words() -> None:
    assert tradeoff.notes(POINTS) == [
        "k 999, t_closeness.t 0.2: refused; the table | has 100 people",
        "k 9, t_closeness.t 0.2: accuracy not measured; few",
    ]


def test_the_csv_has_every_number_in_full_and_nothing_where_nothing_is_known() -> None:
    first, second, third = csv.DictReader(io.StringIO(tradeoff.as_csv(POINTS)))
    assert (first[K], first[T], first["current"], first["refused"]) == ("5", "0.2", "True", "")
    assert float(first["roc_auc_difference"]) == 0.85 - 0.9
    assert float(first["roc_auc_difference_low"]) == 0.85 - 0.9 - 0.005
    assert float(first["homogeneity_ill"]) == 0.25
    assert (second["classes"], second["roc_auc_after"], second["utility_refused"]) == ("9", "", "few")
    assert (third["classes"], third["refused"]) == ("", "the table | has 100 people")


def test_the_page_is_a_table_that_no_text_breaks() -> None:
    page = tradeoff.markdown(POINTS, "people")
    lines = [line for line in page.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(POINTS)
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1
    assert "the table \\| has 100 people" in page
    assert "(frontier.svg)" in page


def test_the_picture_shows_what_is_lost_as_longer_bars() -> None:
    picture = ElementTree.fromstring(tradeoff.picture(POINTS, "people"))
    words = [one.text for one in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert "k 5, t_closeness.t 0.2 (the spec)" in words
    assert "roc_auc lost" in words
    assert "0.0500" in words
    assert any("refused" in (word or "") for word in words)


@pytest.mark.parametrize(("score", "shown"), [("roc_auc", "\u22120.0500"), ("mae", "0.0500")])
def test_a_score_of_which_small_is_good_is_lost_when_it_grows(score: str, shown: str) -> None:
    picture = tradeoff.picture([replace(POINTS[0], utility=utility(score, 0.85, 0.9))], "people")
    assert f">{shown}<" in picture


def test_a_list_of_refusals_only_and_an_empty_one_are_still_files(tmp_path: Path) -> None:
    for number, points in enumerate(([POINTS[2]], [])):
        for file in tradeoff.write(points, "people", tmp_path / str(number)):
            assert file.stat().st_size > 0


def test_the_files_are_the_owners_only(tmp_path: Path) -> None:
    files = tradeoff.write(POINTS, "people", tmp_path / "a" / "b")
    assert {file.name for file in files} == {"frontier.csv", "frontier.svg", "frontier.md"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file/out: cannot be written .*--out"):
        tradeoff.write(POINTS, "people", tmp_path / "file" / "out")


def test_json_has_no_infinity() -> None:
    odd = replace(POINTS[0], measured=replace(MEASURED, largest_risk=float("inf")))
    assert json.loads(json.dumps(tradeoff.as_json([odd]), allow_nan=False))[0]["measured"]["largest_risk"] is None


def test_small_errors_keep_their_digits() -> None:
    """Of a concentration all errors are small: 0.0000 said that there is none."""
    point = TradeOffPoint({K: 5}, False, measured=MEASURED, utility=utility("mae", 0.00002345, 0.00003))
    _, (row,) = tradeoff.table([point])
    assert row[-3:] == ["0.00002345", "0.00003000", "+0.000006550 (\u22120.0050 to +0.0050)"]
    metrics = {"mae": {"before": {"mean": 0.00002345}, "after": {"mean": 0.00003}, "difference": {"mean": 0.00000655}}}
    (score,) = utility_report.scores(metrics)
    assert (score.before[0], score.after[0], score.difference[0]) == ("0.00002345", "0.00003000", "+0.000006550")
    assert "was 0.00002345 before and 0.00003000 after" in score.sentence
