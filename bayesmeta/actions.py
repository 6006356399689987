"""Action sets: what is on offer at a step, and the law it is drawn from (Assumption 1)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np

from bayesmeta.checks import Array, InputError, array, covariance, one_of, real, whole
from bayesmeta.kernels.draw import uniform_ball
from bayesmeta.units import check_size

Redraw = Literal["step", "task"]
_FIXED = "actions are fixed within a task, so exploration steps are not independent draws"


class ActionSet(Protocol):
    """What every action set offers; ``count`` is None for the whole ball."""

    @property
    def dim(self) -> int: ...

    @property
    def radius(self) -> float:
        """A bound a on the norm of every action."""

    @property
    def count(self) -> int | None: ...

    def second_moment(self) -> Array:
        """E[A A'] of an action chosen uniformly from the set.

        This is the covariance of the action law Sigma_A for the zero-mean laws of Assumption 1,
        and for any law it is what the gram of exploration steps concentrates on.
        """

    def draw(self, rng: np.random.Generator, horizon: int) -> Array:
        """The sets of a task, (horizon, d, K), or (1, d, K) where they stay; K = 0 for a ball."""

    def violation(self) -> str | None:
        """Why Assumption 1 fails, or None where it holds."""


@dataclass(frozen=True)
class _Law(ABC):
    """K actions drawn independently from one law, anew at each step or once a task."""

    dim: int
    radius: float
    count: int
    redraw: Redraw = "step"

    def __post_init__(self) -> None:
        whole("dim", self.dim, least=1)
        whole("count", self.count, least=1)
        radius = check_size("radius", real("radius", self.radius, above=0.0))
        object.__setattr__(self, "radius", radius)
        one_of("redraw", self.redraw, ("step", "task"))

    def _sets(self, horizon: int) -> int:
        return horizon if self.redraw == "step" else 1

    @abstractmethod
    def points(self, rng: np.random.Generator, size: int) -> Array:
        """``size`` independent actions, (size, d)."""

    def draw(self, rng: np.random.Generator, horizon: int) -> Array:
        sets = self._sets(horizon)
        points = self.points(rng, sets * self.count).reshape(sets, self.count, self.dim)
        return np.ascontiguousarray(points.transpose(0, 2, 1))

    def violation(self) -> str | None:
        return None if self.redraw == "step" else _FIXED


@dataclass(frozen=True)
class UniformBall(_Law):
    """Actions uniform in the ball of radius a; Sigma_A = a^2 / (d + 2) I.

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

    Examples
    --------
    >>> law = bm.UniformBall(dim=3, radius=0.5, count=4)
    >>> law.draw(np.random.default_rng(0), horizon=10).shape
    (10, 3, 4)
    >>> np.diag(law.second_moment())
    array([0.05, 0.05, 0.05])
    """

    def second_moment(self) -> Array:
        return self.radius**2 / (self.dim + 2) * np.eye(self.dim)

    def points(self, rng: np.random.Generator, size: int) -> Array:
        out = np.empty((1, self.dim, size))
        uniform_ball(rng, self.radius, out)
        return np.ascontiguousarray(out[0].T)

    def draw(self, rng: np.random.Generator, horizon: int) -> Array:
        out: Array = self.space(horizon, 1)[0]
        uniform_ball(rng, self.radius, out)
        return out

    def space(self, horizon: int, tasks: int) -> Array:
        """Space for the sets of some tasks."""
        return np.empty((tasks, self._sets(horizon), self.dim, self.count))


@dataclass(frozen=True, eq=False)
class TruncatedGaussian(_Law):
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
        inside = _log_weighted_chi2_cdf(self.radius**2, values, freedom)
        more = freedom + 2 * np.eye(self.dim)
        tilted = [_log_weighted_chi2_cdf(self.radius**2, values, row) for row in more]
        out: Array = (vectors * (values * np.exp(np.array(tilted) - inside))) @ vectors.T
        return out

    @cached_property
    def _acceptance(self) -> tuple[float, float]:
        """How often a draw from the Gaussian, and one from the uniform ball, is accepted."""
        values, _ = self._axes
        inside = _log_weighted_chi2_cdf(self.radius**2, values, np.ones(self.dim))
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
class RadialDensity(_Law):
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


@dataclass(frozen=True, eq=False)
class FiniteSet:
    """The same K given actions at every step.

    Parameters
    ----------
    actions
        One a row, (K, d).

    Examples
    --------
    >>> bm.FiniteSet([[3.0, 4.0], [1.0, 0.0]]).radius
    5.0
    """

    actions: Array

    def __post_init__(self) -> None:
        actions = array("actions", self.actions, (None, None))
        if actions.size == 0:
            raise InputError("actions is empty; give at least one action")
        check_size("the largest entry of actions", float(np.abs(actions).max()))
        object.__setattr__(self, "actions", actions)

    @property
    def dim(self) -> int:
        return int(self.actions.shape[1])

    @property
    def count(self) -> int:
        return int(self.actions.shape[0])

    @property
    def radius(self) -> float:
        return float(np.linalg.norm(self.actions, axis=1).max())

    def second_moment(self) -> Array:
        out: Array = self.actions.T @ self.actions / self.count
        return out

    def draw(self, rng: np.random.Generator, horizon: int) -> Array:
        return np.array(self.actions.T, order="C")[None]

    def violation(self) -> str | None:
        return "a given finite set is not drawn from a density on a ball"


def unit_vectors(count: int) -> FiniteSet:
    """A bandit with ``count`` arms: the unit vectors, so that theta holds the arms' means.

    Parameters
    ----------
    count
        Arms (K), which is also the dimension.

    Returns
    -------
    FiniteSet
        The K unit vectors.

    Examples
    --------
    >>> bm.unit_vectors(2).actions
    array([[1., 0.],
           [0., 1.]])
    """
    return FiniteSet(np.eye(whole("count", count, least=1)))


@dataclass(frozen=True)
class WholeBall:
    """The whole ball of radius a at every step; the best action is a theta / |theta|.

    Parameters
    ----------
    dim
        Dimension d of an action.
    radius
        Radius a of the ball.

    Examples
    --------
    >>> print(bm.WholeBall(dim=3, radius=0.5).count)
    None
    """

    dim: int
    radius: float

    @property
    def count(self) -> None:
        """There is no number of actions."""
        return

    def __post_init__(self) -> None:
        whole("dim", self.dim, least=1)
        radius = check_size("radius", real("radius", self.radius, above=0.0))
        object.__setattr__(self, "radius", radius)

    def second_moment(self) -> Array:
        return self.radius**2 / (self.dim + 2) * np.eye(self.dim)

    def draw(self, rng: np.random.Generator, horizon: int) -> Array:
        return np.empty((1, self.dim, 0))

    def violation(self) -> str | None:
        return None


def _log_weighted_chi2_cdf(bound: float, weights: Array, freedom: Array) -> float:
    """ln P(sum_i w_i chi2(f_i) <= bound) by Ruben's series: a mixture of chi2 laws of scale min w.

    All terms are positive, so small probabilities keep their relative accuracy.
    """
    from scipy.special import logsumexp
    from scipy.stats import chi2

    total = float(freedom.sum())
    if chi2.sf(bound / weights.max(), total) < 1e-16:
        return 0.0  # nothing to speak of is cut off
    scale = float(weights.min())
    rest = 1 - scale / weights
    # beyond this many terms the chi2 probabilities vanish
    reach = int(bound / scale / 2 + 12 * math.sqrt(bound / scale / 2 + 1)) + 40
    limit = min(reach, 20_000)
    powers = 0.5 * (freedom * rest[None, :] ** np.arange(1, limit + 1)[:, None]).sum(1)
    mix = np.zeros(limit)
    mix[0] = math.exp(0.5 * float((freedom * np.log(scale / weights)).sum()))
    covered = mix[0]
    for k in range(1, limit):
        if covered > 1 - 1e-15:
            break
        mix[k] = float(powers[:k][::-1] @ mix[:k]) / k
        covered += mix[k]
    else:
        if reach > limit or covered == 0:
            raise InputError(
                "action covariance is too uneven for its ball: radius^2 / smallest eigenvalue "
                f"is {bound / scale:.3g}, largest / smallest {weights.max() / scale:.3g}; "
                "use a rounder covariance or a smaller ball"
            )
    logs = _log_chi2_cdf(bound / scale, total + 2.0 * np.arange(limit, dtype=np.float64))
    return float(logsumexp(logs, b=mix))


def _log_chi2_cdf(x: float, freedom: Array) -> Array:
    """ln P(chi2(f) <= x), also where the probability itself is below the smallest float."""
    from scipy.special import gammainc, gammaln, hyp1f1

    a, half = freedom / 2, x / 2
    out = np.empty_like(a)
    small = half < a + 1
    out[~small] = np.log(gammainc(a[~small], half))
    # gammainc(a, h) = h^a e^-h / Gamma(a + 1) 1F1(1; a + 1; h)
    log_power = a[small] * math.log(half) - half
    out[small] = log_power - gammaln(a[small] + 1) + np.log(hyp1f1(1.0, a[small] + 1, half))
    return out
