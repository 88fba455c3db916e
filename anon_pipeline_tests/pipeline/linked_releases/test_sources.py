"""Whether a released table of groups is of the same people, although their source is written or read otherwise."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from anon_pipeline.engine.base import SourceFacts
from anon_pipeline.errors import Refused, Unavailable
from anon_pipeline.pipeline.checks.group import CHECKS, LINKED
from anon_pipeline.pipeline.execution import answer, make
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.pipeline.linked_releases.test_groups import COARSE, FINE, Place, answered, people, released

pytestmark = pytest.mark.long  # whole releases, though made in this process

TWO = ["town", "sex"]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def with_gaps(place: Place) -> pd.DataFrame:
    """Of eleven people it is not known whether they are ill."""
    gaps = people()
    gaps.loc[::37, "ill"] = None
    gaps.to_csv(place.root / "gaps.csv", index=False)
    return gaps


def test_who_has_no_target_is_no_difference_between_two_tables(place: Place) -> None:
    """The table of all, and that of those with a target: of one town less the other is who has none."""
    gaps = with_gaps(place)
    of_all = released(place.run("figures", TWO, "gaps.csv"))
    known = gaps.dropna(subset="ill").groupby(TWO).size()
    beside = pd.read_parquet(of_all.folder / "data.parquet").set_index(TWO)["people"] - known
    told = int(((beside > 0) & (beside < 10)).sum())
    assert told > 0
    gate = answered(place.run("others", TWO, "gaps.csv", missing_target="leave_out"))
    assert not gate.passed and not gate.crashed
    assert f"beside figures/{of_all.version}, of the same people" in gate.sentence
    assert isinstance(gate.measured, int) and gate.measured >= told


@pytest.mark.parametrize(
    ("written", "how", "days"),
    [({"sep": ";"}, {"delimiter": ";"}, {}), ({"decimal": ","}, {"decimal": ","}, {"format": "%d.%m.%Y"})],
)
def test_another_file_of_the_same_people_is_of_the_same_people(
    place: Place, written: dict[str, Any], how: dict[str, Any], days: dict[str, Any]
) -> None:
    """A second export of a register is written by another program, or by the same with other settings."""
    exported = people().assign(income=people()["income"] / 4, born=pd.Timestamp(2000, 1, 31))
    exported.to_csv(place.root / "people.csv", index=False)
    exported.to_csv(place.root / "again.csv", index=False, date_format=days.get("format"), **written)
    born = {"role": "insensitive", "type": "date"}
    fine = released(place.run("figures", FINE, "again.csv", how=how, more_columns={"born": born | days}))
    gate = answered(place.run("others", COARSE, more_columns={"born": born}))
    assert f"beside figures/{fine.version}, of the same people" in gate.sentence


DAYS = {"role": "insensitive", "type": "date", "format": ["%d.%m.%Y"]}


def test_so_is_one_of_which_the_candidate_reads_less(place: Place) -> None:
    """It does not say how the days are written, which it does not read, and its file is written in another way."""
    exported = people().assign(born=pd.date_range("2000-01-01", periods=400))
    for name, mark in (("people.csv", ","), ("again.csv", ";")):
        exported.to_csv(place.root / name, index=False, date_format="%d.%m.%Y", sep=mark)
    fine = released(place.run("figures", FINE, "again.csv", how={"delimiter": ";"}, more_columns={"born": DAYS}))
    gate = answered(place.run("others", COARSE, more_columns={"born": {"role": "exclude"}}))
    assert f"beside figures/{fine.version}, of the same people" in gate.sentence


def test_so_is_one_in_which_only_the_other_spec_knows_what_is_missing(place: Place) -> None:
    exported = people().assign(sex=people()["sex"].where(people().index % 50 > 0, "?"))
    for name, mark in (("people.csv", ","), ("again.csv", ";")):
        exported.to_csv(place.root / name, index=False, sep=mark)
    how = {"delimiter": ";", "missing": ["?"]}
    fine = released(place.run("figures", FINE, "again.csv", how=how))
    gate = answered(place.run("others", COARSE, of_columns={"sex": {"role": "exclude"}}))
    assert f"figures/{fine.version} is of the same people and cannot be judged: source.missing" in gate.sentence


def test_so_is_one_without_a_column_that_the_other_spec_excludes(place: Place) -> None:
    people().assign(visits=1).to_csv(place.root / "again.csv", index=False)
    fine = released(place.run("figures", FINE, "again.csv", more_columns={"visits": {"role": "exclude"}}))
    gate = answered(place.run("others", COARSE))
    assert f"beside figures/{fine.version}, of the same people" in gate.sentence


@pytest.mark.parametrize("kinds", [("csv", "parquet"), ("parquet", "csv")])
def test_so_is_one_in_which_codes_and_days_are_stored_in_another_way(place: Place, kinds: tuple[str, str]) -> None:
    """Codes are numbers in a Parquet file and texts in a CSV, days are moments, and gaps make decimals of numbers."""
    numbered = people().assign(town=people()["town"].factorize()[0], born=pd.Timestamp(2000, 1, 31))
    numbered["income"] = numbered["income"].where(numbered.index % 40 > 0).astype("Int64")
    numbered.to_parquet(place.root / "people.parquet")
    numbered.assign(income=numbered["income"].astype(float)).to_csv(place.root / "people.csv", index=False)
    columns: dict[str, Any] = {
        "of_columns": {"town": {"type": "categorical"}},
        "more_columns": {"born": {"role": "insensitive", "type": "date"}},
    }
    fine = released(place.run("figures", FINE, f"people.{kinds[0]}", **columns))
    gate = answered(place.run("others", COARSE, f"people.{kinds[1]}", **columns))
    assert f"beside figures/{fine.version}, of the same people" in gate.sentence
    assert not gate.passed and not gate.crashed


def test_a_spec_that_there_is_no_memory_to_read_by_is_not_that_of_other_people(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads more columns than the candidate, and that was enough to pass beside it."""
    released(place.run("figures", FINE))
    run = place.run("others", COARSE, of_columns={"sex": {"role": "exclude"}})
    graph, as_ever = graph_of(run.spec), run.engine.store_source
    for step in graph.steps[:3]:
        make(graph, step, run)

    def reads_little(spec: ReleaseSpec, destination: Path) -> SourceFacts:
        if "sex" in spec.stored:
            raise Unavailable("DuckDB ran out of memory")
        return as_ever(spec, destination)

    monkeypatch.setattr(run.engine, "store_source", reads_little)
    (gate,) = [one for one in answer(graph, CHECKS, run) if one.name == LINKED]
    assert not gate.passed and "cannot be judged: DuckDB ran out of memory" in gate.sentence


def test_so_is_one_with_more_columns(place: Place) -> None:
    fine = released(place.run("figures", FINE))
    people().assign(visits=1).to_csv(place.root / "again.csv", index=False)
    run = place.run("others", COARSE, "again.csv", more_columns={"visits": {"role": "insensitive"}})
    assert f"beside figures/{fine.version}, of the same people" in answered(run).sentence


INSENSITIVE = {"role": "insensitive"}


@pytest.mark.parametrize("excluded", [False, True])
def test_a_column_in_other_capitals_makes_others_no_same_people(place: Place, excluded: bool) -> None:
    """Any dataset of as many people with an `Age` was refused beside one with an `age`: "its spec cannot be read"."""
    people().assign(town="Oslo", Visits=1).to_csv(place.root / "oslo.csv", index=False)
    released(place.run("figures", FINE, "oslo.csv", more_columns={"Visits": INSENSITIVE}))
    people().assign(visits=1).to_csv(place.root / "people.csv", index=False)
    own = {"visits": {"role": "exclude"} if excluded else INSENSITIVE}
    assert answered(place.run("others", COARSE, more_columns=own)).passed


@pytest.mark.parametrize("role", ["insensitive", "exclude"])
@pytest.mark.parametrize("how", [{}, {"rename": {"visits": "VISITS"}}])
def test_the_same_people_with_a_column_in_other_capitals_are_known(
    place: Place, how: dict[str, Any], role: str
) -> None:
    """An export that writes its header in other letters is of the same people."""
    people().assign(Visits=1).to_csv(place.root / "again.csv", index=False)
    fine = released(place.run("figures", FINE, "again.csv", more_columns={"Visits": {"role": role}}))
    people().assign(visits=1).to_csv(place.root / "people.csv", index=False)
    own = how.get("rename", {}).get("visits", "visits")
    gate = answered(place.run("others", COARSE, how=how, more_columns={own: INSENSITIVE}))
    assert not gate.passed and not gate.crashed
    said = f"figures/{fine.version} is of the same people and cannot be judged: the column {own} is called Visits"
    assert said in gate.sentence


def test_a_released_table_that_was_altered_or_lost_is_not_judged_as_it_is(place: Place) -> None:
    """Without its smallest groups it would tell less than its readers have."""
    fine = released(place.run("figures", FINE))
    table = fine.folder / "data.parquet"
    pd.read_parquet(table).nlargest(3, "people").to_parquet(table, index=False)
    said = f"figures/{fine.version} is of the same people and cannot be judged: its data.parquet is not what was"
    gate = answered(place.run("others", COARSE))
    assert not gate.passed and not gate.crashed and said in gate.sentence
    table.unlink()
    gate = answered(place.run("others", COARSE))
    assert not gate.passed and not gate.crashed and said in gate.sentence


def test_a_lost_opening_of_more_people_than_there_are_here_holds_nobody_up(place: Place) -> None:
    people(900).to_csv(place.root / "many.csv", index=False)
    many = released(place.run("figures", FINE, "many.csv"))
    (place.home.private / "openings" / "figures" / f"{many.version}.json").unlink()
    with_gaps(place)
    assert answered(place.run("others", TWO, "gaps.csv", missing_target="leave_out")).passed


def test_a_source_that_changed_since_the_table_was_made_is_not_taken_for_other_people(place: Place) -> None:
    """Another table of the same people is released meanwhile, and tomorrow's people are in the file by now."""
    coarse = place.run("others", COARSE)
    assert answered(coarse).passed
    released(place.run("figures", FINE))
    people(400).assign(town="Oslo").to_csv(place.root / "people.csv", index=False)
    with pytest.raises(Refused, match="cannot be judged: the source has changed since it was read"):
        make(graph_of(coarse.spec), graph_of(coarse.spec).steps[3], coarse)
