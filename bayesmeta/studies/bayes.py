"""The estimators of the paper and the posterior side by side, on the same exploration data."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.agents.exploration import Exploration, first_steps, until_eigenvalue
from bayesmeta.agents.learners import Finished
from bayesmeta.agents.roster import ROSTER, Agent
from bayesmeta.checks import Array
from bayesmeta.environment import Setting, TaskFamily, paper_family
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.estimators.fit import fit_prior
from bayesmeta.estimators.moments import least_squares, raise_eigenvalues
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.runner.study import Study, grid
from bayesmeta.simulation.played import statistics_of
from bayesmeta.simulation.simulator import simulate_run
from bayesmeta.statistics import TaskStatistics
from bayesmeta.streams import stream
from bayesmeta.theory.constants import (
    covariance_radius,
    mean_radius,
    widening_constant,
)

if TYPE_CHECKING:
    import xarray as xr

RULES: dict[str, Exploration] = {"threshold": until_eigenvalue(0.03), "tau=50": first_steps(50)}
"""Section 6's rule, and one under which every task is explored well."""
SIZES = (20, 50, 100, 200, 500, 1000, 2000, 5000)
METHODS = ("moment", "widened, c_w = 10", "widened, theory", "REML", "posterior")
PLAYED = (*METHODS, "posterior draws")
"""What the next task is played with; the posterior as its predictive law, or a draw a task."""
HORIZON, NEXT, LEVEL = 200, 300, 0.95
RADII = ("moment", "REML", "posterior", "E_m, E_s at 95%", "E_m, E_s as defined")
"""Whose statement of how far off the estimate may be."""


@dataclass(frozen=True)
class Drawn:
    """Plays every task with one of these priors, at random; a learner that learns nothing."""

    means: tuple[Array, ...]
    covs: tuple[Array, ...]

    @property
    def all_steps(self) -> bool:
        return False

    def start(self, setting: Setting) -> None:
        return None

    def observe(self, memory: None, task: Finished) -> None:
        return None

    def estimate(self, memory: None, setting: Setting, rng: np.random.Generator) -> PriorEstimate:
        k = rng.integers(len(self.means))
        return PriorEstimate(GaussianPrior(self.means[k], self.covs[k]), Status.GIVEN)


def explored(settings: dict[str, Any], seed: int) -> tuple[TaskFamily, TaskStatistics]:
    """The paper's family, and the statistics of the exploration steps of n tasks."""
    rule = RULES[settings["rule"]]
    family = paper_family(horizon=rule.tau or HORIZON)  # no step after the exploration
    row = replace(ROSTER["KTS"], exploration=rule)
    stats = statistics_of(family, row, settings["n"], seed, opening=True)
    return paper_family(), stats


def posterior_of(
    family: TaskFamily, stats: TaskStatistics, seed: int, eta: float = 1.0
) -> xr.DataTree:
    """Draws under the prior over priors that the agent HB-TS has, from the bounds it is told; or
    with another ``eta`` of its correlations."""
    from bayesmeta.posterior.online import prior_from_bounds
    from bayesmeta.posterior.sampling import FitWarning, sample_posterior

    prior = replace(prior_from_bounds(family.told()), eta=eta)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # ``trusted`` is recorded
        return sample_posterior(
            stats, family.noise_sd, prior=prior, chains=2, draws=1000,
            tune=400, cores=1, random_seed=seed % 2**31,
        )  # fmt: skip


def compare(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """One cell: fit in every way; errors, what is said about them, and the next tasks' regret."""
    import xarray as xr

    n = settings["n"]
    family, stats = explored(settings, seed)
    truth, sd, bounds, d = family.prior, family.noise_sd, family.told(), family.dim
    theory = widening_constant(d, sd, bounds.action_min, bounds.prior_max)
    tree = posterior_of(family, stats, seed)
    draws = tree["posterior"].to_dataset().stack(sample=("chain", "draw"))
    mus, covs = draws["mu"].values.T, np.moveaxis(draws["Sigma"].values, -1, 0)
    reml = fit_prior(stats, sd, "reml")
    found: dict[str, tuple[Array, Array]] = {
        "posterior": (mus.mean(axis=0), covs.mean(axis=0)),
        "REML": (reml.prior.mean, reml.prior.cov),
    }
    for method, wide in (("moment", None), (METHODS[1], 10.0), (METHODS[2], theory)):
        kind = "moment" if wide is None else "moment-widened"
        horizon = None if wide is None else HORIZON
        one = fit_prior(stats, sd, kind, widening=wide, horizon=horizon).prior
        found[method] = (one.mean, one.cov)
    gaps = [found[method] for method in METHODS]
    mean_error = [float(np.linalg.norm(mean - truth.mean)) for mean, _ in gaps]
    low = [float(np.linalg.eigvalsh(cov)[0]) for _, cov in gaps]
    apart = [np.linalg.eigvalsh(cov - truth.cov) for _, cov in gaps]
    rng = stream(seed, "radii")
    own = least_squares(stats)
    by_moment = np.cov(own.T) / n
    by_reml = np.linalg.inv(_information(stats, reml.prior.cov, sd))
    level = 1 - LEVEL
    defined = 1 / (d * (n + 1) * HORIZON)
    told = (d, sd, bounds.action_min, bounds.prior_max)
    mean_radii = [
        _norm_quantile(rng, by_moment),
        _norm_quantile(rng, by_reml),
        float(np.quantile(np.linalg.norm(mus - mus.mean(axis=0), axis=1), LEVEL)),
        mean_radius(*told, n + 1, level),
        mean_radius(*told, n + 1, defined),
    ]
    around = np.linalg.eigvalsh(covs - covs.mean(axis=0))
    cov_radii = [
        np.nan,
        np.nan,
        float(np.quantile(np.abs(around).max(axis=1), LEVEL)),
        covariance_radius(*told, n + 1, level / 6),
        covariance_radius(*told, n + 1, defined),
    ]
    intervals = {
        "moment": (own.mean(axis=0), 1.96 * np.sqrt(np.diag(by_moment)), None, None),
        "REML": (reml.prior.mean, 1.96 * np.sqrt(np.diag(by_reml)), reml.prior.cov,
                 None if reml.cov_sd is None else 1.96 * reml.cov_sd),
    }  # fmt: skip
    mu_in, mu_width = np.full((3, d), np.nan), np.full((3, d), np.nan)
    cov_in, cov_width = np.full((3, d, d), np.nan), np.full((3, d, d), np.nan)
    for i, (mean, half, cov, spread) in enumerate(intervals.values()):
        mu_in[i], mu_width[i] = np.abs(mean - truth.mean) <= half, 2 * half
        if cov is not None and spread is not None:
            cov_in[i], cov_width[i] = np.abs(cov - truth.cov) <= spread, 2 * spread
            cov_in[i][~np.isfinite(spread)] = np.nan
    ends = np.quantile(mus, [0.025, 0.975], axis=0)
    mu_in[2], mu_width[2] = (ends[0] <= truth.mean) & (truth.mean <= ends[1]), ends[1] - ends[0]
    ends = np.quantile(covs, [0.025, 0.975], axis=0)
    cov_in[2], cov_width[2] = (ends[0] <= truth.cov) & (truth.cov <= ends[1]), ends[1] - ends[0]
    regret = next_regret(family, found, (mus, covs), seed)
    return xr.Dataset(
        {
            "mean_error": ("estimate", mean_error),
            "cov_error": ("estimate", [float(np.abs(one).max()) for one in apart]),
            "lowest_eigenvalue": ("estimate", low),
            "dominates": ("estimate", [float(one[0] >= 0) for one in apart]),
            "trace": ("estimate", [float(np.trace(cov)) for _, cov in gaps]),
            "mean_radius": ("radius", mean_radii),
            "cov_radius": ("radius", cov_radii),
            "mu_in": ("radius", np.append(mu_in.mean(axis=1), [np.nan] * 2)),
            "mu_width": ("radius", np.append(mu_width.mean(axis=1), [np.nan] * 2)),
            "cov_in": ("radius", np.append(_mean(cov_in), [np.nan] * 2)),
            "cov_width": ("radius", np.append(_mean(cov_width), [np.nan] * 2)),
            "regret": ("played", [regret[name] for name in ("KTS", *PLAYED)]),
            "trusted": float(tree.attrs["trusted"]),
        },
        coords={
            "estimate": list(METHODS),
            "radius": list(RADII),
            "played": ["KTS", *PLAYED],
        },
    )


def _mean(values: Array) -> Array:
    """Over the entries there are; a Sigma at the boundary may lack standard errors."""
    count = np.isfinite(values).sum(axis=(1, 2))
    return np.where(count > 0, np.nansum(values, axis=(1, 2)) / np.maximum(count, 1), np.nan)


def _information(stats: TaskStatistics, cov: Array, noise_sd: float) -> Array:
    """Of mu, where Sigma is ``cov``: sum of (Sigma + sigma^2 V_j^-1)^-1, V_j singular or not."""
    inner = np.eye(len(cov)) + stats.gram @ cov / noise_sd**2
    total: Array = (np.linalg.solve(inner, stats.gram) / noise_sd**2).sum(axis=0)
    return total


def _norm_quantile(rng: np.random.Generator, cov: Array) -> float:
    """The 95% quantile of the norm of N(0, cov)."""
    values = np.linalg.eigvalsh(cov)
    squares = rng.standard_normal((4000, len(values))) ** 2 @ np.maximum(values, 0.0)
    return math.sqrt(float(np.quantile(squares, LEVEL)))


def next_regret(
    family: TaskFamily,
    found: dict[str, tuple[Array, Array]],
    draws: tuple[Array, Array],
    seed: int,
) -> dict[str, float]:
    """Mean regret of tasks that Thompson Sampling plays with each prior, the same tasks for all.

    The posterior is played as its predictive law, Sigma's mean plus the covariance of mu, and by
    drawing a prior for every task. Only eq. (11), where it is not positive definite, is raised as
    in Section 6; what is singular is played as it is.
    """
    mus, covs = draws
    played = dict(found)
    mean, cov = found["posterior"]
    played["posterior"] = (mean, cov + np.cov(mus.T))
    usable = {name: Drawn((one[0],), (_usable(one[1], family),)) for name, one in played.items()}
    usable["posterior draws"] = Drawn(tuple(mus[::10]), tuple(covs[::10]))
    rows: list[Agent] = [ROSTER["KTS"]]
    rows += [replace(ROSTER["KTS"], name=name, learner=usable[name]) for name in PLAYED]
    regret = simulate_run(family, rows, tasks=NEXT, seed=seed + 1)["regret"]
    return {row.name: float(one.mean()) for row, one in zip(rows, regret, strict=True)}


def _usable(cov: Array, family: TaskFamily) -> Array:
    made = np.array(cov)
    if np.linalg.eigvalsh(made)[0] < -1e-9:
        raise_eigenvalues(made, family.told().prior_min)
    return made


def keep_draws(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """One cell: draws of one fit, thinned, with the closed forms, for the notebook's pictures."""
    import xarray as xr

    family, stats = explored(settings, seed)
    tree = posterior_of(family, stats, seed)
    draws = tree["posterior"].to_dataset()[["mu", "Sigma"]].isel(draw=slice(None, None, 4))
    draws = draws.stack(sample=("chain", "draw")).reset_index("sample", drop=True)
    bounds, sd = family.told(), family.noise_sd
    theory = widening_constant(family.dim, sd, bounds.action_min, bounds.prior_max)
    closed = {
        "moment": fit_prior(stats, sd, "moment"),
        METHODS[1]: fit_prior(stats, sd, "moment-widened", widening=10.0, horizon=HORIZON),
        METHODS[2]: fit_prior(stats, sd, "moment-widened", widening=theory, horizon=HORIZON),
        "REML": fit_prior(stats, sd, "reml"),
    }
    labels = draws["feature"].values
    return xr.Dataset(
        {
            "mu": draws["mu"].transpose("sample", "feature").astype(np.float32),
            "Sigma": draws["Sigma"].transpose("sample", ...).astype(np.float32),
            "mean": (("closed", "feature"), np.stack([e.prior.mean for e in closed.values()])),
            "cov": (("closed", "feature", "feature_bis"),
                    np.stack([e.prior.cov for e in closed.values()])),
            "trusted": float(tree.attrs["trusted"]),
        },
        coords={"closed": list(closed), "feature": labels, "feature_bis": labels},
    )  # fmt: skip


ETAS = (0.5, 1.0, 2.0, 4.0)


def other_priors(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """One cell: the posterior under several priors over correlations, on the same data."""
    import xarray as xr

    family, stats = explored({"rule": "threshold", "n": settings["n"]}, seed)
    truth, below = family.prior.cov, np.tril_indices(family.dim, -1)
    found: dict[str, list[float]] = {"cov_in": [], "cov_error": [], "corr": [], "trusted": []}
    for eta in ETAS:
        tree = posterior_of(family, stats, seed, eta)
        draws = tree["posterior"].to_dataset()
        covs = draws["Sigma"].values
        low, high = np.quantile(covs, [0.025, 0.975], axis=(0, 1))
        gap = np.linalg.eigvalsh(covs.mean(axis=(0, 1)) - truth)
        found["cov_in"].append(float(np.mean((low <= truth) & (truth <= high))))
        found["cov_error"].append(float(np.abs(gap).max()))
        found["corr"].append(float(draws["corr"].values[..., *below].mean()))
        found["trusted"].append(float(tree.attrs["trusted"]))
    return xr.Dataset(
        {name: ("eta", values) for name, values in found.items()}, coords={"eta": list(ETAS)}
    )


STUDIES = (
    Study(
        "bayes-vs-moment",
        grid(rule=list(RULES), n=SIZES, run=range(20)),
        compare,
        seed=7,
        dims=("rule", "n", "run"),
        note="moment, widened, REML and posterior on the same exploration data",
        record="bayes-vs-moment/compared.nc",
    ),
    Study(
        "bayes-vs-moment-fits",
        grid({"rule": "threshold"}, n=[20, 100, 1000]),
        keep_draws,
        seed=8,
        dims=("n",),
        note="draws of three fits, for pictures",
        record="bayes-vs-moment/fits.nc",
    ),
    Study(
        "bayes-vs-moment-priors",
        grid(n=[50, 200, 1000], run=range(20)),
        other_priors,
        seed=9,
        dims=("n", "run"),
        note="how much the prior over correlations matters",
        record="bayes-vs-moment/priors.nc",
    ),
)
"""What is recorded in analyses/bayes-vs-moment."""
