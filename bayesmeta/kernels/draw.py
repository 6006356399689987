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
def best_rewards(actions, theta, best):
    """best[t] = the highest mean reward a' theta of the actions on offer at step t."""
    steps, d, count = actions.shape
    values = np.empty(count)
    for t in range(steps):
        for k in range(count):
            values[k] = 0.0
        for i in range(d):
            for k in range(count):
                values[k] += theta[i] * actions[t, i, k]
        highest = values[0]
        for k in range(1, count):
            highest = max(highest, values[k])
        best[t] = highest
