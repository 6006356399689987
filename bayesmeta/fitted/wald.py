"""Wald intervals: standard errors by the expected information, on scales that are nearly normal."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Array
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.estimators.likelihood import triangle
from bayesmeta.fitted.quantities import Quantities
from bayesmeta.gaussian import lower_root
from bayesmeta.statistics import TaskStatistics

SETTLED = (Status.OK, Status.GIVEN)
"""Where a standard error of a covariance means something."""
KNOWN = 1e-9
"""Eigenvalues of the information, in own units, below which data say nothing of a direction."""
NEAR = 1e-6
"""The part of a quantity along such directions up to which it is determined."""


class Weights(NamedTuple):
    """W_j = A'Omega^-1 A of every task and their inverse sum C; S_j = A'Omega^-2 A; what the noise
    alone leaves of the traces of Omega^-2."""

    w: Array
    c: Array
    s: Array
    trace: float


def weights_of(stats: TaskStatistics, cov: Array, variance: float) -> Weights:
    """Those at a covariance and a noise variance."""
    root = lower_root(cov)
    inner = np.eye(len(cov)) + root.T @ stats.gram @ root / variance
    half = np.linalg.solve(inner, root.T @ stats.gram)
    w = (stats.gram - np.swapaxes(stats.gram, 1, 2) @ root @ half / variance) / variance
    w = (w + np.swapaxes(w, 1, 2)) / 2
    s = (w - w @ cov @ w) / variance
    total = w.sum(axis=0)
    units = np.sqrt(np.diag(total))
    c = np.linalg.inv(total / np.outer(units, units)) / np.outer(units, units)
    rows = 0.0 if stats.count is None else float(stats.count.sum())
    once = (rows - float(np.sum(cov * total))) / variance
    return Weights(w, c, s, (once - float(np.sum(cov * s.sum(axis=0)))) / variance)


def information(stats: TaskStatistics, cov: Array, variance: float, restricted: bool) -> Array:
    """Expected information of the lower triangle of Sigma, row by row, and of sigma^2.

    Half the traces of P dOmega P dOmega, where P is Omega^-1 or, restricted, Omega^-1 less what
    estimating the mean takes: Omega^-1 X C X'Omega^-1.
    """
    w, c, s, trace = weights_of(stats, cov, variance)
    d = len(cov)
    both = _kronecker(w, w)
    square, mixed = both, s.sum(axis=0)
    if restricted:
        wcw, total = w @ c @ w, s.sum(axis=0)
        cross = _kronecker(w, wcw)
        square = both - cross - _kronecker(wcw, w) + both @ np.kron(c, c) @ both
        scw = (s @ c @ w).sum(axis=0)
        mixed = total - scw - scw.T + (w @ (c @ total @ c) @ w).sum(axis=0)
        third = ((s - w @ cov @ s) / variance).sum(axis=0)
        trace += float(np.trace(c @ total @ c @ total) - 2 * np.trace(c @ third))
    twice = _duplication(d)
    p = twice.shape[1]
    out = np.empty((p + 1, p + 1))
    out[:p, :p] = twice.T @ square @ twice / 2
    out[:p, p] = out[p, :p] = twice.T @ mixed.ravel() / 2
    out[p, p] = trace / 2
    return out


def errors(
    stats: TaskStatistics, estimate: PriorEstimate, quantities: Quantities, restricted: bool | None
) -> Array:
    """Standard errors of all quantities; NaN where there is none.

    ``restricted`` None: by another method than likelihood, which has errors of the entries of Sigma
    but not how these hang together, so none of correlations.
    """
    cov, noise = estimate.prior.cov, estimate.noise_sd
    sd = np.sqrt(np.maximum(np.diag(cov), 0.0))
    mean = estimate.mean_sd if estimate.mean_sd is not None else np.full(len(sd), np.nan)
    nan = np.full(len(quantities.pairs), np.nan)
    if restricted is None or noise is None:
        entries = np.full_like(cov, np.nan) if estimate.cov_sd is None else estimate.cov_sd
        rest = [_of_sd(estimate, sd)[list(quantities.vary)], nan, _at(entries, quantities)]
        return np.concatenate([mean, *rest, [np.nan] * quantities.noisy])
    # with features in their own units and noise of 1, whatever the units of the table
    gram, _, units = stats.scaled()
    size = noise / units
    own = TaskStatistics.trusted(gram, np.zeros(gram.shape[:2]), stats.count)
    inside = cov / size[:, None] / size
    found = _along(_slopes(inside, 1.0, quantities), own, inside, 1.0, restricted, quantities)
    found[: len(quantities.vary)] *= size[list(quantities.vary)]
    end = len(found) - quantities.noisy
    found[end - len(quantities.triangle) : end] *= _at(np.outer(size, size), quantities)
    if quantities.noisy:
        found[-1] *= noise
    if estimate.status not in SETTLED:
        found[:end] = np.nan
        if quantities.noisy and not found[-1] < noise:  # of which nothing but rounding is known
            found[-1] = np.nan
    return np.concatenate([mean, found])


def interval(
    values: Array, error: Array, quantities: Quantities, level: float | Array
) -> tuple[Array, Array]:
    """Means and covariances as they are, sd, variances and noise on the log scale, correlations by
    Fisher's z; NaN where ``lacking`` says so, or an end is beyond all numbers. At several levels,
    (levels, quantities)."""
    from scipy.special import ndtri

    z = -np.asarray(ndtri((1 - np.asarray(level)) / 2))[..., None]
    own, (positive, between) = _own_errors(values, error, quantities), _scales(quantities.places)
    low, high = values - z * error, values + z * error
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        factor, middle = np.exp(z * own), np.arctanh(values * between)
        low = np.where(positive, values / factor, low)
        high = np.where(positive, values * factor, high)
        low = np.where(between, np.tanh(middle - z * own), low)
        high = np.where(between, np.tanh(middle + z * own), high)
    none = lacking(values, error, quantities) | ~np.isfinite(high)
    return np.where(none, np.nan, low), np.where(none, np.nan, high)


def lacking(values: Array, error: Array, quantities: Quantities) -> NDArray[np.bool_]:
    """Which quantities have no Wald interval.

    Those without a standard error, as all standard deviations and correlations are where Sigma is
    singular; a standard deviation, or the noise, whose error exceeds its estimate; a variance where
    its standard deviation has none; a correlation whose error on Fisher's scale exceeds 1, as it
    does close to +-1, or of a standard deviation that has none. On their own scales all are errors
    above 1: the interval would go from a seventh of the estimate to seven times it, or from -0.96
    to 0.96, and says nothing.
    """
    none = ~(_own_errors(values, error, quantities) <= 1)
    places = quantities.places
    without = {at[0] for one, (kind, at) in zip(none, places, strict=True) if kind == "sd" and one}
    for k, (kind, at) in enumerate(places):
        if kind == "mu":
            none[k] = not np.isfinite(error[k])
        elif kind == "corr":
            none[k] |= not without.isdisjoint(at)
        elif kind == "cov":
            none[k] = at[0] in without if at[0] == at[1] else not np.isfinite(error[k])
    return none


def _own_errors(values: Array, error: Array, quantities: Quantities) -> Array:
    """Standard errors on the scale that an interval is made on; infinite on a boundary."""
    positive, between = _scales(quantities.places)
    sizes = np.abs(values)
    steps = np.where(positive, sizes, np.where(between, 1 - np.minimum(sizes, 1.0) ** 2, 1.0))
    own: Array = np.divide(error, steps, out=np.full_like(error, np.inf), where=steps > 0)
    return own


@lru_cache(maxsize=8)
def _scales(
    places: tuple[tuple[str, tuple[int, ...]], ...],
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The scales on which estimates are nearly normal: which quantities have the logarithm, and
    which Fisher's z; the others are as they are."""
    positive = [
        kind in ("sd", "sigma") or (kind == "cov" and at[0] == at[1]) for kind, at in places
    ]
    return np.array(positive), np.array([kind == "corr" for kind, _ in places])


def _at(matrix: Array, quantities: Quantities) -> Array:
    """The entries of a matrix (d, d) that are listed."""
    return np.array([matrix[pair] for pair in quantities.triangle])


def _along(
    slopes: Array,
    stats: TaskStatistics,
    cov: Array,
    variance: float,
    restricted: bool,
    quantities: Quantities,
) -> Array:
    """Standard errors, by the inverse information, of quantities with these slopes by the triangle
    of Sigma of the features that differ, and by the noise where it is estimated; NaN of those that
    the data do not determine. The noise is determined by repetitions within tasks also where Sigma
    is not, as with a feature of two values that are constant in tasks.

    In coordinates in which all tasks together have a gram of 1, so that origins do not matter.
    These are triangular, features that differ coming first: Sigma stays 0 elsewhere.
    """
    r = len(quantities.vary)
    others = [i for i in range(stats.dim) if i not in quantities.vary]
    order = np.array([*quantities.vary, *others])
    gram = stats.gram[:, order[:, None], order]
    change = np.linalg.inv(np.linalg.cholesky(gram.sum(axis=0) / len(stats))).T
    back = np.linalg.inv(change)
    own = TaskStatistics.trusted(change.T @ gram @ change, stats.moment, stats.count)
    inside = back @ cov[np.ix_(order, order)] @ back.T
    info = information(own, inside, variance, restricted)
    rows, columns = triangle(len(cov))
    kept = np.flatnonzero(np.append((rows < r) & (columns < r), quantities.noisy))
    part = info[np.ix_(kept, kept)]
    units = np.sqrt(np.maximum(np.diag(part), 0.0))
    units = np.where(units > 0, units, 1.0)
    values, vectors = np.linalg.eigh(part / np.outer(units, units))
    a, b = triangle(r)
    move = np.eye(len(part))  # entries of change Sigma change' by those of Sigma
    crossed = change[np.ix_(a, b)] * change[np.ix_(b, a)]
    moved = change[np.ix_(a, a)] * change[np.ix_(b, b)] + np.where(a == b, 0.0, crossed)
    move[: len(a), : len(a)] = moved
    along = slopes @ move / units @ vectors
    known = values > KNOWN
    lost = np.abs(along[:, ~known]).max(axis=1, initial=0.0) > NEAR * np.linalg.norm(along, axis=1)
    squares = (along[:, known] ** 2 / values[known]).sum(axis=1)
    return np.where(lost, np.nan, np.sqrt(squares))


def _slopes(cov: Array, noise: float, quantities: Quantities) -> Array:
    """Of standard deviations, correlations, entries of Sigma and the noise by the triangle of Sigma
    of the features that differ, and sigma^2."""
    own = cov[np.ix_(quantities.vary, quantities.vary)]
    rows, columns = triangle(len(own))
    place = {(int(i), int(j)): k for k, (i, j) in enumerate(zip(rows, columns, strict=True))}
    where = {feature: i for i, feature in enumerate(quantities.vary)}
    listed = len(own) + len(quantities.pairs) + len(quantities.triangle) + quantities.noisy
    out = np.zeros((listed, len(rows) + quantities.noisy))
    sd = np.sqrt(np.maximum(np.diag(own), 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        for i in range(len(own)):
            out[i, place[i, i]] = 0.5 / sd[i]
        for k, pair in enumerate(quantities.pairs, len(own)):
            i, j = where[pair[0]], where[pair[1]]
            out[k, place[i, j]] = 1 / (sd[i] * sd[j])
            for one in (i, j):
                out[k, place[one, one]] = -own[i, j] / (2 * sd[i] * sd[j] * own[one, one])
    for k, pair in enumerate(quantities.triangle, len(own) + len(quantities.pairs)):
        out[k, place[where[pair[0]], where[pair[1]]]] = 1.0
    if quantities.noisy:
        out[-1, -1] = 0.5 / noise
    return np.where(np.isfinite(out), out, 0.0)


def _of_sd(estimate: PriorEstimate, sd: Array) -> Array:
    """Errors of standard deviations from those of variances."""
    if estimate.cov_sd is None:
        return np.full(len(sd), np.nan)
    variances = np.diag(estimate.cov_sd)
    out = np.full(len(sd), np.nan)
    out[sd > 0] = variances[sd > 0] / (2 * sd[sd > 0])
    return out


def _kronecker(left: Array, right: Array) -> Array:
    """The sum over tasks of Kronecker products."""
    d = left.shape[1]
    flat = left.reshape(len(left), -1).T @ right.reshape(len(right), -1)
    return flat.reshape(d, d, d, d).transpose(0, 2, 1, 3).reshape(d * d, d * d)


def _duplication(d: int) -> Array:
    """Entries of a symmetric matrix by those of its lower triangle."""
    rows, columns = triangle(d)
    out = np.zeros((d, d, len(rows)))
    out[rows, columns, np.arange(len(rows))] = 1.0
    out[columns, rows, np.arange(len(rows))] = 1.0
    return out.reshape(d * d, len(rows))
