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
