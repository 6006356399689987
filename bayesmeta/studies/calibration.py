"""Simulation-based calibration: where does the truth rank among the draws of its posterior?

Draw (mu, Sigma) from the prior over priors, tasks from N(mu, Sigma), data from the tasks, and draws
from the posterior given the data. If model and sampler are right, the rank of the truth among the
draws is uniform (Talts et al. 2018), for every quantity. Wrong models are run through the same
mill, to see that it notices.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.actions import UniformBall
from bayesmeta.agents.roster import ROSTER
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
    "adaptive": "500 tasks of 30 steps, all steps of a Thompson agent",
}
"""How data are collected."""
QUANTITIES = ("mu 1", "mu 2", "sd 1", "sd 2", "corr", "Sigma 12", "sigma")


def collect_tasks(family: TaskFamily, how: str, seed: int) -> TaskStatistics:
    """Statistics of tasks whose actions were taken at random, or by an agent that learns."""
    tasks = 30 if how == "random" else 500
    row = ROSTER["UKTS"]
    if how == "random":
        from bayesmeta.agents.exploration import first_steps

        row = replace(row, exploration=first_steps(family.horizon))
    return statistics_of(family, row, tasks, seed)


def replicate(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """One cell: the rank of the truth for every quantity, and how far off least squares is."""
    import xarray as xr

    from bayesmeta.posterior.model import Problem
    from bayesmeta.posterior.sampling import draw_chain

    how, which = settings["data"], settings["model"]
    prior: LKJ | InverseWishart = PRIOR.settled(DIM)
    if which == "right, inverse-Wishart":
        prior = CONJUGATE.settled(DIM)
    rng = stream(seed, "truth")
    means, roots, noises = prior.draw(rng, 1)
    noise = float(noises[0]) if which == "right, noise unknown" else NOISE
    cov = roots[0] @ roots[0].T
    family = TaskFamily(
        GaussianPrior(means[0], cov), UniformBall(DIM, 1.0, 10), noise,
        horizon=8 if how == "random" else 30, bounds=TOLD,
    )  # fmt: skip
    stats = collect_tasks(family, how, seed)
    believed: float | None = noise
    if which == "right, noise unknown":
        believed = None
    elif which == "noise 20% too large":
        believed = 1.2 * noise
    elif which == "no correlations":
        prior = replace(PRIOR, eta=1e6).settled(DIM)
    given = stats
    if which == "least squares as theta":
        sure = 1e6 * np.broadcast_to(np.eye(DIM), stats.gram.shape)
        given = TaskStatistics(sure, 1e6 * least_squares(stats))
    problem = Problem(given, believed, prior, "fused")
    chain = draw_chain(problem, draws=DRAWS * THIN, tune=400, seed=seed % 2**31)
    found = chain.draws
    sd = np.sqrt(np.diag(cov))
    truth = [*means[0], *sd, cov[0, 1] / (sd[0] * sd[1]), cov[0, 1], noise]
    ranks = []
    for k, (name, index) in enumerate(
        (
            ("mu", 0),
            ("mu", 1),
            ("sd", 0),
            ("sd", 1),
            ("corr", (0, 1)),
            ("Sigma", (0, 1)),
            ("sigma", ()),
        )
    ):
        if name not in found:
            ranks.append(np.nan)
            continue
        index = index if isinstance(index, tuple) else (index,)
        draws = found[name][(slice(None), *index)][THIN - 1 :: THIN]
        ranks.append(float((draws < truth[k]).sum()))
    estimates = least_squares(stats)
    error = estimates.std(axis=0, ddof=1) / np.sqrt(len(estimates))
    z: Array = (estimates.mean(axis=0) - means[0]) / error
    # along the direction in which the tasks' rewards lie, where choosing biases most
    way = means[0] / np.linalg.norm(means[0])
    along = estimates @ way
    z_along = (along.mean() - means[0] @ way) / (along.std(ddof=1) / np.sqrt(len(along)))
    return xr.Dataset(
        {
            "rank": ("quantity", ranks),
            "ols_z": ("direction", [*z, z_along]),
            "divergent": chain.divergent,
        },
        coords={"quantity": list(QUANTITIES), "direction": ["mu 1", "mu 2", "along mu"]},
    )


STUDIES = (
    Study(
        "calibration",
        grid({"data": "random"}, model=list(MODELS), run=range(500)),
        replicate,
        seed=5,
        dims=("model", "run"),
        note="simulation-based calibration of the models, and of wrong ones",
        record="calibration/random.nc",
    ),
    Study(
        "calibration-adaptive",
        grid({"data": "adaptive", "model": "right"}, run=range(500)),
        replicate,
        seed=6,
        dims=("run",),
        note="the same on all steps of an agent that chose its own actions",
        record="calibration/adaptive.nc",
    ),
)
"""What is recorded in analyses/calibration."""
