"""The collapsed likelihood with its gradients, for samplers; and tasks one by one given a prior."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bayesmeta.kernels.estep import estep_value, sums_of_tasks
from bayesmeta.kernels.jit import helper, inlined, kernel
from bayesmeta.kernels.layout import EachTask, Parameters

_LOG_2PI = math.log(2 * math.pi)


class Data(NamedTuple):
    """All tasks, in coordinates ``frame`` @ theta, and how many rewards they have."""

    chunk: Any
    frame: Any
    steps: Any


class ValueAndGradients(NamedTuple):
    """A log-likelihood and its gradients in the mean, in the root and in ``noise_sd``."""

    value: Any
    mean: Any
    root: Any
    noise_sd: Any


@kernel
def value_and_gradients(mean, root, noise_sd, data):
    """Log-likelihood of N(mean, root root') and noise, theta integrated out, and its gradients.

    In the mean, in the lower triangle of ``root``, and in ``noise_sd``; Fisher's identity, from the
    sums of ``estep``. ``data`` is in coordinates of its own, ``frame`` @ theta.
    """
    d, frame = mean.shape[0], data.frame
    none = np.empty((0, 0))
    at = _in_frame(mean, root, noise_sd, frame)
    sums = sums_of_tasks(data.chunk, at, EachTask(none, none))
    inner = np.empty((d, d))  # twice the gradient in Sigma, in the frame
    row = 0
    for i in range(d):
        for j in range(i + 1):
            inner[i, j] = inner[j, i] = sums.squares[row] - sums.weights[row]
            row += 1
    along, trace = np.zeros((d, d)), 0.0
    for i in range(d):
        for j in range(d):
            for q in range(j, d):
                along[i, j] += inner[i, q] * at.root[q, j]
            if i >= j:
                trace += at.root[i, j] * along[i, j]  # tr(Sigma inner) = tr(root' inner root)
    gradient, slope = np.zeros((d, d)), np.zeros(d)
    for i in range(d):  # back by the transpose of the frame, a lower triangle
        for q in range(i, d):
            slope[i] += frame[q, i] * sums.scores[q]
            for j in range(i + 1):
                gradient[i, j] += frame[q, i] * along[q, j]
    value = _value(sums.logs, sums.quad, noise_sd, data.steps)
    noise = (sums.quad - trace - data.steps) / noise_sd
    return ValueAndGradients(value, slope, gradient, noise)


@kernel
def value_alone(mean, root, noise_sd, data):
    """The value of ``value_and_gradients``, at a third of its cost or less."""
    at = _in_frame(mean, root, noise_sd, data.frame)
    logs, quad = estep_value(data.chunk, at, np.empty(0))
    return _value(logs, quad, noise_sd, data.steps)


@kernel
def value_of_each(mean, root, noise_sd, data, each):
    """Leave in ``each`` what every task adds to -2 times the log-likelihood, but for the constant
    of its steps; tasks stand as in ``data.chunk``."""
    estep_value(data.chunk, _in_frame(mean, root, noise_sd, data.frame), each)


@inlined
def _value(logs, quad, noise_sd, steps):
    return -0.5 * (steps * (_LOG_2PI + 2 * math.log(noise_sd)) + logs + quad)


@helper
def _in_frame(mean, root, noise_sd, frame):
    """Parameters in coordinates ``frame`` @ theta, where ``frame`` is a lower triangle."""
    d = mean.shape[0]
    own_mean, own_root = np.zeros(d), np.zeros((d, d))
    for i in range(d):
        for q in range(i + 1):
            own_mean[i] += frame[i, q] * mean[q]
            for j in range(q + 1):
                own_root[i, j] += frame[i, q] * root[q, j]
    return Parameters(own_mean, own_root, 1.0 / (noise_sd * noise_sd))


class Tasks(NamedTuple):
    """Statistics of n tasks: (n, d, d), (n, d), (n,), (n,)."""

    gram: Any
    moment: Any
    energy: Any
    count: Any


class Priors(NamedTuple):
    """Means (priors, d), lower roots (priors, d, d) and noise (priors,)."""

    means: Any
    roots: Any
    noise_sds: Any


@kernel
def thetas_given_priors(tasks, priors, normals, thetas):
    """For every prior in turn: a draw of every theta_j from its posterior.

    With Sigma = L L', M = I + L'VL/sigma^2 = R R' and y = R^-1 L'(A'x - V mu)/sigma^2, the
    posterior of theta is mu + L R'^-1 (y + z), z standard normal. ``normals`` and ``thetas`` are
    (priors, n, d).
    """
    gram, moment = tasks.gram, tasks.moment
    n, d = moment.shape
    m, w, y, lv = np.empty((d, d)), np.empty(d), np.empty(d), np.empty((d, d))
    for p in range(priors.means.shape[0]):
        root, mean, noise_sd = priors.roots[p], priors.means[p], priors.noise_sds[p]
        tau = 1.0 / (noise_sd * noise_sd)
        for k in range(n):
            for i in range(d):
                total = moment[k, i]
                for j in range(d):
                    total -= gram[k, i, j] * mean[j]
                w[i] = tau * total
            _factor(gram, k, root, tau, lv, m)
            for i in range(d):
                total = 0.0
                for q in range(i, d):
                    total += root[q, i] * w[q]
                for q in range(i):
                    total -= m[i, q] * y[q]
                y[i] = total / m[i, i]
            for i in range(d - 1, -1, -1):  # u = R'^-1 (y + z)
                total = y[i] + normals[p, k, i]
                for q in range(i + 1, d):
                    total -= m[q, i] * w[q]
                w[i] = total / m[i, i]
            for i in range(d):
                total = mean[i]
                for q in range(i + 1):
                    total += root[i, q] * w[q]
                thetas[p, k, i] = total


@inlined
def _factor(gram, k, root, tau, lv, m):
    """Write tau L'V of task k to ``lv`` and R, with R R' = I + tau L'VL, to ``m``."""
    d = root.shape[0]
    for i in range(d):
        for j in range(d):
            total = 0.0
            for q in range(i, d):
                total += root[q, i] * gram[k, q, j]
            lv[i, j] = tau * total
    for j in range(d):
        for i in range(j, d):
            total = 1.0 if i == j else 0.0
            for q in range(j, d):
                total += lv[i, q] * root[q, j]
            for q in range(j):
                total -= m[i, q] * m[j, q]
            m[i, j] = total
        pivot = math.sqrt(m[j, j])
        for i in range(j, d):
            m[i, j] /= pivot
