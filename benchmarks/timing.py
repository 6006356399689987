"""Seconds of pieces of work that alternate, round by round, and how a cost grows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

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


def growth(
    sizes: Sequence[int], prepare: Callable[[int], Callable[[], object]], count: int = 5
) -> dict[str, Any]:
    """Seconds in the size (the fastest of ``count`` rounds), and the exponent: the slope of a line
    through their logarithms."""
    found = [float(rounds(count, prepare(size)).min()) for size in sizes]
    return {"sizes": list(sizes), "seconds": found, "exponent": exponent(sizes, found)}


def exponent(sizes: Sequence[int], cost: Sequence[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(cost), 1)[0])
