"""Figure 1 of the paper, and the studies beside it: who plays, how many runs of how many tasks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.agents.agent import Agent
from bayesmeta.agents.roster import BAYESIAN, FIGURE_1, OURS
from bayesmeta.environment import TaskFamily, paper_family
from bayesmeta.runner.study import Study
from bayesmeta.simulation.records import thin
from bayesmeta.simulation.simulate import play, simulation_study
from bayesmeta.simulation.summaries import NORMALISER

if TYPE_CHECKING:
    import xarray as xr

LEARNERS = ("Th-MTS_tau", "All-MTS_tau", "All-MTS")
DRAWN = (*FIGURE_1, *OURS)
"""The rows of the figure: the paper's and ours."""
FAIR = (
    "KTS",
    *OURS,
    "All-MTS",
    "All-MTS_w10",
    "KTS_x0.5",
    "KTS_x0.2",
    "KTS_x0.05",
    "KGreedy",
    "KUCB",
    "KIDS",
)
"""Who to compare a learner with: other policies with the true prior, TS with a smaller one."""
FEW = ("KTS", "UKTS", "All-MTS", "All-MTS_w10", "REML-TS", *BAYESIAN)
"""Who is compared where tasks are few."""
IDS = tuple(name.replace("TS", "IDS") for name in FIGURE_1)


def count_raised(
    settings: dict[str, Any], seed: int, family: TaskFamily, agents: list[Agent]
) -> xr.Dataset:
    """Tasks of one run whose widened covariance, eq. (12), was not positive definite."""
    record = play(settings, seed, family, agents)
    return record[["not_positive_definite"]].sum("task").astype(np.int32).sel(agent=list(LEARNERS))


def study(
    *,
    name: str = "figure1",
    runs: int = 10,
    tasks: int = 10_000,
    random_seed: int = 0,
    agents: Sequence[str] = DRAWN,
    **options: Any,
) -> Study:
    """The experiment of Section 6, a cell for every run; KTS, the unit of regret, is played too.

    ``options`` are those of ``simulation_study``.
    """
    return simulation_study(
        name,
        paper_family(),
        dict.fromkeys([*agents, NORMALISER]),
        tasks=tasks,
        runs=runs,
        random_seed=random_seed,
        **options,
    )


STUDIES = (
    study(note="Figure 1 at the paper's size", record="figure1/figure1.nc", keep=thin),
    study(
        name="figure1-orderings",
        record="figure1/orderings.nc",
        note="more runs of the same size: ten leave some of Section 6's statements undecided",
        runs=60,
        random_seed=1,
        agents=FIGURE_1,
        keep=partial(thin, points=100),
    ),
    study(
        name="figure1-fair",
        record="figure1/fair.nc",
        note="what a learner must be compared with: the true prior scaled, other policies with it",
        agents=FAIR,
        keep=partial(thin, points=100),
    ),
    study(
        name="figure1-bayes",
        record="figure1/bayes.nc",
        note="the agents that learn a posterior by MCMC, beside those they are compared with",
        agents=("KTS", "All-MTS", "REML-TS", *BAYESIAN),
        keep=thin,
    ),
    study(
        name="figure1-few",
        record="figure1/few.nc",
        note="the same where tasks are few, so that not knowing the prior matters most",
        agents=FEW,
        tasks=100,
        runs=30,
        random_seed=4,
        keep=thin,
    ),
    study(
        name="figure1-ids",
        record="figure1/ids.nc",
        note="IDS instead of Thompson Sampling, at the size of the paper",
        tasks=10_000,
        agents=IDS,
        keep=thin,
    ),
    study(
        name="figure1-definiteness",
        record="figure1/definiteness.nc",
        note="how often eq. (12) is not positive definite: most likely soon after the warm-up",
        runs=400,
        tasks=300,
        random_seed=2,
        agents=LEARNERS,
        function=count_raised,
    ),
)
"""What is recorded in analyses/figure1."""
