"""Simulation-based calibration: where does the truth rank among the draws of its posterior?

Draw (mu, Sigma) from the prior over priors, tasks from N(mu, Sigma), data from the tasks, and draws
from the posterior given the data. If model and sampler are right, the rank of the truth among the
draws is uniform (Talts et al. 2018), for every quantity. Wrong models go through the same check, to
show that it detects them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.actions import UniformBall
from bayesmeta.agents.roster import ROSTER
from bayesmeta.calibration.ranks import rank_of
from bayesmeta.checks import Array
from bayesmeta.environment import Bounds, TaskFamily
from bayesmeta.estimators.moments import least_squares
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.posterior.priors import LKJ, InverseWishart
from bayesmeta.runner.study import Study, grid
from bayesmeta.simulation.played import statistics_of
from bayesmeta.statistics import TaskStatistics
from bayesmeta.streams import stream

if TYPE_CHECKING:
    import xarray as xr

    from bayesmeta.posterior.model import Problem

DIM = 2
PRIOR = LKJ(mean=0.0, mean_sd=2.0, scale=1.0, eta=1.0, noise_scale=1.5)
"""Fixed numbers: a prior that looked at the data would void the check."""
CONJUGATE = InverseWishart(mean=[0.0, 0.0], weight=0.5, degrees=6.0, scale=[[3.0, 0.0], [0.0, 3.0]])
"""The other family of priors."""
NOISE = 1.0
TOLD = Bounds(radius=1.0, action_min=0.25, prior_min=0.0, prior_max=2.0, mean_norm=4.0)
"""What the agent that collects data is told: the same whatever the truth, or the actions it takes
would tell more of the truth than the likelihood knows."""
DRAWS, THIN = 99, 5
MODELS = {
    "right": "as the data were made",
    "right, noise unknown": "the same, with the noise to be learned, too",
    "right, inverse-Wishart": "with the other family of priors, for data and model",
    "noise 20% too large": "believes in a noise of 1.2 where it is 1",
    "least squares as theta": "takes each task's least squares for its theta: no noise correction",
    "no correlations": "a covariance forced to be diagonal",
}
"""The right model in three versions, and three wrong ones."""
RIGHT = tuple(MODELS)[:3]
DATA = {
    "random": "30 tasks of 8 steps, actions at random",
    "many": "150 tasks of 8 steps, actions at random",
    "adaptive": "500 tasks of 30 steps, all steps of a Thompson agent",
}
"""How data are collected."""
TASKS = {"random": 30, "many": 150, "adaptive": 500}
METHODS = {
    "few tasks, auto": ("random", "auto"),
    "many tasks, auto": ("many", "auto"),
    "many tasks, nuts": ("many", "nuts"),
}
"""Data and method of drawing; the other studies are by "nuts"."""
QUANTITIES = ("mu 1", "mu 2", "sd 1", "sd 2", "corr", "Sigma 12", "sigma")


def collect_tasks(family: TaskFamily, how: str, seed: int) -> TaskStatistics:
    """Statistics of tasks whose actions were taken at random, or by an agent that learns."""
    row = ROSTER["UKTS"]
    if how != "adaptive":
        from bayesmeta.agents.exploration import first_steps

        row = replace(row, exploration=first_steps(family.horizon))
    return statistics_of(family, row, TASKS[how], seed)


def truth_of(which: str, how: str, seed: int) -> TaskFamily:
    """A family drawn from the prior over priors of the model named."""
    prior: LKJ | InverseWishart = PRIOR.settled(DIM)
    if which == "right, inverse-Wishart":
        prior = CONJUGATE.settled(DIM)
    means, roots, noises = prior.draw(stream(seed, "truth"), 1)
    noise = float(noises[0]) if which == "right, noise unknown" else NOISE
    return TaskFamily(
        GaussianPrior(means[0], roots[0] @ roots[0].T),
        UniformBall(DIM, 1.0, 10),
        noise,
        horizon=30 if how == "adaptive" else 8,
        bounds=TOLD,
    )


def believed(which: str, stats: TaskStatistics, noise: float) -> Problem:
    """The model named, given the data: what it takes noise, prior and statistics to be."""
    from bayesmeta.posterior.model import Problem

    prior: LKJ | InverseWishart = PRIOR.settled(DIM)
    noise_sd: float | None = noise
    if which == "right, inverse-Wishart":
        prior = CONJUGATE.settled(DIM)
    elif which == "right, noise unknown":
        noise_sd = None
    elif which == "noise 20% too large":
        noise_sd = 1.2 * noise
    elif which == "no correlations":
        prior = replace(PRIOR, eta=1e6).settled(DIM)
    elif which == "least squares as theta":
        sure = 1e6 * np.broadcast_to(np.eye(DIM), stats.gram.shape)
        stats = TaskStatistics(sure, 1e6 * least_squares(stats))
    return Problem(stats, noise_sd, prior, "fused")


PLACES: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("mu", (0,)),
    ("mu", (1,)),
    ("sd", (0,)),
    ("sd", (1,)),
    ("corr", (0,)),
    ("Sigma", (0, 1)),
    ("sigma", ()),
)
"""Variable and index of every one of ``QUANTITIES`` among the draws."""


def ranks_of(draws: dict[str, Array], family: TaskFamily) -> list[float]:
    """How many thinned draws of every quantity are below the truth; NaN where none are drawn."""
    cov = family.prior.cov
    sd = np.sqrt(np.diag(cov))
    truth = [*family.prior.mean, *sd, cov[0, 1] / (sd[0] * sd[1]), cov[0, 1], family.noise_sd]
    ranks = []
    for true, (name, index) in zip(truth, PLACES, strict=True):
        if name in draws:
            place: tuple[Any, ...] = (slice(None), *index)
            ranks.append(float(rank_of(draws[name][place], true, THIN)))
        else:
            ranks.append(np.nan)
    return ranks


def least_squares_z(stats: TaskStatistics, mean: Array) -> list[float]:
    """How many standard errors the mean of least squares is off: each coordinate, and along mu,
    where the tasks' rewards lie and choosing actions biases most."""
    estimates = least_squares(stats)
    error = estimates.std(axis=0, ddof=1) / np.sqrt(len(estimates))
    z: Array = (estimates.mean(axis=0) - mean) / error
    way = mean / np.linalg.norm(mean)
    along = estimates @ way
    z_along = (along.mean() - mean @ way) / (along.std(ddof=1) / np.sqrt(len(along)))
    return [*z, z_along]


def replicate(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """One cell: the rank of the truth for every quantity, and how far off least squares is."""
    return _replicated(settings["data"], settings["model"], "nuts", seed)


def replicate_method(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """The same by a method; ``weighed`` where the draws came by importance weights.

    Whether they did depends on the data alone, so that ranks are uniform among those that did, too.
    """
    how, method = METHODS[settings["case"]]
    return _replicated(how, settings["model"], method, seed)


def _replicated(how: str, which: str, method: str, seed: int) -> xr.Dataset:
    import xarray as xr

    from bayesmeta.posterior.quick import draw_quickly

    family = truth_of(which, how, seed)
    stats = collect_tasks(family, how, seed)
    problem = believed(which, stats, family.noise_sd)
    found = draw_quickly(problem, draws=DRAWS * THIN, tune=400, seed=seed % 2**31, method=method)
    return xr.Dataset(
        {
            "rank": ("quantity", ranks_of(found.draws, family)),
            "ols_z": ("direction", least_squares_z(stats, family.prior.mean)),
            "divergent": found.divergent,
            "weighed": float(found.method == "laplace"),
        },
        coords={"quantity": list(QUANTITIES), "direction": ["mu 1", "mu 2", "along mu"]},
    )


STUDIES = (
    Study(
        "calibration",
        grid({"data": "random"}, model=list(MODELS), run=range(500)),
        replicate,
        random_seed=5,
        dims=("model", "run"),
        note="simulation-based calibration of the models, and of wrong ones",
        record="calibration/random.nc",
    ),
    Study(
        "calibration-adaptive",
        grid({"data": "adaptive", "model": "right"}, run=range(500)),
        replicate,
        random_seed=6,
        dims=("run",),
        note="the same on all steps of an agent that chose its own actions",
        record="calibration/adaptive.nc",
    ),
    Study(
        "calibration-methods",
        grid(case=list(METHODS), model=list(RIGHT), run=range(200)),
        replicate_method,
        random_seed=7,
        dims=("case", "model", "run"),
        note="the same by every method of drawing, with few tasks and many",
        record="calibration/methods.nc",
    ),
)
"""What is recorded in analyses/calibration."""
