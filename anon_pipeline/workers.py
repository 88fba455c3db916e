"""Parallel work in processes: their start, their number and their end. The caller defines the tasks.

A task is a call of a function that pickle can name, with everything that it needs, such as its seed, among the
arguments. Results come in the order of the tasks, and each task runs on one thread. So results do not depend on the
number of processes. Tasks and results pass through pipes between processes of one user; nothing is written to disk.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.util import Finalize
from threading import Thread
from typing import Any, TypeVar

from anon_pipeline.errors import InputError
from anon_pipeline.threads import one_thread

T = TypeVar("T")
#: Called with (tasks done, tasks) after each task.
Progress = Callable[[int, int], None]

#: The module that imports what every process needs.
PRELOADED = "anon_pipeline.preloaded"
#: Assumed bytes of a worker process: its imports, a few hundred thousand people and a model of them.
MEMORY_OF_ONE = 600_000_000
#: Seconds after which it is looked whether tasks still go to the processes.
LOOK_AGAIN = 5.0

ENDED = (
    "one of {count} processes at work was ended from outside, most likely for lack of memory; "
    "allow fewer with --threads, or more memory"
)
NO_THREAD = (
    "the system starts no further thread for the processes at work; allow more (`ulimit -u`, or the "
    "limit of the container), or let one process work with --threads 1"
)


class Workers:
    """Worker processes, started when they are first needed and kept until `close`.

    Parameters
    ----------
    count : the number of tasks that run at a time; with 1 they run in the calling process, one after the other
    imports : further modules that tasks need; they are imported once for all processes
    unless_here : the same, for work that the caller does itself if it has imported the module when the processes start
    """

    def __init__(self, count: int = 1, imports: Sequence[str] = (), unless_here: Sequence[str] = ()) -> None:
        self.count = max(1, count)
        self._imports = imports
        self._unless_here = unless_here
        self._executor: ProcessPoolExecutor | None = None
        self._owner = os.getpid()
        self._held: Connection | None = None

    @property
    def started(self) -> bool:
        """Whether the processes exist or are being started."""
        return self._executor is not None

    def warm(self) -> None:
        """Make the fork server do the imports now, while the caller does something else.

        No worker process is started yet, since the caller would wait until the imports are done.
        """
        if self.count > 1:
            self._pool()

    def map(
        self, function: Callable[..., T], tasks: Sequence[tuple[Any, ...]], progress: Progress | None = None
    ) -> list[T]:
        """`function(*task)` for each task, in their order.

        Raises
        ------
        InputError
            If a process was ended from outside.
        Exception
            The exception of the first failing task, in the order of the tasks; no further task is started.
        """
        if self.count == 1 or len(tasks) < 2:
            results = []
            for done, task in enumerate(tasks, 1):
                results.append(_one_thread(function, task))
                if progress is not None:
                    progress(done, len(tasks))
            return results
        with self._ended_on_error():
            futures = self._submitted(function, tasks)
            for done, future in enumerate(self._completed(futures), 1):
                if future.exception() is not None:
                    break
                if progress is not None:
                    progress(done, len(tasks))
            failed = next((future for future in futures if future.done() and future.exception() is not None), None)
            return [failed.result()] if failed is not None else [future.result() for future in futures]

    def _submitted(self, function: Callable[..., T], tasks: Sequence[tuple[Any, ...]]) -> list[Future[T]]:
        futures: list[Future[T]] = []
        for task in tasks:
            try:
                futures.append(self._pool().submit(_one_thread, function, task))
            except BrokenProcessPool:
                for future in futures:
                    future.result()  # what broke with the pool says why it did; the pool itself does not
                raise
        return futures

    @contextmanager
    def meanwhile(self, function: Callable[..., T], *task: Any) -> Iterator[Callable[[], T]]:
        """Run one task while the block runs; the yielded function returns its result, or raises its exception."""
        if self.count == 1:
            yield lambda: _one_thread(function, task)
            return
        with self._ended_on_error():
            future: Future[T] = self._pool().submit(_one_thread, function, task)
            yield lambda: next(self._completed([future])).result()

    def _completed(self, futures: Sequence[Future[T]]) -> Iterator[Future[T]]:
        """The futures as they are done, as long as the thread lives that hands tasks to the processes.

        Raises
        ------
        InputError
            If it has died, as where the system starts no further thread; nothing would ever be done.
        """
        pending = set(futures)
        while pending:
            done, pending = wait(pending, LOOK_AGAIN, FIRST_COMPLETED)
            yield from done
            manager = getattr(self._executor, "_executor_manager_thread", None)
            if manager is not None and not manager.is_alive() and not any(future.done() for future in pending):
                raise InputError(NO_THREAD)

    def close(self) -> None:
        """End the processes, also during a task."""
        executor, held, self._executor, self._held = self._executor, self._held, None, None
        if self._owner != os.getpid():
            return
        if held is not None:
            held.close()
        if executor is not None:
            executor.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _pool(self) -> ProcessPoolExecutor:
        if self._executor is None or self._owner != os.getpid():  # a fork does not own its parent's processes
            self._owner = os.getpid()
            context = multiprocessing.get_context("forkserver")
            further = [module for module in self._unless_here if module not in sys.modules]
            context.set_forkserver_preload([PRELOADED, *self._imports, *further])
            _start_fork_server()
            with_parent, self._held = context.Pipe(duplex=False)
            self._executor = ProcessPoolExecutor(self.count, context, _begin, (with_parent,))
            # A process of multiprocessing joins its children before it ends, so the children are ended before that.
            Finalize(None, _close, (weakref.ref(self),), exitpriority=100)
        return self._executor

    @contextmanager
    def _ended_on_error(self) -> Iterator[None]:
        """End the processes after any error in the block, so that none continues in vain."""
        why: str | None = None
        with ExitStack() as stack:
            stack.callback(self.close)
            try:
                yield
            except BrokenProcessPool as broken:
                # Since Python 3.12.1 the thread that hands tasks to the processes tells why it dies.
                threadless = "can't start new thread" in str(broken.__cause__)
                why = NO_THREAD if threadless else ENDED.format(count=self.count)
            else:
                stack.pop_all()
        if why is not None:
            raise InputError(why)


class Tally:
    """Progress over several calls of `Workers.map`, as one count.

    Parameters
    ----------
    progress : called with (tasks done, tasks)
    after : the number of tasks that will follow the first call
    """

    def __init__(self, progress: Progress | None, after: int) -> None:
        self._progress, self._before, self._after = progress, 0, after
        self._tasks = 0

    def __call__(self, done: int, tasks: int) -> None:
        self._tasks = tasks
        if self._progress is not None:
            self._progress(self._before + done, self._before + tasks + self._after)

    def next(self, after: int = 0) -> Tally:
        """The same count, for the next call."""
        following = Tally(self._progress, after)
        following._before = self._before + self._tasks
        return following


def _close(workers: weakref.ref[Workers]) -> None:
    if (alive := workers()) is not None:
        alive.close()


#: Workers without processes: all tasks run in the calling process.
ALONE = Workers(1)


def how_many(threads: int | None = None, memory: str | None = None) -> int:
    """The number of processes that may work in parallel.

    Parameters
    ----------
    threads : the most threads; all cores of this process if None
    memory : the memory of all processes together, in the form of `bytes_of`; the machine's free memory if None
    """
    from joblib import cpu_count  # type: ignore[import-untyped]

    allowed = _free_memory() if memory is None else bytes_of(memory)
    return max(1, min(threads or cpu_count(), allowed // MEMORY_OF_ONE))


def bytes_of_machine() -> int:
    """The bytes of the machine's memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def bytes_of(memory: str, whole: int | None = None) -> int:
    """The bytes of an amount of memory in a spec: 4GB, 512MiB, or 50% of `whole`, else of the machine's memory.

    Raises
    ------
    InputError
        For any other text.
    """
    share = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", memory)
    if share is not None:
        return int(float(share[1]) / 100 * (bytes_of_machine() if whole is None else whole))
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT])(i?)B?\s*", memory, re.IGNORECASE)
    if match is None:
        raise InputError(f"memory: {memory} is no amount of memory; write it as 4GB")
    return int(float(match[1]) * (1024 if match[3] else 1000) ** ("KMGT".index(match[2].upper()) + 1))


@cache
def _free_memory() -> int:
    """Bytes that are available without swapping, as Linux estimates them; elsewhere all memory of the machine."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return bytes_of_machine()


def _start_fork_server() -> None:
    """Start the server from which processes are forked; Ctrl-C ends it silently, where Python would show a traceback.

    It is started with Ctrl-C blocked, until `preloaded` has set that no traceback is shown.
    """
    import signal
    from multiprocessing import forkserver, resource_tracker

    resource_tracker.ensure_running()  # otherwise its later start would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(with_parent: Connection) -> None:
    """The preparation of a process before its first task."""
    import logging
    import signal

    os.environ["LOKY_MAX_CPU_COUNT"] = "1"  # the number of cores for joblib
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller handles Ctrl-C and then ends all processes
    warnings.simplefilter("ignore")  # a library's warning may quote a person; the calling process reports what matters
    logging.disable()
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # nor is what a model prints the command's

    def end_with_caller() -> None:
        try:
            with_parent.poll(None)  # nothing is ever sent: it returns when the caller closes the pipe, or dies
        finally:
            os._exit(1)

    Thread(target=end_with_caller, daemon=True).start()


def _one_thread(function: Callable[..., T], task: tuple[Any, ...]) -> T:
    """Run a task on one thread, as sums of floats depend on the sharing of work, and processes use all cores."""
    import sklearn.ensemble  # noqa: F401  # a library that is not loaded yet cannot be limited
    from joblib import parallel_config  # type: ignore[import-untyped]

    with one_thread(), parallel_config(backend="sequential"):
        return function(*task)
