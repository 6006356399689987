"""L-BFGS in coordinates in which Sigma and the information on the mean are diagonal.

There every entry of a root B of Sigma has a curvature of its own, which the diagonals tell: n b_j^2
for what tasks say of entry (i, j), more where the likelihood falls with B_ij on the boundary. In
units of these all directions are alike, also those in which Sigma vanishes, so that few steps lead
to a maximum, at a cost of d^3 a task each.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.estimators.likelihood import Point, triangle

MEMORY = 40
"""Steps that are remembered."""
NEAR = 1e-5
"""Slopes in these units at which a search ends: each promises a gain of half their square."""
FAR = 30.0
"""The largest change of log sigma^2 that is tried."""
NOTHING = 1e6
"""Log-likelihood by which a place is lower where it cannot be computed."""


class Coordinates(NamedTuple):
    """Sigma = T B B'T', where B begins as a diagonal; log sigma^2 comes last, where it is free."""

    change: Array
    begin: Array
    units: Array

    def place(self, x: Array) -> tuple[Array, float]:
        """T B, and the change of log sigma^2."""
        d = len(self.change)
        rows, columns = triangle(d)
        moved = self.begin + self.units * x
        b = np.zeros((d, d))
        b[rows, columns] = moved[: len(rows)]
        return self.change @ b, float(moved[-1]) if len(moved) > len(rows) else 0.0

    def slope(self, point: Point, half: Array) -> Array:
        """The gradient, where T B is ``half``."""
        rows, columns = triangle(len(half))
        slope: Array = 2 * (self.change.T @ point.gradient @ half)[rows, columns]
        if len(self.units) > len(rows):
            slope = np.append(slope, point.noise_gradient)
        return slope * self.units


def coordinates(point: Point, cov: Array, tasks: int, steps: float | None) -> Coordinates:
    """Those of a place; ``steps`` None: the noise is given."""
    d = len(cov)
    rows, columns = triangle(d)
    lower = np.linalg.cholesky(point.information / tasks)
    values, vectors = np.linalg.eigh(lower.T @ cov @ lower)
    values, vectors = np.clip(values[::-1], 0.0, None), vectors[:, ::-1]
    change = np.linalg.solve(lower.T, vectors)
    own = np.abs(np.diag(change.T @ point.gradient @ change))
    curvature = tasks * values[columns] * np.where(rows == columns, 2.0, 1.0)
    curvature += 2 * own[rows] + 0.1 * math.sqrt(tasks)  # at least the error of a slope
    begin = np.where(rows == columns, np.sqrt(values)[columns], 0.0)
    if steps is not None:
        noise = 0.5 * (steps - tasks * float(np.sum(values * (2 - values))))
        curvature, begin = np.append(curvature, max(noise, 1.0)), np.append(begin, 0.0)
    return Coordinates(change, begin, 1 / np.sqrt(curvature))
