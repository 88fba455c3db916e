"""Ordered categories: they enter the tree in their order, and classes show the median level or the span."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.hierarchy import Listed
from anon_pipeline.anonymize.levels import in_order
from anon_pipeline.errors import InputError
from anon_pipeline.spec import ColumnType
from anon_pipeline.tables import Domain
from anon_pipeline_tests.examples import times

few = settings(max_examples=times(30))

SIZES = ("tiny", "small", "middle", "large", "huge")


def table(seed: int, n: int, missing: float) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    column = pd.Series(generator.choice(SIZES, n)).astype(object)
    column[generator.random(n) < missing] = None
    return pd.DataFrame({"size": column, "age": generator.integers(0, 9, n)})


def tables() -> st.SearchStrategy[pd.DataFrame]:
    return st.builds(table, st.integers(0, 9999), st.integers(6, 80), st.sampled_from([0.0, 0.3, 0.9]))


@pytest.mark.long
@few
@given(tables(), st.integers(2, 6))
def test_a_class_shows_the_level_nearest_to_its_median_that_two_members_bear(frame: pd.DataFrame, k: int) -> None:
    tree = AnonymizerTree(k=k, levels={"size": SIZES}).fit(frame)
    named = [one for one in range(len(SIZES)) if (frame["size"] == SIZES[one]).sum() >= k]
    for group, members in frame.groupby(tree.apply(frame)):
        known = sorted(SIZES.index(one) for one in members["size"].dropna())
        shown = tree.classes_["size"][group]
        if members["size"].isna().sum() > len(known):
            assert shown == (None if frame["size"].isna().sum() >= k else "*")
            continue
        median = known[(len(known) - 1) // 2]
        borne = [one for one in named if known.count(one) > 1]
        nearest = min(borne, key=lambda one: (abs(one - median), one), default=None)
        assert shown == ("*" if nearest is None else SIZES[nearest])


@pytest.mark.long
@few
@given(tables(), st.integers(2, 6))
def test_spans_and_lists_are_in_the_order_of_the_levels(frame: pd.DataFrame, k: int) -> None:
    tree = AnonymizerTree(k=k, levels={"size": SIZES}, form="range").fit(frame)
    shown = tree.transform(frame)["size"]
    counts = [int((frame["size"] == one).sum()) for one in SIZES]
    named = [one for one in range(len(SIZES)) if counts[one] >= k]
    few_below, few_above = (named and (any(counts[: named[0]]), any(counts[named[-1] + 1 :]))) or (True, True)
    for group, members in frame.groupby(tree.apply(frame)):
        known = sorted(SIZES.index(one) for one in members["size"].dropna())
        missing = len(members) - len(known)
        text = ""
        if known:
            # A named level at or beyond each end; not the outermost where a few are beyond it.
            low = [one for one in named[few_below:] if one <= known[0]]
            high = [one for one in named[: len(named) - few_above] if one >= known[-1]]
            first, last = SIZES[low[-1]] if low else None, SIZES[high[0]] if high else None
            text = f"{first}" if first == last else f"{first} .. {last}"
            text = f"≤ {last}" if first is None else f"≥ {first}" if last is None else text
            text = "*" if len(known) == 1 or (first is None and last is None) else text
        missing_told = missing > 1 and frame["size"].isna().sum() >= k
        rest = "missing" if missing_told else "*"
        expected = f"{text} or {rest}" if text and missing else rest if missing else text
        assert set(shown[members.index]) == {expected}
        told: list[str | None] = [None] if missing_told else []
        told += [SIZES[one] for one in sorted(set(known)) if known.count(one) > 1 and one in named]
        alone = (missing and not missing_told) or any(known.count(one) == 1 or one not in named for one in known)
        assert list(tree.classes_["size_values"][group]) == told + ["*"] * bool(alone)


@pytest.mark.long
@few
@given(tables(), st.integers(2, 6), st.permutations("abcde"))
def test_what_the_levels_are_called_decides_nothing(frame: pd.DataFrame, k: int, names: list[str]) -> None:
    guidance = np.random.default_rng(0).random(len(frame))
    other = frame.assign(
        size=frame["size"].map(dict(zip(SIZES, names, strict=True))).where(frame["size"].notna(), None)
    )
    ours = AnonymizerTree(k=k, levels={"size": SIZES}).fit(frame, guidance)
    theirs = AnonymizerTree(k=k, levels={"size": names}).fit(other, guidance)
    pairs = set(zip(ours.apply(frame).tolist(), theirs.apply(other).tolist(), strict=True))
    assert len(pairs) == len(ours.sizes_) == len(theirs.sizes_)
    assert ours.information_loss_["size"] == pytest.approx(theirs.information_loss_["size"])


@few
@given(st.integers(0, 9999), st.integers(6, 80), st.integers(2, 6))
def test_classes_of_a_tree_of_levels_alone_are_intervals(seed: int, n: int, k: int) -> None:
    frame = table(seed, n, 0.0)[["size"]]
    tree = AnonymizerTree(k=k, levels={"size": SIZES}, refine=0).fit(frame, np.random.default_rng(seed).random(n))
    place = frame["size"].map(SIZES.index)
    ends = sorted((part.min(), part.max()) for _, part in place.groupby(tree.apply(frame)))
    assert all(before[1] < after[0] for before, after in pairwise(ends))


def test_information_is_lost_as_with_numbers() -> None:
    frame = table(1, 60, 0.0)
    numbers = frame.assign(size=frame["size"].map(SIZES.index))
    lost = AnonymizerTree(k=5, levels={"size": SIZES}).fit(frame).information_loss_
    assert lost == pytest.approx(AnonymizerTree(k=5).fit(numbers).information_loss_)


def test_values_that_are_no_levels_are_counted_and_not_named() -> None:
    frame = pd.DataFrame({"size": ["tiny", "secret", "secret", "small", "hidden", None]})
    with pytest.raises(InputError, match=r"columns.size.levels: 2 of the column's 4 values \(of 3 people\)") as raised:
        AnonymizerTree(k=2, levels={"size": SIZES}).fit(frame)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("storage", "values"), [("DOUBLE", ["1.0", "2.0", "3.5"]), ("DECIMAL(5,2)", ["1.00", "2.00", "3.50"])]
)
def test_codes_are_in_their_order_however_the_source_stores_them(storage: str, values: list[str]) -> None:
    """SPSS and Stata store the code 1 as 1.0, which was said to be none of the levels 1, 2 and 3.5."""
    stored = Domain("size", ColumnType.CATEGORICAL, np.array(values), np.array([0, 5, 5, 5]), storage)
    assert in_order(stored, ["3.5", "1", "2"]).levels.tolist() == [1, 2, 0]  # type: ignore[union-attr]
    paths = {"1": ["low", "*"], "2.0": ["low", "*"], "3.5": ["high", "*"]}
    assert Listed(paths).nodes(stored).labels[0] == ("low", "high")
    with pytest.raises(InputError, match="1 of the column's 3 values"):
        in_order(stored, ["1", "2"])
    text = replace(stored, storage="VARCHAR")
    with pytest.raises(InputError, match="2 of the column's 3 values" if storage == "DOUBLE" else "3 of the column's"):
        in_order(text, ["3.5", "1", "2"])


def test_numbers_have_no_levels() -> None:
    with pytest.raises(InputError, match=r"columns.size.levels: are of texts, and the column holds numeric values"):
        AnonymizerTree(k=2, levels={"size": ["1", "2"]}).fit(pd.DataFrame({"size": [1, 2, 1, 2]}))
