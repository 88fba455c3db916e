"""A small dataset with everything that a synthetic table must be able to hold, and its spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from anon_pipeline.spec import ReleaseSpec

CITIES, ILL = ["Ulm", "Bonn", "Trier", "Celle"], ["no", "yes"]


def people(n: int = 2000, seed: int = 1) -> pa.Table:
    """n people: an identifier, an age with gaps, a city nobody listed, an illness that hangs on the age, a weight."""
    random = np.random.default_rng(seed)
    age = random.integers(18, 90, n)
    ill = np.where(random.random(n) < (age - 10) / 90, "yes", "no")
    city = random.choice([*CITIES[:2], "elsewhere"], n, p=[0.6, 0.35, 0.05])
    return pa.table(
        {
            "id": pa.array([f"p{one}" for one in range(n)]),
            "age": pa.array(age, mask=random.random(n) < 0.05),
            "city": pa.array(city),
            "ill": pa.array(ill),
            "weight": pa.array(np.round(60 + (age - 50) / 5 + random.normal(0, 8, n), 1)),
        }
    )


def content(**changes: Any) -> dict[str, Any]:
    """A spec over them as it is written."""
    return {
        "dataset": "clinic",
        "source": {"path": "clinic.parquet"},
        "release": "synthetic",
        "target": "ill",
        "columns": {
            "id": {"role": "identifier"},
            "age": {"role": "quasi_identifier", "type": "numeric"},
            "city": {"role": "quasi_identifier", "type": "categorical"},
            "ill": {"role": "sensitive", "type": "categorical"},
            "weight": {"role": "sensitive", "type": "numeric"},
        },
        "differential_privacy": {
            "unit": "row",
            "budget": {"subject": "clinic_people", "epsilon": 4, "delta": 1e-6},
            "domains": {
                "age": {"range": [18, 97], "step": 1, "why": "adults"},
                "city": {"values": CITIES, "why": "where the clinic has houses"},
                "ill": {"values": ILL, "why": "the form"},
                "weight": {"bins": [30, 50, 60, 70, 80, 200], "why": "classes of the guideline"},
            },
        },
        "synthesis": {"epsilon": 2, "rounds": 4},
        **changes,
    }


def write(folder: Path, table: pa.Table | None = None, **changes: Any) -> ReleaseSpec:
    """The dataset in a folder, and its spec."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(people() if table is None else table, folder / "clinic.parquet")
    (folder / "release.yaml").write_text(yaml.safe_dump(content(**changes)))
    return ReleaseSpec.load(folder)
