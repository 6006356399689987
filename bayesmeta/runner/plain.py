"""Plain data: what JSON can hold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def without_nan(value: Any) -> Any:
    """Plain data as JSON knows it: numbers that are not finite become null, tuples lists."""
    if isinstance(value, dict):
        return {str(key): without_nan(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plain(value: Any) -> Any:
    """For JSON: a number of NumPy's as one of Python's; nothing else is plain data."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is not plain data")
