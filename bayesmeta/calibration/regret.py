"""What an estimated prior costs: regret of Thompson Sampling with it in tasks to come."""

from __future__ import annotations

from dataclasses import replace

from bayesmeta.agents.roster import ROSTER
from bayesmeta.agents.told import Told
from bayesmeta.calibration.worlds import Data
from bayesmeta.calibration.wrong import WrongFamily
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.simulation.simulator import simulate_run
from bayesmeta.streams import cell_seed

TASKS = 20
"""Next tasks of a replication, where no number is asked for."""


def mean_regret(data: Data, prior: GaussianPrior, tasks: int, seed: int) -> float:
    """Mean regret of so many tasks of the replication's world, played by Thompson Sampling with
    this prior: tasks, noise and the agent's own randomness are the same whatever the prior."""
    assert data.family is not None
    family = WrongFamily.of(data.family, data.wrong)
    row = replace(ROSTER["KTS"], learner=Told((prior,)))
    found = simulate_run(family, [row], tasks=tasks, seed=cell_seed(seed, "next regret"))
    return float(found["regret"].mean())
