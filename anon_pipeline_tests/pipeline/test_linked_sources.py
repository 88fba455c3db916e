"""Whether a released table of groups is of the same people, although their source is written or read otherwise."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from anon_pipeline.errors import Refused
from anon_pipeline.pipeline.execution import make
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline_tests.pipeline.test_linked_groups import COARSE, FINE, Place, answered, people, released

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


def test_so_is_one_with_more_columns(place: Place) -> None:
    fine = released(place.run("figures", FINE))
    people().assign(visits=1).to_csv(place.root / "again.csv", index=False)
    run = place.run("others", COARSE, "again.csv", more_columns={"visits": {"role": "insensitive"}})
    assert f"beside figures/{fine.version}, of the same people" in answered(run).sentence


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
