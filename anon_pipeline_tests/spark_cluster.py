"""A standalone cluster of Spark for tests: a master and workers, each a process of its own, on ports of their own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from anon_pipeline_tests.quick_spark import JVM, LOG, write_defaults
from anon_pipeline_tests.skips import require_spark
from anon_pipeline_tests.watchdog import tree

SPARK = "org.apache.spark.deploy"
#: One executor on each worker. Queries are compiled as Spark does by default, and are never written down.
DEFAULTS = f"""
spark.driver.extraJavaOptions   {JVM}
spark.executor.extraJavaOptions {JVM}
spark.executor.cores            1
spark.executor.memory           480m
spark.driver.host               127.0.0.1
spark.ui.enabled                false
spark.sql.adaptive.enabled      false
spark.sql.maxPlanStringLength   0
spark.sql.shuffle.partitions    2
spark.sql.ui.explainMode        simple
"""
#: The same for runs of which nothing is wanted but how they end: queries are not compiled.
UNCOMPILED = f"""{DEFAULTS}
spark.sql.codegen.factoryMode   NO_CODEGEN
spark.sql.codegen.wholeStage    false
"""
#: Of the master and its workers also what tells that they are ready; executors and drivers only warn.
DAEMONS_LOG = f"""{LOG}
logger.deploy.name  = org.apache.spark.deploy
logger.deploy.level = info
"""


class Cluster:
    """A master and its workers; each has a log in the folder.

    Attributes
    ----------
    address : what SPARK_MASTER is set to
    configuration : a folder that SPARK_CONF_DIR may name
    workers : the workers' processes, in each of which nothing of ours is installed
    """

    def __init__(self, folder: Path, workers: int) -> None:
        import pyspark

        self._program = Path(pyspark.__file__).parent / "bin" / "spark-class"
        self._folder = folder
        self.configuration = write_defaults(folder / "configuration", DEFAULTS, DAEMONS_LOG)
        options = f"{JVM} -Dspark.master.rest.enabled=false"
        self._environment = os.environ | {
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": options,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_CONF_DIR": str(self.configuration),
        }
        self._master = self._started(
            "master", "master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"
        )
        self.address = self._said("master", r"Starting Spark master at (spark://\S+)")[0]
        self._workers = [self._started(f"worker{one}", *self._worker(f"worker{one}")) for one in range(workers)]
        self.workers = [worker.pid for worker in self._workers]
        for one in range(workers):
            self._said(f"worker{one}", r"(Successfully registered with master)")

    def _worker(self, name: str) -> list[str]:
        sizes = ["--cores", "1", "--memory", "600m", "--port", "0", "--webui-port", "0"]
        return ["worker.Worker", "--host", "127.0.0.1", *sizes, "--work-dir", str(self._folder / name), self.address]

    def _started(self, name: str, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self._folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [self._program, f"{SPARK}.{program}", *arguments],
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _said(self, name: str, pattern: str) -> list[str]:
        """What the log says, as soon as it says it."""
        log = self._folder / f"{name}.log"
        while not (found := re.findall(pattern, log.read_text(errors="replace"))):
            time.sleep(0.1)
        return found

    def stop(self) -> None:
        for started in [*self._workers, self._master]:
            kill_with_all_it_started(started.pid)
            started.wait()


def executors_of(worker: int) -> list[int]:
    """The processes that compute for a driver on a worker."""
    return [process for process, _ in tree(worker) if b"CoarseGrainedExecutorBackend" in _command_line(process)]


def _command_line(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


def kill_executors(worker: int) -> None:
    """End the executors of a worker, as the system does when memory runs out; the worker starts others."""
    for process in executors_of(worker):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def kill_with_all_it_started(worker: int) -> None:
    """End a worker with its executors, as a machine does that fails."""
    for process in [process for process, _ in tree(worker)][::-1]:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


@contextmanager
def running_cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A cluster that runs while the block lasts; without Spark or Java the test is skipped."""
    require_spark()
    cluster = Cluster(folder, workers)
    try:
        yield cluster
    finally:
        cluster.stop()
