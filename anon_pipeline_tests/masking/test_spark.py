"""Row techniques give the same values on Spark as on DuckDB, step by step and looked up."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.relational import SqlEngine
from anon_pipeline.masking.execution import SqlColumn, sql_select
from anon_pipeline.masking.plan import plan_steps
from anon_pipeline_tests.masking.tables import NUMERIC, step
from anon_pipeline_tests.masking.test_row_techniques import CASES

ROWS = 6


def masked_by(engine: SqlEngine, file: Path, looked_up: bool) -> list[tuple[object, ...]]:
    """The table of cases, a column each, after their steps; looked up are few, since each takes Spark a join."""
    chosen = [
        number for number, case in enumerate(CASES) if not looked_up or case[0] in ("hierarchy", "redact", "mask")
    ]
    kinds = {f"case {number}": CASES[number][2] for number in chosen} | {"row": NUMERIC}
    steps = {f"case {number}": [step(CASES[number][0], **CASES[number][1])] for number in chosen}
    with engine._session() as session:
        relation = session.parquet(file)
        storage = session.storage(relation)
        columns = [SqlColumn(name, kinds[name], storage[name], distinct=ROWS if looked_up else None) for name in kinds]
        found = session.rows(sql_select(columns, plan_steps(kinds, steps), relation))
    return sorted(found, key=lambda row: row[-1])


def test_spark_gives_the_values_of_duckdb(quick_spark: None, tmp_path: Path) -> None:
    from anon_pipeline.engine.spark import SparkEngine

    assert max(len(case[3]) for case in CASES) <= ROWS
    values = {f"case {number}": case[3] + [None] * (ROWS - len(case[3])) for number, case in enumerate(CASES)}
    file = tmp_path / "cases.parquet"
    pq.write_table(pa.table(values | {"row": list(range(ROWS))}), file)
    spark, duckdb = SparkEngine(tmp_path / "spark", threads=2), DuckDBEngine(tmp_path / "duckdb", threads=2)
    for looked_up in (False, True):
        assert masked_by(spark, file, looked_up) == masked_by(duckdb, file, looked_up)
