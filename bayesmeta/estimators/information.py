"""What the data can tell about Sigma and the noise: expected information, standard errors."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.estimators.likelihood import Packed, Point
from bayesmeta.kernels.estep import estep
from bayesmeta.kernels.lanes import Chunk, EachTask, Parameters


class Found(Protocol):
    """Where a search ended."""

    packed: Packed
    point: Point
    variance: float
    free: bool
    restricted: bool
    mean: Array
    root: Array

    @property
    def cov(self) -> Array: ...


def expected_information(point: Point, cov: Array, variance: float, steps: float) -> Array:
    """Of (vec Sigma, sigma^2): half the traces of Omega^-1 dOmega Omega^-1 dOmega, in W alone."""
    d = len(cov)
    out = np.zeros((d * d + 1, d * d + 1))
    # tr(W E_ab W E_cd) = W_da W_bc
    out[:-1, :-1] = 0.5 * point.squares.transpose(1, 2, 3, 0).reshape(d * d, d * d)
    across = np.einsum("abcd,bc->ad", point.squares, cov)  # sum of W Sigma W
    second = (point.information - across) / variance  # sum of A'Omega^-2 A
    out[:-1, -1] = out[-1, :-1] = 0.5 * second.ravel()
    inverse = (steps - np.sum(cov * point.information)) / variance  # sum of tr Omega^-1
    out[-1, -1] = 0.5 * (inverse - np.sum(cov * second)) / variance
    return out


def standard_errors(search: Found, change: Array) -> tuple[Array | None, bool]:
    """Standard errors of the entries of Sigma, from the expected information of its triangle (and
    of the noise); none where the information is singular: then not all of them are determined."""
    d, point, cov = search.packed.dim, search.point, search.cov
    info = expected_information(point, cov, search.variance, search.packed.steps)
    if search.restricted:
        info = info + _for_the_mean(search)
    rows, columns = np.tril_indices(d)
    p = len(rows)
    spread = np.zeros((d * d + 1, p + 1))
    spread[rows * d + columns, np.arange(p)] = 1.0
    spread[columns * d + rows, np.arange(p)] = 1.0
    spread[-1, -1] = 1.0
    spread = spread if search.free else spread[:, :p]
    info = spread.T @ info @ spread
    units = np.sqrt(np.maximum(np.diag(info), 0.0))
    if units.min() <= 0:
        return None, False
    scaled = info / np.outer(units, units)
    if np.linalg.eigvalsh(scaled)[0] < 1e-9:
        return None, False
    inverse = np.linalg.inv(scaled) / np.outer(units, units)
    vec = (spread @ inverse @ spread.T)[:-1, :-1]  # covariance of vec Sigma, whitened
    back = np.kron(change, change)
    variances = np.einsum("ij,jk,ik->i", back, vec, back)
    return np.sqrt(np.maximum(variances, 0.0)).reshape(d, d), True


def _for_the_mean(search: Found) -> Array:
    """What estimating the mean takes from the information: the restricted likelihood's, less the
    likelihood's. With C the covariance of the mean, P = Omega^-1 - Omega^-1 X C X'Omega^-1 stands
    in for Omega^-1 in the traces, and X'Omega^-1 X, X'Omega^-2 X … are sums over tasks of W,
    S = (W - W Sigma W) / sigma^2 ….
    """
    d, point, cov, variance = search.packed.dim, search.point, search.cov, search.variance
    c = np.linalg.inv(point.information)
    out = np.zeros((d * d + 1, d * d + 1))
    cross, s_sum, noise = np.zeros((d, d, d, d)), np.zeros((d, d)), 0.0
    mixed = np.zeros((d, d))
    s_all = (point.information - np.einsum("abcd,bc->ad", point.squares, cov)) / variance
    for chunk in search.packed.chunks:
        w = _weights(chunk, search)
        z = w @ c @ w
        cross += np.tensordot(w, z, axes=(0, 0))  # W_ab Z_cd
        s = (w - w @ cov @ w) / variance
        s_sum += s.sum(axis=0)
        mixed += (w @ (c @ s_all @ c) @ w - s @ c @ w - w @ c @ s).sum(axis=0)
        third = (s - w @ cov @ s) / variance  # A'Omega^-3 A
        noise -= 2 * float(np.sum(c * third.sum(axis=0)))
    noise += float(np.trace(c @ s_sum @ c @ s_sum))
    both = cross + cross.transpose(2, 3, 0, 1)
    out[:-1, :-1] = -0.5 * both.transpose(1, 2, 3, 0).reshape(d * d, d * d)
    move = point.squares.transpose(0, 3, 1, 2).reshape(d * d, d * d)  # E -> sum of W E W
    out[:-1, :-1] += 0.5 * move.T @ np.kron(c, c) @ move
    out[:-1, -1] = out[-1, :-1] = 0.5 * mixed.ravel()
    out[-1, -1] = 0.5 * noise
    return out


def _weights(chunk: Chunk, search: Found) -> Array:
    """W of every task of a chunk, as (n, d, d)."""
    d = search.packed.dim
    scores, weights = np.empty_like(chunk.moments), np.empty_like(chunk.grams)
    at = Parameters(search.mean, search.root, 1.0 / search.variance)
    estep(chunk, at, EachTask(scores, weights))
    place = np.zeros((d, d), dtype=int)
    place[np.tril_indices(d)] = np.arange(len(weights))
    place = np.maximum(place, place.T)
    out: Array = weights[place].transpose(2, 0, 1)
    return out
