"""A spec from somebody else names columns of its file, and does nothing else on the machine.

The attacker writes the dataset folder: the spec, the table or database, and files beside it. The owner runs it with
`anon-pipeline run`. What the attacker wants is code run, a file written, or a file of the owner's in the release.
"""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
import yaml

from anon_pipeline_tests.end_to_end.harness import Ended, Place, people, policy, write_dataset

#: Stands in a file of the owner's that no spec may read.
SECRET = "the-owners-own-words"
ROWS = "SELECT age, city, sex, ill, visits"


@pytest.fixture
def owned(folder: Path) -> Path:
    """A file of the owner's that is none of the dataset's; nothing may be written beside it."""
    place = folder / "owned"
    place.mkdir()
    (place / "diary.txt").write_text(SECRET)
    return place


def ask_duckdb(dataset: Path, query: str, owned: Path) -> None:
    write_dataset(dataset, spec=policy() | {"source": {"path": "people.duckdb", "query": query}})
    with closing(duckdb.connect(dataset / "people.duckdb")) as database:
        database.execute(f"CREATE TABLE people AS FROM read_csv('{dataset}/people.csv')")
        reading = f"read_text('{owned}/diary.txt')"
        database.execute(f"CREATE VIEW seen AS {ROWS.replace('city', 'content AS city')} FROM people, {reading}")


def ask_sqlite(dataset: Path, query: str, _: Path) -> None:
    write_dataset(dataset, spec=policy() | {"source": {"path": "people.sqlite", "query": query}})
    with closing(sqlite3.connect(dataset / "people.sqlite")) as database:
        people().to_sql("people", database, index=False)


def assert_nothing_happened(place: Place, ended: Ended, owned: Path, before: set[Path]) -> None:
    assert ended.exit_code == 2, ended.said
    assert SECRET not in ended.said
    assert place.releases() == {}
    assert set(owned.iterdir()) == before


@pytest.mark.parametrize(
    ("ask", "query"),
    [
        (ask_duckdb, f"{ROWS} FROM people); COPY (SELECT 1) TO '{{owned}}/new.csv'; DESCRIBE ({ROWS} FROM people"),
        (ask_duckdb, ROWS.replace("city", "content AS city") + " FROM people, read_text('{owned}/diary.txt')"),
        (ask_duckdb, f"{ROWS} FROM seen"),
        (ask_sqlite, "VACUUM INTO '{owned}/new.sqlite'"),
    ],
)
def test_a_query_reads_the_named_database_alone(
    fresh: Place, owned: Path, ask: Callable[[Path, str, Path], None], query: str
) -> None:
    ask(fresh.dataset, query.format(owned=owned), owned)
    before = set(owned.iterdir())
    assert_nothing_happened(fresh, fresh.run(), owned, before)


#: Unpickled, it writes a file.
PICKLE = b"cposix\nsystem\n(S'touch %b/new.txt'\ntR."


def test_a_model_that_lies_in_a_folder_is_not_unpickled(fresh: Place, owned: Path) -> None:
    spec = policy() | {"guide": {"model": {"mlflow": str(fresh.dataset / "model")}, "folds": 2}}
    write_dataset(fresh.dataset, spec=spec)
    (fresh.dataset / "model").mkdir()
    flavors = {"sklearn": {"pickled_model": "model.pkl", "serialization_format": "pickle", "sklearn_version": "1.9.0"}}
    (fresh.dataset / "model/MLmodel").write_text(yaml.safe_dump({"flavors": flavors}))
    (fresh.dataset / "model/model.pkl").write_bytes(PICKLE % str(owned).encode())
    before = set(owned.iterdir())
    ended = fresh.run()
    assert_nothing_happened(fresh, ended, owned, before)
    assert "is no model of the home's MLflow store" in ended.sentence


def test_code_runs_only_where_the_person_who_runs_it_says_so(fresh: Place, owned: Path) -> None:
    write_dataset(fresh.dataset, spec=policy() | {"guide": {"model": {"import": "theirs:make"}, "folds": 2}})
    (fresh.dataset / "theirs.py").write_text(f"open({str(owned / 'new.txt')!r}, 'w')\nmake = list\n")
    before = set(owned.iterdir())
    ended = fresh.run(path=fresh.dataset)
    assert_nothing_happened(fresh, ended, owned, before)
    assert "--allow-code" in ended.sentence
    allowed = fresh.run("--allow-code", path=fresh.dataset)
    assert (owned / "new.txt").exists()
    assert "gives a list, not a scikit-learn estimator" in allowed.sentence


def test_no_spec_names_what_lies_in_the_private_zone(published: Place) -> None:
    """The raw people of another dataset lie there."""
    (raw,) = (published.home.private / "people/raw_data").glob("*/data.parquet")
    stranger = write_dataset(published.dataset.parent / "stranger", spec=policy("stranger"))
    (stranger / "link.parquet").symlink_to(raw)
    (stranger / "parts").mkdir()
    (stranger / "parts/link.parquet").symlink_to(raw)
    place = Place(published.home, stranger)
    for path in (str(raw), "link.parquet", "parts", str(published.home.root)):
        (stranger / "release.yaml").write_text(yaml.safe_dump(policy("stranger") | {"source": {"path": path}}))
        ended = place.run()
        assert ended.exit_code == 2, ended.said
        assert "leads into the private zone" in ended.sentence
    assert not (published.home.releases / "stranger").exists()


def test_a_hierarchy_whose_words_are_published_lies_with_the_spec(fresh: Place, owned: Path) -> None:
    """Else `/etc/shadow` is one: the stranger's table holds user names, and the release what stands beside them."""
    (owned / "shadow").write_text("".join(f"{city}:{SECRET}\n" for city in ("Aberdeen", "Bergen", "Cork", "Delft")))
    before = set(owned.iterdir())
    step = {"technique": "hierarchy", "file": str(owned / "shadow"), "delimiter": ":"}
    for said in ({"hierarchy": {"file": str(owned / "shadow"), "delimiter": ":"}}, {"steps": [step]}):
        spec = policy()
        spec["columns"]["city"] |= said
        write_dataset(fresh.dataset, spec=spec)
        ended = fresh.run()
        assert_nothing_happened(fresh, ended, owned, before)
        assert "ANON_PIPELINE_ALLOW_FILES" in ended.sentence


def test_a_table_of_ones_own_may_lie_anywhere_unless_a_service_says_where(
    fresh: Place, owned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from anon_pipeline.errors import InputError
    from anon_pipeline.spec import ReleaseSpec
    from anon_pipeline.spec.permission import ALLOW_FILES

    write_dataset(fresh.dataset, spec=policy() | {"source": {"path": str(owned / "people.csv")}})
    shutil.move(fresh.dataset / "people.csv", owned)
    assert ReleaseSpec.load(fresh.dataset).source_path == (owned / "people.csv").resolve()
    monkeypatch.setenv(ALLOW_FILES, "")
    with pytest.raises(InputError, match=r"people\.csv: lies neither with the spec"):
        ReleaseSpec.load(fresh.dataset)
    monkeypatch.setenv(ALLOW_FILES, str(owned))
    assert ReleaseSpec.load(fresh.dataset).source_path.exists()
