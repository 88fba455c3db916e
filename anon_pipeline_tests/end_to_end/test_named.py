"""No published file names a value of a quasi-identifier that is that of a few people, and the gate sees to it."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.anonymize import recode
from anon_pipeline.errors import Refused
from anon_pipeline.pipeline.execution import answer, make
from anon_pipeline.pipeline.graph import graph_of
from anon_pipeline.pipeline.runtime import Runtime
from anon_pipeline.pipeline.step import CheckDef
from anon_pipeline_tests.end_to_end.harness import Place, policy, write_dataset
from anon_pipeline_tests.pipeline.in_steps import released_in_steps

K = 6


def lone_people(n: int = 240) -> pd.DataFrame:
    """People of whom some stand alone: with an age, a salary, a day or a town that nobody else has."""
    random = np.random.default_rng(3)
    age = random.choice([20, 30, 40, 50, 60], n)
    age[:5] = [23, 34, 51, 77, 91]
    pay = (np.exp(random.normal(10, 0.6, n)) // 1).astype(int)
    day = pd.Timestamp("2001-01-01") + pd.to_timedelta(random.choice([0, 31, 400, 800], n), "D").to_series(
        index=range(n)
    )
    day[7] = pd.Timestamp("2007-07-17")
    town = random.choice(["Aberdeen", "Bergen", "Cork"], n)
    town[[9, 10, 11]] = "Zwolle"
    return pd.DataFrame(
        {
            "age": age,
            "pay": pay,
            "day": day.dt.date,
            "town": town,
            "ill": np.where(age + random.normal(0, 15, n) > 42, "yes", "no"),
        }
    )


def spec(form: str) -> dict[str, Any]:
    return policy("named") | {
        "columns": {
            "age": {"role": "quasi_identifier", "type": "numeric"},
            "pay": {"role": "quasi_identifier", "type": "numeric", "grid": 100},
            "day": {"role": "quasi_identifier", "type": "date"},
            "town": {"role": "quasi_identifier", "type": "categorical"},
            "ill": {"role": "sensitive", "type": "categorical"},
        },
        "privacy": {"k_anonymity": {"k": K}},
        "recode": {"form": form},
        "audit": {"enabled": False},
    }


def numbers_of(text: str) -> list[float]:
    """The numbers, or days since 1970, that a text names."""
    days = re.findall(r"\d{4}-\d\d-\d\d", text)
    if days:
        return [float(np.datetime64(one, "D").astype(int)) for one in days]
    return [float(one) for one in re.findall(r"-?\d+(?:\.\d+)?", text)]


def named(folder: Path, name: str) -> set[float]:
    """Every number of a column that the released tables name."""
    found: set[float] = set()
    for file in folder.glob("*.parquet"):
        table = pd.read_parquet(file)
        for column in {name, f"{name}_low", f"{name}_high"} & set(table):
            found |= {one for text in table[column].dropna().astype(str).unique() for one in numbers_of(text)}
    return found


@pytest.mark.parametrize("form", ["value", "range"])
def test_no_published_number_or_category_is_that_of_a_few(fresh: Place, folder: Path, form: str) -> None:
    frame = lone_people()
    place = Place(fresh.home, write_dataset(folder / "named", frame, spec(form)))
    released_in_steps(place)
    for name in ("age", "pay", "day"):
        column = frame[name] if name != "day" else pd.to_datetime(frame[name])
        values = column.astype("datetime64[s]").astype("int64") // 86_400 if name == "day" else column
        counts = values.astype(float).value_counts()
        names = named(place.release, name)
        assert names, "the release says something of the column"
        step = 100 if name == "pay" else 1  # on the default grid, many are on each value
        few = {
            one
            for one in names
            if 0 < counts.get(one, 0) < K and counts[(counts.index >= one) & (counts.index < one + step)].sum() < K
        }
        assert not few, (name, few)
    manifest = json.loads((place.release / "manifest.json").read_text())
    for name, one in manifest["measured"]["marginals"].items():
        assert all(people == 0 or people >= K for people in one["after"]), name
    for file in sorted(place.release.iterdir()):
        content = file.read_bytes()
        assert b"Zwolle" not in content, f"{file.name}: a town of three people"
        assert b"2007-07-17" not in content, f"{file.name}: the day of one person"
    passed = {check["name"]: check["passed"] for check in manifest["checks"]}
    assert passed["names_shared_values_only"] is True


def test_the_gate_refuses_what_names_a_few(fresh: Place, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule is broken: what fewer than k people have may be named. A run asks the same check, and ends there."""
    of = recode.scale
    monkeypatch.setattr(recode, "scale", lambda values, k: of(values, 1))
    place = Place(fresh.home, write_dataset(folder / "named", lone_people(), spec("value")))
    with pytest.raises(Refused, match="names_shared_values_only"):
        _make_all(place)
    assert not list((place.home.root / "releases").glob("named/*"))


def _make_all(place: Place) -> None:
    """Every step and check of a run, whatever the checks answer."""
    graph = graph_of(place.spec)
    run = Runtime(home=str(place.home.root)).run(place.spec, {"dagster": "a test", "mlflow": "a test"})
    for part in graph.parts:
        (answer if isinstance(part, CheckDef) else make)(graph, part, run)


def test_codes_that_are_stored_as_numbers_may_be_withheld(fresh: Place, folder: Path) -> None:
    """A column of numbers has no text for what is withheld: its value is missing then, and names nobody's."""
    random = np.random.default_rng(1)
    frame = lone_people().assign(town=random.integers(1000, 1060, 240))
    content = spec("value") | {"source": {"path": "people.parquet"}}
    dataset = write_dataset(folder / "named", frame, content)
    frame.to_parquet(dataset / "people.parquet", index=False)
    place = Place(fresh.home, dataset)
    released_in_steps(place)
    town = pd.read_parquet(place.release / "data.parquet")["town"]
    assert 0 < town.isna().sum() < len(town) and set(town.dropna()) <= set(frame["town"])
    assert "*" in set(pd.read_parquet(place.release / "classes.parquet")["town"])
