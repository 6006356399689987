"""How every kernel is compiled: cached on disk, IEEE division instead of Python's exceptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile for speed without changing results: no fast-math, so bits do not depend on luck."""
    compiled: Callable[..., Any] = numba.njit(cache=True, error_model="numpy")(function)
    return compiled
