"""What the report says of further models, groups, calibration and ties, and the pictures that go with it."""

from __future__ import annotations

import copy
from typing import Any
from xml.etree import ElementTree

import pytest

from anon_pipeline.report import likeness as likeness_report
from anon_pipeline.report import likeness_chart, release_report
from anon_pipeline.report import markdown as markdown_report
from anon_pipeline.report import utility as utility_report
from anon_pipeline_tests.report.pages import manifest_content

SVG = "{http://www.w3.org/2000/svg}"


def compared(before: float, change: float, reach: float = 0.001) -> dict[str, Any]:
    """A score before, after, and its difference with an interval."""
    return {
        when: {"mean": mean, "low": mean - reach, "high": mean + reach, "per_fold": [mean] * 5}
        for when, mean in (("before", before), ("after", before + change), ("difference", change))
    }


def group(value: str, accuracy: float | None) -> dict[str, Any]:
    metrics = {"accuracy": {"difference": {"mean": accuracy}}}
    return {"column": "race", "value": value, "people": 4685, "step": 0.02, "metrics": metrics}


def likeness() -> dict[str, Any]:
    """A manifest with every part that tells how like the source the release is."""
    content = manifest_content()
    content["utility"] |= {
        "further_models": {"linear": {"roc_auc": compared(0.9065, -0.0019)}},
        "calibration": {
            "of": ">50K",
            "before": {"people": [50, 50], "predicted": [0.1, 0.8], "observed": [0.12, 0.79]},
            "after": {"people": [50, 50], "predicted": [0.2, 0.7], "observed": [0.12, 0.79]},
            "error": compared(0.0065, 0.0093),
        },
        "subgroups": [group("White", 0.0), group("Black", -0.04), group("all others", -0.02), group("few", None)],
    }
    pairs = [
        {"columns": ["age", "education"], "measure": "correlation_ratio", "before": 0.30, "after": 0.45},
        {"columns": ["age", "hours_per_week"], "measure": "pearson", "before": -0.20, "after": -0.10},
        {"columns": ["education", "income"], "measure": "cramers_v", "before": 0.36, "after": 0.361},
        {"columns": ["age", "constant"], "measure": "pearson", "before": None, "after": None},
    ]
    columns = ["age", "education", "hours_per_week", "income", "capital_gain"]
    content["measured"]["associations"] = {"columns": columns, "pairs": pairs}
    content["measured"]["marginals"] = {
        "age": {"groups": ["under 30", "30 and over", "not told"], "after": [20, 70, 10]},
        "education": {"groups": ["HS-grad", "all others"], "after": [60, 40]},
    }
    return content


def test_the_group_that_loses_is_named_in_words_with_its_step() -> None:
    introduction, *told = utility_report.group_sentences(likeness()["utility"])
    assert introduction.startswith("Of 4 groups, each alike in one column, 2 lose accuracy, some perhaps by chance.")
    assert told == [
        "race: Black (4,685 people): accuracy \u22124 points, in steps of 2 points",
        "race: all others (4,685 people): accuracy \u22122 points, in steps of 2 points",
    ]
    groups = utility_report.groups(likeness()["utility"])
    assert [(one.name, one.change) for one in groups[1:]] == [
        ("race: all others", "\u22122 points"), ("race: White", "none"), ("race: few", "not measured"),
    ]  # fmt: skip


def test_where_nobody_loses_that_is_said() -> None:
    utility = likeness()["utility"] | {"subgroups": [group("White", 0.0), group("Black", 0.02)]}
    (only,) = utility_report.group_sentences(utility)
    assert "Of 2 groups, each alike in one column, none loses accuracy by more than half of the step" in only
    assert [one.change for one in utility_report.groups(utility)] == ["none", "+2 points"]


def test_a_larger_error_is_a_loss_for_calibration() -> None:
    utility = {"task": "regression", "calibration": {"of": None, "error": compared(2.0, 0.5)}}
    assert "a loss of 0.5000" in utility_report.calibration(utility)[1]
    said = " ".join(utility_report.calibration(likeness()["utility"])).replace("\u00a0", " ")
    assert "the model says that >50K has a chance of 30 %" in said
    assert "Calibration error was 0.65 % before and 1.58 % after: a loss of 0.93 points" in said


def test_ties_are_told_by_how_much_they_changed() -> None:
    introduction, *told = likeness_report.sentences(likeness()["measured"])
    assert "Of 3 pairs the typical one has changed by 0.10, the one that changed most by 0.15." in introduction
    assert told == [
        "age and education: stronger, 0.30 before, 0.45 after (correlation ratio)",
        "age and hours_per_week: weaker, \u22120.20 before, \u22120.10 after (correlation)",
    ]
    assert likeness_report.sentences({}) == []


def test_a_tie_that_noise_may_have_changed_is_not_said_to_be_weaker() -> None:
    """In a table of 375 people whose columns have nothing to do with one another, a step of noise made a tie of .32."""

    def said(measure: str, before: float, after: float, **more: Any) -> list[str]:
        pairs = [{"columns": ["sex", "income"], "measure": measure, "before": before, "after": after}]
        return likeness_report.sentences({"associations": {"pairs": pairs, "step": 0.1}, **more})[1:]

    assert said("rank_correlation_ratio", 0.3162, 0.0, noise=0.5) == []
    assert said("rank_correlation_ratio", 0.4472, 0.0, noise=0.5) == [
        "sex and income: weaker, 0.45 before, 0.00 after (correlation ratio of ranks)"
    ]
    assert said("spearman", -0.1, 0.0, noise=0.5) == [] and said("spearman", 0.1, -0.1, noise=0.5)
    assert said("rank_correlation_ratio", 0.3162, 0.0) and said("spearman", -0.1, 0.0)


def opacities(picture: str) -> list[tuple[str, float]]:
    return [
        (one[0].attrib["class"], float(one.attrib["fill-opacity"]))
        for one in ElementTree.fromstring(picture).iter(f"{SVG}g")
    ]


def test_the_square_has_the_source_below_the_diagonal_and_the_release_above() -> None:
    picture = likeness_chart.association_chart(likeness()["measured"]["associations"])
    assert sorted(opacities(picture)) == sorted(
        [("before", 0.3), ("after", 0.45), ("before", 0.2), ("after", 0.1), ("before", 0.36), ("after", 0.36)]
    )
    tracks = [one for one in ElementTree.fromstring(picture).iter(f"{SVG}rect") if one.attrib["class"] == "track"]
    assert len(tracks) == 6  # three pairs, twice; what is published as it was is left empty


def test_of_many_columns_those_are_drawn_that_changed_most() -> None:
    names = [f"c{number}" for number in range(30)]
    pairs = [
        {"columns": [one, other], "measure": "pearson", "before": 0.0, "after": 0.01 * place}
        for place, (one, other) in enumerate(zip(names[::2], names[1::2], strict=True))
    ]
    picture = likeness_chart.association_chart({"columns": names, "pairs": pairs})
    shown = [one.text or "" for one in ElementTree.fromstring(picture).iter(f"{SVG}text")]
    assert any(text.endswith("c29") for text in shown) and not any(text.endswith("c1") for text in shown)


def test_bars_of_a_column_are_shares_on_one_scale() -> None:
    picture = likeness_chart.marginal_chart("age", likeness()["measured"]["marginals"]["age"])
    bars = [float(one.attrib["width"].rstrip("%")) for one in ElementTree.fromstring(picture).iter(f"{SVG}rect")]
    assert bars == pytest.approx([50 * 2 / 7, 50, 50 / 7], abs=0.01)
    assert "20\u00a0%" in picture


@pytest.mark.parametrize("scale", [1.0, 40_000.0])
def test_what_was_said_and_what_is_true_are_drawn_to_scale(scale: float) -> None:
    found = copy.deepcopy(likeness()["utility"]["calibration"])
    for when in ("before", "after"):
        for axis in ("predicted", "observed"):
            found[when][axis] = [0.0, *(value * scale for value in found[when][axis]), scale]
    picture = ElementTree.fromstring(likeness_chart.reliability_chart(found))
    points = [(float(one.attrib["cx"].rstrip("%")), float(one.attrib["cy"])) for one in picture.iter(f"{SVG}circle")]
    (left, bottom), (right, top) = points[0], points[3]
    assert points[1] == pytest.approx((left + 0.1 * (right - left), bottom + 0.12 * (top - bottom)), abs=0.02)


def test_the_page_and_its_markdown_have_every_part() -> None:
    page, written = release_report.render(likeness()), markdown_report.render(likeness())
    for heading in ("The same with other models", "For whom it works", "How columns hang together"):
        assert heading in page and heading in written
    assert "Each column alone" in page
    assert "0.9065 (0.9055 to 0.9075)" in written


def test_calibration_without_groups_is_told_without_a_picture() -> None:
    content = likeness()
    calibration = content["utility"]["calibration"]
    content["utility"]["calibration"] = {"of": calibration["of"], "error": calibration["error"]}
    page, picture = release_report.render(content), "what it said, and what was true"
    assert "Whether its answers can be taken at their word" in page
    assert picture not in page and picture in release_report.render(likeness())


@pytest.mark.parametrize("name", ["further_models", "calibration", "subgroups"])
def test_what_was_not_measured_is_left_out(name: str) -> None:
    content = likeness()
    content["utility"] = {key: value for key, value in content["utility"].items() if key != name} | {"x": None}
    assert "None" not in markdown_report.render(content)
    assert release_report.render(content)


def test_texts_of_users_stay_texts() -> None:
    content, nasty = likeness(), "<script>alert(1)</script>"
    content["utility"]["subgroups"][1] |= {"column": nasty, "value": nasty}
    content["utility"]["calibration"]["of"] = nasty
    content["measured"]["marginals"][nasty] = {"groups": [nasty], "after": [10]}
    content["measured"]["associations"]["columns"][0] = nasty
    content["measured"]["associations"]["pairs"][0]["columns"] = [nasty, "education"]
    assert "<script" not in release_report.render(content)
