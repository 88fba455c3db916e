"""People who are grouped by the numbers of their texts are the people that their texts group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon_pipeline.engine import few_texts
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.people import write_spec

ROLES = {
    "city": {"role": "quasi_identifier", "type": "categorical"},
    "age": "quasi_identifier",
    "t": {"role": "sensitive", "type": "categorical"},
}
#: With two markers of "not known", texts that SQL would have to quote, and some that only look alike.
TEXTS = ("", "?", None, "n/a", "Ulm", "ulm", "Ulm ", "O'Hara", "\"'", "Köln", "Ko\u0308ln", "0", "NULL", "🦊")


@pytest.fixture
def numbered(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """Which columns were numbered, table by table; every table is large enough."""
    seen: list[set[str]] = []
    plain = few_texts.numbered_texts

    def noted(*given: Any) -> dict[str, tuple[str, str]]:
        found = plain(*given)
        seen.append(set(found))
        return found

    monkeypatch.setattr(few_texts, "FROM_ROWS", 0)
    monkeypatch.setattr(few_texts, "numbered_texts", noted)
    return seen


def written(table: pa.Table | pd.DataFrame, place: Path, **how: Any) -> None:
    if isinstance(table, pd.DataFrame):
        table = pa.Table.from_pandas(table, preserve_index=False)
    pq.write_table(table, place, **how)


def stored(folder: Path, source: str = "people.parquet", roles: dict[str, Any] = ROLES, **given: Any) -> pd.DataFrame:
    """The stored people of a source, sorted."""
    given = {"missing": ["?", "n/a"], **given}
    spec = write_spec(folder, roles, source, missing_target="release", source=given)
    DuckDBEngine(folder / "spill").store_source(spec, folder / "stored.parquet")
    found = pq.read_table(folder / "stored.parquet").to_pandas()
    return found.sort_values(list(found.columns), ignore_index=True)


@pytest.mark.long
@settings(max_examples=times(20))
@given(
    people=st.lists(st.tuples(st.sampled_from(TEXTS), st.integers(20, 22), st.sampled_from(TEXTS)), min_size=4),
    group=st.integers(1, 6),
)
def test_people_are_the_same_by_numbers_and_by_texts(
    tmp_path_factory: pytest.TempPathFactory, people: list[tuple[str | None, int, str | None]], group: int
) -> None:
    folder = tmp_path_factory.mktemp("people")
    frame = pd.DataFrame(people, columns=["city", "age", "t"]).astype({"city": "string", "t": "string"})
    frame = pd.concat([frame, pd.DataFrame({"city": ["Ulm"] * 2, "age": [20] * 2, "t": ["ill", "well"]})])
    written(frame, folder / "people.parquet", row_group_size=group)
    seen: list[pd.DataFrame] = []
    for rows in (0, 10**9):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(few_texts, "FROM_ROWS", rows)
            seen.append(stored(folder))
    pd.testing.assert_frame_equal(*seen)
    known = frame.assign(**{name: frame[name].where(~frame[name].isin(["", "?", "n/a"])) for name in ("city", "t")})
    counted = known.value_counts(dropna=False).rename("#people").reset_index()
    assert sorted(map(repr, _plain(seen[0]))) == sorted(map(repr, _plain(counted)))


def _plain(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """The rows of a table, every missing value as None."""
    return [tuple(None if pd.isna(value) else value for value in row) for row in frame.itertuples(index=False)]


def frame_of(cities: list[Any], **more: list[Any]) -> pd.DataFrame:
    return pd.DataFrame({"city": cities, "age": [20] * len(cities), "t": ["ill", "well"] * (len(cities) // 2), **more})


def test_texts_of_a_dictionary_are_numbered(tmp_path: Path, numbered: list[set[str]]) -> None:
    written(frame_of(["Ulm", "?"] * 4), tmp_path / "people.parquet")
    assert stored(tmp_path)["#people"].tolist() == [4, 4]
    assert numbered == [{"city", "t"}]


@pytest.mark.parametrize(("different", "few"), [(256, True), (257, False)])
def test_no_more_than_can_be_looked_through(
    tmp_path: Path, numbered: list[set[str]], different: int, few: bool
) -> None:
    written(frame_of([f"city {number % different}" for number in range(514)]), tmp_path / "people.parquet")
    assert stored(tmp_path)["city"].nunique() == different
    assert numbered == [{"city", "t"} if few else {"t"}]


def test_texts_without_a_dictionary_stay_texts(tmp_path: Path, numbered: list[set[str]]) -> None:
    written(frame_of(["Ulm", "Bonn"] * 4), tmp_path / "people.parquet", use_dictionary=["t"])
    assert stored(tmp_path)["#people"].tolist() == [4, 4]
    assert numbered == [{"t"}]


def test_a_column_of_markers_alone_stays_missing(tmp_path: Path, numbered: list[set[str]]) -> None:
    written(frame_of(["?", ""] * 4), tmp_path / "people.parquet")
    assert stored(tmp_path)["city"].isna().all()
    assert numbered == [{"t"}]


def test_every_file_of_a_folder_counts(tmp_path: Path, numbered: list[set[str]]) -> None:
    """A text that only the second file has; and that its column has a dictionary in the first alone."""
    (tmp_path / "people").mkdir()
    written(frame_of(["Ulm"] * 4, t=["ill", "well"] * 2), tmp_path / "people" / "a.parquet")
    written(frame_of(["Bonn"] * 4, t=["fit", "fit"] * 2), tmp_path / "people" / "b[0].parquet", use_dictionary=["t"])
    found = stored(tmp_path, "people")
    assert found["city"].value_counts().to_dict() == {"Ulm": 2, "Bonn": 1}
    assert set(found["t"]) == {"ill", "well", "fit"}
    assert numbered == [{"t"}]


def test_renamed_columns_stay_texts(tmp_path: Path, numbered: list[set[str]]) -> None:
    """The dictionaries of a file stand under the names that it has."""
    written(frame_of(["Ulm", "Bonn"] * 4).rename(columns={"city": "ort"}), tmp_path / "people.parquet")
    assert stored(tmp_path, rename={"ort": "city"})["city"].tolist() == ["Bonn", "Ulm"]
    assert numbered == []


@pytest.mark.long
def test_small_files_and_identified_people_are_not_asked(tmp_path: Path, numbered: list[set[str]]) -> None:
    frame = frame_of(["Ulm", "Bonn"] * 4, name=[f"person {number % 2}" for number in range(8)])
    written(frame, tmp_path / "people.parquet")
    assert stored(tmp_path, roles=ROLES | {"name": "identifier"})["#people"].tolist() == [1] * 8
    assert numbered == []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(few_texts, "FROM_ROWS", 9)
        assert len(stored(tmp_path, roles=ROLES | {"name": "exclude"})) == 2
        patched.setattr(few_texts, "FROM_ROWS", 8)
        assert len(stored(tmp_path, roles=ROLES | {"name": "exclude"})) == 2
    assert numbered == [set(), {"city", "t"}]
