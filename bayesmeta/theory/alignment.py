"""The device of the proof: actions and noise that bring two learners to the same posterior.

M starts from N(mu-hat, Sigma-hat), K from the true prior N(mu_*, Sigma_*). For every set of actions
of M there is one of K after which their covariances agree, and for every noise of M one of K after
which their means do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.checks import Array, InputError
from bayesmeta.gaussian import GaussianPrior

if TYPE_CHECKING:
    from collections.abc import Callable


def symmetric_power(matrix: Array, power: float) -> Array:
    """A power of a symmetric positive (semi)definite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    made: Array = (vectors * np.maximum(values, 0.0) ** power) @ vectors.T
    return made


def covariance_gap(used: GaussianPrior, true: GaussianPrior, noise_sd: float) -> Array:
    """B = sigma^2 (Sigma_*^-1 - Sigma-hat^-1): positive where Sigma-hat is the wider."""
    gap: Array = noise_sd**2 * (np.linalg.inv(true.cov) - np.linalg.inv(used.cov))
    return (gap + gap.T) / 2


def aligned_actions(actions: Array, gap: Array) -> Array:
    """A^K(A^M) = A V^-1/2 (V - B)^1/2: K's actions that make the covariances equal."""
    gram = actions.T @ actions
    values = np.linalg.eigvalsh(gram - gap)
    if values[0] <= 0:
        raise InputError(
            f"V - B is not positive definite (smallest eigenvalue {values[0]:.3g}), so no actions "
            "of K align; explore longer, or bring the priors closer"
        )
    moved: Array = actions @ symmetric_power(gram, -0.5) @ symmetric_power(gram - gap, 0.5)
    return moved


def original_actions(actions: Array, gap: Array) -> Array:
    """A^M(A^K) = A^K (V^K)^-1/2 (V^K + B)^1/2, the inverse map."""
    gram = actions.T @ actions
    moved: Array = actions @ symmetric_power(gram, -0.5) @ symmetric_power(gram + gap, 0.5)
    return moved


def aligned_mean(
    used: GaussianPrior, true: GaussianPrior, noise_sd: float, actions: Array, noise: Array,
    theta: Array,
) -> Array:  # fmt: skip
    """mu-tilde: the prior mean with which K, after A^K(A^M) and the noise of M, has M's mean."""
    gap = covariance_gap(used, true, noise_sd)
    left = actions - aligned_actions(actions, gap)
    inner = np.linalg.solve(used.cov, used.mean)
    made: Array = true.cov @ (inner + (gap @ theta + left.T @ noise) / noise_sd**2)
    return made


def shift(used: GaussianPrior, true: GaussianPrior, noise_sd: float, theta: Array) -> Array:
    """G = sigma^2 Sigma-hat^-1 (mu-hat - mu_*) + B (theta - mu_*)."""
    first = noise_sd**2 * np.linalg.solve(used.cov, used.mean - true.mean)
    made: Array = first + covariance_gap(used, true, noise_sd) @ (theta - true.mean)
    return made


def aligned_noise(
    used: GaussianPrior, true: GaussianPrior, noise_sd: float, gram: Array, noise: Array,
    theta: Array,
) -> Array:  # fmt: skip
    """S^K(S^M) = G + (V^K + B)^1/2 (V^K)^-1/2 S^M, from S^M = A^K' Xi and V^K = ``gram``."""
    gap = covariance_gap(used, true, noise_sd)
    turn = symmetric_power(gram + gap, 0.5) @ symmetric_power(gram, -0.5)
    made: Array = shift(used, true, noise_sd, theta) + turn @ noise
    return made


def posterior_after(
    prior: GaussianPrior, noise_sd: float, gram: Array, noise: Array, theta: Array
) -> tuple[Array, Array]:
    """Mean and covariance after actions with this gram and noise A'Xi, in a task theta, eq. (4)."""
    mean, cov = prior.posterior(gram, gram @ theta + noise, noise_sd)
    return mean, cov


def jacobian_by_differences(actions: Array, gap: Array, step: float = 1e-5) -> Array:
    """d vec A^K / d vec A^M by central differences, (tau d, tau d)."""
    flat, columns = actions.ravel(), []
    for i in range(flat.size):
        size = step * max(1.0, float(np.abs(flat).max()))
        up, down = flat.copy(), flat.copy()
        up[i] += size
        down[i] -= size
        ends = [aligned_actions(one.reshape(actions.shape), gap).ravel() for one in (up, down)]
        columns.append((ends[0] - ends[1]) / (2 * size))
    return np.stack(columns, axis=1)


_JACOBIANS: dict[tuple[int, ...], Callable[[Array, Array], Any]] = {}


def jacobian(actions: Array, gap: Array) -> Array:
    """The same by automatic differentiation through PyTensor; a function of the shape is kept."""
    import pytensor
    import pytensor.tensor as pt

    if actions.shape not in _JACOBIANS:
        given, between = pt.dmatrix("actions"), pt.dmatrix("gap")

        def root(matrix: Any, inverse: bool) -> Any:
            values, vectors = pt.linalg.eigh(matrix)
            powers = 1 / pt.sqrt(values) if inverse else pt.sqrt(values)
            return (vectors * powers) @ vectors.T

        gram = given.T @ given
        moved = given @ root(gram, True) @ root(gram - between, False)
        flat = moved.ravel()
        size = actions.size
        rows = pt.stack([pytensor.grad(flat[i], given).ravel() for i in range(size)])
        _JACOBIANS[actions.shape] = pytensor.function(
            [given, between], rows, mode=pytensor.compile.mode.Mode("py", "fast_compile")
        )
    found: Array = _JACOBIANS[actions.shape](actions, gap)
    return found
