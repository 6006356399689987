"""The collapsed likelihood with its gradients, for samplers; and tasks one by one given a prior."""

from __future__ import annotations

import math

import numpy as np

from bayesmeta.kernels.estep import estep
from bayesmeta.kernels.jit import kernel

_LOG_2PI = math.log(2 * math.pi)


@kernel
def value_and_gradients(mean, root, noise_sd, grams, moments, energy, steps):
    """Log-likelihood of N(mean, root root') and noise, theta integrated out, and its gradients.

    In the mean, in the lower triangle of ``root``, and in ``noise_sd``; Fisher's identity, from the
    sums of ``estep``. Statistics are laid out as there; ``steps`` counts all rewards.
    """
    d = mean.shape[0]
    none = np.empty((0, 0))
    tau = 1.0 / (noise_sd * noise_sd)
    logs, quad, s, ss, w = estep(grams, moments, energy, mean, root, tau, False, none, none)
    inner = np.empty((d, d))  # twice the gradient in Sigma
    row = 0
    for i in range(d):
        for j in range(i + 1):
            inner[i, j] = inner[j, i] = ss[row] - w[row]
            row += 1
    gradient = np.zeros((d, d))
    trace = 0.0
    for i in range(d):
        for j in range(i + 1):
            total = 0.0
            for q in range(j, d):
                total += inner[i, q] * root[q, j]
            gradient[i, j] = total
    for j in range(d):  # tr(Sigma inner) = tr(root' inner root)
        for i in range(j, d):
            for q in range(j, d):
                trace += root[i, j] * inner[i, q] * root[q, j]
    value = -0.5 * (steps * (_LOG_2PI + 2 * math.log(noise_sd)) + logs + quad)
    return value, s, gradient, (quad - trace - steps) / noise_sd


@kernel
def tasks_given_priors(
    gram, moment, energy, count, means, roots, noise_sds, normals, thetas, values
):
    """For every prior in turn: a draw of every theta_j from its posterior, and the log-likelihood
    of every task, theta_j integrated out.

    With Sigma = L L', M = I + L'VL/sigma^2 = R R' and y = R^-1 L'(A'x - V mu)/sigma^2, the
    posterior of theta is mu + L R'^-1 (y + z), z standard normal. ``normals`` and ``thetas`` are
    (priors, n, d), ``values`` is (priors, n); any of them may have no rows, and is then left out.
    """
    n, d = moment.shape
    m, w, y, lv = np.empty((d, d)), np.empty(d), np.empty(d), np.empty((d, d))
    for p in range(means.shape[0]):
        root, mean = roots[p], means[p]
        tau = 1.0 / (noise_sds[p] * noise_sds[p])
        for k in range(n):
            quad = tau * energy[k]
            for i in range(d):
                total = moment[k, i]
                quad -= tau * mean[i] * total
                for j in range(d):
                    total -= gram[k, i, j] * mean[j]
                w[i] = tau * total
                quad -= mean[i] * w[i]
            for i in range(d):  # tau L'V
                for j in range(d):
                    total = 0.0
                    for q in range(i, d):
                        total += root[q, i] * gram[k, q, j]
                    lv[i, j] = tau * total
            logs = 0.0
            for j in range(d):
                for i in range(j, d):
                    total = 1.0 if i == j else 0.0
                    for q in range(j, d):
                        total += lv[i, q] * root[q, j]
                    for q in range(j):
                        total -= m[i, q] * m[j, q]
                    m[i, j] = total
                pivot = math.sqrt(m[j, j])
                logs += 2 * math.log(pivot)
                for i in range(j, d):
                    m[i, j] /= pivot
            for i in range(d):
                total = 0.0
                for q in range(i, d):
                    total += root[q, i] * w[q]
                for q in range(i):
                    total -= m[i, q] * y[q]
                y[i] = total / m[i, i]
                quad -= y[i] * y[i]
            if values.shape[0]:
                constant = count[k] * (_LOG_2PI - math.log(tau))
                values[p, k] = -0.5 * (constant + logs + quad)
            if thetas.shape[0]:
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
