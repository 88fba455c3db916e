"""AIM (R. McKenna, B. Mullins, D. Sheldon and G. Miklau, PVLDB 15(11), 2022) as implemented by dpmm with mbi.

    python dpmm_aim.py people.npz synthetic.npz EPSILON DELTA MEGABYTES DEGREE SEED

`people.npz` has `codes`, shape (n, d), and `sizes`; `synthetic.npz` gets `codes` and the processor `seconds`.
"""

import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from dpmm.models.aim import AIMGM


def main(people: Path, synthetic: Path, epsilon: float, delta: float, megabytes: float, degree: int, seed: int) -> None:
    read = np.load(people)
    frame = pd.DataFrame(read["codes"].astype(int), columns=[f"c{place}" for place in range(len(read["sizes"]))])
    start = time.process_time()
    model = AIMGM(epsilon=epsilon, delta=delta, compress=True, max_model_size=megabytes, degree=degree, n_jobs=1)
    model.set_random_state(np.random.RandomState(seed))
    model.set_domain({name: int(size) for name, size in zip(frame.columns, read["sizes"], strict=True)})
    model.fit(frame)
    drawn = model.generate(n_records=len(frame))[frame.columns].to_numpy()
    np.savez(synthetic, codes=drawn, seconds=time.process_time() - start)


if __name__ == "__main__":
    people, synthetic, epsilon, delta, megabytes, degree, seed = sys.argv[1:]
    main(Path(people), Path(synthetic), float(epsilon), float(delta), float(megabytes), int(degree), int(seed))
