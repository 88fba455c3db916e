"""What other anonymizers get wrong, and what a table in real life looks like. Named after what goes wrong otherwise."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.errors import InputError

TEN = pd.DataFrame({"age": [20, 21, 22, 23, 24, 60, 61, 62, 63, 64], "city": ["Ulm"] * 5 + ["Bonn"] * 5})


def shown(column: object, k: int = 5, **parameters: object) -> list[object]:
    """What five people, or however many there are, show in a single column."""
    frame = pd.DataFrame({"x": column})
    return AnonymizerTree(k=k, **parameters).fit_transform(frame)["x"].tolist()  # type: ignore[arg-type]


# ------------------------------------------------------------------ rows and index


@pytest.mark.parametrize(
    "index",
    [[9, 8, 7, 6, 5, 4, 3, 2, 1, 0], range(5, 15), [0] * 10, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4], list("jihgfedcba")],
    ids=["shuffled", "shifted", "all equal", "duplicated", "texts"],
)
def test_people_get_other_peoples_values_by_an_index(index: object) -> None:
    expected = AnonymizerTree(k=5, grids={"age": 1}).fit_transform(TEN)
    assert expected["age"].tolist() == [25] * 5 + [65] * 5
    frame = TEN.set_axis(pd.Index(index), axis=0)  # type: ignore[arg-type]
    labels = pd.Series(["low"] * 5 + ["high"] * 5)  # has an index of its own
    got = AnonymizerTree(k=5, grids={"age": 1}).fit(frame, labels).transform(frame)
    assert got.index.equals(frame.index)
    pd.testing.assert_frame_equal(got.reset_index(drop=True), expected)


def test_original_columns_or_rows_slip_through_because_nothing_was_replaced() -> None:
    frame = TEN.assign(name=[f"person {i}" for i in range(10)])
    got = AnonymizerTree(k=10).fit(TEN).transform(frame)
    assert list(got.columns) == ["age", "city"]
    assert len(got.drop_duplicates()) == 1


def test_calling_fit_again_remembers_the_first_table() -> None:
    tree = AnonymizerTree(k=5).fit(TEN)
    other = pd.DataFrame({"zip": ["007"] * 6})
    assert tree.fit(other).transform(other)["zip"].tolist() == ["007"] * 6
    assert list(tree.feature_names_in_) == ["zip"]


def test_transform_before_fit_is_an_attribute_error() -> None:
    with pytest.raises(NotFittedError):
        AnonymizerTree().transform(TEN)


def test_a_clone_loses_a_parameter() -> None:
    tree = AnonymizerTree(k=3, spread=0.5, orders="guidance", grids={"age": 5}, form="range", random_state=4)
    assert clone(tree).get_params() == tree.get_params()


# ------------------------------------------------------------------ too few, too many, nothing to learn


def test_a_class_of_five_at_k_ten() -> None:
    with pytest.raises(InputError, match="10 rows, fewer than k = 11"):
        AnonymizerTree(k=11).fit(TEN)
    assert AnonymizerTree(k=10).fit(TEN).sizes_.tolist() == [10]


@pytest.mark.parametrize("k", [1, 0, -3, 2.5, True, "3", None])
def test_a_k_that_is_none(k: object) -> None:
    with pytest.raises(InputError, match="k must be a whole number of at least 2"):
        AnonymizerTree(k=k).fit(TEN)  # type: ignore[arg-type]


@pytest.mark.parametrize("parameter", [{"form": "rnge"}, {"orders": "none"}, {"spread": -1}, {"spread": np.nan}])
def test_a_misspelt_parameter_is_taken_for_the_default(parameter: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(parameter))):
        AnonymizerTree(k=2, **parameter).fit(TEN)  # type: ignore[arg-type]


@pytest.mark.parametrize("guidance", [["ill"] * 10, np.ones(10), np.zeros((10, 3)), None])
def test_one_predicted_class_breaks_the_tree(guidance: object) -> None:
    assert AnonymizerTree(k=5, spread=0).fit(TEN, guidance).sizes_.tolist() == [10]
    assert AnonymizerTree(k=5, spread=1).fit(TEN, guidance).sizes_.tolist() == [5, 5]


def test_hundred_thousand_distinct_texts_are_grouped_into_nonsense() -> None:
    frame = pd.DataFrame({"street": [f"street {i}" for i in range(100_000)]})
    with pytest.raises(InputError, match=r"street has 100000 different texts.*numeric.*prefix.*exclude"):
        AnonymizerTree(k=10).fit(frame)


@pytest.mark.long
def test_hundred_thousand_distinct_numbers_take_forever() -> None:
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"income": generator.lognormal(10, 1, 100_000), "id": np.arange(100_000)})
    tree = AnonymizerTree(k=10).fit(frame, generator.random(100_000))
    sizes = tree.transform(frame).groupby(["income", "id"], dropna=False).size()
    assert sizes.min() >= 10
    assert sizes.sum() == 100_000
    assert len(sizes) > 3_000


def test_one_long_text_fills_the_memory() -> None:
    frame = pd.DataFrame({"note": ["a", "b"] * 50_000 + ["x" * 100_000] * 2})  # 40 GB as an array of fixed width
    assert set(AnonymizerTree(k=10).fit_transform(frame)["note"]) == {"a", "b"}


# ------------------------------------------------------------------ missing, infinite, mixed


def test_rows_with_a_missing_value_vanish_or_make_a_whole_class_missing() -> None:
    known = pd.concat([TEN, TEN], ignore_index=True)
    frame = known.assign(age=known["age"].where(known.index != 1), city=known["city"].where(known.index != 5))
    got = AnonymizerTree(k=9, grids={"age": 1}).fit_transform(frame)
    assert got["age"].tolist() == ([25] * 5 + [65] * 5) * 2
    assert got["city"].tolist() == known["city"].tolist()


def test_a_column_of_missing_values_only() -> None:
    frame = pd.DataFrame({"a": [np.nan] * 6, "b": [None] * 6, "c": pd.Series([pd.NaT] * 6), "d": [1] * 6})
    got = AnonymizerTree(k=3).fit_transform(frame)
    assert got[["a", "b", "c"]].isna().all(axis=None)
    assert AnonymizerTree(k=3, form="range").fit_transform(frame)["a"].tolist() == ["missing"] * 6


def test_the_one_known_value_among_missing_ones_is_published() -> None:
    one = [37.0, None, None, None, None, None]
    assert np.isnan(shown(one)).all()
    assert shown(one, form="range") == ["* or missing"] * 6
    assert shown(one[:5], form="range") == ["* or *"] * 5, "fewer than k people have none"
    assert shown([37.0, 37.0, 37.0, None, 37.0, 37.0], form="range", grids={"x": 1}) == ["37.0 or *"] * 6
    table = AnonymizerTree(k=5, grids={"x": 1}).fit(pd.DataFrame({"x": one})).classes_
    assert table[["x", "x_low", "x_high"]].isna().all(axis=None)


@pytest.mark.parametrize("endless", [np.inf, -np.inf, 1.7e308, 3.4e38])
@pytest.mark.parametrize("dtype", ["float64", "Float64"])
def test_infinity_or_its_stand_ins_swallow_a_column(endless: float, dtype: str) -> None:
    with pytest.raises(InputError, match="the column x holds infinity or numbers beyond"):
        AnonymizerTree(k=2).fit(pd.DataFrame({"x": pd.Series([1.0, 2.0, endless], dtype=dtype)}))
    with pytest.raises(InputError, match="guidance holds infinity"):
        AnonymizerTree(k=2).fit(TEN, [np.inf] * 10)


@pytest.mark.parametrize("day", ["0000-12-31", "10000-01-01"])
def test_dates_outside_of_the_calendar_are_refused(day: str) -> None:
    def people(day: str) -> pd.DataFrame:
        return pd.DataFrame({"born": np.array(["2000-01-01", "2000-01-02", "NaT", day], dtype="datetime64[s]")})

    assert AnonymizerTree(k=2).fit(people("9999-12-31")).sizes_.sum() == 4
    with pytest.raises(InputError, match="the column born holds dates outside of the years 1 to 9999"):
        AnonymizerTree(k=2).fit(people(day))


def test_sixty_four_bit_keys_turn_negative() -> None:
    with pytest.raises(InputError, match="the column x holds infinity or numbers beyond"):
        AnonymizerTree(k=2).fit(pd.DataFrame({"x": np.array([2**63 + 1, 2**64 - 1], dtype=np.uint64)}))


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ([1, "1", 2, "2"], "mixes types"),
        ([True, "yes", False, "no"], "mixes types"),
        (pd.Categorical([1, "1", 1, "1"]), "mixes types"),
        ([1, 2, 3, None], "^$"),
        (pd.Series([1, 2, None, 4], dtype=object), "holds integer objects"),
        (pd.date_range("2020", periods=4).date, "^$"),
        (pd.date_range("2020", periods=4).time, "holds time objects"),
        (pd.timedelta_range("1d", periods=4), "holds timedelta"),
        (pd.period_range("2020", periods=4, freq="M"), "holds period"),
        ([1j, 2j, 3j, 4j], "holds complex"),
        ([[1], [2], [3], [4]], "mixes types"),
    ],
    ids=str,
)
def test_values_that_are_no_numbers_texts_or_dates_are_compared_as_texts(column: object, words: str) -> None:
    frame = pd.DataFrame({"x": column})
    if words == "^$":
        AnonymizerTree(k=2).fit(frame)
        return
    with pytest.raises(InputError, match=f"the column x {words}"):
        AnonymizerTree(k=2).fit(frame)


def test_a_column_of_another_kind_in_transform_is_a_traceback() -> None:
    tree = AnonymizerTree(k=5).fit(TEN)
    with pytest.raises(InputError, match="the column age was numeric"):
        tree.transform(TEN.assign(age="old"))
    with pytest.raises(InputError, match="lacks the columns city"):
        tree.transform(TEN[["age"]])


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame([[1, 2]] * 5, columns=["a", "a"]), "columns a stand twice"),
        (pd.DataFrame([[1, 2]] * 5), "each with a text as its name"),
        (pd.DataFrame(index=range(5)), "must have columns"),
        ([[1, 2]] * 5, "must be a DataFrame of pandas or polars"),
        (TEN["age"], "must be a DataFrame of pandas or polars"),
    ],
    ids=["twice", "numbers as names", "none", "list", "series"],
)
def test_columns_that_cannot_be_told_apart(frame: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        AnonymizerTree(k=2).fit(frame)  # type: ignore[arg-type]


# ------------------------------------------------------------------ types and texts


def test_negative_ranges_read_like_a_subtraction() -> None:
    column = [-87, -70, -55] * 5
    assert shown(column, form="range", grids={"x": 1}, spread=0) == ["[-87, -55]"] * 15
    assert shown(column, grids={"x": 1}, spread=0) == [-70] * 15
    assert shown([-87, -80, -61, -70, -55], form="range", grids={"x": 1}) == ["[-100, -50]"] * 5
    assert shown([-0.0, 0.0, -0.0, 0.0, 0.0], form="range") == ["0.0"] * 5


def test_a_range_of_dates_and_of_categories() -> None:
    dates = pd.to_datetime(["2020-01-09", "2020-01-01"] * 5 + ["2020-01-03"])
    assert (
        shown(dates, form="range", grids={"x": 86_400_000_000}, spread=0)
        == ["[2020-01-01T00:00:00.000000, 2020-01-09T00:00:00.000000]"] * 11
    )
    assert shown(["a", "b"] * 5 + ["c"], form="range", spread=0) == ["{a, b, *}"] * 11
    assert shown(["a", None] * 5 + ["c"], form="range", spread=0) == ["{missing, a, *}"] * 11
    assert shown(["a"] * 4 + ["b"] * 5, form="range", spread=0) == ["{b, *}"] * 9, "a is that of fewer than k people"


def test_texts_that_look_like_numbers_become_one() -> None:
    frame = pd.DataFrame({"zip": ["007", "7", "7.0", "1e1"] * 5})
    tree = AnonymizerTree(k=5).fit(frame)
    assert tree.transform(frame)["zip"].tolist() == frame["zip"].tolist()
    assert sorted(tree.classes_["zip"]) == ["007", "1e1", "7", "7.0"]


def test_texts_that_differ_in_the_last_invisible_character_become_one() -> None:
    frame = pd.DataFrame({"x": ["a", "a\u200b", "a ", "á", "á"] * 5})
    assert AnonymizerTree(k=5).fit_transform(frame)["x"].tolist() == frame["x"].tolist()


def test_neighbouring_numbers_fall_into_each_others_class() -> None:
    for low, high in ((0.3, np.nextafter(0.3, 1)), (2**53, 2**53 + 1), (0.1 + 0.2, 0.3)):
        frame = pd.DataFrame({"x": [low] * 5 + [high] * 5})
        tree = AnonymizerTree(k=5, spread=0).fit(frame, [0.0] * 5 + [1.0] * 5)
        assert sorted(np.bincount(tree.apply(frame))) == [5, 5]


def test_a_large_offset_swallows_what_differs() -> None:
    frame = pd.DataFrame({"x": 1.7e12 + np.arange(40.0)})
    tree = AnonymizerTree(k=4).fit(frame)
    assert np.abs(tree.transform(frame)["x"] - frame["x"]).max() <= 20
    assert shown([0.37] * 5) == [0.37] * 5


def test_a_grid_too_fine_for_its_numbers_overflows() -> None:
    with pytest.raises(InputError, match=r"columns.x.grid: 1e-09 is too fine"):
        AnonymizerTree(k=2, grids={"x": 1e-9}).fit(pd.DataFrame({"x": [1e12, 2e12, 3e12]}))


def test_days_are_shown_with_hours_that_nobody_stated() -> None:
    born = pd.Series(pd.date_range("1950-01-01", periods=60, freq="37D"))
    got = AnonymizerTree(k=6).fit_transform(born.to_frame("x"))["x"]
    assert (got == got.dt.normalize()).all()


def test_a_rounded_small_integer_wraps_around() -> None:
    column = np.array([120, 121, 127, 126, 125, 0, 1, 2, 3, 4], dtype=np.int8)
    got = AnonymizerTree(k=5, grids={"x": 10}).fit_transform(pd.DataFrame({"x": column}))["x"]
    assert sorted(got.unique()) in ([0, 130], [0, 120])
    got = AnonymizerTree(k=2, grids={"x": 100}).fit_transform(pd.DataFrame({"x": np.array([127] * 2, np.int8)}))["x"]
    assert got.tolist() == [100, 100]
    got = AnonymizerTree(k=2, grids={"x": 50}).fit_transform(pd.DataFrame({"x": np.array([127] * 2, np.int8)}))["x"]
    assert got.tolist() == [150, 150]


def test_a_value_the_frame_at_hand_does_not_hold_is_shown_as_another() -> None:
    tree = AnonymizerTree(k=13).fit(pd.DataFrame({"x": [False] * 13 + [True] * 3}))
    assert tree.transform(pd.DataFrame({"x": [True]}))["x"].tolist() == [False]
    tree = AnonymizerTree(k=13).fit(pd.DataFrame({"x": pd.Categorical(["u"] * 13 + ["v"] * 3)}))
    assert tree.transform(pd.DataFrame({"x": pd.Categorical(["v"])}))["x"].tolist() == ["u"]
    tree = AnonymizerTree(k=10, grids={"x": 0.5}, spread=0).fit(pd.DataFrame({"x": [1.5, 2.5] * 10}))
    assert tree.transform(pd.DataFrame({"x": [1, 2]}))["x"].tolist() == [1.5, 1.5]


def test_a_category_that_is_called_like_the_mark_is_a_traceback() -> None:
    frame = pd.DataFrame({"x": pd.Categorical(["*", "a", "b", "c", "d"])})
    assert AnonymizerTree(k=5).fit_transform(frame)["x"].tolist() == ["*"] * 5


TYPES = {
    "int64": [1, 2, 2, 3, 3, 9],
    "int8": [1, 2, 2, 3, 3, 9],
    "uint16": [1, 2, 2, 3, 3, 9],
    "float32": [1.5, 2, 2, 3, 3, 9],
    "float64": [1.5, 2, 2, 3, 3, 9],
    "Int64": [1, 2, 2, 3, 3, None],
    "Float64": [1.5, 2, 2, 3, 3, None],
    "bool": [True, True, False, True, False, True],
    "boolean": [True, True, False, True, False, None],
    "object": ["a", "a", "a", "b", "b", "b", None],
    "string": ["a", "a", "a", "b", "b", "b", None],
    "category": ["a", "a", "a", "b", "b", "b", None],
    "datetime64[s]": ["2020-01-01"] * 3 + ["2021-01-01"] * 3,
    "datetime64[ns]": ["2020-01-01"] * 3 + ["2021-01-01"] * 3,
    "datetime64[us, Europe/Berlin]": ["2020-07-01"] * 3 + ["2021-01-01"] * 3,
    "int64[pyarrow]": [1, 2, 2, 3, 3, None],
    "string[pyarrow]": ["a", "a", "a", "b", "b", "b", None],
}


@pytest.mark.parametrize("dtype", TYPES)
def test_a_column_comes_back_as_another_type(dtype: str) -> None:
    values = pd.to_datetime(pd.Series(TYPES[dtype])) if "datetime" in dtype else pd.Series(TYPES[dtype])
    if "Berlin" in dtype:
        values = values.dt.tz_localize("Europe/Berlin")
    frame = pd.DataFrame({"x": values.astype(dtype)})
    got = AnonymizerTree(k=3).fit_transform(frame)
    assert got["x"].dtype == frame["x"].dtype


def test_yes_and_no_among_missing_values_come_back_as_what_they_were() -> None:
    for values in ([True, True, False, False, None, None], ["a", "a", "b", "b", None, None]):
        got = AnonymizerTree(k=2).fit_transform(pd.DataFrame({"x": pd.Series(values, dtype=object)}))["x"]
        assert got.dtype == object
        assert [type(value) for value in got] == [type(value) for value in values] and got.tolist() == values


def test_an_ordered_category_loses_its_order() -> None:
    frame = pd.DataFrame({"x": pd.Categorical(["low", "low", "high", "high"], ["low", "mid", "high"], ordered=True)})
    got = AnonymizerTree(k=2).fit_transform(frame)
    # Nobody is shown as "mid", and whether somebody has it is not told.
    assert got["x"].dtype == pd.CategoricalDtype(["low", "high"], ordered=True)
    assert got["x"].tolist() == frame["x"].tolist()
    bins = pd.DataFrame({"x": pd.cut(pd.Series([1, 2, 11, 12]), [0, 10, 20])})
    assert AnonymizerTree(k=2).fit_transform(bins)["x"].tolist() == bins["x"].tolist()


def test_moments_move_with_the_time_zone() -> None:
    winter = pd.Series(pd.to_datetime(["2020-01-01 00:30"] * 3 + ["2020-07-01 23:30"] * 3))
    zoned = winter.dt.tz_localize("America/New_York")
    got = AnonymizerTree(k=3).fit_transform(pd.DataFrame({"x": zoned}))["x"]
    assert (got == zoned).all()
    naive = AnonymizerTree(k=3).fit_transform(pd.DataFrame({"x": winter}))["x"]
    assert (naive == winter).all()


# ------------------------------------------------------------------ guidance


def test_guidance_of_another_length_is_recycled() -> None:
    with pytest.raises(InputError, match="guidance has 9 rows, the table 10"):
        AnonymizerTree(k=2).fit(TEN, [0.0] * 9)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e13])
def test_the_unit_of_the_guidance_decides_the_grouping(unit: float) -> None:
    frame = pd.DataFrame({"a": list("uvwx") * 6})
    said = frame["a"].map({"u": 1.0, "v": 1.1, "w": 2.0, "x": 2.1}) * unit
    tree = AnonymizerTree(k=12, spread=0).fit(frame, said)
    assert sorted(map(sorted, frame["a"].groupby(tree.apply(frame)).unique())) == [["u", "v"], ["w", "x"]]


def test_labels_in_a_column_of_their_own_are_a_traceback() -> None:
    labels = pd.DataFrame({"y": ["low"] * 5 + ["high"] * 5})
    assert AnonymizerTree(k=5, spread=0).fit(TEN, labels).sizes_.tolist() == [5, 5]
