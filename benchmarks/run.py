"""Measure speed as ratios, side by side in one run, and record them.

    python benchmarks/run.py            # or: make bench; about a quarter of an hour
    python benchmarks/run.py studies    # one part again, the others as they were

Writes ``results.json`` beside this file, and the page made of it (``report.py``). Every ratio
compares pieces of work that alternate in the same process, round by round. A number is the ratio of
the fastest rounds of either side, since whatever else the machine does only ever adds time; the
medians are recorded, too.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import likelihood_costs
import numba
import numpy as np
import report
from numpy_loop import play as numpy_play
from timing import rounds, seconds

from bayesmeta.agents.agent import Agent
from bayesmeta.agents.ensemble import Ensemble
from bayesmeta.agents.player import Player
from bayesmeta.agents.roster import FIGURE_1, ROSTER, find_agents
from bayesmeta.environment import TaskFamily, paper_family
from bayesmeta.runner.files import write_atomically
from bayesmeta.runner.provenance import versions
from bayesmeta.simulation.simulator import simulate_run
from bayesmeta.streams import stream

HERE = Path(__file__).parent


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


def thompson_agents(family: TaskFamily) -> list[Agent]:
    """Six Thompson agents with the fixed priors of Figure 1's oracles."""
    names = ("KTS", "KMTS", "UKTS")
    return [replace(ROSTER[name], name=f"{name} {i}") for i in range(2) for name in names]


def play_tasks(family: TaskFamily, rows: list[Agent], tasks: int) -> None:
    """The engine without the bookkeeping of a simulation: draw a task, play it with all agents."""
    players = [Player(row, family.setting(tasks)) for row in rows]
    ensemble, rng = Ensemble(players), stream(0, "benchmark")
    for _ in range(tasks):
        task = family.draw(rng)
        for player in players:
            player.start_task()
        ensemble.play(task)


def against_numpy() -> dict[str, float]:
    """(i) Microseconds per agent-step, drawing the actions included on both sides.

    Both sides play the same Thompson agents with fixed priors. The kernel's are six, as in Figure
    1; the loop, as one writes it, is one agent that draws its own actions. For the record also
    like for like: six agents sharing their actions in plain NumPy, too, and one agent in both.
    """
    family = paper_family()
    steps, count, tasks = family.horizon, 20, 300
    rows = thompson_agents(family)
    priors = [
        (np.array(prior.mean), np.array(prior.cov))
        for prior in (row.learner.start(family.setting(1)).prior for row in rows)
    ]
    rng = np.random.default_rng(0)
    few = 40  # steps of the slow side

    def kernel(agents: int) -> Callable[[], object]:
        return lambda: play_tasks(family, rows[:agents], tasks)

    def loop(agents: int) -> Callable[[], object]:
        theta = np.array(family.prior.mean)
        return lambda: numpy_play(rng, theta, priors[:agents], few, count, 0.25, 1.0)

    times = rounds(25, kernel(6), loop(6), kernel(1), loop(1))
    micro = times / np.array([tasks * steps * 6, few * 6, tasks * steps, few]) * 1e6
    fastest = micro.min(axis=0)
    return {
        "kernel_us_six_agents": float(fastest[0]),
        "numpy_us_six_agents": float(fastest[1]),
        "kernel_us_one_agent": float(fastest[2]),
        "numpy_us_one_agent": float(fastest[3]),
        "ratio": float(fastest[3] / fastest[0]),
        "ratio_six_agents": float(fastest[1] / fastest[0]),
        "ratio_one_agent": float(fastest[3] / fastest[2]),
        "median_ratio": float(np.median(micro[:, 3] / micro[:, 0])),
    }


def against_drawing() -> dict[str, float]:
    """(ii) The whole step of Figure 1's six agents against drawing its random numbers alone."""
    family, rows, tasks = paper_family(), find_agents(FIGURE_1), 1000
    rng = stream(0, "benchmark")
    times = rounds(
        15,
        lambda: simulate_run(family, rows, tasks=tasks),
        lambda: draw_alone(rng, tasks, family.horizon, 5, 20, len(rows)),
    )
    micro = times / (tasks * family.horizon) * 1e6
    fastest, ratios = micro.min(axis=0), micro[:, 0] / micro[:, 1]
    return {
        "whole_step_us": float(fastest[0]),
        "drawing_us": float(fastest[1]),
        "ratio": float(fastest[0] / fastest[1]),
        "median_ratio": float(np.median(ratios)),
        "lowest_round": float(ratios.min()),
        "highest_round": float(ratios.max()),
    }


def exponent(sizes: Sequence[float], cost: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(cost), 1)[0])


def line(sizes: list[int], cost: list[float]) -> dict[str, float]:
    """Fit a + b size with equal relative weights; the largest relative departure from it."""
    x, y = np.array(sizes, dtype=float), np.array(cost)
    design = np.stack([1 / y, x / y], axis=1)
    (once, each), *_ = np.linalg.lstsq(design, np.ones(len(y)), rcond=None)
    off = np.abs((once + each * x) / y - 1).max()
    return {"once_per_each": float(once / each), "largest_departure": float(off)}


def growth() -> dict[str, object]:
    """Cost in tasks and steps (Figure 1's six agents, learning included), and in dimension.

    Cost in steps has a part that every task pays once: it is fitted as a + b T, and judged by how
    far it departs from that line. For the dimension: seconds of nine KTS less seconds of one, per
    agent-step, so that what all agents share (drawing the actions) drops out.
    """
    rows = find_agents(FIGURE_1)

    def cost(family: TaskFamily, tasks: int) -> float:
        simulate_run(family, rows, tasks=tasks)
        return min(seconds(lambda: simulate_run(family, rows, tasks=tasks)) for _ in range(11))

    tasks = [200, 400, 800, 1600]
    in_tasks = [cost(paper_family(), n) for n in tasks]
    steps = [50, 100, 200, 400, 800, 1600]
    in_steps = [cost(paper_family(horizon=t), 100) for t in steps]
    dims = [2, 3, 5, 8, 12, 20, 30, 50]
    in_dim = [per_step(d) for d in dims]
    large = [d for d in dims if d >= 12]
    return {
        "tasks": {"sizes": tasks, "seconds": in_tasks, "exponent": exponent(tasks, in_tasks)},
        "steps": {"sizes": steps, "seconds": in_steps, **line(steps, in_steps)},
        "dimension": {
            "sizes": dims,
            "us_per_agent_step": in_dim,
            "exponent": exponent(dims, in_dim),
            "exponent_from_12": exponent(large, in_dim[-len(large) :]),
        },
    }


def per_step(dim: int, tasks: int = 30) -> float:
    """Microseconds of one step of one KTS agent in ``dim`` dimensions, drawing left out."""
    family = paper_family(dim=dim)
    nine = [replace(ROSTER["KTS"], name=f"KTS {i}") for i in range(9)]
    times = rounds(
        7,
        lambda: simulate_run(family, nine, tasks=tasks),
        lambda: simulate_run(family, nine[:1], tasks=tasks),
    )
    return float(np.median(times[:, 0] - times[:, 1]) / (8 * tasks * family.horizon) * 1e6)


def import_ratio() -> dict[str, float]:
    """``import bayesmeta`` against ``import numpy``, each in a fresh interpreter."""

    def start(module: str) -> Callable[[], object]:
        code = (
            f"import time; s = time.perf_counter(); import {module}; print(time.perf_counter() - s)"
        )
        return lambda: float(
            subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
        )

    ours, numpys = start("bayesmeta"), start("numpy")
    ratios = [ours() / numpys() for _ in range(9)]  # type: ignore[operator]
    return {"ratio": float(np.median(ratios))}


def studies() -> dict[str, object]:
    """The runner of studies, in a process of its own: see ``study_costs.py``."""
    # kernels compiled, and in the cache, by a process whose memory does not count
    warm = "import study_costs; study_costs.figure(1, runs=1, tasks=150)"
    subprocess.run([sys.executable, "-c", warm], check=True, cwd=HERE)
    return in_its_own_process("study_costs.py")


def posterior() -> dict[str, object]:
    """Draws of the posterior: see ``posterior_costs.py``."""
    return in_its_own_process("posterior_costs.py")


def in_its_own_process(script: str) -> dict[str, object]:
    """What a script of this folder prints."""
    done = subprocess.run([sys.executable, str(HERE / script)], stdout=subprocess.PIPE, check=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def likelihood() -> dict[str, object]:
    """One E-step, and REML to convergence: see ``likelihood_costs.py``."""
    cost = likelihood_costs.growth()
    return {
        "estep": likelihood_costs.one_estep(),
        "growth": {**cost, "exponent": exponent(cost["sizes"], cost["seconds"])},
        "statsmodels": likelihood_costs.against_statsmodels(),
    }


PARTS = {
    "numpy": against_numpy,
    "drawing": against_drawing,
    "growth": growth,
    "import": import_ratio,
    "likelihood": likelihood,
    "studies": studies,
    "posterior": posterior,
}


def main(parts: list[str]) -> None:
    record = HERE / "results.json"
    results = json.loads(record.read_text()) if parts else {"versions": {}}
    for part in parts or PARTS:
        results[part] = PARTS[part]()
        results["versions"][part] = versions()
    results["machine"] = f"{platform.machine()}, {os.cpu_count()} cores"
    text = json.dumps(results, indent=2) + "\n"
    write_atomically(record, lambda to: to.write_text(text))
    report.write(results)
    print(report.main_block(results))


if __name__ == "__main__":
    main(sys.argv[1:])
