"""Plain data as JSON takes it."""

from typing import Any

import numpy as np


def finite(content: Any) -> Any:
    """The same plain data with every number that is not finite, or not a number, as None: JSON has no infinity."""
    if isinstance(content, dict):
        return {key: finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite(value) for value in content]
    content = content.item() if isinstance(content, np.generic) else content
    return None if isinstance(content, float) and not np.isfinite(content) else content
