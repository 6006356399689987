"""Where else a search for the largest likelihood may begin, in small tables.

There the likelihood has several maxima: with little noise and tasks that differ, or much noise and
tasks that do not; with tasks that differ in one direction, or in another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.estimators.likelihood import Packed, rounding, triangle
from bayesmeta.gaussian import lower_root
from bayesmeta.kernels.ascend import Problem, ascend

STARTS = 40
"""Places from which the likelihood is climbed."""
STEPS = 100
"""Steps from each of them at most."""
LEAST = 1e-9
"""A climb ends at a step that gains less."""
LOST = 1e-6
"""Errors of the log-likelihood, by rounding, from which on less noise is not tried."""
RATIO = 1e8
"""Signal to noise beyond which the likelihood is computed with few digits."""


class End(NamedTuple):
    """Where a climb ended: the log-likelihood, a root of Sigma, the noise variance."""

    value: float
    root: Array
    variance: float


def least_noise(energy: float, variance: float) -> float:
    """The noise variance below which a likelihood is in error by ``LOST``, or the first guess."""
    return min(rounding(energy) / LOST, variance)


def elsewhere(
    packed: Packed, variance: float, least: float, free: bool, restricted: bool
) -> list[End]:
    """Ends of climbs from ``STARTS`` places, the highest first, without those beyond ``RATIO``.

    The places are covariances of every size and rank and, where it is free, noise from the first
    guess down to the ``least``, drawn from a fixed seed: the same for every table.
    """
    rng, d = np.random.default_rng(0), packed.dim
    (chunk,) = packed.chunks
    problem = Problem(chunk, packed.steps, 0.0 if free else variance, least, restricted)
    # about the square of a task's theta, in units in which an average gram is 1 / variance
    most = max(float(np.sum(chunk.moments**2)) / (packed.tasks * d * variance**2), 1.0)
    found = []
    for _ in range(STARTS):
        sizes = np.exp(rng.uniform(np.log(1e-2), np.log(10 * most), size=d))
        sizes[rng.integers(1, d + 1) :] = 1e-4
        turned, _ = np.linalg.qr(rng.standard_normal((d, d)))
        x = lower_root((turned * sizes) @ turned.T)[triangle(d)]
        if free:
            x = np.append(x, rng.uniform(np.log(least), np.log(variance)))
        value = ascend(problem, x, STEPS, LEAST)
        noise = max(float(np.exp(x[-1])), least) if free else variance
        root = np.zeros((d, d))
        root[triangle(d)] = x[: d * (d + 1) // 2]
        signal = float(np.sum(root**2)) * variance / noise
        if np.isfinite(value) and signal < RATIO:
            found.append(End(value, root, noise))
    return sorted(found, key=lambda one: -one.value)
