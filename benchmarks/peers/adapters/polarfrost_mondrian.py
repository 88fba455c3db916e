"""polarfrost: Mondrian on a Polars LazyFrame; its PySpark path is not used; pyspark is only imported."""

import numpy as np
import pandas as pd
import polars as pl
from polarfrost import mondrian_k_anonymity
from protocol import CATEGORICAL, QUASI_IDENTIFIERS, Run, by_partition

run = Run()
people = pl.from_pandas(run.people[QUASI_IDENTIFIERS].assign(row=np.arange(len(run.people)))).lazy()
with run.measured():
    released = mondrian_k_anonymity(people, QUASI_IDENTIFIERS, "row", run.k, CATEGORICAL)
partitions = [np.array(rows.split(","), dtype=np.int64) for rows in released["row"]]
run.write(*by_partition(partitions, pd.DataFrame(released.to_dict(as_series=False))))
