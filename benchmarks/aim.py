"""Our synthetic table of Adult beside AIM's, at equal epsilon, delta, people and columns: `python -m benchmarks.aim`.

AIM is dpmm's (PyPI), which holds mbi's inference in numpy; it runs in an environment of its own and is no dependency.
Both see the same codes, and rows of both are judged alike: boosting trained on them and tested on real people who were
in no measurement, and total variation to the people who were. `--megabytes` bounds AIM's model: its authors advise 80,
which takes hours; ours holds 40,000 numbers, a third of a megabyte.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from anon_pipeline.differential_privacy import accounting
from anon_pipeline.differential_privacy.synthesis import measuring, stored
from anon_pipeline.differential_privacy.synthesis.coded_table import CodedTable, axes_of, read_coded
from anon_pipeline.differential_privacy.synthesis.drawn_rows import as_table
from anon_pipeline.differential_privacy.synthesis.made_table import Synthetic, make_table, settings_of
from anon_pipeline.engine.duckdb import DuckDBEngine
from anon_pipeline.spec import ReleaseSpec
from benchmarks.peers.environments import ADAPTERS, Tool, install
from benchmarks.synthetic import DELTA, auc, distances, one_draw, split

AIM = Tool("AIM", "dpmm_aim.py", environment="dpmm", pythons=range(10, 12))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--megabytes", type=float, default=1.0)
    parser.add_argument("--degree", type=int, default=2, help="columns of the largest counts in AIM's workload")
    options = parser.parse_args()
    if (why := install(AIM)) is not None:
        sys.exit(f"dpmm {why}")
    spec = ReleaseSpec.load("data/adult_synthetic")
    with tempfile.TemporaryDirectory() as scratch:
        train, test = split(spec, Path(scratch))
        people = read_coded(DuckDBEngine(Path(scratch)), train, axes_of(spec))
        print("| | boosting on its rows | distance of 1, 2 and 3 columns | cpu s |\n|---|---|---|---|")
        for number in range(options.draws):
            ours = one_draw(spec, people, test, options.epsilon)
            print(_line("ours", ours["synthetic"], ours, ours["seconds"]), flush=True)
            codes, seconds = _aim(people, Path(scratch), options, number)
            made = _as_ours(spec, people, codes, number)
            print(_line("AIM", auc(spec, made, test, "synthetic"), distances(people, codes), seconds), flush=True)


def _aim(people: CodedTable, folder: Path, options: argparse.Namespace, seed: int) -> tuple[np.ndarray, float]:
    """AIM's rows, as codes, and its processor seconds."""
    np.savez(folder / "people.npz", codes=np.repeat(people.codes, people.people, axis=0), sizes=people.sizes)
    words = (options.epsilon, DELTA, options.megabytes, options.degree, seed)
    command = [AIM.python, ADAPTERS / AIM.adapter, folder / "people.npz", folder / "aim.npz", *words]
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
    made = np.load(folder / "aim.npz")
    return made["codes"].astype(np.int64), float(made["seconds"])


def _as_ours(spec: ReleaseSpec, people: CodedTable, codes: np.ndarray, seed: int) -> Synthetic:
    """AIM's codes as public values, drawn within their intervals in the same way as ours."""
    axes = axes_of(spec)
    settings = replace(settings_of(spec, axes), nano_rho=accounting.nano_for(8.0, DELTA), rounds=1)
    frame = make_table(spec, stored.to_bytes(measuring.measure(people, settings), "a model that is not used"))
    return replace(frame, codes=codes, table=as_table(codes, axes, np.random.default_rng(seed)))


def _line(name: str, score: float, apart: dict[str, float], seconds: float) -> str:
    told = ", ".join(f"{apart[f'distance{size}']:.4f}" for size in (1, 2, 3))
    return f"| {name} | {score:.4f} | {told} | {seconds:.1f} |"


if __name__ == "__main__":
    main()
