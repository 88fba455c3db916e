"""Signatures of the ledger: an Ed25519 key from the environment, and a signature that is checked with the public key.

One signature covers the whole ledger, since signatures of single lines would not reveal that the last lines were cut
off. It is a file of 64 bytes beside the ledger (RFC 8032), which OpenSSL and other tools can make and check.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from anon_pipeline.errors import InputError

#: Variables with the key itself, in PEM, or with the file of the key. Without either, nothing is signed.
KEY_VARIABLE, FILE_VARIABLE = "ANON_PIPELINE_SIGNING_KEY", "ANON_PIPELINE_SIGNING_KEY_FILE"
HOW = "make one with `anon-pipeline releases key --new FILE`"


def signing_key(environment: Mapping[str, str] = os.environ) -> Ed25519PrivateKey | None:
    """The key that the environment names, if it names one.

    Raises
    ------
    InputError
        If both variables are set, others may read the file, or it is no Ed25519 key.
    """
    text, file = environment.get(KEY_VARIABLE), environment.get(FILE_VARIABLE)
    if text and file:
        raise InputError(f"signing key: {KEY_VARIABLE} and {FILE_VARIABLE} are both set; keep one of them")
    if not text and not file:
        return None
    place = f"signing key: {FILE_VARIABLE}" if file else f"signing key: {KEY_VARIABLE}"
    pem = _owned(Path(file)) if file else str(text).encode()
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except TypeError:
        raise InputError(f"{place}: is encrypted; give the key without a passphrase") from None
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"{place}: is no Ed25519 private key in PEM; {HOW}")
    return key


def _owned(file: Path) -> bytes:
    """The content of a file that only its owner may read."""
    try:
        with file.open("rb") as content:
            status = os.fstat(content.fileno())  # of the opened file, even if its name is changed meanwhile
            if not stat.S_ISREG(status.st_mode):
                raise InputError(f"signing key: {file} is no file")
            if stat.S_IMODE(status.st_mode) & 0o077:
                raise InputError(f"signing key: {file} can be read by others; make a new key, or `chmod 600` this one")
            return content.read()
    except OSError as error:
        raise InputError(f"signing key: {file} cannot be read ({error.strerror})") from None


def make_key(file: Path) -> Ed25519PrivateKey:
    """A new key, written to a file that must not exist yet and that only its owner may read.

    Raises
    ------
    InputError
        Where the file exists or cannot be written.
    """
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InputError(f"{file}: exists already; a key is not overwritten") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror})") from None
    try:
        with os.fdopen(descriptor, "wb") as content:
            content.write(pem)
            content.flush()
            os.fsync(content.fileno())
    except OSError as error:
        file.unlink(missing_ok=True)  # half a key is none, and would not be overwritten
        raise InputError(f"{file}: cannot be written ({error.strerror})") from None
    return key


def public_pem(key: Ed25519PrivateKey) -> str:
    """The public half of a key, in PEM, for auditors, who must not take it from the folder of releases."""
    return (
        key.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode()
    )


def read_public_key(file: Path) -> Ed25519PublicKey:
    """A public key from a PEM file.

    Raises
    ------
    InputError
        Where it cannot be read or is no such key.
    """
    try:
        key = serialization.load_pem_public_key(file.read_bytes())
    except OSError as error:
        raise InputError(f"public key: {file} cannot be read ({error.strerror})") from None
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise InputError(f"public key: {file} is no Ed25519 public key in PEM, as `anon-pipeline releases key` prints")
    return key


def fits(key: Ed25519PublicKey, signature: bytes, content: bytes) -> bool:
    """Whether the signature was made with this key for exactly this content."""
    try:
        key.verify(signature, content)
    except InvalidSignature:
        return False
    return True
