"""Draw from the posterior of (mu, Sigma), and of the noise where it is not known.

``sample_posterior`` checks its arguments, draws by one of ``methods``, and adds data, prior and
diagnostics to the tree."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesmeta.checks import (
    Advice,
    InputError,
    of_type,
    one_of,
    real,
    renamed,
    warn,
    whole,
)
from bayesmeta.posterior.centring import Centring, centring_of, told_by_rows
from bayesmeta.posterior.diagnostics import Trust, as_attribute, check_draws
from bayesmeta.posterior.methods import ACCEPT, by_laplace, by_nuts, suits_laplace
from bayesmeta.posterior.model import Problem, check_problem, require
from bayesmeta.posterior.predictive import add_log_likelihood, add_predictive, add_theta
from bayesmeta.posterior.priors import LKJ, Prior, describe_prior
from bayesmeta.posterior.tree import (
    check_rows_of,
    constant_data,
    log_prior,
    observed_data,
    outside,
    prior_group,
)
from bayesmeta.runner.executors import usable_cores
from bayesmeta.runner.provenance import versions
from bayesmeta.statistics import TaskStatistics

if TYPE_CHECKING:
    import xarray as xr

    from bayesmeta.tables.design import Rows

METHODS = ("auto", "nuts", "laplace")
SAMPLERS = ("nutpie", "pymc")
ROW_DRAWS = 4_000_000
"""Numbers in a group of likelihoods or predictions up to which it is made at once (32 MB)."""


class FitWarning(UserWarning):
    """Draws that should not be trusted; ``trustworthy`` says why."""


@renamed(seed="random_seed", sampler="nuts_sampler", progress="progressbar")
def sample_posterior(
    stats: TaskStatistics,
    noise_sd: float | None = None,
    *,
    prior: Prior | None = None,
    model: str = "fused",
    method: str = "auto",
    nuts_sampler: str = "nutpie",
    draws: int = 1000,
    tune: int | None = None,
    chains: int = 4,
    cores: int | None = None,
    random_seed: int = 0,
    target_accept: float = ACCEPT,
    theta: bool = False,
    centre: bool | str | None = None,
    rows: Rows | None = None,
    progressbar: bool = False,
) -> xr.DataTree:
    """Draw from the posterior of the prior N(mu, Sigma) that tasks come from.

    Draws that should not be trusted come with a ``FitWarning``.

    Parameters
    ----------
    stats
        The tasks; with ``count`` and ``energy`` where the noise is to be estimated.
    noise_sd
        The noise (sigma) of a reward; None: it is estimated, too.
    prior
        An ``LKJ``, ``InverseWishart`` or ``KnownCovariance``; None: ``default_prior``. An ``LKJ``
        is of the coefficients of centred features, where they are centred, the others of the
        features as they are.
    model
        How the model is written: "fused", "collapsed", "noncentred" or "centred".
    method
        "laplace" draws by a Gaussian at the mode and importance weights: quick, and only good with
        many tasks; "nuts" is slower and good with few, too. "auto": "laplace" where its weights
        pass every check and nothing was asked for that is NUTS's alone (another model or sampler,
        ``tune`` or ``target_accept``), else "nuts".
    nuts_sampler
        "nutpie" compiles once a process for all models of one kind, "pymc" every time.
    draws, chains, cores, random_seed, target_accept, progressbar
        As in ``pymc.sample``.
    tune
        Likewise; None: 100 where nutpie draws in coordinates in which the posterior is nearly a
        standard normal (fused and collapsed models, where their mode is found), otherwise 500.
    theta
        Keep draws of every task's theta, too; ``add_theta`` adds them later.
    centre
        Features are taken about their means where one of them is an intercept (always 1; with
        weights it must be named intercept, Intercept or (Intercept), or a ``str`` says its name),
        so that the origin of a feature does not matter to the prior; results are of the features
        as they are. False switches it off.
    rows
        The rows that ``stats`` were made of (``Design.rows``), for predictions and likelihoods of
        rewards.

    Returns
    -------
    xarray.DataTree
        Groups ``posterior`` (mu; Sigma, sd and corr, one entry a pair, of the features that differ
        between tasks; sigma where it is estimated; theta if asked for), ``sample_stats``,
        ``prior``, ``log_prior``, ``constant_data`` (the sums of tasks, the features of rows) and
        ``observed_data`` (``rewards`` of rows, or ``moment`` of tasks), ``log_likelihood``. With
        rows, ``posterior_predictive`` and ``prior_predictive``, too; those of more than
        ``ROW_DRAWS`` numbers (rows times draws) are left to ``add_log_likelihood`` and
        ``add_predictive``. Its attributes repeat the arguments and have the ``method`` by which
        draws were made, with the numbers of ``laplace`` where it was tried or why not, what was
        taken off features (``centred``, JSON or "no"), and the result of the checks:
        ``trusted``, and ``diagnostics``, which ``trustworthy`` reads. ``Sigma`` is a whole matrix,
        so that ``az.summary(tree)`` lists covariances twice; ``var_names=["mu", "sd", "corr",
        "sigma"]`` has each quantity once.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> theta = rng.normal(2.0, 1.0, size=50)  # fifty tasks of four steps, one feature
    >>> rewards = theta.repeat(4) + 0.5 * rng.standard_normal(200)
    >>> stats = bm.TaskStatistics.from_arrays(np.arange(50).repeat(4), rewards, np.ones((200, 1)))
    >>> tree = bm.sample_posterior(stats, noise_sd=0.5, random_seed=1)
    >>> bool(bm.trustworthy(tree)), round(float(tree["posterior"]["mu"].mean()), 1)
    (True, 2.1)
    """
    settings = check_settings(
        draws, tune, chains, random_seed, target_accept, cores, nuts_sampler=nuts_sampler
    )
    of_type("stats", stats, TaskStatistics, "make one, or use TaskStatistics.from_frame")
    check_rows_of(stats, rows)
    centre = told_by_rows(stats, centre, rows)
    # an inverse-Wishart is one in all coordinates, and a known covariance is that of the features
    centring = centring_of(stats, centre) if isinstance(prior, LKJ | None) else None
    inside = stats if centring is None else centring.inside(stats)
    problem = check_problem(inside, noise_sd, prior, model)
    one_of("method", method, METHODS)
    require("pymc", nuts_sampler)
    start = time.perf_counter()
    tree = weights = None
    if method == "laplace" or (method == "auto" and suits_laplace(problem, nuts_sampler, settings)):
        tree, weights = by_laplace(problem, settings, keep=method == "laplace")
    used = "nuts" if tree is None else "laplace"
    if tree is None:
        tree = by_nuts(problem, nuts_sampler, settings, progressbar)
    tree = _completed(tree, problem, Given(stats, rows, centring), settings, theta)
    trust = check_draws(tree)
    tree.attrs = _attributes(problem, nuts_sampler, settings) | {
        "centred": _means_taken_off(stats, centring),
        "method": used,
        "laplace": "not tried" if weights is None else json.dumps(weights),
        "seconds": time.perf_counter() - start,
        "trusted": int(bool(trust)),
        "diagnostics": as_attribute(trust, tree),
    }
    _warn_of(trust)
    return tree


class Given(NamedTuple):
    """The data as they were given, and what was taken off them."""

    stats: TaskStatistics
    rows: Rows | None
    centring: Centring | None


def _completed(
    tree: xr.DataTree, problem: Problem, given: Given, settings: dict[str, Any], theta: bool
) -> xr.DataTree:
    """With data, draws of the prior, likelihoods and predictions, and theta or not; in the
    coordinates of the features as given."""
    import xarray as xr

    seed = settings["random_seed"]
    rng = np.random.default_rng(np.random.SeedSequence([seed, 1]))
    stats, rows, centring = given
    posterior = tree["posterior"].to_dataset()
    groups = {
        "posterior": outside(problem, posterior, centring),
        "prior": prior_group(problem, rng, centring),
        "log_prior": log_prior(problem, posterior),
        "constant_data": constant_data(problem._replace(stats=stats), rows, centring),
        "observed_data": observed_data(stats, rows),
    }
    for name, group in groups.items():
        tree[name] = xr.DataTree(group)
    if theta and "theta" not in tree["posterior"]:
        tree = add_theta(tree, seed)
    size = posterior.sizes["chain"] * posterior.sizes["draw"]
    if rows is None:
        if stats.energy is not None and stats.count is not None and size * len(stats) <= ROW_DRAWS:
            tree = add_log_likelihood(tree)
    elif size * len(rows.reward) <= ROW_DRAWS:
        tree = add_predictive(add_log_likelihood(tree), random_seed=seed)
        tree = add_predictive(tree, "prior", random_seed=seed)
    if not theta and "theta" in tree["posterior"]:
        tree["posterior"] = tree["posterior"].to_dataset().drop_vars(["theta", "task"])
    return tree


def _means_taken_off(stats: TaskStatistics, centring: Centring | None) -> str:
    """JSON of the means by feature, or "no"."""
    if centring is None:
        return "no"
    names = map(str, stats.feature_labels)
    taken = {name: mean for name, mean in zip(names, centring.means.tolist(), strict=True) if mean}
    return json.dumps(taken)


def _attributes(problem: Problem, nuts_sampler: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a fit, as attributes that a file can hold."""
    return {
        "model": problem.kind,
        "nuts_sampler": nuts_sampler,
        "settings": json.dumps(settings),
        "noise_sd": "estimated" if problem.noise_sd is None else problem.noise_sd,
        "prior": json.dumps(describe_prior(problem.prior)),
        "versions": json.dumps(versions()),
    }


def check_settings(
    draws: int,
    tune: int | None,
    chains: int,
    random_seed: int,
    target_accept: float,
    cores: int | None = None,
    nuts_sampler: str = "nutpie",
) -> dict[str, Any]:
    """The sampler's arguments, checked; as many cores as chains, where there are."""
    one_of("nuts_sampler", nuts_sampler, SAMPLERS)
    settings: dict[str, Any] = {
        "draws": whole("draws", draws, least=1),
        "tune": None if tune is None else whole("tune", tune),
        "chains": whole("chains", chains, least=1),
        "random_seed": whole("random_seed", random_seed),
        "target_accept": real("target_accept", target_accept),
    }
    if nuts_sampler == "nutpie" and tune == 0:
        raise InputError(Advice("{tune} must be at least 1 with nutpie, got 0"))
    if random_seed >= 2**64:
        raise InputError(
            Advice("{random_seed} must be less than 2**64, got {given}", given=str(random_seed))
        )
    if not 0 < settings["target_accept"] < 1:
        raise InputError(
            Advice("{target_accept} must be between 0 and 1, got {given}", given=str(target_accept))
        )
    settings["cores"] = (
        min(settings["chains"], usable_cores()) if cores is None else whole("cores", cores, least=1)
    )
    return settings


def _warn_of(trust: Trust) -> None:
    """A ``FitWarning`` where a check failed."""
    if not trust:
        failed = "; ".join(f"{c.name} {c.value:.5g} (wanted {c.wanted})" for c in trust.failed)
        warn(
            f"these draws should not be trusted: {failed}; print(bm.trustworthy(tree)) says what "
            "to do",
            FitWarning,
        )
