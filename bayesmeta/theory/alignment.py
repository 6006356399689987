"""Alignment, the device of the proof: actions and noise that give two learners one posterior.

M starts from N(mu-hat, Sigma-hat), K from the true prior N(mu_*, Sigma_*). For every set of actions
of M there is one of K after which their covariances agree, and for every noise of M one of K after
which their means do.
"""

from __future__ import annotations

import math
from functools import cache
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
    """B = sigma^2 (Sigma_*^-1 - Sigma-hat^-1), eq. (25): positive where Sigma-hat is the wider."""
    gap: Array = noise_sd**2 * (np.linalg.inv(true.cov) - np.linalg.inv(used.cov))
    return (gap + gap.T) / 2


def _grams(actions: Array, gap: Array) -> tuple[Array, Array]:
    """V = A'A and V - B, refused where one is not positive definite."""
    gram: Array = actions.T @ actions
    for name, matrix in (("V", gram), ("V - B", gram - gap)):
        lowest, highest = np.linalg.eigvalsh(matrix)[[0, -1]]
        if not lowest > 1e-15 * highest:
            raise InputError(
                f"{name} is not positive definite (smallest eigenvalue {lowest:.3g}), so no "
                "actions of K align; explore longer, or bring the priors closer"
            )
    return gram, gram - gap


def aligned_actions(actions: Array, gap: Array) -> Array:
    """A^K(A^M) = A V^-1/2 (V - B)^1/2, eq. (26): K's actions that make the covariances equal."""
    gram, rest = _grams(actions, gap)
    moved: Array = actions @ symmetric_power(gram, -0.5) @ symmetric_power(rest, 0.5)
    return moved


def original_actions(actions: Array, gap: Array) -> Array:
    """A^M(A^K) = A^K (V^K)^-1/2 (V^K + B)^1/2, eq. (28): the inverse map."""
    gram = actions.T @ actions
    moved: Array = actions @ symmetric_power(gram, -0.5) @ symmetric_power(gram + gap, 0.5)
    return moved


def aligned_mean(
    used: GaussianPrior,
    true: GaussianPrior,
    noise_sd: float,
    actions: Array,
    noise: Array,
    theta: Array,
) -> Array:
    """mu-tilde, eq. (35): the prior mean that gives K, after A^K(A^M) and M's noise, M's mean."""
    gap = covariance_gap(used, true, noise_sd)
    left = actions - aligned_actions(actions, gap)
    inner = np.linalg.solve(used.cov, used.mean)
    made: Array = true.cov @ (inner + (gap @ theta + left.T @ noise) / noise_sd**2)
    return made


def shift(used: GaussianPrior, true: GaussianPrior, noise_sd: float, theta: Array) -> Array:
    """G = sigma^2 Sigma-hat^-1 (mu-hat - mu_*) + B (theta - mu_*), eq. (39)."""
    first = noise_sd**2 * np.linalg.solve(used.cov, used.mean - true.mean)
    made: Array = first + covariance_gap(used, true, noise_sd) @ (theta - true.mean)
    return made


def aligned_noise(
    used: GaussianPrior,
    true: GaussianPrior,
    noise_sd: float,
    gram: Array,
    noise: Array,
    theta: Array,
) -> Array:
    """S^K(S^M) = G + (V^K + B)^1/2 (V^K)^-1/2 S^M, eq. (40), with S^M = A^K' Xi, V^K = ``gram``."""
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


def jacobian(actions: Array, gap: Array) -> Array:
    """The same by automatic differentiation through PyTensor, a row for each entry of A^K."""
    _grams(actions, gap)
    back = _backwards()
    sides = np.eye(actions.size).reshape(actions.size, *actions.shape)
    return np.stack([back(actions, gap, side).ravel() for side in sides])


@cache
def _backwards() -> Callable[[Array, Array, Array], Array]:
    """The derivative by A of the sum of A^K times weights; a function of A, B and the weights."""
    import pytensor
    import pytensor.tensor as pt

    actions, gap, weights = (pt.dmatrix(name) for name in ("actions", "gap", "weights"))
    gram = actions.T @ actions
    moved = actions @ pt.linalg.inv(_root(gram)) @ _root(gram - gap)
    mode = pytensor.compile.mode.Mode("py", "fast_compile")
    slope = pytensor.grad((moved * weights).sum(), actions)
    made: Callable[[Array, Array, Array], Array] = pytensor.function(
        [actions, gap, weights], slope, mode=mode
    )
    return made


def _root(matrix: Any) -> Any:
    """R = X^1/2 in a graph, with dR from R dR + dR R = dX (lemma "Square root vectorization").
    Eigenvectors have no derivative where eigenvalues are equal, so theirs is not used."""
    import pytensor.tensor as pt
    from pytensor.gradient import disconnected_grad

    still = disconnected_grad(matrix)
    values, vectors = pt.linalg.eigh(still)
    root = (vectors * pt.sqrt(values)) @ vectors.T
    one = pt.eye(matrix.shape[0])
    both = pt.linalg.kron(root, one) + pt.linalg.kron(one, root)
    change = pt.linalg.solve(both, (matrix - still).ravel())
    return root + change.reshape(matrix.shape)


def noise_log_density(noise: Array, gram: Array, noise_sd: float) -> float:
    """log p(S) of S = A'Xi given the actions under the model, N(0, sigma^2 V), V = ``gram``."""
    scale = len(noise) * math.log(2 * math.pi * noise_sd**2) + np.linalg.slogdet(gram)[1]
    return -0.5 * float(_norm_squared(noise, gram) / noise_sd**2 + scale)


def noise_log_density_printed(noise: Array, gram: Array, steps: int) -> float:
    """The same as eq. (43) prints it, log of exp(-|S|^2_{V^-1} / 2) / sqrt((2 pi)^tau det V):
    without sigma, and with tau = ``steps`` where d should be (see the claim noise-density)."""
    scale = steps * math.log(2 * math.pi) + np.linalg.slogdet(gram)[1]
    return -0.5 * float(_norm_squared(noise, gram) + scale)


def noise_log_ratio(noise: Array, moved: Array, gram: Array, noise_sd: float) -> float:
    """log p(S) - log p(S^K), from S and S^K = ``moved`` with the same V^K = ``gram``: term A of
    eq. (46), which prints it as if sigma were 1."""
    apart = _norm_squared(moved, gram) - _norm_squared(noise, gram)
    return 0.5 * apart / noise_sd**2


def _norm_squared(vector: Array, gram: Array) -> float:
    """|S|^2_{V^-1}."""
    return float(vector @ np.linalg.solve(gram, vector))


def action_log_ratio(
    actions: Array, moved: Array, radius: float, cov: Array | None = None
) -> float:
    """log f(A) - log f(A^K), term A of the covariance alignment, eqs. (30)-(32), for a law that is
    constant on the ball of ``radius``, or N(0, ``cov``) truncated to it; infinite where a row of
    A^K is outside. Within the ball the Gaussian's is -Tr(Sigma^-1 B) / 2."""
    inside = [np.linalg.norm(rows, axis=1) <= radius * (1 + 1e-12) for rows in (actions, moved)]
    if not inside[0].all():
        raise InputError(
            f"an action has norm {np.linalg.norm(actions, axis=1).max():.6g}, beyond the radius "
            f"{radius:g}, where its density is 0"
        )
    if not inside[1].all():
        return math.inf
    if cov is None:
        return 0.0
    return -0.5 * float(np.trace(np.linalg.solve(cov, actions.T @ actions - moved.T @ moved)))
