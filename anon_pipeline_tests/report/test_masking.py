"""Masking in words: each step with what it promises and cost, nothing claimed that was not measured."""

import copy
from typing import Any

import numpy as np
import pytest

from anon_pipeline.masking.catalog import TECHNIQUES
from anon_pipeline.report import masking as masking_report
from anon_pipeline.report.masking_map import METRES_PER_DEGREE, positions_map
from anon_pipeline_tests.report.pages import manifest_content, read
from anon_pipeline_tests.report.test_attacks import content as audited

EARTH = "earth mover's distance between ranks"


def report(technique: str, columns: list[str], **more: Any) -> dict[str, Any]:
    """The report of a step, as the manifest has it."""
    plain = {"place": "steps.0", "parameters": {}, "guarantee": "none", "facts": {}, "notes": [], "costs": {}}
    return {**plain, "technique": technique, "columns": columns, "linkage": None, **more}


def cost(changed: float, distance: float | None, correlation: float | None) -> dict[str, Any]:
    measure = None if distance is None else EARTH
    return {"changed": changed, "distance": distance, "measure": measure, "correlation": correlation}


def masking() -> list[dict[str, Any]]:
    """Steps of several kinds; to be changed freely."""
    return [
        report("round", ["age"], parameters={"to": 5, "how": "nearest"}, costs={"age": cost(0.8, 0.0171, 0.002)}),
        report(
            "pram",
            ["race"],
            parameters={"retention": 0.9, "invariant": False},
            guarantee="local DP",
            facts={"epsilon": 2.89, "categories": 3},
            costs={"race": cost(0.09, None, None)},
            linkage={"rate": 0.25, "rows": 500, "pool": 10_000},
        ),
        report("suppress_rare", ["city"], parameters={"k": 20}, guarantee="k", costs={"city": cost(0.01, 0.01, None)}),
        report("donut", ["lat", "lon"], parameters={"columns": ["lat", "lon"], "inner": 50.0, "outer": 500.0}),
        report(
            "synthesize",
            ["ill", "age"],
            parameters={"columns": ["ill"], "given": ["age"]},
            notes=["no formal guarantee: whatever"],
        ),
        report("sample", [], parameters={"columns": [], "share": 0.8}),
    ]


def words() -> masking_report.MaskingWords:
    found = masking_report.in_words(masking(), 1000)
    assert found is not None
    return found


def test_a_step_says_what_it_was_promised_and_cost() -> None:
    age, race, city, place, ill, everybody = words().steps
    assert (age.columns, age.technique, age.guarantee) == ("age", "round", "none by itself")
    assert age.parameters == ["to: 5 (the step)", "how: nearest (which multiple is taken)"]
    assert age.costs == [
        f"80\u00a0% of the cells changed; the distribution moved by 0.0171 ({EARTH}); "
        "correlations with other columns changed by at most 0.002."
    ]
    assert age.linked == ""
    assert race.guarantee.startswith(
        "local differential privacy with epsilon 2.89 per value in all releases under this"
    )
    assert "each change of either, and each other noisy column of the same person, adds its own" in race.guarantee
    assert race.linked.startswith("25\u00a0% of the rows can be linked to their original again")
    assert "500 looked for among 10,000" in race.linked
    assert "no distance" in race.costs[0] and "correlations" not in race.costs[0]
    assert race.reported == ["epsilon: 2.89", "categories: 3"]
    assert city.guarantee == "at least 20 people share what it leaves"
    assert place.columns == "lat and lon"
    assert place.parameters == [
        "inner: 50 (the least distance in metres)",
        "outer: 500 (the largest distance in metres)",
    ]
    assert everybody.columns == "the whole table"
    assert ill.notes == ["No formal guarantee: whatever."]


def test_what_has_no_formal_guarantee_is_said_before_the_steps() -> None:
    intro = " ".join(words().intro)
    assert "4 of the 6 promise nothing by themselves" in intro
    assert "Synthetic: ill. This has no formal guarantee" in intro
    without = masking_report.in_words([one for one in masking() if one["technique"] != "synthesize"])
    assert without is not None
    assert "Synthetic" not in " ".join(without.intro)


def test_a_guarantee_that_was_lost_is_not_repeated() -> None:
    """PRAM whose matrix was made from the column promises nothing, whatever its class says."""
    one = masking()[1] | {"guarantee": "none"}
    found = masking_report.in_words([one])
    assert found is not None
    assert found.steps[0].guarantee == "none as it was used here"
    assert "It promises nothing by itself" in " ".join(found.intro)


@pytest.mark.parametrize(
    ("technique", "parameters", "counted"),
    [
        ("suppress_rare", {"k": 5}, True),
        ("suppress_rare", {"k": 5, "by": "other"}, False),
        ("microaggregate", {"k": 5}, False),
        ("local_suppression", {"k": 5}, True),
        ("aggregate", {"threshold": 5}, True),
    ],
)
def test_who_lacks_a_value_counts_among_the_k_only_where_the_step_sees_to_it(
    technique: str, parameters: dict[str, Any], counted: bool
) -> None:
    """Two people without a value, beside groups of five, stay as they are and are alike to one another alone."""
    found = masking_report.in_words([report(technique, ["city"], parameters=parameters, guarantee="k")])
    assert found is not None
    each = "at least 5 people share each value that it leaves; who has none is not counted"
    assert found.steps[0].guarantee == ("at least 5 people share what it leaves" if counted else each)


def test_costs_of_a_large_table_say_that_they_are_of_a_sample() -> None:
    large = masking_report.in_words(masking(), 5_000_000)
    assert large is not None
    assert "100,000 people chosen at random" in " ".join(large.intro)
    assert "chosen at random" not in " ".join(words().intro)


@pytest.mark.parametrize("why", ["suppressed", "waiting", "sampled_out", "held_out", None])
def test_costs_say_that_they_are_of_people_who_are_not_released_too(why: str | None) -> None:
    """The lead says how many are in the release; whoever read the costs took them for those of these people."""
    content = copy.deepcopy(manifest_content()) | {"masking": masking()}
    content["rows"] |= dict.fromkeys(("suppressed", "waiting", "sampled_out", "held_out"), 0) | (
        {why: 7} if why else {}
    )
    said = "also among people who are not in the release" in read(content).text
    assert said == (why in ("suppressed", "waiting", "sampled_out"))


@pytest.mark.parametrize("nothing", [None, [], {}, "round"])
def test_without_steps_there_is_no_section(nothing: Any) -> None:
    assert masking_report.in_words(nothing) is None
    page = manifest_content() | {"masking": nothing}
    assert "What was masked" not in read(page).text


def test_the_section_stands_in_the_report_and_escapes_what_it_shows() -> None:
    content = copy.deepcopy(manifest_content()) | {"masking": masking()}
    content["masking"][0]["columns"] = ["<b>age</b>"]
    page = read(content)
    assert "What was masked" in page.text
    assert "<b>age</b>" in page.text  # as text
    assert "correlations with other columns" in page.text.lower()


def test_a_technique_of_a_later_version_is_still_told() -> None:
    found = masking_report.in_words([report("folding", ["age"], parameters={"times": [1, 2]})])
    assert found is not None
    assert (found.steps[0].technique, found.steps[0].parameters) == ("folding", ["times: 1, 2"])


@pytest.mark.parametrize("technique", sorted(TECHNIQUES))
def test_every_technique_has_words_without_any_figure(technique: str) -> None:
    found = masking_report.in_words([report(technique, ["a"])])
    assert found is not None
    assert found.steps[0].meaning


def test_a_map_shows_no_cell_of_fewer_than_k_people_and_no_count() -> None:
    latitude = np.concatenate([np.full(40, 44.9405), np.full(9, 44.9605), np.full(21, 44.9805), [np.nan]])
    longitude = np.concatenate([np.full(40, -93.2605), np.full(9, -93.3005), np.full(21, -93.2805), [-93.0]])
    found = positions_map(["lat", "lon"], (latitude, longitude), (latitude + 0.01, longitude), 10)
    assert found is not None
    assert sorted(level for *_, level in found["before"]) == [1, 2]  # 20 to 39, and 40 to 79 people; 9 are not shown
    assert len(found["after"]) == 2
    page = read(manifest_content() | {"masking": masking(), "maps": [found]})
    assert page.text.count("2 cells shown") == 2
    assert "fewer than 10 people are left empty" in page.text


@pytest.mark.parametrize("people", [0, 5], ids=["nobody", "too few"])
def test_where_nobody_may_be_shown_there_is_no_map(people: int) -> None:
    place = np.full(people, 44.9), np.full(people, -93.2)
    assert positions_map(["lat", "lon"], place, place, 10) is None


def test_a_map_of_named_cells_is_no_finer_than_they_are_and_says_so() -> None:
    latitude, longitude = np.repeat([44.905, 44.915, 44.925], 20), np.repeat([-93.205, -93.215, -93.225], 20)
    fine = positions_map(["lat", "lon"], (latitude, longitude), (latitude, longitude), 10)
    coarse = positions_map(["lat", "lon"], (latitude, longitude), (latitude, longitude), 10, 5000, "cell")
    assert fine is not None and coarse is not None
    assert fine["size"] < 0.005 and len(fine["before"]) == 3
    assert coarse["size"] * METRES_PER_DEGREE >= 5000 and len(coarse["before"]) == 1
    page = read(manifest_content() | {"masking": masking(), "maps": [coarse]})
    assert "by lat and lon, before masking, and by the cells of cell after it" in page.text


def test_no_part_of_the_report_takes_masked_people_for_the_source() -> None:
    content = manifest_content()
    plain = read(content).text
    assert "published as it is" in plain and "on the people as they are, once" in plain and "0 % is the source" in plain
    assert "after masking" not in plain and "Masked:" not in plain
    steps = [
        report("rank_swap", ["income"], costs={"income": cost(0.9, 0.0, 0.1)}),
        report("round", ["age"], costs={"age": cost(0.8, 0.0, 0.1)}),
        report("noise", ["age"], costs={"age": cost(0.7, 0.0, 0.1)}),
    ]
    text = read(content | {"masking": steps, "audit": audited()}).text
    assert "published as it is" not in text and "published after masking, without being grouped" in text
    assert "how that person is described, after masking, by" in text
    assert "on the people as they are after masking, once on them as they are released" in text
    assert "What the masking itself cost such a model is not measured." in text
    assert "0 % is the masked table itself" in text
    assert "The attackers know people as they are after masking" in text
    assert "Masked: round, noise. " in text
    assert "Masked: rank swap. Published as masking left it; a promise protects it." in text


def test_a_column_that_a_step_makes_is_told_with_its_step() -> None:
    made = report("grid_cell", ["lat", "lon"], parameters={"columns": ["lat", "lon"], "into": "cell"})
    assert masking_report.by_column([made]) == {"cell": "grid cell"}
    assert masking_report.by_column(None) == masking_report.by_column("broken") == {}
