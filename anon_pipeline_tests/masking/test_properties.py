"""What holds for every technique: odd columns, determinism by seed, independence of row order, gaps."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.errors import InputError
from anon_pipeline.masking.catalog import TECHNIQUES
from anon_pipeline.masking.execution import Resources, apply_steps
from anon_pipeline.spec import ColumnType
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.masking.tables import (
    CATEGORICAL,
    COLUMN_STEPS,
    DATE,
    KEY,
    NUMERIC,
    OTHER_KEY,
    SECRETS,
    TABLE_STEPS,
    masked,
    people,
    rows,
    step,
)

#: Techniques that can make values missing; bin does so beyond 10^18.
MAKES_MISSING = {"suppress", "suppress_cells", "suppress_rare", "microaggregate", "bin"}
ODD: dict[str, tuple[ColumnType, pa.Array]] = {
    "empty numbers": (NUMERIC, pa.array([], pa.float64())),
    "empty texts": (CATEGORICAL, pa.array([], pa.string())),
    "one number": (NUMERIC, pa.array([7.5])),
    "one text": (CATEGORICAL, pa.array(["Ulm"])),
    "all missing": (NUMERIC, pa.array([None, None, None], pa.int64())),
    "all missing texts": (CATEGORICAL, pa.array([None, None], pa.string())),
    "nothing at all": (CATEGORICAL, pa.nulls(3)),
    "all equal": (NUMERIC, pa.array([4] * 20)),
    "all equal texts": (CATEGORICAL, pa.array(["Ulm"] * 20)),
    "huge": (NUMERIC, pa.array([2**63 - 1, -(2**63), 2**53 + 1, 0, None, 2**62])),
    "huge unsigned": (NUMERIC, pa.array([2**64 - 1, 0, 1, None, 2**63], pa.uint64())),
    "tiny": (NUMERIC, pa.array([127, -128, 0, None, 5], pa.int8())),
    "huge floats": (NUMERIC, pa.array([1e300, -1e300, 5e-324, 0.0, None, 1e17])),
    "single floats": (NUMERIC, pa.array([3e38, -3e38, 0.1, None], pa.float32())),
    "zeros": (NUMERIC, pa.array([-0.0, 0.0, -0.0, 0.0, float("nan"), None])),
    "decimals": (NUMERIC, pa.array([Decimal("1.25"), Decimal("-99.99"), None, Decimal("0.00")], pa.decimal128(4, 2))),
    "long decimals": (NUMERIC, pa.array([Decimal(10**37), Decimal(-(10**37)), None], pa.decimal128(38, 0))),
    "unicode": (
        CATEGORICAL,
        pa.array(["Ulm", "Köln", "日本語", "e\u0301", "\u00e9", "👩🏽‍🚀", "", "a'b\"c\\", "x\0", None]),
    ),
    "codes": (CATEGORICAL, pa.array([1, 2, 3, None, 2**60])),
    "truths": (CATEGORICAL, pa.array([True, False, None, True])),
    "dictionary": (CATEGORICAL, pa.array(["Ulm", None, "Bonn", "Ulm"]).dictionary_encode()),
    "large texts": (CATEGORICAL, pa.array(["Ulm", None, "Bonn"], pa.large_string())),
    "days": (DATE, pa.array([date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), None, date(2024, 2, 29)])),
    "moments": (DATE, pa.array([datetime(1969, 12, 31, 23, 59, 59, 999999), None, datetime(2024, 1, 1)])),
    "zoned": (
        DATE,
        pa.array([datetime(2024, 1, 1, 0, 30, tzinfo=UTC), None, datetime(1900, 1, 1, tzinfo=UTC)]).cast(
            pa.timestamp("us", tz="Asia/Tokyo")
        ),
    ),
    "nanoseconds": (DATE, pa.array([1, 10**18 + 1, None], pa.timestamp("ns"))),
}


def cases() -> list[Any]:
    found = []
    for technique, (_, usual) in COLUMN_STEPS.items():
        for name, (kind, column) in ODD.items():
            if kind not in TECHNIQUES[technique].accepts:
                continue
            parameters = usual
            if technique == "top_bottom_code" and kind is DATE:
                parameters = {"top": date(2000, 1, 1)}
            if technique == "suppress_cells" and kind is not CATEGORICAL:
                parameters = {"above": 100} if kind is NUMERIC else {"values": ["2024-02-29"]}
            found.append(pytest.param(technique, parameters, kind, column, id=f"{technique}, {name}"))
    return found


@pytest.mark.long
@pytest.mark.parametrize(("technique", "parameters", "kind", "column"), cases())
def test_odd_columns_keep_their_rows_and_their_gaps(
    technique: str, parameters: dict[str, Any], kind: ColumnType, column: pa.Array
) -> None:
    shown, (report,) = masked(column, kind, step(technique, **parameters))
    assert len(shown) == len(column)
    gone = np.asarray(column.is_null(nan_is_null=pa.types.is_floating(column.type)))
    if technique not in MAKES_MISSING:
        assert np.asarray(shown.is_null()).tolist() == gone.tolist()
    else:
        assert np.asarray(shown.is_null())[gone].all()
    if report.guarantee == "local DP":
        assert not report.costs, "a figure made from true values would tell more than epsilon says"
    else:
        assert 0 <= report.costs["v"].changed <= 1
    if pa.types.is_floating(shown.type):
        assert all(str(value) != "-0.0" for value in shown.to_pylist())


def test_every_technique_is_among_those_tried() -> None:
    assert {*COLUMN_STEPS, *TABLE_STEPS, "hash"} == set(TECHNIQUES)


@pytest.mark.parametrize("technique", COLUMN_STEPS)
def test_another_row_order_gives_the_same_release_of_a_column(technique: str) -> None:
    table, kinds = people(300)
    twice = pa.concat_tables([table, table.slice(0, 100)])  # doubles are interchangeable
    column = {NUMERIC: "x", CATEGORICAL: "c", DATE: "d"}[COLUMN_STEPS[technique][0]]
    steps = {column: [step(technique, **COLUMN_STEPS[technique][1])] * (2 if technique == "noise" else 1)}
    shuffled = twice.take(pa.array(np.random.default_rng(1).permutation(len(twice))))
    one, _ = apply_steps(twice, kinds, steps, resources=Resources(key=KEY, secrets=SECRETS))
    other, _ = apply_steps(shuffled, kinds, steps, resources=Resources(key=KEY, secrets=SECRETS))
    assert rows(one) == rows(other)
    again, _ = apply_steps(twice, kinds, steps, resources=Resources(key=KEY, secrets=SECRETS))
    assert one.equals(again)
    if TECHNIQUES[technique].random:
        another, _ = apply_steps(twice, kinds, steps, resources=Resources(key=OTHER_KEY, secrets=SECRETS))
        assert not one.equals(another)


@pytest.mark.parametrize("technique", TABLE_STEPS)
def test_another_row_order_gives_the_same_release_of_a_table(technique: str) -> None:
    table, kinds = people(300)
    twice = pa.concat_tables([table, table.slice(0, 100)])
    steps = [step(technique, **TABLE_STEPS[technique])]
    shuffled = twice.take(pa.array(np.random.default_rng(1).permutation(len(twice))))
    noise = step("noise", deviation=1)
    one, _ = apply_steps(twice, kinds, {"z": [noise]}, steps, Resources(key=KEY, secrets=SECRETS))
    other, _ = apply_steps(shuffled, kinds, {"z": [noise]}, steps, Resources(key=KEY, secrets=SECRETS))
    assert rows(one) == rows(other)
    if TECHNIQUES[technique].random:
        another, _ = apply_steps(twice, kinds, {"z": [noise]}, steps, Resources(key=OTHER_KEY, secrets=SECRETS))
        assert rows(one) != rows(another)


#: Settings under which what a technique shows follows from a person's own values, beside the usual ones.
ALONE: dict[str, dict[str, Any]] = {
    "noise": {"deviation": 2.0},
    "pram": {"retention": 0.7, "categories": ["Ulm", "Bonn", "Würzburg", "Köln"]},
}


@pytest.mark.parametrize(
    ("technique", "parameters"),
    [
        *((name, usual) for name, (_, usual) in COLUMN_STEPS.items()),
        *TABLE_STEPS.items(),
        *ALONE.items(),
    ],
)
def test_what_is_said_to_follow_from_own_values_stays_without_others(
    technique: str, parameters: dict[str, Any]
) -> None:
    """Else it would tell, of people who are gone together, which of them was still in the table when it was masked."""
    masking = step(technique, **parameters)
    if not masking.of_own_values:
        assert technique not in ALONE or parameters != ALONE[technique]
        return
    table, kinds = people(300)
    table = table.append_column("row", pa.array(np.arange(300)))
    kinds["row"] = NUMERIC
    for gone in (range(100, 300), range(50)):
        staying = table.filter(~np.isin(np.arange(300), gone))
        shown = []
        for everybody in (table, staying):
            column = (
                ""
                if technique in TABLE_STEPS
                else {NUMERIC: "x", CATEGORICAL: "c", DATE: "d"}[COLUMN_STEPS[technique][0]]
            )
            steps = {column: [masking]} if column else {}
            made, _ = apply_steps(
                everybody, kinds, steps, [] if column else [masking], Resources(key=KEY, secrets=SECRETS)
            )
            shown.append({row["row"]: row for row in made.to_pylist()})
        assert all(shown[0][number] == row for number, row in shown[1].items()) and len(shown[1]) == len(staying)


@pytest.mark.parametrize("technique", TABLE_STEPS)
@pytest.mark.parametrize("n", [0, 1, 2])
def test_tables_of_nobody_and_of_one(technique: str, n: int) -> None:
    table, kinds = people(n)
    try:
        made, _ = apply_steps(
            table, kinds, {}, [step(technique, **TABLE_STEPS[technique])], Resources(key=KEY, secrets=SECRETS)
        )
    except InputError as error:
        assert n < 3 and "fewer than k = 3" in str(error)
        return
    if technique not in ("sample", "aggregate"):
        assert len(made) == n


@pytest.mark.parametrize("technique", TABLE_STEPS)
def test_rows_of_other_columns_stay_where_they_were(technique: str) -> None:
    table, kinds = people(120)
    table = table.append_column("row", pa.array(np.arange(120)))
    kinds["row"] = NUMERIC
    made, _ = apply_steps(
        table, kinds, {}, [step(technique, **TABLE_STEPS[technique])], Resources(key=KEY, secrets=SECRETS)
    )
    if technique == "aggregate":
        assert made.column_names == ["c", "people", "mean_x"]
        return
    kept = made.column("row").to_pylist()
    assert kept == sorted(kept) and (technique == "sample" or len(kept) == 120)
    assert made.column("d").to_pylist() == table.column("d").take(pa.array(kept)).to_pylist()


numbers = st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(-20, 20)), max_size=30)


@pytest.mark.long
@settings(max_examples=times(40))
@given(numbers, st.integers(1, 1000), st.sampled_from(["nearest", "down", "up"]))
def test_rounding_whole_numbers_is_exact(values: list[int | None], to: int, how: str) -> None:
    shown, _ = masked(pa.array(values, pa.int64()), NUMERIC, step("round", to=to, how=how))
    for value, rounded in zip(values, shown.to_pylist(), strict=True):
        if value is None:
            assert rounded is None
            continue
        below = value // to * to
        wanted = {"down": below, "up": -(-value // to) * to}.get(how)
        if how == "nearest":
            rest = value - below
            wanted = below + to if rest * 2 > to or (rest * 2 == to and value > 0) else below
        assert wanted is not None
        if -(2**63) + to <= wanted <= 2**63 - 1 - to:
            assert rounded == wanted
        assert rounded % to == 0 and abs(rounded - value) < to


@settings(max_examples=times(30))
@given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6), st.just(-0.0)), min_size=1, max_size=30), st.integers(2, 6))
def test_swapping_and_grouping_keep_what_they_promise(values: list[float | None], k: int) -> None:
    column = pa.array(values, pa.float64())
    swapped, _ = masked(column, NUMERIC, step("rank_swap", share=0.4))
    assert sorted(map(repr, swapped.to_pylist())) == sorted(repr(v if v is None else v + 0.0) for v in values)
    grouped, (report,) = masked(column, NUMERIC, step("microaggregate", k=k))
    known = [value for value in grouped.to_pylist() if value is not None]
    assert not known or min(known.count(value) for value in known) >= k
    assert report.facts.get("largest", 0) <= 2 * k - 1  # type: ignore[operator]


@settings(max_examples=times(30))
@given(st.lists(st.one_of(st.none(), st.text(st.characters(codec="utf-8"), max_size=12)), max_size=20))
def test_tokens_are_as_different_as_values_and_can_be_turned_back(values: list[str | None]) -> None:
    from anon_pipeline.keys import DEFAULT_KEY
    from anon_pipeline.masking.encryption import Encrypt, reveal

    column = pa.array(values, pa.string())
    tokens, _ = masked(column, CATEGORICAL, step("pseudonymize"))
    assert len(set(zip(values, tokens.to_pylist(), strict=True))) == len(set(values)) == len(set(tokens.to_pylist()))
    encrypted, _ = masked(column, CATEGORICAL, step("encrypt"))
    assert reveal(encrypted.to_pylist(), Encrypt(), "v", SECRETS.key(DEFAULT_KEY)) == values


@pytest.mark.long
@settings(max_examples=times(30))
@given(st.lists(st.tuples(*[st.one_of(st.none(), st.integers(0, 3))] * 3), min_size=4, max_size=40), st.integers(2, 4))
def test_local_suppression_reaches_k_and_only_removes(people_: list[tuple[int | None, ...]], k: int) -> None:
    columns = {name: pa.array([one[i] for one in people_], pa.int64()) for i, name in enumerate("abc")}
    steps = [step("local_suppression", columns=list("abc"), k=k)]
    made, _ = apply_steps(
        pa.table(columns), dict.fromkeys("abc", CATEGORICAL), {}, steps, Resources(key=KEY, secrets=SECRETS)
    )
    after = list(zip(*(made.column(name).to_pylist() for name in "abc"), strict=True))
    assert min(after.count(one) for one in after) >= k
    assert all(
        new in (None, old)
        for one, other in zip(people_, after, strict=True)
        for old, new in zip(one, other, strict=True)
    )
