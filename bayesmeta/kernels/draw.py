"""Drawing tasks and their action sets; ``pcg`` says what a source of random numbers is."""

from __future__ import annotations

import math

import numpy as np

from bayesmeta.kernels.jit import kernel
from bayesmeta.kernels.pcg import fill_exponentials, fill_normals


@kernel
def uniform_ball(source, radius, out):
    """Fill ``out`` (steps, d, K) with actions uniform in the ball of the given radius.

    A point uniform on the sphere in d + 2 dimensions has its first d coordinates uniform in the
    unit ball; the two left out enter only by their squared length, an exponential variable.
    """
    steps, d, count = out.shape
    fill_normals(source, out.reshape(-1))
    scale = np.empty(count)
    for t in range(steps):
        fill_exponentials(source, scale)
        for k in range(count):
            scale[k] *= 2.0
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


@kernel
def tasks_of_ball(source, radius, normals, noise, actions):
    """Draw what tasks with actions from the ball need, one task after another."""
    for n in range(normals.shape[0]):
        fill_normals(source, normals[n])
        fill_normals(source, noise[n])
        uniform_ball(source, radius, actions[n])


@kernel
def best_of_tasks(actions, thetas, best):
    """``best_rewards`` of one task after another."""
    for n in range(thetas.shape[0]):
        best_rewards(actions[n], thetas[n], best[n])
