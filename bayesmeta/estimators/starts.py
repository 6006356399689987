"""Where else a search for the largest likelihood may begin, in small tables.

There the likelihood has several maxima: with little noise and tasks that differ, or much noise and
tasks that do not; with tasks that differ in one direction, or in another.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bayesmeta.checks import Array, InputError
from bayesmeta.estimators import moments
from bayesmeta.estimators.likelihood import Packed, changed, full, rounding, triangle
from bayesmeta.estimators.noise import pooled_variance
from bayesmeta.gaussian import lower_root
from bayesmeta.kernels.ascend import Goal, Problem, ascend, nowhere
from bayesmeta.statistics import TaskStatistics

STARTS = 40
"""Places from which the likelihood is climbed."""
MANY = 200
"""The same where maxima are many."""
SEVERAL = 3
"""Of the ``STARTS``, where maxima are not expected to be several, that must all lead to the same
place: only then are the others left out."""
PLENTY = 10
"""Numbers told by tasks, for each to be estimated, from which on they are not."""
SAME_END = 1e-6
"""Ends of climbs that differ by less are taken for the same place."""
STEPS = 100
"""Steps from each of them at most."""
ENOUGH = 400
"""Tasks, or fewer than twice as many, that say where to begin: the moments and the noise."""
SAME = 1e-9
"""Eigenvalues of a gram that are this part of the largest count as zero."""
REACH = 0.5
"""Standard errors within which a climb has come to a place it is nearly as high as."""
LEAST = 1e-9
"""A climb ends at a step that gains less."""
LOST = 3e-7
"""Errors of the log-likelihood, by rounding, from which on less noise is not tried."""
RATIO = 1e10
"""Signal to noise from which on they are, for want of digits of the information, as large."""


class End(NamedTuple):
    """Where a climb ended: the log-likelihood, a root of Sigma, the noise variance."""

    value: float
    root: Array
    variance: float


def least_noise(energy: float, variance: float) -> float:
    """The noise variance below which a likelihood is in error by ``LOST``, or the first guess."""
    return min(rounding(energy) / LOST, variance)


def some_of(stats: TaskStatistics) -> TaskStatistics:
    """Of many tasks ``ENOUGH`` or so, scattered: every fourth, say, may be unlike the others."""
    n = len(stats)
    if n < 2 * ENOUGH:
        return stats
    apart = np.arange(n // (n // ENOUGH)) * ((np.sqrt(5.0) - 1) / 2) % 1.0  # by the golden ratio
    return stats.chosen(np.unique((n * apart).astype(np.int64)))


def first_noise(stats: TaskStatistics) -> float:
    """A noise variance to begin at: of some tasks where these show it, else of all."""
    if len(stats) >= 2 * ENOUGH:
        with suppress(InputError):
            variance, free = pooled_variance(some_of(stats))
            if free >= ENOUGH:
                return variance
    return pooled_variance(stats, common=True)[0]


def at_moments(
    stats: TaskStatistics, change: Array, variance: float | None, begin: float
) -> tuple[Array, float] | None:
    """Eq. (11) in the coordinates theta = ``change`` theta', without negative eigenvalues, and the
    noise variance of the tasks' own residuals; None where fewer than two tasks can be used.

    Where features are nearly constant within tasks, the differences of tasks are far larger than
    any of the usual starts. Of many tasks some will do to begin with.
    """
    state, some = moments.empty(len(change)), some_of(stats)
    moments.observe_all(state, changed(some.gram, change), some.moment @ change)
    if state.tasks[0] < 2:
        return None
    if variance is None:
        variance = begin
        with suppress(InputError):  # residuals that do not show the noise
            left, free = some.residuals()
            variance = left / free if free >= 1 and left > 0 else begin
    values, vectors = np.linalg.eigh(moments.covariance(state, variance))
    return (vectors * np.maximum(values, 0.0)) @ vectors.T, variance


class Climbs:
    """Climbs of one likelihood, by compiled code, from any place."""

    def __init__(
        self,
        packed: Packed,
        variance: float,
        least: float,
        free: bool,
        restricted: bool,
        own: int | None = None,
    ) -> None:
        self.packed, self.variance, self.least, self.free = packed, variance, least, free
        self.restricted, self.own = restricted, packed.dim if own is None else own

    @cached_property
    def table(self) -> _Table:
        """Covariances to begin at."""
        return _Table(self.packed, self.variance, self.own)

    def goal(self, known: End) -> Goal:
        """The same place for climbs, with half a standard error, as tasks have it who determine
        their theta, for reach."""
        cov = known.root @ known.root.T
        sizes = np.diag(cov) + known.variance / self.variance
        steps = max(self.packed.steps, float(self.packed.tasks))
        return Goal(
            known.value,
            cov,
            float(np.log(known.variance)),
            REACH * np.sqrt(np.outer(sizes, sizes) / self.packed.tasks),
            REACH * float(np.sqrt(2 / steps)),
        )

    def climb(self, cov: Array, noise: float, known: End | None = None) -> End | None:
        """Where a climb ends, ``known`` where it comes next to that; None where the likelihood
        cannot be computed, or where signal or noise are beyond ``RATIO``."""
        d, variance, least = self.own, self.variance, self.least
        (chunk,) = self.packed.chunks
        told = 0.0 if self.free else variance
        problem = Problem(chunk, self.packed.steps, told, least, self.restricted, d)
        x = lower_root(cov)[triangle(d)]
        x = np.append(x, np.log(noise)) if self.free else x
        goal = nowhere(d) if known is None else self.goal(known)
        value, arrived = ascend(problem, x, STEPS, LEAST, goal)
        noise = max(float(np.exp(x[-1])), least) if self.free else variance
        root = np.zeros((d, d))
        root[triangle(d)] = x[: d * (d + 1) // 2]
        signal = float(np.sum(root**2)) * variance / noise
        fine = np.isfinite(value) and max(signal, noise / variance) < RATIO
        end = known if arrived else End(value, root, noise)
        return end if fine else None

    def elsewhere(self, known: End | None = None, arrived: bool = False) -> list[End]:
        """Ends of climbs from many places, the highest first; where data are plenty and the first
        few all end at the height that is ``known``, of these alone. If a search has ``arrived``
        there, climbs that come next to it need not go on.

        The places are covariances of every size and rank and, where it is free, noise from the
        first guess down to the ``least``, drawn from a fixed seed: the same for the same table.
        """
        rng, variance, table = np.random.default_rng(0), self.variance, self.table
        one = np.eye(self.own)
        near = known if arrived and table.plenty else None
        found: list[End | None] = []
        for k in range(MANY if table.few else STARTS):
            if k == SEVERAL and table.plenty and _agree(found, known):
                break
            noise = variance
            if self.free:
                noise = float(np.exp(rng.uniform(np.log(self.least), np.log(variance))))
            make = (table.any, table.without_some, table.between_two)[k % 3 if table.few else 0]
            cov = make(rng) + 1e-4 * noise / variance * one
            found.append(self.climb(cov, noise, near))
        ends = [end for end in found if end is not None]
        return sorted(ends, key=lambda end: -end.value)


def _agree(ends: list[End | None], known: End | None) -> bool:
    """Whether all climbs ended at the height that is known."""
    return known is not None and all(
        end is not None and abs(end.value - known.value) < SAME_END for end in ends
    )


class _Table:
    """Covariances to begin at, made of the tasks of a small table and its first ``own`` features,
    those that differ between tasks."""

    def __init__(self, packed: Packed, variance: float, own: int) -> None:
        (chunk,), n, d = packed.chunks, packed.tasks, packed.dim
        # in units in which an average task's gram is the identity, and moments are like thetas
        behind = chunk.residuals.shape[0]  # after the regular ones, and the empty ones
        tasks = np.r_[: chunk.regular, behind : behind + n - chunk.regular]
        self.grams = full(chunk.grams.T[tasks], d) / variance
        self.moments = chunk.moments.T[tasks] / variance
        self.most = max(float(np.sum(self.moments**2)) / (n * d), 1.0)
        values = np.linalg.eigvalsh(self.grams)
        told = int((values > SAME * values[:, -1:]).sum())
        sought = d + own * (own + 1) // 2
        self.few = told < n * d and told <= 2 * sought
        """whether tasks, some of which do not determine their theta, have told hardly more numbers
        than there are to be estimated: then nearly every choice of tasks that are fitted exactly
        has a maximum of its own"""
        self.plenty = told >= PLENTY * sought
        self.grams, self.moments = self.grams[:, :own, :own], self.moments[:, :own]

    def _sizes(self, rng: np.random.Generator, count: int) -> Array:
        return np.exp(rng.uniform(np.log(1e-2), np.log(10 * self.most), size=count))

    def any(self, rng: np.random.Generator) -> Array:
        """Of any rank, in any direction."""
        d = self.grams.shape[1]
        sizes = self._sizes(rng, d)
        sizes[rng.integers(1, d + 1) :] = 0.0
        turned, _ = np.linalg.qr(rng.standard_normal((d, d)))
        cov: Array = (turned * sizes) @ turned.T
        return cov

    def without_some(self, rng: np.random.Generator) -> Array:
        """In the directions that some tasks say nothing of: the mean alone can fit those."""
        total = np.zeros_like(self.grams[0])
        rest = np.eye(len(total))
        for j in rng.permutation(len(self.grams)):
            total = total + self.grams[j]
            values, vectors = np.linalg.eigh(total)
            free = vectors[:, values < SAME * values[-1]]
            if not free.shape[1]:
                break
            rest = free
            if rng.random() < 0.3:
                break
        cov: Array = (rest * self._sizes(rng, rest.shape[1])) @ rest.T
        return cov

    def between_two(self, rng: np.random.Generator) -> Array:
        """In the direction in which two tasks differ: both can be fitted exactly."""
        one, two = rng.choice(len(self.grams), size=2, replace=False)
        thetas = [np.linalg.pinv(self.grams[j], SAME, True) @ self.moments[j] for j in (one, two)]
        return np.outer(thetas[0] - thetas[1], thetas[0] - thetas[1]) / 2
