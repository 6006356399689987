"""Tasks with metadata, theta_n = Phi_n gamma + delta_n, played by MTTS and by rows without it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bayesmeta.agents.agent import Agent
from bayesmeta.agents.covariates import Covariates
from bayesmeta.agents.exploration import no_exploration
from bayesmeta.agents.learners import Given, Learner, Likelihood
from bayesmeta.agents.metadata import Metadata
from bayesmeta.agents.player import Player
from bayesmeta.agents.policies import thompson
from bayesmeta.checks import Array
from bayesmeta.environment import TaskFamily
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.streams import ENVIRONMENT, stream

LEARNING = 10
"""Tasks before what was learned of Sigma is used, as in the roster."""


def play_with_metadata(
    family: TaskFamily, designs: Array, gamma: GaussianPrior, *, random_seed: int = 0
) -> dict[str, Array]:
    """Regret, task by task, of Thompson sampling from priors that use metadata or do not.

    gamma is drawn once; theta_n = Phi_n gamma + delta_n, with delta drawn from the family's prior,
    whose mean is taken to be 0.

    Parameters
    ----------
    family : TaskFamily
        Covariance of delta, actions (finitely many), noise and horizon.
    designs : array, shape (tasks, d, p)
        Phi_n of every task.
    gamma : GaussianPrior
        What gamma is drawn from, and MTTS is told.
    random_seed : int
        Keys all randomness.

    Returns
    -------
    dict of str to array, shape (tasks,)
        ``MTTS``; ``MTTS-approx``, which ignores how unsure gamma is; ``OSFA``, one prior for all
        tasks, N(0, E[Phi S_g Phi'] + Sigma_*); ``oracle``, told gamma; ``REML-MTTS``, which learns
        gamma and Sigma and is told neither; ``REML-TS``, which learns without metadata.

    Examples
    --------
    >>> designs = np.random.default_rng(0).normal(size=(4, 2, 3))
    >>> family = bm.arms_family(arms=2, horizon=10, mean=[0, 0])
    >>> gamma = bm.GaussianPrior(np.zeros(3), np.eye(3))
    >>> bm.simulation.play_with_metadata(family, designs, gamma)["MTTS"].shape
    (4,)
    """
    learner = Metadata(designs, gamma)
    designs, rng = learner.designs, stream(random_seed, ENVIRONMENT)
    true = gamma.sample(stream(random_seed, f"{ENVIRONMENT}/gamma"))
    sure = Metadata(designs, GaussianPrior(true, np.zeros(gamma.cov.shape)))
    spread = np.mean(designs @ gamma.cov @ designs.transpose(0, 2, 1), axis=0)
    middle, told = (designs @ gamma.mean).mean(axis=0), family.told()
    far = float(np.linalg.eigvalsh(spread + family.prior.cov)[-1]) + float(middle @ middle)
    centre = TaskFamily(
        GaussianPrior(np.zeros(family.dim), family.prior.cov),
        family.actions,
        family.noise_sd,
        family.horizon,
        replace(told, prior_max=far),  # reaches theta from 0, for rows that know nothing at first
        hyper=GaussianPrior(middle, spread),
    )
    learners: dict[str, Learner] = {
        "MTTS": learner,
        "MTTS-approx": Metadata(designs, gamma, "mean"),
        "OSFA": Given("hyper", "marginal"),
        "oracle": sure,
        "REML-MTTS": Covariates(designs),
        "REML-TS": Likelihood(),
    }
    players = {
        name: Player(
            Agent(
                name, thompson(), no_exploration(), one, name, LEARNING * name.startswith("REML")
            ),
            centre.setting(len(designs)),
            random_seed=random_seed,
        )
        for name, one in learners.items()
    }
    regret = {name: np.empty(len(designs)) for name in players}
    for n, design in enumerate(designs):
        task = centre.draw(rng)
        task = task.of(task.theta + design @ true)
        for name, player in players.items():
            player.start_task()
            regret[name][n] = player.play(task).regret
    return regret
