"""The format of a text file: encoding, delimiter, lines above the header, a line of totals.

The format is written into the proposed spec, where a person sees it; a person is asked about doubtful parts. No message
from here quotes a field of the file, except for the words of the lists below.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anon_pipeline.engine.sql import literal, quoted
from anon_pipeline.engine.text_encoding import BLOCK, encoding_of
from anon_pipeline.engine.text_files import codec_of, joined_header
from anon_pipeline.engine.unpacked import is_workbook, unpacked
from anon_pipeline.errors import InputError
from anon_pipeline.spec import Source

#: The number of rows at the beginning from which the format is inferred.
FIRST_ROWS = 300
DELIMITERS = (",", ";", "\t", "|")
#: Words in one of the fields of a line of totals.
TOTALS = {"total", "totals", "grand total", "sum", "sums", "summe", "gesamt", "insgesamt", "gesamtsumme", "somme"}
TOTALS |= {"totale", "suma", "totaal", "razem", "soma", "ukupno"}
NUMBER_OR_DATE = re.compile(r"[+-]?[0-9][0-9.,'\u2019/: \u00a0\u202f-]*%?")
YEAR = re.compile(r"(19|20)[0-9]{2}")


@dataclass(frozen=True)
class FileFormat:
    """The format of a file.

    Attributes
    ----------
    source : the source with the format that was found; good enough to read the file even where something is asked
    asked : questions that a person must decide, by key of the source
    """

    source: Source
    asked: dict[str, str] = field(default_factory=dict)


def file_format(table: Path, source: Source) -> FileFormat:
    """Infer the format of a text file, except for the parts that `source` states.

    Raises
    ------
    InputError
        For an encoding that does not exist, or a file whose first line is no header; the message names the line.
    """
    codec_of(source.encoding)
    stated = source.model_fields_set
    dialect: dict[str, Any] = {}
    asked: dict[str, str] = {}
    if "encoding" not in stated and not is_workbook(table):
        dialect["encoding"], question = encoding_of(table)
        if question:
            asked["encoding"] = question
    encoding = dialect.get("encoding", source.encoding)
    first, last = _ends(table, source.sheet)
    rows = _rows(first, encoding, source.delimiter, len(first) >= BLOCK)
    if source.delimiter is None and not is_workbook(table):
        delimiter, rows = _delimiter(first, encoding, len(first) >= BLOCK)
        dialect |= {"delimiter": delimiter} if delimiter not in (None, ",") else {}
    if not stated & {"skip", "header", "names"}:
        skip, header = _header(rows, table)
        dialect |= ({"skip": skip} if skip else {}) | ({"header": header} if header != 1 else {})
    stated_source = source.model_copy(update=dialect)
    if "where" not in stated and (total := _total(rows, last, stated_source)) is not None:
        column, word, condition = total
        value = json.dumps(condition, ensure_ascii=False)  # in quotes that YAML reads, whatever quotes it has
        asked["where"] = (
            f"in the last line column {column} says {word}, which is nobody; write {value} to leave it out, or "
            "take this key out if it is a person"
        )
        stated_source = stated_source.model_copy(update={"where": condition})
    return FileFormat(stated_source, asked)


def _ends(table: Path, sheet: str | None) -> tuple[bytes, bytes]:
    """The first block of a file, and the end of the file."""
    with unpacked(table, sheet, str(table)) as read:
        first = block = read.read(BLOCK)
        last = b""
        while block:
            last, block = (last + block)[-BLOCK // 8 :], read.read(BLOCK)
    return first, last


def _rows(content: bytes, encoding: str, delimiter: str | None, cut: bool) -> list[list[str]]:
    """The first rows of a file; where the block is cut, without its last row."""
    try:
        text = codecs.getincrementaldecoder(encoding)("replace").decode(content).removeprefix("\ufeff")
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=(delimiter or ",")[:1])
        rows = [row for row, _ in zip(reader, range(FIRST_ROWS + 1), strict=False)]
    except (csv.Error, UnicodeError):  # what is not in the encoding is refused by whoever reads the whole file
        return []
    return rows[:-1] if cut or len(rows) > FIRST_ROWS else rows


def _delimiter(content: bytes, encoding: str, cut: bool) -> tuple[str | None, list[list[str]]]:
    """The delimiter that gives most rows equally many fields, and the rows; of equal ones, that of most fields."""
    best: tuple[float, int] = (0.0, 1)
    chosen, chosen_rows = None, _rows(content, encoding, ",", cut)
    for delimiter in DELIMITERS:
        rows = _rows(content, encoding, delimiter, cut)
        filled = [len(row) for row in rows if any(row)]
        if not filled:
            continue
        width, count = Counter(filled).most_common(1)[0]
        share = count / len(filled)
        if width > 1 and share >= 0.8 and (share, width) > best:
            best, chosen, chosen_rows = (share, width), delimiter, rows
    return chosen, chosen_rows


def _header(rows: Sequence[Sequence[str]], table: Path) -> tuple[int, int]:
    """The number of lines above the header, and the number of lines of the header.

    Raises
    ------
    InputError
        Where the first line with as many fields as the others has numbers in the same places.
    """
    widths = Counter(len(row) for row in rows if any(row))
    width = widths.most_common(1)[0][0] if widths else 1
    if width < 2:
        return 0, 1
    named = [place for place, row in enumerate(rows) if sum(bool(cell.strip()) for cell in row) >= max(2, 0.6 * width)]
    skip = next((place for place in named if len(rows[place]) == width), 0)
    body = [row for row in rows[skip + 2 :] if len(row) == width and any(row)]
    of_numbers = [place for place in range(width) if _is_of_numbers([row[place] for row in body])]
    if not of_numbers:
        return skip, 1
    head = [rows[skip][place] for place in of_numbers]
    numbers = [cell for cell in head if NUMBER_OR_DATE.fullmatch(cell.strip())]
    if 2 * len(numbers) >= len(head) and not all(YEAR.fullmatch(number) for number in numbers):
        raise InputError(
            f"{table}: line {skip + 1} seems to be a person's and no header, since it has numbers where those below "
            "have; add a line before it that names the columns, or name them (`anon-pipeline init --names a,b,c`)"
        )
    second = [rows[skip + 1][place].strip() for place in of_numbers] if len(rows) > skip + 2 else []
    texts = [cell for cell in second if cell and not NUMBER_OR_DATE.fullmatch(cell)]
    above = rows[skip - 1] if skip else []
    if len(above) == width and sum(bool(cell.strip()) for cell in above) > 1:
        return skip - 1, 2
    several = len(of_numbers) > 1 and len(texts) == len([cell for cell in second if cell]) > 1
    return skip, 2 if several and len(set(texts)) > 1 else 1


def _is_of_numbers(values: Sequence[str]) -> bool:
    known = [value.strip() for value in values if value.strip()]
    return len(known) >= 2 and sum(bool(NUMBER_OR_DATE.fullmatch(value)) for value in known) >= 0.8 * len(known)


def _total(rows: Sequence[Sequence[str]], last: bytes, source: Source) -> tuple[str, str, str] | None:
    """The column whose word marks the last line as one of totals, the word, and the condition that removes the line."""
    ended = [row for row in _tail(last, source) if any(cell.strip() for cell in row)]
    head = [[cell or None for cell in row] for row in rows[source.skip : source.skip + source.header]]
    if not ended or not head or len({len(row) for row in head}) > 1 or len(ended[-1]) != len(head[0]):
        return None
    body = [row for row in rows[source.skip + source.header :] if len(row) == len(ended[-1]) and row != ended[-1]]
    for place, (name, value) in enumerate(zip(joined_header(head), ended[-1], strict=True)):
        others = {row[place] for row in body}
        if value.strip().strip(":").casefold() in TOTALS and value not in others:  # else it is a category like others
            # Whether the column will be of texts or of numbers: to a condition, a word among numbers is missing.
            numbers = _is_of_numbers([row[place] for row in body])
            text = f"CAST({quoted(name)} AS VARCHAR)" if numbers else quoted(name)
            known = f" AND {quoted(name)} IS NOT NULL" if numbers else ""
            return name, value.strip(), f"{text} IS DISTINCT FROM {literal(value)}{known}"
    return None


def _tail(last: bytes, source: Source) -> list[list[str]]:
    """The last row of a file, or its end where it has a line break within quotes."""
    text = last.decode(source.encoding, "replace").rstrip("\r\n")
    line = text[text.rfind("\n") + 1 :]
    try:
        return list(csv.reader([line], delimiter=(source.delimiter or ",")[:1]))
    except csv.Error:
        return []
