"""The time to judge a table by its classes, at 30 thousand and at 3 million rows.

Run: python -m benchmarks.metrics
The table is Adult anonymized at k = 10, repeated to size in random order, with three sensitive columns. The second
column is the time that DuckDB needs to group the same file by the same columns once: it shows the machine's own speed.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.privacy.judge import statistics_of
from anon_pipeline.privacy.measures import describe
from anon_pipeline.spec import ReleaseSpec, Role

SPEC = ReleaseSpec.load(Path(__file__).parents[1] / "data/adult")


def main() -> None:
    people = pd.read_parquet(SPEC.source_path).replace("?", None)[SPEC.released]
    tree = AnonymizerTree(k=SPEC.k).fit(people[SPEC.quasi_identifiers], people[SPEC.target])
    people = people.assign(**tree.transform(people[SPEC.quasi_identifiers]))
    sensitive = SPEC.with_role(Role.SENSITIVE)
    print(f"{'rows':>10} {'classes':>8} {'judging, cpu s':>15} {'one GROUP BY, cpu s':>20}")
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.parquet"
        for rows in (30_000, 3_000_000):
            chosen = np.random.default_rng(0).integers(len(people), size=rows)
            people.iloc[chosen].to_parquet(table, index=False)
            engine = DuckDBEngine(Path(folder) / "spill")
            start = time.process_time()
            counts = engine.classes(table, SPEC.quasi_identifiers, sensitive)
            describe(statistics_of(counts))
            judged = time.process_time() - start
            columns = ", ".join(SPEC.quasi_identifiers)
            start = time.process_time()
            duckdb.sql(f"SELECT {columns}, count(*) FROM '{table}' GROUP BY ALL").fetchall()
            grouped = time.process_time() - start
            print(f"{rows:>10,} {len(counts.sizes):>8,} {judged:>15.2f} {grouped:>20.2f}")


if __name__ == "__main__":
    main()
