"""The common types of arrays, and the size of the parts in which they are processed; docstrings state their shapes."""

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

#: Rows that are processed together, so that they stay in the processor's cache.
CACHED = 2**15
