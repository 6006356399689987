"""Policies that look one observation ahead: the knowledge gradient, and two steps at a time."""

from __future__ import annotations

import math

import numpy as np

from bayesmeta.kernels.jit import kernel


@kernel
def look_ahead(belief, actions, row, draws, step, rewarded, scores):
    """argmax over a of the mean over draws of max_b b' m', where m' is the posterior mean after one
    more reward y of a; with ``rewarded``, of y + max_b b' m'.

    y ~ N(a'm, s) with s = a'Ca + sigma^2, and m' = m + C a (y - a'm) / s. All actions share the
    step's normals. On entry ``scores`` holds a'm for every action.
    """
    _, d, count = actions.shape
    root, size = belief.root, draws.shape[1]
    half = np.zeros((count, d))
    for k in range(count):
        for i in range(d):
            for j in range(i, d):
                half[k, i] += root[i, j] * actions[row, j, k]
    best, highest = 0, -math.inf
    slopes = np.empty(count)
    for a in range(count):
        square = belief.variance
        for i in range(d):
            square += half[a, i] * half[a, i]
        sd = math.sqrt(square)
        for b in range(count):
            slopes[b] = 0.0
            for i in range(d):
                slopes[b] += half[b, i] * half[a, i]
            slopes[b] /= sd
        value = 0.0
        for n in range(size):
            z = draws[step, n]
            top = -math.inf
            for b in range(count):
                top = max(top, scores[b] + slopes[b] * z)
            value += top
            if rewarded:
                value += scores[a] + sd * z
        if value > highest:
            best, highest = a, value
    return best
