"""Refuses to compute on a Dask worker whose source of this package is not the driver's.

Workers are sent the text of this file and of ``kernels/sources.py``, so that the check is the same
where the package is older or was changed. It imports nothing of ours.
"""

from __future__ import annotations

import pickle
import time
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

MARK = "bayesmeta: other source"
"""First argument of the error; then address, version and digest of the worker."""
FRESH = 1.0
"""Seconds for which a digest of the files is believed."""


def guarded(sources: str, expected: str, call: bytes) -> Any:
    """On a worker: load a pickled call, which makes it, unless the source differs.

    Neither the files as they are, nor as they were at the first call: they may have been loaded
    since, and a worker goes on with what it has loaded.
    """
    from distributed import get_worker

    worker = get_worker()
    seen = vars(worker).setdefault("_bayesmeta_source", {"at": -FRESH})
    now = time.monotonic()
    if now - seen["at"] >= FRESH:
        seen["now"] = digest_here(sources)
        seen.setdefault("first", seen["now"])
        seen["at"] = now
    for found in (seen["first"], seen["now"]):
        if found not in (expected, None):  # None: not installed, which loading the call will say
            raise RuntimeError(MARK, worker.address, version_here(), found)
    return pickle.loads(call)


def digest_here(sources: str) -> str | None:
    """The digest of this process's package, as the driver's ``kernels/sources.py`` computes it."""
    spec = find_spec("bayesmeta")
    if spec is None or spec.origin is None:
        return None
    file = spec.origin.replace("__init__.py", "kernels/sources.py")
    space: dict[str, Any] = {"__name__": "sources", "__file__": file}
    exec(sources, space)
    return str(space["digest"]())


def version_here() -> str:
    """The installed version of the package."""
    try:
        return version("bayesmeta")
    except PackageNotFoundError:
        return "of unknown version"
