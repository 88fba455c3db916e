"""The same tables get the same proposals in every version: each line of a proposed spec is pinned.

A change here changes what a steward is asked about the same table. What each rule looks for is tested where it stands;
this notices a slip in any of them, at once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.profiling.new_dataset import profile_table
from anon_pipeline.profiling.proposed_spec import propose_spec
from anon_pipeline.spec import Source

DATA = Path(__file__).parents[2] / "data"
#: What is proposed of a table, by its part, as the first digits of a hash.
PINNED: dict[str, dict[str, str]] = {
    "adult": {
        "profile": "0b080a06de39",
        "dataset": "d4181491b688",
        "source": "3aaf03357785",
        "target": "f9c7800b6a8e",
        "columns": "bd4ae3cb5f03",
        "age": "025871f9d26b",
        "workclass": "96fe81c2bb8f",
        "fnlwgt": "90a9112906a9",
        "education": "51470962cccf",
        "education_num": "28d43d762e27",
        "marital_status": "53f356be66d8",
        "occupation": "c4ad18649622",
        "relationship": "efe64472b242",
        "race": "9d02844e1515",
        "sex": "4fb1e50179c8",
        "capital_gain": "a11d4e688789",
        "capital_loss": "5ce1c66f1d2d",
        "hours_per_week": "fe5823127076",
        "native_country": "bd00d5cee608",
        "income": "39627004ca64",
        "split": "990567837f3a",
        "privacy": "f69bcabcc462",
        "k_anonymity": "7b0fdc84d2c9",
        "l_diversity": "5c605ab9254d",
    },
    "clinic": {
        "profile": "2831fc5d83a7",
        "dataset": "0b33d88d8901",
        "source": "26ffdce3d708",
        "path": "9a0f1581c994",
        "delimiter": "0c5346765c0c",
        "encoding": "2cc4724abc8c",
        "decimal": "2e48ba134992",
        "thousands": "fe5895c8889d",
        "symbols": "c4d9c6b92c94",
        "skip": "f0ad386828bd",
        "missing": "7329f28c1663",
        "where": "411ebccb75c4",
        "target": "9a810ea94410",
        "columns": "bd4ae3cb5f03",
        "patient": "6dd50143142d",
        "born": "bbb8e57b7f3f",
        "sex": "49ab1a8e262b",
        "postal code": "04736048a738",
        "weight": "15d44f4845da",
        "cost": "9943878996e5",
        "smoker": "3e02f2f755db",
        "religion": "ccf0e5dff906",
        "mail": "f5011dcfecd1",
        "note": "08cd2b87cc5f",
        "diagnosis": "bc8275ad0ac2",
        "privacy": "f69bcabcc462",
        "k_anonymity": "7b0fdc84d2c9",
        "l_diversity": "923c137df9de",
    },
    "survey": {
        "profile": "84c09ad15618",
        "dataset": "729875508bae",
        "source": "9ff931916562",
        "target": "dceec4714e0b",
        "columns": "bd4ae3cb5f03",
        "item_0": "e6d99346e08d",
        "item_1": "b590ff154c72",
        "item_2": "b514d80ce33f",
        "item_3": "587ae21f8120",
        "item_4": "ef7f12642b4f",
        "item_5": "3eb1ac68f12a",
        "item_6": "32cb2aa14ecf",
        "item_7": "9829eeaf6df9",
        "item_8": "f29599974632",
        "item_9": "e6dc21d9b01d",
        "item_10": "6cde11d8e3aa",
        "item_11": "2b1137a972f7",
        "item_12": "b9a06caaba47",
        "item_13": "15d5390610cd",
        "respondent": "324449618b8e",
        "region": "5601f8fa5b7b",
        "region_name": "0f3f9ae43645",
        "age": "4f20af001183",
        "income": "0faebec83c34",
        "sample_weight": "2bc0c08565b7",
        "ethnicity": "24675ccf8e7b",
        "score": "9194926dbf91",
        "high_score": "dd328d404c66",
        "voted": "754741e40ff6",
        "bought": "b4e81c5643bb",
        "seen": "047df4096183",
        "privacy": "f69bcabcc462",
        "k_anonymity": "7b0fdc84d2c9",
        "l_diversity": "5201ed3df80f",
    },
}


def adult(folder: Path) -> Path:
    pd.read_parquet(DATA / "adult" / "adult.parquet").iloc[:3000].to_parquet(folder / "adult.parquet")
    return folder / "adult.parquet"


def clinic(folder: Path) -> Path:
    """Visits as a clinic's system writes them, with several rows for a patient and a line of totals."""
    draw = np.random.default_rng(5)
    patient = np.sort(draw.integers(0, 250, 600))
    born, sex = draw.integers(0, 25_000, 250), draw.choice(["f", "m"], 250)
    lines = ["Visits of the clinic", "patient;born;sex;postal code;weight;cost;smoker;religion;mail;note;diagnosis"]
    for row in range(600):
        number = patient[row]
        day = pd.Timestamp("1940-01-01") + pd.Timedelta(days=int(born[number]))
        note = f"came on foot and left after {row} minutes" if row % 3 == 0 else ""
        values = [
            f"P{number:04d}",
            day.strftime("%d.%m.%Y"),
            sex[number],
            f"{draw.choice(['01', '80', '81'])}{draw.integers(0, 40):03d}",
            "999" if row % 40 == 0 else f"{draw.normal(75, 12):.1f}".replace(".", ","),
            f"{draw.integers(1, 9)}.{draw.integers(100, 999)},50 €",
            draw.choice(["yes", "no", "n/a"], p=[0.3, 0.6, 0.1]),
            draw.choice(["catholic", "protestant", "muslim", "none"]),
            f"p{number}@example.org",
            note,
            draw.choice(["flu", "asthma", "fracture"]),
        ]
        lines.append(";".join(values))
    lines.append("total;;;;;1.234.567,00 €;;;;;")
    (folder / "visits.csv").write_text("\n".join(lines) + "\n", encoding="cp1252")
    return folder / "visits.csv"


def survey(folder: Path) -> Path:
    """Many columns of a survey: codes, codes of other codes, a running number, weights, and what settles the target."""
    draw, n = np.random.default_rng(6), 2000
    region, age = draw.integers(1, 9, n), draw.integers(18, 90, n)
    score = age * 2 + draw.normal(0, 5, n)
    frame = pd.DataFrame({f"item_{item}": draw.integers(1, 6, n) for item in range(14)})
    frame = frame.assign(
        respondent=np.arange(1000, 1000 + n),
        region=region,
        region_name=[f"region {code}" for code in region],
        age=age,
        income=draw.lognormal(10, 0.6, n).round(-1),
        sample_weight=draw.gamma(3, 400, n).round(6),
        ethnicity=draw.integers(1, 6, n),
        score=score.round(1),
        high_score=(score > 120).astype(int),
        voted=draw.choice(["yes", "no"], n),
        bought=np.where(score + draw.normal(0, 40, n) > 120, 1, 0),
        seen=pd.Timestamp("2026-01-01") + pd.to_timedelta(draw.integers(0, 10**6, n), "s"),
    )
    frame.to_parquet(folder / "survey.parquet")
    return folder / "survey.parquet"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def proposed(table: Path, folder: Path) -> dict[str, str]:
    """The proposed spec by its keys and columns, each with the remarks above it."""
    profiled = profile_table(DuckDBEngine(folder / "spill", threads=1), table)
    # Floats with nine digits, which every processor gives.
    figures = json.loads(json.dumps(profiled.to_json()), parse_float=lambda digits: f"{float(digits):.9g}")
    found, remarks = {"profile": digest(json.dumps(figures, sort_keys=True))}, ""
    for line in propose_spec(profiled, "people", Source(path="people")).splitlines():
        if line.lstrip().startswith("#"):
            remarks += line
            continue
        found[line.partition(":")[0].strip()], remarks = digest(remarks + line), ""
    return found


@pytest.mark.long
@pytest.mark.parametrize("make_table", [adult, clinic, survey])
def test_a_table_gets_the_same_proposal_in_every_version(make_table: Callable[[Path], Path], tmp_path: Path) -> None:
    assert proposed(make_table(tmp_path), tmp_path) == PINNED[make_table.__name__]
