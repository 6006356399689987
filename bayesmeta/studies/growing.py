"""Table 1, measured: relative regret of every system as N, T and d (or K) grow.

Three families. ``linear`` is the paper's with one mu_*, scaled so that the law of actions stays
comparable as d grows: Sigma_* = I, |mu_*| = 2, and a radius a = 0.25 sqrt((d + 2) / 7), by which
the smallest eigenvalue of the covariance of an action, a^2 / (d + 2), is the paper's for every d.
``arms`` draws mu_* from a hyper-prior for every run: its regret is Bayes regret. ``pricing`` is
dynamic pricing at one mu_*, where regret is in what is earned.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.actions import UniformBall
from bayesmeta.agents.agent import Agent
from bayesmeta.agents.exploration import theoretical_steps
from bayesmeta.agents.roster import ROSTER, with_references
from bayesmeta.environment import Bounds, TaskFamily
from bayesmeta.families import arms_family
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.pricing import pricing_family
from bayesmeta.runner.study import Study
from bayesmeta.simulation.records import cumulative
from bayesmeta.simulation.simulate import averaged_over
from bayesmeta.simulation.simulator import find_rows, record_run

if TYPE_CHECKING:
    import xarray as xr

MEAN = 2.0
"""|mu_*| of the linear family."""
SPREAD, WITHIN = 0.5, 0.1
"""s_q and s_0 of the arms."""
EVERYWHERE = (
    "KTS",
    "KMTS",
    "Th-MTS_tau",
    "All-MTS_tau",
    "All-MTS",
    "REML-TS",
    "MQB-TS",
    "MarginalTS",
    "MetaTS",
    "AdaTS",
    "MetaMean",
    "HierBayesUCB",
    "Meta-DP",
    "Meta-DP++",
    "BIAS-OFUL",
    "AVG-OFUL",
    "RR-OFUL",
    "MoM-TS",
    "MoM-TS_mean",
    "W-MTS",
    "W-MTS_past",
)
"""Rows that are defined in both families; those whose policy draws at every step, and HierTS, which
in law is AdaTS, are in the paper's experiment alone."""
OF = {
    "linear": (*EVERYWHERE, "UKTS", "REML-UCB"),
    "arms": (*EVERYWHERE, "MoM-TS_arms", "MoM-TS_arms_mean"),
    "pricing": (
        *("KTS", "KMTS", "UKTS", "Th-MTS_tau", "All-MTS", "REML-TS", "MarginalTS", "MetaTS"),
        *("AdaTS", "MetaMean", "Meta-DP", "Meta-DP++", "Meta-DP_price", "Meta-DP++_price"),
    ),
}
"""The rows of a family. With arms, UKTS, told no more than the bounds, is MarginalTS."""
TASKS = (10, 20, 50, 100, 200, 500, 1000)
"""Where regret is read as N grows."""
HORIZONS = (25, 50, 100, 200, 400)
DIMS = (2, 3, 4, 6)
PRINTED_TAU = "Th-MTS_tau(8)"
"""Th-MTS_tau with the number of steps of eq. (8), which only a long task has."""


def linear_scaled(dim: int = 5, horizon: int = 200) -> TaskFamily:
    """The linear family of Table 1, see the module; learners are told mu_* ~ N(0, |mu_*|^2 / d I).

    Parameters
    ----------
    dim, horizon : int
        d and T.

    Returns
    -------
    TaskFamily
    """
    spread = MEAN**2 / dim
    return TaskFamily(
        GaussianPrior(np.full(dim, math.sqrt(spread)), np.eye(dim)),
        UniformBall(dim, 0.25 * math.sqrt((dim + 2) / 7), 20),
        1.0,
        horizon,
        hyper=GaussianPrior(np.zeros(dim), spread * np.eye(dim)),
    )


def arms_scaled(dim: int = 4, horizon: int = 200) -> TaskFamily:
    """K arms with a hyper-prior; bounds are those of theta under it, for mu_* is not known.

    Parameters
    ----------
    dim, horizon : int
        K and T.

    Returns
    -------
    TaskFamily
    """
    family = arms_family(dim, SPREAD, WITHIN, 1.0, horizon)
    bounds = Bounds(
        radius=1.0,
        action_min=1 / dim,
        prior_min=WITHIN**2,
        prior_max=WITHIN**2 + SPREAD**2,
        mean_norm=2 * SPREAD * math.sqrt(dim),
    )
    return replace(family, bounds=bounds)


def pricing_scaled(dim: int = 4, horizon: int = 200) -> TaskFamily:
    """Dynamic pricing with one mu_* of d = 2 d' entries, told mu_* ~ N(0, |mu_*|^2 / d I).

    Parameters
    ----------
    dim, horizon : int
        d, an even number, and T.

    Returns
    -------
    TaskFamily
    """
    family = pricing_family(dim // 2, horizon=horizon)
    spread = float(family.prior.mean @ family.prior.mean) / dim
    return replace(family, hyper=GaussianPrior(np.zeros(dim), spread * np.eye(dim)))


FAMILIES = {"linear": linear_scaled, "arms": arms_scaled, "pricing": pricing_scaled}


def rows_of(family: str, dim: int, tasks: int) -> list[Agent]:
    """The rows that have tasks left after their warm-up, and their references."""
    setting = FAMILIES[family](dim).setting(tasks)
    rows = [ROSTER[name] for name in OF[family]]
    return with_references([row for row in rows if row.warmup_tasks(setting) < tasks])


def with_printed_tau() -> list[Agent]:
    """Th-MTS_tau and its reference, exploring for the tau of eq. (8)."""
    rule, name = theoretical_steps(), "KTS_tau(8)"
    return [
        replace(ROSTER["Th-MTS_tau"], name=PRINTED_TAU, exploration=rule, reference=name),
        replace(ROSTER["KTS_tau"], name=name, exploration=rule, reference=name),
    ]


def read_at(record: xr.Dataset, tasks: Iterable[int]) -> xr.Dataset:
    """Regret and relative regret summed over tasks so far, at some tasks, and in the warm-up."""
    total = cumulative(record)[["cumulative_regret", "cumulative_relative_regret"]]
    found = total.sel(task=list(tasks))
    for name in list(total):
        # each row's own warm-up; nothing where it has none
        warm = [
            float(total[name].sel(agent=agent).isel(task=min(int(n), total.sizes["task"]) - 1))
            if n
            else 0.0
            for agent, n in zip(record.agent.values, record.warmup.values, strict=True)
        ]
        found[f"{name}_in_warmup"] = ("agent", warm)
    return found.astype(np.float32)


def grow(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """One cell: one run of all rows of a family."""
    family = FAMILIES[settings["family"]](settings["d"], settings["T"])
    tasks = settings["tasks"]
    rows = rows_of(settings["family"], settings["d"], tasks)
    if settings["rule"] == "eq. (8)":
        rows = [*with_printed_tau(), ROSTER["KTS"]]
    record = record_run(family, find_rows(family, rows, tasks), tasks, seed)
    return read_at(record, [n for n in TASKS if n < tasks] + [tasks])


def growth_study(
    family: str,
    grows: str,
    values: Iterable[int],
    *,
    tasks: int,
    runs: int,
    rule: str = "lambda",
    name: str | None = None,
) -> Study:
    """Cells for every value of what grows ("T", "d", or "N" with one value) and every run."""
    usual = {"T": 200, "d": 5 if family == "linear" else 4}
    cells = {
        f"{value}-{run}": {
            "family": family,
            "tasks": tasks,
            "rule": rule,
            **usual,
            **({} if grows == "N" else {grows: value}),
            "value": value,
            "run": run,
        }
        for value in values
        for run in range(runs)
    }
    made = FAMILIES[family]()
    name = f"{family}-{grows}" if name is None else name
    return Study(
        f"rivals-{name}",
        cells,
        grow,
        random_seed=8,
        dims=("value", "run"),
        note=f"Table 1, measured: growth in {grows}, family {family}; {averaged_over(made)}",
        record=f"rivals/{name}.nc",
        keep=partial(_said, regret=averaged_over(made)),
    )


def _said(record: xr.Dataset, regret: str) -> xr.Dataset:
    """The record, which says what its regret is a mean over."""
    return record.assign_attrs(regret=regret)


STUDIES = (
    growth_study("linear", "N", [1000], tasks=1000, runs=8),
    growth_study("linear", "T", HORIZONS, tasks=250, runs=6),
    growth_study("linear", "d", DIMS, tasks=400, runs=6),
    growth_study("linear", "T", [1600, 3200], tasks=200, runs=5, rule="eq. (8)", name="linear-T8"),
    growth_study("arms", "N", [400], tasks=400, runs=20),
    growth_study("arms", "T", HORIZONS, tasks=100, runs=20),
    growth_study("arms", "d", DIMS, tasks=300, runs=12),
    growth_study("pricing", "N", [400], tasks=400, runs=6),
    growth_study("pricing", "T", HORIZONS, tasks=150, runs=6),
    growth_study("pricing", "d", (2, 4, 6), tasks=300, runs=6),
)
"""What is recorded in analyses/rivals of growth."""
