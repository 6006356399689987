"""The quasi-Bayesian schemes inside a task: the line "play" of Algorithm 1."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np

from bayesmeta.checks import Array, InputError, real, whole
from bayesmeta.display import other_than_default
from bayesmeta.environment import Setting
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.kernels.codes import Scheme
from bayesmeta.kernels.tuples import Choosing
from bayesmeta.units import check_size


@dataclass(frozen=True, repr=False)
class Policy:
    """What is played inside a task; made by ``thompson``, ``v_ids`` and so on.

    Parameters
    ----------
    scheme : Scheme
        How an action is chosen.
    posterior_draws : int
        Draws of theta a step, for ``thompson`` and ``v_ids``.
    ridge, norm_bound, delta : float
        Of frequentist schemes: V = ridge I at the start, |theta| <= norm_bound, level 1 - delta.
    randomised : bool
        Whether ``frequentist_ids`` randomises over two actions.
    sobol : bool
        Whether the draws of ``v_ids`` are shifted Sobol points in antithetic pairs.

    Examples
    --------
    >>> bm.agents.greedy().uses_prior
    True
    """

    scheme: Scheme
    posterior_draws: int = 0
    ridge: float = 1.0
    norm_bound: float = 0.0
    delta: float = 0.05
    randomised: bool = False
    sobol: bool = False

    def __repr__(self) -> str:
        return f"{self.scheme.name.lower()}({other_than_default(self, 'scheme')})"

    @property
    def needs_finite_actions(self) -> bool:
        """Whether the scheme compares actions one by one."""
        return self.scheme not in (Scheme.THOMPSON, Scheme.GREEDY)

    @property
    def uses_prior(self) -> bool:
        """Whether the scheme starts from the agent's prior; the frequentist ones do not."""
        return self.scheme not in (Scheme.OFUL, Scheme.FREQUENTIST_IDS)

    def own_prior(self, setting: Setting) -> GaussianPrior:
        """The state a frequentist scheme starts from: N(0, sigma^2/ridge I) is V = ridge I."""
        d, variance = setting.dim, setting.noise_sd**2 / self.ridge
        check_size("noise_sd over the root of ridge", math.sqrt(variance) or 5e-324)
        return GaussianPrior(np.zeros(d), variance * np.eye(d))

    def normals(self, dim: int, *, ball: bool = False) -> int:
        """Standard normals a step consumes.

        The last of them is also the step's uniform number, through its distribution function. A
        step either explores or plays, so the two uses meet only where playing is randomised, and
        on the whole ball, where exploring takes a direction as well: there it is one more.
        """
        randomised = self.randomised or self.scheme is Scheme.V_IDS
        vectors = 1 if self.sobol else self.posterior_draws  # Sobol points share one shift
        return max(vectors * dim + randomised, dim + 1 if ball else 1)

    def choosing(self, steps: Iterable[int], dim: int) -> Choosing:
        """The policy as the kernels take it, for these steps (from 0) of a task."""
        return Choosing(
            scheme=int(self.scheme),
            quantiles=np.array([self.quantile(step) for step in steps]),
            ridge=self.ridge,
            norm_bound=self.norm_bound,
            delta=self.delta,
            randomised=self.randomised,
            points=self.points(dim).flatten(),
        )

    def points(self, dim: int) -> Array:
        """Of the unit cube, one for each antithetic pair of posterior draws; none without Sobol."""
        return sobol_points(self.posterior_draws // 2, dim) if self.sobol else np.empty((0, dim))

    def quantile(self, step: int) -> float:
        """The width of Bayes-UCB at step t = ``step`` + 1: the normal quantile of 1 - 1/(t + 1)."""
        return _quantile(step) if self.scheme is Scheme.BAYES_UCB else 0.0

    def check_actions(self, count: int | None) -> None:
        """Refuse the whole ball where finitely many actions are needed."""
        if count is None and self.needs_finite_actions:
            raise InputError(
                f"policy {self.scheme.name.lower()} compares finitely many actions and cannot be "
                "given the whole ball; use Thompson sampling or greedy, or draw a finite set"
            )


@cache
def _quantile(step: int) -> float:
    return NormalDist().inv_cdf(1 - 1 / (step + 2))


@cache
def sobol_points(count: int, dim: int) -> Array:
    """The first points of Sobol's sequence, (count, dim)."""
    from scipy.stats import qmc

    with warnings.catch_warnings():  # of a count that is no power of two: the shift is uniform
        warnings.simplefilter("ignore", UserWarning)
        points: Array = qmc.Sobol(dim, scramble=False).random(count)
    points.setflags(write=False)
    return points


def thompson() -> Policy:
    """Thompson Sampling: the best action under one draw from the posterior.

    Examples
    --------
    >>> bm.agents.thompson().posterior_draws
    1
    """
    return Policy(Scheme.THOMPSON, posterior_draws=1)


def greedy() -> Policy:
    """The best action under the posterior mean.

    Examples
    --------
    >>> bm.agents.greedy().needs_finite_actions
    False
    """
    return Policy(Scheme.GREEDY)


def bayes_ucb() -> Policy:
    """Bayes-UCB (Kaufmann et al.): the best posterior quantile of level 1 - 1/(t + 1).

    Examples
    --------
    >>> round(bm.agents.bayes_ucb().quantile(18), 3)  # step t = 19: level 0.95
    1.645
    """
    return Policy(Scheme.BAYES_UCB)


def v_ids(draws: int = 100, *, sobol: bool = False) -> Policy:
    """Variance-based Information Directed Sampling (Russo and Van Roy) from posterior draws.

    Parameters
    ----------
    draws
        Posterior draws a step (M), at least two.
    sobol
        Whether the draws of a step are antithetic pairs of Sobol points, shifted at random: each is
        a draw from the posterior as before, but together they cover it evenly, so that fewer will
        do. ``draws`` must be even, at best a power of two.

    Examples
    --------
    >>> bm.agents.v_ids(draws=50).posterior_draws
    50
    """
    whole("draws", draws, least=2)
    if sobol and draws % 2:
        raise InputError(f"draws come in pairs with sobol, got {draws}; give an even number")
    return Policy(Scheme.V_IDS, draws, sobol=bool(sobol))


def oful(norm_bound: float, *, delta: float = 0.05, ridge: float = 1.0) -> Policy:
    """OFUL (Abbasi-Yadkori et al.): the action with the highest upper confidence bound.

    It starts from its ridge, whatever prior the agent has.

    Parameters
    ----------
    norm_bound
        A bound on |theta|.
    delta
        The confidence sets hold together with probability 1 - delta.
    ridge
        V = ridge I before the first step.

    Examples
    --------
    >>> bm.agents.oful(norm_bound=3.0).uses_prior
    False
    """
    return _frequentist(Scheme.OFUL, norm_bound, delta, ridge, False)


def frequentist_ids(
    norm_bound: float, *, randomised: bool = False, delta: float = 0.05, ridge: float = 1.0
) -> Policy:
    """Information Directed Sampling from confidence sets (Kirschner and Krause).

    It starts from its ridge, whatever prior the agent has.

    Parameters
    ----------
    norm_bound
        A bound on |theta|.
    randomised
        Whether it randomises over two actions; otherwise it takes the best single one.
    delta
        The confidence sets hold together with probability 1 - delta.
    ridge
        V = ridge I before the first step.

    Examples
    --------
    >>> bm.agents.frequentist_ids(norm_bound=3.0, randomised=True).randomised
    True
    """
    return _frequentist(Scheme.FREQUENTIST_IDS, norm_bound, delta, ridge, randomised)


def _frequentist(
    scheme: Scheme, norm_bound: float, delta: float, ridge: float, randomised: bool
) -> Policy:
    delta = real("delta", delta, above=0.0)
    if delta >= 1:
        raise InputError(f"delta must be below 1, got {delta:g}")
    return Policy(
        scheme,
        ridge=real("ridge", ridge, above=0.0),
        norm_bound=real("norm_bound", norm_bound, least=0.0),
        delta=delta,
        randomised=bool(randomised),
    )
