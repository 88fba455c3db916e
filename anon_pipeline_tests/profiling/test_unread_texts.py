"""Sentences on texts of a foreign table that may be dates or numbers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.profiling.unread_texts import formats_not_stated


@pytest.mark.parametrize(
    ("texts", "seem"),
    [
        (["31.12.1999", None, "01.02.2000"], "dates (%d.%m.%Y)"),
        (["12/31/1999", "02/01/2000"], "dates (%m/%d/%Y)"),
        (["1.234,5", "2.000,0"], "numbers that are not"),
        (["5 €", "12 €"], "numbers that are not"),
    ],
)
def test_texts_that_seem_to_have_an_order_are_told(tmp_path: Path, texts: list[str | None], seem: str) -> None:
    pq.write_table(pa.table({"born": texts, "ill": ["yes"] * len(texts)}), tmp_path / "x.parquet")
    (note,) = formats_not_stated(tmp_path / "x.parquet", ["born", "ill"])
    assert note.startswith(f"born: its texts seem to be {seem}")
    assert not any(text in note for text in texts if text)
    assert formats_not_stated(tmp_path / "x.parquet", ["ill"]) == []


@pytest.mark.parametrize("values", [["yes", "no"], [1.5, 2.0], [None, None], ["", ""], []])
def test_other_columns_are_not_mentioned(tmp_path: Path, values: list[object]) -> None:
    pq.write_table(pa.table({"ill": values}), tmp_path / "x.parquet")
    assert formats_not_stated(tmp_path / "x.parquet", ["ill"]) == []
