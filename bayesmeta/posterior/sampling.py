"""Draw from the posterior of (mu, Sigma), and of the noise where it is not known.

``sample_posterior`` checks its arguments, draws with nutpie or PyMC, and adds data, prior and
diagnostics to the tree."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesmeta.checks import (
    Advice,
    Array,
    InputError,
    of_type,
    one_of,
    real,
    renamed,
    warn,
    whole,
)
from bayesmeta.posterior.centring import Centring, centring_of
from bayesmeta.posterior.diagnostics import Trust, as_attribute, check_draws
from bayesmeta.posterior.model import Problem, check_problem, coords_of, model_of, require
from bayesmeta.posterior.nuts import complete, draw_points, no_advice, one_line
from bayesmeta.posterior.predictive import add_log_likelihood, add_predictive, add_theta
from bayesmeta.posterior.priors import LKJ, Prior, describe_prior
from bayesmeta.posterior.target import VARIABLES, Target, has_frame
from bayesmeta.posterior.tree import (
    check_rows_of,
    constant_data,
    labelled,
    log_prior,
    observed_data,
    outside,
    prior_group,
)
from bayesmeta.posterior.whitening import find_frame
from bayesmeta.runner.executors import usable_cores
from bayesmeta.runner.plain import without_nan
from bayesmeta.runner.progress import progress_bar, waiting
from bayesmeta.runner.provenance import versions
from bayesmeta.runner.signals import never_lost
from bayesmeta.statistics import TaskStatistics

if TYPE_CHECKING:
    import xarray as xr

    from bayesmeta.posterior.laplace import Weights
    from bayesmeta.tables.design import Rows

METHODS = ("auto", "nuts", "laplace")
LEAST = 1000
"""Draws of all chains from which on "auto" tries "laplace"; of fewer the tail says little."""
SAMPLERS = ("nutpie", "pymc")
ACCEPT = 0.8
"""``target_accept`` where none is asked for."""
ROW_DRAWS = 4_000_000
"""Numbers in a group of likelihoods or predictions up to which it is made at once (32 MB)."""
TUNE, TUNE_WHITENED = 500, 100
"""Tuning draws of a chain, and those of one that moves in coordinates of ``find_frame``."""


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
        Features are taken about their means where one of them is an intercept (always 1, and named
        intercept, Intercept or (Intercept); a ``str`` is another name of it), so that the origin of
        a feature does not matter to the prior; results are of the features as they are. False
        switches it off.
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
        draws were made, with the numbers of ``laplace`` where it was tried, what was taken off
        features (``centred``, JSON or "no"), and the result of the checks: ``trusted``, and
        ``diagnostics``, which ``trustworthy`` reads. ``Sigma`` is a whole matrix, so that
        ``az.summary(tree)`` lists covariances twice; ``var_names=["mu", "sd", "corr", "sigma"]``
        has each quantity once.

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
    # an inverse-Wishart is one in all coordinates, and a known covariance is that of the features
    centring = centring_of(stats, centre) if isinstance(prior, LKJ | None) else None
    inside = stats if centring is None else centring.inside(stats)
    problem = check_problem(inside, noise_sd, prior, model)
    check_rows_of(stats, rows)
    one_of("method", method, METHODS)
    require("pymc", nuts_sampler)
    start = time.perf_counter()
    tree = weights = None
    if method == "laplace" or (
        method == "auto" and _suits_laplace(problem, nuts_sampler, settings)
    ):
        tree, weights = _by_laplace(problem, settings, keep=method == "laplace")
    used = "nuts" if tree is None else "laplace"
    if tree is None:
        tree = _drawn(problem, nuts_sampler, settings, progressbar)
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


def _suits_laplace(problem: Problem, nuts_sampler: str, settings: dict[str, Any]) -> bool:
    """Whether nothing was asked for that is NUTS's alone, and there are draws enough to weigh."""
    enough = settings["chains"] > 1 and settings["chains"] * settings["draws"] >= LEAST
    tuned = settings["tune"] is not None or settings["target_accept"] != ACCEPT
    return problem.kind == "fused" and nuts_sampler == "nutpie" and not tuned and enough


def _by_laplace(
    problem: Problem, settings: dict[str, Any], keep: bool
) -> tuple[xr.DataTree | None, dict[str, float]]:
    """Draws as a tree, if they are good or to be kept all the same, and what the weights were."""
    from bayesmeta.posterior.laplace import draw_laplace

    chains, draws = settings["chains"], settings["draws"]
    seed, cores = settings["random_seed"], settings["cores"]
    found = draw_laplace(problem, chains * draws, seed, cores, pilot=not keep)
    if found is None:
        if keep:
            raise InputError(
                Advice("no mode was found to draw about; set {method} to nuts or auto")
            )
        return None, {}
    weights = without_nan(found.weights._asdict())
    if not (found.weights.good or keep):
        return None, weights
    return _as_tree(problem, found.draws, chains, draws, _weight_stats(found.weights)), weights


def _weight_stats(weights: Weights) -> xr.Dataset:
    """What ``sample_stats`` hold of draws that have weights instead of trajectories."""
    import xarray as xr

    return xr.Dataset(weights._asdict())


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


def _drawn(
    problem: Problem, nuts_sampler: str, settings: dict[str, Any], progressbar: bool
) -> xr.DataTree:
    """Draw; where no chain can start, say what may be the reason."""
    run = _with_nutpie if nuts_sampler == "nutpie" else _with_pymc
    try:
        return run(problem, settings, progressbar)
    except RuntimeError as error:  # nutpie's, from deep inside
        if "initial" not in str(error).lower():
            raise
        raise InputError(
            Advice(
                "no chain could start ({reason}); give a prior in the units of the data ({prior}), "
                "or look for features that nearly make up others",
                reason=one_line(error),
            )
        ) from error


def _warn_of(trust: Trust) -> None:
    """A ``FitWarning`` where a check failed."""
    if not trust:
        failed = "; ".join(f"{c.name} {c.value:.5g} (wanted {c.wanted})" for c in trust.failed)
        warn(
            f"these draws should not be trusted: {failed}; print(bm.trustworthy(tree)) says what "
            "to do",
            FitWarning,
        )


def _with_nutpie(problem: Problem, settings: dict[str, Any], progressbar: bool) -> xr.DataTree:
    """Draw with nutpie; the bar counts the draws of all chains."""
    with waiting("compiling the model, once for its kind") if progressbar else nullcontext():
        target = Target(problem)
        frame = find_frame(target) if has_frame(problem) else None
    if settings["tune"] is None:
        settings["tune"] = TUNE if frame is None else TUNE_WHITENED
    total = settings["chains"] * (settings["draws"] + settings["tune"])
    rest = {name: value for name, value in settings.items() if name != "random_seed"}
    with _bar(progressbar, total) as show:
        found = draw_points(target, frame, show, seed=settings["random_seed"], **rest)
        show(total)
    chains, draws, size = found.points.shape
    values = target.constrained(found.points.reshape(-1, size))
    return _as_tree(problem, values, chains, draws, found.stats)


def _as_tree(
    problem: Problem, values: dict[str, Array], chains: int, draws: int, stats: xr.Dataset
) -> xr.DataTree:
    """Draws of the model's variables with their labels, and the sampler's statistics."""
    import xarray as xr

    groups = {"posterior": labelled(problem, values, chains, draws), "sample_stats": stats}
    return xr.DataTree.from_dict(groups)


def _bar(progressbar: bool, total: int) -> AbstractContextManager[Callable[[float], None]]:
    if not progressbar:
        return nullcontext(lambda now: None)
    return progress_bar("drawing", "draws", total, 0)


def _with_pymc(problem: Problem, settings: dict[str, Any], progressbar: bool) -> xr.DataTree:
    """Draw with PyMC's own NUTS, which compiles the model on every call."""
    import pymc as pm
    import xarray as xr

    if settings["tune"] is None:
        settings["tune"] = TUNE
    try:
        with model_of(problem), no_advice(), never_lost():
            tree = pm.sample(
                nuts_sampler="pymc",
                progressbar=progressbar,
                compute_convergence_checks=False,
                **settings,
            )
    except ValueError as error:
        if "Not enough samples to build a trace" not in str(error):
            raise
        raise KeyboardInterrupt from error  # while tuning
    if not complete(tree, "mu", settings["chains"], settings["draws"]):
        raise KeyboardInterrupt
    posterior = tree["posterior"].to_dataset()
    kept = posterior[[name for name in VARIABLES if name in posterior and posterior[name].size]]
    labels = {dim: names for dim, names in coords_of(problem).items() if dim in kept.dims}
    return xr.DataTree.from_dict(
        {
            "posterior": kept.assign_coords(labels),
            "sample_stats": tree["sample_stats"].to_dataset(),
        }
    )
