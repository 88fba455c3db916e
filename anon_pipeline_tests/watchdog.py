"""No verdict by the clock: a test that gets on may take as long as it takes, and only one that hangs is ended.

A test hangs when hardly any thread of its process tree works or is ready to work, for long: everybody waits for
something that does not come. Whoever is ready to run counts as working even where a busy machine does not let it run,
so other work beside the tests changes nothing. No test has a limit of its own; waits in tests have none either.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Generator, Iterator
from pathlib import Path
from types import FrameType

import pytest

PROC = Path("/proc")
#: Seconds between two looks at the process tree.
EVERY = 2.0
#: Seconds after which waiting is hanging, on a machine as fast and as idle as the one of `REFERENCE`.
QUIET = 600.0
#: Looks at rest that one look at work outweighs: servers at rest are seen at work now and then, tests at work often.
OUTWEIGHS = 10
#: Seconds of the processor after which a test counts as endless, on the same machine.
ENDLESS = 7200.0
#: Seconds that `_work` takes on the machine of two cores on which these limits were chosen, at rest.
REFERENCE = 0.04


def slowness() -> float:
    """How many times as long as on the machine of `REFERENCE` a piece of work takes here and now; at least 1."""
    start = time.perf_counter()
    _work()
    return max(1.0, (time.perf_counter() - start) / REFERENCE)


def generous() -> float:
    """Seconds for those who insist on a limit, such as a browser: far more than a wait takes, less than `QUIET`."""
    return QUIET / 2 * slowness()


def _work() -> int:
    return sum(range(2_000_000))


def tree(root: int) -> Iterator[tuple[int, list[str]]]:
    """A process and all that it started, with the fields of /proc/PID/stat from the state on."""
    processes = {int(entry.name): fields for entry in PROC.glob("[0-9]*") if (fields := _fields(entry / "stat"))}
    inside = {root}
    while more := {pid for pid, fields in processes.items() if int(fields[1]) in inside} - inside:
        inside |= more
    return ((pid, processes[pid]) for pid in sorted(inside) if pid in processes)


def works(root: int) -> bool:
    """Whether a thread of the tree works, is ready to, or waits for a disk; the thread that asks does not count.

    Where there is no /proc nobody can tell, and everybody counts as working.
    """
    if not PROC.exists():
        return True
    me = str(threading.get_native_id())
    return any(
        thread.name != me and (_fields(thread / "stat") or " ")[0] in ("R", "D")
        for pid, _ in tree(root)
        for thread in _entries(PROC / str(pid) / "task")
    )


def cpu_seconds(root: int) -> float:
    """What the tree has used of the processor, with those of it that have ended."""
    return sum(sum(map(int, fields[11:15])) for _, fields in tree(root)) / os.sysconf("SC_CLK_TCK")


def _fields(stat: Path) -> list[str] | None:
    try:
        return stat.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:  # it has ended
        return None


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


class Rest:
    """How long a process tree has been at rest, counted in looks at it and not by the clock."""

    def __init__(self, root: int, most: float) -> None:
        self._root, self._most, self._looks = root, most, 0

    def hangs(self) -> bool:
        """Look once more; true after `most` looks at rest, or more where the machine is slow."""
        self._looks = max(0, self._looks - OUTWEIGHS) if works(self._root) else self._looks + 1
        return self._looks >= self._most and self._looks >= self._most * slowness()


class Watchdog:
    """A plugin of pytest that fails a test which hangs, shows where, and goes on with the next one."""

    def __init__(self, config: pytest.Config, every: float = EVERY, quiet: float = QUIET) -> None:
        self._config, self._every, self._most = config, every, quiet / every
        self._root = os.getpid()
        self._test: object | None = None
        self._reason = ""

    def pytest_sessionstart(self) -> None:
        signal.signal(signal.SIGALRM, self._fail)
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        self._test = object()
        try:
            return (yield)
        finally:
            self._test = None

    def _watch(self) -> None:
        watched_test, rest, before, failed = None, Rest(self._root, self._most), 0.0, False
        while True:
            time.sleep(self._every)
            test = self._test
            if test is None:
                continue
            if test is not watched_test:
                watched_test, rest, before, failed = test, Rest(self._root, self._most), cpu_seconds(self._root), False
            reason = self._verdict(rest, before)
            if reason and test is self._test:
                self._end(reason, by_force=failed)
                rest, before, failed = Rest(self._root, self._most), cpu_seconds(self._root), True

    def _verdict(self, rest: Rest, before: float) -> str:
        if rest.hangs():
            return "it hangs: nothing of it has worked for long"
        used = cpu_seconds(self._root) - before
        if used > ENDLESS and used > ENDLESS * slowness():
            return f"it does not end: it has used {used:.0f} s of the processor"
        return ""

    def _end(self, reason: str, by_force: bool) -> None:
        """Ask the test to fail; if that was of no use the last time, end the process."""
        self._reason = f"{reason}\n{self._processes()}\n{_stacks()}"
        if not by_force:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
            return
        capture = self._config.pluginmanager.getplugin("capturemanager")
        if capture is not None:
            capture.suspend_global_capture(in_=True)
        sys.__stderr__ and print(self._reason, file=sys.__stderr__, flush=True)
        os._exit(1)

    def _fail(self, number: int, frame: FrameType | None) -> None:
        pytest.fail(self._reason, pytrace=False)

    def _processes(self) -> str:
        return "\n".join(f"process {pid} ({fields[0]}): {_name(pid)}" for pid, fields in tree(self._root))


def _name(pid: int) -> str:
    try:
        return (PROC / str(pid) / "cmdline").read_text(errors="replace").replace("\0", " ")[:200]
    except OSError:
        return "has ended"


def _stacks() -> str:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return "\n".join(
        f"thread {names.get(ident, ident)}:\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in sys._current_frames().items()
        if ident != threading.get_ident()
    )
