"""Files of SPSS, Stata and SAS as Parquet: labels instead of codes, and missing codes as missing values.

Of a column whose type the spec states, the spec and the labels alone decide: of categories every value that has a
label is that label, and of numbers the codes stay. Where no type is stated, a column of numbers becomes its labels if
every value that occurs has one; if only some have one (99 for "refused" beside ages), the numbers stay. So there one
value of somebody who is in no released row decides how everybody is shown. Values that the file itself declares missing
are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from anon_pipeline.arrays import LARGEST_EXACT
from anon_pipeline.engine.sql import quoted
from anon_pipeline.errors import InputError
from anon_pipeline.spec import ColumnType

if TYPE_CHECKING:  # loaded where such a file is read, since every source is looked at by a module that knows this one
    import pandas as pd

#: The reader of each kind of file, by the end of its name, in pyreadstat's words.
READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
#: Rows that are read at a time.
ROWS = 200_000


@dataclass(frozen=True)
class SurveyFile:
    """A file's description of its columns.

    Attributes
    ----------
    names : the columns' names, in the order of the file
    labels : for each column of numbers the label of each value that has one
    ordinal : the columns that the file calls ordinal
    about : what the file says of each column; those of a survey are often called v1, v2, and so on
    """

    names: tuple[str, ...]
    labels: Mapping[str, Mapping[float, str]] = field(default_factory=dict)
    ordinal: frozenset[str] = frozenset()
    about: Mapping[str, str] = field(default_factory=dict)


def is_survey_file(path: Path) -> bool:
    return path.suffix.lower() in READERS


def described(path: Path, label: str) -> SurveyFile:
    """The description of the columns in the head of a file; no row is read.

    Raises
    ------
    InputError
        For a file that is not intact.
    """
    read = _reader(path, label)
    with _harmless(label):
        options = {"user_missing": True} if READERS[path.suffix.lower()] == "read_sav" else {}  # for missing ranges
        _, meta = read(str(path), metadataonly=True, **options)
    labels = {
        name: {
            float(value): str(text)
            for value, text in texts.items()
            if isinstance(value, int | float) and not _declared_missing(value, meta.missing_ranges.get(name, ()))
        }
        for name, texts in meta.variable_value_labels.items()
    }
    ordinal = frozenset(name for name, scale in meta.variable_measure.items() if scale == "ordinal")
    about = {name: str(text) for name, text in meta.column_names_to_labels.items() if text}
    return SurveyFile(
        tuple(meta.column_names), {name: texts for name, texts in labels.items() if texts}, ordinal, about
    )


def _declared_missing(value: float, ranges: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a code lies in a range that SPSS declares missing; the ends of ranges of texts are no numbers."""
    ends = [(part["lo"], part["hi"]) for part in ranges]
    return any(
        low <= value <= high for low, high in ends if isinstance(low, int | float) and isinstance(high, int | float)
    )


def levels_of(path: Path, label: str) -> dict[str, tuple[str, ...]]:
    """The labels of every ordinal column whose values all have one, lowest first.

    Raises
    ------
    InputError
        For a file that is not intact.
    """
    file = described(path, label)
    labelled = _labelled(path, file, label, file.labels)
    return {
        name: tuple(dict.fromkeys(text for _, text in sorted(file.labels[name].items())))
        for name in file.names
        if name in labelled and name in file.ordinal
    }


def store_survey_file(
    path: Path, destination: Path, label: str, types: Mapping[str, ColumnType] | None = None, by_itself: bool = False
) -> str:
    """Write the rows of a file as a new Parquet file; returns how to select its columns, with whole numbers as such.

    Parameters
    ----------
    types : the types that a spec states, by the names of the columns in the file
    by_itself : whether each value is read by itself, whatever stands in other rows: columns of the type numeric are
        numbers, and in all others a value that has a label is that label

    Raises
    ------
    InputError
        For a file that is not intact.
    """
    file = described(path, label)
    types = types or {}
    if by_itself:
        labelled = {name for name in file.labels if types.get(name) is not ColumnType.NUMERIC}
    else:
        open_ = [name for name in file.labels if types.get(name) not in (ColumnType.CATEGORICAL, ColumnType.NUMERIC)]
        labelled = _labelled(path, file, label, open_) | _stated_by_labels(file, types)
    import pandas as pd

    writer: pq.ParquetWriter | None = None
    fractions: set[str] = set()
    schema: pa.Schema | None = None
    with _harmless(label):
        for chunk in _chunks(path, list(file.names), label):
            table = _table(chunk, file, labelled, schema, pa.string() if by_itself else None)
            for name in file.names:
                column = chunk[name]
                if name not in labelled and pd.api.types.is_float_dtype(column) and not _whole(column):
                    fractions.add(name)
            if writer is None:
                schema = table.schema
                writer = pq.ParquetWriter(destination, schema)
            writer.write_table(table)
    if writer is None or schema is None:
        raise InputError(f"{label}: the table is empty")
    writer.close()
    selected = []
    for column in schema:
        whole = not by_itself and pa.types.is_floating(column.type) and column.name not in fractions
        selected.append(
            f"CAST({quoted(column.name)} AS BIGINT) AS {quoted(column.name)}" if whole else quoted(column.name)
        )
    return ", ".join(selected)


def _table(
    chunk: pd.DataFrame, file: SurveyFile, labelled: set[str], schema: pa.Schema | None, objects: pa.DataType | None
) -> pa.Table:
    """Rows as Arrow, with the same schema for all chunks; `objects` is the type of what is no number, where known."""
    import pandas as pd

    arrays = []
    for name in file.names:
        column = chunk[name]
        if name in labelled and pd.api.types.is_numeric_dtype(column):
            texts = file.labels[name]
            values = (None if pd.isna(value) else texts.get(float(value), _number(value)) for value in column)
            arrays.append(pa.array(values, pa.string()))
        elif pd.api.types.is_numeric_dtype(column):
            arrays.append(pa.array(column.to_numpy(dtype=np.float64, na_value=np.nan), pa.float64(), from_pandas=True))
        elif pd.api.types.is_datetime64_any_dtype(column):
            arrays.append(pa.array(column, pa.timestamp("us"), from_pandas=True, safe=False))
        else:
            arrays.append(_of_objects(column, objects if schema is None else schema.field(name).type))
    return pa.table(arrays, names=list(file.names))


def _of_objects(column: pd.Series[Any], known: pa.DataType | None) -> pa.Array:
    """Texts, days or times; these files write a missing text as an empty one."""
    import pandas as pd

    values = [None if value == "" or pd.isna(value) else value for value in column]
    kinds = {type(value) for value in values if value is not None}
    if known is None:
        known = pa.date32() if kinds == {date} else pa.timestamp("us") if kinds == {datetime} else pa.string()
    if pa.types.is_string(known):
        values = [None if value is None else str(value) for value in values]
    return pa.array(values, known)


def _number(value: float) -> str:
    """A number that has no label, as a text."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _whole(column: pd.Series[Any]) -> bool:
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    values = values[~np.isnan(values)]
    return bool(((values == np.floor(values)) & (np.abs(values) < LARGEST_EXACT)).all())


def _stated_by_labels(file: SurveyFile, types: Mapping[str, ColumnType]) -> set[str]:
    """The columns of a stated type in which a value that has a label is that label, found without a look at any value.

    Of a column of numbers these are labels that are other numbers.
    """
    return {
        name
        for name, texts in file.labels.items()
        if types.get(name) is ColumnType.CATEGORICAL
        or (types.get(name) is ColumnType.NUMERIC and _are_other_numbers(texts))
    }


def _are_other_numbers(texts: Mapping[float, str]) -> bool:
    """Whether all labels are numbers, and not all of them those that they label."""
    try:
        return any(float(text) != code for code, text in texts.items())
    except ValueError:
        return False


def _labelled(path: Path, file: SurveyFile, label: str, names: Collection[str]) -> set[str]:
    """Those of some columns with labels that are numbers of which every one that occurs has a label."""
    import pandas as pd

    candidates = {name: set(file.labels[name]) for name in names if name in file.names}
    if not candidates:
        return set()
    with _harmless(label):
        for chunk in _chunks(path, list(candidates), label):
            for name in list(candidates):
                column = chunk[name]
                values = set(column.dropna().unique()) if pd.api.types.is_numeric_dtype(column) else {""}
                if not {float(value) if value != "" else None for value in values} <= candidates[name]:
                    del candidates[name]
    return set(candidates)


def _chunks(path: Path, columns: list[str], label: str) -> Iterator[pd.DataFrame]:
    """The rows of some columns, a part at a time, with what the file declares missing as missing."""
    read, offset = _reader(path, label), 0
    while True:
        rows, _ = read(str(path), usecols=columns, row_offset=offset, row_limit=ROWS)
        if len(rows):
            yield rows
        if len(rows) < ROWS:
            return
        offset += ROWS


def _reader(path: Path, label: str) -> Callable[..., tuple[pd.DataFrame, Any]]:
    try:
        import pyreadstat
    except ImportError:
        raise InputError(f"{label}: is a file of SPSS, Stata or SAS; install `anon-pipeline[files]`") from None
    reader: Callable[..., tuple[pd.DataFrame, Any]] = getattr(pyreadstat, READERS[path.suffix.lower()])
    return reader


@contextmanager
def _harmless(label: str) -> Iterator[None]:
    """Replace a reader's message, which may quote the data that it read."""
    import pyreadstat

    try:
        yield
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, UnicodeDecodeError, OverflowError):
        raise InputError(f"{label}: cannot be read: it is no intact file of its kind") from None
