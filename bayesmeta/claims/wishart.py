"""Deviations of Wishart matrices, the law of the covariance estimate at the edge of E_v.

At the edge of E_v with Sigma_* = lambda_max I every task's estimate is N(mu_*, s2 I), where s2 =
2 sigma^2/(lambda_A d) + lambda_max, whatever sigma is; then sums of squares are Wishart.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import chi2

from bayesmeta.theory.constants import burn_in


def first_n(d: int, horizon: int) -> int:
    """The first n of Lemma M-QB, n > 10d + 4 ln(16dT)."""
    return math.floor(burn_in(d, horizon)) + 1


def deviation(d: int, k: int, far: float) -> tuple[float, float]:
    """Bounds on log P(|W/k - I| > far) for W Wishart with k degrees of freedom: equal for d = 1.

    Below: one direction is chi-squared. Above: a net of 9^d directions, in one of which half the
    norm is reached.
    """

    def one(far: float) -> float:
        low = chi2.logcdf(k * (1 - far), k) if far < 1 else -math.inf
        return float(np.logaddexp(chi2.logsf(k * (1 + far), k), low))

    if d == 1:
        return one(far), one(far)
    return one(far), min(0.0, d * math.log(9) + one(far / 2))


def explored_inverses(rng: np.random.Generator, d: int, steps: int, wanted: int) -> np.ndarray:
    """V^-1 of ``steps`` actions from the unit ball given E_v, by rejection, lambda_A = 1/(d + 2):
    slow where E_v is rare."""
    kept: list[np.ndarray] = []
    while sum(map(len, kept)) < wanted:
        raw = rng.standard_normal((wanted, steps, d))
        raw *= rng.random((wanted, steps, 1)) ** (1 / d) / np.linalg.norm(raw, axis=2)[..., None]
        gram = np.einsum("nti,ntj->nij", raw, raw)
        kept.append(np.linalg.inv(gram[np.linalg.eigvalsh(gram)[:, 0] >= d / (2 * (d + 2))]))
    return np.concatenate(kept)[:wanted]
