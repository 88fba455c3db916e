"""How good synthetic tables and models of Adult are at several epsilons: `make bench-synthetic`.

Trained on synthetic rows (or made of the noisy counts), tested on real people who were in no measurement; the distance
is total variation over sets of one, two and three columns, to the people who were measured. Each line is the mean over
several draws with a 95 % interval (Student's t). The delta is 1e-6, the unit a row, the domains those of
data/adult_synthetic. Exact figures of people are read here without any budget: Adult is public.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from scipy import stats
from sklearn.metrics import roc_auc_score

from anon_pipeline.differential_privacy import accounting
from anon_pipeline.differential_privacy.synthesis import measuring, models, stored
from anon_pipeline.differential_privacy.synthesis.coded_table import CodedTable, axes_of, read_coded
from anon_pipeline.differential_privacy.synthesis.made_table import Synthetic, make_table, settings_of
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.spec import ReleaseSpec

EPSILONS, DELTA, DRAWS = (0.5, 1.0, 3.0, 8.0), 1e-6, 5
TRAIN_SHARE, SPLIT_SEED, SETS = 0.7, 0, 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, nargs="*", default=EPSILONS)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--out", type=Path, help="every single draw as a line of JSON, for example for a plot")
    options = parser.parse_args()
    spec = ReleaseSpec.load("data/adult_synthetic")
    with tempfile.TemporaryDirectory() as scratch:
        train, test = split(spec, Path(scratch))
        people = read_coded(DuckDBEngine(Path(scratch)), train, axes_of(spec))
        print("| epsilon | boosting on synthetic rows | naive Bayes | distance of 1, 2 and 3 columns | cpu s |")
        print("|---|---|---|---|---|")
        for epsilon in options.epsilon:
            drawn = [one_draw(spec, people, test, epsilon) for _ in range(options.draws)]
            if options.out is not None:
                with options.out.open("a") as file:
                    file.writelines(json.dumps({"epsilon": epsilon, **one}) + "\n" for one in drawn)
            print(
                f"| {epsilon:g} | {_mean(drawn, 'synthetic', 4)} | {_mean(drawn, 'naive_bayes', 4)} | "
                f"{_mean(drawn, 'distance1', 4)}, {_mean(drawn, 'distance2', 4)}, {_mean(drawn, 'distance3', 4)} | "
                f"{np.mean([one['seconds'] for one in drawn]):.1f} |",
                flush=True,
            )


def one_draw(spec: ReleaseSpec, people: CodedTable, test: pd.DataFrame, epsilon: float) -> dict[str, float]:
    """The figures of one measurement, and of the tables and models made from it."""
    start = time.process_time()
    settings = settings_of(spec, axes_of(spec))
    priced = measuring.Settings(
        settings.targets, accounting.nano_for(epsilon, DELTA), 1, settings.rounds, settings.cells
    )
    found = measuring.measure(people, priced)
    made = make_table(spec, stored.to_bytes(found, "benchmark"))
    seconds = time.process_time() - start
    scores = {kind: auc(spec, made, test, kind) for kind in ("synthetic", "naive_bayes")}
    return {**scores, **distances(people, made.codes), "seconds": seconds}


def distances(people: CodedTable, codes: np.ndarray) -> dict[str, float]:
    """Mean total variation over sets of one, two and three columns (of three columns, a hundred random sets)."""
    shown = CodedTable(people.sizes, codes.astype(np.int32), np.ones(len(codes), dtype=np.int64))
    random, found = np.random.default_rng(SPLIT_SEED), {}
    for size in (1, 2, 3):
        sets = list(itertools.combinations(range(len(people.sizes)), size))
        if len(sets) > SETS:
            sets = [sets[place] for place in random.choice(len(sets), SETS, replace=False)]
        apart = [
            np.abs(people.counts(one) / people.people.sum() - shown.counts(one) / len(codes)).sum() / 2 for one in sets
        ]
        found[f"distance{size}"] = float(np.mean(apart))
    return found


def split(spec: ReleaseSpec, scratch: Path) -> tuple[ReleaseSpec, pd.DataFrame]:
    """The spec with seven tenths of the people as its source, and the other people."""
    table = pq.read_table(spec.source_path)
    order = np.random.default_rng(SPLIT_SEED).permutation(len(table))
    cut = round(len(table) * TRAIN_SHARE)
    pq.write_table(table.take(order[:cut]), scratch / "train.parquet")
    return spec.replaced({"source.path": str(scratch / "train.parquet")}), table.take(order[cut:]).to_pandas()


def auc(spec: ReleaseSpec, made: Synthetic, test: pd.DataFrame, kind: str) -> float:
    model = models.model_of(spec.replaced({"model.kind": kind}), made)
    domains: Any = spec.differential_privacy.domains if spec.differential_privacy is not None else {}
    frame = test[spec.features].copy()
    for name in spec.features:
        if domains[name].numeric:
            frame[name] = frame[name].astype(np.float64)
        else:
            frame[name] = frame[name].where(frame[name].isin(domains[name].values), None).astype(object)
    positive = list(model.classes_).index(">50K")
    return float(roc_auc_score(test[spec.target] == ">50K", model.predict_proba(frame)[:, positive]))


def _mean(drawn: list[dict[str, float]], name: str, digits: int) -> str:
    values = np.array([one[name] for one in drawn])
    if len(values) < 2:
        return f"{values.mean():.{digits}f}"
    reach = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.{digits}f} ± {reach:.{digits}f}"


if __name__ == "__main__":
    sys.exit(main())
