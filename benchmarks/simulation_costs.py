"""What a simulated step costs, against a plain NumPy loop and against drawing its random numbers.

Run in a process of its own; prints JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import numba
import numpy as np
from numpy_loop import play as numpy_play
from timing import growth, rounds

from bayesmeta.agents.agent import Agent
from bayesmeta.agents.roster import FIGURE_1, ROSTER, find_agents
from bayesmeta.environment import TaskFamily, paper_family
from bayesmeta.simulation.simulator import simulate_run
from bayesmeta.streams import stream

ACTIONS = 20


@numba.njit
def draw_alone(rng, tasks, steps, dim, count, agents):
    """The random numbers of ``tasks`` tasks and nothing else."""
    total = 0.0
    for _ in range(tasks):
        for _ in range(dim + steps):  # parameter and noise
            total += rng.standard_normal()
        for _ in range(steps * count * dim):  # actions: directions …
            total += rng.standard_normal()
        for _ in range(steps * count):  # … and radii
            total += rng.standard_exponential()
        for _ in range(agents * steps * dim):  # each agent's own
            total += rng.standard_normal()
    return total


def thompson_agents() -> list[Agent]:
    """Six Thompson agents with the fixed priors of Figure 1's oracles."""
    names = ("KTS", "KMTS", "UKTS")
    return [replace(ROSTER[name], name=f"{name} {i}") for i in range(2) for name in names]


def against_numpy() -> dict[str, float]:
    """Microseconds of an agent's step, drawing the actions included on both sides.

    The loop, as one writes it, is one agent that draws its own actions; the simulator's are six
    that share theirs, as in Figure 1, regret and records included. Also like for like: six agents
    that share their actions in plain NumPy, too, and one agent in both.
    """
    family, tasks = paper_family(), 300
    rows = thompson_agents()
    priors = [
        (np.array(prior.mean), np.array(prior.cov))
        for prior in (row.learner.start(family.setting(1)).prior for row in rows)
    ]
    rng = np.random.default_rng(0)
    few = 40  # steps of the slow side

    def kernel(agents: int) -> Callable[[], object]:
        return lambda: simulate_run(family, rows[:agents], tasks=tasks)

    def loop(agents: int) -> Callable[[], object]:
        theta = np.array(family.prior.mean)
        return lambda: numpy_play(rng, theta, priors[:agents], few, ACTIONS, 0.25, 1.0)

    times = rounds(25, kernel(6), loop(6), kernel(1), loop(1))
    steps = tasks * family.horizon
    micro = times / np.array([steps * 6, few * 6, steps, few]) * 1e6
    fastest = micro.min(axis=0)
    return {
        "six_us": float(fastest[0]),
        "one_us": float(fastest[2]),
        "numpy_six_us": float(fastest[1]),
        "numpy_one_us": float(fastest[3]),
        "ratio": float(fastest[3] / fastest[0]),
        "ratio_six": float(fastest[1] / fastest[0]),
        "ratio_one": float(fastest[3] / fastest[2]),
    }


def against_drawing() -> dict[str, float]:
    """The whole step of Figure 1's six agents against drawing its random numbers alone."""
    family, rows, tasks = paper_family(), find_agents(FIGURE_1), 1000
    rng = stream(0, "benchmark")
    times = rounds(
        15,
        lambda: simulate_run(family, rows, tasks=tasks),
        lambda: draw_alone(rng, tasks, family.horizon, 5, ACTIONS, len(rows)),
    )
    micro = times / (tasks * family.horizon) * 1e6
    fastest, ratios = micro.min(axis=0), micro[:, 0] / micro[:, 1]
    return {
        "whole_us": float(fastest[0]),
        "drawing_us": float(fastest[1]),
        "ratio": float(fastest[0] / fastest[1]),
        "median_ratio": float(np.median(ratios)),
    }


def grown() -> dict[str, object]:
    """Seconds of Figure 1's six agents in tasks and steps, of six that do not learn in features."""

    def of(family: TaskFamily, rows: list[Agent], tasks: int) -> Callable[[], object]:
        return lambda: simulate_run(family, rows, tasks=tasks)

    rows, fixed = find_agents(FIGURE_1), thompson_agents()
    return {
        "tasks": growth([300, 1000, 3000], lambda n: of(paper_family(), rows, n)),
        "steps": growth([100, 300, 1000, 3000], lambda t: of(paper_family(horizon=t), rows, 100)),
        "features": growth([2, 5, 10, 20, 50], lambda d: of(paper_family(dim=d), fixed, 30)),
    }


def import_ratio() -> float:
    """``import bayesmeta`` against ``import numpy``, each in a fresh interpreter."""

    def start(module: str) -> float:
        code = (
            f"import time; s = time.perf_counter(); import {module}; print(time.perf_counter() - s)"
        )
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        return float(run.stdout)

    return float(np.median([start("bayesmeta") / start("numpy") for _ in range(9)]))


def main() -> None:
    found = {
        "numpy": against_numpy(),
        "drawing": against_drawing(),
        "growth": grown(),
        "import_ratio": import_ratio(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
