"""The report: whole, self-contained, readable by everybody, honest where something does not hold or is not known."""

import copy
import html
import itertools
import math
import re
import shlex
from typing import Any

import pytest

from anon_pipeline.cli.tables import interval
from anon_pipeline.report import groups as group_report
from anon_pipeline.report import markdown as markdown_report
from anon_pipeline.report import release_report
from anon_pipeline.report.columns import column_summaries
from anon_pipeline_tests.report.pages import check, finding, manifest_content, read


def test_the_page_has_every_section_in_order_with_the_verdict_first() -> None:
    page = read(manifest_content())
    assert page.headings_at(1) == ["adult"]
    assert page.headings_at(2) == [
        "Released",
        "Risk of being found",
        "What it cost",
        "What happened to each column",
        "What an attacker could still learn",
        "Verify and cite",
        "Checks",
        "Where it came from",
    ]


def test_headings_never_skip_a_level() -> None:
    levels = [level for level, _ in read(manifest_content()).headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(following <= level + 1 for level, following in itertools.pairwise(levels))


def test_the_page_needs_nothing_but_itself() -> None:
    page = release_report.render(manifest_content()).lower()
    for outside in ("http://", "https://", "src=", "@import", "url(", "<script", "<link", "<iframe", "srcset"):
        assert outside not in page


def test_every_link_leads_to_a_part_of_the_page_that_is_there() -> None:
    page = read(manifest_content())
    links = [attributes["href"] or "" for tag, attributes in page.tags if tag == "a"]
    places = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(links) == 7
    assert len(places) == len(set(places))
    assert {link.removeprefix("#") for link in links} <= set(places)


def test_everybody_can_read_it() -> None:
    page = read(manifest_content())
    assert ("html", {"lang": "en"}) in page.tags
    pictures = [attributes for tag, attributes in page.tags if tag == "svg"]
    assert len(pictures) == 4
    assert all(attributes.get("role") == "img" for attributes in pictures)
    assert sum(pair == ("svg", "title") for pair in page.children) == len(pictures)
    assert all("scope" in attributes for tag, attributes in page.tags if tag == "th")
    assert not any(parent == "thead" and tag == "td" for parent, tag in page.children)


@pytest.mark.parametrize("scheme", [0, 1])
def test_every_colour_of_text_stands_out_from_the_paper(scheme: int) -> None:
    palettes = re.findall(r":root \{(.*?)\}", release_report.render(manifest_content()), re.DOTALL)
    assert len(palettes) == 2
    colour = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", palettes[scheme]))
    for name in ("ink", "soft", "accent", "good", "bad"):
        assert contrast(colour[name], colour["paper"]) >= 4.5, name
    assert contrast(colour["ink"], colour["tint"]) >= 4.5
    assert contrast(colour["before"], colour["paper"]) >= 3


def contrast(one: str, other: str) -> float:
    """WCAG 2 contrast of two colours."""

    def luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_what_is_lost_is_told_with_its_steps_where_they_are_coarse() -> None:
    """Of 300 people a loss of 2 % is rounded to nothing; "0 %" read as if nothing were lost."""
    content = manifest_content()
    loss = content["measured"]["information_loss"]
    loss.update({"mean": 0.0, "step": 0.05, "columns": dict.fromkeys(loss["columns"], 0.0)})
    page = read(content)
    assert "detail lost in the columns, on average, in steps of 5 % at most 2.5 %" in page.text.replace("\u00a0", " ")
    assert {column.lost for column in column_summaries(content) if column.role == "quasi-identifier"} == {
        "at most 2.5\u00a0%"
    }
    loss["step"] = 0.005
    assert "detail lost in the columns, on average 0 %" in read(content).text.replace("\u00a0", " ")


def test_an_error_in_thousands_has_decimals_on_the_command_line() -> None:
    assert interval({"mean": 16_560.0, "low": 16_270.0, "high": 16_850.0}) == "16,560 (16,270 to 16,850)"
    assert interval({"mean": 527.5, "low": 317.0, "high": 1737.9}, sign="+") == "+527.5 (+317.0 to +1,738)"
    assert interval({"mean": -0.0123, "low": None, "high": None}, sign="+") == "-0.0123"


def test_a_column_is_told_by_its_role_and_its_steps() -> None:
    """With a name encrypted and visits swapped, neither is published as in the source."""
    content = manifest_content()
    content["spec"]["columns"] |= {
        "name": {"role": "insensitive"},
        "visits": {"role": "insensitive"},
        "shoe_size": {"role": "insensitive"},
        "passport": {"role": "identifier"},
    }
    content["masking"] = [
        step("encrypt", ["name"]),
        step("rank_swap", ["visits"]),
        step("pram", ["income"]),  # locally private: what it cost is not measured
        step("pseudonymize", ["passport"]),
        step("sample", ["shoe_size"], {"columns": ["shoe_size"], "share": 0.8}),  # by strata, which it leaves alone
    ]
    text = read(content).text
    assert "Published as in the source, since the spec holds that nobody else knows it: shoe_size." in text
    assert "Published as masking left it, without being grouped, since the spec holds that nobody else knows it" in text
    assert "name (encrypt) and visits (rank swap)." in text
    assert "Masked: encrypt. Published as masking left it." in text
    assert "income sensitive, target Masked: pram. Published as masking left it; a promise protects it." in text
    assert "shoe_size insensitive Published as in the source." in text
    assert "passport identifier Removed: it names a person." in text
    assert "capital_gain, shoe_size: published as in the source" in text
    assert "income (pram), name (encrypt), visits (rank swap): published as masking left it" in text


def step(technique: str, columns: list[str], parameters: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"technique": technique, "columns": columns, "parameters": parameters or {}, "costs": {}}


def test_hierarchies_are_named() -> None:
    content = manifest_content()
    columns = content["spec"]["columns"]
    columns["education"] |= {"hierarchy": {"file": "education.csv", "strict": True}}
    columns["age"] |= {"hierarchy": {"prefix": [3, 2]}}
    columns["hours_per_week"] |= {"levels": ["few", "many"]}
    text = read(content).text
    assert "Classes are named by the groups of education.csv. No class cuts" in text
    assert "Classes are named by the first 3 and 2 letters." in text
    assert "Its order is stated: few, many." in text


def test_published_classes_are_shown_as_a_reader_sees_them() -> None:
    content = manifest_content()
    kept = {"values": [["<=50K", 9], [None, 2], ["a", 1]], "others": 2}
    content["examples"] = [{"people": 14, "recoded": {"age": "17", "education": None}, "kept": {"income": kept}}]
    text = read(content).text
    assert "What a reader" not in read(content | {"examples": [{"people": 14}, {}]}).text  # of another version
    assert "Class of 14 people age 17 education missing income <=50K: 9; missing: 2; a: 1; 2 other values" in text


def test_what_changed_is_told_with_shares_as_percentages() -> None:
    content = manifest_content()
    content["changes"] = [
        change("people", "released", 48000, 48293),
        change("information lost", "in the mean", 0.1, 0.1145),
        change("information lost", "age", 0.1, 0.112),
        change("utility", "accuracy after", 0.87, 0.8737),
        change("utility", "roc_auc after", 0.92, 0.9276),
        change("columns", "income: role", None, "sensitive"),
        change("policy", "recipients", ["universities"], ["universities", "everybody"]),
    ]
    text = read(content).text
    assert "What changed since the release before this one" in text
    assert "People, released 48,000 48,293" in text
    assert "Information lost, in the mean 10 % 11.4 %" in text or "Information lost, in the mean 10 % 11.5 %" in text
    assert "Utility, accuracy after 87 % 87.4 %" in text
    assert "Utility, roc auc after 0.92 0.9276" in text
    assert "Policy, recipients universities universities; everybody" in text
    assert "Columns, income: role \u2013 sensitive" in text
    assert text.index("1 other change") < text.index("Information lost, age 10 % 11.2 %")
    assert "What changed since" not in read(content | {"previous": None}).text


def change(part: str, what: str, before: object, after: object) -> dict[str, Any]:
    return {"part": part, "what": what, "before": before, "after": after}


def test_people_are_counted_by_class_size_on_one_scale_only() -> None:
    page = read(manifest_content())
    assert page.text.count("100\u2013199") == 2  # once in the picture, once in its words
    alone = manifest_content()
    del alone["measured"]["risk"]
    assert "How large the classes are" in read(alone).text


@pytest.mark.parametrize("gap", [None, math.nan, math.inf, -math.inf])
def test_what_is_no_number_reads_not_measured(gap: float | None) -> None:
    content = manifest_content()
    for when in ("before", "after", "difference"):
        content["utility"]["metrics"]["roc_auc"][when] = {"mean": gap, "low": gap, "high": gap}
    content["measured"]["information_loss"]["columns"]["age"] = gap
    content["measured"]["risk"]["after"]["prosecutor"]["mean"] = gap
    content["measured"]["sensitive"]["income"]["t"] = gap
    content["checks"][0]["measured"] = gap
    text = read(content).text
    assert "ROC AUC: the difference was not measured." in text
    assert text.count("not measured") >= 7
    assert not re.search(r"\b(nan|inf|None)\b", text)


def test_a_difference_without_an_interval_does_not_invent_one() -> None:
    content = manifest_content()
    content["utility"]["metrics"]["roc_auc"]["difference"] = {"mean": -0.0016, "low": None, "high": None}
    assert "0.9276 after; how sure that difference is was not measured." in read(content).text


def test_a_measure_without_a_limit_is_not_called_unmeasured() -> None:
    assert read(manifest_content()).text.count("no limit") == 2


def test_a_single_class_is_told_in_the_singular() -> None:
    content = manifest_content()
    content["measured"]["class_sizes"]["classes"] = 1
    assert "1 class. The smallest has" in read(content).text
    assert "1 class. The smallest has" in markdown_report.render(content)


@pytest.mark.parametrize("absent", ["absent", None, {}])
@pytest.mark.parametrize(
    ("path", "words"),
    [
        (("utility",), "Accuracy of a model"),
        (("measured", "risk"), "Risk of being found"),
        (("measured", "sensitive"), "What is true of somebody"),
        (("measured", "information_loss"), "Detail lost"),
        (("measured", "class_sizes"), "The smallest has"),
        (("software",), "Packages"),
    ],
)
def test_a_part_that_is_absent_is_left_out(path: tuple[str, ...], words: str, absent: object) -> None:
    content = manifest_content()
    assert words in read(content).text
    place = content
    for name in path[:-1]:
        place = place[name]
    if absent == "absent":
        del place[path[-1]]
    else:
        place[path[-1]] = absent
    page = read(content)
    assert words not in page.text
    assert page.headings_at(2)[0] == "Released"


@pytest.mark.parametrize("name", sorted(manifest_content()))
def test_no_absent_part_breaks_the_page(name: str) -> None:
    content = manifest_content()
    del content[name]
    read(content)
    read({**content, name: None})


def test_even_an_empty_manifest_is_a_page_and_no_release() -> None:
    assert read({}).headings_at(2)[0] == "Not fit for release"


def test_what_users_write_is_text() -> None:
    nasty = '<script>alert("x")</script>'
    content = manifest_content()
    renamed = copy.deepcopy(content)
    renamed["spec"]["columns"][nasty] = {"role": "quasi_identifier", "type": "categorical", "why": nasty}
    renamed["spec"]["columns"][f"{nasty}2"] = {"role": "sensitive", "type": "categorical", "why": None}
    renamed["measured"]["information_loss"]["columns"][nasty] = 0.5
    renamed["measured"]["sensitive"][f"{nasty}2"] = renamed["measured"]["sensitive"]["capital_gain"]
    renamed["lineage"][nasty] = [f"{nasty}old"]
    renamed["description"] = renamed["dataset"] = renamed["version"] = nasty
    renamed["checks"].append(check(nasty, nasty, nasty, nasty))
    renamed["verified"].append(finding(nasty, nasty, 1.0))
    page = read(renamed)
    assert not any(tag == "script" for tag, _ in page.tags)
    assert nasty in page.text
    assert {tag for tag, _ in page.tags} == {tag for tag, _ in read(content).tags}


def test_what_is_lost_is_no_exact_figure_beside_exact_ones() -> None:
    """ "For 100 % of the people the class has one single value" stood beside 2 % that noise had made of nothing."""
    content = manifest_content()
    for noise, blurred in (([1.0, 1.0], "given noise and rounded"), (None, "rounded")):
        content["measured"]["noise"] = noise
        note = f"What is lost is counted in the source, so it is {blurred}; the rest is counted in the release."
        assert note in read(content).text
        assert note in markdown_report.render(content)
    del content["measured"]["information_loss"]
    assert "What is lost is counted" not in read(content).text


def test_every_column_has_its_role_its_fate_and_the_reason() -> None:
    text = read(manifest_content()).text
    assert (
        "age quasi-identifier 1,204 ranges, typical width 3 years; each class shows its median, or the nearest "
        "number that k people share, in steps of 1 year. "
        "For 12.4 % of the people the whole class has a single value, but for those who have none. 11.2 %"
    ) in text
    assert (
        "education quasi-identifier 97 sets of values, typically 2 values together; each class shows its most common "
        "value. For 0.4 % of the people no value is told. known to colleagues 23.1 %"
    ) in text
    assert (
        "hours_per_week quasi-identifier Each class shows its median, or the nearest number that k people share. "
        "< 0.1 %" in text
    )  # an older manifest
    assert "income sensitive, target Published as in the source; a promise protects it." in text
    assert "fnlwgt excluded Left out. a weight of the sample, nearly unique" in text
    assert "< 0.1 %" in text  # hours_per_week: not nothing


def test_ranges_are_called_what_they_are() -> None:
    content = manifest_content()
    content["spec"]["recode"]["form"] = "range"
    text = read(content).text
    assert "each class shows its interval" in text
    assert "each class shows its set of values" in text


def test_ranges_of_a_column_with_a_hierarchy_are_its_groups() -> None:
    content = manifest_content()
    content["spec"]["recode"]["form"] = "range"
    content["spec"]["columns"]["education"]["hierarchy"] = {"prefix": [2, 1]}
    content["measured"]["columns"]["education"] |= {"unlabelled": 0.64}
    text = read(content).text
    assert "each class shows its group of the hierarchy, and classes.parquet has the finer set of values. " in text
    assert "For 64 % of the people that group is everybody, *." in text
    assert "For 0.4 % of the people no value is told" not in text


@pytest.mark.parametrize(
    ("kind", "width", "told"),
    [
        ("date", 10_590, "about 29 years"),
        ("date", 1_000, "about 2.7 years"),
        ("date", 731, "about 2 years"),
        ("date", 730, "730 days"),
        ("date", 1, "1 day"),
        ("numeric", 10_590, "10,590 days"),
    ],
)
def test_wide_spans_of_dates_are_counted_in_days(kind: str, width: int, told: str) -> None:
    """A number of days stays in the unit that its spec states."""
    content = manifest_content()
    content["spec"]["columns"]["age"]["type"] = kind
    content["measured"]["columns"]["age"] |= {"width": width, "unit": "days"}
    assert f"1,204 ranges, typical width {told}; each class shows its median" in read(content).text


def test_risks_stand_before_and_after() -> None:
    text = read(manifest_content()).text
    assert "Chance to pick the right row, for the person easiest to find prosecutor, max 100 % 10 %" in text
    assert "People whose chance to be picked is above 20 % prosecutor 90.2 % 0 %" in text
    assert "journalist" not in text
    assert "marketer" not in text


def test_the_journalist_speaks_where_a_population_is_known() -> None:
    content = manifest_content()
    content["measured"]["risk"]["after"]["journalist"] = {"max": 0.02, "mean": 0.004}
    text = read(content).text
    assert "journalist, max not measured 2 %" in text


def test_a_class_that_settles_a_sensitive_column_is_said_aloud() -> None:
    text = read(manifest_content()).text
    assert "The class settles capital_gain for 38.3 % of the people: everybody in it has the same value." in text
    assert "No promise limits what a class says about capital_gain;" in text
    assert "settles income" not in text


def test_the_commands_can_be_typed_as_they_stand() -> None:
    content = manifest_content()
    content["spec"]["columns"]["it's; a column"] = {"role": "quasi_identifier"}
    text = read(content).text
    assert "anon-pipeline releases verify" in text
    command, by_manifest = (
        line for line in release_report.render(content).splitlines() if "verify data.parquet" in line
    )
    assert "anon-pipeline verify data.parquet --spec manifest.json" in by_manifest
    typed = shlex.split(html.unescape(re.sub("<.*?>", "", command)))
    columns = "age,education,hours_per_week,it's; a column"
    assert typed[:7] == ["anon-pipeline", "verify", "data.parquet", "--quasi-identifiers", columns, "--k", "10"]
    assert typed[7:] == ["--sensitive", "income,capital_gain"]


def test_readers_of_a_table_of_groups_judge_it_by_what_they_have() -> None:
    """Its page named a `release.yaml`, which is the publisher's."""
    content = manifest_content()
    content["groups"] = {"people": 100, "people_left_out": 3, "groups": 5, "smallest": 10, "columns": ["age"]}
    named = [command for command, _ in group_report.changes(content)["commands"]]
    assert named == ["anon-pipeline releases verify", "anon-pipeline verify data.parquet --spec manifest.json"]


def test_nobody_is_told_to_judge_by_a_population_that_they_do_not_have() -> None:
    content = manifest_content()
    content["spec"]["privacy"] += [{"model": "k_map", "k": 5, "population": "everybody.csv"}]
    assert "--spec manifest.json" not in release_report.render(content)


def test_hashes_and_origin_are_there() -> None:
    content = manifest_content()
    text = read(content).text
    for proof in ("d1" * 32, "c2" * 32, "5c" * 32, "9a" * 32, "ab" * 32, "0f6c2b1e", "77d0e2b61c55", "duckdb 2.0.1"):
        assert proof in text
    content["previous"] = content["runs"]["mlflow"] = None
    text = read(content).text
    assert "none, this is the first" in text
    assert "MLflow run" not in text


def test_no_epsilon_is_ever_claimed() -> None:
    text = release_report.render(manifest_content()).lower()
    assert "epsilon" not in text
    assert "\u03b5" not in text
    assert "differential" not in text


def test_the_same_manifest_gives_the_same_page() -> None:
    assert release_report.render(manifest_content()) == release_report.render(manifest_content())


def test_losses_are_drawn_in_the_order_of_the_spec() -> None:
    content = manifest_content()
    losses = content["measured"]["information_loss"]["columns"]
    content["measured"]["information_loss"]["columns"] = dict(reversed(losses.items()))
    assert release_report.render(content) == release_report.render(manifest_content())
