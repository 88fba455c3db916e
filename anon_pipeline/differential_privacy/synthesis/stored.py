"""Measurements as bytes and back: the budget's ledger keeps them, and every later step starts from them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from anon_pipeline.differential_privacy.synthesis.estimation import NoisyTable
from anon_pipeline.differential_privacy.synthesis.measuring import Measurements, Mechanism

#: The file that keeps them between steps.
MEASUREMENTS = "measurements.json"


def to_bytes(measurements: Measurements, token: str) -> bytes:
    """Measurements as bytes: noisy counts, public parameters, and numbers computed from these, nothing else.

    The token is drawn with the noise. Versions and rows depend on it, so they reveal nothing about the source either.
    """
    content = {
        "token": token,
        "first": [_written(table) for table in measurements.first],
        "codes": [mapping.tolist() for mapping in measurements.codes],
        "later": [_written(table) for table in measurements.later],
        "mechanisms": [
            {"measures": mechanism.measures, "scale": mechanism.scale, "nano_rho": mechanism.nano_rho}
            for mechanism in measurements.mechanisms
        ],
    }
    return json.dumps(content, sort_keys=True).encode()


def from_bytes(content: bytes) -> Measurements:
    """Read the measurements that `to_bytes` wrote."""
    read = json.loads(content)
    return Measurements(
        tuple(_read(table) for table in read["first"]),
        tuple(np.array(mapping, dtype=np.int64) for mapping in read["codes"]),
        tuple(_read(table) for table in read["later"]),
        tuple(
            Mechanism(
                None if mechanism["measures"] is None else tuple(mechanism["measures"]),
                mechanism["scale"],
                mechanism["nano_rho"],
            )
            for mechanism in read["mechanisms"]
        ),
    )


def _written(table: NoisyTable) -> dict[str, Any]:
    return {
        "columns": table.columns,
        "shape": table.counts.shape,
        "counts": table.counts.astype(np.int64).ravel().tolist(),
        "variance": float(table.variance.flat[0]),  # all counts of a table have noise of the same variance
    }


def _read(content: dict[str, Any]) -> NoisyTable:
    counts = np.array(content["counts"], dtype=np.float64).reshape(content["shape"])
    return NoisyTable(tuple(content["columns"]), counts, np.full(counts.shape, content["variance"]))
