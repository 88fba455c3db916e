"""Importing large libraries: without looking for garbage meanwhile, and without the parts of them nobody here uses."""

from __future__ import annotations

import gc
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from threading import get_ident
from types import ModuleType

#: Whether this process is a command of ours; in another, garbage of the program around us would be kept as well.
_is_command = False

#: scipy puts every name of numpy beside its own, and so loads a compiler of Fortran that nobody calls.
LATER = ("numpy.f2py",)


def keep_imports() -> None:
    """In a process that is a command: what large imports have made is never looked through again.

    It would be three times, as soon as it is complete, which takes half a second of a small run.
    """
    global _is_command
    _is_command = True


@contextmanager
def large_imports(absent: Collection[str] = (), later: Collection[str] = LATER) -> Iterator[None]:
    """Import large libraries in the block.

    An import makes hundreds of thousands of objects that all stay; the garbage collector would go through them again
    and again, which is a fifth of the time. What is imported already stays as it is, and only the imports of this
    thread are meant.

    Parameters
    ----------
    absent : modules that the libraries in the block can do without, which they do as if they were not installed
    later : modules that are loaded when somebody first asks for one of their names
        (https://docs.python.org/3/library/importlib.html#implementing-lazy-imports)
    """
    finder, collected = _Finder(absent, later), gc.isenabled()
    sys.meta_path.insert(0, finder)
    gc.disable()
    try:
        yield
    finally:
        if _is_command:
            gc.freeze()
        if collected:
            gc.enable()
        sys.meta_path.remove(finder)


class _Finder(MetaPathFinder):
    """Finds what is to be absent, or loaded later, before anybody else does."""

    def __init__(self, absent: Collection[str], later: Collection[str]) -> None:
        self._absent, self._later, self._thread = absent, later, get_ident()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if get_ident() != self._thread:
            return None
        if fullname in self._absent:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        if fullname not in self._later:
            return None
        found = PathFinder.find_spec(fullname, path, target)
        if found is not None and found.loader is not None:
            found.loader = LazyLoader(found.loader)
        return found
