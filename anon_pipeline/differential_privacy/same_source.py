"""Whether a source is still the one whose version was computed: a hash and a reading are two acts.

An answer is kept under the version of its source. If the file is replaced between the two, the figures of other people
would be given again, for nothing, as those of the former file.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from anon_pipeline.differential_privacy import reading
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.keys import Key
from anon_pipeline.spec import ReleaseSpec

#: Per file of a source its name, size, inode, and when its content and when anything of it was changed last.
Stamps = tuple[tuple[str, int, int, int, int], ...]

#: A file that was changed so shortly before it was hashed may be changed again without another time, in nanoseconds.
JUST_NOW = 3_000_000_000


@dataclass(frozen=True)
class SeenSource:
    """A source as it was when its version was computed.

    Attributes
    ----------
    versions : see `reading.source_versions`
    stamps : of its files, before these were hashed; None where they do not prove that nothing was changed
    """

    spec: ReleaseSpec
    key: Key
    versions: tuple[str, ...]
    stamps: Stamps | None

    @classmethod
    def now(cls, spec: ReleaseSpec, key: Key) -> SeenSource:
        """The source as it is now.

        Raises
        ------
        InputError
            Where it is not there, or cannot be read.
        """
        stamps = _stamps(spec)
        if stamps is not None and any(time.time_ns() - changed < JUST_NOW for *_, changed in stamps):
            stamps = None
        return cls(spec, key, reading.source_versions(spec, key), stamps)

    def require_same(self, cost: str) -> None:
        """
        Parameters
        ----------
        cost : what the sentence says of the budget

        Raises
        ------
        Unavailable
            Where the source was changed since; files are hashed again only where their stamps may hide a change.
        """
        if self.stamps is not None and _stamps(self.spec) == self.stamps:
            return
        try:
            same = reading.source_versions(self.spec, self.key) == self.versions
        except InputError:  # it is gone
            same = False
        if not same:
            raise Unavailable(f"{self.spec.source.path}: was changed while it was read; {cost}; ask again")


def _stamps(spec: ReleaseSpec) -> Stamps | None:
    """The stamps of a source's files; None where it has none on this machine, or one of them is gone."""
    if not spec.source.is_file:
        return None
    try:
        seen = [(str(file), file.stat()) for file in reading.files_of(spec)]
    except OSError:
        return None
    return tuple((name, stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns) for name, stat in seen)
