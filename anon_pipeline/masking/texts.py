"""Values as texts: for keys, for the names of categories, and to compare columns of different types."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

#: Whole floats up to this are written like integers, since integers with missing values are often stored as floats.
EXACT = 2.0**53


def as_texts(array: pa.Array) -> pa.Array:
    """Each value as one text, the same for equal values of different types; missing values stay missing.

    A whole number is written without a point (42 for 42.0), other floats as the shortest text that reads back as the
    same float, dates as ISO 8601, moments in UTC if they have a time zone, booleans as true and false.
    """
    type_ = array.type
    if pa.types.is_dictionary(type_):
        return as_texts(array.cast(type_.value_type))
    if pa.types.is_string(type_):
        return array
    if pa.types.is_floating(type_):
        return _float_texts(array)
    if pa.types.is_timestamp(type_):
        return pc.strftime(array.cast(pa.timestamp("us"), safe=False), "%Y-%m-%dT%H:%M:%S")
    return array.cast(pa.string())


def as_named(stated: Any) -> Any:
    """Categories of a spec as `as_texts` has them, where YAML read numbers or truth values; all else as it is."""
    if isinstance(stated, dict):
        return {as_named(category): row for category, row in stated.items()}
    if isinstance(stated, list | tuple):
        return [as_named(category) for category in stated]
    if isinstance(stated, bool):
        return str(stated).lower()
    if isinstance(stated, float):
        return as_texts(pa.array([stated]))[0].as_py()
    return str(stated) if isinstance(stated, int) else stated


def _float_texts(array: pa.Array) -> pa.Array:
    coded = array.dictionary_encode()
    texts: list[str | None] = []
    for value in coded.dictionary.to_pylist():
        if value is None:
            texts.append(None)
        elif value == int(value) if abs(value) <= EXACT else False:
            texts.append(str(int(value)))
        else:
            texts.append(repr(value))
    return pa.DictionaryArray.from_arrays(coded.indices, pa.array(texts, pa.string())).cast(pa.string())
