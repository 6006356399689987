"""What the data can tell about Sigma and the noise: expected information, standard errors.

Everything is in the p = d (d + 1) / 2 entries of the lower triangle of Sigma = sum of sigma_a E_a,
where E_a has a one at the entry a and at its mirror image. Sums over tasks of W_a W_b, a (p, p)
matrix, contain all traces of W E_a W E_b.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Array
from bayesmeta.estimators.likelihood import Each, Packed, Point, full, places, products, triangle
from bayesmeta.kernels.estep import second_pass
from bayesmeta.kernels.profile import best_root

DETERMINED = 1e-9
"""The least eigenvalue of an information scaled to a unit diagonal with which all is determined."""


class Found(Protocol):
    """Where a search ended."""

    packed: Packed
    point: Point
    variance: float
    own: int
    """how many features differ between tasks: the first"""
    free: bool
    restricted: bool
    each: Each

    @property
    def cov(self) -> Array: ...


class _Quads(NamedTuple):
    """For entries (a, b) and (c, d): where ac, bd, ad and bc are in a triangle; and, for each
    entry, a half on the diagonal and one elsewhere."""

    ac: NDArray[np.intp]
    bd: NDArray[np.intp]
    ad: NDArray[np.intp]
    bc: NDArray[np.intp]
    half: Array


@lru_cache(maxsize=4)
def _quads(d: int) -> _Quads:
    (a, b), place = triangle(d), places(d)
    return _Quads(
        place[np.ix_(a, a)],
        place[np.ix_(b, b)],
        place[np.ix_(a, b)],
        place[np.ix_(b, a)],
        np.where(a == b, 0.5, 1.0),
    )


def traces(sums: Array, d: int) -> Array:
    """The sum of tr(W E_a Z E_b) + tr(Z E_a W E_b), halved, from a symmetric matrix of the sums of
    (W_a Z_b + Z_a W_b) / 2."""
    ac, bd, ad, bc, half = _quads(d)
    out: Array = (sums[ac, bd] + sums[ad, bc]) * np.outer(half, half)
    return out


def weights_of(point: Point, d: int) -> list[Array]:
    """W of every task and the first d features, (p, n) a chunk."""
    return [one.weights[: d * (d + 1) // 2] for one in point.tasks]


def expected_information(found: Found, d: int) -> Array:
    """Of (the triangle of Sigma, sigma^2): half the traces of Omega^-1 dOmega Omega^-1 dOmega,
    which are traces of W alone. For entries of the first d features, Sigma being 0 elsewhere."""
    point, variance = found.point, found.variance
    weights = weights_of(point, d)
    both = traces(products(weights, weights, found.each), d)
    lower, half = triangle(d), _quads(d).half
    sigma = found.cov[lower]
    second = (half * point.information[lower] - both @ sigma) / variance  # of A'Omega^-2 A
    out = np.empty((len(both) + 1, len(both) + 1))
    out[:-1, :-1] = both
    out[:-1, -1] = out[-1, :-1] = second
    steps = found.packed.steps if found.free else 0.0
    inverse = (steps - np.sum(found.cov * point.information)) / variance  # sum of tr Omega^-1
    out[-1, -1] = (0.5 * inverse - sigma @ second) / variance
    return out


def standard_errors(found: Found, change: Array) -> tuple[Array | None, bool]:
    """Standard errors of the entries of Sigma, from the expected information of its triangle (and
    of the noise); none where the information is singular: then not all of them are determined."""
    everything = found.packed.dim
    d, change = found.own, change[: found.own, : found.own]
    p = d * (d + 1) // 2
    if found.restricted:
        info = expected_information(found, everything)
        info = info + _for_the_mean(found, info[:-1, :-1])
        if d < everything:
            some = [*range(p), len(info) - 1]
            info = info[np.ix_(some, some)]
    else:
        info = expected_information(found, d)
    info = info if found.free else info[:-1, :-1]
    units = np.sqrt(np.maximum(np.diag(info), 0.0))
    if units.min() <= 0:
        return None, False
    scaled = info / np.outer(units, units)
    one = np.eye(len(units))
    try:
        np.linalg.cholesky(scaled - DETERMINED * one)
    except np.linalg.LinAlgError:
        return None, False
    a, b = triangle(d)
    # entries of change Sigma change' by those of Sigma
    back = change[np.ix_(a, a)] * change[np.ix_(b, b)] + change[np.ix_(a, b)] * change[np.ix_(b, a)]
    back *= _quads(d).half
    half = np.linalg.solve(np.linalg.cholesky(scaled), one)[:, :p] / units[:p]
    variances = ((half @ back.T) ** 2).sum(axis=0)
    return np.pad(full(np.sqrt(variances), d), (0, everything - d)), True


def _for_the_mean(found: Found, both: Array) -> Array:
    """What estimating the mean takes from the information: the restricted likelihood's, less the
    likelihood's. With C the covariance of the mean, P = Omega^-1 - Omega^-1 X C X'Omega^-1 stands
    in for Omega^-1 in the traces, and X'Omega^-1 X, X'Omega^-2 X … are sums over tasks of W,
    S = (W - W Sigma W) / sigma^2 …. With Z = W C W all of them follow from sums of W_a W_b, which
    gave ``both``, and of W_a Z_b.
    """
    d, point, variance = found.packed.dim, found.point, found.variance
    lower, half = triangle(d), _quads(d).half
    root = best_root(point.information)
    c = root @ root.T
    sigma = found.cov[lower]
    weights = weights_of(point, d)
    spreads = [np.empty_like(one) for one in weights]
    for one, spread in zip(point.tasks, spreads, strict=True):
        second_pass(one, np.zeros(d), root, spread)
    cross = products(weights, spreads, found.each)
    cross = traces(cross + cross.T, d)
    across = full(both @ sigma / half, d)  # the sum of W Sigma W
    s_all = (point.information - across) / variance
    out = np.empty((len(both) + 1, len(both) + 1))
    # E_a -> sum of W E_a W, in coordinates in which C is the identity
    moved = root.T @ (both / half)[:, places(d)] @ root
    moved = moved[:, *lower] * np.sqrt(2 * half)
    out[:-1, :-1] = 0.5 * moved @ moved.T - cross
    mixed = both @ (c @ s_all @ c)[lower] - (2 * both @ c[lower] - cross @ sigma) / variance
    out[:-1, -1] = out[-1, :-1] = mixed
    third = (d - 2 * np.sum(c * across) + sigma @ cross @ sigma) / variance**2
    out[-1, -1] = 0.5 * float(np.trace(c @ s_all @ c @ s_all)) - third
    return out
