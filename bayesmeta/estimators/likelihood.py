"""The likelihood of (mu, Sigma) and the noise, theta integrated out, with its derivatives."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from bayesmeta.checks import Array
from bayesmeta.kernels.estep import INFLATED, Inverted, Moved, estep, inverted, second_pass
from bayesmeta.kernels.lanes import WIDTH
from bayesmeta.kernels.layout import LANES, MANY, Chunk, EachTask, Parameters, Sums
from bayesmeta.kernels.profile import Best, Profile, at_best, best_mean, profile
from bayesmeta.statistics import TaskStatistics

CHUNK = 64 * LANES
"""Tasks summed up together; fixed, so that bits do not depend on the number of threads."""
WIDE = 15
"""Features from which on sums over tasks are products of large matrices, by BLAS."""
CHUNK_WIDE = 4 * LANES
"""Tasks summed up together then: few enough to stay in the cache."""


_NONE = np.empty((0, 0))
LOST = "the information on the mean is not positive definite"
"""What is said where numbers have too few digits."""


Each = Callable[[Callable[[Any], Any], list[Any]], list[Any]]
"""Does a piece of work for every item."""


def _here(work: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    return [work(item) for item in items]


class Packed(NamedTuple):
    """Statistics laid out for the kernels, a chunk of tasks at a time."""

    chunks: list[Chunk]
    tasks: int
    steps: float
    dim: int


def pack(stats: TaskStatistics, change: Array, each: Each = _here) -> Packed:
    """Lay out, in coordinates theta = ``change`` @ theta'."""
    n, size = len(stats), CHUNK if stats.dim < WIDE else CHUNK_WIDE
    parts = [slice(first, first + size) for first in range(0, n, size)]
    steps = 0.0 if stats.count is None else float(stats.count.sum())
    chunks = each(lambda part: lay_out(stats, change, part), parts)
    return Packed(chunks, n, steps, stats.dim)


def lay_out(stats: TaskStatistics, change: Array, part: slice) -> Chunk:
    """Some tasks as a chunk, those with well-conditioned grams first."""
    return laid_out(stats, change, part)[0]


def laid_out(stats: TaskStatistics, change: Array, part: slice) -> tuple[Chunk, NDArray[np.intp]]:
    """The same, and the place of every task in the chunk."""
    d = stats.dim
    gram, moment = changed(stats.gram[part], change), stats.moment[part] @ change
    n = len(gram)
    energy = np.zeros(n) if stats.energy is None else stats.energy[part]
    found: Inverted = inverted(gram, moment)
    everyone, regular = np.arange(n), found.inflation[:n] <= INFLATED
    others = n - int(regular.sum())
    if -(-others // LANES) == -(-n // LANES):  # no group of lanes fewer by the slower way
        regular[:] = False
    first, last = everyone[regular], everyone[~regular]
    unit = np.equal(*triangle(d)).astype(float)
    left = energy[first] - found.fitted[first]
    if stats.energy is not None:
        left = np.maximum(left, 0.0)  # rounding is no negative square

    def both(each: Array) -> Array:
        return np.concatenate([_padded(each, first), _padded(each, last)], axis=-1)

    left = _padded(left, everyone[: len(first)])
    chunk = Chunk(
        both(found.grams),
        both(found.moments),
        both(energy),
        _by_width(_padded(found.inverses, first, unit), d),
        _by_width(_padded(found.estimates, first), d),
        left,
        _padded(found.logs, first),
        len(first),
    )
    places = np.empty(n, dtype=np.intp)
    places[first] = everyone[: len(first)]
    places[last] = len(left) + everyone[: len(last)]
    return chunk, places


def changed(gram: Array, change: Array) -> Array:
    """change' V change of many grams, by products of large matrices."""
    n, d, _ = gram.shape
    half = (gram.reshape(n * d, d) @ change).reshape(n, d, d)
    both: Array = (half.transpose(0, 2, 1).reshape(n * d, d) @ change).reshape(n, d, d)
    return both


def _padded(each: Array, chosen: NDArray[np.intp], empty: float | Array = 0.0) -> Array:
    """The chosen tasks, along the last axis, and ``empty`` ones up to a multiple of ``LANES``."""
    size = -(-len(chosen) // LANES) * LANES
    out = np.empty((*each.shape[:-1], size))
    out[..., : len(chosen)] = each[..., chosen]
    out[..., len(chosen) :] = np.asarray(empty)[..., None]
    return out


def _by_width(each: Array, d: int) -> Array:
    """Entries (p, n) of tasks, of ``WIDTH`` tasks a row where there are ``MANY`` features."""
    p, n = each.shape
    if d < MANY:
        return each
    rows: Array = each.reshape(p, n // WIDTH, WIDTH).transpose(1, 0, 2).reshape(-1, p * WIDTH)
    return rows


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
    tasks: list[EachTask]
    """s, where the mean was before, and W of every task of every chunk"""


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
    at = Parameters(mean, root, 1.0 / variance)
    tasks = [
        EachTask(np.empty_like(one.moments), np.empty_like(one.grams)) for one in packed.chunks
    ]
    if packed.dim < WIDE and len(tasks) == 1:
        found: Profile = profile(packed.chunks[0], at, packed.steps, restricted, tasks[0])
    else:
        pairs = list(zip(packed.chunks, tasks, strict=True))
        sums = Sums(*_total(each(lambda pair: estep(pair[0], at, pair[1]), pairs)))
        best: Best = best_mean(sums)
        spread = best.root if restricted else best.root[:, :0].copy()
        again = _second_pass if restricted and packed.dim >= WIDE else second_pass
        moved = Moved(*_total(each(lambda one: again(one, best.shift, spread, _NONE), tasks)))
        found = at_best(sums, best, moved, at, packed.steps, restricted)
    if not found.fine:
        raise np.linalg.LinAlgError(LOST)
    return Point(
        found.value, mean + found.shift, found.gradient, found.noise, found.information, tasks
    )


def value_at(
    packed: Packed, mean: Array, root: Array, variance: float, restricted: bool, each: Each = _here
) -> float:
    """The value of ``evaluate`` alone."""
    at, none = Parameters(mean, root, 1.0 / variance), EachTask(_NONE, _NONE)
    sums = Sums(*_total(each(lambda chunk: estep(chunk, at, none), packed.chunks)))
    best: Best = best_mean(sums)
    if not best.fine:
        raise np.linalg.LinAlgError(LOST)
    unused = Moved(sums.squares, sums.squares)
    return float(at_best(sums, best, unused, at, packed.steps, restricted).value)


def _second_pass(one: EachTask, shift: Array, root: Array, _: Array) -> Moved:
    """The same as the kernel's, by products of large matrices."""
    d = len(shift)
    weights = one.weights[places(d)]  # (d, d, n)
    scores = one.scores - shift @ weights
    along = np.matmul(root.T, weights).reshape(d, -1)
    return Moved((scores @ scores.T)[triangle(d)], (along @ along.T)[triangle(d)])


def products(left: list[Array], right: list[Array], each: Each = _here) -> Array:
    """The sum over tasks of products of all entries of two triangles, as (p, p)."""
    pairs = list(zip(left, right, strict=True))
    total: Array = _total(each(lambda pair: (pair[0] @ pair[1].T,), pairs))[0]
    return total


def rounding(energy: float) -> float:
    """The error of a likelihood by rounding, times the noise variance: sums of squares, which are
    taken from the sum of all squared rewards, leave it no more digits."""
    return float(np.finfo(float).eps) * energy


def _total(parts: list[tuple[Any, ...]]) -> list[Any]:
    """Each entry summed over chunks, in their order."""
    return [functools.reduce(operator.add, entries) for entries in zip(*parts, strict=True)]


@cache
def triangle(d: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of a lower triangle, row by row."""
    rows, columns = np.tril_indices(d)
    return rows, columns


@cache
def places(d: int) -> NDArray[np.intp]:
    """Where each entry of a symmetric matrix is in its lower triangle, row by row."""
    rows, columns = triangle(d)
    place = np.zeros((d, d), dtype=np.intp)
    place[rows, columns] = place[columns, rows] = np.arange(len(rows))
    return place


def full(lower: Array, d: int) -> Array:
    """The symmetric matrix of a lower triangle, along the last axis."""
    matrix: Array = lower[..., places(d)]
    return matrix + 0.0  # no negative zeros
