"""How many threads numerical libraries may use."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS, for the whole process, and OpenMP, for the calling thread, use one thread in the block.

    Sums of floating-point numbers depend on how threads share the work; and over little work, several threads mostly
    wait for each other. Libraries that are not loaded yet are not limited: import them first.
    """
    with _libraries(len(sys.modules)).limit(limits=1):
        yield


@lru_cache(maxsize=1)
def _libraries(_modules: int) -> ThreadpoolController:
    """The numerical libraries of this process, looked for again (5 ms) once there are more modules than before."""
    return ThreadpoolController()
