"""From release.yaml to classes: levels and hierarchies as a spec states them, on cells that the engine has counted."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.anonymize.grouping import TREE, Grouping
from anon_pipeline.anonymize.policy import anonymize_part, tree_of
from anon_pipeline.anonymize.recode import recoded_table
from anon_pipeline.anonymize.storage import load_cells, save_cells
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError
from anon_pipeline.learning.cells import StoredPeople, fitting_domains, folds_of_sample, guided_cells
from anon_pipeline.learning.models import task_of
from anon_pipeline.learning.problem import Problem
from anon_pipeline.learning.targets import train_guide
from anon_pipeline.pipeline.checks.possible import require_possible
from anon_pipeline.pipeline.steps.utility import other_targets
from anon_pipeline.spec import ColumnType, ReleaseSpec
from anon_pipeline.tables import Cells
from anon_pipeline.workers import ALONE
from anon_pipeline_tests.end_to_end.harness import people
from anon_pipeline_tests.people import KEY, write_spec

CITIES = "Aberdeen;Scotland;*\nBergen;Norway;*\nCork;Ireland;*\nDelft;Netherlands;*\n"
QI = {"role": "quasi_identifier", "type": "categorical"}


def dataset(folder: Path, cities: str = CITIES, **changes: dict[str, Any]) -> ReleaseSpec:
    """`people()` with a ZIP code, a size and a date of birth, and the spec of such people."""
    random = np.random.default_rng(0)
    frame = people()
    frame.assign(
        zip=random.choice([f"0{one:04d}" for one in range(1200, 1400, 5)], len(frame)),
        size=random.choice(["low", "middle", "high"], len(frame)),
        born=(pd.Timestamp("2020-06-01") - pd.to_timedelta(frame.pop("age") * 365, unit="D")).dt.date,
    ).to_csv(folder / "people.csv", index=False)
    (folder / "cities.csv").write_text(cities)
    columns: dict[str, Any] = {
        "city": QI | {"hierarchy": {"file": "cities.csv", "strict": True}},
        "sex": QI,
        "zip": QI | {"hierarchy": {"prefix": [5, 3, 2], "strict": True}},
        "size": QI | {"levels": ["low", "middle", "high"]},
        "born": {"role": "quasi_identifier", "type": "date", "hierarchy": "calendar"},
        "ill": "sensitive",
        "visits": {"role": "insensitive", "type": "numeric"},
    }
    for name, said in changes.items():
        columns[name] = columns[name] | said
    guide = {"model": "decision_tree", "folds": 2, "targets": ["ill", "visits"]}
    how: dict[str, Any] = {"target": "ill", "guide": guide, "recode": {"form": "range"}, "utility": {"folds": 2}}
    return write_spec(folder, columns, "people.csv", k=10, **how)


def counted(engine: DuckDBEngine, spec: ReleaseSpec) -> tuple[Cells, pd.DataFrame, dict[str, ColumnType]]:
    table = spec.folder / "stored.parquet"
    types = engine.store_source(spec, table).types()
    sample = engine.sample(table, spec, types, spec.guide.sample)
    folded, guide = folds_of_sample(sample.hash, spec.guide, KEY)
    features = {name: types[name] for name in spec.features}
    task = task_of(types[spec.target])
    trained = train_guide(Problem(sample.features, sample.target, task, features, spec.seed), guide, folded.fold)
    cells = guided_cells(StoredPeople(engine, table, spec, types), trained, folded, 1.0)
    return cells, pd.concat([sample.features, sample.target], axis=1), types


@pytest.mark.long
def test_a_spec_s_hierarchies_and_levels_reach_the_release(engine: DuckDBEngine, tmp_path: Path) -> None:
    spec = dataset(tmp_path)
    cells, _, _ = counted(engine, spec)
    save_cells(cells, tmp_path)
    cells = load_cells(tmp_path)
    tree_of(spec, KEY).fit_cells(cells).save(tmp_path / TREE)
    grouping = Grouping.load(tmp_path, cells)
    classes, shown = grouping.table, recoded_table(grouping.summaries, spec.recode.form).to_pandas()
    assert cells.guidance.shape[1] == 2 and (grouping.sizes >= 10).all()
    assert set(classes["city_label"]) <= {"Aberdeen", "Bergen", "Cork", "Delft", "*"}
    assert classes["zip_label"].str.fullmatch(r"\d{5}|\d{3}\*\*|\d\d\*\*\*|\*").all()
    assert classes["born_label"].str.fullmatch(r"\d{4}( \.\. \d{4}| Q\d|-\d\d(-\d\d)?)?|[≥≤] \d{4}|\*").all()
    assert shown["size"].str.fullmatch(r"(low|middle|high)( \.\. (middle|high))?").all()
    for name in ("city", "zip", "born"):
        assert shown[name].tolist() == classes[f"{name}_label"].tolist()
    assert sum(axis.within is not None for axis in tree_of(spec, KEY).fit_cells(cells).partition_.tree.features) > 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("cities", "changes", "sentence"),
    [
        (CITIES.replace("Cork", "Kork"), {}, "columns.city.hierarchy: 1 of the column's 4 values"),
        (CITIES, {"size": {"levels": ["low", "high"]}}, "columns.size.levels: 1 of the column's 3 values"),
        (CITIES.replace(";", ","), {}, "columns.city.hierarchy: .*line 1 has a value and no level"),
    ],
    ids=["a value that the file lacks", "a value that is no level", "another delimiter"],
)
def test_what_does_not_fit_is_told_before_people_are_grouped(
    engine: DuckDBEngine, tmp_path: Path, cities: str, changes: dict[str, Any], sentence: str
) -> None:
    spec = dataset(tmp_path, cities, **changes)
    with pytest.raises(InputError, match=sentence):
        counted(engine, spec)
    table = tmp_path / "people.parquet"
    types = engine.store_source(spec, table).types()
    with pytest.raises(InputError, match=sentence):  # and before models are trained
        require_possible(spec, engine, table, types)


@pytest.mark.long
def test_in_a_fold_dates_are_numbers_and_calendars_are_left_out(engine: DuckDBEngine, tmp_path: Path) -> None:
    spec = dataset(tmp_path)
    _, frame, _ = counted(engine, spec)
    part = anonymize_part(spec, KEY, frame, np.zeros((len(frame), 1)))
    assert set(part["city"]) <= {"Aberdeen", "Bergen", "Cork", "Delft", "*"} and part["born"].dtype.kind in "if"


def test_a_column_with_a_hierarchy_is_not_put_into_bins(engine: DuckDBEngine, tmp_path: Path) -> None:
    spec = dataset(tmp_path)
    table = tmp_path / "stored.parquet"
    types = {"born": ColumnType.DATE, "visits": ColumnType.NUMERIC}
    engine.store_source(spec, table)
    assert fitting_domains(engine, table, types, 30)[0].binned
    with pytest.raises(InputError, match=r"grouping.cells"):
        fitting_domains(engine, table, types, 30, whole=("born",))


@pytest.mark.long
def test_utility_is_measured_for_every_further_target(engine: DuckDBEngine, tmp_path: Path) -> None:
    spec = dataset(tmp_path)
    _, frame, types = counted(engine, spec)
    run: Any = SimpleNamespace(spec=spec, load_model=None, key=KEY, workers=lambda people: ALONE)
    measured = other_targets(run, frame, types, dict.fromkeys(types, "DOUBLE"), seed=0)
    assert list(measured) == ["visits"] and set(measured["visits"]["metrics"]) == {"r2", "mae"}
