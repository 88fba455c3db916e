"""How the content of a PostgreSQL server is known again, by the sensor and by the run that reads it."""

from pathlib import Path

import pytest

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import Unavailable
from anon_pipeline.home import Home
from anon_pipeline.pipeline.source_content import content_of, content_of_rows, stamp_of
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.end_to_end.harness import policy, write_dataset
from anon_pipeline_tests.postgresql import running_server

VARIABLE = "CLINIC_DSN"
PEOPLE = """
CREATE TABLE people (age int, city text, sex text, ill text, visits int);
INSERT INTO people
  SELECT 20 + i % 50, 'Cork', 'f', (ARRAY['no', 'yes'])[1 + i % 2], i % 5 FROM generate_series(1, 60) AS i;
GRANT SELECT ON people TO reader;
"""


@pytest.mark.long
def test_a_server_is_known_again_by_its_rows_or_by_the_answer_to_its_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, engine = Home(tmp_path / "home").prepare(), DuckDBEngine(tmp_path / "spill")

    def spec(name: str, **more: str) -> ReleaseSpec:
        source = {"database": "postgresql", "connection": {"env": VARIABLE}, "table": "people", **more}
        return ReleaseSpec.load(write_dataset(tmp_path / name, spec=policy() | {"source": source}))

    in_full, asked = spec("in_full"), spec("asked", changed="SELECT count(*) FROM people")
    with running_server() as server:
        server.execute(PEOPLE)
        monkeypatch.setenv(VARIABLE, server.address())
        before = content_of(in_full, home, engine)
        # What a run reads is the same content, and the order of rows on the server is none.
        read = engine.store_source(in_full, tmp_path / "read.parquet")
        assert content_of_rows(in_full, home, read.content_hash) == before
        server.execute("CREATE TABLE other AS SELECT * FROM people ORDER BY visits; TRUNCATE people;")
        server.execute("INSERT INTO people SELECT * FROM other")
        assert content_of(in_full, home, engine) == before
        answered = content_of(asked, home, engine)
        server.execute("UPDATE people SET ill = 'yes' WHERE visits = 3")
        assert content_of(in_full, home, engine) != before
        assert content_of(asked, home, engine) == answered
        server.execute("DELETE FROM people WHERE visits = 3")
        assert content_of(asked, home, engine) != answered
        assert stamp_of(asked, home) is None
        assert list((home.private / "scratch").glob("*/people.parquet")) == []
        server.stop()
        for unreachable in (in_full, asked):  # the next look may find it there
            with pytest.raises(Unavailable, match="cannot be reached"):
                content_of(unreachable, home, engine)
        server.start()
