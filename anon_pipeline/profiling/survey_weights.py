"""The weights of a survey: how many people a row stands for, which nobody knows of a person, and which is no measure.

Names of well-known surveys say so by themselves. A column that is only called a weight may say how heavy people are.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from anon_pipeline.profiling.column_names import named_by

#: Names of weights: of surveys in general, then of CPS, IPUMS, ACS, NHANES, NHIS, BRFSS, ESS, GSS, PISA, TIMSS, SOEP.
WEIGHTS = (
    *("fnlwgt", "finalwgt", "finalwt*", "final weight", "finalweight", "final wt", "weight final", "wgt", "wgts"),
    *("wght*", "dweight*", "pweight*", "pwgt*", "pwt", "sampwt*", "samplewt*", "sampweight*", "sampleweight*"),
    *("surveyweight*", "surveywt*", "design weight*", "sampling weight*", "sample weight*", "survey weight*"),
    *("household weight*", "hhweight*", "hhwt*", "hhwgt*", "person wt", "household wt", "hh wt", "sample wt"),
    *("ponderat*", "hochrechnung*", "wtfinl", "hwtfinl", "asecwt*", "earnwt*", "perwt*", "perweight*", "repwt*"),
    *("repwgt*", "wtmec*", "wtint*", "wtfa", "llcpwt*", "pspwght*", "anweight*", "wtss*", "fstuwt*", "senwt*"),
    *("totwgt*", "houwgt*", "senwgt*", "phrf*", "hhrf*"),
)
#: Names of a weight of whatever kind, and words beside them that say that bodies were weighed.
ANY_WEIGHT = ("wt", "wts", "weight", "weights", "gewicht*", "poids", "peso", "pesos")
OF_BODIES = ("birth*", "body", "baby", "kg", "kgs", "g", "gram*", "lb", "lbs", "pound*", "oz", "geburt*", "korper*")

#: Nobody is as heavy as this, in kilograms or pounds; and weights of a sample that are scaled have a mean of 1.
HEAVIEST, SCALED = 400.0, (0.9, 1.1)

WEIGHT_BY_NAME = "by its name a weight of the sample"
NAMED_IN_A_SPEC = "`sampling_weight` in a spec names it"
#: The question about a column that may be either.
AS_WEIGHT = "exclude is proposed, as of a weight of the sample; if bodies were weighed, quasi_identifier groups it"


def weight_of_sample(name: str, column: pa.ChunkedArray) -> tuple[str, str | None] | None:
    """Why numbers are taken for weights of the sample, and what a person must decide; None where they are not."""
    if named_by(name, WEIGHTS):
        return WEIGHT_BY_NAME, None
    if not named_by(name, ANY_WEIGHT) or named_by(name, OF_BODIES):
        return None
    numbers = pd.to_numeric(column.drop_null().to_pandas(), errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers) or numbers.min() < 0:
        return None
    mean = float(numbers.mean())
    if SCALED[0] <= mean <= SCALED[1]:
        return f"{WEIGHT_BY_NAME} and its mean near 1", None
    if mean > HEAVIEST:
        return "by its name a weight, and too large for that of a person", AS_WEIGHT
    return None
