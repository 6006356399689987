"""The estimators of the paper and the posterior side by side, on the same exploration data."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesmeta.agents.agent import Agent
from bayesmeta.agents.exploration import Exploration, first_steps, until_eigenvalue
from bayesmeta.agents.roster import ROSTER
from bayesmeta.agents.told import Told
from bayesmeta.calibration.shares import holds
from bayesmeta.checks import Array
from bayesmeta.environment import TaskFamily, paper_family
from bayesmeta.estimators.estimate import PriorEstimate
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
            stats,
            family.noise_sd,
            prior=prior,
            chains=2,
            draws=1000,
            tune=400,
            cores=1,
            random_seed=seed % 2**31,
        )


class Fits(NamedTuple):
    """Every estimate from the same statistics, as (mean, covariance), and what errors need."""

    found: dict[str, tuple[Array, Array]]
    reml: PriorEstimate
    mus: Array
    covs: Array
    trusted: float


def closed_forms(family: TaskFamily, stats: TaskStatistics) -> dict[str, PriorEstimate]:
    """Eq. (11), widened by eq. (12) with Section 6's constant and the theory's, and REML."""
    sd, bounds = family.noise_sd, family.told()
    return {
        "moment": fit_prior(stats, sd, "moment"),
        METHODS[1]: fit_prior(stats, sd, "moment-widened", widening=10.0, horizon=HORIZON),
        METHODS[2]: fit_prior(stats, sd, "moment-widened", bounds=bounds, horizon=HORIZON),
        "REML": fit_prior(stats, sd, "reml"),
    }


def fit_all(family: TaskFamily, stats: TaskStatistics, seed: int) -> Fits:
    """Estimate the prior in every way."""
    tree = posterior_of(family, stats, seed)
    draws = tree["posterior"].to_dataset().stack(sample=("chain", "draw"))
    mus, covs = draws["mu"].values.T, np.moveaxis(draws["Sigma"].values, -1, 0)
    closed = closed_forms(family, stats)
    found = {name: (one.prior.mean, one.prior.cov) for name, one in closed.items()}
    found["posterior"] = (mus.mean(axis=0), covs.mean(axis=0))
    return Fits(found, closed["REML"], mus, covs, float(tree.attrs["trusted"]))


def compare(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """One cell: fit in every way; errors, what is said about them, and the next tasks' regret."""
    import xarray as xr

    family, stats = explored(settings, seed)
    fits = fit_all(family, stats, seed)
    regret = next_regret(family, fits, seed)
    content = errors(fits.found, family.prior) | statements(family, stats, fits, seed)
    content["regret"] = ("played", [regret[name] for name in ("KTS", *PLAYED)])
    return xr.Dataset(
        content | {"trusted": fits.trusted},
        coords={
            "estimate": list(METHODS),
            "radius": list(RADII),
            "played": ["KTS", *PLAYED],
        },
    )


def errors(found: dict[str, tuple[Array, Array]], truth: GaussianPrior) -> dict[str, Any]:
    """How far every estimate is off, and whether it dominates the true covariance."""
    means, covs = zip(*(found[method] for method in METHODS), strict=True)
    apart = [np.linalg.eigvalsh(cov - truth.cov) for cov in covs]
    values = {
        "mean_error": [float(np.linalg.norm(mean - truth.mean)) for mean in means],
        "cov_error": [float(np.abs(one).max()) for one in apart],
        "lowest_eigenvalue": [float(np.linalg.eigvalsh(cov)[0]) for cov in covs],
        "dominates": [float(one[0] >= 0) for one in apart],
        "trace": [float(np.trace(cov)) for cov in covs],
    }
    return {name: ("estimate", value) for name, value in values.items()}


def statements(family: TaskFamily, stats: TaskStatistics, fits: Fits, seed: int) -> dict[str, Any]:
    """What is said of the errors: radii of the mean and the covariance, and 95% intervals of their
    entries, with how many of them hold the truth and how wide they are."""
    rng, d, n = stream(seed, "radii"), family.dim, len(stats)
    own = least_squares(stats)
    by_moment = np.cov(own.T) / n
    by_reml = np.linalg.inv(_information(stats, fits.reml.prior.cov, family.noise_sd))
    bounds = family.told()
    told = (d, family.noise_sd, bounds.action_min, bounds.prior_max)
    level, defined = 1 - LEVEL, 1 / (d * (n + 1) * HORIZON)
    mean, cov = fits.found["posterior"]
    around = np.linalg.eigvalsh(fits.covs - cov)
    mean_radii = [
        _norm_quantile(rng, by_moment),
        _norm_quantile(rng, by_reml),
        float(np.quantile(np.linalg.norm(fits.mus - mean, axis=1), LEVEL)),
        mean_radius(*told, n + 1, level),
        mean_radius(*told, n + 1, defined),
    ]
    cov_radii = [
        np.nan,
        np.nan,
        float(np.quantile(np.abs(around).max(axis=1), LEVEL)),
        covariance_radius(*told, n + 1, level / 6),
        covariance_radius(*told, n + 1, defined),
    ]
    found = intervals(fits, family.prior, (own.mean(axis=0), by_moment), by_reml)
    nothing = [np.nan] * 2  # the radii of the theory come without intervals
    return {
        "mean_radius": ("radius", mean_radii),
        "cov_radius": ("radius", cov_radii),
    } | {name: ("radius", np.append(values, nothing)) for name, values in found.items()}


def intervals(
    fits: Fits, truth: GaussianPrior, moment: tuple[Array, Array], by_reml: Array
) -> dict[str, Array]:
    """95% intervals of entries by moments, REML and posterior: the fraction that holds the truth,
    and the mean width. ``moment`` is a mean with its covariance, ``by_reml`` that of REML's."""
    d, reml = truth.dim, fits.reml
    mu_in, mu_width = np.full((3, d), np.nan), np.full((3, d), np.nan)
    cov_in, cov_width = np.full((3, d, d), np.nan), np.full((3, d, d), np.nan)
    for i, (mean, spread) in enumerate((moment, (reml.prior.mean, by_reml))):
        half = 1.96 * np.sqrt(np.diag(spread))
        mu_in[i], mu_width[i] = np.abs(mean - truth.mean) <= half, 2 * half
    if reml.cov_sd is not None:
        half = 1.96 * reml.cov_sd
        cov_in[1], cov_width[1] = np.abs(reml.prior.cov - truth.cov) <= half, 2 * half
        cov_in[1][~np.isfinite(half)] = np.nan
    low, high = np.quantile(fits.mus, [0.025, 0.975], axis=0)
    mu_in[2], mu_width[2] = holds(low, high, truth.mean), high - low
    low, high = np.quantile(fits.covs, [0.025, 0.975], axis=0)
    cov_in[2], cov_width[2] = holds(low, high, truth.cov), high - low
    return {
        "mu_in": mu_in.mean(axis=1),
        "mu_width": mu_width.mean(axis=1),
        "cov_in": _mean(cov_in),
        "cov_width": _mean(cov_width),
    }


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


def next_regret(family: TaskFamily, fits: Fits, seed: int) -> dict[str, float]:
    """Mean regret of tasks that Thompson Sampling plays with each prior, the same tasks for all.

    The posterior is played as its predictive law, Sigma's mean plus the covariance of mu, and by
    drawing a prior for every task. Only eq. (11), where it is not positive definite, is raised as
    in Section 6; what is singular is played as it is.
    """
    played = dict(fits.found)
    mean, cov = fits.found["posterior"]
    played["posterior"] = (mean, cov + np.cov(fits.mus.T))
    usable = {
        name: Told((GaussianPrior(mean, _usable(cov, family)),))
        for name, (mean, cov) in played.items()
    }
    some = zip(fits.mus[::10], fits.covs[::10], strict=True)
    usable["posterior draws"] = Told(tuple(GaussianPrior(mu, cov) for mu, cov in some))
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
    closed = closed_forms(family, stats)
    labels = draws["feature"].values
    return xr.Dataset(
        {
            "mu": draws["mu"].transpose("sample", "feature").astype(np.float32),
            "Sigma": draws["Sigma"].transpose("sample", ...).astype(np.float32),
            "mean": (("closed", "feature"), np.stack([e.prior.mean for e in closed.values()])),
            "cov": (
                ("closed", "feature", "feature_bis"),
                np.stack([e.prior.cov for e in closed.values()]),
            ),
            "trusted": float(tree.attrs["trusted"]),
        },
        coords={"closed": list(closed), "feature": labels, "feature_bis": labels},
    )


ETAS = (0.5, 1.0, 2.0, 4.0)


def other_priors(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """One cell: the posterior under several priors over correlations, on the same data."""
    import xarray as xr

    family, stats = explored({"rule": "threshold", "n": settings["n"]}, seed)
    truth = family.prior.cov
    found: dict[str, list[float]] = {"cov_in": [], "cov_error": [], "corr": [], "trusted": []}
    for eta in ETAS:
        tree = posterior_of(family, stats, seed, eta)
        draws = tree["posterior"].to_dataset()
        covs = draws["Sigma"].values
        low, high = np.quantile(covs, [0.025, 0.975], axis=(0, 1))
        gap = np.linalg.eigvalsh(covs.mean(axis=(0, 1)) - truth)
        found["cov_in"].append(float(np.mean(holds(low, high, truth))))
        found["cov_error"].append(float(np.abs(gap).max()))
        found["corr"].append(float(draws["corr"].mean()))
        found["trusted"].append(float(tree.attrs["trusted"]))
    return xr.Dataset(
        {name: ("eta", values) for name, values in found.items()}, coords={"eta": list(ETAS)}
    )


STUDIES = (
    Study(
        "bayes-vs-moment",
        grid(rule=list(RULES), n=SIZES, run=range(20)),
        compare,
        random_seed=7,
        dims=("rule", "n", "run"),
        note="moment, widened, REML and posterior on the same exploration data",
        record="bayes-vs-moment/compared.nc",
    ),
    Study(
        "bayes-vs-moment-fits",
        grid({"rule": "threshold"}, n=[20, 100, 1000]),
        keep_draws,
        random_seed=8,
        dims=("n",),
        note="draws of three fits, for pictures",
        record="bayes-vs-moment/fits.nc",
    ),
    Study(
        "bayes-vs-moment-priors",
        grid(n=[50, 200, 1000], run=range(20)),
        other_priors,
        random_seed=9,
        dims=("n", "run"),
        note="how much the prior over correlations matters",
        record="bayes-vs-moment/priors.nc",
    ),
)
"""What is recorded in analyses/bayes-vs-moment."""
