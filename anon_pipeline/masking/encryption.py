"""Pseudonyms that the holder of the key can decrypt, and their decryption."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any, ClassVar, Literal

import pyarrow as pa

from anon_pipeline.errors import InputError
from anon_pipeline.keys import Key
from anon_pipeline.masking.base import Applied, Columns, Context
from anon_pipeline.masking.pseudonyms import PSEUDONYMOUS, KeyedTechnique
from anon_pipeline.masking.texts import as_texts

#: Texts are padded to a multiple of this many bytes: names and addresses are shorter, so that their tokens are equally
#: long. With 16, whoever knew the addresses of ten people told from the length of a token whose it is for up to 23 %.
PADDED = 64


class Encrypt(KeyedTechnique):
    """Values become tokens that whoever has the key can turn back; equal values equal tokens.

    AES-256-SIV, deterministic authenticated encryption (RFC 5297; P. Rogaway, T. Shrimpton, EUROCRYPT 2006), written in
    base32 (RFC 4648, lower case). The column or `domain` is authenticated too: a token of one column is none of
    another. Texts of less than 64 bytes have tokens of one length, longer ones tell theirs in steps of 64 bytes.
    """

    technique: Literal["encrypt"] = "encrypt"

    meaning: ClassVar[str] = "shows a token that the holder of the key can turn back (`anon-pipeline reveal`)"
    use_when: ClassVar[str] = "somebody must be able to find the person again: a clinic after an incidental finding"

    def apply(self, columns: Columns, context: Context) -> Applied:
        ((name, column),) = columns.items()
        key, domain = context.secrets.key(self.key), self.domain_of(name)
        cipher = _cipher(key, domain)
        coded = as_texts(column).dictionary_encode()
        tokens = []
        for text in coded.dictionary.to_pylist():
            encrypted = cipher.encrypt(_padded(text.encode()), [domain.encode()])
            tokens.append(base64.b32encode(encrypted).decode().rstrip("=").lower())
        masked = pa.DictionaryArray.from_arrays(coded.indices, pa.array(tokens, pa.string())).cast(pa.string())
        return Applied({name: masked}, facts={"key_id": key.id}, notes=(PSEUDONYMOUS,))


def reveal(tokens: Iterable[str | None], technique: Encrypt, column: str, key: Key) -> list[str | None]:
    """The texts of a column's tokens; missing values stay missing.

    Parameters
    ----------
    tokens : the tokens as in the release
    technique : the step that made them
    column : the name of the column that had this step
    key : the key that its `key_source` names

    Raises
    ------
    InputError
        For a token that was not made with this key, column and domain; the message does not quote it.
    """
    domain = technique.domain_of(column)
    cipher = _cipher(key, domain)
    from cryptography.exceptions import InvalidTag

    texts: list[str | None] = []
    for number, token in enumerate(tokens, start=1):
        if token is None:
            texts.append(None)
            continue
        try:
            encrypted = base64.b32decode(token.upper() + "=" * (-len(token) % 8))
            texts.append(_unpadded(cipher.decrypt(encrypted, [domain.encode()])).decode())
        except (InvalidTag, binascii.Error, ValueError):
            raise InputError(
                f"columns.{column}: token {number} was not made by the key {key.id} in this column; name the column, "
                "the domain and the key that the release names"
            ) from None
    return texts


def _cipher(key: Key, domain: str) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV
    except ImportError:
        raise InputError(
            "encrypt: needs the package cryptography; run `pip install 'anon-pipeline[masking]'`"
        ) from None
    return AESSIV(key.derived("encryption", domain, size=64))


def _padded(text: bytes) -> bytes:
    """Padding by ISO/IEC 7816-4: one bit, then zeros. An empty text, which AES-SIV would refuse, is padded too."""
    return text + b"\x80" + b"\0" * (-(len(text) + 1) % PADDED)


def _unpadded(padded: bytes) -> bytes:
    return padded.rstrip(b"\0")[:-1]
