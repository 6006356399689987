"""The likelihood of (mu, Sigma) and the noise, theta integrated out, with its derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from bayesmeta.checks import Array
from bayesmeta.kernels.estep import INFLATED, estep, inverted, second_pass
from bayesmeta.kernels.lanes import LANES, Chunk, EachTask, Parameters
from bayesmeta.statistics import TaskStatistics

CHUNK = 64 * LANES
"""Tasks summed up together; fixed, so that bits do not depend on the number of threads."""


class Packed(NamedTuple):
    """Statistics laid out for the kernels, a chunk of tasks at a time."""

    chunks: list[Chunk]
    tasks: int
    steps: float
    dim: int


def pack(stats: TaskStatistics, change: Array) -> Packed:
    """Lay out, in coordinates theta = ``change`` @ theta'."""
    n = len(stats)
    chunks = [lay_out(stats, change, slice(first, first + CHUNK)) for first in range(0, n, CHUNK)]
    steps = 0.0 if stats.count is None else float(stats.count.sum())
    return Packed(chunks, n, steps, stats.dim)


def lay_out(stats: TaskStatistics, change: Array, part: slice) -> Chunk:
    """Some tasks as a chunk, those with well-conditioned grams first."""
    d = stats.dim
    gram, moment = _changed(stats.gram[part], change), stats.moment[part] @ change
    n = len(gram)
    energy = np.zeros(n) if stats.energy is None else stats.energy[part]
    everyone = np.arange(n)
    grams = _padded(gram[:, *triangle(d)].T, everyone)
    moments = _padded(moment.T, everyone)
    inverses, estimates, fitted, logs, inflation = inverted(grams, moments)
    regular = inflation[:n] <= INFLATED
    others = n - int(regular.sum())
    if -(-others // LANES) == -(-n // LANES):  # no group of lanes fewer by the slower way
        regular[:] = False
    first, last = everyone[regular], everyone[~regular]
    unit = np.equal(*triangle(d)).astype(float)
    return Chunk(
        *(
            np.concatenate([_padded(one, first), _padded(one, last)], axis=-1)
            for one in (grams, moments, energy)
        ),
        _padded(inverses, first, unit),
        _padded(estimates, first),
        _padded(energy[first] - fitted[first], np.arange(len(first))),
        _padded(logs, first),
        len(first),
    )


def _changed(gram: Array, change: Array) -> Array:
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
    place = _places(d)

    def first(chunk: Chunk) -> tuple[object, ...]:
        tasks = EachTask(np.empty_like(chunk.moments), np.empty_like(chunk.grams))
        sums = estep(chunk, Parameters(mean, root, tau), tasks)
        return (*sums, tasks.weights @ tasks.weights.T, tasks)

    parts = each(first, packed.chunks)
    logs, quad, s, _, w, squares = (_total([part[i] for part in parts]) for i in range(6))
    information = full(w, d)
    lower = np.linalg.cholesky(information)
    shift = np.linalg.solve(lower.T, np.linalg.solve(lower, s))  # one step to the best mean
    spread = np.zeros((d, d))
    if restricted:
        spread = np.linalg.cholesky(np.linalg.inv(information))

    def second(part: tuple[object, ...]) -> tuple[object, ...]:
        found: tuple[object, ...] = second_pass(part[6], shift, spread)
        return found

    again = each(second, parts)
    ss, z = (full(_total([part[i] for part in again]), d) for i in range(2))
    cov = root @ root.T
    value = -0.5 * (packed.steps * math.log(2 * math.pi * variance) + logs + quad - shift @ s)
    noise = quad - shift @ s + np.sum(cov * (information - ss)) - packed.steps
    if restricted:
        value += 0.5 * d * math.log(2 * math.pi) - np.log(np.diag(lower)).sum()
        noise += d - np.sum(cov * z)
    wide = squares[np.ix_(place.ravel(), place.ravel())].reshape(d, d, d, d)
    gradient = 0.5 * (ss - information + z)
    return Point(float(value), mean + shift, gradient, 0.5 * float(noise), information, wide)


def rounding(energy: float) -> float:
    """The error of a likelihood by rounding, times the noise variance: sums of squares, which are
    taken from the sum of all squared rewards, leave it no more digits."""
    return float(np.finfo(float).eps) * energy


def _total(parts: list) -> Array:  # type: ignore[type-arg]
    total: Array = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


@cache
def triangle(d: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of a lower triangle, row by row."""
    rows, columns = np.tril_indices(d)
    return rows, columns


@cache
def _places(d: int) -> NDArray[np.intp]:
    """Where each entry of a symmetric matrix is in its lower triangle, row by row."""
    rows, columns = triangle(d)
    place = np.zeros((d, d), dtype=np.intp)
    place[rows, columns] = place[columns, rows] = np.arange(len(rows))
    return place


def full(lower: Array, d: int) -> Array:
    """The symmetric matrix of a lower triangle."""
    matrix: Array = lower[_places(d)]
    return matrix + 0.0  # no negative zeros
