"""Tables that could be misread without a word: categories of numbers, guidance with gaps, rows that are left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from warnings import catch_warnings

import numpy as np
import pandas as pd
import polars
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.release_space import ReleaseSpace
from anon_pipeline.errors import InputError
from anon_pipeline.privacy.l_diversity import LDiversity
from anon_pipeline_tests.people import KEY

CODES = pd.DataFrame({"code": [1, 1, 1, 2, 2, 2, 7, 7, 7, 7]})
GAP = pd.Series([1, 1, None, 2, 2, 2, 7, 7, 7, 7])


@pytest.mark.parametrize("fitted", ["whole", "float"])
def test_categories_of_numbers_are_the_same_with_and_without_decimals(fitted: str) -> None:
    """pandas makes floats of whole numbers where one is missing, and categories of them keep the decimals."""
    whole, decimal = CODES.astype("category"), CODES.astype(float).astype("category")
    known, other = (whole, decimal) if fitted == "whole" else (decimal, whole)
    tree = AnonymizerTree(k=3).fit(known)
    assert tree.apply(other).tolist() == tree.apply(known).tolist()
    shown = tree.transform(other)["code"]
    assert shown.cat.categories.dtype == other["code"].cat.categories.dtype
    assert shown.astype(float).tolist() == tree.transform(known)["code"].astype(float).tolist()
    space = ReleaseSpace(tree.classes_)
    assert space.apply(other).tolist() == space.apply(known).tolist()


def test_a_batch_with_a_gap_has_the_categories_of_its_table() -> None:
    tree = AnonymizerTree(k=3).fit(CODES.astype("category"))
    batch = GAP.astype("category").to_frame("code")
    assert np.delete(tree.apply(batch), 2).tolist() == np.delete(tree.apply(CODES.astype("category")), 2).tolist()


@pytest.mark.parametrize("missing", [None, pd.NA, float("nan")])
def test_numbers_with_gaps_are_no_labels(missing: Any) -> None:
    guidance = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, missing], dtype=object)
    with pytest.raises(InputError, match="infinity or missing values"):
        AnonymizerTree(k=3).fit(CODES.astype("category"), guidance)


def test_integers_of_128_bits_are_refused_in_a_sentence() -> None:
    people = polars.DataFrame({"age": polars.Series(range(10), dtype=polars.Int128)})
    with pytest.raises(InputError, match="age"):
        AnonymizerTree(k=3).fit(people)


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_rows_that_are_left_out_are_told_where_columns_could_be_put_beside_them(output: str) -> None:
    """A ColumnTransformer ties polars frames by position and pandas frames by index, whatever their lengths are."""
    frame = pd.DataFrame({"age": [20, 21, 22, 23, 24, 25, 26, 20, 95, 96, 97], "ill": ["no", "yes"] * 4 + ["no"] * 3})
    tree = AnonymizerTree(k=2, demands=[LDiversity(column="ill", l=2)], key=KEY, suppression=0.9)
    with config_context(enable_metadata_routing=True):
        people = ("people", tree.set_fit_request(sensitive=True), ["age"])
        beside = ColumnTransformer([people], remainder="passthrough").set_output(transform=output)
        with pytest.warns(UserWarning, match=r"^\d of 11 rows are left out\. Do not put other columns beside"):
            both = beside.fit_transform(frame, sensitive=frame[["ill"]])
        assert len(both) == len(frame)  # so scikit-learn has joined what is of unlike length
        with pytest.warns(UserWarning, match="are left out"):
            beside.transform(frame)
    with catch_warnings(action="error"):  # a caller who asks for nothing of scikit-learn sees the shorter table
        assert len(
            clone(tree).set_output(transform="default").fit_transform(frame[["age"]], None, frame[["ill"]])
        ) < len(frame)


@pytest.mark.parametrize("ordered", [False, True])
def test_the_type_of_a_column_lists_no_category_that_no_class_shows(tmp_path: Path, ordered: bool) -> None:
    """A file keeps the categories of a column: in one of a lone person's town, anybody could read the town."""
    towns = pd.Categorical(["Ulm"] * 6 + ["Lonetown"] + ["Bonn"] * 5, ["Ulm", "Lonetown", "Bonn", "Unused"], ordered)
    people = pd.DataFrame({"town": towns})
    shown = AnonymizerTree(k=3).fit(people).transform(people)
    assert "Lonetown" not in set(shown["town"])
    assert list(shown["town"].cat.categories) == ["Ulm", "Bonn"]
    assert shown["town"].cat.ordered is ordered
    shown.to_parquet(tmp_path / "shown.parquet")
    assert b"Lonetown" not in (tmp_path / "shown.parquet").read_bytes()


def test_every_batch_has_the_categories_that_some_class_shows() -> None:
    """Otherwise a model would take the categories of one batch for those of another."""
    people = pd.DataFrame({"town": ["Ulm"] * 6 + ["Bonn"] * 6}).astype("category")
    tree = AnonymizerTree(k=3).fit(people)
    assert list(tree.transform(people[:2])["town"].cat.categories) == ["Bonn", "Ulm"]
    assert list(tree.transform(people[:2])["town"]) == ["Ulm", "Ulm"]
