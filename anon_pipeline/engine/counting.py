"""Counts of people in a source that is not stored first: the operation of an engine for differential privacy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from anon_pipeline.engine.typed import Reader
from anon_pipeline.home import scratch
from anon_pipeline.spec import ReleaseSpec


class CountingEngine(ABC):
    """An engine that opens sources; see `anon_pipeline.engine.base.Engine` for what its method promises."""

    _scratch: Path  # a private folder for what does not fit into memory

    @abstractmethod
    def _session(self) -> AbstractContextManager[Any]:
        """A fresh session, as `anon_pipeline.engine.session.Session` says."""

    @abstractmethod
    def _opened(
        self, session: Any, spec: ReleaseSpec, scratch: Path, by_itself: bool = False
    ) -> AbstractContextManager[Any]:
        """The source of a spec, as `anon_pipeline.engine.typed.OpenSource` says; see `sources.opened`."""

    def aggregated(self, spec: ReleaseSpec, query: Callable[[Reader, str], str], reads_rows: bool = True) -> pa.Table:
        with (
            self._folder_of_its_own() as folder,
            self._session() as session,
            self._opened(session, spec, folder, by_itself=True) as source,
        ):
            if reads_rows:
                source.check()
            return session.arrow(query(session, source.relation))

    @contextmanager
    def _folder_of_its_own(self) -> Iterator[Path]:
        """A folder for the files that a source is converted to: runs of other datasets convert theirs meanwhile."""
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        with scratch(self._scratch / "sources") as folder:
            yield folder
