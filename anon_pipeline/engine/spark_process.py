"""The Spark process: found or started, kept on this machine, and ended; its errors lose the data that they quote."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread, current_thread, main_thread
from types import FrameType
from typing import TYPE_CHECKING, Any

from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.workers import bytes_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER_VARIABLE = "SPARK_MASTER"
#: How long parts of Spark wait for each other on one machine, where a long wait means a busy machine and not a broken
#: network.
LONGEST_WAIT = "3600s"
#: Seconds between two checks of a cluster without workers for our work; the second check reports it.
LOOKS_EVERY = 15.0
#: The exit code of an executor that has no memory left (`SparkExitCode.OOM`).
OUT_OF_MEMORY = 52

log = logging.getLogger("anon_pipeline")

INSTALL = (
    "engine: spark is not installed: it needs `pip install 'anon-pipeline[spark]'` and a Java 17 runtime, "
    "for example from `apt-get install openjdk-17-jre-headless`"
)

#: Parts of an error at the start of Spark that its user can fix. Any other error is a mistake in a program.
MENDABLE = (
    "JAVA_GATEWAY_EXITED",  # another Java than Spark's, or less memory than a JVM takes
    "FileNotFoundError",  # SPARK_HOME is not where it says
    "PermissionError",
    "Py4JNetworkError",  # the JVM died
    "IllegalArgumentException",  # of Spark's settings, with the memory
    "org.apache.spark.SparkException",  # of a master's name
    "java.lang.NumberFormatException",
    "java.net.",
    "java.io.IOException",
)


def running_session(scratch: Path, memory_limit: str | None, threads: int | None) -> SparkSession:
    """The session of this process; Spark is started where it is not running yet.

    Raises
    ------
    InputError
        If Spark or Java is not installed, or Spark does not start.
    """
    try:
        import sqlglot  # noqa: F401
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError:
        raise InputError(INSTALL) from None
    if SparkContext._active_spark_context is None:
        _start(scratch, memory_limit, threads)
    return SparkSession.builder.getOrCreate()


def _start(scratch: Path, memory_limit: str | None, threads: int | None) -> None:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if "PYSPARK_GATEWAY_PORT" not in os.environ and not _has_java():  # spark-submit has started a JVM already
        raise InputError(INSTALL)
    _silence_python()
    launched = SparkConf(loadDefaults=False)
    if memory_limit is not None:
        launched.set("spark.driver.memory", f"{_megabytes(memory_limit)}m")
    try:
        # Messages of the JVM may quote a row, so its output is discarded.
        nowhere = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        SparkContext._ensure_initialized(gateway=SparkContext._gateway or launch_gateway(launched, nowhere))
        settings = SparkConf()  # with the defaults of the environment
        settings.setMaster(os.environ.get(MASTER_VARIABLE) or settings.get("spark.master", "local[*]"))
        settings.setAppName("anon-pipeline")
        settings.set("spark.ui.showConsoleProgress", "false")
        if settings.get("spark.master").startswith("local"):
            _stay_at_home(settings, scratch, threads)
        context = SparkContext(conf=settings)
        if not settings.get("spark.master").startswith("local"):
            Thread(target=_tell_of_waiting, args=(context,), daemon=True).start()
        if SparkContext._gateway.proc is not None:
            atexit.register(_stop, context)
    except Exception as error:
        if not any(sign in f"{type(error).__name__} {error}" for sign in MENDABLE):
            raise
        raise InputError(
            f"engine: spark could not be started ({type(error).__name__}); it needs a Java 17 runtime, a master that "
            "answers, and a --memory of at least 512MB"
        ) from None


def _tell_of_waiting(context: Any) -> None:
    """Report that work waits for a cluster without workers; Spark itself only writes this to its log."""
    with suppress(Exception):  # Spark has ended, and nobody waits
        waited = 0
        while waited < 2:
            time.sleep(LOOKS_EVERY)
            alone = context._jsc.sc().getExecutorMemoryStatus().size() <= 1  # of the driver itself
            waits = alone and bool(context.statusTracker().getActiveJobsIds())
            waited = waited + 1 if waits else 0
        settings = context.getConf()
        log.warning(
            "spark: no worker of the cluster %s has taken the work for %d seconds. It may be busy, or no worker may "
            "have the memory (%s) and cores (%s) of an executor; the run goes on as soon as there is one",
            context.master,
            round(waited * LOOKS_EVERY),
            settings.get("spark.executor.memory", "1g"),
            settings.get("spark.executor.cores", "as many as there are"),
        )


@contextmanager
def ended_by_interrupts(context: Any) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end Spark's current work too; otherwise our next call would wait until it is done.

    The interrupted thread waits for an answer over its own connection, so another thread has to stop the work. Answers
    on the interrupted connection may then belong to earlier calls, so errors there count as the interrupt.
    """
    if current_thread() is not main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    received: list[signal.Signals] = []

    def interrupted(number: int, frame: FrameType | None) -> None:
        received.append(signal.Signals(number))
        Thread(target=_cancel, args=(context,), daemon=True).start()
        as_before(number, frame)

    def as_before(number: int, frame: FrameType | None) -> None:
        handler = before[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    try:
        for number, handler in before.items():
            if callable(handler):  # Dagster has one for each of them
                signal.signal(number, interrupted)
        yield
    except Exception:
        for number in received:
            as_before(number, None)
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _cancel(context: Any) -> None:
    with suppress(Exception):  # Spark may be at its end already
        context.cancelAllJobs()


def _stop(context: Any) -> None:
    """Wait until the JVM that we started has ended and removed its spill files."""
    with suppress(Exception):
        context.stop()
        context._gateway.shutdown()
        context._gateway.proc.stdin.close()
        context._gateway.proc.wait(30)


def _stay_at_home(settings: Any, scratch: Path, threads: int | None) -> None:
    """Let Spark on one machine use no network, and keep its spill files in the private zone."""
    if settings.get("spark.master") == "local[*]" and threads is not None:
        settings.setMaster(f"local[{threads}]")
    # Enough partitions for data that do not fit into memory at once; Spark's 200 would cost a small table seconds.
    settings.setIfMissing("spark.sql.shuffle.partitions", str(8 * (threads or os.cpu_count() or 1)))
    for name, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.maxResultSize": "0",
        "spark.executor.heartbeatInterval": "60s",
        "spark.network.timeout": LONGEST_WAIT,
        "spark.python.authenticate.socketTimeout": LONGEST_WAIT,
        "spark.local.dir": str(scratch),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": uri(scratch / "warehouse"),
        "spark.ui.enabled": "false",
    }.items():
        settings.set(name, value)


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=f"{home}/bin" if home else None) is not None


def _megabytes(limit: str) -> int:
    return max(1, bytes_of(limit) >> 20)


def _silence_python() -> None:
    """Silence PySpark's log, which would hold the errors that it raises with the data that they quote."""
    for name in ("py4j", "DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def uri(path: Path) -> str:
    """A path in the form that Spark accepts."""
    return f"file://{path}"  # Hadoop takes a path as it is, without %20


#: Parts of the sentences below about the machine, and not about a spec or a table.
MAY_PASS = ("out of memory", "the disk is full")


@contextmanager
def harmless(sentence: str) -> Iterator[None]:
    """Spark's errors as a sentence that quotes nothing.

    Raises
    ------
    InputError
        For an error of Spark, or if Spark is not installed.
    """
    try:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
    except ImportError:
        raise InputError(INSTALL) from None
    try:
        yield
    except (PySparkException, Py4JError) as error:
        reason = _reason(error, sentence)
        raise (Unavailable if any(sign in reason for sign in MAY_PASS) else InputError)(reason) from None


def _reason(error: BaseException, sentence: str) -> str:
    text = str(error)
    for sign, reason in (
        ("OutOfMemory", "Spark ran out of memory; raise the memory limit"),
        (f"exited with code {OUT_OF_MEMORY}", "Spark ran out of memory; raise the memory limit"),
        ("No space left", f"{sentence}: the disk is full"),
        ("is not a Parquet file", f"{sentence}: it is no intact Parquet file"),
        ("CANNOT_READ_FILE", f"{sentence}: it is no intact Parquet file"),
        ("Py4JNetworkError", "Spark ended before its answer; it may have run out of memory"),
        ("SparkContext was shut down", "Spark ended before its answer; it may have run out of memory"),
        ("ExecutorLostFailure", "Spark's executors ended before their answer; they may have run out of memory"),
    ):
        if sign in f"{type(error).__name__} {text}":
            return reason
    return f"{sentence}: the library reported {type(error).__name__}"
