"""Spark's defaults for tests: a JVM that compiles little, since each lives a few seconds. Holds no test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: The first compiler only, with room for all that it compiles (by default it has 48 MB, and throws away and compiles
#: again), a garbage collector without threads of its own, and no verification of Spark's bytecode. None of this changes
#: what Spark computes.
JVM = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
#: Rows of a batch between Spark and us, in place of 10,000: small tables pass in several, too.
ARROW_ROWS = 1000
#: Few partitions, small pages of memory, and a plan that is looked at once and never written down. The run on a cluster
#: has Spark's own settings of these (end_to_end/test_spark_cluster.py).
QUICK = f"""
spark.buffer.pageSize         1m
spark.driver.extraJavaOptions {JVM}
spark.executor.heartbeatInterval 60s
spark.sql.adaptive.enabled    false
spark.sql.codegen.factoryMode NO_CODEGEN
spark.sql.codegen.wholeStage  false
spark.sql.execution.arrow.maxRecordsPerBatch {ARROW_ROWS}
spark.sql.maxPlanStringLength 0
spark.sql.shuffle.partitions  2
spark.sql.ui.explainMode      simple
"""


#: Warnings and errors alone: what Spark says of every task costs more than many a task.
LOG = """
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c: %m%n%ex
"""


def write_defaults(folder: Path, defaults: str, log: str | None = None) -> Path:
    """A folder that `SPARK_CONF_DIR` may name; without settings of its log Spark has its own, which tells all."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "spark-defaults.conf").write_text(defaults)
    if log is not None:
        (folder / "log4j2.properties").write_text(log)
    return folder


@contextmanager
def defaults_in(folder: Path) -> Iterator[None]:
    """Spark's defaults are those of this folder; a session that runs already keeps those that it has."""
    before = os.environ.get("SPARK_CONF_DIR")
    os.environ["SPARK_CONF_DIR"] = str(folder)
    try:
        yield
    finally:
        os.environ.pop("SPARK_CONF_DIR") if before is None else os.environ.update(SPARK_CONF_DIR=before)
