"""Figure 1 of the paper, and the studies beside it: what they run, and the figure's files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.agents.roster import BAYESIAN, FIGURE_1, OURS, find_agents
from bayesmeta.environment import paper_family
from bayesmeta.runner.study import Study, grid
from bayesmeta.simulation.records import thin
from bayesmeta.simulation.simulator import describe_runs, find_rows, record_run
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


def play(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """One run of the experiment of Section 6, with dimensions (agent, task)."""
    family, tasks = paper_family(), settings["tasks"]
    return record_run(family, find_rows(family, settings["agents"], tasks), tasks, seed)


def count_raised(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """Tasks of one run whose widened covariance, eq. (12), was not positive definite."""
    counts = play(settings, seed)[["not_positive_definite"]].sum("task").astype(np.int32)
    return counts.sel(agent=list(LEARNERS))


def study(
    *,
    runs: int = 10,
    tasks: int = 10_000,
    seed: int = 0,
    agents: Sequence[str] = DRAWN,
    keep: Callable[[xr.Dataset], xr.Dataset] = lambda record: record,
    name: str = "figure1",
    note: str = "",
    record: str = "",
    function: Callable[[dict[str, Any], int], xr.Dataset] = play,
) -> Study:
    """The experiment of Section 6, a cell for every run; KTS, the unit of regret, is played too."""
    names = [row.name for row in find_agents(dict.fromkeys([*agents, NORMALISER]))]

    def described(record: xr.Dataset) -> xr.Dataset:
        family = paper_family()
        rows = find_rows(family, names, tasks)
        return keep(describe_runs(record, family, rows, tasks, seed))

    cells = grid({"agents": names, "tasks": tasks}, run=range(runs))
    return Study(name, cells, function, seed, ("run",), note, described, record)


STUDIES = (
    study(note="Figure 1 at the paper's size", record="figure1/figure1.nc", keep=thin),
    study(
        name="figure1-orderings",
        record="figure1/orderings.nc",
        note="more runs of the same size: ten leave some of Section 6's statements undecided",
        runs=60,
        seed=1,
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
        seed=4,
        keep=thin,
    ),
    study(
        name="figure1-ids",
        record="figure1/ids.nc",
        note="IDS instead of Thompson Sampling; fewer tasks, since a step of IDS costs 30 of TS",
        tasks=2_000,
        agents=IDS,
        keep=thin,
    ),
    study(
        name="figure1-definiteness",
        record="figure1/definiteness.nc",
        note="how often eq. (12) is not positive definite: most likely soon after the warm-up",
        runs=400,
        tasks=300,
        seed=2,
        agents=LEARNERS,
        function=count_raised,
    ),
)
"""What is recorded in analyses/figure1."""
