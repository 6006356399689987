"""The constants of the paper, each a function of plain numbers."""

from __future__ import annotations

import math


def exploration_length(dim: int, tasks: int, horizon: int, radius: float, action_min: float) -> int:
    """tau of eq. (8), max{d, 8 a^2 / lambda_A ln(d^2 N^2 T)}, rounded up to whole steps."""
    bound = 8 * radius**2 / action_min * math.log(dim**2 * tasks**2 * horizon)
    return math.ceil(max(dim, bound))


def widening_constant(dim: int, noise_sd: float, action_min: float, prior_max: float) -> float:
    """c_w below eq. (12), 50 (2 sigma^2 / (lambda_A d) + lambda_max bound of Sigma_*)."""
    return 50 * (2 * noise_sd**2 / (action_min * dim) + prior_max)


def mean_radius(
    dim: int, noise_sd: float, action_min: float, prior_max: float, n: int, eta: float
) -> float:
    """sqrt(f_m delta) of the event E_m before the n-th task: the error of the mean is at most this
    with probability 1 - eta (lemma "Mean estimation error"); E_m has eta = 1 / (d n T)."""
    each = 2 * noise_sd**2 / (action_min * dim) + prior_max
    return math.sqrt(3 * each * (dim - math.log(eta)) / (n - 1))


def covariance_radius(
    dim: int, noise_sd: float, action_min: float, prior_max: float, n: int, eta: float
) -> float:
    """Half of sqrt(f_s delta) of the event E_s: the error of eq. (11), not yet widened, is at most
    this with probability 1 - 6 eta (lemma "Covariance estimation error"); E_s has
    eta = 1 / (d n T)."""
    each = widening_constant(dim, noise_sd, action_min, prior_max)
    return each * math.sqrt((5 * dim - 2 * math.log(eta)) / (n - 1))
