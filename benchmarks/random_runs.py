"""Whole runs of random tables under random specs: each ends with a release that holds, or with a sentence.

    python -m benchmarks.random_runs [--minutes 20] [--seed 1] [--engines]

A table has up to eight columns of many kinds and up to 600 people; a spec gives roles, demands, masking steps, guide
and audit at random. A third of the datasets are followed by two later versions of the table, in which people leave and
join, some of them under `across_releases`. Each release is counted again with pandas: k, l-diversity, excluded columns
and the numbers of people. Of the other datasets a quarter are released again from shuffled rows, which must give the
same version. An internal error, a release that does not hold and another version are failures; the
number of such a run repeats it (`--only`).

With `--engines` each run is repeated on Spark, which takes far longer, in a second home and under the same private key.
Another release, other figures in its manifest and another refusal are failures; what only Spark refuses is counted.
"""

from __future__ import annotations

import argparse
import random
import secrets
import shutil
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import yaml

import anon_pipeline
from anon_pipeline.errors import InputError, Refused

#: What Spark alone refuses ends with this advice (docs/spark.md).
ONLY_SPARK = "use --engine duckdb"
#: Of a manifest: what tells of the run and not of the people.
OF_THE_RUN = {"created", "files", "runs", "software"}
NUMBERS = {"whole", "real", "round", "decimal", "with gaps"}
DATES = {"day", "moment"}
ODD_TEXTS = ["é", "e\u0301", "日本", "a\tb", "a,b", '"', "NULL", "nan", "-", "{a, b}", "[1, 2]", "≥ 3", "a .. b"]
ODD_NAMES = ["Größe {}", "select{}", 'q"{}', "a.b{}", "line_{}", "%{}", "x'{}"]
FOR_NUMBERS: list[dict[str, Any]] = [
    {"technique": "round", "to": 5},
    {"technique": "bin", "width": 10},
    {"technique": "quantile_bin", "bins": 4},
    {"technique": "noise", "share": 0.2},
    {"technique": "rank_swap", "share": 0.05},
    {"technique": "microaggregate", "k": 4},
    {"technique": "quantile_code", "top": 0.05},
]
FOR_DATES: list[dict[str, Any]] = [
    {"technique": "truncate_date", "to": "month"},
    {"technique": "noise", "deviation": 3},
    {"technique": "microaggregate", "k": 4},
]
FOR_TEXTS: list[dict[str, Any]] = [
    {"technique": "mask", "first": 1},
    {"technique": "prefix", "length": 2},
    {"technique": "suppress_rare", "k": 5, "by": "other"},
    {"technique": "pram", "retention": 0.8},
    {"technique": "redact"},
]


@dataclass(frozen=True)
class Case:
    """A random table, the kind of each of its columns, and a random spec of them."""

    table: pd.DataFrame
    kinds: dict[str, str]
    spec: dict[str, Any]


def column(kind: str, n: int, draw: random.Random, numbers: np.random.Generator) -> pd.Series:
    """A column of n values of a kind."""
    if kind == "whole":
        return pd.Series(numbers.integers(0, draw.choice([3, 20, 90, 10**6]), n))
    if kind == "real":
        return pd.Series(numbers.normal(0, draw.choice([1e-3, 1, 1e6]), n))
    if kind == "round":
        return pd.Series(numbers.integers(0, 20, n) * 1000)
    if kind == "decimal":
        return pd.Series([Decimal(int(value)) / 100 for value in numbers.integers(0, 10**5, n)])
    if kind == "with gaps":
        return pd.Series(numbers.integers(0, 40, n)).astype("Int64").mask(pd.Series(numbers.random(n) < 0.2))
    if kind == "day":
        return pd.Series((pd.Timestamp("1950-01-01") + pd.to_timedelta(numbers.integers(0, 25_000, n), unit="D")).date)
    if kind == "moment":
        return pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta(numbers.integers(0, 10**8, n), unit="s"))
    if kind == "truth":
        return pd.Series(numbers.random(n) < draw.random())
    if kind == "code":
        return pd.Series([f"{value:05d}" for value in numbers.zipf(1.3, n) % 90_000])
    if kind == "missing":
        return pd.Series([None] * n, dtype=draw.choice(["float", "object"]))
    texts = {"few texts": list("abcdefgh")[: draw.randint(2, 8)], "odd texts": ODD_TEXTS, "one text": ["x"]}
    return pd.Series(numbers.choice(texts[kind], n))


KINDS = [*NUMBERS, *DATES, "truth", "code", "missing", "few texts", "few texts", "odd texts", "one text"]


def case(seed: int) -> Case:
    """The case of a seed."""
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    n = draw.choice([12, 40, 80, 150, 150, 300, 300, 600])
    columns, kinds = {}, {}
    for place in range(draw.randint(2, 8)):
        name = draw.choice(ODD_NAMES).format(place) if draw.random() < 0.3 else f"c{place}"
        kinds[name] = draw.choice(sorted(KINDS))
        values = column(kinds[name], n, draw, numbers)
        if kinds[name] not in ("with gaps", "missing") and draw.random() < 0.25:
            values = values.astype(object).mask(pd.Series(numbers.random(n) < draw.choice([0.02, 0.3, 0.95])), None)
        columns[name] = values
    kinds["target"], kinds["person"] = draw.choice(["two", "many", "number", "truth", "rare"]), "identifier"
    score = numbers.normal(0, 1, n)
    columns["target"] = pd.Series(
        {
            "two": np.where(score > 0, "yes", "no"),
            "many": numbers.choice([f"t{value}" for value in range(draw.randint(3, 15))], n),
            "number": np.round(100 * score, draw.choice([0, 2, 6])),
            "truth": score > 0,
            "rare": np.where(score > 1.9, "ill", "well"),
        }[kinds["target"]]
    )
    columns["person"] = pd.Series([f"p{number}" for number in range(n)])
    return Case(pd.DataFrame(columns), kinds, spec(kinds, draw))


def spec(kinds: dict[str, str], draw: random.Random) -> dict[str, Any]:
    """A random spec, most often one that can be released."""
    columns: dict[str, dict[str, Any]] = {}
    for name, kind in kinds.items():
        role = draw.choices(["quasi_identifier", "insensitive", "sensitive", "exclude"], [6, 2, 2, 1])[0]
        columns[name] = {"role": role}
        if kind == "code" and role == "quasi_identifier" and draw.random() < 0.6:
            columns[name] |= {"type": "categorical", "hierarchy": {"prefix": [5, 3, 2], "strict": draw.random() < 0.4}}
        elif role != "exclude" and draw.random() < 0.25:
            steps = FOR_NUMBERS if kind in NUMBERS else FOR_DATES if kind in DATES else FOR_TEXTS
            columns[name]["steps"] = [draw.choice(steps)]
    columns["target"], columns["person"] = {"role": "sensitive"}, {"role": "identifier"}
    k = draw.choice([2, 3, 5, 10])
    sensitive = draw.choice([name for name, said in columns.items() if said["role"] == "sensitive"])
    demands: dict[str, dict[str, Any]] = {
        "l_diversity": {"l": 2},
        "t_closeness": {"t": 0.4},
        "beta_likeness": {"beta": 2},
        "alpha_k_anonymity": {"alpha": 0.8, "k": k},
    }
    privacy: dict[str, Any] = {"k_anonymity": {"k": k}}
    if draw.random() < 0.5:
        demand = draw.choice(list(demands))
        privacy[demand] = {"column": sensitive, **demands[demand]}
    said: dict[str, Any] = {
        "dataset": "random_people",
        "source": {"path": draw.choice(["people.parquet", "people.csv"])},
        "target": "target",
        "columns": columns,
        "privacy": privacy,
        "missing_target": "release",
        "guide": {
            "model": draw.choice(["decision_tree", "decision_tree", "linear", "gradient_boosting", "random_forest"]),
            "folds": draw.choice([2, 5]),
        },
        "utility": {"models": [], "folds": 2},
        "recode": {"form": draw.choice(["value", "range"])},
        "suppression": {"limit": draw.choice([0, 0, 0.01, 0.2])},
        "audit": {"enabled": draw.random() < 0.4, "models": False},
        "grouping": {"most_lost": 1},
    }
    if draw.random() < 0.2:
        said |= {"person": "person", "across_releases": {"k": k, "departures": draw.choice(["at_once", "in_company"])}}
    return said


def require_holds(released: anon_pipeline.Released, said: dict[str, Any]) -> None:
    """Count a release again.

    Raises
    ------
    AssertionError
        Where it is not what its spec asks for.
    """
    table = pd.read_parquet(released.folder / "data.parquet")
    left_out = [name for name, column in said["columns"].items() if column["role"] in ("identifier", "exclude")]
    assert not {*left_out} & {*table.columns}, "a column is released"
    assert len(table) == released.manifest["rows"]["released"], "people are missing"
    known = [name for name, column in said["columns"].items() if column["role"] == "quasi_identifier"]
    shown = table.astype(object).where(table.notna(), "\0").map(str)
    classes = shown.groupby(known)
    assert classes.size().min() >= said["privacy"]["k_anonymity"]["k"], "a class is too small"
    if (demand := said["privacy"].get("l_diversity")) is not None:
        assert classes[demand["column"]].nunique().min() >= demand["l"], "a class has too few values"
    sizes = pd.read_parquet(released.folder / "classes.parquet")["class_size"]
    assert sizes.sum() == len(table), "classes do not add up"


def ended(folder: Path, home: Path, engine: str) -> anon_pipeline.Released | str:
    """The release of a dataset, or the sentences with which it is refused."""
    try:
        return anon_pipeline.run(folder, home=home, engine=engine)
    except (InputError, Refused) as error:
        return str(error)


def require_same(one: anon_pipeline.Released | str, other: anon_pipeline.Released | str) -> None:
    """Compare what two engines made of one table.

    Raises
    ------
    AssertionError
        Where it is not the same.
    """
    if isinstance(one, str) or isinstance(other, str):
        assert one == other, f"engines refuse in other words:\n{one}\n{other}"
        return
    told = [{name: said for name, said in end.manifest.items() if name not in OF_THE_RUN} for end in (one, other)]
    for manifest in told:  # a commitment has a random part
        manifest["source"] = {name: said for name, said in manifest["source"].items() if name != "commitment"}
    differing = [name for name in told[0] | told[1] if told[0].get(name) != told[1].get(name)]
    assert not differing, f"engines tell other {', '.join(differing)}"
    for name in ("data.parquet", "classes.parquet"):
        assert pq.read_table(one.folder / name).equals(pq.read_table(other.folder / name)), (
            f"engines write other {name}"
        )


def later(people: pd.DataFrame, draw: random.Random) -> pd.DataFrame:
    """The table of the next month: some have left, and some have joined."""
    staying = people.sample(frac=draw.choice([1, 0.97, 0.8]), random_state=draw.randrange(2**32))
    joining = people.sample(frac=draw.choice([0, 0.02, 0.2]), replace=True, random_state=draw.randrange(2**32))
    named = [f"n{draw.randrange(10**12)}" for _ in range(len(joining))]
    return pd.concat([staying, joining.assign(person=named)], ignore_index=True)


def tried_on_both(seed: int, root: Path) -> str:
    """What the runs of a case came to on DuckDB and on Spark, three months where its releases are followed."""
    found, draw = case(seed), random.Random(seed + 1)
    folder, outcome = root / "data", "refused by both"
    folder.mkdir(parents=True)
    key = folder / "private.key"
    key.touch(0o600)
    key.write_text(secrets.token_hex(32))
    said = found.spec | {"draws": {"file": key.name}}
    (folder / "release.yaml").write_text(yaml.safe_dump(said, allow_unicode=True))
    people = found.table
    for _ in range(3 if "across_releases" in said else 1):
        _write(people, folder / said["source"]["path"])
        try:
            duckdb, spark = (ended(folder, root / engine, engine) for engine in ("duckdb", "spark"))
            if isinstance(spark, str) and ONLY_SPARK in spark:
                return "refused by Spark"
            require_same(duckdb, spark)
        except (AssertionError, RuntimeError):
            print(f"--engines --only {seed}\n{traceback.format_exc()}", flush=True)
            return "FAILED"
        outcome = outcome if isinstance(duckdb, str) else "released by both"
        people = later(people, draw)
    return outcome


def tried(seed: int, root: Path) -> str:
    """What the runs of a case came to."""
    found, draw = case(seed), random.Random(seed + 1)
    folder = root / "data"
    folder.mkdir(parents=True)
    (folder / "release.yaml").write_text(yaml.safe_dump(found.spec, allow_unicode=True))
    people, place = found.table, folder / found.spec["source"]["path"]
    followed, outcome = draw.random() < 1 / 3, "refused"
    for _ in range(3 if followed else 1):
        _write(people, place)
        try:
            released = anon_pipeline.run(folder, home=root / "home")
            require_holds(released, found.spec)
            outcome = "released"
            if not followed and draw.random() < 0.25:
                _write(people.sample(frac=1, random_state=draw.randrange(2**32)), place)
                again = anon_pipeline.run(folder, home=root / "home", threads=1)
                assert again.version == released.version, "the order of rows changes the release"
        except (InputError, Refused):
            pass
        except (AssertionError, RuntimeError):
            print(f"--only {seed}\n{traceback.format_exc()}", flush=True)
            return "FAILED"
        people = later(people, draw)
    return outcome


def _write(people: pd.DataFrame, place: Path) -> None:
    people.to_csv(place, index=False) if place.suffix == ".csv" else people.to_parquet(place, index=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the first case; the next ones follow it")
    parser.add_argument("--only", type=int, help="one case alone")
    parser.add_argument("--engines", action="store_true", help="each run on Spark, too, which has to end alike")
    asked = parser.parse_args()
    tried_here = tried_on_both if asked.engines else tried
    until, outcomes, seed = time.monotonic() + 60 * asked.minutes, Counter[str](), asked.seed * 1_000_000
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        while time.monotonic() < until:
            here = Path(scratch, str(seed))
            outcomes[tried_here(seed if asked.only is None else asked.only, here)] += 1
            for folder in here.iterdir():
                if folder.name != "spark":  # Spark keeps its own files in the home of its first run, to the end
                    shutil.rmtree(folder)
            seed += 1
            if asked.only is not None:
                break
    print(", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items())))
    raise SystemExit(1 if outcomes["FAILED"] else 0)


if __name__ == "__main__":
    main()
