"""Files by what they are and are called: their kinds, packed texts, headers, and what is told where they are broken."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.engine import text_files
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.parquet_files import _refuse_files_that_differ, check_names, refuse_table, renamed
from anon_pipeline.engine.sources import empty_rows, harmless, kind_of, opened_at
from anon_pipeline.engine.text_files import NamesDifferByCapitals, distinct_names, joined_header, told_apart
from anon_pipeline.engine.unpacked import is_text, is_workbook, unpacked
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.spec import Column, Source

CSV = "x,t\n1,a\n2,b\n"
SECRET = "Ottilie"


# ------------------------------------------------------------------ kinds and folders


@pytest.mark.parametrize(
    ("name", "head", "kind"),
    [
        ("a", b"SQLite format 3\0", "sqlite"),
        ("a.csv", b"SQLite format 3\0", "sqlite"),
        ("a", b"12345678DUCK", "duckdb"),
        ("a.parquet", b"123456789DUCK", "parquet"),
        ("a", b"PAR1", "parquet"),
        ("A.PQ", b"", "parquet"),
        ("a.csv", b"ARROW1", "csv"),
        ("a.tsv.gz", b"", "csv"),
        ("a.xlsx", b"PK", "csv"),
        ("a.zip", b"PK", "csv"),
        ("a", b"ARROW1", "arrow"),
        ("a.arrows", b"", "arrow"),
        ("a.json", b"", "json"),
        ("a.ndjson.zst", b"", "json"),
        ("a.SAV", b"", "survey"),
        ("a.pdf", b"%PDF", None),
        ("csv", b"", None),
    ],
)
def test_a_file_is_known_by_its_first_bytes_or_by_its_name(
    tmp_path: Path, name: str, head: bytes, kind: str | None
) -> None:
    (tmp_path / name).write_bytes(head)
    if kind is None:
        with pytest.raises(InputError, match=f"{name}: is no table that can be read"):
            kind_of(tmp_path / name)
    else:
        assert kind_of(tmp_path / name) == kind


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("_delta_log/00.json", "a Delta Lake table"),
        ("deep/people/_delta_log/00.json", "a Delta Lake table"),
        ("metadata/v1.metadata.json", "an Iceberg table"),
        ("deep/people/metadata/v1.metadata.json", "an Iceberg table"),
        ("metadata/notes.json", None),
        ("metadata/old/v1.metadata.json", None),
        ("v1.metadata.json", None),
        ("_delta_log/old/00.json", None),
        ("_delta_log", None),
    ],
)
def test_a_folder_of_a_table_is_known_by_its_own_files(name: str, table: str | None) -> None:
    for below in ([name], ["a.json", name]):
        if table is None:
            refuse_table(below, "people")
        else:
            with pytest.raises(InputError, match=f"^people: is {table}, whose files hold former rows"):
                refuse_table(below, "people")


def test_columns_of_all_files_are_renamed_where_they_are_the_same_in_each(tmp_path: Path) -> None:
    files = tuple(tmp_path / f"{number}.parquet" for number in range(3))
    for file in files:
        pq.write_table(pa.table({"a": [1], "b": [2]}), file)
    source = Source(path="people", rename={"a": "x"})
    with duckdb.connect() as connection:
        relation = f"read_parquet('{tmp_path}/*.parquet', union_by_name=true)"
        found, kept = renamed(connection, relation, files, source, "people")
        assert connection.execute(f"FROM {found}").fetchall() == [(1, 2)] * 3
        assert [row[0] for row in connection.execute(f"DESCRIBE FROM {found}").fetchall()] == ["x", "b"]
        assert kept == (), "the files have other names"
        assert renamed(connection, relation, files, Source(path="people"), "people") == (relation, files)
        pq.write_table(pa.table({"b": [2], "c": [3]}), files[2])
        of_some = Source(path="people", rename={"a": "x", "c": "z"})
        found, _ = renamed(connection, relation, files, of_some, "people")
        assert [row[0] for row in connection.execute(f"DESCRIBE FROM {found}").fetchall()] == ["x", "b", "z"]


@pytest.mark.parametrize(
    ("names", "rename", "sentence", "proposed"),
    [
        (["a", "b"], {}, None, None),
        (["a", "A", "b"], {}, "differ by capitals only", {"A": "A_2"}),
        (["a", "A"], {"A": "x"}, None, None),
        (["a", "b", "c"], {"b": "A"}, "differ by capitals only", {"b": "A_2"}),
        (["a", "a", "b"], {}, "the columns a stand twice", None),
        (["a", "a", "A"], {}, "the columns A, a stand twice", None),
        (["a", "b"], {"b": "a"}, "the columns a stand twice", None),
    ],
)
def test_a_name_stands_once_whatever_its_capitals(
    names: list[str], rename: dict[str, str], sentence: str | None, proposed: dict[str, str] | None
) -> None:
    if sentence is None:
        check_names("p", names, rename)
        return
    with pytest.raises(InputError, match=f"^p: .*{sentence}") as told:
        check_names("p", names, rename)
    found = told.value.rename if isinstance(told.value, NamesDifferByCapitals) else None
    assert found == proposed


TEXT = pa.array(["a"])


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        ({"x": pa.array([1])}, {"x": pa.array([2])}, None),
        ({"x": TEXT}, {"x": TEXT.cast(pa.large_string())}, None),
        ({"x": TEXT.dictionary_encode()}, {"x": TEXT.cast(pa.string_view())}, None),
        ({"x": pa.nulls(1)}, {"x": TEXT}, None),
        ({"x": TEXT}, {"x": pa.nulls(1)}, None),
        ({"x": TEXT, "y": TEXT}, {"y": TEXT, "x": TEXT}, None),
        ({"x": TEXT}, {"x": pa.array([1])}, "the column x is int64 in b.parquet and string in a.parquet"),
        ({"x": TEXT}, {"x": TEXT, "y": TEXT}, "b.parquet has the column y, which a.parquet has not"),
        ({"x": TEXT, "y": TEXT}, {"x": TEXT}, "a.parquet has the column y, which b.parquet has not"),
    ],
)
def test_files_of_a_folder_have_the_same_columns_and_types(
    tmp_path: Path, first: dict[str, pa.Array], second: dict[str, pa.Array], sentence: str | None
) -> None:
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for file, columns in zip(files, (first, second), strict=True):
        pq.write_table(pa.table(columns), file)
    if sentence is None:
        _refuse_files_that_differ(files, tmp_path, "p")
    else:
        with pytest.raises(InputError, match=f"^source.union_by_name: p: {sentence}; correct it, or say so if"):
            _refuse_files_that_differ(files, tmp_path, "p")


# ------------------------------------------------------------------ texts


def test_a_zip_with_a_password_is_refused_and_other_flags_are_none(tmp_path: Path) -> None:
    """The flags of a file stand before it and in the list at the end; bit 0 says that it is encrypted."""
    for flags, refused in ((0, False), (2, False), (4, False), (1, True), (3, True)):
        file = tmp_path / f"{flags}.zip"
        with zipfile.ZipFile(file, "w") as packed:
            packed.writestr("people.csv", CSV)
        content = bytearray(file.read_bytes())
        content[6] = content[content.index(b"PK\x01\x02") + 8] = flags
        file.write_bytes(content)
        if refused:
            with pytest.raises(InputError, match=r"^p: the file in it needs a password"), unpacked(file, None, "p"):
                pass
        else:
            with unpacked(file, None, "p") as text:
                assert text.read() == CSV.encode()


def test_folders_and_files_of_a_desktop_do_not_count_in_a_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as packed:
        packed.mkdir("deep")
        for name in ("deep/.DS_Store", "__MACOSX/deep/._people.txt", "deep/people.TXT"):
            packed.writestr(name, CSV if "people.TXT" in name else "\0")
    with unpacked(tmp_path / "p.zip", None, "p") as text:
        assert text.read() == CSV.encode()
    with zipfile.ZipFile(tmp_path / "empty.zip", "w"):
        pass
    with pytest.raises(InputError, match=r"^p: holds 0 files"), unpacked(tmp_path / "empty.zip", None, "p"):
        pass


def test_texts_and_workbooks_are_known_by_their_names() -> None:
    names = ["A.CSV", "a.tsv.gz", "a.txt.zst", "a.zip", "a.ods", "a.XLSX", "a.csv.bz2", "csv", "a.parquet"]
    assert [name for name in names if is_text(Path(name))] == names[:6]
    assert [name for name in names if is_workbook(Path(name))] == ["a.ods", "a.XLSX"]


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        ([("a", "b", None)], ["a", "b", ""]),
        ([("a", None), ("b", "c")], ["a b", "a c"]),
        ([("a", None, "d"), (None, None, None), ("b", "c", "e")], ["a b", "a c", "d e"]),
        ([(None, " a "), ("b", None)], ["b", "a"]),
    ],
)
def test_a_header_of_several_lines_is_joined(lines: list[tuple[str | None, ...]], names: list[str]) -> None:
    assert joined_header(lines) == names


@pytest.mark.parametrize(
    ("names", "new"),
    [
        (["a", "b"], {}),
        (["a", "A"], {"A": "A_2"}),
        (["a", "A", "a_2", "A_3"], {"A": "A_4"}),
        (["aa", "Aa", "AA"], {"Aa": "Aa_2", "AA": "AA_3"}),
        (["a", "a", "A"], {}),
    ],
)
def test_names_that_differ_by_capitals_get_a_number_that_is_free(names: list[str], new: dict[str, str]) -> None:
    assert told_apart(names) == new


def test_a_name_that_stands_twice_is_told_by_its_places() -> None:
    assert distinct_names(["a", "b"], {"b": "x"}, "p", "its first line") == ["a", "x"]
    with pytest.raises(InputError, match=r"^source\.rename: p has no column c, d; correct or remove it"):
        distinct_names(["a", "b"], {"c": "x", "d": "y", "a": "z"}, "p", "its first line")
    with pytest.raises(InputError, match=r"^p: the columns 1 and 3 of its first line have one name") as told:
        distinct_names([SECRET, "b", SECRET], {}, "p", "its first line")
    assert SECRET not in str(told.value)
    with pytest.raises(NamesDifferByCapitals, match=r"^p: the columns 2 and 3 of its first line") as differ:
        distinct_names(["b", "a", "A"], {}, "p", "its first line")
    assert differ.value.rename == {"A": "A_2"}


@pytest.mark.parametrize("block", [1, 7, 1 << 20])
@pytest.mark.parametrize("line", [1, 2, 5])
def test_a_line_in_another_encoding_is_named_by_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, line: int
) -> None:
    monkeypatch.setattr(text_files, "BLOCK", block)
    lines = [b"x,t", b"1,a", b"2,b", b"3,a", b"4,b", b"5,a"]
    lines[line - 1] += b"\x81\xff"
    (tmp_path / "p.csv").write_bytes(b"\n".join(lines))
    source = Source(path="p.csv", encoding="shift_jis")
    with (
        duckdb.connect() as connection,
        pytest.raises(InputError, match=f"^source.encoding: p: line {line} is not in the encoding shift_jis"),
        text_files.text_relation(connection, source, tmp_path / "p.csv", "p", tmp_path),
    ):
        pass
    assert [file.name for file in tmp_path.iterdir()] == ["p.csv"]


@pytest.mark.parametrize(
    ("said", "content", "rows", "names"),
    [
        ({}, CSV, [("1", "a"), ("2", "b")], ["x", "t"]),
        ({"skip": 1}, f"a note\n{CSV}", [("1", "a"), ("2", "b")], ["x", "t"]),
        ({"header": 2}, f"p,p\n{CSV}", [("1", "a"), ("2", "b")], ["p x", "p t"]),
        ({"header": 0, "names": ["p", "q"]}, CSV, [("x", "t"), ("1", "a"), ("2", "b")], ["p", "q"]),
        ({"header": 2, "skip": 1}, f"a note\np,\n{CSV}", [("1", "a"), ("2", "b")], ["p x", "p t"]),
        ({"rename": {"t": "ill"}}, CSV, [("1", "a"), ("2", "b")], ["x", "ill"]),
        ({"delimiter": ";"}, CSV.replace(",", ";"), [("1", "a"), ("2", "b")], ["x", "t"]),
    ],
)
def test_the_lines_above_the_people_are_as_the_spec_says(
    tmp_path: Path, said: dict[str, object], content: str, rows: list[tuple[str, str]], names: list[str]
) -> None:
    (tmp_path / "p.csv").write_text(content)
    source = Source.model_validate({"path": "p.csv", **said})
    with duckdb.connect() as connection, opened_at(connection, source, tmp_path / "p.csv", tmp_path) as opened:
        described = connection.execute(f"DESCRIBE FROM {opened.relation}").fetchall()
        assert [row[0] for row in described] == names
        assert sorted(connection.execute(f"FROM {opened.relation}").fetchall()) == sorted(rows)


@pytest.mark.parametrize(
    ("said", "content", "sentence"),
    [
        ({}, "", "p.csv: is empty; it has not even a header line"),
        ({"header": 2}, "x,t\n", "p.csv: is empty; it has not even a header line"),
        ({"header": 0, "names": ["p", "q"]}, "", "p.csv: is empty; it has not even a header line"),
        ({"header": 0, "names": ["p"]}, CSV, "source.names: has 1 names, and p.csv has 2 columns; name each one"),
        ({"header": 0, "names": ["p", "q", "r"]}, CSV, "source.names: has 3 names, and p.csv has 2 columns"),
    ],
)
def test_a_header_that_is_not_there_is_told(
    tmp_path: Path, said: dict[str, object], content: str, sentence: str
) -> None:
    (tmp_path / "p.csv").write_text(content)
    source = Source.model_validate({"path": "p.csv", **said})
    with (
        duckdb.connect() as connection,
        pytest.raises(InputError, match=f"^{sentence}"),
        opened_at(connection, source, tmp_path / "p.csv", tmp_path),
    ):
        pass


def test_rows_that_are_entirely_empty_are_counted_in_texts_alone(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("x,t\n1,a\n,\n,b\n,\n")
    pq.write_table(pa.table({"x": [None, 1]}), tmp_path / "p.parquet")
    with duckdb.connect() as connection:
        for name, empty in (("p.csv", 2), ("p.parquet", 0), (".", 0)):
            assert empty_rows(connection, Source(path=name), tmp_path / name, tmp_path) == empty
        source = Source(path="p.csv")
        for whole, rows in ((False, 2), (True, 4)):
            with text_files.text_relation(connection, source, tmp_path / "p.csv", "p", tmp_path, whole) as relation:
                assert len(connection.execute(f"FROM {relation}").fetchall()) == rows
        with text_files.text_relation(connection, source, tmp_path / "p.csv", "p", tmp_path) as relation:
            assert len(connection.execute(f"FROM {relation}").fetchall()) == 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f"CSV Error on Line: 7\n{SECRET}", "line 7 does not have the shape of the header; check delimiter and quotes"),
        (f"CSV Error on Line: 7\nInvalid unicode {SECRET}",
         "line 7 is not in the encoding asked for; state the file's"),
        (f"CSV Error on Line: 7 not utf-8 {SECRET}",
         "line 7 is not in the encoding asked for; state the file's"),
        ("Error when sniffing file", "its lines do not have the shape of the header; check delimiter and quotes"),
        ("No space left on device", "the disk is full"),
        ("Could not set lock", "another program holds the database open for writing"),
        (f"Catalog Error: Table {SECRET} does not exist", "the query names a table or column that does not exist"),
        (f"no such column: {SECRET}", "the query names a table or column that does not exist"),
        ("near x: syntax error", "the query has a syntax error"),
        (SECRET, "the library reported ValueError"),
    ],
)  # fmt: skip
def test_a_librarys_message_is_told_without_what_it_quotes(text: str, sentence: str) -> None:
    assert harmless(ValueError(text)) == sentence


@pytest.mark.parametrize(
    ("error", "kind", "sentence"),
    [
        (InputError("as it was"), InputError, "as it was"),
        (PermissionError(13, SECRET), InputError, "p.csv: cannot be read: permission denied"),
        (OSError(SECRET), InputError, "p.csv: cannot be read: it is not packed as its name says"),
        (OSError(28, "no space left"), OSError, "[Errno 28] no space left"),
        (pa.ArrowInvalid(f"Parquet {SECRET}"), InputError, "p.csv: cannot be read: it is no intact Parquet file"),
        (duckdb.OutOfMemoryException("memory"), duckdb.OutOfMemoryException, "memory"),
        (duckdb.IOException("No space left"), Unavailable, "p.csv: cannot be read: the disk is full"),
    ],
)
@pytest.mark.parametrize("changed", [False, True])
def test_a_failure_while_a_source_is_read_is_told_in_our_words(
    tmp_path: Path, error: Exception, kind: type[Exception], sentence: str, changed: bool
) -> None:
    """If the file was changed meanwhile, that is the reason; what is no fault of the source is passed on."""
    file = tmp_path / "p.csv"
    file.write_text(CSV)
    is_told_so = changed and issubclass(kind, InputError)
    expected = Unavailable if is_told_so else kind
    told = "p.csv: was changed while it was read; run again" if is_told_so else sentence

    def read() -> None:
        with duckdb.connect() as connection, opened_at(connection, Source(path="p.csv"), file, tmp_path):
            if changed:
                file.write_text(CSV + "3,c\n")
            raise error

    with pytest.raises(expected) as raised:
        read()
    assert type(raised.value) is expected
    assert str(raised.value) == told


# ------------------------------------------------------------------ tables of others


@pytest.mark.parametrize(
    ("name", "write", "sentence"),
    [
        ("absent.csv", lambda path: None, "absent.csv: there is no such file"),
        ("p", lambda path: path.mkdir(), "p: is no CSV or Parquet file"),
        ("p.json", lambda path: path.write_text("{}"), "p.json: is no CSV or Parquet file"),
        ("p.parquet", lambda path: path.write_bytes(b"PAR1"), "p.parquet: cannot be read"),
    ],
)
def test_what_is_no_published_table_is_told(
    engine: DuckDBEngine, tmp_path: Path, name: str, write: Callable[[Path], object], sentence: str
) -> None:
    write(tmp_path / name)
    with pytest.raises(InputError, match=sentence):
        engine.import_table(tmp_path / name, tmp_path)


def test_measured_dates_of_a_published_text_have_an_order(engine: DuckDBEngine, tmp_path: Path) -> None:
    """A distance along their order was taken between texts, and bins of dates could not be counted."""
    (tmp_path / "p.csv").write_text(
        "town,day,moment,german,some\na,2020-01-03,2020-01-03 10:00:00,03.01.2020,2020-01-03\n"
        "a,,2020-01-01 10:00:00,01.01.2020,soon\na,2020-01-01,2020-01-02T10:00,02.01.2020,\n"
    )
    measured = dict.fromkeys(("day", "moment", "german", "some"), Column(role="sensitive"))
    table = pq.read_table(engine.import_table(tmp_path / "p.csv", tmp_path, measured))
    kinds = {name: pa.types.is_timestamp(table.schema.field(name).type) for name in measured}
    assert kinds == {"day": True, "moment": True, "german": False, "some": False}
    counts = engine.classes(tmp_path / "imported.parquet", ["town"], list(measured))
    assert counts.ordered == {"day", "moment"}
    assert sorted(map(str, table["some"].to_pylist())) == ["2020-01-03", "None", "soon"]
    unmeasured = pq.read_table(engine.import_table(tmp_path / "p.csv", tmp_path))
    assert pa.types.is_string(unmeasured.schema.field("day").type)


def test_only_measured_columns_of_a_published_text_become_numbers(engine: DuckDBEngine, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("a;b;c\n1;1.0;x\n;;\n02;1;y\n")
    (tmp_path / "q.csv").write_text("a,b,c\n1,1.0,x\n,,\n02,1,y\n")
    said = Source(path="p.csv", delimiter=";")
    for name, written in (("p.csv", said), ("q.csv", None)):
        measured = dict.fromkeys("abc", Column(role="sensitive"))
        table = pq.read_table(engine.import_table(tmp_path / name, tmp_path, measured, written)).to_pydict()
        assert sorted(map(str, table["a"])) == ["02", "1", "None"], "a code is no number"
        assert sorted(map(str, table["b"])) == ["1.0", "1.0", "None"]
        texts = pq.read_table(engine.import_table(tmp_path / name, tmp_path, {}, written)).to_pydict()
        assert sorted(map(str, texts["b"])) == ["1", "1.0", "None"]
    pq.write_table(pa.table({"a": [1]}), tmp_path / "p.parquet")
    assert engine.import_table(tmp_path / "p.parquet", tmp_path) == tmp_path / "p.parquet"
