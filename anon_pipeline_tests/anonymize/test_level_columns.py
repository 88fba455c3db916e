"""Classes keep to the groups of a hierarchy: what nobody shares by value is shared by a group."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.anonymize import encoding, tree
from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.description import described
from anon_pipeline.anonymize.hierarchy import Hierarchy, Prefixes
from anon_pipeline.anonymize.level_columns import LevelColumns
from anon_pipeline.tables import Cells
from anon_pipeline_tests.examples import times


def people(n: int, seed: int = 0) -> pd.DataFrame:
    """People of four regions, each with 60 postal codes."""
    draw = np.random.default_rng(seed)
    region = draw.choice(["10", "20", "50", "80"], n)
    code = [f"{of}{draw.integers(0, 6)}{draw.integers(0, 10)}" for of in region]
    return pd.DataFrame({"code": code, "age": draw.integers(18, 90, n), "sex": draw.choice(["f", "m"], n)})


def counted(frame: pd.DataFrame, hierarchies: dict[str, Hierarchy]) -> Cells:
    learned = [encoding.learn_domain(str(name), frame[name]) for name in frame]
    codes = np.stack([code for _, code in learned], axis=1)
    domains = described(tuple(domain for domain, _ in learned), {}, hierarchies)
    return encoding.count_cells(domains, codes, np.random.default_rng(1).random((len(frame), 1)))[0]


@pytest.mark.long
@pytest.mark.parametrize("n", [400, 3000])
@pytest.mark.parametrize("seed", range(3))
def test_a_region_is_shown_where_codes_are_rare(n: int, seed: int) -> None:
    """Everybody was shown as "*": of codes that nobody shares, those of one region were no nearer than others."""
    frame = people(n, seed)
    guidance = (frame["age"] > 60).astype(float)
    tree_ = AnonymizerTree(k=10, form="range", hierarchies={"code": Prefixes((3, 2))}).fit(frame, guidance)
    labels = tree_.classes_["code_label"].to_numpy()[tree_.apply(frame)]
    shown = labels != "*"
    assert shown.mean() >= (0.9 if n < 1000 else 1.0)
    assert (frame["code"].str[:2] == pd.Series(labels).str[:2])[shown].all()


def test_each_level_is_a_column_on_which_people_mostly_have_company() -> None:
    frame = people(3000)  # 12 people a code, 125 a prefix of three, 750 a region
    hierarchies: dict[str, Hierarchy] = {"code": Prefixes((3, 2))}
    for k, levels in ((2, 3), (20, 2), (200, 1), (2000, 1)):
        *of_code, age, sex = LevelColumns.of(counted(frame, hierarchies), k).columns
        assert [place for place, _ in of_code] == [0] * levels and (age, sex) == ((1, None), (2, None))
        assert [node is None for _, node in of_code].count(True) == (k == 2), "the codes themselves take part at k = 2"
    regions = LevelColumns.of(counted(frame, hierarchies), 200).cells
    assert len(regions.domains[0].values) == 4 and regions.domains[0].counts.tolist()[0] == 0
    assert sorted(regions.domains[0].counts.tolist()[1:]) == sorted(frame["code"].str[:2].value_counts().tolist())


@pytest.mark.parametrize("hierarchies", [{}, {"code": Prefixes((3, 2), strict=True)}])
def test_other_columns_stay_as_they_are(hierarchies: dict[str, Hierarchy]) -> None:
    cells = counted(people(300), hierarchies)
    assert LevelColumns.of(cells, 5).cells is cells


@settings(max_examples=times(30))
@given(st.integers(0, 9999), st.integers(2, 30), st.integers(20, 300), st.booleans())
def test_axes_of_levels_split_the_codes_as_they_split_the_levels(seed: int, k: int, n: int, gaps: bool) -> None:
    frame = people(n, seed)
    if gaps:
        frame.loc[::7, "code"] = None
    cells = counted(frame, {"code": Prefixes((3, 2, 1))})
    by_level = LevelColumns.of(cells, k)
    fitted = tree.fit_tree(by_level.cells, k, 1.0, "both", 0)
    leaf = fitted.apply(by_level.cells.codes)
    axes = by_level.axes(fitted.features)
    assert (tree.SplitTree(axes, *list(vars(fitted).values())[1:]).apply(cells.codes) == leaf).all()
    assert np.bincount(leaf, weights=cells.counts).min() >= min(k, cells.n)
