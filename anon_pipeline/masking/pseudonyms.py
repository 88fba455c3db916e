"""Column techniques that replace values by tokens: keyed pseudonyms, and plain hashes where these are harmless."""

from __future__ import annotations

import hashlib
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field
from typing_extensions import override

from anon_pipeline.errors import InputError, number_of
from anon_pipeline.keys import DEFAULT_KEY, KeySource
from anon_pipeline.masking.base import CATEGORICAL, Applied, Columns, ColumnTechnique, Context
from anon_pipeline.masking.texts import as_texts
from anon_pipeline.spec import ColumnType

BLOCK = 64  # bytes of a block of SHA-256
BASE32 = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz234567", dtype=np.uint8)  # RFC 4648, in lower case
#: Tokens that nobody can list: UUIDs of random bits (RFC 9562, version 4), and at least 128 bits in hexadecimal.
RANDOM_TOKEN = (
    r"^(?:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{32,})$"  # noqa: S105
)
#: How numbers begin that are filled up to such a length; of random digits next to none begin so, or are all decimal.
FILLED_UP, DECIMAL = "^0{8}[0-9a-fA-F]", "^[0-9]+$"
PSEUDONYMOUS = "pseudonyms are personal data for whoever can get at the key (GDPR, recital 26)"


class KeyedTechnique(ColumnTechnique):
    """A column technique under a key, in a domain of its own."""

    key: KeySource = Field(default=DEFAULT_KEY, description="where the key lies; never the key itself")
    domain: str | None = Field(
        default=None, min_length=1, max_length=200, description="a name shared by columns that are to be joined"
    )
    ends: ClassVar[bool] = True

    @property
    def key_source(self) -> KeySource:
        return self.key

    @property
    @override
    def of_own_values(self) -> bool:
        return True

    @override
    def kind_after(self, kind: ColumnType) -> ColumnType:
        return ColumnType.CATEGORICAL

    def domain_of(self, column: str) -> str:
        """The name that separates this column from others: its own, or one that several columns share."""
        return f"column {column}" if self.domain is None else f"domain {self.domain}"


class Pseudonymize(KeyedTechnique):
    """Values become tokens made of them and a secret key: equal values equal tokens, in every release and table.

    HMAC-SHA256 (RFC 2104, FIPS 198-1), cut to at least 96 bits; recommended for pseudonyms by ENISA: Pseudonymisation
    techniques and best practices, 2019. Each column (or `domain`) has a key derived from the one key, so that columns
    cannot be joined unless they are meant to be. How often a value stands, and whether it is missing, can still be
    seen.
    """

    technique: Literal["pseudonymize"] = "pseudonymize"
    bits: int = Field(default=128, ge=96, le=256, multiple_of=8, description="how much of the HMAC is kept")
    encoding: Literal["base32", "hex"] = Field(default="base32", description="how the bits are written")

    meaning: ClassVar[str] = "shows a token in a value's place, the same wherever the value stands"
    use_when: ClassVar[str] = (
        "records of one person must stay linked, over releases and tables, and nobody need go back"
    )

    def apply(self, columns: Columns, context: Context) -> Applied:
        ((name, column),) = columns.items()
        key = context.secrets.key(self.key)
        digests, code = digests_of(column, key.derived("pseudonym", self.domain_of(name)))
        tokens = (base32 if self.encoding == "base32" else hexadecimal)(digests[:, : self.bits // 8])
        masked = pa.DictionaryArray.from_arrays(code, tokens).cast(pa.string())
        return Applied({name: masked}, facts={"key_id": key.id, "bits": self.bits}, notes=(PSEUDONYMOUS,))


class Hash(ColumnTechnique):
    """Values become their SHA-256, without a key: only for random tokens, which nobody can list.

    Values that can be listed are refused: phone numbers, national numbers, names, mail addresses and dates are found by
    hashing all there are, within minutes (M. Marx et al.: Hashing of personally identifiable information is not
    sufficient, Sicherheit 2018; the New York taxi release of 2014). That a token is itself the hash of something
    listable (the MD5 of a phone number) cannot be seen: whoever states the step must know it.
    """

    technique: Literal["hash"] = "hash"
    ends: ClassVar[bool] = True

    meaning: ClassVar[str] = "shows the plain SHA-256 of random tokens (UUIDs); all else is refused"
    use_when: ClassVar[str] = "others must compute the same token without a key; else take pseudonymize"
    accepts: ClassVar = CATEGORICAL

    @property
    @override
    def of_own_values(self) -> bool:
        return True

    def apply(self, columns: Columns, context: Context) -> Applied:
        ((name, column),) = columns.items()
        texts = as_texts(column)
        fits = pc.match_substring_regex(texts, RANDOM_TOKEN)
        fits = pc.and_not(fits, pc.match_substring_regex(texts, FILLED_UP))
        listable = int(pc.sum(pc.invert(fits)).as_py() or 0)
        if pc.all(pc.match_substring_regex(texts, DECIMAL)).as_py():
            listable = len(texts) - texts.null_count
        if listable:
            raise InputError(
                f"{context.place}: {number_of(listable, 'value is no random token', 'values are no random tokens')}, "
                "and whoever lists all values that there can be (phone numbers, national numbers, names) finds them "
                "by hashing the list; take pseudonymize, which has a key"
            )
        coded = texts.dictionary_encode()
        tokens = pa.array(
            [hashlib.sha256(text.encode()).hexdigest() for text in coded.dictionary.to_pylist()], pa.string()
        )
        return Applied({name: pa.DictionaryArray.from_arrays(coded.indices, tokens).cast(pa.string())})


def digests_of(column: pa.Array, key: bytes) -> tuple[npt.NDArray[np.uint8], pa.Array]:
    """HMAC-SHA256 of the text of every distinct value, shape (m, 32); and the number of each row's value, or missing.

    The two states of the HMAC are computed once and copied, which is three times as fast as `hmac.digest`.
    """
    coded = as_texts(column).dictionary_encode()
    padded = key.ljust(BLOCK, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in padded))
    outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in padded))
    digests = []
    for text in coded.dictionary.to_pylist():
        first = inner.copy()
        first.update(text.encode())
        second = outer.copy()
        second.update(first.digest())
        digests.append(second.digest())
    return np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(len(digests), 32), coded.indices


def hexadecimal(bytes_: npt.NDArray[np.uint8]) -> pa.Array:
    """Rows of bytes as hexadecimal texts, shape (m, b) -> (m,)."""
    digits = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
    return _texts(digits[np.stack([bytes_ >> 4, bytes_ & 15], axis=2).reshape(len(bytes_), 2 * bytes_.shape[1])])


def base32(bytes_: npt.NDArray[np.uint8]) -> pa.Array:
    """Rows of bytes in base32 (RFC 4648, lower case, without padding), shape (m, b) -> (m,)."""
    bits = np.unpackbits(bytes_, axis=1)
    bits = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 5)))
    fives = bits.reshape(len(bytes_), bits.shape[1] // 5, 5) @ np.array([16, 8, 4, 2, 1], dtype=np.uint8)
    return _texts(BASE32[fives])


def _texts(characters: npt.NDArray[np.uint8]) -> pa.Array:
    """Rows of ASCII characters as texts of equal length."""
    rows, length = characters.shape
    ends = pa.py_buffer(np.arange(0, (rows + 1) * length, length, dtype=np.int64).tobytes())
    texts = pa.LargeStringArray.from_buffers(rows, ends, pa.py_buffer(np.ascontiguousarray(characters).tobytes()))
    return texts.cast(pa.string())
