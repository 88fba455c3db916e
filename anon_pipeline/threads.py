"""The number of threads that numerical libraries may use."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS, for the whole process, and OpenMP, for the calling thread, to one thread in the block.

    Sums of floating-point numbers depend on how threads share the work. For little work, several threads mostly wait
    for each other. Libraries that are not loaded yet are not limited: import them first.
    """
    with _libraries(len(sys.modules)).limit(limits=1):
        yield


@lru_cache(maxsize=1)
def _libraries(_modules: int) -> ThreadpoolController:
    """The numerical libraries of this process, searched again (5 ms) if there are more modules than before."""
    return ThreadpoolController()
