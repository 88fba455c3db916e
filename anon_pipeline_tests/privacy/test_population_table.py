"""A population with dates and missing values is matched to classes by the same calendar as the table itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.learning.cells import fixed_point
from anon_pipeline.privacy.k_map import KMap
from anon_pipeline.privacy.population_table import PEOPLE, boxed
from anon_pipeline.spec import ColumnType, ReleaseSpec


def test_a_population_is_matched_by_date_as_the_table_is(tmp_path: Path, engine: DuckDBEngine) -> None:
    random = np.random.default_rng(0)
    born = pd.Series(pd.Timestamp("1960-01-01") + pd.to_timedelta(random.integers(0, 9000, 300), unit="D"))
    people = pd.DataFrame({"born": born.dt.strftime("%Y-%m-%d"), "town": random.choice(["Ulm", "Bonn"], 300)})
    people.loc[::20, "town"] = ""
    people.assign(sick=random.choice(["yes", "no"], 300)).to_csv(tmp_path / "people.csv", index=False)
    pd.concat([people, people, people]).to_csv(tmp_path / "population.csv", index=False)
    roles = {"born": {"role": "quasi_identifier", "type": "date"}, "town": {"role": "quasi_identifier"}}
    spec = ReleaseSpec(
        dataset="people",
        source={"path": str(tmp_path / "people.csv")},
        target="sick",
        columns={**roles, "sick": {"role": "sensitive"}},
        privacy={"k_anonymity": {"k": 5}, "k_map": {"k": 30, "population": str(tmp_path / "population.csv")}},
    )
    types = engine.store_source(spec, tmp_path / "table.parquet").types()
    domains = engine.domains(tmp_path / "table.parquet", {name: types[name] for name in ("born", "town")})
    assert (types["born"], domains[0].storage) == (ColumnType.DATE, "DATE")
    keys = np.concatenate(
        [
            np.repeat(batch.key, batch.people, axis=0)
            for batch in engine.batches(tmp_path / "table.parquet", spec, types, domains)
        ]
    )
    key, counts = np.unique(keys, axis=0, return_counts=True)
    cells = engine.cells(domains, key, counts.astype(np.int64), fixed_point(np.zeros((len(key), 1))))
    population_table = engine.population_table(spec, types, str(tmp_path / "population.csv"))
    assert population_table[PEOPLE].sum() == 900
    tree = AnonymizerTree(k=5, demands=[KMap(k=30, population="population.csv")]).fit_cells(
        cells, None, population_table
    )
    matched = boxed(tree.classes_, ["born", "town"], population_table)
    assert matched.population is not None
    assert (matched.population >= 30).all()
    assert len(matched.sizes) > 3
    # The frame with its moments goes to the classes that the engine's days were put into.
    frame = people.assign(born=born, town=people["town"].replace("", None))
    assert np.bincount(tree.apply(frame), minlength=len(tree.sizes_)).tolist() == tree.sizes_.tolist()
