"""Drawing a task's action sets with a NumPy Generator inside numba."""

from __future__ import annotations

import math

import numpy as np

from bayesmeta.kernels.jit import kernel


@kernel
def uniform_ball(rng, radius, out):
    """Fill ``out`` (steps, d, K) with actions uniform in the ball of the given radius.

    A point uniform on the sphere in d + 2 dimensions has its first d coordinates uniform in the
    unit ball; the two left out enter only by their squared length, an exponential variable.
    """
    steps, d, count = out.shape
    flat = out.reshape(-1)
    for n in range(flat.shape[0]):
        flat[n] = rng.standard_normal()
    scale = np.empty(count)
    for t in range(steps):
        for k in range(count):
            scale[k] = 2.0 * rng.standard_exponential()
        for i in range(d):
            for k in range(count):
                scale[k] += out[t, i, k] * out[t, i, k]
        for k in range(count):
            scale[k] = radius / math.sqrt(scale[k])
        for i in range(d):
            for k in range(count):
                out[t, i, k] *= scale[k]


@kernel
def mean_rewards(actions, theta, values, best):
    """values[t, k] = a' theta for every action, and the best of each step."""
    steps, d, count = actions.shape
    for t in range(steps):
        for k in range(count):
            values[t, k] = 0.0
        for i in range(d):
            for k in range(count):
                values[t, k] += theta[i] * actions[t, i, k]
        highest = values[t, 0]
        for k in range(1, count):
            highest = max(highest, values[t, k])
        best[t] = highest
