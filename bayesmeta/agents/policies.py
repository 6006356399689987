"""The quasi-Bayesian schemes inside a task: the line "play" of Algorithm 1."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np

from bayesmeta.checks import LATER, Array, InputError, one_of, real, whole
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
    ridge, norm_bound, delta : float or None
        Of frequentist schemes: V = ridge I at the start, |theta| <= norm_bound, level 1 - delta;
        None is settled by the setting, see ``settled``.
    randomised : bool
        Whether ``frequentist_ids`` randomises over two actions.
    sobol : bool
        Whether the draws of ``v_ids`` are shifted Sobol points in antithetic pairs.
    level : {"step", "total"}
        Of ``bayes_ucb``: whether its level grows with the steps of a task, or is settled by all
        steps of all tasks.
    centred : bool
        Whether ``oful`` starts from the mean of the agent's prior, and bounds the distance from it.

    Examples
    --------
    >>> bm.agents.greedy().uses_prior
    True
    """

    scheme: Scheme
    posterior_draws: int = 0
    ridge: float | None = 1.0
    norm_bound: float | None = 0.0
    delta: float | None = 0.05
    randomised: bool = False
    sobol: bool = False
    level: str = field(default="step", metadata=LATER)
    centred: bool = field(default=False, metadata=LATER)

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

    def settled(self, setting: Setting) -> tuple[float, float, float]:
        """Ridge, norm bound and delta for a setting.

        Where they are None: the ridge sigma^2 / lambda with lambda the mean variance of an entry of
        theta (of Sigma_* where it is told, else lambda_max), which makes ridge regression Bayesian;
        |theta - mu_*| <= r with r^2 = lambda_max (d + 2 sqrt(d ln N) + 2 ln N), which a task keeps
        to with probability 1 - 1/N (Laurent and Massart), and |theta| <= m + r; delta = 1 / T.
        """
        d, bounds, truth = setting.dim, setting.bounds, setting.truth
        ridge, bound, delta = self.ridge, self.norm_bound, self.delta
        if ridge is None:
            spread = bounds.prior_max if truth is None else float(truth.cov.trace()) / d
            ridge = setting.noise_sd**2 / spread if spread > 0 else 1.0
        if bound is None:
            logs = math.log(max(setting.tasks, 2))
            reach = math.sqrt(bounds.prior_max * (d + 2 * math.sqrt(d * logs) + 2 * logs))
            bound = reach if self.centred else bounds.mean_norm + reach
        return ridge, bound, 1 / max(setting.horizon, 2) if delta is None else delta

    def own_prior(self, setting: Setting, mean: Array | None = None) -> GaussianPrior:
        """The state a frequentist scheme starts from: N(0, sigma^2/ridge I) is V = ridge I; around
        ``mean`` where it is centred."""
        d, variance = setting.dim, setting.noise_sd**2 / self.settled(setting)[0]
        check_size("noise_sd over the root of ridge", math.sqrt(variance) or 5e-324)
        centre = mean if self.centred and mean is not None else np.zeros(d)
        eye = np.eye(d)
        return GaussianPrior.trusted(centre, variance * eye, math.sqrt(variance) * eye)

    def normals(self, dim: int, *, ball: bool = False) -> int:
        """Standard normals a step consumes.

        The last of them is also the step's uniform number, through its distribution function. A
        step either explores or plays, so the two uses meet only where playing is randomised, and
        on the whole ball, where exploring takes a direction as well: there it is one more.
        """
        if self.scheme in AHEAD:
            return max(self.posterior_draws, 1)
        randomised = self.randomised or self.scheme is Scheme.V_IDS
        vectors = 1 if self.sobol else self.posterior_draws  # Sobol points share one shift
        return max(vectors * dim + randomised, dim + 1 if ball else 1)

    def choosing(self, steps: Iterable[int], dim: int, setting: Setting | None = None) -> Choosing:
        """The policy as the kernels take it, for these steps (from 0) of a task."""
        numbers: tuple[Any, Any, Any] = (self.ridge, self.norm_bound, self.delta)
        ridge, bound, delta = numbers if setting is None else self.settled(setting)
        total = 1 if setting is None else setting.total
        return Choosing(
            scheme=int(self.scheme),
            quantiles=np.array([self.quantile(step, total) for step in steps]),
            ridge=ridge,
            norm_bound=bound,
            delta=delta,
            randomised=self.randomised,
            points=self.points(dim).flatten(),
        )

    def points(self, dim: int) -> Array:
        """Of the unit cube, one for each antithetic pair of posterior draws; none without Sobol."""
        return sobol_points(self.posterior_draws // 2, dim) if self.sobol else np.empty((0, dim))

    def quantile(self, step: int, total: int = 1) -> float:
        """The width of Bayes-UCB at step t = ``step`` + 1: the normal quantile of 1 - 1/(t + 1), or
        sqrt(2 ln m n) for m tasks of n steps."""
        if self.scheme is not Scheme.BAYES_UCB:
            return 0.0
        return _quantile(step) if self.level == "step" else math.sqrt(2 * math.log(total))

    def check_actions(self, count: int | None, *, weighted: bool = False) -> None:
        """Refuse the whole ball where finitely many actions are needed, and payoffs (``weighted``)
        where rewards are looked ahead to."""
        if weighted and self.scheme in AHEAD:
            raise InputError(
                f"policy {self.scheme.name.lower()} looks ahead to rewards, and is not defined "
                "where actions earn something else than their reward, such as price times demand; "
                "use another policy"
            )
        if count is None and self.needs_finite_actions:
            raise InputError(
                f"policy {self.scheme.name.lower()} compares finitely many actions and cannot be "
                "given the whole ball; use Thompson sampling or greedy, or draw a finite set"
            )


AHEAD = (Scheme.KNOWLEDGE_GRADIENT, Scheme.TWO_STEPS)
"""Schemes that draw rewards, one number each, not parameters."""


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


def bayes_ucb(level: str = "step") -> Policy:
    """Bayes-UCB (Kaufmann et al.): the best posterior quantile of level 1 - 1/(t + 1).

    Parameters
    ----------
    level : {"step", "total"}
        With "total" the width is sqrt(2 ln(1/delta)) posterior deviations at every step, delta
        being 1 over the steps of all tasks (HierBayesUCB, Guan and Xiong 2024).

    Examples
    --------
    >>> round(bm.agents.bayes_ucb().quantile(18), 3)  # step t = 19: level 0.95
    1.645
    """
    return Policy(Scheme.BAYES_UCB, level=one_of("level", level, ("step", "total")))


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


def knowledge_gradient(draws: int = 10) -> Policy:
    """The knowledge gradient: the action after whose reward the best posterior mean is highest.

    Parameters
    ----------
    draws
        Rewards drawn for an action (n); all actions share their normals.

    Examples
    --------
    >>> bm.agents.knowledge_gradient(5).normals(dim=3)
    5
    """
    return Policy(Scheme.KNOWLEDGE_GRADIENT, whole("draws", draws, least=1))


def two_rhc(draws: int = 10) -> Policy:
    """2-RHC (Simchowitz et al. 2021): the action whose reward and the best mean after it are best.

    Parameters
    ----------
    draws
        Rewards drawn for an action (n); all actions share their normals.

    Examples
    --------
    >>> bm.agents.two_rhc().needs_finite_actions
    True
    """
    return Policy(Scheme.TWO_STEPS, whole("draws", draws, least=1))


def oful(
    norm_bound: float | None,
    *,
    delta: float | None = 0.05,
    ridge: float | None = 1.0,
    centred: bool = False,
) -> Policy:
    """OFUL (Abbasi-Yadkori et al.): the action with the highest upper confidence bound.

    It starts from its ridge, whatever prior the agent has; ``centred`` at the mean of that prior,
    as BIAS-OFUL does (after Cella et al. 2020).

    Parameters
    ----------
    norm_bound
        A bound on |theta|, or on its distance from the centre; None: settled by the setting.
    delta
        The confidence sets hold together with probability 1 - delta; None is 1 / T.
    ridge
        V = ridge I before the first step; None: settled by the setting.
    centred
        Whether to start from the mean of the agent's prior instead of 0.

    Examples
    --------
    >>> bm.agents.oful(norm_bound=3.0).uses_prior
    False
    """
    policy = _frequentist(Scheme.OFUL, norm_bound, delta, ridge, False)
    return replace(policy, centred=bool(centred))


def frequentist_ids(
    norm_bound: float | None,
    *,
    randomised: bool = False,
    delta: float | None = 0.05,
    ridge: float | None = 1.0,
) -> Policy:
    """Information Directed Sampling from confidence sets (Kirschner and Krause).

    It starts from its ridge, whatever prior the agent has.

    Parameters
    ----------
    norm_bound
        A bound on |theta|; None: settled by the setting.
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
    scheme: Scheme,
    norm_bound: float | None,
    delta: float | None,
    ridge: float | None,
    randomised: bool,
) -> Policy:
    delta = None if delta is None else real("delta", delta, above=0.0)
    if delta is not None and delta >= 1:
        raise InputError(f"delta must be below 1, got {delta:g}")
    return Policy(
        scheme,
        ridge=None if ridge is None else real("ridge", ridge, above=0.0),
        norm_bound=None if norm_bound is None else real("norm_bound", norm_bound, least=0.0),
        delta=delta,
        randomised=bool(randomised),
    )
