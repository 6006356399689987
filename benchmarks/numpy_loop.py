"""A plain NumPy Thompson loop, written for clarity: what the kernel is measured against."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def uniform_ball(
    rng: np.random.Generator, count: int, dim: int, radius: float
) -> NDArray[np.float64]:
    """Actions uniform in a ball."""
    direction = rng.standard_normal((count, dim))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return direction * (radius * rng.random((count, 1)) ** (1 / dim))


def play(
    rng: np.random.Generator,
    theta: NDArray[np.float64],
    priors: list[tuple[NDArray[np.float64], NDArray[np.float64]]],
    steps: int,
    count: int,
    radius: float,
    noise_sd: float,
) -> NDArray[np.float64]:
    """Thompson Sampling from each of the priors on one task; actions are shared by all of them."""
    dim = len(theta)
    precisions = [np.linalg.inv(cov) for _, cov in priors]
    weighted = [precision @ mean for precision, (mean, _) in zip(precisions, priors, strict=True)]
    regret = np.zeros(len(priors))
    for _ in range(steps):
        actions = uniform_ball(rng, count, dim, radius)
        values = actions @ theta
        noise = noise_sd * rng.standard_normal()
        for i in range(len(priors)):
            cov = np.linalg.inv(precisions[i])
            sample = rng.multivariate_normal(cov @ weighted[i], cov)
            k = np.argmax(actions @ sample)
            reward = values[k] + noise
            precisions[i] += np.outer(actions[k], actions[k]) / noise_sd**2
            weighted[i] += actions[k] * reward / noise_sd**2
            regret[i] += values.max() - values[k]
    return regret
