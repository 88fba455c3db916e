"""What is just enough and just too little: of people, texts, sizes, and of what may be left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.anonymize import anonymizer, criterion, encoding, enforce
from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.chance import Chance
from anon_pipeline.anonymize.classes import information_loss, members, sizes
from anon_pipeline.anonymize.enforce import LARGEST, chance_to_stay, share_whole
from anon_pipeline.anonymize.hierarchy import Calendar, Prefixes
from anon_pipeline.anonymize.ladder import all_of
from anon_pipeline.errors import InputError
from anon_pipeline.privacy.k_anonymity import KAnonymity
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Cells, Domain
from anon_pipeline_tests.people import KEY


def counted(frame: pd.DataFrame) -> Cells:
    learned = [encoding.learn_domain(str(name), frame[name]) for name in frame]
    codes = np.stack([code for _, code in learned], axis=1)
    return encoding.count_cells(tuple(domain for domain, _ in learned), codes, np.zeros((len(frame), 1)))[0]


@pytest.mark.parametrize(("texts", "rows", "taken"), [(30, 40, True), (31, 40, False), (31, 62, True), (31, 61, False)])
def test_texts_are_grouped_unless_more_than_thirty_are_more_than_half_of_the_people(
    texts: int, rows: int, taken: bool
) -> None:
    frame = pd.DataFrame({"street": [f"street {number % texts}" for number in range(rows)]})
    if taken:
        assert AnonymizerTree(k=5).fit(frame).sizes_.sum() == rows
    else:
        with pytest.raises(InputError, match=f"street has {texts} different texts in {rows} rows: nearly everyone"):
            AnonymizerTree(k=5).fit(frame)


def test_times_of_day_are_shortened_to_the_hour() -> None:
    """They were told to be made numeric, which the next run refused: the source holds TIME."""
    cells = counted(pd.DataFrame({"came": [f"12:{number:02}:00" for number in range(31)]}))
    times = replace(cells, domains=(replace(cells.domains[0], storage="TIME"),))
    with pytest.raises(InputError, match=r"one; shorten it to its hour \(the step prefix, length: 2\) or exclude"):
        AnonymizerTree(k=5)._check_texts(times)


@pytest.mark.parametrize(("most", "taken"), [(50, True), (49, False)])
def test_the_most_texts_are_taken(monkeypatch: pytest.MonkeyPatch, most: int, taken: bool) -> None:
    monkeypatch.setattr(anonymizer, "MOST_TEXTS", most)
    frame = pd.DataFrame({"zip": [f"{number // 4}" for number in range(200)]})
    if taken:
        assert AnonymizerTree(k=5).fit(frame).sizes_.min() >= 5
    else:
        with pytest.raises(InputError, match=f"more than the {most} that can be grouped"):
            AnonymizerTree(k=5).fit(frame)


def test_a_table_of_k_people_is_a_class_and_one_of_fewer_is_refused() -> None:
    frame = pd.DataFrame({"age": [1, 2, 3, 4]})
    assert AnonymizerTree(k=4).fit(frame).sizes_.tolist() == [4]
    assert AnonymizerTree(k=4).fit_cells(counted(frame)).sizes_.tolist() == [4]
    for fit in (lambda: AnonymizerTree(k=5).fit(frame), lambda: AnonymizerTree(k=5).fit_cells(counted(frame))):
        with pytest.raises(InputError, match="the table has 4 rows, fewer than k = 5"):
            fit()


def test_a_table_of_as_many_tuples_as_are_refined_is_refined(caplog: pytest.LogCaptureFixture) -> None:
    frame = pd.DataFrame({"age": np.random.default_rng(0).integers(0, 500, 60)})
    cells = counted(frame)
    people = encoding.count_sensitive(cells, np.zeros(0, dtype=np.int64), None)
    number, found = len(cells.counts), {}
    for refine in (0, number - 1, number):
        with caplog.at_level("INFO"):
            caplog.clear()
            found[refine] = AnonymizerTree(k=4, refine=refine).repair_of(cells, people).class_of_cell.tolist()
        assert ("classes stay as the tree has them" in caplog.text) == (refine == number - 1)
    assert found[number] != found[number - 1] == found[0]
    whole = AnonymizerTree(k=4).repair_of(cells, people)
    assert found[number] == whole.class_of_cell.tolist()
    assert whole.mixes and not AnonymizerTree(k=4, spread=0).repair_of(cells, people).mixes
    assert len(whole.outputs) == 0 and whole.least == 4 and replace(whole, demands=[]).least == 1
    assert replace(whole, demands=[KAnonymity(k=4), KAnonymity(k=9)]).least == 9


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_number_is_at_most_ten_to_the_eighteen(sign: int) -> None:
    encoding.check_frame(pd.DataFrame({"x": [1.0, sign * 1e18]}))
    with pytest.raises(InputError, match=r"the column x holds infinity or numbers beyond 1e\+18"):
        encoding.check_frame(pd.DataFrame({"x": [1.0, sign * np.nextafter(1e18, 2e18)]}))


def test_a_column_that_is_only_of_one_kind_of_objects_is_read_where_that_kind_is_known() -> None:
    for readable in (["a", "b"], [True, False], [None, None]):
        encoding.check_frame(pd.DataFrame({"x": pd.Series(readable, dtype=object)}))
    for unreadable in ([1, 2], [0.5, 0.25], [pd.Timestamp(0), pd.Timestamp(1)]):
        with pytest.raises(InputError, match=r"the column x holds .* objects"):
            encoding.check_frame(pd.DataFrame({"x": pd.Series(unreadable, dtype=object)}))
    for mixed in (["a", 1], [True, "a"]):
        with pytest.raises(InputError, match="the column x mixes types"):
            encoding.check_frame(pd.DataFrame({"x": pd.Series(mixed, dtype=object)}))
    with pytest.raises(InputError, match="the columns a, b stand twice"):
        encoding.check_frame(pd.DataFrame([[1, 2, 3, 4, 5]], columns=["b", "a", "c", "b", "a"]))
    for frame in (pd.DataFrame({0: [1]}), pd.DataFrame({"a": [1], 0: [1]}), pd.DataFrame(index=[1])):
        with pytest.raises(InputError, match="the table must have columns, each with a text as its name"):
            encoding.check_frame(frame)


def test_sensitive_values_are_counted_by_cell_with_the_missing_ones_first() -> None:
    frame = pd.DataFrame({"age": [1, 1, 2, 2, 2]})
    learned, codes = encoding.learn_domain("age", frame["age"])
    cells, cell = encoding.count_cells((learned,), codes[:, None], np.zeros((5, 1)))
    others = pd.DataFrame({"ill": ["flu", None, "flu", "flu", None], "wage": [3, 1, 1, 1, 3]})
    found = encoding.count_sensitive(cells, cell, others, ["ill"])
    assert {name: column.values for name, column in found.sensitive.items()} == {"ill": (None, "flu"), "wage": (1, 3)}
    assert found.sensitive["ill"].counts.toarray().tolist() == [[1, 1], [1, 2]]
    assert found.sensitive["wage"].counts.toarray().tolist() == [[1, 1], [2, 1]]
    assert [(column.ordered, column.missing_is_a_value) for column in found.sensitive.values()] == [
        (False, True),
        (True, False),
    ]
    assert encoding.count_sensitive(cells, cell, None).sensitive == {}


@pytest.mark.parametrize(
    ("can", "held", "number", "nearly", "chance", "again"),
    [
        (True, True, 1, True, 0.4, 0.98),
        (True, True, 2, True, 0.4, 0.98),
        (True, True, 2, False, 0.02, 0.02),
        (True, True, 16, True, 0.4 * 0.125**0.3, 0.98),
        (True, True, LARGEST, False, 0.02 * (2 / LARGEST) ** 0.3, 0.02 * (2 / LARGEST) ** 0.3),
        (True, True, LARGEST + 1, True, 0.04, 0.98),
        (True, True, LARGEST + 1, False, 0.0008, 0.0008),
        (True, False, 2, True, 0.0, 0.0),
        (False, True, 2, True, 1.0, 1.0),
        (False, False, 99, False, 1.0, 1.0),
    ],
)
def test_the_chance_of_a_union_to_stay(
    can: bool, held: bool, number: int, nearly: bool, chance: float, again: float
) -> None:
    """In a first release, and where its people were one class of the former release."""
    union = np.array([can]), np.array([held]), np.array([number]), np.array([nearly])
    found = [float(chance_to_stay(*union, np.array([together]))[0]) for together in (False, True)]
    assert found == pytest.approx([chance, again])


@pytest.mark.parametrize(
    ("can", "classes", "nearly", "all_nearly", "chance"),
    [
        (True, 2, True, True, 0.3),
        (True, LARGEST, True, False, 0.15),
        (True, LARGEST + 1, True, False, 0.3),
        (True, LARGEST + 1, False, False, 0.15),
        (False, 2, True, True, 0.15),
        (False, LARGEST + 1, True, True, 0.15),
    ],
)
def test_the_chance_of_a_union_to_stay_whole(
    can: bool, classes: int, nearly: bool, all_nearly: bool, chance: float
) -> None:
    union = np.array([can]), np.array([classes]), np.array([nearly]), np.array([all_nearly])
    assert share_whole(*union).tolist() == [chance]


def test_a_union_is_marked_where_all_its_parts_are() -> None:
    marked, above = np.array([True, True, False, True, False]), np.array([0, 0, 1, 1, 2])
    assert all_of(marked, above, 4).tolist() == [True, False, False, True]


@pytest.mark.parametrize(
    ("people", "suppressible", "group"),
    [
        ({20: (30, "flu"), 70: (50, "cold")}, 80, [-1, 0]),  # never all; whom to leave out costs least comes first
        ({20: (30, "flu"), 70: (50, "cold")}, 30, [-1, 0]),
        ({20: (30, "flu"), 70: (50, "cold")}, 29, [0, 1]),
        ({20: (50, "flu"), 70: (30, "cold")}, 80, [0, -1]),
        ({20: (10, "flu"), 70: (60, "both"), 150: (20, "flu")}, 30, [-1, 0, -1]),
        ({20: (10, "flu"), 70: (60, "both"), 150: (20, "flu")}, 29, [0, 1, -1]),
        ({20: (10, "flu"), 70: (60, "both"), 150: (20, "flu")}, 19, [-1, 0, 1]),
        ({20: (30, "flu"), 70: (30, "cold"), 120: (30, "flu")}, 60, [0, 1, 2]),  # merging costs less
        ({20: (30, "flu")}, 30, [0]),  # nobody could be merged
        ({20: (30, "both"), 70: (50, "both")}, 80, [0, 1]),  # nobody fails
    ],
)
def test_whom_it_is_cheaper_to_leave_out(
    people: dict[int, tuple[int, str]], suppressible: int, group: list[int]
) -> None:
    rows = [
        (age, ("flu", "cold")[row % 2] if ill == "both" else ill)
        for age, (n, ill) in people.items()
        for row in range(n)
    ]
    frame = pd.DataFrame(rows, columns=["age", "ill"])
    domain, codes = encoding.learn_domain("age", frame["age"])
    cells, cell = encoding.count_cells((domain,), codes[:, None], np.zeros((len(frame), 1)))
    counts = encoding.count_sensitive(cells, cell, frame[["ill"]])
    holds = LDiversity(column="ill", l=2, kind="distinct").holds
    outputs = domain.values.astype(float)[:, None] / 10
    nothing_drawn = Chance.none(cells)
    left, found = enforce.leave_out(counts, np.arange(len(people)), outputs, holds, suppressible, nothing_drawn)
    assert found.tolist() == group
    assert left.sensitive["ill"].total.sum() == sum(
        n for (n, _), number in zip(people.values(), group, strict=True) if number >= 0
    )


def test_who_is_left_out_has_no_class_and_has_lost_all() -> None:
    cells = counted(pd.DataFrame({"age": [0, 0, 10, 10, 10, 20], "town": list("aabbbb")}))
    group = np.array([0, 1, -1])
    assert sizes(cells, group, 2).tolist() == [2, 3]
    assert members(group, 2).toarray().tolist() == [[1, 0, 0], [0, 1, 0]]
    assert information_loss(cells, group, 2) == pytest.approx({"age": 1 / 6, "town": 1 / 6})
    whole = information_loss(cells, np.zeros(3, dtype=np.int64), 1)
    assert whole == pytest.approx({"age": 1.0, "town": 1.0})
    assert set(information_loss(cells, np.full(3, -1), 1).values()) == {1.0}


@pytest.mark.parametrize(("days", "first"), [(True, "2001-02"), (False, "2001-02-03")])
def test_a_calendar_names_periods_up_to_the_year(days: bool, first: str) -> None:
    at = np.array(["2001-02-03", "2001-12-31", "2010-01-01"], dtype="M8[D]")
    moments = at.astype(np.int64) if days else at.astype("M8[us]").astype(np.int64)
    domain = Domain("day", ColumnType.DATE, moments, np.array([0, 1, 1, 1]), "DATE" if days else "TIMESTAMP")
    nodes = Calendar().nodes(domain)
    labels = [names[0] for names in nodes.labels]
    assert labels == ([] if days else ["2001-02-03"]) + ["2001-02", "2001 Q1", "2001", "2000s", "*"]
    assert labels[0] == first and not nodes.strict
    assert nodes.labels[nodes.named - 1] == ("2001", "2010")
    assert nodes.labels[nodes.named] == ("2000s", "2010s")


def test_a_prefix_as_long_as_the_longest_code_is_no_level() -> None:
    domain, _ = encoding.learn_domain("code", pd.Series(["12", "123", "1299"]))
    nodes = Prefixes((5, 4, 3, 1)).nodes(domain)
    assert nodes.labels == (("12", "123", "129*"), ("1*", "1**", "1***"), ("*",))
    assert nodes.node.tolist() == [[0, 0, 0], [1, 1, 0], [2, 2, 0]]
    assert (nodes.named, nodes.strict, Prefixes((3,)).strict) == (3, False, False)


def test_demands_are_met_without_a_key_too() -> None:
    frame = pd.DataFrame({"age": [*range(20)] * 2})
    ill = pd.DataFrame({"ill": ["yes", "no"] * 20})
    demands = [LDiversity(column="ill", l=2, kind="distinct")]
    for key in (None, KEY):
        group = AnonymizerTree(k=4, demands=demands, key=key).fit(frame, None, ill).apply(frame)
        assert ill["ill"].groupby(group).nunique().min() == 2


def test_people_alone_in_a_class_and_those_without_a_value_have_lost_nothing() -> None:
    cells = counted(pd.DataFrame({"age": [np.nan, 1, 2, 3, 4], "town": list("abcde")}))
    assert information_loss(cells, np.arange(5), 5) == {"age": 0.0, "town": 0.0}
    pairs = information_loss(cells, np.array([0, 0, 1, 1, 2]), 3)
    assert pairs == pytest.approx({"age": 0.5 / 5, "town": 2 / 4})


@pytest.mark.parametrize(
    ("limit", "pairs", "at_once", "one_hot"),
    [(0, 0, True, True), (-1, 0, True, False), (-1, 0, False, True), (-1, -1, False, False), (-1, 999, True, False)],
)
def test_categories_are_projected_from_the_first_number_too_many(
    monkeypatch: pytest.MonkeyPatch, limit: int, pairs: int, at_once: bool, one_hot: bool
) -> None:
    """Eight categories (of two columns) of 30 cells; pairs of them with 31, 6 and 4 codes, or with at most 20."""
    frame = pd.DataFrame({"age": range(30), "town": [*"abcde"] * 6, "hue": [*"rgb"] * 10})
    cells = counted(frame)
    monkeypatch.setattr(criterion, "BINS", 20)
    monkeypatch.setattr(criterion, "ONE_HOT_LIMIT", 8 * 30 + limit)
    monkeypatch.setattr(criterion, "PAIRS_LIMIT", 8 * (20 + 6 + 4) + pairs)
    found = criterion.Criterion(cells, 1.0, 0, at_once=at_once)
    assert bool(found.one_hot) == one_hot
    assert found.projected().shape == (30, 0 if one_hot else criterion.PROJECTIONS)
    assert found.width == found.of().shape[1] == 2 + (8 if one_hot else criterion.PROJECTIONS)
