"""Action sets: what is on offer at a step, and the law it is drawn from (Assumption 1)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from bayesmeta.checks import Array, InputError, array, one_of, real, whole
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
class Law(ABC):
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
class UniformBall(Law):
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
