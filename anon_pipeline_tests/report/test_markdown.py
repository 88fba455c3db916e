"""The report as Markdown, read by a real parser of it: figures as in the manifest, and texts stay texts."""

import copy
import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from anon_pipeline.report import markdown as markdown_report
from anon_pipeline.visible import visible
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.report.pages import check, finding, manifest_content

#: All that GitHub's dialect has beyond the common one and that changes how a text reads.
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
PIECES = [*"|`*_#<>[]()!&~$\\-+=.1: \n\t", "a", "ä", "&lt;", "<b>", "](http://x)", "\x00", "```"]
HOSTILE = st.lists(st.sampled_from(PIECES), min_size=1, max_size=20).map("".join)


def tokens(written: str) -> list[Token]:
    return [one for block in PARSER.parse(written) for one in [block, *(block.children or [])]]


def shape(written: str) -> list[str]:
    """What a Markdown text is made of, without its texts."""
    return [one.type for one in tokens(written) if one.type not in ("text", "inline", "softbreak", "text_special")]


def shown(written: str) -> str:
    return "".join(one.content for one in tokens(written) if one.type in ("text", "code_inline"))


def plain(words: str) -> str:
    return " ".join(visible(words).split())


@given(HOSTILE)
def test_any_text_is_read_as_it_was_written_wherever_it_stands(words: str) -> None:
    if not plain(words):
        return
    written = markdown_report.text(words)
    assert shown(written) == plain(words)
    assert shape(written) == ["paragraph_open", "paragraph_close"]
    for place in ("# {}", "- {}", "| a | b |\n| --- | --- |\n| {} | c |"):
        assert plain(words) in shown(place.format(written))
        assert shape(place.format(written)) == shape(place.format("x"))


@given(HOSTILE)
def test_any_name_of_a_column_is_code_and_nothing_else(words: str) -> None:
    if not plain(words):
        return
    cell = markdown_report.code(words).replace("|", "\\|")
    place = "| a | b |\n| --- | --- |\n| {} | c |"
    assert shape(place.format(cell)) == shape(place.format("`x`"))
    assert plain(words) in shown(place.format(cell))


@settings(max_examples=times(15))
@given(HOSTILE)
def test_what_users_write_adds_nothing_but_text_to_the_report(words: str) -> None:
    content = manifest_content()
    tame, wild = with_texts(content, "tame"), with_texts(content, f"tame{words}tame")
    assert shape(markdown_report.render(wild)) == shape(markdown_report.render(tame))


def with_texts(content: dict[str, Any], words: str) -> dict[str, Any]:
    written = copy.deepcopy(content)
    columns = written["spec"]["columns"]
    columns[words] = {"role": "quasi_identifier", "type": "categorical", "why": words}
    columns[f"{words}2"] = {"role": "sensitive", "type": "categorical", "why": None}
    written["measured"]["sensitive"][f"{words}2"] = written["measured"]["sensitive"]["capital_gain"]
    written["description"] = written["dataset"] = written["version"] = words
    written["checks"].append(check(words, words, words, words))
    written["verified"].append(finding(words, words, 1.0))
    return written


def test_the_figures_are_those_of_the_manifest() -> None:
    content = manifest_content()
    read = shown(markdown_report.render(content))
    assert "48,293 of 48,842 people are in this release." in read
    assert "Every class has at least 10 people: holds, 10 in the smallest class (k-anonymity)." in read
    assert "people alone by the columns that others may know28,7900" in read  # three cells
    assert "ROC AUC (0.5 is guessing, 1 is perfect ranking)0.9292 (0.9262 to 0.9322)0.9276 (0.9245 to 0.9307)" in read
    assert "1,204 ranges, typical width 3 years" in read
    assert all(value in read for value in content["content_hashes"].values())


def test_every_table_has_as_many_cells_in_every_row() -> None:
    content = manifest_content()
    content["spec"]["columns"]["a|b"] = {"role": "sensitive", "type": "numeric"}
    content["measured"]["sensitive"]["a|b"] = content["measured"]["sensitive"]["income"]
    rows = [line.replace("\\|", "") for line in markdown_report.render(content).splitlines() if line.startswith("|")]
    for row, following in itertools.pairwise(rows):
        if "---" in following or "--:" in following:
            width = row.count("|")
        assert row.count("|") == width


def test_what_does_not_hold_leads() -> None:
    content = manifest_content()
    content["verified"][1] = finding("l_diversity_income", "every class has at least 2 incomes", 1.0, 7)
    written = markdown_report.render(content)
    assert "## ❌ Not fit for release" in written
    assert "**does not hold**, 1 in the worst class; 7 classes fail" in written
    withdrawn = markdown_report.render(manifest_content(), "This release was withdrawn: a person objected")
    assert withdrawn.index("## ❌ Withdrawn") < withdrawn.index("**This release was withdrawn: a person objected**")


@pytest.mark.parametrize("name", [*sorted(manifest_content()), "all"])
def test_an_absent_part_is_left_out_and_breaks_nothing(name: str) -> None:
    content = {} if name == "all" else {key: value for key, value in manifest_content().items() if key != name}
    written = markdown_report.render(content)
    assert written.endswith("\n")
    assert "None" not in written
    assert "\n\n\n" not in written
