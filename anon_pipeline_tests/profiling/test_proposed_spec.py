"""A drafted spec refuses to be read until it is decided, whatever the columns are called, and can then be read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError
from anon_pipeline.profiling.new_dataset import profile_table
from anon_pipeline.profiling.profile import Profile
from anon_pipeline.profiling.proposal import Proposal
from anon_pipeline.profiling.proposed_spec import FOR_WHOM, propose_spec, questions
from anon_pipeline.spec import ColumnType, ReleaseSpec, Role, Source, undecided_lines
from anon_pipeline_tests.examples import times

ODD = [
    "decide",
    "target",
    "on",
    "y",
    "2020",
    "a: b",
    "# x",
    "a\nb",
    "é",
    "'",
    '"',
    "{x}",
    "null",
    "~",
    "- a",
    "a\x85b",
]
NAMES = st.sampled_from(ODD) | st.text(min_size=1, max_size=8).filter(str.strip)  # a spec refuses blank names


def proposal(name: str, role: Role, question: str | None = None) -> Proposal:
    return Proposal(name, role, ColumnType.CATEGORICAL, f"named {name}", question, 2, 0)


def profile_of(columns: list[Proposal], target: str | None) -> Profile:
    return Profile(100, 100, ("?",), tuple(columns), (), None, target)


@pytest.mark.long
@given(
    names=st.lists(NAMES, min_size=2, max_size=6, unique_by=str.casefold),
    asked=st.integers(0, 4),
    path=st.sampled_from(["../people.csv", "a b/päople.csv", "decide", "x#y.csv", "it's.csv"]),
)
@settings(max_examples=times(60))
def test_a_draft_can_be_read_before_it_is_decided_or_not_afterwards(
    names: list[str], asked: int, path: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    target, *others = names
    columns = [proposal(target, Role.SENSITIVE)]
    columns += [proposal(name, Role.QUASI_IDENTIFIER, "x" if i < asked else None) for i, name in enumerate(others)]
    found = profile_of(columns, target)
    text = propose_spec(found, "people", Source(path=path))
    file = tmp_path_factory.getbasetemp() / "release.yaml"
    open_lines = undecided_lines(text)
    assert [place for _, place in open_lines] == [one.place for one in questions(found)]
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="a person must decide line") as error:
        ReleaseSpec.load(file)
    for line, _ in open_lines:
        assert f"line {line} (" in str(error.value)
    written = yaml.safe_dump(target, default_style='"', width=10_000).strip()
    decided = text.replace("{role: decide,", "{role: quasi_identifier,").replace(
        "\ntarget: decide", f"\ntarget: {written}"
    )
    file.write_text(decided, encoding="utf-8")
    spec = ReleaseSpec.load(file)
    assert list(spec.columns) == names
    assert spec.source.path == path
    assert spec.source.missing == ("?",)
    assert spec.target == target


def test_a_column_called_decide_is_an_open_question() -> None:
    assert undecided_lines("columns:\n  decide: {role: exclude}\ntarget: 'decide'\n") == []


def test_an_open_line_is_found_at_another_place() -> None:
    text = "target: decide\ncolumns:\n  a:\n    role: decide\n  b: {role: decide}\nx: [1, decide]\n"
    found = [(1, "target"), (4, "columns.a.role"), (5, "columns.b.role"), (6, "x.1")]
    assert undecided_lines(text) == found


def test_a_spec_that_contains_itself_is_looked_at_for_ever() -> None:
    assert undecided_lines("a: &a {b: *a, c: decide}\n") == [(1, "a.c")]


def test_the_proposed_target_is_left_unprotected() -> None:
    text = propose_spec(
        profile_of([proposal("ill", Role.SENSITIVE), proposal("age", Role.QUASI_IDENTIFIER)], "ill"),
        "d",
        Source(path="p"),
    )
    assert "l_diversity: {column: ill, l: 2}" in text


@pytest.mark.parametrize(("others", "stated"), [(0.1, False), (0.0955, True), (0.003, True)])
def test_what_two_values_in_every_class_cost_is_kept_back_where_a_value_is_rare(others: float, stated: bool) -> None:
    profiled = replace(profile_of([proposal("ill", Role.SENSITIVE)], "ill"), rows=10_000, others=others)
    text = propose_spec(profiled, "d", Source(path="p"))
    people = f"Only about {round(10_000 * others):,} people have another than the most frequent one"
    assert (people in text) == stated and (", where k allows 1,000." in text) == stated
    assert "Only 3 people" in propose_spec(replace(profiled, rows=100, others=0.03), "d", Source(path="p"))


def test_no_target_is_guessed_where_there_is_none() -> None:
    text = propose_spec(profile_of([proposal("age", Role.QUASI_IDENTIFIER)], None), "d", Source(path="p"))
    assert "target: decide  # which column" in text
    assert "l_diversity" not in text and "--target" not in text
    wide = replace(profile_of([proposal("age", Role.QUASI_IDENTIFIER)], None), is_wide=True)
    assert "begin again with --target" in questions(wide)[0].question


def test_gaps_of_the_proposed_target_go_unasked() -> None:
    """What becomes of people without a target is decided by a person, before anything is read."""
    gaps = replace(proposal("ill", Role.SENSITIVE), missing=7)
    found = profile_of([gaps, proposal("age", Role.QUASI_IDENTIFIER)], "ill")
    text = propose_spec(found, "d", Source(path="p"))
    assert [place for _, place in undecided_lines(text)] == ["target", "missing_target"]
    assert [one.place for one in questions(found)] == ["target", "missing_target"]
    assert "\nmissing_target: decide  # ill is missing in 7 of 100 rows; write leave_out" in text


def test_a_sample_is_not_declared() -> None:
    found = Profile(5_000_000, 100_000, (), (proposal("age", Role.QUASI_IDENTIFIER),), (), None, None)
    assert "100,000 of 5,000,000 rows, chosen by a hash of their position" in propose_spec(found, "d", Source(path="p"))


def test_a_draft_holds_more_than_names_and_numbers(tmp_path: Path) -> None:
    text = propose_spec(
        profile_of([proposal("age", Role.QUASI_IDENTIFIER)], None), "d", Source(path="p.csv", delimiter=";")
    )
    assert "source: {path: p.csv, delimiter: ;, missing: ['?']}" in text


@pytest.mark.long
def test_the_remarks_of_a_draft_are_for_whoever_may_see_the_table_and_say_so(tmp_path: Path) -> None:
    """Who knows the town of all people but one tried each for the last, and one town alone gave these remarks."""
    towns = ["Ulm"] * 40 + ["Bonn"] * 30 + ["Kiel"] * 30
    drafts = []
    for town in ("Ulm", "Bonn", "Kiel"):
        (tmp_path / "people.csv").write_text(
            "\n".join(["town,age", *(f"{of},{30 + i % 9}" for i, of in enumerate([*towns, town]))])
        )
        profiled = profile_table(DuckDBEngine(tmp_path), tmp_path / "people.csv", Source(path="people.csv"))
        drafts.append(propose_spec(profiled, "d", Source(path="people.csv")))
    assert drafts[0] != drafts[1], "the figures of the remarks are exact"
    assert yaml.safe_load(drafts[0]) == yaml.safe_load(drafts[1]) == yaml.safe_load(drafts[2])
    assert all(draft.splitlines()[1] == FOR_WHOM and FOR_WHOM.startswith("#") for draft in drafts)
