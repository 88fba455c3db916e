"""A population with dates and missing values is matched to classes by the same calendar as the table itself."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anon_pipeline.anonymize.anonymizer import AnonymizerTree
from anon_pipeline.anonymize.encoding import count_cells, learn_domain
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.errors import InputError
from anon_pipeline.learning.cells import fixed_point
from anon_pipeline.privacy.delta_presence import DeltaPresence
from anon_pipeline.privacy.judge import told_of_presence
from anon_pipeline.privacy.k_map import KMap
from anon_pipeline.privacy.population_table import PEOPLE, boxed, boxed_alike, people_in_own_box, told_by_ends
from anon_pipeline.spec import ColumnType, ReleaseSpec


@pytest.mark.long
def test_a_population_is_matched_by_date_as_the_table_is(tmp_path: Path, engine: DuckDBEngine) -> None:
    random = np.random.default_rng(0)
    born = pd.Series(pd.Timestamp("1960-01-01") + pd.to_timedelta(random.integers(0, 9000, 300), unit="D"))
    people = pd.DataFrame({"born": born.dt.strftime("%Y-%m-%d"), "town": random.choice(["Ulm", "Bonn"], 300)})
    people.loc[::20, "town"] = ""
    people.assign(sick=random.choice(["yes", "no"], 300)).to_csv(tmp_path / "people.csv", index=False)
    pd.concat([people, people, people]).to_csv(tmp_path / "population.csv", index=False)
    roles = {"born": {"role": "quasi_identifier", "type": "date"}, "town": {"role": "quasi_identifier"}}
    spec = ReleaseSpec(
        dataset="people",
        source={"path": str(tmp_path / "people.csv")},
        target="sick",
        columns={**roles, "sick": {"role": "sensitive"}},
        privacy={"k_anonymity": {"k": 5}, "k_map": {"k": 30, "population": str(tmp_path / "population.csv")}},
    )
    types = engine.store_source(spec, tmp_path / "table.parquet").types()
    domains = engine.domains(tmp_path / "table.parquet", {name: types[name] for name in ("born", "town")})
    assert (types["born"], domains[0].storage) == (ColumnType.DATE, "DATE")
    keys = np.concatenate(
        [
            np.repeat(batch.key, batch.people, axis=0)
            for batch in engine.batches(tmp_path / "table.parquet", spec, types, domains)
        ]
    )
    key, counts = np.unique(keys, axis=0, return_counts=True)
    cells = engine.cells(domains, key, counts.astype(np.int64), fixed_point(np.zeros((len(key), 1))))
    population_table = engine.population_table(spec, types, str(tmp_path / "population.csv"))
    assert population_table[PEOPLE].sum() == 900
    tree = AnonymizerTree(k=5, demands=[KMap(k=30, population="population.csv")]).fit_cells(
        cells, None, population_table
    )
    matched = boxed(tree.classes_, ["born", "town"], population_table)
    assert matched.population is not None
    assert (matched.population >= 30).all()
    assert len(matched.sizes) > 3
    # The frame with its moments goes to the classes that the engine's days were put into.
    frame = people.assign(born=born, town=people["town"].replace("", None))
    assert np.bincount(tree.apply(frame), minlength=len(tree.sizes_)).tolist() == tree.sizes_.tolist()


@pytest.mark.parametrize(("most", "told"), [(0.1, 5), (0.5, 4), (0.9, 4), (1.0, 1)])
def test_ends_and_categories_that_few_of_the_population_have_tell_who_is_in_the_table(most: float, told: int) -> None:
    """Whoever alone has the last age of a class's interval is released: a half of the population stood beside it."""
    classes = pd.DataFrame(
        {
            "class_size": [5, 5],
            "age_low": pd.array([20, 30], dtype="Int64"),
            "age_high": pd.array([29, None], dtype="Int64"),  # nobody is told where the second ends
            "age_missing": pd.array([False, None], dtype="boolean"),
            "town_values": [["Bonn", "Ulm", "*"], ["Ulm"]],
        }
    )
    ages = [20, 29, *[25] * 8, *[29] * 3, 30, *[35] * 20, None]
    towns = [*["Ulm"] * 9, "Bonn", *["Mainz"] * 3, *["Ulm"] * 22]
    population = pd.DataFrame({"age": pd.array(ages, dtype="Int64"), "town": towns, PEOPLE: 1})
    # 20, 29 and 30 are each that of one who matches, and Bonn, which two have who are released; Ulm that of 9 and 21.
    assert told_by_ends(classes, ["age", "town"], population, most) == told
    assert told_by_ends(classes, ["age", "town"], pd.concat([population] * 40), 0.1) == 0


@pytest.mark.parametrize(("without", "is_told", "told"), [(2, True, 1), (4, True, 0), (2, False, 0), (2, None, 0)])
def test_that_some_have_no_number_is_told_of_two(without: int, is_told: bool | None, told: int) -> None:
    """Two of the population who match have no age, and two of the class: both are released."""
    classes = pd.DataFrame(
        {
            "class_size": [6],
            "age_low": pd.array([20], dtype="Int64"),
            "age_high": pd.array([29], dtype="Int64"),
            "age_missing": pd.array([is_told], dtype="boolean"),
        }
    )
    ages = [*[20] * 4, *[29] * 4, 25, *[None] * without]
    population = pd.DataFrame({"age": pd.array(ages, dtype="Int64"), PEOPLE: 1})
    assert told_by_ends(classes, ["age"], population, 0.5) == told


def test_ends_are_looked_at_where_the_table_is_not_to_tell_who_is_in_it(tmp_path: Path, engine: DuckDBEngine) -> None:
    pd.DataFrame({"age": [1, 2, 2], "t": ["a", "b", "b"]}).to_csv(tmp_path / "p.csv", index=False)
    pd.DataFrame({"age": [1, 2, 2, 2, 2]}).to_csv(tmp_path / "population.csv", index=False)
    classes = {"age_low": [1], "age_high": [2], "age_missing": [False], "class_size": [3]}
    pd.DataFrame(classes).to_parquet(tmp_path / "classes.parquet")
    population = str(tmp_path / "population.csv")
    for demand, told in (({"delta_presence": {"min": 0, "max": 0.9}}, 1), ({"k_map": {"k": 4}}, 0)):
        ((name, stated),) = demand.items()
        spec = ReleaseSpec(
            dataset="people",
            source={"path": str(tmp_path / "p.csv")},
            target="t",
            columns={"age": {"role": "quasi_identifier"}, "t": {"role": "sensitive"}},
            privacy={"k_anonymity": {"k": 2}, name: stated | {"population": population}},
        )
        types = engine.store_source(spec, tmp_path / "table.parquet").types()
        assert told_of_presence(engine, spec, types, tmp_path / "classes.parquet") == told


def test_a_population_without_a_quasi_identifier_is_refused_by_its_name(tmp_path: Path, engine: DuckDBEngine) -> None:
    pd.DataFrame({"age": [1, 2], "town": ["Ulm", "Bonn"], "t": ["a", "b"]}).to_csv(tmp_path / "p.csv", index=False)
    pd.DataFrame({"age": [1, 2]}).to_csv(tmp_path / "population.csv", index=False)
    spec = ReleaseSpec(
        dataset="people",
        source={"path": str(tmp_path / "p.csv")},
        target="t",
        columns={name: {"role": "quasi_identifier"} for name in ("age", "town")} | {"t": {"role": "sensitive"}},
        privacy={"k_anonymity": {"k": 2}},
    )
    types = engine.store_source(spec, tmp_path / "table.parquet").types()
    with pytest.raises(InputError, match="has no column town; a population has all quasi-identifiers"):
        engine.population_table(spec, types, str(tmp_path / "population.csv"))


def test_who_may_be_left_out_is_decided_with_the_people_of_the_population_counted() -> None:
    """People of 90, of whom the population has no more than the table, are left out in place of merged with others."""
    ages = np.repeat([20.0, 21.0, 22.0, 23.0, 90.0], [20, 20, 20, 20, 5])
    domain, codes = learn_domain("age", pd.Series(ages))
    cells, _ = count_cells((domain,), codes[:, None], fixed_point(np.zeros((len(ages), 1))))
    population = pd.DataFrame({"age": [20.0, 21.0, 22.0, 23.0, 90.0], PEOPLE: [200, 200, 200, 200, 5]})
    tree = AnonymizerTree(k=5, demands=[KMap(k=30, population="population.csv")], suppression=0.1)
    group = tree.fit_apply_cells(cells, None, population)
    assert tree.sizes_.sum() == 80
    assert (group < 0).tolist() == [False] * 4 + [True]
    matched = boxed(tree.classes_, ["age"], population)
    assert matched.population is not None
    assert matched.population.min() >= 30
    assert matched.population_unmatched == 5


def boxes(**columns: Any) -> pd.DataFrame:
    """Three classes: from 20 to 30 in Ulm, from 31 on in Ulm or Bonn or nowhere, and one of which no age is told."""
    return pd.DataFrame(
        {
            "class_size": [5, 6, 7],
            "age_low": pd.array([20, 31, None], dtype="Int64"),
            "age_high": pd.array([30, None, None], dtype="Int64"),
            "age_missing": pd.array([False, True, None], dtype="boolean"),
            "town_values": [["Ulm"], ["Ulm", "Bonn", None], ["Ulm"]],
        }
        | columns
    )


#: By age and town, the classes of `boxes` that take a person in.
PLACES: list[tuple[float | None, str | None, list[int]]] = [
    (19, "Ulm", []),
    (20, "Ulm", [0]),
    (30, "Ulm", [0]),
    (31, "Ulm", [1]),
    (99, "Bonn", [1]),
    (99, None, [1]),
    (25, "Bonn", []),
    (25, None, []),
    (None, "Ulm", [1]),
    (99, "Rome", []),
]


@pytest.mark.parametrize(("age", "town", "inside"), PLACES)
def test_a_person_of_the_population_is_in_the_boxes_that_hold_all_values(
    age: float | None, town: str | None, inside: list[int]
) -> None:
    population = pd.DataFrame({"age": [age], "town": pd.Series([town], dtype=object), PEOPLE: [3]})
    found = boxed(boxes(), ["age", "town"], population)
    assert found.population is not None
    assert found.population.tolist() == [3 if place in inside else 0 for place in range(3)]
    assert found.population_unmatched == (0 if inside else 3)
    assert found.sizes.tolist() == [5, 6, 7]


def test_people_who_bear_the_same_are_counted_and_so_are_those_in_no_box() -> None:
    ages, towns, inside = zip(*PLACES, strict=True)
    people = np.arange(1, len(PLACES) + 1)
    population = pd.DataFrame({"age": pd.Series(ages, dtype=float), "town": towns, PEOPLE: people})
    found = boxed(boxes(), ["age", "town"], population)
    assert found.population is not None
    assert found.population.tolist() == [
        sum(n for n, places in zip(people, inside, strict=True) if place in places) for place in range(3)
    ]
    assert found.population_unmatched == sum(n for n, places in zip(people, inside, strict=True) if not places)


def test_classes_that_the_same_people_match_are_one() -> None:
    """Everybody of ten is in the table, in one of two classes; nobody is 30, so that the second is no wider."""
    low, high = pd.array([20, 20, 20, 20], dtype="Int64"), pd.array([29, 30, 28, 50], dtype="Int64")
    classes = pd.DataFrame({"class_size": [5, 5, 4, 6], "age_low": low, "age_high": high, "age_missing": False})
    population = pd.DataFrame({"age": [*range(20, 30), 40, 99], PEOPLE: [1] * 10 + [6, 3]})
    found = boxed_alike(classes, ["age"], population)
    assert found.population is not None
    assert sorted(zip(found.sizes.tolist(), found.population.tolist(), strict=True)) == [(4, 9), (6, 16), (10, 10)]
    assert found.population_unmatched == 3
    assert DeltaPresence(population="p", min=0, max=0.5).holds(found).sum() == 2
    nobody = boxed_alike(classes[:0], ["age"], population)
    assert (len(nobody.sizes), nobody.population_unmatched) == (0, 19)


def test_only_who_is_in_the_box_of_the_class_they_come_to_counts_for_it() -> None:
    """The second comes to a class that does not take them in, the third to none."""
    population = pd.DataFrame({"age": [20.0, 20.0, 25.0, 40.0], "town": ["Ulm"] * 4, PEOPLE: [1, 2, 4, 8]})
    found = people_in_own_box(boxes(), ["age", "town"], population, np.array([0, 1, -1, 1]))
    assert found.tolist() == [1, 8, 0]


@pytest.mark.parametrize(("day", "inside"), [("2020-01-01", 0), ("2020-01-02", 1), ("2020-01-04", 1), (None, 0)])
def test_the_ends_of_a_box_of_dates_belong_to_it(day: str | None, inside: int) -> None:
    low, high = pd.to_datetime(["2020-01-02", None]), pd.to_datetime(["2020-01-04", None])
    classes = pd.DataFrame({"class_size": [2, 2], "born_low": low, "born_high": high, "born_missing": [False, False]})
    population = pd.DataFrame({"born": pd.to_datetime(pd.Series([day])), PEOPLE: [1]})
    found = boxed(classes, ["born"], population)
    assert found.population is not None
    assert found.population.tolist() == [inside, 0]


BOX = 10**17


def population_of(folder: Path, engine: DuckDBEngine, people: list[Any], kind: pa.DataType) -> pd.DataFrame:
    """A population with an age each, read beside a source of two people with large whole ones."""
    pq.write_table(pa.table({"age": pa.array(people, kind)}), folder / "population.parquet")
    pq.write_table(pa.table({"age": [BOX, BOX + 1], "t": ["a", "b"]}), folder / "p.parquet")
    spec = ReleaseSpec(
        dataset="people",
        source={"path": str(folder / "p.parquet")},
        target="t",
        columns={"age": {"role": "quasi_identifier"}, "t": {"role": "sensitive"}},
        privacy={"k_anonymity": {"k": 2}},
    )
    types = engine.store_source(spec, folder / "table.parquet").types()
    return engine.population_table(spec, types, str(folder / "population.parquet"))


def large_boxes() -> pd.DataFrame:
    ends = {"age_low": [BOX, BOX + 2], "age_high": [BOX + 1, None], "age_missing": [False, False]}
    return pd.DataFrame({"class_size": [2, 2]} | {name: pd.array(end) for name, end in ends.items()})


@pytest.mark.parametrize("kind", [pa.int64(), pa.decimal128(30, 0), pa.decimal128(30, 2)], ids=str)
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(("off", "inside"), [(-1, 0), (0, 3), (1, 3), (2, 0)])
def test_whole_numbers_beyond_floats_are_compared_exactly(
    tmp_path: Path, engine: DuckDBEngine, off: int, inside: int, missing: bool, kind: pa.DataType
) -> None:
    """As floats 10^17 and 10^17 + 1 are one, and people beside a class's box were counted as its population."""
    population = population_of(tmp_path, engine, [BOX + off] * 3 + [None] * missing, kind)
    found = boxed(large_boxes(), ["age"], population)
    assert found.population is not None
    assert found.population.tolist() == [inside, 3 if off == 2 else 0]


def test_whole_numbers_of_a_population_are_compared_exactly_with_ends_that_are_floats() -> None:
    """A source of floats has classes between floats; people beside them are not in them."""
    ends = {"age_low": [1e17], "age_high": [1e17], "age_missing": [False]}
    population = pd.DataFrame({"age": [BOX - 1, BOX, BOX + 1], PEOPLE: [1, 2, 4]})
    found = boxed(pd.DataFrame({"class_size": [2]} | ends), ["age"], population)
    assert found.population is not None
    assert found.population.tolist() == [2]


def test_floats_beside_large_whole_numbers_are_refused(tmp_path: Path, engine: DuckDBEngine) -> None:
    """Who wrote floats has lost the last digits: two people may stand in one number, and more match a class."""
    population = population_of(tmp_path, engine, [float(BOX), 20.0], pa.float64())
    with pytest.raises(
        InputError, match=r"columns\.age: the population has numbers beyond 2\^53 .*as the source does$"
    ):
        boxed(large_boxes(), ["age"], population)


def test_large_decimals_with_fractions_are_refused(tmp_path: Path, engine: DuckDBEngine) -> None:
    with pytest.raises(
        InputError, match=r"columns\.age: .*population\.parquet has numbers beyond 2\^53, and 1 fraction "
    ):
        population_of(tmp_path, engine, [Decimal(BOX), Decimal("20.5")], pa.decimal128(30, 2))


def test_decimals_that_floats_hold_stay_decimals(tmp_path: Path, engine: DuckDBEngine) -> None:
    ages = [Decimal(2**53), Decimal("20.5")]
    assert population_of(tmp_path, engine, ages, pa.decimal128(30, 2))["age"].tolist() == [20.5, float(2**53)]


def test_a_fraction_of_a_population_lies_between_whole_ends() -> None:
    population = pd.DataFrame({"age": [19.5, 20.5, 30.5], "town": ["Ulm"] * 3, PEOPLE: [1, 2, 4]})
    found = boxed(boxes(), ["age", "town"], population)
    assert found.population is not None
    assert found.population.tolist() == [2, 0, 0]
