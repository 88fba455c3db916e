"""What may not be asked is refused in a sentence, before anything is read or spent."""

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon_pipeline.differential_privacy import queries
from anon_pipeline.differential_privacy.queries import Share
from anon_pipeline.differential_privacy.statement import Compare, Statement, parse
from anon_pipeline.errors import InputError
from anon_pipeline.home import Home
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.differential_privacy.tables import PERSON, spec_of

ASK = "SELECT COUNT(*) FROM people"
HOSTILE = [
    "",
    ";",
    "SELECT",
    "not sql at all (((",
    "SELECT * FROM people",
    "SELECT age FROM people",
    "SELECT age FROM people GROUP BY age",
    "SELECT age, city, COUNT(*) FROM people GROUP BY city",
    "SELECT 1",
    "SELECT COUNT(*)",
    "FROM people",
    f"{ASK}; {ASK}",
    f"{ASK}; DROP TABLE people",
    "DROP TABLE people",
    "COPY people TO 'stolen.csv'",
    "ATTACH 'other.db'",
    "INSTALL httpfs",
    "PRAGMA database_list",
    "SET memory_limit='1TB'",
    "EXPLAIN SELECT COUNT(*) FROM people",
    "CREATE TABLE t AS SELECT COUNT(*) FROM people",
    "INSERT INTO people VALUES (1)",
    "SELECT COUNT(*) FROM read_csv('people.csv')",
    "SELECT COUNT(*) FROM read_parquet('/etc/*')",
    "SELECT COUNT(*) FROM 'people.csv'",
    "SELECT COUNT(*) FROM glob('*')",
    "SELECT COUNT(*) FROM duckdb_settings()",
    "SELECT COUNT(*) FROM information_schema.tables",
    "SELECT COUNT(*) FROM main.people",
    "SELECT COUNT(*) FROM people, people AS other",
    "SELECT COUNT(*) FROM people JOIN people AS other USING (city)",
    "SELECT COUNT(*) FROM (SELECT * FROM people)",
    "SELECT COUNT(*) FROM people AS p",
    "SELECT COUNT(*) FROM people TABLESAMPLE 1 ROWS",
    "SELECT COUNT(*) FROM range(1000000000)",
    "WITH people AS (SELECT 1) SELECT COUNT(*) FROM people",
    f"{ASK} UNION ALL {ASK}",
    f"{ASK} LIMIT 1",
    f"{ASK} ORDER BY 1",
    f"{ASK} OFFSET 1",
    "SELECT city, COUNT(*) FROM people GROUP BY city HAVING COUNT(*) = 1",
    "SELECT city, COUNT(*) FROM people GROUP BY city QUALIFY row_number() OVER () = 1",
    "SELECT city, COUNT(*) FROM people GROUP BY ALL",
    "SELECT city, COUNT(*) FROM people GROUP BY 1",
    "SELECT city, COUNT(*) FROM people GROUP BY ROLLUP (city)",
    "SELECT city, COUNT(*) FROM people GROUP BY GROUPING SETS ((city), ())",
    "SELECT city, COUNT(*) FROM people GROUP BY city, city",
    "SELECT upper(city), COUNT(*) FROM people GROUP BY upper(city)",
    "SELECT DISTINCT COUNT(*) FROM people",
    "SELECT COUNT(DISTINCT city) FROM people",
    "SELECT COUNT(DISTINCT patient) FROM people",
    "SELECT COUNT(patient) FROM people",
    "SELECT COUNT(ill) FROM people",
    "SELECT COUNT(nobody) FROM people",
    "SELECT COUNT(*) FILTER (WHERE age > 1) FROM people",
    "SELECT COUNT(*) OVER () FROM people",
    "SELECT COUNT(* EXCLUDE (age)) FROM people",
    "SELECT COUNT(*) AS n, COUNT(age) AS n FROM people",
    "SELECT SUM(CAST(city AS INTEGER)) FROM people",
    "SELECT SUM(age::DOUBLE) FROM people",
    "SELECT SUM(age + 1) FROM people",
    "SELECT SUM(1 / age) FROM people",
    "SELECT SUM(age) / COUNT(*) FROM people",
    "SELECT SUM(DISTINCT age) FROM people",
    "SELECT SUM(city) FROM people",
    "SELECT AVG(visits) FROM people",
    "SELECT MAX(age) FROM people",
    "SELECT MIN(age) FROM people",
    "SELECT LIST(age) FROM people",
    "SELECT STRING_AGG(city, ',') FROM people",
    "SELECT STDDEV(age) FROM people",
    "SELECT ARG_MAX(city, age) FROM people",
    "SELECT error('x') FROM people",
    "SELECT QUANTILE_CONT(age, 0) FROM people",
    "SELECT QUANTILE_CONT(age, 1) FROM people",
    "SELECT QUANTILE_CONT(age, [0.1, 0.9]) FROM people",
    "SELECT QUANTILE_CONT(age, age) FROM people",
    "SELECT (SELECT COUNT(*) FROM people) FROM people",
    "SELECT CASE WHEN age = 1 THEN error('x') END, COUNT(*) FROM people",
    f"{ASK} WHERE age",
    f"{ASK} WHERE TRUE",
    f"{ASK} WHERE 1 = 1",
    f"{ASK} WHERE age = city",
    f"{ASK} WHERE age = (SELECT MAX(age) FROM people)",
    f"{ASK} WHERE age IN (SELECT age FROM people)",
    f"{ASK} WHERE EXISTS (SELECT 1)",
    f"{ASK} WHERE CAST(city AS INTEGER) = 1",
    f"{ASK} WHERE 1 / age > 0",
    f"{ASK} WHERE age / 0 > 0",
    f"{ASK} WHERE age % 2 = 0",
    f"{ASK} WHERE abs(age) = 1",
    f"{ASK} WHERE sqrt(age) > 1",
    f"{ASK} WHERE random() < 0.5",
    f"{ASK} WHERE city LIKE 'A%'",
    f"{ASK} WHERE regexp_matches(city, '(a+)+$')",
    f"{ASK} WHERE city || 'x' = 'Corkx'",
    f"{ASK} WHERE city = 1",
    f"{ASK} WHERE city > 'Bergen'",
    f"{ASK} WHERE city BETWEEN 'A' AND 'C'",
    f"{ASK} WHERE city = 'Nowhere'",
    f"{ASK} WHERE age = 'x'",
    f"{ASK} WHERE age = 1e999",
    f"{ASK} WHERE age = NULL",
    f"{ASK} WHERE age IS TRUE",
    f"{ASK} WHERE age = ?",
    f"{ASK} WHERE age = $1",
    f"{ASK} WHERE people.age = 1",
    f"{ASK} WHERE rowid = 1",
    f"{ASK} WHERE patient = 'a'",
    f"{ASK} WHERE ill = 'yes'",
    f'{ASK} WHERE "#people" = 1',
    f"{ASK} WHERE sleep(10)",
    f"{ASK} WHERE age = 1 -- \x00",
    f"{ASK} WHERE {'(' * 100}age = 1{')' * 100}",
    f"{ASK} WHERE {'NOT ' * 2_000}age = 1",
    f"{ASK} WHERE " + " AND ".join(["age = 1"] * 1_000),
    f"{ASK} WHERE age IN ({', '.join(['1'] * 10_000)})",
    "(" * 5_000,
    "SELECT " * 1_000,
    "[" * 50 + "{" * 50,
    ASK + " " * 10_000_000,
    "x" * 10_000_000,
    f"{ASK} WHERE street = '{'y' * 10_000_000}'",
]


@pytest.mark.parametrize("sql", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_sql_is_refused_in_a_sentence(sql: str) -> None:
    spec = spec_of("row")
    assert spec.differential_privacy is not None
    with pytest.raises(InputError) as refused:
        parse(sql, spec, spec.differential_privacy)
    assert str(refused.value).startswith("query: ")
    assert len(str(refused.value)) < 400
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(age + 1) FROM people",
        "SELECT SUM(-age) FROM people",
        "SELECT AVG(ABS(age)) FROM people",
        "SELECT SUM(3) FROM people",
        f"{ASK} WHERE age + 1 > 3",
        f"{ASK} WHERE 3 > 2",
        f"{ASK} WHERE LOWER(city) = 'Cork'",
        f"{ASK} WHERE age + 1 IS NULL",
        "SELECT COUNT(*) FROM people GROUP BY LOWER(city)",
    ],
)
def test_where_a_column_stands_nothing_else_may_stand(sql: str) -> None:
    spec = spec_of("row")
    assert spec.differential_privacy is not None
    with pytest.raises(InputError, match="not allowed where a column stands"):
        parse(sql, spec, spec.differential_privacy)


def test_figures_without_a_name_are_called_by_what_they_are() -> None:
    spec = spec_of("row")
    assert spec.differential_privacy is not None
    for item, name in (
        ("COUNT(*)", "count"), ("COUNT(age)", "count_age"), ("SUM(age)", "sum_age"), ("AVG(age)", "avg_age"),
        ("MEDIAN(age)", "median_age"), ("QUANTILE_CONT(age, 0.5)", "median_age"),
        ("QUANTILE_CONT(age, 0.25)", "quantile_0.25_age"), ("QUANTILE_CONT(age, 0.25) AS low", "low"),
    ):  # fmt: skip
        found = parse(f"SELECT {item} FROM people", spec, spec.differential_privacy)
        assert [each.name for each in found.items] == [name]


def test_texts_have_no_order() -> None:
    spec = spec_of("row")
    assert spec.differential_privacy is not None
    for condition in ("city BETWEEN 'Aberdeen' AND 'Cork'", "city < 'Cork'"):
        with pytest.raises(InputError, match="city has texts, which have no order"):
            parse(f"{ASK} WHERE {condition}", spec, spec.differential_privacy)


@pytest.mark.parametrize("number", [-0.25, 0.0, 0.75])
def test_a_column_is_compared_with_the_number_that_stands_there(number: float) -> None:
    spec = spec_of("row")
    assert spec.differential_privacy is not None
    asked = parse(f"{ASK} WHERE weight > {number}", spec, spec.differential_privacy)
    assert asked.where == Compare("weight", ">", number)


def test_brackets_are_counted_as_deep_as_they_stand() -> None:
    spec = spec_of("row")
    assert spec.differential_privacy is not None
    with pytest.raises(InputError, match="brackets stand more than 60 deep"):
        parse(f"{ASK} WHERE {'(' * 61}age = 1{')' * 61}", spec, spec.differential_privacy)
    flat = " OR ".join(["(age = 1)"] * 61)
    assert parse(f"{ASK} WHERE {flat}", spec, spec.differential_privacy).where is not None


def test_there_are_enough_of_them() -> None:
    """The threat model says how many."""
    assert len(set(HOSTILE)) > 100


class Forbidden:
    """An engine that must not be asked."""

    def aggregated(self, spec: ReleaseSpec, query: object) -> None:
        raise AssertionError("people were read")


@pytest.mark.parametrize("sql", ["", " ", ";", "-- nothing"])
def test_an_empty_question_is_told(sql: str) -> None:
    """It was refused as more than one statement."""
    spec = spec_of("row")
    assert spec.differential_privacy is not None
    with pytest.raises(InputError, match=r"^query: is empty; a question is SELECT"):
        parse(sql, spec, spec.differential_privacy)


def test_a_refused_question_spends_and_reads_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path / "var").prepare()
    for sql in HOSTILE:
        with pytest.raises(InputError):
            queries.ask(spec_of("row"), home, Forbidden(), sql, Share(rho=0.01))  # type: ignore[arg-type]
    assert not (home.private / "budgets").exists()


@pytest.mark.long
@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    read = (InputError, Statement)
    spec = spec_of("row")
    assert spec.differential_privacy is not None
    for sql in (text, f"{ASK} WHERE {text}", f"SELECT {text} FROM people"):
        try:
            found: object = parse(sql, spec, spec.differential_privacy)
        except InputError as error:
            found = error
        assert isinstance(found, read)


@pytest.mark.parametrize(
    "sql",
    [
        ASK,
        "select count(*) from PEOPLE where AGE between -1 and 3.5",
        "SELECT city, COUNT(*) AS n, AVG(age) FROM people WHERE NOT (city IN ('Cork') OR age IS NULL) GROUP BY city",
        "SELECT street, COUNT(*) FROM people GROUP BY street",
        "SELECT visits, MEDIAN(age), QUANTILE_DISC(weight, 0.25) FROM people WHERE weight >= 0 GROUP BY visits",
        "SELECT COUNT(city) FROM people WHERE street <> 'High; DROP TABLE people' /* why not */",
    ],
)
def test_what_may_be_asked(sql: str) -> None:
    spec = spec_of("row")
    assert spec.differential_privacy is not None
    assert parse(sql, spec, spec.differential_privacy).statistics


def test_people_are_counted_where_they_are_the_unit() -> None:
    spec = spec_of(PERSON)
    assert spec.differential_privacy is not None
    found = parse("SELECT COUNT(DISTINCT patient) FROM people", spec, spec.differential_privacy)
    assert [one.kind for one in found.statistics] == ["people"]


def test_unlisted_groups_need_delta() -> None:
    spec = spec_of("row", thresholds=0)
    assert spec.differential_privacy is not None
    with pytest.raises(InputError, match="nobody listed"):
        parse("SELECT street, COUNT(*) FROM people GROUP BY street", spec, spec.differential_privacy)


def test_a_quote_in_a_text_stays_a_text() -> None:
    """The reader's own SQL: a text from the question reaches the database as a literal and nothing else."""
    from anon_pipeline.engine.sql import literal

    text = "x'; DROP TABLE people; --"
    (back,) = sqlite3.connect(":memory:").execute(f"SELECT {literal(text)}").fetchone()
    assert back == text
