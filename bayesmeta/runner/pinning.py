"""One thread for numerical libraries, so that bits do not depend on the machine's cores."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

PINNED = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)
"""Environment variables set to 1 in worker processes."""


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """The numerical libraries of this process, looked for again when modules were imported."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def pinned(call: Callable[..., Any], /, *arguments: Any) -> Any:
    """Make a call with one thread for numerical libraries.

    So the bits do not depend on the machine's cores, and processes do not compete for them. Dask
    arrays are computed here, too: the cluster would wait for this call to end, and it for them.
    """
    with ExitStack() as stack:
        stack.enter_context(_libraries(len(sys.modules)).limit(limits=1))
        if "numba" in sys.modules:
            import numba

            stack.callback(numba.set_num_threads, numba.get_num_threads())
            numba.set_num_threads(1)
        if "dask" in sys.modules:
            import dask

            stack.enter_context(dask.config.set(scheduler="synchronous"))
        return call(*arguments)
