"""How every kernel is compiled: cached on disk, IEEE division instead of Python's exceptions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba


def _sources() -> str:
    """A hash of every file that holds kernels."""
    root = Path(__file__).parent.parent
    files = sorted([*root.glob("kernels/*.py"), *root.glob("estimators/*.py")])
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


_STAMP = _sources()


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile for speed without changing results: no fast-math, so bits do not depend on luck."""
    compiled: Any = numba.njit(cache=True, error_model="numpy")(function)
    # numba's cache asks only whether the function's own file changed, and would go on using the
    # old code of a kernel called from another file; ask for all of them
    compiled._cache._cache_file._source_stamp = _STAMP
    out: Callable[..., Any] = compiled
    return out
