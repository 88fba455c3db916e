"""The common types of arrays, what floats hold, and the size of the parts in which arrays are processed.

Docstrings state their shapes.
"""

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

#: Floats hold every whole number up to this one, and only some beyond it.
LARGEST_EXACT = 2**53
#: Rows that are processed together, so that they stay in the processor's cache.
CACHED = 2**15
