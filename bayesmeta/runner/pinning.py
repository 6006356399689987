"""One thread for numerical libraries, so that bits do not depend on the machine's cores."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

PINNED = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)
"""Environment variables set to 1 in worker processes."""


def pinned(call: Callable[..., Any], /, *arguments: Any) -> Any:
    """Make a call with one thread for numerical libraries.

    So the bits do not depend on the machine's cores, and processes do not compete for them. Dask
    arrays are computed here, too: the cluster would wait for this call to end, and it for them.
    """
    from threadpoolctl import threadpool_limits

    with ExitStack() as stack:
        stack.enter_context(threadpool_limits(1))
        if "numba" in sys.modules:
            import numba

            stack.callback(numba.set_num_threads, numba.get_num_threads())
            numba.set_num_threads(1)
        if "dask" in sys.modules:
            import dask

            stack.enter_context(dask.config.set(scheduler="synchronous"))
        return call(*arguments)
