"""Hashes of typed rows that are the same on every engine, machine and number of threads, and for every row order.

A row's hash is made of the hashes of its values, not of their texts: engines write numbers and dates differently.
The hash distinguishes contents and picks samples; SHA-256 shows whether the bytes of a published file were changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anon_pipeline.arrays import IntArray
from anon_pipeline.distinct import of_each_list

Lanes = npt.NDArray[np.uint64]

#: The hash of a missing value, a number that is unlikely to be the hash of a text or number.
MISSING = np.uint64(0x9E3779B97F4A7C15)


def kind_of(type_: pa.DataType) -> str:
    """The kind of a column's values, in words that do not depend on the width in which an engine stores them."""
    if pa.types.is_dictionary(type_):
        return kind_of(type_.value_type)
    if pa.types.is_boolean(type_):
        return "boolean"
    if pa.types.is_integer(type_):
        return "whole"
    if pa.types.is_float32(type_):
        return "single"
    if pa.types.is_floating(type_):
        return "real"
    if pa.types.is_date(type_):
        return "day"
    if pa.types.is_timestamp(type_):
        return "moment"
    return "text" if pa.types.is_string(type_) or pa.types.is_large_string(type_) else str(type_)


def row_hashes(columns: Sequence[pa.Array], names: Sequence[str]) -> Lanes:
    """128 bits per row as two independent lanes, shape (2, n); equal rows, by name and value, give equal bits."""
    rows = len(columns[0]) if columns else 0
    lanes = np.zeros((2, rows), dtype=np.uint64)
    for name, column in sorted(zip(names, columns, strict=True), key=lambda pair: pair[0]):
        lanes *= np.uint64(0xD6E8FEB86659FD93)
        for lane, salt, values in zip(lanes, _text_lanes([name])[:, 0], _values(column), strict=True):
            lane += values ^ salt
        _mix(lanes)
    return lanes


def sample_hash(lanes: Lanes) -> IntArray:
    """63 bits per row, to choose people by their content and not by their position."""
    chosen: IntArray = (lanes[0] >> np.uint64(1)).astype(np.int64)
    return chosen


def draws_of(hashes: IntArray, number: IntArray) -> IntArray:
    """63 bits per person, to choose people who may be equal: each of them is as likely as anybody else.

    Parameters
    ----------
    hashes : the hash of each person's content (`sample_hash`), which draws the first of equal people, shape (n,)
    number : each person's number among their equals, from 0, shape (n,)
    """
    bits = hashes.astype(np.uint64) + number.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    _mix(bits)
    return np.where(number == 0, hashes, (bits >> np.uint64(1)).astype(np.int64))


def _values(column: pa.Array) -> list[Lanes]:
    """64 bits per value and lane, two arrays of shape (n,)."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    kind = kind_of(column.type)
    missing = np.asarray(column.is_null(nan_is_null=pa.types.is_floating(column.type)))
    if kind in ("boolean", "whole", "single", "real", "day", "moment"):
        bits = _bits(column, kind)
        lanes = [bits.copy(), bits ^ np.uint64(0xA5A5A5A5A5A5A5A5)]
        for lane in lanes:
            _mix(lane)
    else:
        coded = column if pa.types.is_dictionary(column.type) else _as_text(column).dictionary_encode()
        texts = _text_lanes(_as_text(coded.dictionary).to_pylist())
        code = np.asarray(coded.indices.fill_null(0))
        lanes = [lane[code] if lane.size else np.zeros(len(column), dtype=np.uint64) for lane in texts]
    if missing.any():
        for lane in lanes:
            lane[missing] = MISSING
    return lanes


def _bits(column: pa.Array, kind: str) -> Lanes:
    if kind in ("single", "real"):
        known = np.nan_to_num(np.asarray(column.cast(pa.float64()).fill_null(0.0)), nan=0.0)
        bits: Lanes = (known + 0.0).view(np.uint64)  # there is one zero
        return bits
    if kind == "moment":
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    if kind == "day":
        column = column.cast(pa.date32()).cast(pa.int32())
    unsigned = pa.types.is_uint64(column.type)
    whole = column.cast(pa.uint64() if unsigned else pa.int64()).fill_null(0)
    bits = np.ascontiguousarray(whole).view(np.uint64)
    return bits


def _as_text(column: pa.Array) -> pa.Array:
    if pa.types.is_list(column.type) and pa.types.is_string(column.type.value_type):
        return _lists_as_text(column)
    if pa.types.is_nested(column.type):
        return pa.array([None if value is None else json.dumps(value) for value in column.to_pylist()], pa.string())
    return column if pa.types.is_string(column.type) else pc.cast(column, pa.string())


def _lists_as_text(column: pa.ListArray) -> pa.Array:
    """Lists of texts as JSON, each different list made once: a table of classes has the same few again and again."""
    coded = column.values.dictionary_encode()
    words, codes = coded.dictionary.to_pylist(), np.asarray(coded.indices.fill_null(-1))

    def as_json(listed: list[int]) -> str:
        return json.dumps([None if code < 0 else words[code] for code in listed])

    texts = of_each_list(codes, np.asarray(column.offsets), as_json)
    return pa.array(texts, pa.string(), mask=np.asarray(column.is_null()))


def _text_lanes(texts: Sequence[str | None]) -> Lanes:
    digests = b"".join(hashlib.blake2b((text or "").encode(), digest_size=16).digest() for text in texts)
    return np.ascontiguousarray(np.frombuffer(digests, dtype="<u8").astype(np.uint64).reshape(-1, 2).T)


def _mix(bits: Lanes) -> None:
    """The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), in place: every bit moves every other."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        bits ^= bits >> np.uint64(shift)
        bits *= np.uint64(factor)


@dataclass
class ContentHash:
    """A hash over the rows of a table that grows batch by batch, in any order.

    The rows' hashes are added up. So a row that occurs twice counts twice, and parts may be hashed separately.
    """

    rows: int = 0
    sums: list[int] = field(default_factory=lambda: [0, 0])

    def add(self, lanes: Lanes, people: IntArray) -> None:
        """Count rows of hash `lanes`, shape (2, n), each as often as `people` says."""
        self.rows += int(people.sum())
        for lane in range(2):
            added = int((lanes[lane] * people.astype(np.uint64)).sum(dtype=np.uint64))
            self.sums[lane] = (self.sums[lane] + added) % 2**64

    def passing(self, batches: Iterable[pa.RecordBatch], people: str) -> Iterator[pa.RecordBatch]:
        """Give batches on as they are, and count their rows, each as often as its column `people` says."""
        for rows in batches:
            names = [name for name in rows.schema.names if name != people]
            self.add(row_hashes([rows.column(name) for name in names], names), rows.column(people).to_numpy())
            yield rows

    def of(self, schema: pa.Schema, people: str) -> tuple[int, str]:
        """The number of rows, and the hash, of a table with this schema; its column `people` does not count."""
        return self.rows, self.hexadecimal(
            (field.name, kind_of(field.type)) for field in schema if field.name != people
        )

    def hexadecimal(self, kinds: Iterable[tuple[str, str]]) -> str:
        """SHA-256 over the columns (name and kind), the number of rows and the sum of their hashes."""
        content = "\n".join([*(f"{name} {kind}" for name, kind in sorted(kinds)), str(self.rows), *map(str, self.sums)])
        return hashlib.sha256(content.encode()).hexdigest()
