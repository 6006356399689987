"""The ellipse that holds a share of N(mean, cov), and what lies within a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 201
"""Of a curve."""


def radius(level: float) -> float:
    """Of the circle that holds this share of the standard normal law in two dimensions."""
    return float(np.sqrt(-2 * np.log1p(-level)))


def ellipse(mean: Array, cov: Array, level: float) -> Array:
    """The curve, shape (2, points); a line where the covariance is singular."""
    values, vectors = np.linalg.eigh(cov)
    angle = np.linspace(0, 2 * np.pi, POINTS)
    circle = radius(level) * np.stack([np.cos(angle), np.sin(angle)])
    curve: Array = mean[:, None] + vectors * np.sqrt(np.maximum(values, 0.0)) @ circle
    return curve


def reach(covs: Array, level: float) -> Array:
    """How far ellipses reach from their centres along each axis, shape (..., 2)."""
    variances = np.diagonal(covs, axis1=-2, axis2=-1)
    far: Array = radius(level) * np.sqrt(np.maximum(variances, 0.0))
    return far


def within(axes: Axes, points: Array) -> NDArray[np.bool_]:
    """Which of the points, shape (n, 2), the limits of the axes leave in."""
    x, y = points.T
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    inside: NDArray[np.bool_] = (left <= x) & (x <= right) & (low <= y) & (y <= high)
    return inside
