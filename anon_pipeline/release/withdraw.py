"""The withdrawal of a release: its files are removed; its manifest and a ledger line with the reason stay."""

from __future__ import annotations

from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.home import Home
from anon_pipeline.release import ledger, unfinished
from anon_pipeline.release.ledger import Entry

#: Characters of a reason, which everyone can read in the ledger.
LONGEST = 500


class WithdrawnAlready(InputError):
    """A release was withdrawn before.

    Attributes
    ----------
    entry : the ledger's line of its withdrawal
    """

    def __init__(self, entry: Entry) -> None:
        super().__init__(f"{entry.dataset}/{entry.version}: was withdrawn already, on {entry.time}: {entry.why}")
        self.entry = entry

    def __reduce__(self) -> tuple[type[WithdrawnAlready], tuple[Entry]]:
        """The argument for pickle, which otherwise would pass the sentence."""
        return type(self), (self.entry,)


def withdraw(home: Home, version: str, why: str, dataset: str | None = None) -> Entry:
    """Enter the withdrawal into the ledger, then remove the published files; after a kill, it is completed later.

    Parameters
    ----------
    why : the reason in one line, which is public like the ledger
    dataset : needed where several datasets have a release of this version

    Raises
    ------
    InputError
        If there is no such release, or the reason is not a line of text; `WithdrawnAlready` if it was withdrawn before.
    Refused
        If the ledger was altered.
    Unavailable
        If the system refuses to complete a withdrawal that is noted already, as where the disk is full.
    """
    why = why.strip()
    if not why or len(why) > LONGEST or not why.isprintable():
        raise InputError(f"--why: is one line of 1 to {LONGEST} characters, which everyone can read in the ledger")
    with home.lock("ledger"):
        stopped = unfinished.coming_line(home)
        unfinished.finish(home)
        ledger.require_unaltered(home)
        published = ledger.published(home, version, dataset)
        before = ledger.withdrawal(home, published.dataset, version)
        if before is not None and stopped == (ledger.WITHDRAW, published.manifest):
            return before  # this call has completed it
        if before is not None:
            raise WithdrawnAlready(before)
        try:
            unfinished.enter(home, ledger.WITHDRAW, published.dataset, version, published.manifest, why)
        except OSError as error:
            if unfinished.coming_line(home) is None:  # nothing has begun
                raise
            raise Unavailable(
                f"{published.dataset}/{version}: its withdrawal is noted, but the system refuses to complete it "
                f"({error.strerror}); free disk space, or make the home writable, and do this again; the next run or "
                "withdrawal in this home completes it, too"
            ) from None
        return ledger.read(home)[-1]
