"""The environment: linear-bandit tasks drawn from a Gaussian prior (Section 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bayesmeta.actions import ActionSet, UniformBall
from bayesmeta.checks import LATER, Array, InputError, of_type, real, whole
from bayesmeta.display import html_table
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.kernels.draw import best_of_tasks, best_rewards, tasks_of_ball
from bayesmeta.kernels.pcg import draw_with
from bayesmeta.streams import ENVIRONMENT, stream
from bayesmeta.theory.regime import Bounds, Regime
from bayesmeta.units import Units

__all__ = ["Bounds", "Setting", "Task", "TaskFamily", "paper_family"]


@dataclass(frozen=True)
class Setting(Regime):
    """All a learner may know before its first task.

    Parameters
    ----------
    dim : int
        d.
    horizon : int
        T, the steps of a task.
    tasks : int
        N, the tasks to come.
    noise_sd : float
        sigma.
    bounds : Bounds
        Those of Assumptions 1-3.
    truth : GaussianPrior, optional
        N(mu_*, Sigma_*), for agents that know it.
    ball : float, optional
        The radius of the ball, where the whole ball is on offer at every step.
    hyper : GaussianPrior, optional
        The hyper-prior N(m_q, S_q) of mu_*, for agents that are told one.

    Examples
    --------
    >>> setting = bm.paper_family().setting(tasks=10_000)
    >>> setting.dim, setting.horizon, setting.bounds.radius
    (5, 200, 0.25)
    """

    truth: GaussianPrior | None = None
    ball: float | None = None
    hyper: GaussianPrior | None = field(default=None, metadata=LATER)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ball is not None:
            object.__setattr__(self, "ball", real("ball", self.ball, above=0.0))
        if self.truth is not None and self.truth.dim != self.dim:
            raise InputError(f"truth has dimension {self.truth.dim}, the setting {self.dim}")
        check_hyper(self.hyper, self.dim)
        _ = self.units  # refuses numbers that no units bring together

    @property
    def total(self) -> int:
        """The steps of all tasks, N T."""
        return self.tasks * self.horizon

    @cached_property
    def units(self) -> Units | None:
        """What tasks are played in; None: in the units of the setting's own numbers."""
        bounds = self.bounds
        theta = max(math.sqrt(bounds.prior_max), bounds.mean_norm, _size(self.truth))
        return Units.of(self.noise_sd, max(bounds.radius, self.ball or 0.0), theta)

    def in_units(self, units: Units) -> Setting:
        """The same setting in other units, without its truth, its ball and its hyper-prior."""
        bounds = self.bounds
        own = Bounds(
            radius=float(units.inside(bounds.radius, 0, 1)),
            action_min=float(units.inside(bounds.action_min, 0, 2)),
            prior_min=float(units.inside(bounds.prior_min, 2, -2)),
            prior_max=float(units.inside(bounds.prior_max, 2, -2)),
            mean_norm=float(units.inside(bounds.mean_norm, 1, -1)),
        )
        noise_sd = float(units.inside(self.noise_sd, 1, 0))
        return Setting(self.dim, self.horizon, self.tasks, noise_sd, own)


NOTHING: Array = np.empty((0, 0, 0))
"""``Task.earned`` where what is earned is the reward."""


class Task(NamedTuple):
    """One drawn task. ``actions`` is (steps, d, K), (1, d, K) where fixed, with K = 0 where the
    whole ball of ``radius`` is on offer; ``best`` is the most that each set earns on average.
    ``earned`` has the features w_k a_k of what actions earn, where that is not their reward."""

    theta: Array
    noise: Array
    actions: Array
    radius: float
    best: Array
    earned: Array = NOTHING

    def of(self, theta: Array) -> Task:
        """The same task with another parameter."""
        best = np.empty(len(self.actions))
        best_rewards(self.earned if self.earned.size else self.actions, theta, best)
        return self._replace(theta=theta, best=best)


@dataclass(frozen=True, repr=False)
class TaskFamily:
    """Linear-bandit tasks whose parameters are drawn from one prior.

    Parameters
    ----------
    prior : GaussianPrior
        N(mu_*, Sigma_*), which theta is drawn from.
    actions : ActionSet
        What is on offer at a step, such as ``UniformBall(dim, radius, count)``.
    noise_sd : float
        sigma.
    horizon : int
        T, the steps of a task.
    bounds : Bounds, optional
        What learners are told; the exact values of this family where None.
    hyper : GaussianPrior, optional
        The hyper-prior N(m_q, S_q) of mu_*, told to agents that use one.
    redraw : bool
        Whether mu_* is drawn anew from ``hyper`` for every run, so that regret is averaged over the
        hyper-prior; otherwise it is that at the one mu_* of ``prior``.

    Examples
    --------
    >>> bm.paper_family()
    TaskFamily
    prior    N(mu, Sigma), d = 5, |mu| = 4.472, eigenvalues of Sigma 0.2 to 4.2
    actions  UniformBall(dim=5, radius=0.25, count=20, redraw='step')
    noise_sd 1
    horizon  200
    """

    prior: GaussianPrior
    actions: ActionSet
    noise_sd: float
    horizon: int
    bounds: Bounds | None = None
    hyper: GaussianPrior | None = field(default=None, metadata=LATER)
    redraw: bool = field(default=False, metadata=LATER)

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_sd", real("noise_sd", self.noise_sd, above=0.0))
        object.__setattr__(self, "horizon", whole("horizon", self.horizon, least=1))
        of_type("prior", self.prior, GaussianPrior, "use GaussianPrior(mean, cov)")
        if not hasattr(self.actions, "second_moment") or isinstance(self.actions, type):
            got = getattr(self.actions, "__name__", type(self.actions).__name__)
            raise InputError(
                f"actions must be an action set, got {got}; "
                "use FiniteSet(array) for given actions, or a law such as UniformBall"
            )
        if self.prior.dim != self.actions.dim:
            raise InputError(
                f"prior has dimension {self.prior.dim} but actions have {self.actions.dim}"
            )
        Units.of(self.noise_sd, self.actions.radius, _size(self.prior))
        check_hyper(self.hyper, self.prior.dim)
        if self.redraw and self.hyper is None:
            raise InputError("redraw needs hyper, the prior that mu_* is drawn from; give it")

    @property
    def dim(self) -> int:
        """The number of features, d."""
        return self.prior.dim

    @property
    def payoffs(self) -> Array | None:
        """What a unit of reward earns at each action (K,), where it is not 1 at all of them."""
        found: Array | None = getattr(self.actions, "payoffs", None)
        return found

    def notes(self) -> list[str]:
        """What a reader of results should know, such as parameters that make no sense."""
        note = getattr(self.actions, "note", None)
        found = None if note is None else note(self._marginal())
        return [] if found is None else [found]

    def _marginal(self) -> GaussianPrior:
        """What theta is drawn from, over all runs."""
        if self.hyper is None or not self.redraw:
            return self.prior
        return GaussianPrior(self.hyper.mean, self.prior.cov + self.hyper.cov)

    def _rows(self) -> list[list[str]]:
        lowest, highest = _extremes(self.prior.cov)
        prior = (
            f"N(mu, Sigma), d = {self.dim}, |mu| = {np.linalg.norm(self.prior.mean):.4g}, "
            f"eigenvalues of Sigma {lowest:.4g} to {highest:.4g}"
        )
        rows = [
            ["prior", prior],
            ["actions", repr(self.actions)],
            ["noise_sd", f"{self.noise_sd:g}"],
            ["horizon", str(self.horizon)],
        ]
        if self.hyper is not None:
            lowest, highest = _extremes(self.hyper.cov)
            drawn = "drawn for every run" if self.redraw else "told, but mu is fixed"
            rows += [
                ["hyper", f"mu ~ N(m, S), eigenvalues of S {lowest:.4g} to {highest:.4g}, {drawn}"]
            ]
        rows += [] if self.bounds is None else [["bounds", repr(self.bounds)]]
        return rows + [["note", note] for note in self.notes()]

    def __repr__(self) -> str:
        return "\n".join(["TaskFamily", *(f"{name:<9}{value}" for name, value in self._rows())])

    def _repr_html_(self) -> str:
        return html_table("TaskFamily", [["part", "what it is"], *self._rows()])

    def told(self) -> Bounds:
        """The bounds given, or the family's exact values."""
        if self.bounds is not None:
            return self.bounds
        lowest, highest = _extremes(self.prior.cov)
        return Bounds(
            radius=self.actions.radius,
            action_min=_extremes(self.actions.second_moment())[0],
            prior_min=lowest,
            prior_max=highest,
            mean_norm=float(np.linalg.norm(self.prior.mean)),
        )

    def setting(self, tasks: int) -> Setting:
        """What agents that meet ``tasks`` tasks of this family are told."""
        ball = self.actions.radius if self.actions.count is None else None
        return Setting(
            self.dim, self.horizon, tasks, self.noise_sd, self.told(), self.prior, ball, self.hyper
        )

    def in_run(self, seed: int) -> TaskFamily:
        """The family of one run: itself, or with its mu_* drawn from the hyper-prior."""
        if not self.redraw:
            return self
        assert self.hyper is not None  # checked when made
        mean = self.hyper.sample(stream(seed, f"{ENVIRONMENT}/hyper"))
        return replace(self, prior=GaussianPrior(mean, self.prior.cov), redraw=False)

    def draw(self, rng: np.random.Generator) -> Task:
        """One task: parameter, then noise, then actions, in that order from one generator."""
        theta, noise = self._law(rng)
        actions, radius = self.actions.draw(rng, self.horizon), self.actions.radius
        if actions.shape[-1] == 0:
            best = np.array([radius * np.linalg.norm(theta)])
            return Task(theta, noise, actions, radius, best)
        earned = NOTHING if self.payoffs is None else actions * self.payoffs
        return Task(theta, noise, actions, radius, np.empty(0), earned).of(theta)

    def draw_block(self, rng: np.random.Generator, size: int) -> Task:
        """Several tasks as ``draw`` draws them one after another, with a leading axis."""
        if not isinstance(self.actions, UniformBall) or type(self) is not TaskFamily:
            drawn = [self.draw(rng) for _ in range(size)]
            parts = (np.array(part) for part in zip(*drawn, strict=True))
            theta, noise, actions, _, best, earned = parts
            return Task(theta, noise, actions, self.actions.radius, best, earned)
        normals, noise = np.empty((size, self.dim)), np.empty((size, self.horizon))
        actions = self.actions.space(self.horizon, size)
        draw_with(rng, tasks_of_ball, self.actions.radius, normals, noise, actions)
        theta = np.array([self._parameter(row) for row in normals])
        best = np.empty(actions.shape[:2])
        best_of_tasks(actions, theta, best)
        none = np.empty((size, 0, 0, 0))
        return Task(theta, noise, actions, self.actions.radius, best, none)

    def _law(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Theta, and the noise of all steps in units of sigma; other laws override it."""
        return self._parameter(rng.standard_normal(self.dim)), rng.standard_normal(self.horizon)

    def _parameter(self, normals: Array) -> Array:
        out: Array = self.prior.mean + self.prior.cholesky @ normals
        return out

    def violations(self) -> dict[str, str]:
        """Which of Assumptions 1-3 fail, and why; empty where the theory applies."""
        found = {}
        told, values = self.told(), np.linalg.eigvalsh(self.prior.cov)
        slack = 1e-9
        reason = self.actions.violation()
        if reason is None and not told.action_min > 0:
            reason = "the lower bound on the eigenvalues of the action covariance is not positive"
        if reason is None:
            actual = float(np.linalg.eigvalsh(self.actions.second_moment())[0])
            if told.action_min > actual * (1 + slack):
                reason = f"action_min {told.action_min:g} exceeds lambda_min = {actual:g}"
            elif self.actions.radius > told.radius * (1 + slack):
                reason = f"actions reach {self.actions.radius:g}, beyond radius {told.radius:g}"
        if reason is not None:
            found["Assumption 1"] = reason
        if not told.prior_min > 0:
            found["Assumption 2"] = "the lower bound on the eigenvalues of Sigma_* is not positive"
        elif values[0] < told.prior_min * (1 - slack) or values[-1] > told.prior_max * (1 + slack):
            found["Assumption 2"] = (
                f"eigenvalues of Sigma_* span [{values[0]:g}, {values[-1]:g}], outside the bounds "
                f"[{told.prior_min:g}, {told.prior_max:g}]"
            )
        norm = float(np.linalg.norm(self.prior.mean))
        if norm > told.mean_norm * (1 + slack):
            found["Assumption 3"] = f"|mu_*| = {norm:g} exceeds the bound {told.mean_norm:g}"
        return found


def check_hyper(hyper: GaussianPrior | None, dim: int) -> None:
    """Refuse a hyper-prior that is none, or one of another dimension."""
    if hyper is not None:
        of_type("hyper", hyper, GaussianPrior, "use GaussianPrior(mean, cov) of mu_*")
        if hyper.dim != dim:
            raise InputError(
                f"hyper has dimension {hyper.dim}, the tasks have {dim}; give one of mu_*"
            )


def _size(prior: GaussianPrior | None) -> float:
    """How large parameters are: the largest standard deviation or entry of the mean."""
    if prior is None:
        return 0.0
    return max(math.sqrt(prior.cov.diagonal().max()), float(np.abs(prior.mean).max()))


def _extremes(covariance: Array) -> tuple[float, float]:
    """The smallest and largest eigenvalue; a smallest that is mere rounding counts as 0."""
    values = np.linalg.eigvalsh(covariance)
    lowest, highest = float(values[0]), max(float(values[-1]), 0.0)
    return (lowest if lowest > 1e-13 * len(values) * highest else 0.0), highest


def paper_family(
    *, dim: int = 5, horizon: int = 200, actions: int = 20, radius: float = 0.25
) -> TaskFamily:
    """The experiment of Section 6: mu_* = 2, Sigma_* with ones and 0.8, sigma = 1.

    Parameters
    ----------
    dim, horizon, actions : int
        d, T, and the actions on offer at a step, drawn anew at each.
    radius : float
        a: actions are uniform in the ball of this radius.

    Returns
    -------
    TaskFamily

    Examples
    --------
    >>> bm.paper_family(dim=2).prior
    GaussianPrior, d = 2
        mean  sd  correlation
    x1     2   1
    x2     2   1  0.80
    """
    cov = np.full((dim, dim), 0.8)
    np.fill_diagonal(cov, 1.0)
    return TaskFamily(
        prior=GaussianPrior(np.full(dim, 2.0), cov),
        actions=UniformBall(dim=dim, radius=radius, count=actions),
        noise_sd=1.0,
        horizon=horizon,
    )
