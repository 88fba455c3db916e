"""A process that dies, or finds the disk full, at a chosen one of the calls that change a file. Holds no test."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
from collections.abc import Callable
from typing import Any, Literal

FORK = multiprocessing.get_context("fork")
#: The calls that change a file, before each of which a process is killed.
CALLS = ("pwrite", "fsync", "replace", "ftruncate", "mkdir", "write")
End = Literal["killed", "torn", "full"]


def fail_at(count: int, end: End) -> list[int]:
    """Let this process end at the given call, from 0; a torn write leaves half of its bytes, a full disk an error.

    The list that is returned holds one number, below 0 once that call was reached.
    """
    left = [count]

    def failing(call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def fail(*args: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] >= 0 or (end == "full" and left[0] < -1):
                return call(*args, **options)
            if end == "full":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if end == "torn" and name == "pwrite":
                call(args[0], args[1][: len(args[1]) // 2], *args[2:])
            os.kill(os.getpid(), signal.SIGKILL)

        return fail

    for name in CALLS:
        setattr(os, name, failing(getattr(os, name), name))
    return left


def exit_code(work: Callable[..., None], *arguments: Any) -> int:
    """How a child that does this work ends: 0, or below 0 where a signal killed it."""
    child = FORK.Process(target=work, args=arguments)
    child.start()
    child.join()
    return int(child.exitcode or 0)
