"""Variables that make NumPy, BLAS and the C library compute as on a processor with fewer instructions."""

from __future__ import annotations

import numpy as np


def plain() -> dict[str, str]:
    """The variables under which no instruction beyond those of every processor is used but by BLAS."""
    simd = np.show_config(mode="dicts")["SIMD Extensions"]["found"]  # type: ignore[index]
    return {
        "NPY_DISABLE_CPU_FEATURES": " ".join(simd),
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F,-AVX2_Usable,-FMA_Usable",
    }
