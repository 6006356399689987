"""Seconds of pieces of work that alternate, round by round."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def rounds(count: int, *works: Callable[[], object]) -> np.ndarray:
    """Seconds of each work in each round, (count, works); one round before does not count."""
    for work in works:
        work()
    return np.array([[seconds(work) for work in works] for _ in range(count)])
