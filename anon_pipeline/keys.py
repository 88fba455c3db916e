"""Keys: their places, their public ids, and the keys and numbers that are derived from them.

A key is at least 256 bits, written as hexadecimal digits, in an environment variable or in a file that only its owner
may read. It is never in a spec, a report, a message or a repr. Every dataset has a private key: the one that its spec
names under `draws`, or one that is made in the private zone when it is first needed. All random numbers of a release
are drawn with it, so that nobody with code, spec and release only can draw the same again.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import secrets
import shlex
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from pydantic import Field, model_validator

from anon_pipeline.errors import InputError
from anon_pipeline.home import Home, write_file
from anon_pipeline.spec import ReleaseSpec, Strict

#: The environment variable of the key if a spec names none.
DEFAULT_VARIABLE = "ANON_PIPELINE_KEY"
HOW = "make one with `openssl rand -hex 32`"

log = logging.getLogger("anon_pipeline")


class KeySource(Strict):
    """The place of a key: `{environment: NAME}` or `{file: path}`, the path relative to the spec."""

    environment: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    file: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _names_one_place(self) -> KeySource:
        if (self.environment is None) == (self.file is None):
            raise ValueError("names one place: {environment: NAME} or {file: path}")
        return self


DEFAULT_KEY = KeySource(environment=DEFAULT_VARIABLE)


@dataclass(frozen=True)
class Key:
    """A secret of at least 256 bits."""

    material: bytes = field(repr=False)

    @property
    def id(self) -> str:
        """The first 8 hexadecimal digits of the key's SHA-256, to distinguish keys."""
        return hashlib.sha256(self.material).hexdigest()[:8]

    def derived(self, purpose: str, domain: str, size: int = 32) -> bytes:
        """A key for one purpose and one domain (NIST SP 800-108, counter mode over HMAC-SHA256), `size` bytes.

        So a leak in one domain reveals nothing about another, and no value has the same pseudonym in two domains.
        """
        label = b"anon_pipeline\0" + purpose.encode() + b"\0" + domain.encode()
        blocks = [
            hmac.digest(self.material, number.to_bytes(4, "big") + label + (8 * size).to_bytes(4, "big"), "sha256")
            for number in range(1, -(-size // 32) + 1)
        ]
        return b"".join(blocks)[:size]

    def pseudorandom(self, purpose: str, domain: str, blocks: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """128 pseudo-random bits for each block of 128 bits, shapes (n, 2): AES-256 with a derived key.

        AES is a pseudo-random permutation. Different blocks give numbers that nobody without the key can distinguish
        from independent ones, and the same block gives the same numbers on every machine.
        """
        given = np.ascontiguousarray(blocks, dtype="<u8")
        encryptor = Cipher(algorithms.AES256(self.derived(purpose, domain)), modes.ECB()).encryptor()  # noqa: S305
        drawn = np.frombuffer(encryptor.update(given.tobytes()) + encryptor.finalize(), dtype="<u8")
        return drawn.reshape(given.shape).astype(np.uint64)


class Secrets:
    """Finds keys by their places in a spec; each is read once."""

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        """
        Parameters
        ----------
        environment : environment variables; by default those of this process
        folder : the folder to which names of files are relative; by default the current folder
        """
        self._environment = os.environ if environment is None else environment
        self._folder = folder or Path()
        self._found: dict[KeySource, Key] = {}

    def key(self, source: KeySource) -> Key:
        """The key at this place.

        Raises
        ------
        InputError
            If there is none, others may read it, or it is too short.
        """
        if source not in self._found:
            place, text = self._from_environment(source.environment) if source.environment else self._from_file(source)
            if not re.fullmatch(r"(?:[0-9a-fA-F]{2}){32,}", text.strip()):
                raise InputError(f"{place}: is no key: at least 64 hexadecimal digits (256 bits); {HOW}")
            self._found[source] = Key(bytes.fromhex(text.strip()))
        return self._found[source]

    def _from_environment(self, name: str) -> tuple[str, str]:
        place = f"key: the environment variable {name}"
        if not self._environment.get(name):
            raise InputError(f"{place} is not set; {HOW} and keep it")
        return place, self._environment[name]

    def _from_file(self, source: KeySource) -> tuple[str, str]:
        path = self._folder / str(source.file)
        try:
            with path.open(encoding="ascii", errors="replace") as file:
                status = os.fstat(file.fileno())  # of the opened file, even if its name is changed meanwhile
                if not stat.S_ISREG(status.st_mode):
                    raise InputError(f"key: {path} is no file")
                if stat.S_IMODE(status.st_mode) & 0o077:
                    raise InputError(f"key: {path} can be read by others; run `chmod 600` on it, or make a new key")
                if status.st_uid not in (os.geteuid(), 0):
                    raise InputError(f"key: {path} belongs to another user; keep the key in a file of your own")
                return f"key: {path}", file.read()
        except OSError as error:
            raise InputError(f"key: {path} cannot be read ({error.strerror})") from None


def private_key(spec: ReleaseSpec, home: Home) -> Key:
    """The dataset's private key: the one under `draws` in the spec, or the one in the private zone.

    If a new key is made, its place is logged.

    Raises
    ------
    InputError
        If the named or stored key cannot be used, or there are releases of the dataset, and the stored one is gone, or
        it is another key than before; a stored key is never replaced by a new one.
    """
    if spec.draws is not None:
        return _stated_key(spec, spec.draws)
    _require_not_lost(spec.dataset, home)
    key, is_new = kept_key(spec.dataset, home)
    _require_former(spec.dataset, home, key)
    if is_new:
        log.warning(
            "%s: a private key was made and is kept in %s; all that is random is drawn under it: back it up, and show "
            "it to nobody",
            spec.dataset,
            kept_place(spec.dataset, home),
        )
    return key


def require_key(spec: ReleaseSpec, home: Home) -> None:
    """Refuse what `private_key` refuses, and make nothing: neither a key, nor a mark, nor a folder.

    Raises
    ------
    InputError
        As `private_key`.
    """
    if spec.draws is not None:
        _stated_key(spec, spec.draws)
        return
    _require_not_lost(spec.dataset, home)
    place, mark = _place(spec.dataset, home), _mark_place(spec.dataset, home)
    if place.exists():
        key = Secrets().key(KeySource(file=str(place)))
        _require_mark(spec.dataset, home, key, mark.read_text().strip() if mark.exists() else None)


def _stated_key(spec: ReleaseSpec, place: Strict) -> Key:
    return Secrets(folder=spec.folder).key(KeySource.model_validate(place.model_dump()))


def _require_not_lost(dataset: str, home: Home) -> None:
    """Refuse to go on without the key of former releases; the command in the message makes another one."""
    place = _place(dataset, home)
    if not place.exists() and (home.releases / dataset).is_dir():
        key, mark = shlex.quote(str(place)), shlex.quote(str(_mark_place(dataset, home)))
        raise InputError(
            f"key: {place} is gone, and there are releases of {dataset}; restore it from a backup, since the same "
            "people under another key reveal more than either release does, or decide for a new one: `(umask 077; "
            f"openssl rand -hex 32 > {key}; rm -f {mark})`"
        )


def _require_former(dataset: str, home: Home, key: Key) -> None:
    """Refuse another key than the one that releases were drawn with: a restored one may be of an older time.

    The mark by which it is known is derived from the key, and lies outside the folder of the keys, which may be
    restored alone. As long as nothing is released, and in a home that has no mark yet, it follows the key. A key
    that the spec names under `draws` is in the hands of whoever states it, and has no mark.
    """
    place = _mark_place(dataset, home)
    home.private_folder()
    with home.lock(f"key-{dataset}"):
        former = place.read_text().strip() if place.exists() else None
        _require_mark(dataset, home, key, former)
        if former != _mark(dataset, key):
            write_file(place, _mark(dataset, key) + "\n")


def _require_mark(dataset: str, home: Home, key: Key, former: str | None) -> None:
    if former is None or former == _mark(dataset, key) or not (home.releases / dataset).is_dir():
        return
    raise InputError(
        f"key: the private key of {dataset} is not the one that its releases were drawn with; restore that one "
        "from a backup, since the same people under another key reveal more than either release does, or "
        f"decide for the new one: `rm {shlex.quote(str(_mark_place(dataset, home)))}`"
    )


def _mark(dataset: str, key: Key) -> str:
    return key.derived("mark", dataset).hex()


def _mark_place(dataset: str, home: Home) -> Path:
    return home.private / f"{dataset}.key-mark"


def _place(dataset: str, home: Home) -> Path:
    return home.private / "keys" / f"{dataset}.key"


def kept_place(dataset: str, home: Home) -> Path:
    """The file in which the key of a dataset is stored."""
    home.private_folder("keys")
    return _place(dataset, home)


def measuring_seed(spec: ReleaseSpec, home: Home) -> int:
    """The seed, of 128 bits, of published figures that are measured on people; drawn with the private key.

    With a public seed, or one that is short enough to be guessed, an attacker who knows all rows but one could repeat
    the measurement for every possible value of the last row.

    Raises
    ------
    InputError
        As `private_key`.
    """
    return seed_under(private_key(spec, home), spec.dataset)


def seed_under(key: Key, dataset: str) -> int:
    """The seed of `measuring_seed`, from a given key."""
    return int.from_bytes(key.derived("measuring", dataset, 16), "big")


def kept_key(dataset: str, home: Home) -> tuple[Key, bool]:
    """The stored key of a dataset in the private zone, and whether it was made by this call."""
    place = kept_place(dataset, home)
    with home.lock(f"key-{dataset}"):
        is_new = not place.exists()
        if is_new:
            write_file(place, secrets.token_hex(32) + "\n")
        return Secrets().key(KeySource(file=str(place))), is_new
