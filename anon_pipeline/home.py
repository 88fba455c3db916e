"""The home folder with all results, and the writing of files so that none is ever half written."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from anon_pipeline.errors import InputError

#: Folders of the private zone besides those of datasets; no dataset may have one of these names.
PRIVATE_FOLDERS = frozenset(
    (
        "alerts",
        "budgets",
        "checks",
        "comparisons",
        "dagster",
        "destinations",
        "errors",
        "keys",
        "locks",
        "mask",
        "mlflow",
        "openings",
        "refusals",
        "scratch",
        "spill",
    )
)

#: Seconds after which a command says that it waits for another one.
SAID_AFTER = 2.0

#: What the system answers where a file system has no locks.
NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)

VARIABLE = "ANON_PIPELINE_HOME"
DATA_VARIABLE = "ANON_PIPELINE_DATA"

log = logging.getLogger("anon_pipeline")


@dataclass(frozen=True)
class Home:
    """The folder of everything that is produced: `private/` (mode 0700) and `releases/`."""

    root: Path

    @classmethod
    def default(cls) -> Home:
        """`$ANON_PIPELINE_HOME`, or `var` in the current folder."""
        return cls(Path(os.environ.get(VARIABLE) or "var").resolve())

    @property
    def private(self) -> Path:
        return self.root / "private"

    @property
    def releases(self) -> Path:
        return self.root / "releases"

    @property
    def ledger(self) -> Path:
        return self.releases / "ledger.jsonl"

    def existing(self) -> Home:
        """This home, for commands that only read it.

        Raises
        ------
        InputError
            If nothing was ever released in it, so that a wrong path does not count as an empty ledger.
        """
        if not self.releases.is_dir():
            raise InputError(
                f"{self.root}: is no home with releases; run a spec first, or set {VARIABLE} to the folder in which a "
                "folder releases lies"
            )
        return self

    def prepare(self) -> Home:
        """Create the folders.

        Raises
        ------
        InputError
            If they cannot be created or written, belong to another user, or if their path cannot be part of a
            database's address.
        """
        self._require_name()
        os.umask(0o077)  # other users can only read files that are made public on purpose
        try:
            if self.private.exists():  # whose home it is says more than that it cannot be written
                self._require_own()
            is_new = not self.root.exists()
            self.root.mkdir(parents=True, exist_ok=True)
            if is_new:
                self.root.chmod(0o755)
            self.releases.mkdir(exist_ok=True)
            self.releases.chmod(0o755)
            self.private.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._require_own()
            self.private.chmod(0o700)
        except OSError as error:
            raise InputError(
                f"{self.root}: cannot be written ({error.strerror}); set {VARIABLE} to a folder of your own"
            ) from None
        self._require_writable()
        return self

    def require_usable(self) -> None:
        """Refuse what `prepare` would, as far as that can be seen, and create nothing.

        Raises
        ------
        InputError
            As `prepare`.
        """
        self._require_name()
        if self.private.exists():
            self._require_own()
        self._require_writable()
        nearest = next(folder for folder in (self.root, *self.root.parents) if folder.exists())
        if not self.root.exists() and not (nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)):
            raise InputError(f"{self.root}: cannot be written; set {VARIABLE} to a folder of your own")

    def _require_name(self) -> None:
        """Refuse a path that cannot be part of a database's address."""
        if any("\ud800" <= letter <= "\udfff" for letter in str(self.root)):
            raise InputError(f"{str(self.root)!a}: is not UTF-8; set {VARIABLE} to another folder")
        if any(letter in str(self.root) for letter in "?%"):  # not literal in the address of a database
            raise InputError(f"{self.root}: a home has no ? and no % in its path; set {VARIABLE} to another folder")

    def _require_writable(self) -> None:
        for folder in (self.releases, self.private):
            if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
                raise InputError(f"{folder}: cannot be written; set {VARIABLE} to a folder of your own")

    @property
    def is_own(self) -> bool:
        """Whether there is a private zone, of this user."""
        try:
            return self.private.stat().st_uid == os.geteuid()
        except OSError:
            return False

    @property
    def owner(self) -> str:
        """The user to whom the private zone belongs."""
        try:
            return self.private.owner()
        except KeyError:
            return str(self.private.stat().st_uid)

    def keeps(self, file: Path) -> bool:
        """Whether a file is in the private zone, as far as this user may look: other users find none there."""
        return os.access(self.private, os.X_OK) and file.exists()

    def private_folder(self, *parts: str) -> Path:
        """A folder of the private zone, created if absent with those it lies in; only the owner may enter.

        Raises
        ------
        InputError
            If the private zone belongs to another user.
        """
        folder = self.private
        if folder.exists():
            self._require_own()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for part in parts:  # one by one: those that `parents` makes are as open as the umask lets them
            folder /= part
            folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def _require_own(self) -> None:
        """Let nobody else write into a private zone, root neither, whose files its owner could not read afterwards."""
        if not self.is_own:
            raise InputError(self.of_another_user)

    @property
    def of_another_user(self) -> str:
        """What a command says that is not run by the owner of the private zone."""
        return f"{self.private}: belongs to the user {self.owner}; run the command as this user"

    @contextmanager
    def lock(self, name: str, timeout: float = -1) -> Iterator[None]:
        """Hold the lock of this name against all other processes; the system releases it when a process dies.

        Without a `timeout` in seconds it waits until the lock is free, and says so after `SAID_AFTER`.

        Raises
        ------
        InputError
            If the file system has no locks. A file that stands for a lock would outlive its process.
        """
        lock = FileLock(self.private_folder("locks") / f"{name}.lock", fallback_to_soft=False)
        try:
            if timeout >= 0 or not _acquired_soon(lock, name):
                lock.acquire(timeout=timeout)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            raise InputError(
                f"{self.root}: its file system has no locks ({error.strerror}); set {VARIABLE} to a folder on one that "
                "has, since two commands at once would spoil the ledger"
            ) from None
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def reading(self, name: str) -> Iterator[None]:
        """Hold a lock to read what others may be writing; a home that cannot be written is read without one."""
        if not os.access(self.private, os.W_OK):
            yield
            return
        with self.lock(name):
            yield


def _acquired_soon(lock: FileLock, name: str) -> bool:
    """Whether the lock is free by now or in a moment; where it is not, say for what the command waits."""
    with suppress(Timeout):
        lock.acquire(timeout=SAID_AFTER)
        return True
    log.warning("waiting for another command of this home, which holds the lock %s", name)
    return False


@contextmanager
def scratch(root: Path | None = None) -> Iterator[Path]:
    """A temporary folder that only its owner may enter; those of killed processes are removed first.

    Parameters
    ----------
    root : the folder in which it is made; by default one of this user in the system's folder for temporary files

    Raises
    ------
    InputError
        If that folder belongs to somebody else, or cannot be written.
    """
    root = root or Path(tempfile.gettempdir()) / f"anon-pipeline-{os.geteuid()}"
    try:
        if not is_own_folder(root):
            raise InputError(f"{root}: is no folder of yours alone; remove it, or set TMPDIR to another folder")
        with FileLock(root / "lock"):
            for lock_file in root.glob("*.lock"):  # each folder is locked while its process lives
                with suppress(Timeout), FileLock(lock_file, timeout=0):
                    shutil.rmtree(lock_file.with_suffix(""), ignore_errors=True)
                    lock_file.unlink(missing_ok=True)
            folder = Path(tempfile.mkdtemp(dir=root))
            lock = FileLock(folder.with_suffix(".lock"))
            lock.acquire()
    except OSError as error:
        raise InputError(f"{root}: cannot be written ({error.strerror}); set TMPDIR to another folder") from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def is_own_folder(folder: Path) -> bool:
    """Whether a folder belongs to this user and nobody else may enter it; it is made if absent.

    Raises
    ------
    OSError
        If it cannot be made.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


def data_folder() -> Path:
    """The folder of the dataset folders: `$ANON_PIPELINE_DATA`, or `data` in the current folder."""
    return Path(os.environ.get(DATA_VARIABLE) or "data")


@contextmanager
def written_folder(final: Path, public: bool = False) -> Iterator[Path]:
    """A temporary folder beside `final` that becomes `final` if the block ends without error, and else is removed.

    Only its owner may read it, unless it is `public`.
    """
    final.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{final.name}.", dir=final.parent))
    try:
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                file.chmod(0o644 if public else 0o600)
                sync(file)
        temporary.chmod(0o755 if public else 0o700)
        sync(temporary)
        os.replace(temporary, final)
        sync(final.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def written_file(final: Path, public: bool = False) -> Iterator[Path]:
    """An empty file under a temporary name: what the block writes into it appears as `final`, whole or not at all.

    It is for its owner only unless `public`. A block that fails leaves what was there before.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{final.name}.", dir=final.parent)
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
        sync(temporary)
        temporary.chmod(0o644 if public else 0o600)
        os.replace(temporary, final)
        sync(final.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_file(final: Path, content: str | bytes, public: bool = False) -> None:
    """Write a file completely or not at all (temporary name, fsync, rename), for its owner only unless `public`."""
    with written_file(final, public) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def relink(link: Path, target: str) -> None:
    """Make a symbolic link lead to `target`, relative to its folder; readers see the former target or this one."""
    temporary = Path(tempfile.mkdtemp(prefix=f".{link.name}.", dir=link.parent))
    try:
        (temporary / link.name).symlink_to(target)
        os.replace(temporary / link.name, link)
        sync(link.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def sha256_of(file: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def remove_leftovers(folder: Path, of: str = "") -> None:
    """Remove temporary folders and files (of one name, or all) that a killed process left behind.

    Call it only under the folder's lock.
    """
    for leftover in folder.glob(f".{of}*"):
        if leftover.is_dir() and not leftover.is_symlink():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def out_of_space(error: BaseException | None) -> bool:
    """Whether an error, or one of its causes, means a full disk; SQLite has its own message for it."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            return True
        if isinstance(error, sqlite3.OperationalError) and str(error) in ("database or disk is full", "disk I/O error"):
            return True
        error = error.__cause__ or error.__context__
    return False


#: What the system's loader says where a library does not fit into the memory that is allowed, and our sentence on it.
NOT_LOADED = ("failed to map segment", "annot allocate memory")
NO_MEMORY = "the system gives no more memory; allow more (`ulimit -v`, or the limit of the container)"


def out_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or one of its causes, means that the system gives no more memory; a library may not fit in."""
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        if isinstance(error, ImportError) and any(sign in str(error) for sign in NOT_LOADED):
            return True
        error = error.__cause__ or error.__context__
    return False


#: The sentences about records that `fault_of_records` tells.
DAMAGED = (
    "a database of Dagster's or MLflow's records is damaged; restore the home from a backup, or move private/dagster "
    "or private/mlflow away, whose records then begin anew"
)
NOT_OPENED = (
    "a database of Dagster's or MLflow's records cannot be opened, or a file that belongs beside it cannot be made; "
    "free disk space, allow more open files (`ulimit -n`), or make private/dagster and private/mlflow writable"
)


def fault_of_records(error: BaseException | None) -> str | None:
    """The sentence where an error, or one of its causes, means that the file of a SQLite database cannot be used.

    SQLite does not say why it cannot open or make a file: on a full disk it says the same as where it may not.
    """
    while error is not None:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without what SQLite adds to it
        if isinstance(error, sqlite3.DatabaseError) and code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return DAMAGED
        if isinstance(error, sqlite3.DatabaseError) and code == sqlite3.SQLITE_CANTOPEN:
            return NOT_OPENED
        error = error.__cause__ or error.__context__
    return None


def sync(path: Path) -> None:
    """Wait until what a file holds, or which files a folder has, is on the disk for good."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
