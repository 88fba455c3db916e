"""Plain data for JSON."""

from typing import Any

import numpy as np


def finite(content: Any) -> Any:
    """The same plain data with None for infinite numbers and NaN, which JSON does not have."""
    if isinstance(content, dict):
        return {key: finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite(value) for value in content]
    content = content.item() if isinstance(content, np.generic) else content
    return None if isinstance(content, float) and not np.isfinite(content) else content
