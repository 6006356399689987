"""Coordinates in which a posterior is nearly a standard normal: its mode, and a root of the inverse
of its Hessian there.

The search goes in coordinates scaled by the Hessian where it starts, so that features with a far
origin (a year), which tie an intercept to a slope, cost it nothing. With few tasks, or where a
standard deviation may be zero, the Hessian at the mode says little about the posterior: directions
are then no wider than the prior, and where the search ends at no mode there are no coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from bayesmeta.checks import Array


class Searchable(Protocol):
    """A log-density whose mode can be looked for."""

    @property
    def size(self) -> int:
        """Entries of a point."""

    def log_density(self, point: Array) -> tuple[float, Array]:
        """And its gradient."""

    def starts(self) -> list[Array]:
        """Points to begin at."""

    def scales(self) -> Array:
        """Widths of the entries, roughly."""


FLOOR = 0.25
"""Curvature in units of the prior that every direction has at least: at most twice its width."""
STEP = 1e-3
"""Of the differences of gradients that make a Hessian, in units of the coordinates' own width."""
SLACK = 1e-3
"""How far the log-density may lie below its maximum where the search ends."""


class Frame(NamedTuple):
    """x = centre + root z; ``curvature`` are eigenvalues of the Hessian in units of the prior."""

    centre: Array
    root: Array
    curvature: Array

    def point(self, z: Array) -> Array:
        """From the frame's coordinates; without BLAS, whose bits depend on its threads."""
        x: Array = self.centre + np.einsum("ij,j->i", self.root, z)
        return x

    def points(self, zs: Array) -> Array:
        """The same of many, (…, size)."""
        xs: Array = self.centre + np.einsum("ij,...j->...i", self.root, zs)
        return xs

    def density(self, target: Searchable, z: Array) -> tuple[float, Array]:
        """The log-density and its gradient in the frame's coordinates."""
        value, gradient = target.log_density(self.point(z))
        return value, np.einsum("ij,i->j", self.root, gradient)


def find_frame(target: Searchable, others: Sequence[Array] = ()) -> Frame | None:
    """The frame at the mode that is reached from the best of the target's starts and of ``others``;
    None where the search finds none."""
    with threadpool_limits(1), np.errstate(all="ignore"):
        # a density that is NaN is not the best
        starts = [*others, *target.starts()]
        values = [target.log_density(point)[0] for point in starts]
        centre = starts[int(np.argmax(np.nan_to_num(values, nan=-np.inf)))]
        units = Frame(centre, np.diag(target.scales()), np.empty(0))
        frame = units
        for _ in range(3):
            curved = _curved(target, frame, units)
            if curved is None:
                return None
            frame, left = _climbed(target, curved)
            if left < SLACK:
                return _curved(target, frame, units)
    return None


def _curved(target: Searchable, frame: Frame, units: Frame) -> Frame | None:
    """A frame at the same centre from the Hessian there, by central differences along the axes of
    the one given; eigenvalues by their size, and no smaller than ``FLOOR``."""
    size = target.size
    slopes = np.empty((size, size))
    for i, way in enumerate(STEP * np.eye(size)):
        up, down = frame.density(target, way)[1], frame.density(target, -way)[1]
        slopes[i] = (down - up) / (2 * STEP)
    widths = np.diagonal(units.root)
    inverse = np.linalg.inv(frame.root / widths[:, None])  # from the prior's units to the frame
    hessian = inverse.T @ slopes @ inverse
    if not np.isfinite(hessian).all():
        return None
    values, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
    wide = widths[:, None] * vectors / np.sqrt(np.maximum(np.abs(values), FLOOR))
    return Frame(frame.centre, wide, values)


def _climbed(target: Searchable, frame: Frame) -> tuple[Frame, float]:
    """The frame moved to where L-BFGS ends, and how much higher a Newton step would lead."""
    from scipy.optimize import minimize

    def downhill(z: Array) -> tuple[float, Array]:
        value, gradient = frame.density(target, z)
        if not math.isfinite(value):
            return math.inf, np.zeros_like(z)
        return -value, -gradient

    found = minimize(
        downhill,
        np.zeros(target.size),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 200, "maxfun": 400, "gtol": 1e-4, "ftol": 1e-12, "maxcor": 20},
    )
    moved = frame._replace(centre=frame.point(found.x))
    return moved, float(found.jac @ found.jac) / 2
