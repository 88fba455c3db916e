"""The types of arrays that stand everywhere, and in how large parts; shapes are stated where an array is described."""

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

#: Rows that are worked on together, so that they stay in the processor's cache.
CACHED = 2**15
