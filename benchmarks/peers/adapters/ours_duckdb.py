"""Ours through the DuckDB engine, from a Parquet file to a Parquet file; the guidance is a column of the source."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from protocol import CATEGORICAL, GUIDANCE, QUASI_IDENTIFIERS, TARGET, Run

from anon_pipeline.anonymize.policy import tree_of
from anon_pipeline.anonymize.recode import recoded_table
from anon_pipeline.engine.base import Recoding
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.learning.cells import Sample, StoredPeople, guided_cells
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline.tables import scale_of

NOBODY = Sample(np.array([-1]), np.array([-1]), None)  # no row was held out, since the guidance is given


class Given:
    """A model whose predictions are a column of the table."""

    def guidance(self, features, _folds):
        return features[[GUIDANCE]].to_numpy()


def spec(run):
    kinds = {name: "categorical" if name in CATEGORICAL else "numeric" for name in QUASI_IDENTIFIERS}
    columns = {name: {"role": "quasi_identifier", "type": kind} for name, kind in kinds.items()}
    columns |= {name: {"role": "insensitive", "type": "numeric"} for name in ("row", GUIDANCE)}
    columns[TARGET] = {"role": "sensitive", "type": "categorical"}
    return ReleaseSpec.model_validate(
        {
            "dataset": "peers",
            "source": {"path": str(run.folder / "numbered.parquet")},
            "target": TARGET,
            "columns": columns,
            "privacy": {"k_anonymity": {"k": run.k}},
            "guide": {"model": "decision_tree"},
        }
    )


run = Run()
run.people.assign(row=np.arange(len(run.people))).to_parquet(run.folder / "numbered.parquet", index=False)
scale = scale_of(run.people[[GUIDANCE]].to_numpy())
with tempfile.TemporaryDirectory() as scratch:
    stored, released = Path(scratch) / "stored.parquet", Path(scratch) / "released.parquet"
    with run.measured():
        policy, engine = spec(run), DuckDBEngine(Path(scratch))
        types = engine.store_source(policy, stored).types()
        cells = guided_cells(StoredPeople(engine, stored, policy, types), Given(), NOBODY, scale)
        tree = tree_of(policy, None)
        class_of_cell = tree.fit_apply_cells(cells)
        shown = recoded_table(tree.summaries_, "value")
        engine.write_release(stored, Recoding(cells, class_of_cell, shown), policy.released, released)
    table = pd.read_parquet(released).sort_values("row")
run.write(table, table["row"], tree.apply(run.people[QUASI_IDENTIFIERS])[table["row"]])
