"""AIM on the codes that `benchmarks.synthetic` measures, for comparison: run it in an environment that has `mbi`.

    python -m venv aim && aim/bin/pip install mbi==2.0.0
    python -m benchmarks.synthetic --codes people.npz
    aim/bin/python benchmarks/aim.py people.npz --epsilon-rho 0.024356 --out aim.npz
    python -m benchmarks.synthetic --score aim.npz

R. McKenna, B. Mullins, D. Sheldon and G. Miklau, AIM: an adaptive and iterative mechanism for differentially private
synthetic data, PVLDB 15(11), 2022, algorithm 2, written from the paper over mbi's inference: workload of all triples,
all columns measured first with a tenth of the budget, a model of at most 80 MB, the budget of a round fourfold when
what was measured surprised nobody.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time

import mbi
import numpy as np


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("people")
    parser.add_argument("--epsilon-rho", type=float, required=True)
    parser.add_argument("--model-size", type=float, default=80)
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    read = np.load(options.people)
    start = time.process_time()
    codes = synthesize(read["codes"], read["sizes"], options.epsilon_rho, options.model_size, options.iterations)
    seconds = time.process_time() - start
    print(f"{seconds:.0f} cpu seconds")
    np.savez(options.out, codes=codes, seconds=seconds)


def synthesize(codes: np.ndarray, sizes: np.ndarray, rho: float, model_size: float, iterations: int) -> np.ndarray:
    names = [f"c{place}" for place in range(len(sizes))]
    domain = mbi.Domain(names, [int(one) for one in sizes])
    people = mbi.Dataset({name: codes[:, place] for place, name in enumerate(names)}, domain)
    random, estimator = np.random.default_rng(), mbi.estimation.MirrorDescent()
    triples = list(itertools.combinations(names, 3))
    downward = {set_ for one in triples for size in (1, 2, 3) for set_ in itertools.combinations(one, size)}
    weight = {one: sum(len(set(one) & set(other)) for other in triples) for one in downward}
    true = {one: np.asarray(people.project(one).datavector()) for one in downward}
    rounds = 16 * len(names)
    deviation, choosing = math.sqrt(rounds / (2 * 0.9 * rho)), math.sqrt(8 * 0.1 * rho / rounds)
    spent, measured = 0.0, []

    def measure(one: tuple[str, ...]) -> None:
        noisy = true[one] + random.normal(0, deviation, true[one].size)
        measured.append(mbi.LinearMeasurement(noisy, one, stddev=deviation))

    for name in names:
        measure((name,))
        spent += 1 / (2 * deviation**2)
    model = estimator.estimate(domain, measured, iters=iterations)
    done = False
    while not done:
        left = rho - spent
        if left < 2 * (1 / (2 * deviation**2) + choosing**2 / 8):
            deviation, choosing, done = math.sqrt(1 / (2 * 0.9 * left)), math.sqrt(8 * 0.1 * left), True
        spent += 1 / (2 * deviation**2) + choosing**2 / 8
        limit = model_size * min(1.0, spent / rho)
        cliques = [one.clique for one in measured]
        small = [one for one in downward if mbi.junction_tree.hypothetical_model_size(domain, [*cliques, one]) <= limit]
        errors = []
        for one in small:
            expected = np.asarray(model.project(one).datavector())
            bias = math.sqrt(2 / math.pi) * deviation * expected.size
            errors.append(weight[one] * (np.abs(true[one] - expected).sum() - bias))
        scale = 2 * max(weight.values()) / choosing
        chosen = small[int(np.argmax(np.array(errors) + random.gumbel(0, scale, len(errors))))]
        before = np.asarray(model.project(chosen).datavector())
        measure(chosen)
        model = estimator.estimate(domain, measured, iters=iterations, warm_start=model)
        after = np.asarray(model.project(chosen).datavector())
        print(f"{spent / rho:.3f} {chosen} {time.process_time():.0f}", flush=True)
        if np.abs(after - before).sum() <= deviation * math.sqrt(2 / math.pi) * after.size:
            deviation, choosing = deviation / 2, choosing * 2
    table = model.synthetic_data()
    drawn = table.to_dict() if callable(table.to_dict) else table.to_dict
    return np.stack([np.asarray(drawn[name]) for name in names], axis=1)


if __name__ == "__main__":
    main()
