"""A class table is believed only where the table beside it shows the same values, for as many people."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.classes import class_table
from anon_pipeline.anonymize.recode import recoded_table
from anon_pipeline.engine.base import ClassCounts, Recoding
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.learning.cells import fixed_point
from anon_pipeline.privacy.class_table import classes_that_differ
from anon_pipeline.spec import ReleaseSpec, Role
from anon_pipeline_tests.examples import times
from anon_pipeline_tests.people import Table, tables, write_spec


def released(table: Table, form: str, csv: bool, folder: Path) -> tuple[pd.DataFrame, ClassCounts, ReleaseSpec]:
    """A class table, what is counted in the release beside it, and the spec."""
    frame = table.frame.assign(t=["yes", "no"] * (len(table.frame) // 2) + ["no"] * (len(table.frame) % 2))
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), folder / "source.parquet")
    roles = dict.fromkeys(table.frame.columns, "quasi_identifier")
    spec = write_spec(folder, {**roles, "t": "sensitive"}, "source.parquet", table.k, recode={"form": form})
    engine = DuckDBEngine(folder / "spill")
    stored = folder / "stored.parquet"
    types = engine.store_source(spec, stored).types()
    domains = engine.domains(stored, {name: types[name] for name in spec.quasi_identifiers})
    keys = np.concatenate(
        [np.repeat(batch.key, batch.people, axis=0) for batch in engine.batches(stored, spec, types, domains)]
    )
    key, people = np.unique(keys, axis=0, return_counts=True)
    cells = engine.cells(domains, key, people.astype(np.int64), fixed_point(np.zeros((len(key), 1))))
    tree = AnonymizerTree(k=table.k).fit_cells(cells)
    data = folder / "data.parquet"
    shown = recoded_table(tree.summaries_, form)
    engine.write_release(stored, Recoding(cells, tree.partition_.apply(cells.codes), shown), spec.released, data)
    class_table(tree.sizes_, tree.summaries_).to_parquet(folder / "classes.parquet", index=False)
    if csv:
        text = folder / "data.csv"
        engine_copy = f"COPY (FROM read_parquet('{data}')) TO '{text}' (HEADER)"
        with engine._session() as session:
            session.connection.execute(engine_copy)
        data = engine.import_table(text, folder, spec.with_role(Role.SENSITIVE))
    counts = engine.classes(data, spec.quasi_identifiers, [])
    return pd.read_parquet(folder / "classes.parquet"), counts, spec


@settings(max_examples=times(20))
@given(tables(most_rows=40), st.sampled_from(["value", "range"]), st.booleans(), st.randoms(use_true_random=False))
def test_a_release_agrees_with_its_own_class_table_and_with_no_other(
    table: Table, form: str, csv: bool, random: object
) -> None:
    assume(table.frame.notna().any().all())  # a column without any value has no type
    with tempfile.TemporaryDirectory() as folder:
        classes, counts, spec = released(table, form, csv, Path(folder))
    assert classes_that_differ(classes, counts, spec) == 0
    place = random.randrange(len(classes))  # type: ignore[attr-defined]
    for change in (1, -1):
        other = classes.copy()
        other.loc[place, "class_size"] += change
        assert classes_that_differ(other, counts, spec) > 0
    assert classes_that_differ(classes.drop(index=place), counts, spec) > 0
    assert classes_that_differ(pd.concat([classes, classes.iloc[[place]]]), counts, spec) > 0
    nobody = pd.concat([classes, classes.iloc[[place]].assign(class_size=0)])
    assert classes_that_differ(nobody, counts, spec) > 0
    for column in classes.columns:
        if not column.endswith("_level") and not column.endswith("_label"):
            assert classes_that_differ(classes.drop(columns=column), counts, spec) > 0


@pytest.mark.parametrize("form", ["value", "range"])
def test_an_open_end_lies_outside_of_no_box(tmp_path: Path, form: str) -> None:
    """Of two people beyond 30 no end can be named at k = 5, so that the last class has none."""
    frame = pd.DataFrame({"age": [20] * 10 + [30] * 10 + [91, 95]})
    classes, counts, spec = released(Table(frame, np.zeros((22, 1)), 5), form, False, tmp_path)
    assert classes["age_high"].isna().any() and classes["age"].notna().all()
    assert classes_that_differ(classes, counts, spec) == 0
    beyond = classes.assign(age_low=99)
    assert form == "range" or classes_that_differ(beyond, counts, spec) > 0


@pytest.mark.parametrize("unit", ["D", "h"])
@pytest.mark.parametrize("form", ["value", "range"])
def test_days_and_moments_agree_with_their_class_table(tmp_path: Path, form: str, unit: str) -> None:
    """Days are written without a time of day, moments with one."""
    moments = np.datetime64("2020-02-27", "us") + np.arange(6) * np.timedelta64(31, unit).astype("timedelta64[us]")
    frame = pd.DataFrame({"seen": np.repeat(moments, 6)})
    if unit == "D":
        frame["seen"] = frame["seen"].dt.date
    classes, counts, spec = released(Table(frame, np.zeros((36, 1)), 12), form, False, tmp_path)
    assert len(classes) == 3
    assert classes_that_differ(classes, counts, spec) == 0
    later = classes.assign(**{name: classes[name] + pd.Timedelta(days=1) for name in ("seen_low", "seen_high")})
    assert form == "value" or classes_that_differ(later, counts, spec) > 0


def test_a_column_of_fewer_digits_agrees_with_its_class_table(tmp_path: Path) -> None:
    frame = pd.DataFrame({"dose": np.repeat(np.array([0.1, 0.7, -0.1], dtype=np.float32), 8)})
    classes, counts, spec = released(Table(frame, np.zeros((24, 1)), 4), "value", False, tmp_path)
    assert len(classes) == 3
    assert classes_that_differ(classes, counts, spec) == 0
