"""Maximum and restricted maximum likelihood of (mu, Sigma), and of the noise where it is unknown.

Works in coordinates in which an average task's least squares estimate has unit covariance, so that
Sigma there is a ratio of signal to noise and every tolerance is a pure number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from bayesmeta.checks import Array, InputError
from bayesmeta.gaussian import lower_root
from bayesmeta.kernels.estep import LANES, estep, second_pass
from bayesmeta.statistics import TaskStatistics

CHUNK = 64 * LANES
"""Tasks summed up together; fixed, so that bits do not depend on the number of threads."""
GAIN = 1e-12
"""A step is not taken if it promises less log-likelihood than this."""
SMALL = 1e-7
"""Converged: what the last step promised, where rounding kept it from being taken."""
LIMIT = 200
"""Steps at most."""
SCORING = 25
"""Steps of scoring before BFGS helps."""
FEW = 100
"""Tasks up to which the search begins at several places."""
RATIO = 1e8
"""Signal to noise beyond which the likelihood is computed with few digits."""
HOPELESS = 1e13
"""Signal to noise beyond which it has none."""
DEPENDENT = 1e-11
"""Features are linearly dependent: the smallest eigenvalue of their scaled sum of squares."""
FLAT = 1e-7
"""Eigenvalues of Sigma below this, where noise is 1, count as zero."""


class Packed(NamedTuple):
    """Statistics laid out for the kernels, a chunk of tasks at a time."""

    chunks: list[tuple[Array, Array, Array]]
    tasks: int
    steps: float
    dim: int


def pack(stats: TaskStatistics, change: Array) -> Packed:
    """Lay out, in coordinates theta = ``change`` @ theta'."""
    n, d = len(stats), stats.dim
    rows, columns = np.tril_indices(d)
    chunks = []
    for first in range(0, n, CHUNK):
        part = slice(first, min(first + CHUNK, n))
        gram = change.T @ stats.gram[part] @ change
        size = -(-len(gram) // LANES) * LANES
        grams, moments, energy = np.zeros((len(rows), size)), np.zeros((d, size)), np.zeros(size)
        grams[:, : len(gram)] = gram[:, rows, columns].T
        moments[:, : len(gram)] = (stats.moment[part] @ change).T
        if stats.energy is not None:
            energy[: len(gram)] = stats.energy[part]
        chunks.append((grams, moments, energy))
    steps = 0.0 if stats.count is None else float(stats.count.sum())
    return Packed(chunks, n, steps, d)


class Point(NamedTuple):
    """The likelihood at one Sigma (and noise), the mean being the best for it."""

    value: float
    mean: Array
    gradient: Array
    """of the value in Sigma, symmetric"""
    noise_gradient: float
    """of the value in log sigma^2"""
    information: Array
    """of the mean: the sum of W"""
    squares: Array
    """sum of vec(W) vec(W)' over tasks, as (d, d, d, d)"""


Each = Callable[[Callable[[Any], tuple[Any, ...]], list[Any]], list[tuple[Any, ...]]]
"""Does a piece of work for every item."""


def _here(work: Callable[[Any], tuple[Any, ...]], items: list[Any]) -> list[tuple[Any, ...]]:
    return [work(item) for item in items]


@contextmanager
def in_threads(threads: int) -> Iterator[Each]:
    """Work on chunks of tasks side by side; BLAS keeps to one thread, whose bits never differ."""
    with _blas().limit(limits=1, user_api="blas"):
        if threads == 1:
            yield _here
            return
        with ThreadPoolExecutor(threads) as pool:
            yield lambda work, items: list(pool.map(work, items))


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def evaluate(
    packed: Packed, mean: Array, root: Array, variance: float, restricted: bool, each: Each = _here
) -> Point:
    """Log-likelihood of Sigma = root root' with the mean at its best (or integrated out)."""
    d, tau = packed.dim, 1.0 / variance
    rows, columns = np.tril_indices(d)

    def first(chunk: tuple[Array, Array, Array]) -> tuple[object, ...]:
        scores, weights = np.empty_like(chunk[1]), np.empty_like(chunk[0])
        sums = estep(*chunk, mean, root, tau, True, scores, weights)
        return (*sums, weights @ weights.T, scores, weights)

    parts = each(first, packed.chunks)
    logs, quad, s, _, w, squares = (_total([part[i] for part in parts]) for i in range(6))
    information = _full(w, d)
    lower = np.linalg.cholesky(information)
    shift = np.linalg.solve(lower.T, np.linalg.solve(lower, s))  # one step to the best mean
    spread = np.zeros((d, d))
    if restricted:
        spread = np.linalg.cholesky(np.linalg.inv(information))

    def second(part: tuple[object, ...]) -> tuple[object, ...]:
        found: tuple[object, ...] = second_pass(part[6], part[7], shift, spread)
        return found

    again = each(second, parts)
    ss, z = (_full(_total([part[i] for part in again]), d) for i in range(2))
    cov = root @ root.T
    value = -0.5 * (packed.steps * math.log(2 * math.pi * variance) + logs + quad - shift @ s)
    noise = quad - shift @ s + np.sum(cov * (information - ss)) - packed.steps
    if restricted:
        value += 0.5 * d * math.log(2 * math.pi) - np.log(np.diag(lower)).sum()
        noise += d - np.sum(cov * z)
    place = np.zeros((d, d), dtype=int)
    place[rows, columns] = place[columns, rows] = np.arange(len(rows))
    wide = squares[np.ix_(place.ravel(), place.ravel())].reshape(d, d, d, d)
    return Point(
        float(value), mean + shift, 0.5 * (ss - information + z), 0.5 * float(noise), information,
        wide,
    )  # fmt: skip


def _total(parts: list) -> Array:  # type: ignore[type-arg]
    total: Array = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _full(lower: Array, d: int) -> Array:
    out = np.zeros((d, d))
    out[np.tril_indices(d)] = lower
    return out + np.tril(out, -1).T


class Fit(NamedTuple):
    """Where a likelihood is largest."""

    mean: Array
    cov: Array
    variance: float
    value: float
    mean_cov: Array
    cov_sd: Array | None
    """standard errors of the entries of Sigma, where asked for and determined"""
    iterations: int
    converged: bool
    rank: int
    identified: bool
    """whether the data determine every parameter; not looked at without ``errors``"""
    imprecise: bool
    """whether the noise is so small beside the differences of tasks that digits are lost"""
    noiseless: bool
    """whether the likelihood rises as the noise goes to 0"""


def maximise(
    stats: TaskStatistics,
    variance: float | None,
    *,
    restricted: bool,
    start: tuple[Array, Array] | None = None,
    threads: int = 1,
    limit: int = LIMIT,
    errors: bool = True,
) -> Fit:
    """Maximise the (restricted) likelihood, from a few steps of EM on by scoring and BFGS.

    ``variance`` None: the noise is estimated, too. ``start`` is a mean and covariance to begin at.
    """
    n, d = len(stats), stats.dim
    total = stats.gram.sum(axis=0)
    check_independent(total)
    stats, centre = stats.centred()
    free = variance is None
    begin = _first_variance(stats, total) if variance is None else variance
    lower = np.linalg.cholesky(total / (n * begin))
    change = np.linalg.inv(lower).T  # theta = change theta'
    packed = pack(stats, change)
    mean, first, others = np.zeros(d), np.eye(d), []
    if start is not None:
        mean = np.linalg.solve(change, start[0] - centre)
        first = lower.T @ start[1] @ lower + 1e-2 * np.eye(d)  # slow at the boundary: keep off it
    if n <= FEW:  # the likelihood may have several maxima
        others = [size * np.eye(d) for size in (1.0, 0.01, 100.0)]
    found = []
    with in_threads(threads if len(packed.chunks) > 1 else 1) as each:
        for k, cov in enumerate([first, *others]):
            with suppress(np.linalg.LinAlgError):  # a start from which rounding leads astray
                one = _Search(packed, mean, cov, begin, free, restricted, each)
                for _ in range(0 if k else 3):
                    one.em()
                if k:
                    one.bfgs(limit)
                found.append((one, *one.climb(limit)))
    if not found:
        raise np.linalg.LinAlgError("no start led anywhere")
    search, iterations, converged = max(found, key=lambda one: one[0].point.value)
    values, vectors = np.linalg.eigh(search.cov)
    values = np.where(values < FLAT, 0.0, values)
    if values[-1] > HOPELESS:
        raise np.linalg.LinAlgError("signal to noise is beyond the digits of numbers")
    cov = change @ (vectors * values) @ vectors.T @ change.T
    point = search.point
    value = point.value
    if restricted:  # the mean was integrated out in other coordinates
        value += float(np.linalg.slogdet(change)[1])
    inverse = np.linalg.inv(point.information)
    cov_sd, identified = _errors(search, change) if errors else (None, True)
    return Fit(
        centre + change @ point.mean,
        (cov + cov.T) / 2,
        search.variance,
        float(value),
        change @ inverse @ change.T,
        cov_sd,
        iterations,
        converged,
        int((values > 0).sum()),
        identified,
        bool(values[-1] > RATIO),
        free and search.variance < 1e-6 * begin,
    )


def check_independent(total: Array) -> None:
    """Refuse features that are linear combinations of others, in all tasks together."""
    units = np.sqrt(np.diag(total))
    if units.min() > 0:
        values = np.linalg.eigvalsh(total / np.outer(units, units))
        if values[0] > DEPENDENT * values[-1]:
            return
    raise InputError(
        "the features of all tasks together are linearly dependent, or so nearly that numbers of "
        "16 digits cannot tell them apart, so the prior mean is not determined; leave out a "
        "feature that others make up or that is always 0, or take the mean off one that hardly "
        "varies about it (a date)"
    )


def _first_variance(stats: TaskStatistics, total: Array) -> float:
    """Residuals of each task's own least squares, pooled; or of one for all tasks."""
    left, freedom = stats.residuals()
    assert stats.energy is not None
    if freedom < 1:
        b = stats.moment.sum(axis=0)
        left = float(stats.energy.sum() - b @ np.linalg.pinv(total, hermitian=True) @ b)
        freedom = float(stats.count.sum())  # type: ignore[union-attr]
    if left <= 1e-13 * stats.energy.sum():
        raise InputError(
            "the rewards of every task are fitted exactly, so the noise cannot be estimated; give "
            "noise_sd, or more rows a task"
        )
    return left / freedom


class _Search:
    """Where the search is, and the steps it can take."""

    def __init__(
        self,
        packed: Packed,
        mean: Array,
        cov: Array,
        variance: float,
        free: bool,
        restricted: bool,
        each: Each,
    ) -> None:
        self.packed, self.free = packed, free
        self.restricted = restricted
        self._options = (restricted, each)
        self.mean, self.root, self.variance = mean, lower_root(cov), variance
        self.point = self._at(self.root, variance)
        self.promise = math.inf

    @property
    def cov(self) -> Array:
        return self.root @ self.root.T

    def _at(self, root: Array, variance: float) -> Point:
        # coordinates are those of the first variance; the kernels take it as it is
        return evaluate(self.packed, self.mean, root, variance, *self._options)

    def _move(self, root: Array, variance: float, point: Point) -> None:
        self.root, self.variance, self.point, self.mean = root, variance, point, point.mean

    def em(self) -> None:
        """One step of EM: Sigma becomes the mean second moment of the posteriors."""
        cov = self.cov + 2 * self.cov @ self.point.gradient @ self.cov / self.packed.tasks
        variance = self.variance
        if self.free:
            variance *= 1 + 2 * self.point.noise_gradient / self.packed.steps
        root = lower_root((cov + cov.T) / 2)
        self._move(root, variance, self._at(root, variance))

    def climb(self, limit: int) -> tuple[int, bool]:
        """Scoring steps in (L, log sigma^2) until nothing is left to gain, also off the boundary;
        where they are slow, BFGS takes over for a while."""
        steps = 0
        while steps < limit:
            for _ in range(min(SCORING, limit - steps)):
                steps += 1
                if self._score() and not self._leave_boundary():
                    return steps, self.promise < SMALL
            if steps < limit:
                steps += self.bfgs(limit - steps)
        return steps, False

    def _gradient(self, point: Point, root: Array) -> Array:
        """In the lower triangle of L and, where it is free, log sigma^2."""
        gradient: Array = 2 * (point.gradient @ root)[np.tril_indices(self.packed.dim)]
        return np.append(gradient, point.noise_gradient) if self.free else gradient

    def bfgs(self, limit: int) -> int:
        """Go on by BFGS with the same gradients; the number of its steps."""
        from scipy.optimize import minimize

        rows, columns = np.tril_indices(self.packed.dim)
        first, variance = self.root[rows, columns], self.variance

        def unpack(x: Array) -> tuple[Array, float]:
            root = np.zeros_like(self.root)
            root[rows, columns] = x[: len(rows)]
            change = min(max(float(x[-1]), -30.0), 30.0) if self.free else 0.0
            return root, variance * math.exp(change)

        def loss(x: Array) -> tuple[float, Array]:
            root, noise = unpack(x)
            try:
                point = self._at(root, noise)
            except np.linalg.LinAlgError:
                return math.inf, np.zeros_like(x)
            return -point.value, -self._gradient(point, root)

        start = np.append(first, 0.0) if self.free else first
        with np.errstate(all="ignore"):
            found = minimize(
                loss, start, jac=True, method="BFGS", options={"maxiter": limit, "gtol": 1e-9}
            )
        root, noise = unpack(found.x)
        if found.fun <= -self.point.value:
            self._move(root, noise, self._at(root, noise))
        return max(int(found.nit), 1)

    def _score(self) -> bool:
        """One step with a line search; whether there was no more to gain."""
        d = self.packed.dim
        rows, columns = np.tril_indices(d)
        gradient = self._gradient(self.point, self.root)
        curvature = self._curvature(rows, columns)
        values, vectors = np.linalg.eigh(curvature)
        size = np.maximum(np.abs(values), 1e-12 * np.abs(values).max() + 1e-300)
        along = vectors.T @ gradient
        step = vectors @ (along / size)
        self.promise = promise = float(along @ (along / size))
        if promise < GAIN:
            return True
        length, rounding = 1.0, 1e-13 * abs(self.point.value)
        for _ in range(40):
            root = self.root.copy()
            root[rows, columns] += length * step[: len(rows)]
            change = length * step[-1] if self.free else 0.0
            if abs(change) < 3:
                variance = self.variance * math.exp(change)
                point = self._at(root, variance)
                if point.value >= self.point.value + 1e-4 * length * promise - rounding:
                    self._move(root, variance, point)
                    return False
            length /= 2
        return True  # rounding hides any further gain, or the step is a bad one: see ``promise``

    def _curvature(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Array:
        """Expected information of (L, log sigma^2), less what the gradient in Sigma bends."""
        d, root = self.packed.dim, self.root
        p = len(rows)
        jacobian = np.zeros((p, d, d))
        jacobian[np.arange(p), rows] = root.T[columns]
        jacobian = jacobian + jacobian.transpose(0, 2, 1)
        info = expected_information(
            self.point, self.cov, self.variance, self.packed.steps if self.free else 0.0
        )
        flat = jacobian.reshape(p, d * d)
        out = np.zeros((p + 1, p + 1))
        out[:p, :p] = flat @ info[:-1, :-1] @ flat.T
        bend = 2 * self.point.gradient[np.ix_(rows, rows)]
        out[:p, :p] -= np.where(columns[:, None] == columns[None, :], bend, 0.0)
        out[:p, p] = out[p, :p] = flat @ info[:-1, -1] * self.variance
        out[p, p] = info[-1, -1] * self.variance**2
        return out if self.free else out[:p, :p]

    def _leave_boundary(self) -> bool:
        """Where Sigma is singular, grow it in a direction in which the likelihood rises."""
        values, vectors = np.linalg.eigh(self.cov)
        null = vectors[:, values < FLAT]
        if not null.size:
            return False
        slopes, directions = np.linalg.eigh(null.T @ self.point.gradient @ null)
        if slopes[-1] <= 0:
            return False
        direction = null @ directions[:, -1]
        for size in 10.0 ** np.arange(0, -8, -1):
            root = lower_root(self.cov + size * np.outer(direction, direction))
            point = self._at(root, self.variance)
            if point.value > self.point.value + GAIN:
                self._move(root, self.variance, point)
                return True
        return False


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


def _errors(search: _Search, change: Array) -> tuple[Array | None, bool]:
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


def _for_the_mean(search: _Search) -> Array:
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


def _weights(chunk: tuple[Array, Array, Array], search: _Search) -> Array:
    """W of every task of a chunk, as (n, d, d)."""
    d = search.packed.dim
    scores, weights = np.empty_like(chunk[1]), np.empty_like(chunk[0])
    estep(*chunk, search.mean, search.root, 1.0 / search.variance, True, scores, weights)
    place = np.zeros((d, d), dtype=int)
    place[np.tril_indices(d)] = np.arange(len(weights))
    place = np.maximum(place, place.T)
    out: Array = weights[place].transpose(2, 0, 1)
    return out
