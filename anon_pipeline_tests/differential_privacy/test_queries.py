"""A question from its text to its answer, over files as they are, on the command line and by the library."""

import copy
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from anon_pipeline.differential_privacy import queries, reading
from anon_pipeline.differential_privacy.budget import Allowance, Budget
from anon_pipeline.differential_privacy.queries import Share
from anon_pipeline.differential_privacy.synthesis.made_table import measure_people
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError, Refused
from anon_pipeline.home import Home
from anon_pipeline.keys import private_key
from anon_pipeline.profiling.new_dataset import DatasetRequest, start_dataset
from anon_pipeline.spec import ReleaseSpec
from anon_pipeline_tests.differential_privacy import synthetic_people
from anon_pipeline_tests.differential_privacy.tables import PERSON, counting, plan_of, policy, write_dataset
from anon_pipeline_tests.end_to_end.harness import command

BY_CITY = "SELECT city, COUNT(*), AVG(age) FROM people GROUP BY city"
MUCH = Share(rho=0.4)


def people(n: int = 400) -> pd.DataFrame:
    random = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "patient": [f"p{number}" for number in random.integers(0, n // 3, n)],
            "ill": random.choice(["yes", "no"], n),
            "age": random.choice(["1", "4", "9", "12", "old", "?"], n),
            "weight": random.choice(["-0.5", "0.25", "1", "1e400", ""], n),
            "visits": random.integers(0, 9, n).astype(str),
            "city": random.choice(["Aberdeen", "Bergen", "Cork", "Delft"], n),
            "street": random.choice(["High", "Low", "Secret Lane"], n, p=[0.6, 0.395, 0.005]),
        }
    )


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "var").prepare()


@pytest.fixture
def engine(tmp_path: Path) -> DuckDBEngine:
    return DuckDBEngine(tmp_path / "scratch", threads=1)


def dataset(folder: Path, unit: Any = "row", **budget: Any) -> ReleaseSpec:
    write_dataset(folder, people(), policy(unit, **budget))
    return ReleaseSpec.load(folder)


def test_an_answer_is_near_the_truth_and_free_the_second_time(tmp_path: Path, home: Home, engine: DuckDBEngine) -> None:
    spec = dataset(tmp_path / "people")
    answer = queries.ask(spec, home, engine, BY_CITY, MUCH)
    truth = people()["city"].value_counts()
    for row in answer.content["rows"][:3]:
        assert abs(row["count"]["value"] - truth[row["city"]]) < 30
        assert row["count"]["low"] < row["count"]["value"] < row["count"]["high"]
        assert 0 <= row["avg_age"]["low"] <= row["avg_age"]["value"] <= row["avg_age"]["high"] <= 9
    again = queries.ask(spec, home, engine, BY_CITY.lower().replace("people", "PEOPLE"), MUCH)
    assert again.content == answer.content
    assert (answer.new, again.new) == (True, False)
    assert again.state.spent.nano_rho == 400_000_000


@pytest.mark.long
def test_another_cost_or_source_is_a_new_question(tmp_path: Path, home: Home, engine: DuckDBEngine) -> None:
    spec = dataset(tmp_path / "people", rho=10)
    first = queries.ask(spec, home, engine, BY_CITY, MUCH)
    assert queries.ask(spec, home, engine, BY_CITY, Share(rho=0.41)).new
    people().iloc[1:].to_csv(tmp_path / "people" / "people.csv", index=False)
    changed = queries.ask(spec, home, engine, BY_CITY, MUCH)
    assert changed.new
    assert changed.content["rows"] != first.content["rows"]


def test_an_exhausted_budget_refuses_and_says_what_is_left(tmp_path: Path, home: Home, engine: DuckDBEngine) -> None:
    spec = dataset(tmp_path / "people")
    queries.ask(spec, home, engine, BY_CITY, Share(rho=0.9))
    with pytest.raises(Refused, match=r"0\.1 is left"):
        queries.ask(spec, home, engine, BY_CITY, Share(rho=0.2))


def test_a_preview_reads_and_spends_nothing(tmp_path: Path) -> None:
    spec = dataset(tmp_path / "people")
    (tmp_path / "people" / "people.csv").unlink()
    seen = queries.preview(spec, BY_CITY, MUCH)
    assert seen["half_widths"]["count"]["value"] > 0
    assert "rows" not in seen


def test_unlisted_groups_are_shown_where_there_are_many(tmp_path: Path, home: Home, engine: DuckDBEngine) -> None:
    spec = dataset(tmp_path / "people")
    answer = queries.ask(spec, home, engine, "SELECT street, COUNT(*) FROM people GROUP BY street", Share(rho=0.05))
    assert [row["street"] for row in answer.content["rows"]] == ["High", "Low"]
    assert "Secret" not in json.dumps(answer.to_json())


@pytest.mark.parametrize("unit", ["row", PERSON], ids=["row", "person"])
def test_texts_that_nobody_listed_can_be_counted(tmp_path: Path, home: Home, engine: DuckDBEngine, unit: Any) -> None:
    """Such a question once failed after it was paid for: the texts were added up."""
    spec = dataset(tmp_path / "people", unit, rho=10)
    asked = "SELECT COUNT(street), COUNT(age) FROM people WHERE age IS NOT NULL"
    (row,) = queries.ask(spec, home, engine, asked, MUCH).content["rows"]
    assert abs(row["count_street"]["value"] - row["count_age"]["value"]) < 60
    assert row["count_street"]["value"] > 100


def test_what_leaves_says_nothing_exact(tmp_path: Path, home: Home, engine: DuckDBEngine) -> None:
    """No size, no hash of the source, no key, nobody's value."""
    spec = dataset(tmp_path / "people", PERSON)
    text = json.dumps(queries.ask(spec, home, engine, BY_CITY, MUCH).to_json())
    ledger = next((home.private / "budgets").rglob("ledger.jsonl")).read_text()
    for told in (text, ledger):
        for secret in ("sha256 of the source", "400", "Delft", "p12", "12.0"):
            assert f'"{secret}"' not in told
        assert reading.sha256_of(spec.source_path) not in told
    assert set(json.loads(text)) == {
        *("dataset", "query", "columns", "rows", "neighbours", "mechanisms", "half_widths", "notes", "cost"),
        *("new", "budget"),
    }


def test_a_source_that_lacks_a_column_costs_nothing(tmp_path: Path, home: Home, engine: DuckDBEngine) -> None:
    spec = dataset(tmp_path / "people")
    people().drop(columns="city").to_csv(tmp_path / "people" / "people.csv", index=False)
    with pytest.raises(InputError, match="lacks city"):
        queries.ask(spec, home, engine, BY_CITY, MUCH)
    assert not (home.private / "budgets" / "patients" / "ledger.jsonl").exists()


@pytest.mark.long
@pytest.mark.parametrize(("copies", "paid"), [(1, False), (100, True)])
def test_a_line_that_breaks_is_not_told_and_may_be_paid(
    tmp_path: Path, home: Home, engine: DuckDBEngine, copies: int, paid: bool
) -> None:
    """Whether a file can be read to its end hangs on what is in it, and so does whether a question fails.

    Only lines that are looked at to find out how the file is written cost nothing; no line is named in either case.
    """
    spec = dataset(tmp_path / "people")
    pd.concat([people()] * copies).to_csv(tmp_path / "people" / "people.csv", index=False)
    with (tmp_path / "people" / "people.csv").open("a") as file:
        file.write('"never closed\n' * 3)
    with pytest.raises(InputError, match="stays spent" if paid else "cannot be read") as told:
        queries.ask(spec, home, engine, BY_CITY, MUCH)
    assert not any(letter.isdigit() for letter in str(told.value))
    ledger = home.private / "budgets" / "patients" / "ledger.jsonl"
    assert paid == (ledger.exists() and '"action": "reserve"' in ledger.read_text())


@pytest.mark.parametrize("release", ["answer", "synthetic"])
def test_a_file_with_a_stray_quote_is_told_without_a_line_and_paid(
    release: str, tmp_path: Path, home: Home, engine: DuckDBEngine
) -> None:
    of_answer = release == "answer"
    spec = dataset(tmp_path) if of_answer else synthetic_people.write(tmp_path, source={"path": "people.csv"})
    frame = people() if of_answer else synthetic_people.people(60).to_pandas()
    header, *rows = frame.to_csv(index=False).splitlines()
    spec.source_path.write_text("\n".join([f"{header},note", *(f'{row},5"' for row in rows)]))

    def ask() -> object:
        if of_answer:
            return queries.ask(spec, home, engine, BY_CITY, MUCH)
        return measure_people(engine, spec, home, private_key(spec, home))

    with pytest.raises(InputError, match=r"a quote within a field .* stays spent") as told:
        ask()
    assert not any(letter.isdigit() for letter in str(told.value))
    state = Budget(home, Allowance.of(reading.asked_of(spec))).state()
    assert (state.reserved, state.answered) == (1, 0)


def test_a_file_of_questions_is_read_before_anything_is_asked(tmp_path: Path) -> None:
    content = policy("row")
    content["differential_privacy"]["queries"] = "queries.yaml"
    folder = write_dataset(tmp_path / "people", people(), content)
    file = folder / "queries.yaml"
    one = {"name": "cities", "sql": BY_CITY, "rho": 0.1}
    file.write_text(yaml.safe_dump([one]))
    assert [query.name for query in queries.read_queries(ReleaseSpec.load(folder))] == ["cities"]
    for wrong, said in (
        ([], "is a list"),
        ({"a": 1}, "is a list"),
        ([{**one, "name": "Cities"}], "question 1: name"),
        ([{**one, "limit": 3}], "not a key"),
        ([{**one, "rho": None}], "may cost"),
        ([one, {**one, "sql": "SELECT * FROM people"}], "question 2: query"),
        ([one, one], "one name"),
    ):
        file.write_text(yaml.safe_dump(wrong))
        with pytest.raises(InputError, match=said):
            queries.read_queries(ReleaseSpec.load(folder))
    file.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        queries.read_queries(ReleaseSpec.load(folder))


def test_where_no_file_of_questions_is_named_it_is_asked_for(tmp_path: Path) -> None:
    """`statistics` only said what the key does, not that it is missing."""
    folder = write_dataset(tmp_path / "people", people(), policy("row"))
    with pytest.raises(InputError, match=r"^differential_privacy\.queries: is missing; name a file of questions"):
        queries.read_queries(ReleaseSpec.load(folder))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"unit": {"person": "ill", "groups": 1, "rows": 1}}, "identifier"),
        ({"unit": {"person": "patient"}}, "groups: is missing"),
        ({"budget": {"subject": "patients", "delta": 1e-6}}, "epsilon or rho"),
        ({"budget": {"subject": "patients", "delta": 1e-6, "rho": 1, "epsilon": 1}}, "epsilon or rho"),
        ({"budget": {"subject": "A/../b", "delta": 1e-6, "rho": 1}}, "subject"),
        ({"budget": {"subject": "patients", "delta": 0.1, "rho": 1}}, "delta"),
        ({"budget": {"subject": "patients", "delta": 1e-6, "rho": 1, "thresholds": 1e-6}}, "thresholds"),
        ({"size": {"public": 400}}, "why: is missing"),
        ({"domains": {}}, "domains"),
        ({"domains": {"age": {"range": [0, 9], "step": 1}}}, "why: is missing"),
        ({"domains": {"age": {"range": [0, 9], "why": "x"}}}, "range and step"),
        ({"domains": {"age": {"range": [9, 0], "step": 1, "why": "x"}}}, "smaller"),
        ({"domains": {"age": {"range": [0, 1], "step": 0.3, "why": "x"}}}, "does not divide"),
        ({"domains": {"age": {"range": [0, 1e12], "step": 1, "why": "x"}}}, "too small"),
        ({"domains": {"age": {"range": [0, float("inf")], "step": 1, "why": "x"}}}, "range"),
        ({"domains": {"age": {"bins": [0, 0, 1], "why": "x"}}}, "larger than the one before"),
        ({"domains": {"city": {"values": ["a", "a"], "why": "x"}}}, "stands twice"),
        ({"domains": {"city": {"values": ["a"], "unknown": True, "why": "x"}}}, "states one"),
        ({"domains": {"patient": {"unknown": True, "why": "x"}}}, "identifier"),
        ({"domains": {"nobody": {"unknown": True, "why": "x"}}}, "no column"),
        ({"noise": 3}, "not a key"),
    ],
)
def test_a_section_that_is_wrong_is_told_in_a_sentence(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    content = policy("row")
    content["differential_privacy"] |= change
    with pytest.raises(InputError, match=said):
        ReleaseSpec.load(write_dataset(tmp_path / "people", people(), content))


def test_values_are_written_as_yaml_reads_them(tmp_path: Path) -> None:
    """Truth values and dates were no texts, and the sentences spoke of strings and tuples."""
    text = "{values: [true, false, 2024-01-31, 2024-01-31 08:00:00, 7, 1.5, x], why: the form}"
    content = copy.deepcopy(policy("row"))
    content["differential_privacy"]["domains"]["city"] = yaml.safe_load(text)
    said = ReleaseSpec.load(write_dataset(tmp_path / "people", people(), content)).differential_privacy
    assert said is not None
    expected = ("true", "false", "2024-01-31", "2024-01-31 08:00:00", "7", "1.5", "x")
    assert said.domains["city"].values == expected


@pytest.mark.slow
def test_the_commands(tmp_path: Path) -> None:
    folder = str(write_dataset(tmp_path / "people", people(), policy("row")))
    home = tmp_path / "var"
    asked = command("query", folder, BY_CITY, "--rho", "0.6", "--json", home=home)
    assert asked.exit_code == 0, asked.said
    answer = json.loads(asked.stdout)
    assert answer["new"] and len(answer["rows"]) == 4
    seen = command("query", folder, BY_CITY, "--rho", "0.6", "--preview", home=home)
    assert seen.exit_code == 0 and "nothing was read or spent" in seen.stdout
    refused = command("query", folder, BY_CITY, "--rho", "0.5", home=home)
    assert refused.exit_code == 3 and "0.4 is left" in refused.sentence
    wrong = command("query", folder, "SELECT * FROM people", "--rho", "0.1", home=home)
    assert wrong.exit_code == 2 and wrong.sentence.startswith("anon-pipeline: query: ")
    assert command("query", folder, BY_CITY, home=home).exit_code == 2
    shown = command("budget", "show", folder, "--json", home=home)
    head = json.loads(shown.stdout)["head"]
    assert [one["what"] for one in json.loads(shown.stdout)["questions"]] == [BY_CITY]
    assert command("budget", "verify", folder, "--head", head, home=home).exit_code == 0
    (ledger,) = (tmp_path / "var").rglob("ledger.jsonl")
    ledger.write_bytes(ledger.read_bytes().replace(b"600000000", b"100000000"))
    broken = command("budget", "verify", folder, "--json", home=home)
    assert broken.exit_code == 3 and json.loads(broken.stdout)["problems"]


@pytest.mark.long
def test_a_new_dataset_leaves_every_domain_to_a_person(tmp_path: Path) -> None:
    """No range, value or bin of the data stands in the proposed section; what is decided there makes it run."""
    table = tmp_path / "visits.csv"
    rows = np.arange(len(people()))
    people().assign(age_years=rows % 70, wage=rows % 90, day="2024-01-31").to_csv(table, index=False)
    data = tmp_path / "data"
    made = start_dataset(
        DuckDBEngine(tmp_path / "scratch"), DatasetRequest("visits", table, asked_with_noise=True), data
    )
    text = made.file.read_text()
    section = text[text.index("differential_privacy:") :]
    proposed = yaml.safe_load(section)["differential_privacy"]
    assert set(proposed["domains"].values()) == {"decide"}
    assert "patient" not in proposed["domains"]
    lines = {line.split(":")[0].strip(): line for line in section.splitlines()}
    assert "[0, 120]" in lines["age_years"] and "unknown: true" in lines["city"] and "no range" in lines["day"]
    assert "[0, 120]" not in lines["wage"], "an example that anybody may take for their column"
    for value in ("Aberdeen", "High", "Secret Lane"):
        assert value not in section
    with pytest.raises(InputError, match=r"differential_privacy\.domains\.city"):
        ReleaseSpec.load(made.file)
    assert {one.place for _, one in made.open} >= {"differential_privacy.unit", "differential_privacy.domains.city"}


def test_labels_of_a_file_are_no_public_domain(tmp_path: Path) -> None:
    """What tools write in a file's head are the texts that people have: Atlantis is a single person's."""
    pytest.importorskip("pyreadstat")
    towns = pd.Categorical(["Ulm", "Bonn", "Rome"] * 100 + ["Atlantis"])
    ill = ["no", "yes", "no", "no", "no"] * 60 + ["no"]
    pd.DataFrame({"town": towns, "ill": ill}).to_stata(tmp_path / "visits.dta", write_index=False)
    engine, request = DuckDBEngine(tmp_path / "scratch"), DatasetRequest("visits", tmp_path / "visits.dta")
    made = start_dataset(engine, dataclasses.replace(request, asked_with_noise=True), tmp_path / "data")
    text = made.file.read_text()
    assert "town: decide" in text and "Atlantis" not in text and "Bonn" not in text


def test_marks_of_missing_values_are_left_to_a_person_too(tmp_path: Path) -> None:
    """A synthetic release states them: one person whose age is "?" would have told everybody so."""
    table, engine = tmp_path / "visits.csv", DuckDBEngine(tmp_path / "scratch")
    table.write_text(
        "\n".join(["age,ill", "?,no", *(f"{20 + place % 50},{['no', 'yes'][place % 2]}" for place in range(300))])
    )
    made = {
        noise: start_dataset(
            engine, DatasetRequest(f"visits_{noise}".lower(), table, asked_with_noise=noise), tmp_path / "data"
        )
        for noise in (True, False)
    }
    stated = {noise: yaml.safe_load(made[noise].file.read_text())["source"]["missing"] for noise in made}
    assert stated == {True: "decide", False: ["?"]}
    (question,) = [asked.question for _, asked in made[True].open if asked.place == "source.missing"]
    assert question.startswith("found: '?';")
    assert not [asked for _, asked in made[False].open if asked.place == "source.missing"]


@pytest.mark.slow
def test_statistics_are_asked_checked_and_published(tmp_path: Path) -> None:
    content = policy("row")
    content["differential_privacy"] |= {"queries": "queries.yaml", "schedule": "0 4 * * *"}
    folder = write_dataset(tmp_path / "people", people(), content)
    one = {"name": "cities", "sql": BY_CITY, "rho": 0.4}
    (folder / "queries.yaml").write_text(yaml.safe_dump([one]))
    home = tmp_path / "var"
    first = command("statistics", folder, "--json", home=home)
    assert first.exit_code == 0, first.said
    said = json.loads(first.stdout)
    assert said["manifest"]["differential_privacy"]["rho"] == 0.4
    published = Path(said["folder"])
    assert {file.name for file in published.iterdir()} == {"answers.json", "statistics.csv", "manifest.json"}
    rows = pd.read_csv(published / "statistics.csv")
    assert list(rows["statistic"].unique()) == ["avg_age", "count"]
    assert command("releases", "verify", home=home).exit_code == 0
    version = published.name
    for arguments, sentence in (
        (("open", version), "has no opening, since noisy figures commit to no source"),
        (("compare", version, "--spec", str(folder)), "shows no rows of people"),
    ):
        meaningless = command("releases", *arguments, home=home)
        assert meaningless.exit_code == 2 and sentence in meaningless.sentence, meaningless.said
    # A second question for which too little is left: neither is asked, and what stands stays.
    (folder / "queries.yaml").write_text(
        yaml.safe_dump([one, {**one, "name": "more", "rho": 0.5}, {**one, "rho": 0.3, "name": "x"}])
    )
    refused = command("statistics", folder, home=home)
    assert refused.exit_code == 3, refused.said
    assert "none was asked" in refused.sentence
    shown = json.loads(command("budget", "show", folder, "--json", home=home).stdout)
    assert shown["reserved"] == 1
    assert [one for one in published.parent.iterdir() if not one.is_symlink()] == [published]
    # What was withdrawn is not published again, though the answers are still free.
    (folder / "queries.yaml").write_text(yaml.safe_dump([one]))
    assert command("releases", "withdraw", published.name, "--why", "a mistake", home=home).exit_code == 0
    again = command("statistics", folder, home=home)
    assert again.exit_code == 3 and "withdrawn" in again.sentence


def test_spark_counts_what_duckdb_counts(quick_spark: None, tmp_path: Path) -> None:
    from anon_pipeline.differential_privacy import answering
    from anon_pipeline.engine.spark import SparkEngine

    # Bounds that nobody reaches: which rows are kept beyond them, each engine chooses by a hash of its own.
    spec = dataset(tmp_path / "people", {**PERSON, "groups": 50, "rows": 50})
    readable = reading.readable(spec)
    engines = [DuckDBEngine(tmp_path / "duck"), SparkEngine(tmp_path / "spark", threads=1)]
    for sql in (
        "SELECT city, visits, COUNT(*), AVG(age), SUM(weight), COUNT(DISTINCT patient) FROM people "
        "WHERE NOT (age = 4 OR street = 'Low') GROUP BY city, visits",
        "SELECT street, MEDIAN(age) FROM people GROUP BY street",
    ):
        plan = plan_of(spec, sql)
        one, other = (
            answering.read(plan, readable, lambda query, engine=engine: engine.aggregated(readable, query))
            for engine in engines
        )
        cells = sorted(one.cells, key=str)
        assert cells == sorted(other.cells, key=str)
        for measurement in plan.measurements:
            if measurement.kind == "quantile":
                assert np.array_equal(one.histogram("age", cells), other.histogram("age", cells))
            else:
                assert one.numbers(measurement, cells) == other.numbers(measurement, cells)


def test_tables_of_the_tests_are_read_as_files_are(tmp_path: Path) -> None:
    """What the tests of sensitivity count in memory is what the engine counts in a file."""
    spec = dataset(tmp_path / "people", PERSON)
    plan = plan_of(spec, BY_CITY)
    from anon_pipeline.differential_privacy import answering

    readable = reading.readable(spec)
    engine = DuckDBEngine(tmp_path / "scratch")
    file = answering.read(plan, readable, lambda query: engine.aggregated(readable, query))
    with counting(spec) as count:
        memory = count(plan, people())
    for measurement in plan.measurements:
        assert file.numbers(measurement, plan.cells()) == memory.numbers(measurement, plan.cells())
