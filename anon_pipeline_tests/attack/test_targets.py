"""The people of an audit: who is behind a row, what is compared, and the defaults of an audit."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.attack import linkage, membership, targets
from anon_pipeline.attack.candidates import find_candidates
from anon_pipeline.attack.intersection import Earlier, _Table, intersection
from anon_pipeline.attack.rates import Finding
from anon_pipeline.attack.released import Knowledge
from anon_pipeline.attack.table_audit import audit_table
from anon_pipeline.attack.targets import Attacked, Tables, counts, read_attacked
from anon_pipeline.errors import InputError
from anon_pipeline_tests.attack.tables import KNOWLEDGE, people

ONE_COLUMN = Knowledge(["x"], ["s"], numeric=["x"])
TABLE = pd.DataFrame({"x": [1, 1, 2, 2], "s": ["a", "b", "a", "c"]})


def test_pairs_are_counted_and_those_of_nobody_left_out() -> None:
    rows, columns = np.array([0, 0, -1, 1, 1]), np.array([1, 1, 0, -1, 0])
    assert counts(rows, columns, (2, 2)).toarray().tolist() == [[0, 2], [1, 0]]


def test_rows_of_nobody_are_nobodys() -> None:
    it = read_attacked(Tables(TABLE, TABLE, None, np.array([0, -1, 2, 3])), ONE_COLUMN)
    assert it.identity is not None
    assert it.identity.tolist() == [0, -1, 2, 3]
    assert (it.seed, it.control) == (0, None)
    # The first person is found among two rows, the third and fourth, too; the second has no row.
    assert linkage.linkage(it, 4)[0].attack.rate == pytest.approx(3 * 0.5 / 4)
    assert linkage.linkage(it, 4)[0].baseline.rate == pytest.approx(3 / 16)
    assert linkage.linkage(it, 4)[0].details["own_record"] == 0.5
    assert [finding.details["distinct_people"] for finding in linkage.row_order(it)] == [3, 3]


@pytest.mark.long
def test_people_left_out_have_no_record_wherever_they_stand() -> None:
    for left_out in (0, 3):
        there = np.delete(np.arange(4), left_out)
        for origin in (there, None):
            it = read_attacked(Tables(TABLE.iloc[there], TABLE, TABLE.assign(x=[0, 9, 1, 2]), origin), ONE_COLUMN)
            found = linkage.linkage(it, 4)[0]
            assert found.details["candidate_records"]["max"] == 2
            for few in (1, 3):  # the released rows are of others as well
                linkage.linkage(it, few)
                intersection(it, [Earlier(TABLE)], TABLE, TABLE.assign(x=[0, 9, 1, 2]), few)


def test_without_kept_columns_nothing_is_kept() -> None:
    it = read_attacked(Tables(TABLE, TABLE), Knowledge(["x"], numeric=["x"]))
    assert (it.kept_codes.shape, it.members.kept.shape) == ((4, 0), (4, 0))
    assert it.same_kept.tolist() == [0, 0, 0, 0]


def test_a_control_table_without_rows_is_none() -> None:
    none = TABLE[:0]
    assert read_attacked(Tables(TABLE, TABLE, none), ONE_COLUMN).control is None
    for control in (none, pd.DataFrame()):
        found = audit_table(Tables(TABLE, TABLE, control), ONE_COLUMN, [Earlier(TABLE)])
        assert all(finding.control is None for finding in found)


@pytest.mark.long
def test_an_audit_compares_earlier_releases_with_control_people_too() -> None:
    """Control people have values that nobody in the original has."""
    original, control = people(60, 1), people(60, 2).assign(city=["Rom", "Ulm"] * 30)
    tables, earlier = Tables(original, original, control), [Earlier(original[:40])]
    expected = intersection(read_attacked(tables, KNOWLEDGE, 0), earlier, original, control, 50)
    assert [one for one in audit_table(tables, KNOWLEDGE, earlier, 50) if one.name == expected[0].name] == expected


def test_an_audit_tries_2000_targets_by_default() -> None:
    default = {name: given.default for name, given in inspect.signature(audit_table).parameters.items()}
    assert (default["targets"], default["seed"], default["earlier"]) == (2000, 0, ())


@pytest.mark.parametrize(
    ("origin", "message"),
    [([0, 1, 2, -2], "outside"), ([0, 1, 2, 4], "outside"), ([0, 1, 2], "origin has 3 entries")],
)
def test_an_origin_outside_of_the_original_is_refused(origin: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_attacked(Tables(TABLE, TABLE, None, np.array(origin)), ONE_COLUMN)
    with pytest.raises(InputError, match="no rows"):
        read_attacked(Tables(TABLE[:0], TABLE, None, np.array([], dtype=int)), ONE_COLUMN)


def test_wrong_cells_are_the_same_in_every_version() -> None:
    it = read_attacked(Tables(TABLE, TABLE), ONE_COLUMN)
    big = targets.People(*(np.tile(getattr(it.members, name).T, 10).T for name in it.members.__dataclass_fields__))
    believed = targets.with_wrong_cells(big, it.release.domains, 0.9, 5)
    assert "".join(map(str, believed[:, 0])) == WRONG


WRONG = "1112111121212121221121212122112222222211"


# --- linkage


def tried(names: list[str], number: int) -> list[Finding]:
    table = pd.DataFrame({name: np.arange(6) // (1 + place % 3) for place, name in enumerate(names)})
    return linkage.linkage(read_attacked(Tables(table, table), Knowledge(names, numeric=names)), number)


@pytest.mark.parametrize(
    ("columns", "sizes"),
    [(1, ["all"]), (2, ["2"]), (3, ["2", "all"]), (4, ["2", "3", "all"]), (8, ["2", "3", "4", "all"])],
)
def test_two_three_half_and_all_columns_are_reported(columns: int, sizes: list[str]) -> None:
    found = [finding.name.split()[1] for finding in tried([f"c{number}" for number in range(columns)], 6)]
    assert found == [*(["all"] if columns == 2 else sizes), "all", "all"]


def test_of_few_targets_one_is_tried_with_random_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers, attempt = [], linkage._attempt

    def watched(attacked: Attacked, some: targets.People, columns: list[int], wrong: float = 0.0) -> object:
        numbers.append(0 if some is None else len(some))
        return attempt(attacked, some, columns, wrong)

    monkeypatch.setattr(linkage, "_attempt", watched)
    tried(["a", "b", "c"], 3)
    assert set(numbers) == {0, 1, 3}


def test_a_row_that_stands_twice_is_no_step_in_the_sources_order() -> None:
    table = pd.DataFrame({"x": [1, 2, 3], "s": ["a", "b", "c"]})
    origin = np.array([0, 0, 1, 2, 1])
    whole, _ = linkage.row_order(read_attacked(Tables(table.iloc[origin], table, None, origin), ONE_COLUMN))
    assert whole.details["neighbours_in_source_order"] == 2 / 4


# --- intersection


def boxed(**columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame(columns)


def test_without_knowing_who_is_behind_a_row_one_of_equal_records_is_taken_for_the_persons() -> None:
    """Two groups fit everybody equally well: all four records are candidates, two of which have the person's value."""
    table = pd.DataFrame({"x": [1, 2, 3, 4], "s": ["a", "b", "a", "b"]})
    released = boxed(x=["[1, 4]", "[1, 4]", "[0, 5]", "[0, 5]"], s=["a", "b", "a", "b"])
    for origin, rate in ((None, 1 / 4), (np.arange(4), 1 / 4)):
        it = read_attacked(Tables(released, table, None, origin), ONE_COLUMN)
        assert (find_candidates(it.release, it.members.codes).records() == 4).all()
        (found,) = intersection(it, [Earlier(released.drop(columns="s"))], table, None, 4)
        assert found.attack.rate == rate


def test_many_people_in_few_groups_are_all_tried() -> None:
    table = pd.DataFrame({"x": np.arange(30), "s": ["a"] * 30})
    released = boxed(x=["[0, 14]"] * 15 + ["[15, 29]"] * 15, s=["a"] * 30)
    (found,) = intersection(read_attacked(Tables(released, table), ONE_COLUMN), [Earlier(released)], table, None, 30)
    assert (found.attack.trials, found.attack.rate) == (30, pytest.approx(1 / 15))
    assert found.details["smallest_group"] == 15
    assert found.details["fewer_than_smallest_group"] == 0


def test_the_smallest_group_is_that_of_the_current_release() -> None:
    table = pd.DataFrame({"x": np.arange(6), "s": list("abcdef")})
    released = boxed(x=["[0, 1]"] * 2 + ["[2, 5]"] * 4, s=list("abcdef"))
    earlier = boxed(x=["[0, 2]"] * 3 + ["[3, 5]"] * 3, s=list("abcdef"))
    (found,) = intersection(read_attacked(Tables(released, table), ONE_COLUMN), [Earlier(earlier)], table, None, 6)
    assert found.details["smallest_group"] == 2
    assert found.details["fewer_than_smallest_group"] == pytest.approx(1 / 6)  # the third person is alone
    assert (found.details["alone"], found.details["alone_without_earlier"]) == (pytest.approx(1 / 6), 0)
    assert found.details["contradicted"] == 0


def test_a_contradiction_by_an_earlier_release_is_counted_and_leaves_the_candidates() -> None:
    table = pd.DataFrame({"x": [1, 2, 3, 4], "s": ["a", "b", "c", "d"]})
    released = boxed(x=["[1, 2]", "[1, 2]", "[3, 4]", "[3, 4]"], s=list("abcd"))
    other = boxed(x=["[1, 2]", "[3, 4]"], s=["z", "c"])
    (found,) = intersection(read_attacked(Tables(released, table), ONE_COLUMN), [Earlier(other)], table, None, 4)
    assert found.details["contradicted"] == 0.5
    assert found.details["candidates_together"]["max"] == 2
    assert found.attack.rate == pytest.approx((0.5 + 0.5 + 1 + 0) / 4)


def test_people_whom_a_budget_leaves_out_once_stay_out() -> None:
    it = read_attacked(Tables(TABLE, TABLE, None, np.arange(4)), ONE_COLUMN)
    every = find_candidates(it.release, it.members.codes)
    few = find_candidates(it.release, it.members.codes[:3])
    table = _Table(it, it.members)
    assert len(table.remaining()) == 4
    for earlier in (few, every):
        table.narrow([0], [it.kept_codes[:, 0]], it.release.group, earlier)
        assert (len(table.remaining()), len(table.success()), len(table.contradicted)) == (3, 3, 3)


# --- membership


@pytest.mark.parametrize(("number", "asked", "held"), [(10, 10, 40), (100, 30, 50), (45, 30, 45)])
def test_a_register_holds_so_many_people_at_most(
    number: int, asked: int, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, scores = [], membership._scores

    def watched(it: Attacked, members: targets.People, control: targets.People) -> object:
        sizes.append((len(members), len(control)))
        return scores(it, members, control)

    monkeypatch.setattr(membership, "REGISTER", 50)
    monkeypatch.setattr(membership, "_scores", watched)
    table = people(60, 1)
    (found,) = membership.membership(read_attacked(Tables(table, table, people(30, 2)), KNOWLEDGE), number)
    assert sizes == [(held, asked)]
    assert found.attack.trials == found.control.trials == asked


@pytest.mark.parametrize(
    ("inside", "outside", "guesses"),
    [
        ([3.0, 2, 1], [0.0, 0, 0], ([1, 1, 1], [0, 0, 0])),
        ([1.0, 1], [1.0, 1], ([0.5, 0.5], [0.5, 0.5])),
        ([5.0, 1, 1], [1.0, 0, 0], ([1, 2 / 3, 2 / 3], [2 / 3, 0, 0])),
        ([0.0], [1.0], ([0], [1])),
    ],
)
def test_half_of_the_people_are_taken_for_members(
    inside: list[float], outside: list[float], guesses: tuple[list[float], list[float]]
) -> None:
    found = membership._better_half(np.array(inside), np.array(outside))
    assert found[0] == pytest.approx(guesses[0])
    assert found[1] == pytest.approx(guesses[1])
