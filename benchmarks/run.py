"""Measure speed as ratios, side by side in one run, and record them.

    python benchmarks/run.py            # or: make bench; about a quarter of an hour
    python benchmarks/run.py studies    # one part again, the others as they were

Writes ``results.json`` and ``README.md`` beside this file. Every ratio compares pieces of work that
alternate in the same process, round by round. A figure is the ratio of the fastest rounds of either
side, since whatever else the machine does only ever adds time; the medians are recorded, too.
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
from numpy_loop import play as numpy_play
from timing import rounds, seconds

from bayesmeta.agents.player import Ensemble, Player
from bayesmeta.agents.roster import FIGURE_1, ROSTER, Agent, find_agents
from bayesmeta.environment import TaskFamily, paper_family
from bayesmeta.report.markdown import table, write_block
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


def posterior_ratio(results: dict, ours: str = "fused, nutpie") -> float:
    """Effective draws a second, ours against the usual."""
    found = results["posterior"]["contenders"]
    return float(found[ours]["ess_per_second"] / found["non-centred, nutpie"]["ess_per_second"])


def simulated(results: dict) -> float:
    """The NumPy loop against one of Figure 1's agents in the whole simulator (fastest rounds)."""
    each = results["drawing"]["whole_step_us"] / len(FIGURE_1)
    return float(results["numpy"]["numpy_us_one_agent"] / each)


def report(results: dict) -> str:
    """The README of this folder."""
    one, two, three = results["numpy"], results["drawing"], results["growth"]
    full, trivial = results["studies"]["full_size"], results["studies"]["trivial"]
    estep, reml, fits = (results["likelihood"][part] for part in ("estep", "statsmodels", "growth"))
    rows = [
        ["a step of one Thompson agent, drawing included: kernel (six agents sharing their "
         "actions) against a plain NumPy loop (one agent drawing its own)",
         f"{one['ratio']:.0f} times faster", "at least 350",
         f"{one['kernel_us_six_agents']:.2f} against {one['numpy_us_one_agent']:.0f} µs; median of "
         f"rounds {one['median_ratio']:.0f}"],
        ["the same for Figure 1's six agents in the simulator: learning, errors and records "
         "included, of which the loop does nothing", f"{simulated(results):.0f} times faster", "",
         f"{two['whole_step_us'] / 6:.2f} against {one['numpy_us_one_agent']:.0f} µs"],
        ["like for like: six agents sharing their actions on both sides",
         f"{one['ratio_six_agents']:.0f} times faster", "",
         f"{one['kernel_us_six_agents']:.2f} against {one['numpy_us_six_agents']:.0f} µs"],
        ["like for like: one agent on both sides (all drawing falls on it)",
         f"{one['ratio_one_agent']:.0f} times faster", "",
         f"{one['kernel_us_one_agent']:.2f} against {one['numpy_us_one_agent']:.0f} µs"],
        ["whole step of six agents against drawing its random numbers alone",
         f"{two['ratio']:.2f} times", "at most 3",
         f"{two['whole_step_us']:.2f} against {two['drawing_us']:.2f} µs; rounds "
         f"{two['lowest_round']:.2f} to {two['highest_round']:.2f}, median "
         f"{two['median_ratio']:.2f}"],
        ["`import bayesmeta` against `import numpy`", f"{results['import']['ratio']:.2f} times",
         "at most about 2", ""],
        ["cost in the number of tasks", f"exponent {three['tasks']['exponent']:.2f}", "1", ""],
        ["cost in the number of steps: departure from a line a + b T, T = 50 … 1600",
         f"at most {100 * three['steps']['largest_departure']:.0f}%", "linear",
         f"a task costs {three['steps']['once_per_each']:.0f} steps' worth once"],
        ["cost of a step in the dimension, d = 2 … 50",
         f"exponent {three['dimension']['exponent']:.2f}", "at most 2",
         f"{three['dimension']['exponent_from_12']:.2f} from d = 12 on"],
        [f"Figure 1 at full size, {full['agents']} agents, 2 processes", f"{full['seconds']:.0f} s",
         "about a minute", f"driver {full['driver_MiB']:.0f} MiB, largest worker "
         f"{full['largest_worker_MiB']:.0f} MiB (wanted: under 1024)"],
        ["the same: two processes against one", f"{full['speedup']:.2f} times faster",
         "at least 1.8", f"{full['seconds']:.0f} against {full['seconds_one_process']:.0f} s, from "
         "the start of the study to its last file; the faster of two rounds of each (by rounds: "
         + " and ".join(f"{ratio:.2f}" for ratio in full["rounds"]) + ")"],
        ["one E-step (log-likelihood and gradients) at d = 5, one core: kernel against batched "
         "NumPy", f"{estep['ratio']:.0f} times faster", "at least 6",
         f"{estep['kernel_us']:.2f} against {estep['numpy_us']:.1f} µs a task (wanted: at most "
         f"0.35; median of rounds {estep['median_kernel_us']:.2f}); on both cores "
         f"{estep['two_cores_us']:.2f} µs, {estep['ratio_two_cores']:.0f} times faster; an "
         f"evaluation inside a fit, with the best mean and the information, "
         f"{estep['evaluate_us']:.2f} µs"],
        [f"REML, noise estimated, {reml['tasks']:,} unbalanced tasks, d = {reml['dim']}: against "
         "statsmodels MixedLM", f"{reml['ratio']:,.0f} times faster", "at least 100",
         f"{reml['seconds_from_rows']:.3f} against {reml['statsmodels_seconds']:.0f} s, both from "
         f"the {reml['rows']:,} rows (from their sums {reml['seconds']:.3f} s, wanted: under 0.2; "
         f"two threads {reml['seconds_two_threads']:.3f} s); log-likelihood less theirs "
         f"{reml['log_likelihood_less_theirs']:.1e}"
         + ("" if reml["statsmodels_converged"] else "; theirs did not converge")],
        ["REML in the number of tasks, 1,000 to 100,000", f"exponent {fits['exponent']:.2f}",
         "linear", f"{fits['seconds'][-1]:.2f} s for 100,000"],
        ["minimal bulk ESS a second, 500 tasks, d = 5: the fused model with nutpie against the "
         "non-centred one with nutpie", f"{posterior_ratio(results):,.0f} times more",
         "at least 25", "details below"],
        [f"a posterior of {results['posterior']['large']['tasks']:,} tasks, d = 5, 4 chains of "
         "500 + 1,000 draws", f"{results['posterior']['large']['seconds']:.0f} s", "under 120",
         "its diagnostics pass" if results["posterior"]["large"]["trusted"] else "not trusted"],
        ["`sample_posterior` to its first draw, fresh process, compiled before",
         f"{results['posterior']['waits']['warm']:.1f} s", "under 10",
         f"nothing compiled before: {results['posterior']['waits']['cold']:.0f} s; a second fit of "
         f"the same shape: {results['posterior']['waits']['second']:.2f} s (wanted: under 1)"],
        *[[f"a study of {row['cells']:,} cells that do nothing, {where}",
           f"{row['ms_a_cell']:.1f} ms a cell", "under 15",
           f"driver {row['early_MiB']:.0f} MiB in the first tenth, {row['late_MiB']:.0f} MiB in "
           f"the last; collected in {row['collect_ms_a_cell']:.2f} ms a cell"]
          for row, where in ((trivial["one"], "this process"), (trivial["two"], "2 processes"),
                             (trivial["dask"], "a Dask cluster of 2 processes"))],
    ]  # fmt: skip
    drawn = results["posterior"]
    ours = drawn["contenders"]["fused, nutpie"]
    draw_rows = [
        [name, f"{one['ess_per_second']:,.0f}",
         f"{ours['ess_per_second'] / one['ess_per_second']:,.1f}", f"{one['ess']:,.0f}",
         f"{one['seconds']:.1f}", f"{one['wait']:.1f}", f"{one['rhat']:.3f}",
         f"{drawn['agreement'][name]:.1f}" if name in drawn["agreement"] else ""]
        for name, one in drawn["contenders"].items()
    ]  # fmt: skip
    growth_rows = [
        [str(d), f"{us:.3f}"]
        for d, us in zip(
            three["dimension"]["sizes"], three["dimension"]["us_per_agent_step"], strict=True
        )
    ]
    return (
        "# Benchmarks\n\nGenerated by `make bench`; do not edit. Ratios are measured side by side "
        "in one run.\n\n"
        + table(["what", "measured", "wanted", "details"], rows)
        + "\n\nMicroseconds of one Thompson step of one agent (20 actions; drawing left out):\n\n"
        + table(["d", "µs"], growth_rows)
        + "\n\nThe posterior of (mu, Sigma) from 500 tasks of 50 steps, d = 5, 20 parameters: the "
        "smallest bulk ESS of an entry of mu and Sigma, 4 chains of 500 + 1,000 draws on 2 cores. "
        "Seconds are those of drawing, tuning included (of `sample_posterior`: all, diagnostics "
        "included, after compiling); the wait before is that of this run, "
        "whatever was compiled and kept before it. Times: how much faster the first row is. Apart: "
        f"the largest difference to the first row's mean or sd among {drawn['entries']} entries, "
        "in Monte-Carlo standard errors:\n\n"
        + table(
            ["model and sampler", "ESS/s", "times", "ESS", "seconds", "wait", "R-hat", "apart"],
            draw_rows,
        )
        + f"\n\nMachine: {results['machine']}.\n\n"
        + made_by(results["versions"])
    )


def made_by(found: dict[str, dict[str, str]]) -> str:
    """The versions that measured each part."""
    groups: dict[str, list[str]] = {}
    for part, numbers in found.items():
        text = ", ".join(f"{name} {number}" for name, number in numbers.items())
        groups.setdefault(text, []).append(part)
    return "".join(f"- {', '.join(parts)}: {text}\n" for text, parts in groups.items())


def main_block(results: dict) -> str:
    """The block of the project's README."""
    one, two, full = results["numpy"], results["drawing"], results["studies"]["full_size"]
    estep, reml = results["likelihood"]["estep"], results["likelihood"]["statsmodels"]
    big, waits = results["posterior"]["large"], results["posterior"]["waits"]
    sources = [results["versions"][part]["source"] for part in ("studies", "likelihood")]
    current = sources[0] == sources[1]
    return (
        f"Figure 1 at the paper's size, with {full['agents']} agents"
        f"{'' if current else ' (measured before the last changes to the package)'}, took "
        f"{full['seconds']:.0f} s on two cores, "
        f"{full['speedup']:.2f} times faster than on one. A step of one of "
        f"six Thompson agents costs {one['kernel_us_six_agents']:.2f} µs, its share of drawing the "
        f"actions included: {one['ratio']:.0f} times less than a step of a plain NumPy loop whose "
        f"one agent draws its own actions (like for like: {one['ratio_six_agents']:.0f} times "
        f"with six agents sharing them in both, {one['ratio_one_agent']:.0f} times with one agent "
        f"in both; {simulated(results):.0f} times with all that the simulator does besides). "
        f"A whole step of Figure 1's six agents, learning included, costs "
        f"{two['ratio']:.1f} times what drawing its random "
        f"numbers alone costs. The likelihood of a task and its gradients cost "
        f"{estep['kernel_us']:.2f} µs (d = 5), {estep['ratio']:.0f} times less than with batched "
        f"NumPy; REML of {reml['tasks']:,} tasks takes {reml['seconds_from_rows']:.2f} s, "
        f"{reml['ratio']:,.0f} times less than statsmodels' MixedLM. A posterior of (μ, Σ) from "
        f"{big['tasks']:,} tasks takes {big['seconds']:.0f} s; from 500, our model has "
        f"{posterior_ratio(results):,.0f} times the effective draws a second of the usual "
        "non-centred one where nutpie compiles and draws both, "
        f"{posterior_ratio(results, 'fused, sample_posterior'):,.0f} times from the call of "
        "`sample_posterior` to its verdict. Its first draw comes after "
        f"{waits['warm']:.1f} s where a model of its kind was compiled before on the machine, "
        f"after {waits['cold']:.0f} s where not. Details: [benchmarks](benchmarks/README.md)."
    )


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
    write_atomically(HERE / "README.md", lambda to: to.write_text(report(results)))
    write_block(HERE.parent / "README.md", "bench", main_block(results))
    print(report(results))


if __name__ == "__main__":
    main(sys.argv[1:])
