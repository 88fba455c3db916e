"""A table of a PostgreSQL server is the same people as the Parquet file of it; nothing is written, no secret stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from anon_pipeline.engine import postgresql
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.engine.server_rows import Question, ServerFailure
from anon_pipeline.engine.servers import changes_of_server
from anon_pipeline.errors import InputError
from anon_pipeline.profiling.new_dataset import DatasetRequest, start_dataset
from anon_pipeline.spec import ReleaseSpec, Source
from anon_pipeline_tests.people import write_spec
from anon_pipeline_tests.postgresql import PASSWORD, Server, running_server

#: A value of a person that nothing may repeat.
SECRET = "Ottilie"
VARIABLE = "CLINIC_DSN"
COLUMNS = {
    "age": "quasi_identifier",
    "town": "quasi_identifier",
    "born": {"role": "quasi_identifier", "type": "date"},
    "pay": "quasi_identifier",
    "health": {"role": "quasi_identifier", "type": "categorical"},
    "person": "identifier",
    "ill": "sensitive",
}
PEOPLE = """
CREATE TYPE condition AS ENUM ('bad', 'fair', 'good');
CREATE SCHEMA clinic;
CREATE TABLE clinic.people (age smallint, town text, born date, pay numeric(12, 2),
  health condition, person uuid, ill char(4));
INSERT INTO clinic.people
  SELECT 20 + i % 50, (ARRAY['Köln', 'Łódź, PL', 'Ottilie', NULL])[1 + i % 4], date '1960-01-01' + i * 7,
         1000 + i / 8.0, (ARRAY['good', 'bad', 'fair'])[1 + i % 3]::condition, md5(i::text)::uuid,
         CASE WHEN i % 5 = 0 THEN 'yes' ELSE 'no' END
  FROM generate_series(1, 200) AS i;
CREATE TABLE odd (age int, visits int[], papers jsonb, fee money, ill text);
INSERT INTO odd SELECT i, ARRAY[i], '{}', i::money, 'no' FROM generate_series(1, 20) AS i;
CREATE TABLE stamps (age int, seen timestamptz, free numeric, ill text);
INSERT INTO stamps
  SELECT i, timestamptz '2024-01-01 10:00+02' + i * interval '1 day', i + .25, (ARRAY['no', 'yes'])[1 + i % 2]
  FROM generate_series(1, 20) AS i;
GRANT USAGE ON SCHEMA clinic TO reader;
GRANT SELECT ON clinic.people, odd, stamps TO reader;
CREATE TABLE hidden (age int);
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as running:
        running.execute(PEOPLE)
        yield running


@pytest.fixture
def asked(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setenv(VARIABLE, server.address())
    return server


def spec_of(folder: Path, columns: dict[str, Any] = COLUMNS, **source: Any) -> ReleaseSpec:
    said = {"database": "postgresql", "connection": {"env": VARIABLE}, **source}
    write_spec(folder, columns, "people.parquet", target="ill")
    content = yaml.safe_load((folder / "release.yaml").read_text())
    (folder / "release.yaml").write_text(yaml.safe_dump({**content, "source": said}))
    return ReleaseSpec.load(folder)


def refused(engine: DuckDBEngine, spec: ReleaseSpec) -> str:
    with pytest.raises(InputError) as error:
        engine.store_source(spec, spec.folder / "stored.parquet")
    message = str(error.value)
    assert PASSWORD not in message
    assert SECRET not in message
    assert "\n" not in message
    assert not (spec.folder / "stored.parquet").exists()
    return message


@pytest.mark.long
def test_a_table_is_the_same_people_as_the_parquet_file_of_it(
    asked: Server, engine: DuckDBEngine, tmp_path: Path
) -> None:
    facts = engine.store_source(spec_of(tmp_path, table="clinic.people"), tmp_path / "stored.parquet")
    stored = pq.read_table(tmp_path / "stored.parquet")
    assert facts.rows == 200
    assert stored.schema.field("pay").type == pa.decimal128(12, 2)
    assert {one.name: one.storage for one in facts.columns}["born"] == "DATE"
    assert set(stored["ill"].to_pylist()) == {"yes", "no"}, "the blanks that fill up a char are no letters"
    pq.write_table(stored.drop_columns(["#people"]), tmp_path / "people.parquet")
    of_file = write_spec(tmp_path, COLUMNS, "people.parquet", target="ill")
    assert engine.store_source(of_file, tmp_path / "again.parquet").content_hash == facts.content_hash
    for query in (
        "SELECT * FROM clinic.people;",
        "WITH one AS (SELECT * FROM clinic.people) SELECT * FROM one ORDER BY age",
    ):
        spec = spec_of(tmp_path, query=query)
        assert engine.store_source(spec, tmp_path / "again.parquet").content_hash == facts.content_hash


@pytest.mark.long
def test_moments_are_those_of_utc_and_numbers_without_digits_are_numbers(
    asked: Server, engine: DuckDBEngine, tmp_path: Path
) -> None:
    columns = {
        "age": "quasi_identifier",
        "seen": {"role": "quasi_identifier", "type": "date"},
        "free": "quasi_identifier",
    }
    spec = spec_of(tmp_path, {**columns, "ill": "sensitive"}, table="stamps")
    facts = engine.store_source(spec, tmp_path / "stored.parquet")
    stored = pq.read_table(tmp_path / "stored.parquet").sort_by("age")
    assert str(stored["seen"][0].as_py())[:19] == "2024-01-02 08:00:00"
    assert {one.name: one.type.value for one in facts.columns}["free"] == "numeric"


@pytest.mark.long
def test_init_proposes_a_spec_that_runs(asked: Server, engine: DuckDBEngine, tmp_path: Path) -> None:
    source = Source.model_validate(
        {"database": "postgresql", "connection": {"env": VARIABLE}, "table": "clinic.people"}
    )
    made = start_dataset(engine, DatasetRequest("people", tmp_path, source=source), tmp_path / "data")
    text = made.file.read_text(encoding="utf-8")
    assert SECRET not in text
    assert PASSWORD not in text
    proposed = yaml.safe_load(text)
    assert proposed["source"] == {"database": "postgresql", "connection": {"env": VARIABLE}, "table": "clinic.people"}
    assert proposed["columns"]["health"]["levels"] == ["bad", "fair", "good"]


@pytest.mark.long
def test_a_file_with_the_address_is_its_owners_alone(server: Server, engine: DuckDBEngine, tmp_path: Path) -> None:
    spec = spec_of(tmp_path, table="clinic.people", connection={"file": "dsn"})
    assert "source.connection: dsn cannot be read" in refused(engine, spec)
    (tmp_path / "dsn").write_text(server.address() + "\n")
    (tmp_path / "dsn").chmod(0o644)
    assert "can be read by others" in refused(engine, spec)
    (tmp_path / "dsn").chmod(0o600)
    assert engine.store_source(spec, tmp_path / "stored.parquet").rows == 200


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"table": "clinic.nobody"}, "names a table that does not exist"),
        ({"table": "hidden"}, "the user may not read what is asked for"),
        ({"query": "SELECT nobody FROM clinic.people"}, "names a column that does not exist"),
        ({"query": "SELECT 1 / (age - age) AS age FROM clinic.people"}, "the query fails on a row"),
        ({"query": "SELECT town::int AS age FROM clinic.people"}, "the query fails on a row"),
        ({"query": "DELETE FROM clinic.people"}, "source.query: is not one SELECT"),
        ({"query": "SELECT 1; SELECT 2"}, "source.query: is not one SELECT"),
        ({"query": "SELECT pg_read_file('/etc/passwd') AS age"}, "source.query: calls pg_read_file"),
        ({"query": "SELECT * FROM pg_ls_dir('/') AS age"}, "source.query: calls pg_ls_dir"),
        ({"query": "SELECT * FROM dblink('host=x', 'SELECT 1') AS t(age int)"}, "source.query: calls dblink"),
        ({"query": "COPY clinic.people TO '/tmp/x'"}, "source.query: is not one SELECT"),
        ({"query": "SELECT * INTO copy FROM clinic.people"}, "source.query: would write"),
        ({"query": "WITH d AS (DELETE FROM clinic.people RETURNING *) SELECT * FROM d"}, "source.query: would write"),
        ({"query": "SELECT * FROM clinic.people FOR UPDATE"}, "source.query: would write or lock"),
        ({"query": "SELECT age, visits, ill FROM odd"}, "columns.visits: holds values of the type _int4"),
        ({"query": "SELECT age, papers, ill FROM odd"}, "columns.papers: holds values of the type jsonb"),
        ({"query": "SELECT age, fee, ill FROM odd"}, "columns.fee: holds values of the type money"),
        ({"query": 'SELECT age, age AS "AGE" FROM odd'}, "as in source.rename: {AGE: AGE_2}"),
    ],
)
def test_what_cannot_be_read_is_told_in_a_sentence(
    asked: Server, engine: DuckDBEngine, tmp_path: Path, said: dict[str, str], sentence: str
) -> None:
    assert sentence in refused(engine, spec_of(tmp_path, **said))


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        (lambda server: server.address(password="falsch-4711"), "cannot be reached"),
        (lambda server: server.address(database="nobody"), "cannot be reached"),
        (lambda server: f"postgresql://reader:{PASSWORD}@/postgres?host={server.folder}/nowhere", "cannot be reached"),
        (lambda server: f"no address {PASSWORD}", "cannot be reached"),
        (lambda server: "", "the environment variable CLINIC_DSN is not set"),
    ],
)
def test_a_server_that_does_not_answer_is_told_without_its_address(
    server: Server,
    engine: DuckDBEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    address: Callable[[Server], str],
    sentence: str,
) -> None:
    monkeypatch.setenv(VARIABLE, address(server))
    message = refused(engine, spec_of(tmp_path, table="clinic.people"))
    assert sentence in message
    assert "4711" not in message


@pytest.mark.long
def test_a_query_cannot_write_even_where_its_user_might(
    server: Server, engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A view hides what it does from whoever reads the query; the transaction does not let it."""
    monkeypatch.setenv(VARIABLE, server.address("owner"))
    server.execute(
        "CREATE FUNCTION wipe() RETURNS bigint LANGUAGE sql AS 'DELETE FROM clinic.people RETURNING 1::bigint'; "
        "CREATE VIEW trap AS SELECT wipe() AS age"
    )
    assert "would write" in refused(engine, spec_of(tmp_path, table="trap"))
    spec = spec_of(tmp_path, table="clinic.people")
    assert engine.store_source(spec, tmp_path / "stored.parquet").rows == 200


@pytest.mark.long
def test_a_question_tells_the_sensor_of_a_change(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, server.address())
    said = {"database": "postgresql", "connection": {"env": VARIABLE}, "table": "stamps"}
    source = Source.model_validate({**said, "changed": "SELECT max(seen), count(*) FROM stamps"})
    before = changes_of_server(source, tmp_path)
    assert before == changes_of_server(source, tmp_path)
    server.execute("INSERT INTO stamps VALUES (21, now(), 1, 'no')")
    try:
        assert before != changes_of_server(source, tmp_path)
    finally:
        server.execute("DELETE FROM stamps WHERE age = 21")
    assert changes_of_server(Source.model_validate(said), tmp_path) is None


@pytest.mark.long
def test_an_error_of_a_file_is_none_of_the_server(asked: Server) -> None:
    """A full disk of ours is not reported as a server that failed; a stream of rows that broke off is."""
    question = Question(asked.address(), "SELECT 1")
    with pytest.raises(OSError, match="no space left"), postgresql.SERVER.answer(question):
        raise OSError(28, "no space left")
    with pytest.raises(ServerFailure), postgresql.SERVER.answer(question):
        raise OSError("the stream ended")


@pytest.mark.long
def test_a_locked_table_is_not_waited_for_for_ever(
    asked: Server, engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from adbc_driver_postgresql import dbapi

    monkeypatch.setattr(postgresql, "LOCK_SECONDS", 1)
    with dbapi.connect(asked.address("owner")) as other, other.cursor() as cursor:
        cursor.execute("LOCK TABLE clinic.people IN ACCESS EXCLUSIVE MODE")
        assert "somebody else has locked the table" in refused(engine, spec_of(tmp_path, table="clinic.people"))
        other.rollback()


@pytest.mark.long
def test_a_server_that_is_killed_leaves_nothing_and_the_next_run_heals(
    asked: Server, engine: DuckDBEngine, tmp_path: Path
) -> None:
    spec = spec_of(tmp_path, table="clinic.people")
    asked.stop()
    try:
        assert "cannot be reached" in refused(engine, spec)
    finally:
        asked.start()
    assert engine.store_source(spec, tmp_path / "stored.parquet").rows == 200
