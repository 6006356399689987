"""The search for the maximum of a likelihood: steps of EM, of scoring, of L-BFGS."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Array
from bayesmeta.estimators.information import expected_information
from bayesmeta.estimators.likelihood import (
    WIDE,
    Each,
    Packed,
    Point,
    evaluate,
    places,
    rounding,
    triangle,
    value_at,
)
from bayesmeta.estimators.scaled import FAR, MEMORY, NEAR, NOTHING, coordinates
from bayesmeta.gaussian import lower_root, triangular

GAIN = 1e-12
"""A step that promises less log-likelihood than this is taken only while such promises shrink."""
NONE = 1e-16
"""A step is not taken if it promises less: parameters are then within 1e-8 standard errors."""
SMALL = 1e-7
"""Converged: what the last step promised, where rounding kept it from being taken."""
LIMIT = 200
"""Steps at most."""
SCORING = 25
"""Steps of scoring before L-BFGS helps."""
ROUND = 10
"""Steps of L-BFGS in the same coordinates, at first: those of a better place are better. Twice as
many in every round, since where the likelihood is hard to climb it takes a long memory."""
FLAT = 1e-7
"""Eigenvalues of Sigma below this, where noise is 1, count as zero."""


FALL = 1e-2
"""The likelihood falls, as the noise becomes a tenth, if by more than this."""


class Search:
    """Where the search is, and the steps it can take.

    Where only the first ``own`` of the features differ between tasks, Sigma is zero in the rows and
    columns of the others, and every step stays there.
    """

    def __init__(
        self,
        packed: Packed,
        mean: Array,
        cov: Array,
        variance: float,
        unit: float,
        free: bool,
        restricted: bool,
        each: Each,
        own: int | None = None,
    ) -> None:
        self.packed, self.free = packed, free
        self.own = packed.dim if own is None else own
        self.restricted, self.each = restricted, each
        self.mean, self.root, self.variance = mean, self._padded(lower_root(cov)), variance
        self.point = self._at(self.root, variance)
        self.promise = math.inf
        self.unit = unit

    @property
    def cov(self) -> Array:
        return self.root @ self.root.T

    @property
    def flat(self) -> float:
        """Below this eigenvalues of Sigma count as zero: ``FLAT``, less where the noise is less
        than that of the coordinates, ``unit``."""
        return FLAT * min(1.0, self.variance / self.unit)

    @property
    def own_cov(self) -> Array:
        """Sigma of the features that differ between tasks."""
        return self.cov[: self.own, : self.own]

    def _padded(self, root: Array) -> Array:
        """A root of Sigma, given that of the features that differ between tasks."""
        more = self.packed.dim - len(root)
        return np.pad(root, (0, more)) if more else root

    def _at(self, root: Array, variance: float) -> Point:
        # coordinates are those of ``unit``; the kernels take the variance as it is
        return evaluate(self.packed, self.mean, root, variance, self.restricted, self.each)

    def _move(self, root: Array, variance: float, point: Point) -> None:
        self.root, self.variance, self.point, self.mean = root, variance, point, point.mean

    def em(self) -> None:
        """One step of EM: Sigma becomes the mean second moment of the posteriors."""
        cov = self.own_cov
        cov = cov + 2 * cov @ self._own(self.point).gradient @ cov / self.packed.tasks
        variance = self.variance
        if self.free:
            variance *= 1 + 2 * self.point.noise_gradient / self.packed.steps
        root = self._padded(lower_root((cov + cov.T) / 2))
        self._move(root, variance, self._at(root, variance))

    def _own(self, point: Point) -> Point:
        """What a point says of the features that differ between tasks."""
        k = self.own
        return point._replace(
            gradient=point.gradient[:k, :k], information=point.information[:k, :k]
        )

    def climb(self, limit: int) -> tuple[int, bool]:
        """Steps until nothing is left to gain, also off the boundary; their number, and whether
        they arrived. Of scoring, in (L, log sigma^2), or where these are slow, of L-BFGS: scoring
        costs d^4 a task."""
        wide, steps = self.own >= WIDE, 0
        size = ROUND if wide else limit
        while steps < limit:
            if not wide:
                for _ in range(min(SCORING, limit - steps)):
                    steps += 1
                    if self._score() and not self._leave_boundary():
                        return steps, self.promise < SMALL
            if steps < limit:
                before = self.point.value
                steps += self.in_scale(min(limit - steps, size))
                size *= 2
                ended = wide and self.point.value - before < SMALL
                if ended and not self._leave_boundary():
                    return steps, self.promise < SMALL
        return steps, False

    def in_scale(self, limit: int) -> int:
        """Go on by L-BFGS in coordinates of the place where it begins; the number of its steps."""
        from scipy.optimize import minimize

        free, begin = self.free, self.variance
        scale = coordinates(
            self._own(self.point),
            self.own_cov,
            self.packed.tasks,
            self.packed.steps if free else None,
        )

        def place(x: Array) -> tuple[Array, float, Array]:
            half, change = scale.place(x)
            root = self._padded(triangular(half))
            return root, begin * math.exp(min(max(change, -FAR), FAR)), half

        def loss(x: Array) -> tuple[float, Array]:
            root, variance, half = place(x)
            try:
                point = self._at(root, variance)
            except np.linalg.LinAlgError:
                return NOTHING - self.point.value, np.zeros_like(x)
            return -point.value, -scale.slope(self._own(point), half)

        found = minimize(
            loss,
            np.zeros_like(scale.units),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": limit, "maxcor": MEMORY, "ftol": 0.0, "gtol": NEAR},
        )
        self.promise = float(found.jac @ found.jac)
        if found.fun <= -self.point.value:
            root, variance, _ = place(found.x)
            self._move(root, variance, self._at(root, variance))
        return max(int(found.nit), 1)

    def _score(self) -> bool:
        """One step with a line search; whether there was no more to gain."""
        rows, columns = triangle(self.own)
        gradient: Array = 2 * (self.point.gradient @ self.root)[rows, columns]
        if self.free:
            gradient = np.append(gradient, self.point.noise_gradient)
        curvature = self._curvature(rows, columns)
        values, vectors = np.linalg.eigh(curvature)
        size = np.maximum(np.abs(values), 1e-12 * np.abs(values).max() + 1e-300)
        along = vectors.T @ gradient
        step = vectors @ (along / size)
        last, promise = self.promise, float(along @ (along / size))
        self.promise = promise
        if promise < NONE or (promise < GAIN and promise > 0.7 * last):
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
        d, p = self.own, len(rows)
        info = expected_information(self, d)
        # entry (i, b) of Sigma moves by L_bj, or twice that where b is i, as L_ij does
        jacobian = np.zeros((p, p))
        twice = 1.0 + (rows[:, None] == np.arange(d))
        jacobian[places(d)[rows], np.arange(p)[:, None]] = self.root.T[columns, :d] * twice
        out = np.empty((p + 1, p + 1))
        out[:p, :p] = jacobian.T @ info[:-1, :-1] @ jacobian
        bend = 2 * self.point.gradient[np.ix_(rows, rows)]
        out[:p, :p] -= np.where(columns[:, None] == columns[None, :], bend, 0.0)
        out[:p, p] = out[p, :p] = info[:-1, -1] @ jacobian * self.variance
        out[p, p] = info[-1, -1] * self.variance**2
        return out if self.free else out[:p, :p]

    def with_noise(self, variance: float) -> float:
        """The likelihood with this noise, the covariance being the same."""
        if variance == self.variance:
            return self.point.value
        return value_at(self.packed, self.mean, self.root, variance, self.restricted, self.each)

    def rises_without_noise(self, energy: float, vanishes: bool) -> bool:
        """Whether the likelihood does not fall as the noise goes on to 0, all else the same.

        At a maximum with noise it falls by several units; where too few digits are left to see
        that, whether the noise ``vanishes`` decides.
        """
        less = self.variance / 10
        if rounding(energy) / less > FALL:
            return vanishes
        try:
            return self.with_noise(less) > self.point.value - FALL
        except np.linalg.LinAlgError:
            return vanishes

    def _leave_boundary(self) -> bool:
        """Where Sigma is singular, grow it in a direction in which the likelihood rises."""
        values, vectors = np.linalg.eigh(self.own_cov)
        null = vectors[:, values < self.flat]
        if not null.size:
            return False
        slopes, directions = np.linalg.eigh(null.T @ self._own(self.point).gradient @ null)
        if slopes[-1] <= 0:
            return False
        direction = null @ directions[:, -1]
        for size in 10.0 ** np.arange(0, -8, -1):
            root = lower_root(self.own_cov + size * np.outer(direction, direction))
            root = self._padded(root)
            point = self._at(root, self.variance)
            if point.value > self.point.value + GAIN:
                self._move(root, self.variance, point)
                return True
        return False
