"""CSV and similar text files as a relation: encoding, packing, lines above the header, long headers, and names."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path

import duckdb

from anon_pipeline.engine.paths import PLAIN, exactly, packing
from anon_pipeline.engine.sql import literal, quoted
from anon_pipeline.engine.unpacked import is_workbook, unpacked
from anon_pipeline.errors import InputError, OfSource
from anon_pipeline.spec import Source

#: Options of a CSV that DuckDB must not guess: it would skip lines, and people with them, until the rest is regular.
EVERY_LINE = f"all_varchar=true, comment='', quote='\"', strict_mode=true, {PLAIN}"
#: Delimiters that DuckDB knows by itself.
DELIMITERS = (",", ";", "\t", "|")
#: The lines that are looked at for one that is irregular; DuckDB looks at about as many for a delimiter.
LINES = 50_000
#: How a quote is written within a quoted field (RFC 4180), for files in which no row may show it.
DOUBLED = '"'
#: Characters that are decoded at a time.
BLOCK = 1 << 20


def codec_of(encoding: str) -> str:
    """The name by which Python knows an encoding.

    Raises
    ------
    InputError
        For an encoding that does not exist, or is none of texts.
    """
    try:
        with suppress(UnicodeDecodeError):  # of an encoding with wider characters
            b" ".decode(encoding)  # some codecs are none of texts, as base64
        return codecs.lookup(encoding).name
    except (LookupError, ValueError):
        raise OfSource("encoding", f"{encoding} is no encoding; usual are utf-8, utf-16, cp1252 and latin-1") from None


@contextmanager
def text_relation(  # noqa: PLR0913 (a file, and how it is read)
    connection: duckdb.DuckDBPyConnection,
    source: Source,
    path: Path,
    label: str,
    scratch: Path,
    whole: bool = False,
    escape: str | None = None,
) -> Iterator[str]:
    """The rows of a text file, every field a text; entirely empty rows are left out unless all rows are wanted.

    In a source such a row is no person. In a published table it is a person of whom nothing is published, and counts.

    Parameters
    ----------
    escape : the character before a quote within a quoted field; where absent, the rows show it

    Raises
    ------
    InputError
        For an encoding that does not exist or is not the file's, a name that stands twice, no header, or a line with
        another number of fields than most.
    """
    decoded = scratch / "decoded.csv"
    as_it_is = codec_of(source.encoding) in ("utf-8", "ascii", "utf-8-sig") and _is_read_as_it_is(path)
    try:
        if not as_it_is:
            _decode(path, source, decoded, label)
        with ExitStack() as stack:
            (place,) = stack.enter_context(exactly(path if as_it_is else decoded))
            options = [EVERY_LINE]
            if source.delimiter is not None or is_workbook(path):
                options.append(f"delim={literal(source.delimiter or ',')}")
            if escape is not None:
                options.append(f"escape={literal(escape)}")
            packed = packing(path) if as_it_is else "compression='none'"
            text = f"read_csv({place}, {', '.join([*options, packed])}"
            try:
                names = _names(connection, text, source, label)
            except duckdb.InvalidInputException:
                if not _line_ends_differ(path, source, label):
                    _refuse_irregular(path, source, label)
                    raise
                even = scratch / "even.csv"
                stack.callback(even.unlink, missing_ok=True)
                _decode(path, source, even, label, one_line_end=True)
                (place,) = stack.enter_context(exactly(even))
                text = f"read_csv({place}, {', '.join(options)}, compression='none'"
                names = _names(connection, text, source, label)
            if len(names) == 1:
                _refuse_irregular(path, source, label)
            if source.header == 1:
                rows = f"{text}, skip={source.skip}, header=true)"
            else:
                rows = f"{text}, skip={source.skip + source.header}, header=false)"
            if source.header != 1 or source.rename:
                rows = f"(SELECT * FROM {rows} AS field({', '.join(map(quoted, names))}))"
            filled = " OR ".join(f"{quoted(name)} IS NOT NULL" for name in names)
            yield rows if whole else f"(SELECT * FROM {rows} WHERE {filled})"
    finally:
        decoded.unlink(missing_ok=True)


def first_rows(connection: duckdb.DuckDBPyConnection, text: str, skip: int, most: int) -> list[tuple[str | None, ...]]:
    """The first rows of a text file in their order; a single thread reads them, since several would mix them up."""
    return connection.execute(f"FROM {text}, skip={skip}, header=false, parallel=false) LIMIT {most}").fetchall()


def joined_header(lines: Sequence[Sequence[str | None]]) -> list[str]:
    """A name per column from a header of several lines; a name above several columns holds for all of them.

    >>> joined_header([("name", "income", None), (None, "gross", "net")])
    ['name', 'income gross', 'income net']
    """
    parts: list[list[str]] = [[] for _ in lines[0]]
    for number, line in enumerate(lines):
        above = ""
        for place, name in enumerate(line):
            spreads = any(below[place] for below in lines[number + 1 :])
            above = (name or "").strip() or (above if spreads else "")
            if above:
                parts[place].append(above)
    return [" ".join(words) for words in parts]


#: What DuckDB takes away around names: the blanks of Unicode (Zs), and no tabs.
BLANKS = "".join(letter for letter in map(chr, range(0x3001)) if unicodedata.category(letter) == "Zs")


class NamesDifferByCapitals(InputError):
    """Names of columns differ by capitals only, which SQL ignores; `rename` has names that differ otherwise."""

    def __init__(self, sentence: str, rename: dict[str, str]) -> None:
        super().__init__(sentence)
        self.rename = rename


def told_apart(names: Sequence[str]) -> dict[str, str]:
    """New names for columns that differ from an earlier one by capitals only; none where a name stands twice.

    >>> told_apart(["country", "age", "Country", "country_2"])
    {'Country': 'Country_3'}
    """
    if len(set(names)) < len(names):
        return {}
    first: set[str] = set()
    taken = {name.casefold() for name in names}
    new: dict[str, str] = {}
    for name in names:
        if name.casefold() in first:
            numbered = (f"{name}_{number}" for number in count(2))
            new[name] = next(free for free in numbered if free.casefold() not in taken)
            taken.add(new[name].casefold())
        first.add(name.casefold())
    return new


def distinct_names(names: Sequence[str], rename: dict[str, str], label: str, plural: str) -> list[str]:
    """The spec's names for a file's columns; each stands once, regardless of capitals.

    A message gives the places of names and not the names: in a file without a header they are a person's values.

    Raises
    ------
    InputError
        For a name that stands twice; `NamesDifferByCapitals` where names differ by capitals only.
    """
    if unknown := [name for name in rename if name not in names]:
        raise InputError(f"source.rename: {label} has no column {', '.join(unknown)}; correct or remove it")
    called = [rename.get(name, name) for name in names]
    places: dict[str, list[str]] = {}
    for number, name in enumerate(called, start=1):
        places.setdefault(name.casefold(), []).append(str(number))
    for numbers in places.values():
        if len(numbers) > 1:
            new = told_apart(called)
            otherwise = "(source.rename)" if new else "(name all of them: source.names, with header: 0 and a skip of 1)"
            sentence = (
                f"{label}: the columns {' and '.join(numbers)} of {plural} have one name (capitals do not tell columns "
                f"apart); call one of them otherwise {otherwise}, drop it, or add a header if that line is a person's"
            )
            if new:
                proposed = {
                    name: new[called_so] for name, called_so in zip(names, called, strict=True) if called_so in new
                }
                raise NamesDifferByCapitals(sentence, proposed)
            raise InputError(sentence)
    return called


def _is_read_as_it_is(path: Path) -> bool:
    """Whether DuckDB unpacks the file itself."""
    return path.suffix.lower() != ".zip" and not is_workbook(path)


def _names(connection: duckdb.DuckDBPyConnection, text: str, source: Source, label: str) -> list[str]:
    head = first_rows(connection, text, source.skip, max(1, source.header))
    if len(head) < max(1, source.header):
        raise InputError(f"{label}: is empty; it has not even a header line")
    if source.names is not None:
        if len(source.names) != len(head[0]):
            raise InputError(
                f"source.names: has {len(source.names)} names, and {label} has {len(head[0])} columns; name each one"
            )
        return distinct_names(source.names, source.rename, label, "source.names")
    if source.header != 1:
        named = [name or f"column{place}" for place, name in enumerate(joined_header(head))]
        return distinct_names(named, source.rename, label, "its header")
    described = [
        row[0] for row in connection.execute(f"DESCRIBE FROM {text}, skip={source.skip}, header=true)").fetchall()
    ]
    # DuckDB takes blanks around a name away, as in `age, city`, unless the spec gives another name for it.
    of_file = [name if name in source.rename else (name or "").strip(BLANKS) for name in head[0]]
    named = [name or invented for name, invented in zip(of_file, described, strict=True)]
    return distinct_names(named, source.rename, label, "its first line")


def delimiter_of_header(source: Source, path: Path, label: str, names: Collection[str]) -> str:
    """The delimiter that makes most of these names of the header, so that it does not follow from any row.

    Raises
    ------
    InputError
        Where the file has no header, or one that has none of the names, however it is delimited.
    """
    wanted = {name.casefold() for name in names}
    header: list[str] = []
    with suppress(LookupError):  # an encoding that does not exist
        lines = itertools.islice(_lines(source, path, label, "replace"), source.skip, source.skip + source.header)
        header = [line.removeprefix("\ufeff") for line in lines]
    if source.header and not header:
        return DELIMITERS[0]  # the reader will say what is wrong with the file
    found = {}
    for delimiter in DELIMITERS:
        with suppress(csv.Error):  # a field that is longer than the module reads
            columns = itertools.zip_longest(*csv.reader(header, delimiter=delimiter))
            called = joined_header(list(zip(*columns, strict=True))) if header else []
            found[delimiter] = len(wanted & {name.casefold() for name in called})
    if not any(found.values()):
        raise InputError(
            f"source.delimiter: say what separates the fields of {label}; its header does not show it, and for noisy "
            "answers it is not guessed from people's rows"
        )
    return max(found, key=found.__getitem__)


def _lines(source: Source, path: Path, label: str, errors: str = "strict") -> Iterator[str]:
    """The lines of a text file, unpacked and decoded; `errors` says what becomes of bytes that are in no encoding."""
    with (
        unpacked(path, source.sheet, label) as read,
        io.TextIOWrapper(read, "utf-8" if is_workbook(path) else source.encoding, errors, newline="") as text,
    ):
        yield from text


def _refuse_irregular(path: Path, source: Source, label: str) -> None:
    """Name the first line with another number of fields, if most lines have as many as the first.

    DuckDB looks at many lines before it reads any; if one of them is irregular, it finds no delimiter at all.

    Raises
    ------
    InputError
        For such a line.
    """
    if len(source.delimiter or ",") > 1:  # only DuckDB knows delimiters of several letters
        return
    with suppress(csv.Error, UnicodeDecodeError):
        lines = list(itertools.islice(_lines(source, path, label), source.skip, source.skip + LINES))
        delimiter = source.delimiter or max(DELIMITERS, key=(lines or [""])[0].count)
        rows = csv.reader(lines, delimiter=delimiter, strict=True)
        counted = [(source.skip + rows.line_num, len(row)) for row in rows if row]
        fields = counted[0][1] if counted else 1
        odd = next((line for line in counted if line[1] != fields), None)
        if fields > 1 and odd is not None and 2 * sum(number == fields for _, number in counted) > len(counted):
            raise InputError(
                f"{label}: line {odd[0]} has {odd[1]} fields where the first line has {fields}; correct it, or quote a "
                "field that holds the delimiter"
            )


def _line_ends_differ(path: Path, source: Source, label: str) -> bool:
    """Whether some lines of a text file end with CR LF and others with LF alone, as where two programs wrote it."""
    both = single = 0
    with unpacked(path, source.sheet, label) as read:
        before = b""
        while block := read.read(BLOCK):
            both += block.count(b"\r\n") + (before == b"\r" and block.startswith(b"\n"))
            single += block.count(b"\n")
            before = block[-1:]
    return 0 < both < single


def _decode(path: Path, source: Source, destination: Path, label: str, one_line_end: bool = False) -> None:
    """Write a text file as UTF-8, unpacked; with `one_line_end` all its lines end alike.

    Raises
    ------
    InputError
        With the number of the line that is not in this encoding.
    """
    encoding = "utf-8" if is_workbook(path) else source.encoding
    plain = codecs.getincrementaldecoder(encoding)()
    decoder = io.IncrementalNewlineDecoder(plain, translate=True) if one_line_end else plain
    lines = 1
    with (
        unpacked(path, source.sheet, label) as read,
        destination.open("w", encoding="utf-8", newline="") as out,
    ):
        while True:
            block = read.read(BLOCK)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeError as error:  # one of no position where a mark of the byte order is missing at the start
                if isinstance(error, UnicodeDecodeError):
                    lines += error.object[: error.start].decode(encoding, "replace").count("\n")
                what = f"{label}: line {lines} is not in the encoding {encoding}; state the file's"
                raise OfSource("encoding", what) from None
            out.write(text)
            lines += text.count("\n")
            if not block:
                return
