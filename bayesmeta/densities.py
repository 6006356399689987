"""Actions drawn from other densities on a ball than the uniform one (Assumption 1)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayesmeta.actions import Law, UniformBall
from bayesmeta.checks import Array, InputError, covariance
from bayesmeta.chi2 import log_weighted_chi2_cdf


@dataclass(frozen=True, eq=False)
class TruncatedGaussian(Law):
    """Actions from N(0, cov) conditioned on the ball of radius a.

    Parameters
    ----------
    dim
        Dimension d of an action.
    radius
        Radius a of the ball.
    count
        Actions on offer at a step (K).
    redraw
        Whether the set is drawn anew at every "step", or once a "task".
    cov
        Positive definite, (d, d); the identity where None.

    Examples
    --------
    >>> law = bm.TruncatedGaussian(dim=2, radius=1.0, count=4, cov=np.diag([0.5, 0.1]))
    >>> np.diag(law.second_moment()).round(3)
    array([0.236, 0.091])
    """

    cov: Array | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        cov = np.eye(self.dim) if self.cov is None else self.cov
        cov = covariance("action covariance", cov, self.dim)
        if not np.linalg.eigvalsh(cov)[0] > 0:
            raise InputError("action covariance must be positive definite")
        object.__setattr__(self, "cov", cov)

    @cached_property
    def _axes(self) -> tuple[Array, Array]:
        assert self.cov is not None  # settled when made
        values, vectors = np.linalg.eigh(self.cov)
        return values, vectors

    def second_moment(self) -> Array:
        """Exact: E[x_i^2 1(ball)] = c_i P(c_i chi2_3 + sum over j != i of c_j chi2_1 <= a^2)."""
        values, vectors = self._axes
        freedom = np.ones(self.dim)
        inside = log_weighted_chi2_cdf(self.radius**2, values, freedom)
        more = freedom + 2 * np.eye(self.dim)
        tilted = [log_weighted_chi2_cdf(self.radius**2, values, row) for row in more]
        out: Array = (vectors * (values * np.exp(np.array(tilted) - inside))) @ vectors.T
        return out

    @cached_property
    def _acceptance(self) -> tuple[float, float]:
        """How often a draw from the Gaussian, and one from the uniform ball, is accepted."""
        values, _ = self._axes
        inside = log_weighted_chi2_cdf(self.radius**2, values, np.ones(self.dim))
        # the volume of the ball times the Gaussian's density at 0
        log_peak = (
            self.dim * math.log(self.radius)
            - self.dim / 2 * math.log(2)
            - math.lgamma(self.dim / 2 + 1)
            - 0.5 * float(np.log(values).sum())
        )
        return math.exp(inside), math.exp(min(inside - log_peak, 0.0))

    def points(self, rng: np.random.Generator, size: int) -> Array:
        """Exact, by rejection from the Gaussian or the uniform ball, whichever accepts more."""
        values, vectors = self._axes
        inside, from_ball = self._acceptance
        rate = max(inside, from_ball)
        if rate < 1e-5:
            raise InputError(
                f"action covariance is too uneven to sample in a ball of radius {self.radius:g} "
                f"(a draw is accepted {rate:.1g} of the time); use a rounder covariance"
            )
        ball = UniformBall(self.dim, self.radius, 1)
        parts: list[Array] = []
        found = 0
        while found < size:
            tries = int((size - found) / rate * 1.05) + 16
            if inside >= from_ball:
                x = rng.standard_normal((tries, self.dim)) * np.sqrt(values)
                keep = (x**2).sum(1) <= self.radius**2
            else:
                x = ball.points(rng, tries)
                keep = rng.random(tries) < np.exp(-0.5 * (x**2 / values).sum(1))
            parts.append(x[keep])
            found += int(keep.sum())
        out: Array = np.concatenate(parts)[:size] @ vectors.T
        return out


@dataclass(frozen=True, eq=False)
class RadialDensity(Law):
    """Actions with density proportional to ``density(|A|)`` on the ball of radius a.

    ``density`` is any vectorised function of the radius, finite and not negative on (0, a); it
    need not be normalised. Being a Python function it cannot run inside a kernel, so a task's
    actions are drawn from a table of its distribution of radii (linear between 20,001 knots).
    Assumption 1 asks that it does not increase.

    Parameters
    ----------
    dim
        Dimension d of an action.
    radius
        Radius a of the ball.
    count
        Actions on offer at a step (K).
    redraw
        Whether the set is drawn anew at every "step", or once a "task".
    density
        Of the radius, vectorised; constant unless given.

    Examples
    --------
    >>> bm.RadialDensity(dim=2, radius=1.0, count=4, density=lambda r: 1 - r).violation() is None
    True
    >>> bm.RadialDensity(dim=2, radius=1.0, count=4, density=lambda r: r).violation()
    'the density increases with the norm of the action'
    """

    density: Callable[[Array], Array] = np.ones_like

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = self._weights(self._midpoints)
        if not (weights.sum() > 0 and np.isfinite(weights.sum())):
            raise InputError("density is zero, or too large, on the whole ball")

    @cached_property
    def _knots(self) -> Array:
        # geometric spacing would serve densities that blow up at 0, even spacing smooth ones
        even = np.linspace(0.0, 1.0, 20_001)
        return np.asarray(self.radius * even**1.5)

    @property
    def _midpoints(self) -> Array:
        return (self._knots[1:] + self._knots[:-1]) / 2

    def _weights(self, radii: Array) -> Array:
        if not callable(self.density):
            raise InputError(f"density must be a function of the radius, got {self.density!r}")
        try:
            heights = np.asarray(self.density(radii), dtype=float)
        except (TypeError, ValueError, ArithmeticError) as error:
            said = " ".join(str(error).split())
            raise InputError(f"density must take an array of radii ({said})") from None
        if heights.shape != radii.shape:
            raise InputError("density must map an array of radii to an array of the same shape")
        if not np.isfinite(heights).all() or (heights < 0).any():
            raise InputError("density must be finite and not negative inside the ball")
        return heights

    @cached_property
    def _table(self) -> Array:
        """The distribution function of |A| at the knots."""
        shells = np.diff((self._knots / self.radius) ** self.dim)
        mass = np.concatenate([[0.0], np.cumsum(self._weights(self._midpoints) * shells)])
        return np.asarray(mass / mass[-1])

    def second_moment(self) -> Array:
        mass = np.diff(self._table)
        k, d = self._knots, self.dim
        # E r^2 within a shell where the density is flat
        volume = np.diff((k / self.radius) ** d)
        power = np.zeros_like(volume)  # shells too small for a float hold no mass
        np.divide(np.diff((k / self.radius) ** (d + 2)), volume, out=power, where=volume > 0)
        square = self.radius**2 * d / (d + 2) * float(mass @ power)
        return square / d * np.eye(d)

    def points(self, rng: np.random.Generator, size: int) -> Array:
        direction = rng.standard_normal((size, self.dim))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        powers = (self._knots / self.radius) ** self.dim
        radii = self.radius * np.interp(rng.random(size), self._table, powers) ** (1 / self.dim)
        return np.asarray(direction * radii[:, None])

    def violation(self) -> str | None:
        heights = self._weights(self._midpoints)
        heights = heights[heights > 0]  # Assumption 1 speaks of the support
        if (heights > np.minimum.accumulate(heights) * (1 + 1e-9)).any():
            return "the density increases with the norm of the action"
        return super().violation()
