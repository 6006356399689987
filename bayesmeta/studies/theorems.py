"""Theorems 1 and 2, measured: what a wrong prior costs, and how MQB's relative regret grows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.agents.agent import Agent
from bayesmeta.agents.ensemble import Ensemble
from bayesmeta.agents.exploration import until_eigenvalue
from bayesmeta.agents.player import Player
from bayesmeta.agents.policies import thompson, v_ids
from bayesmeta.agents.roster import ROSTER
from bayesmeta.agents.told import Told
from bayesmeta.checks import Array
from bayesmeta.environment import TaskFamily, paper_family
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.runner.study import Study, grid
from bayesmeta.simulation.simulator import record_run
from bayesmeta.streams import ENVIRONMENT, stream

if TYPE_CHECKING:
    import xarray as xr

POLICIES = {"TS": thompson(), "IDS": v_ids()}
SIZES = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Deviations of the mean (Euclidean norm) or of the covariance (operator norm)."""
SCALES = (0.5, 0.2, 0.05)
"""Covariances narrower than the truth, which the theory excludes."""
GROWING = ("Th-MTS_tau", "All-MTS_tau")
HORIZONS = (50, 100, 200, 400, 800)
DIMS = (2, 3, 4, 6, 8)
FROM = 512
"""Tasks counted in the study of d: those after the longest warm-up, 8^3 tasks."""


def deviations(truth: GaussianPrior) -> dict[str, tuple[float, float, GaussianPrior]]:
    """Wrong priors by name, with the sizes of their errors in mean and covariance. *Along* is the
    direction of mu_* and of the largest eigenvalue, *across* one of the smallest."""
    d = truth.dim
    along, across = np.full(d, d**-0.5), np.zeros(d)
    across[:2] = 0.5**0.5, -(0.5**0.5)
    one = np.eye(d)
    zero = np.zeros(d)
    found: dict[str, tuple[Array, Array]] = {"none": (zero, 0 * one)}
    for size in SIZES:
        found[f"mean +{size:g} along"] = size * along, 0 * one
        found[f"mean -{size:g} along"] = -size * along, 0 * one
        found[f"mean {size:g} across"] = size * across, 0 * one
        found[f"covariance +{size:g} I"] = zero, size * one
        found[f"covariance +{size:g} along"] = zero, size * np.outer(along, along)
        found[f"covariance +{size:g} across"] = zero, size * np.outer(across, across)
        found[f"both {size:g}"] = size * along, size * one
        found[f"both -{size:g}"] = -size * along, size * one
    for scale in SCALES:
        found[f"covariance times {scale:g}"] = zero, (scale - 1) * truth.cov
    return {
        name: (
            float(np.linalg.norm(mean)),
            float(np.linalg.norm(cov, 2)),
            GaussianPrior(truth.mean + mean, truth.cov + cov),
        )
        for name, (mean, cov) in found.items()
    }


def family_with(noise_sd: float) -> TaskFamily:
    """The family of Section 6 with another noise."""
    return replace(paper_family(), noise_sd=noise_sd)


def deviate(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """Relative regret a task of one policy with wrong priors: the same tasks, noise and draws for
    all of them. Every task explores until E_v holds, lambda_min(V) >= lambda_A d / 2."""
    import xarray as xr

    family = family_with(settings["sigma"])
    tasks, bounds = settings["tasks"], family.told()
    least = bounds.action_min * family.dim / 2 / family.noise_sd**2
    priors = deviations(family.prior)
    policy, rule = POLICIES[settings["policy"]], until_eigenvalue(least)
    players = [
        Player(
            Agent("QB", policy, rule, Told((prior,)), "QB"), family.setting(tasks), random_seed=seed
        )
        for _, _, prior in priors.values()
    ]
    ensemble, rng = Ensemble(players), stream(seed, ENVIRONMENT)
    total, after, tau = np.zeros(len(players)), 0.0, 0.0
    for _ in range(tasks):
        for player in players:
            player.start_task()
        task = family.draw(rng)
        done = ensemble.play(task)
        total += done.regret
        known = done.of(0)
        first = slice(0, known.explored)
        lost = float((task.best[first] - known.taken[first] @ task.theta).sum())
        after += known.regret - lost
        tau += known.explored
    return xr.Dataset(
        {
            "relative_regret": ("deviation", (total - total[0]) / tasks),
            "known_regret": ((), after / tasks, {"long_name": "of KQB after its exploration"}),
            "exploration_steps": ((), tau / tasks),
        },
        coords={
            "deviation": list(priors),
            "mean_size": ("deviation", [one[0] for one in priors.values()]),
            "covariance_size": ("deviation", [one[1] for one in priors.values()]),
        },
    )


def grow(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """Relative regret of MQB after its warm-up, in total over tasks ``start`` to the last."""
    d, radius = settings["d"], settings["radius"]
    family = paper_family(dim=d, horizon=settings["horizon"], radius=radius)
    rows = [ROSTER[name] for name in (*GROWING, "KTS_tau")]
    record = record_run(family, rows, settings["tasks"], seed)
    later = record.isel(task=slice(settings["start"], None))
    return later[["relative_regret", "regret", "exploration_steps"]].sum("task")


RUNS = 20


def _growth(name: str, cells: list[dict[str, Any]], note: str) -> Study:
    """Relative regret of MQB for every cell, ``RUNS`` times."""
    made = {
        f"{cell['value']:g}-{run}": {**cell, "run": run} for cell in cells for run in range(RUNS)
    }
    return Study(
        f"theorems-{name}",
        made,
        grow,
        random_seed=6,
        dims=("value", "run"),
        note=note,
        record=f"theorems/{name}.nc",
    )


def _deviations(policy: str, tasks: int, note: str) -> Study:
    """Regret of one policy with wrong priors, at two noise levels, ``RUNS`` times."""
    name = policy.lower()
    return Study(
        f"theorems-{name}",
        grid({"policy": policy, "tasks": tasks}, sigma=[1.0, 0.1], run=range(RUNS)),
        deviate,
        random_seed=5,
        dims=("sigma", "run"),
        note=note,
        record=f"theorems/{name}.nc",
    )


def _by_dim(radius: Callable[[int], float]) -> list[dict[str, Any]]:
    """Settings for every d, with the radius of its action set."""
    common = {"horizon": 200, "tasks": 1500, "start": FROM}
    return [{"value": d, "d": d, "radius": radius(d), **common} for d in DIMS]


_BY_HORIZON = [
    {"value": t, "d": 5, "radius": 0.25, "horizon": t, "tasks": 1000, "start": 125}
    for t in HORIZONS
]

STUDIES = (
    _deviations("TS", 1000, "what a wrong prior costs Thompson Sampling"),
    _deviations("IDS", 100, "what a wrong prior costs IDS"),
    _growth("horizon", _BY_HORIZON, "how MQB's relative regret grows with T"),
    _growth("dim", _by_dim(lambda d: 0.25), "how it grows with d, radius fixed"),
    _growth(
        "dim-radius",
        _by_dim(lambda d: 0.25 * (d / 5) ** 0.5),
        "how it grows with d, radius growing like its root",
    ),
)
"""What is recorded in analyses/theorems."""
