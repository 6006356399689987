"""Families of the literature: tasks whose prior mean is itself drawn from a hyper-prior."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bayesmeta.actions import ActionSet, UniformBall, unit_vectors
from bayesmeta.checks import array, real, whole
from bayesmeta.environment import TaskFamily
from bayesmeta.gaussian import GaussianPrior


def arms_family(
    arms: int = 4,
    hyper_sd: float = 1.0,
    prior_sd: float = 0.1,
    noise_sd: float = 1.0,
    horizon: int = 200,
    *,
    mean: ArrayLike | None = None,
) -> TaskFamily:
    """K arms, theta ~ N(mu_*, s_0^2 I) and mu_* ~ N(0, s_q^2 I), as in Kveton et al. 2021.

    Parameters
    ----------
    arms : int
        K, which is also the dimension.
    hyper_sd, prior_sd, noise_sd : float
        s_q, s_0 and sigma.
    horizon : int
        T, the steps of a task.
    mean : array_like, optional
        One mu_* for all runs; drawn anew for every run where None.

    Returns
    -------
    TaskFamily

    Examples
    --------
    >>> family = bm.arms_family(arms=2)
    >>> record = bm.simulate(family, ["AdaTS", "MarginalTS"], tasks=3)
    >>> record.attrs["regret"]
    'mean over runs, mu_* drawn from the hyper-prior for each'
    """
    return _family(unit_vectors(arms), hyper_sd, prior_sd, noise_sd, horizon, mean)


def linear_family(
    dim: int = 4,
    hyper_sd: float = 1.0,
    prior_sd: float = 0.1,
    noise_sd: float = 1.0,
    horizon: int = 200,
    *,
    actions: ActionSet | None = None,
    mean: ArrayLike | None = None,
) -> TaskFamily:
    """A linear bandit with theta ~ N(mu_*, s_0^2 I) and mu_* ~ N(0, s_q^2 I).

    Parameters
    ----------
    dim : int
        d.
    hyper_sd, prior_sd, noise_sd : float
        s_q, s_0 and sigma.
    horizon : int
        T, the steps of a task.
    actions : ActionSet, optional
        What is on offer; 5 d actions from the unit ball, drawn once a task, where None.
    mean : array_like, optional
        One mu_* for all runs; drawn anew for every run where None.

    Returns
    -------
    TaskFamily

    Examples
    --------
    >>> bm.linear_family(dim=2).actions
    UniformBall(dim=2, radius=1.0, count=10, redraw='task')
    """
    d = whole("dim", dim, least=1)
    offered = UniformBall(d, 1.0, 5 * d, redraw="task") if actions is None else actions
    return _family(offered, hyper_sd, prior_sd, noise_sd, horizon, mean)


def _family(
    actions: ActionSet,
    hyper_sd: float,
    prior_sd: float,
    noise_sd: float,
    horizon: int,
    mean: ArrayLike | None,
) -> TaskFamily:
    d = actions.dim
    spread = real("hyper_sd", hyper_sd, least=0.0) ** 2
    centre = np.zeros(d) if mean is None else array("mean", mean, (d,))
    return TaskFamily(
        GaussianPrior(centre, real("prior_sd", prior_sd, least=0.0) ** 2 * np.eye(d)),
        actions,
        noise_sd,
        horizon,
        hyper=GaussianPrior(np.zeros(d), spread * np.eye(d)),
        redraw=mean is None,
    )
