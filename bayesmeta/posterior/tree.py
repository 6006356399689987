"""The groups of a fitted tree, as ArviZ expects them: making them, and reading them again."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Array, InputError
from bayesmeta.kernels.collapsed import Tasks
from bayesmeta.posterior.centring import Centring, centring_from
from bayesmeta.posterior.diagnostics import group_of
from bayesmeta.posterior.model import Problem, coords_of, spread_dims
from bayesmeta.posterior.priors import LKJ, InverseWishart, Prior
from bayesmeta.posterior.varying import draw_prior
from bayesmeta.statistics import TaskStatistics
from bayesmeta.tables.design import Rows

if TYPE_CHECKING:
    import xarray as xr

PRIOR_DRAWS = 1000
"""Draws in the group ``prior``."""


def variables(
    problem: Problem, mean: Array, cov: Array, noise_sd: Array | None, centring: Centring | None
) -> dict[str, Array]:
    """mu (s, d), Sigma, sd and corr of what varies, and sigma, in the coordinates of the features
    as given, from draws (s, d) and (s, r, r) about their means."""
    if centring is not None:
        mean = centring.mean_outside(mean)
        own = _among(centring, problem.stats.differs)
        cov = cov if own is None else own.cov_outside(cov)
    sd = np.sqrt(np.diagonal(cov, axis1=1, axis2=2))
    rows, columns = np.tril_indices(cov.shape[-1], -1)
    found = {"mu": mean, "Sigma": cov, "sd": sd}
    if len(rows):
        found["corr"] = cov[:, rows, columns] / (sd[:, rows] * sd[:, columns])
    return found | ({} if noise_sd is None else {"sigma": noise_sd})


def _among(centring: Centring, differs: NDArray[np.bool_]) -> Centring | None:
    """The same among the features that differ; None where the intercept does not."""
    if not differs[centring.intercept]:
        return None
    place = int(differs[: centring.intercept].sum())
    return Centring(place, centring.means[differs])


def outside(problem: Problem, draws: xr.Dataset, centring: Centring | None) -> xr.Dataset:
    """Draws in the coordinates of the features as given, from those about their means."""
    if centring is None:
        return draws
    mean, cov, noise = inner_draws(draws, problem.stats.differs, None)
    values = variables(problem, mean, cov, noise, centring)
    if "theta" in draws:
        theta = draws["theta"].transpose("chain", "draw", "task", "feature").values
        values["theta"] = centring.mean_outside(theta.reshape(-1, *theta.shape[2:]))
    return labelled(problem, values, draws.sizes["chain"], draws.sizes["draw"])


def labelled(problem: Problem, values: dict[str, Array], chains: int, draws: int) -> xr.Dataset:
    """Draws of variables, each (chains x draws, …), with their labels."""
    import xarray as xr

    spread = spread_dims(problem.stats)
    axes = {
        "mu": ("feature",),
        "Sigma": spread,
        "sd": spread[:1],
        "corr": ("pair",),
        "sigma": (),
        "theta": ("task", "feature"),
    }
    data: dict[str, Any] = {
        name: (("chain", "draw", *axes[name]), value.reshape(chains, draws, *value.shape[1:]))
        for name, value in values.items()
        if value.size
    }
    used = {dim for dims, _ in data.values() for dim in dims}
    known = coords_of(problem) | {"task": problem.stats.task_labels}
    labels = {dim: names for dim, names in known.items() if dim in used}
    return xr.Dataset(data, {"chain": np.arange(chains), "draw": np.arange(draws)} | labels)


def constant_data(problem: Problem, rows: Rows | None, centring: Centring | None) -> xr.Dataset:
    """The sums of every task; where rows are known, their features, task and weights."""
    import xarray as xr

    stats = problem.stats
    data: dict[str, Any] = {
        "gram": (("task", "feature", "feature_bis"), stats.gram),
        "moment": (("task", "feature"), stats.moment),
    }
    for name in ("count", "energy", "log_weights"):
        if getattr(stats, name) is not None:
            data[name] = ("task", getattr(stats, name))
    names = stats.feature_labels
    coords: dict[str, Any] = {"task": stats.task_labels, "feature": names, "feature_bis": names}
    if rows is not None:
        data["features"] = (("row", "feature"), rows.features)
        data["task_index"] = ("row", rows.task)
        if rows.weights is not None:
            data["weights"] = ("row", rows.weights)
        coords["row"] = np.arange(len(rows.reward))
    attrs: dict[str, Any] = {"centred": "no" if centring is None else centring.attribute()}
    if problem.noise_sd is not None:
        attrs["noise_sd"] = float(problem.noise_sd)
    return xr.Dataset(data, coords, attrs)


def observed_data(stats: TaskStatistics, rows: Rows | None) -> xr.Dataset:
    """What was observed: rewards, where rows are known, otherwise the tasks' moments."""
    import xarray as xr

    if rows is not None:
        where = {"row": np.arange(len(rows.reward))}
        return xr.Dataset({"rewards": ("row", rows.reward)}, where)
    labels = {"task": stats.task_labels, "feature": stats.feature_labels}
    return xr.Dataset({"moment": (("task", "feature"), stats.moment)}, labels)


def check_rows_of(stats: TaskStatistics, rows: Rows | None) -> None:
    """Refuse rows that are not those of the statistics."""
    if rows is None:
        return
    n = len(rows.reward)
    same = rows.task.shape == (n,) and rows.features.shape == (n, stats.dim)
    if same:
        index = np.asarray(rows.task)
        same = bool(((index >= 0) & (index < len(stats))).all())
    if same:
        root = np.ones(n) if rows.weights is None else rows.weights
        parts = root[:, None] * rows.features * rows.reward[:, None]
        sizes = np.sqrt(np.diagonal(stats.gram, axis1=1, axis2=2))
        for i in range(stats.dim):
            total = np.bincount(index, parts[:, i], minlength=len(stats))
            size = np.bincount(index, np.abs(parts[:, i]), minlength=len(stats)) + sizes[:, i]
            same = same and bool((np.abs(total - stats.moment[:, i]) <= 1e-8 * size).all())
    if not same:
        raise InputError("rows must be those that stats were made of, in their tasks' order")


def prior_group(
    problem: Problem, rng: np.random.Generator, centring: Centring | None
) -> xr.Dataset:
    """Draws of (mu, Sigma, sigma) before the data."""
    means, roots, noise = draw_prior(problem.prior, problem.stats.differs, rng, PRIOR_DRAWS)
    cov = roots @ roots.transpose(0, 2, 1)
    sigma = noise if problem.noise_sd is None else None
    return labelled(problem, variables(problem, means, cov, sigma, centring), 1, PRIOR_DRAWS)


def log_prior(problem: Problem, draws: xr.Dataset) -> xr.Dataset:
    """The prior's log-densities at the draws, up to constants, for ArviZ's ``psense``.

    Of mu, of standard deviations, of correlations and of sigma, of the centred features where they
    are centred; with ``InverseWishart`` of mu given Sigma, and of Sigma.
    """
    mean, cov, sigma = inner_draws(draws, problem.stats.differs, None)
    prior = problem.prior
    values = _log_priors(prior, mean, cov, problem.stats.differs)
    if sigma is not None:
        values["sigma"] = -0.5 * np.square(sigma / prior.noise_scale)
    sizes = draws.sizes["chain"], draws.sizes["draw"]
    made = draws[["chain", "draw"]]
    for name, value in values.items():
        made[name] = (("chain", "draw"), value.reshape(sizes))
    return made


def _log_priors(
    prior: Prior, mean: Array, cov: Array, differs: NDArray[np.bool_]
) -> dict[str, Array]:
    gap = mean - np.asarray(prior.mean)
    if isinstance(prior, InverseWishart):
        inverse, logs = np.linalg.inv(cov), np.linalg.slogdet(cov)[1]
        d = gap.shape[-1]
        quad = np.einsum("si,sij,sj->s", gap, inverse, gap)
        within = (np.asarray(prior.scale) * inverse).sum(axis=(-2, -1))
        return {
            "mu": -0.5 * (prior.weight * quad + logs),
            "Sigma": -0.5 * ((prior.degrees + d + 1) * logs + within),
        }
    found = {"mu": -0.5 * np.square(gap / np.asarray(prior.mean_sd)).sum(axis=-1)}
    if isinstance(prior, LKJ):
        squares = np.diagonal(cov, axis1=1, axis2=2)
        scale = np.asarray(prior.scale)[differs]
        found["sd"] = -0.5 * (squares / scale**2).sum(axis=-1)
        if cov.shape[-1] > 1:
            logs = np.linalg.slogdet(cov)[1] - np.log(squares).sum(axis=-1)
            found["corr"] = (prior.eta - 1) * logs
    return found


class Read(NamedTuple):
    """Draws and data of a tree, in the coordinates of the centred features where they are."""

    means: Array
    """(s, d)"""
    roots: Array
    """(s, d, d), lower up to the signs of its columns"""
    noise_sds: Array
    """(s,)"""
    shape: tuple[int, int]
    tasks: Tasks
    centring: Centring | None

    def outside(self, theta: Array) -> Array:
        """Coefficients of the features as given."""
        return theta if self.centring is None else self.centring.mean_outside(theta)


def task_sums(tree: xr.DataTree) -> xr.Dataset:
    """The group with the sums of tasks; older trees have them among what is observed."""
    group_of(tree, "observed_data")
    name = "constant_data" if "constant_data" in tree.children else "observed_data"
    return group_of(tree, name, "gram", "moment")


def inner_draws(
    posterior: xr.Dataset, differs: NDArray[np.bool_], centring: Centring | None
) -> tuple[Array, Array, Array | None]:
    """mu (s, d), Sigma (s, r, r) and sigma (s,) of draws, about the features' means."""
    spread = tuple(dim for dim in posterior["Sigma"].dims if dim not in ("chain", "draw"))
    mean = posterior["mu"].transpose("chain", "draw", "feature").values
    cov = posterior["Sigma"].transpose("chain", "draw", *spread).values
    mean, cov = mean.reshape(-1, mean.shape[-1]), cov.reshape(-1, *cov.shape[2:])
    if centring is not None:
        mean = centring.mean_inside(mean)
        own = _among(centring, differs)
        cov = cov if own is None else own.cov_inside(cov)
    noise = posterior["sigma"].values.reshape(-1) if "sigma" in posterior else None
    return mean, cov, noise


def differs_in(posterior: xr.Dataset) -> NDArray[np.bool_]:
    """Which features have a variance, (d,)."""
    names = posterior["feature"].values
    own = posterior["varying"].values if "varying" in posterior.coords else names
    return np.isin(names, own)


def read(tree: xr.DataTree, group: str = "posterior", stats: TaskStatistics | None = None) -> Read:
    """The draws of a group with the data of its tasks, or of others."""
    draws, data = group_of(tree, group, "mu", "Sigma"), task_sums(tree)
    differs, centring = differs_in(draws), centring_from(data.attrs.get("centred"))
    mean, cov, noise = inner_draws(draws, differs, centring)
    shape = draws.sizes["chain"], draws.sizes["draw"]
    values, vectors = np.linalg.eigh(cov)
    square = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    upper = np.linalg.qr(square.transpose(0, 2, 1))[1]
    roots = np.zeros((len(mean), mean.shape[1], mean.shape[1]))
    roots[:, *np.ix_(differs, differs)] = upper.transpose(0, 2, 1)
    if noise is None:
        known = data.attrs.get("noise_sd")
        if known is None:
            raise InputError(f"the tree has no noise_sd, and {group} no sigma; draw the tree anew")
        noise = np.full(math.prod(shape), float(known))
    tasks = _tasks(_fitted(data) if stats is None else stats, centring)
    return Read(mean, roots, noise, shape, tasks, centring)


def _fitted(data: xr.Dataset) -> TaskStatistics:
    """The tasks a tree was fitted to."""
    gram, moment, count, energy = (
        data[name].values if name in data else None
        for name in ("gram", "moment", "count", "energy")
    )
    assert gram is not None and moment is not None
    return TaskStatistics.trusted(gram, moment, count, energy)


def _tasks(stats: TaskStatistics, centring: Centring | None) -> Tasks:
    """Gram, moment, energy and count of tasks; 0 where the latter are not known."""
    none = np.zeros(len(stats))
    energy, count = (none if one is None else one for one in (stats.energy, stats.count))
    if centring is not None:
        stats = centring.inside(stats)
    return Tasks(*map(np.ascontiguousarray, (stats.gram, stats.moment, energy, count)))


def correlations(draws: xr.Dataset) -> list[tuple[dict[str, int], str]]:
    """Where ``corr`` has each correlation, and its label; older trees have a matrix of them."""
    if "corr" not in draws:
        return []
    if "pair" in draws["corr"].dims:
        return [({"pair": k}, str(name)) for k, name in enumerate(draws["pair"].values)]
    names = [str(name) for name in draws["feature"].values]
    return [
        ({"feature": i, "feature_bis": j}, f"{names[i]}, {names[j]}")
        for i in range(len(names))
        for j in range(i)
    ]
