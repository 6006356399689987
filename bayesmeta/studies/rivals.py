"""The paper's experiment with every rival in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.agents.rivals import RIVALS
from bayesmeta.agents.roster import FIGURE_1, OURS, find_agents
from bayesmeta.environment import TaskFamily, paper_family
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.runner.study import Study
from bayesmeta.simulation.records import thin
from bayesmeta.simulation.simulate import simulation_study
from bayesmeta.simulation.summaries import NORMALISER

if TYPE_CHECKING:
    import xarray as xr

ARMS = ("MoM-TS_arms", "MoM-TS_arms_mean")
"""Rows that are defined for arms only."""
PRICES = ("Meta-DP_price", "Meta-DP++_price", "KTS_price")
"""Rows that are defined for prices only."""
DRAWS = ("K2RHC", "KKG", "MoM-2RHC", "MoM-KG", "KIDS", "REML-IDS", "MQB-IDS")
"""Rows whose policy draws from the posterior at every step: ten to thirty times as slow, so played
through fewer tasks."""
LINEAR = tuple(name for name in RIVALS if name not in (*ARMS, *PRICES, *DRAWS))
BETTER = ("REML-UCB", "REML-Greedy", "MQB-TS")
"""Our learners with better policies, and Algorithm 2 as printed."""


def few(record: xr.Dataset, points: int) -> xr.Dataset:
    """What the page needs of a record: sums of regret and errors of the prior, at some tasks."""
    thinned = thin(record, points)
    kept = ("cumulative_regret", "cumulative_relative_regret", "mean_error", "covariance_error")
    return thinned[[*kept, "cumulative_exploration_steps"]].astype(np.float32)


def told_family() -> TaskFamily:
    """The paper's family with a hyper-prior: mu_* ~ N(0, m^2 / d I), which the bound m on its norm
    suggests; mu_* itself stays the paper's."""
    family = paper_family()
    spread = family.told().mean_norm ** 2 / family.dim
    hyper = GaussianPrior(np.zeros(family.dim), spread * np.eye(family.dim))
    return replace(family, hyper=hyper)


def paper_study(
    *, runs: int = 10, tasks: int = 10_000, agents: Sequence[str] = (), **options: Any
) -> Study:
    """All rows that are defined on the paper's linear bandit, regret at its one mu_*."""
    names = agents or (NORMALISER, *FIGURE_1, *OURS, *BETTER, *LINEAR)
    rows = dict.fromkeys(names)
    return simulation_study("rivals", told_family(), rows, tasks=tasks, runs=runs, **options)


def draws_study(*, runs: int = 10, tasks: int = 2_000, **options: Any) -> Study:
    """The same tasks and noise for the rows whose policy draws, in the first tasks of the runs."""
    rows = [*find_agents((NORMALISER, "REML-TS", *DRAWS))]
    return simulation_study("rivals-draws", told_family(), rows, tasks=tasks, runs=runs, **options)


STUDIES = (
    paper_study(
        note="the paper's experiment with every rival",
        record="rivals/rivals.nc",
        keep=partial(few, points=40),
    ),
    draws_study(
        note="the same with the rows whose policy draws at every step",
        record="rivals/draws.nc",
        keep=partial(few, points=20),
    ),
)
"""What is recorded in analyses/rivals."""
