"""Which queries are sent to a server as they stand, which are refused, and where its address may be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anon_pipeline.engine.server_queries import address_of, one_select, query_of
from anon_pipeline.errors import InputError, Unavailable
from anon_pipeline.spec import Source
from anon_pipeline.spec.source import Connection


def source_of(database: str, **said: Any) -> Source:
    return Source.model_validate({"database": database, "connection": {"env": "CLINIC_DSN"}, **said})


@pytest.mark.parametrize(
    ("dialect", "query"),
    [
        ("tsql", "SELECT TOP 5 age FROM people ORDER BY age"),
        ("tsql", "SELECT age FROM people ORDER BY age OFFSET 5 ROWS"),
        ("tsql", "SELECT age FROM people ORDER BY age OFFSET 5 ROWS FETCH NEXT 5 ROWS ONLY"),
        ("tsql", "SELECT age FROM people UNION SELECT 1"),
        ("tsql", "SELECT /* of all wards */ age FROM clinic.dbo.people"),
        ("postgres", "WITH a AS (SELECT 1 AS age) SELECT * FROM a ORDER BY age"),
        ("postgres", "SELECT /* of all wards */ lower(town) AS town FROM people ORDER BY 1"),
        ("mysql", "WITH a AS (SELECT 1 AS age) SELECT * FROM a ORDER BY age"),
        ("mysql", "SELECT max(age) AS age FROM people # of all wards"),
    ],
)
def test_a_query_that_reads_is_sent_as_it_stands(dialect: str, query: str) -> None:
    assert one_select("source.query", query, dialect) == query
    assert one_select("source.query", f" {query.split(' #')[0]} ;", dialect) == query.split(" #")[0] + " "


@pytest.mark.parametrize(
    ("dialect", "query", "sentence"),
    [
        ("postgres", "", "is not one SELECT"),
        ("postgres", "SELECT (", "is not one SELECT"),
        ("postgres", "SELECT 1; SELECT 2", "is not one SELECT"),
        ("postgres", "DELETE FROM people", "is not one SELECT"),
        ("tsql", "SELECT p.age FROM people AS p JOIN other.clinic.dbo.people AS q ON p.age = q.age", "another server"),
        ("tsql", "SELECT age FROM (SELECT TOP 5 age FROM people) AS p ORDER BY age", "ends with ORDER BY"),
        ("mysql", "SELECT @x := age FROM people", "would write or lock"),
        ("mysql", "SELECT 1 /* x */ AS age", "has a comment in"),
    ],
)
def test_what_does_more_than_read_is_refused(dialect: str, query: str, sentence: str) -> None:
    with pytest.raises(InputError, match=r"^source\.query: ") as told:
        one_select("source.query", query, dialect)
    assert sentence in str(told.value)


@pytest.mark.parametrize(
    ("table", "query"),
    [
        ("people", "SELECT * FROM [people]"),
        ("dbo.people", "SELECT * FROM [dbo].[people]"),
        ("clinic.dbo.people", "SELECT * FROM [clinic].[dbo].[people]"),
        ("other.clinic.dbo.people", None),
        ("clinic..people", None),
        (".people", None),
    ],
)
def test_a_table_has_at_most_a_database_and_a_schema(table: str, query: str | None) -> None:
    source = source_of("sqlserver", table=table)
    if query is None:
        with pytest.raises(InputError, match=r"^source\.table: names a table, or schema\.table"):
            query_of(source, "tsql")
    else:
        assert query_of(source, "tsql") == query


def test_an_address_is_in_the_environment_or_in_a_file_of_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=r"^source\.connection: is missing"):
        address_of(None, tmp_path)
    by_name, by_file = Connection(env="CLINIC_DSN"), Connection(file="dsn")
    monkeypatch.setenv("CLINIC_DSN", "mysql://a")
    assert address_of(by_name, tmp_path) == "mysql://a"
    monkeypatch.setenv("CLINIC_DSN", "")
    with pytest.raises(Unavailable, match=r"^target\.connection: the environment variable CLINIC_DSN is not set"):
        address_of(by_name, tmp_path, "target.connection")
    with pytest.raises(Unavailable, match=r"^source\.connection: dsn cannot be read"):
        address_of(by_file, tmp_path)
    file = tmp_path / "dsn"
    file.write_text(" mysql://b\n")
    for mode in (0o600, 0o400, 0o700, 0o601, 0o602, 0o604, 0o610, 0o620, 0o640):
        file.chmod(mode)
        if mode & 0o077:
            with pytest.raises(InputError, match=r"^source\.connection: dsn can be read by others"):
                address_of(by_file, tmp_path)
        else:
            assert address_of(by_file, tmp_path) == "mysql://b"
