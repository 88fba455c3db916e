"""Imports of large libraries, without garbage collection meanwhile, and without their unused parts."""

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

#: Whether this process is a command of this package; in other programs, their garbage would be kept as well.
_is_command = False

#: scipy copies every name of numpy, and so would load numpy's Fortran tools, which are not used.
LATER = ("numpy.f2py",)


def keep_imports() -> None:
    """In a process that is a command: exclude the objects of large imports from garbage collection for good.

    Otherwise they would be searched three times after the imports, which takes half a second of a small run.
    """
    global _is_command
    _is_command = True


@contextmanager
def large_imports(absent: Collection[str] = (), later: Collection[str] = LATER) -> Iterator[None]:
    """Import large libraries in the block.

    An import makes hundreds of thousands of objects that all stay. The garbage collector would search them again and
    again, which takes a fifth of the time. Modules that are imported already do not change, and only the imports of
    this thread are affected.

    Parameters
    ----------
    absent : modules that the libraries in the block do not need; they appear as not installed
    later : modules that are loaded at the first access to one of their names
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
    """Handles the modules that are absent or loaded later, before all other finders."""

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
