"""From draws of the prior to tasks: their thetas, their likelihoods, predicted data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Array, InputError, one_of, renamed, whole
from bayesmeta.kernels.collapsed import Priors, thetas_given_priors
from bayesmeta.posterior.mixture import BLOCK
from bayesmeta.posterior.reweighted import log_likelihoods
from bayesmeta.posterior.tree import Read, read, task_sums

if TYPE_CHECKING:
    import xarray as xr

MOMENTS = 200
"""Predictions of all moments, unless another number is asked for."""


@renamed(seed="random_seed")
def add_theta(tree: xr.DataTree, random_seed: int = 0) -> xr.DataTree:
    """Draw every theta_j from its conditional given each (mu, Sigma, sigma).

    The draws are exact, not shrunken to a point estimate. There is one for every draw, task and
    feature (10,000 tasks of 5 features and 4,000 draws are 1.6 GB): thin the draws of many tasks.

    Parameters
    ----------
    tree
        As ``sample_posterior`` returns it; changed in place.
    random_seed
        A whole number.

    Returns
    -------
    xarray.DataTree
        The same tree, with ``theta`` in its posterior.

    Examples
    --------
    >>> from bayesmeta.posterior.example import example_tree
    >>> tree = example_tree()
    >>> bm.add_theta(tree)["posterior"]["theta"].dims
    ('chain', 'draw', 'task', 'feature')
    """
    import xarray as xr

    found = read(tree)
    theta = thetas_of(found, random_seed)
    shape = *found.shape, *theta.shape[1:]
    posterior = tree["posterior"].to_dataset()
    posterior["theta"] = (("chain", "draw", "task", "feature"), theta.reshape(shape))
    posterior = posterior.assign_coords(task=task_sums(tree)["task"])
    tree["posterior"] = xr.DataTree(posterior)
    # likelihoods and predictions of rows are of the thetas that the tree has
    if "log_likelihood" in tree.children and "row" in tree["log_likelihood"].dims:
        tree = add_log_likelihood(tree, "row")
    if "posterior_predictive" in tree.children and "row" in tree["posterior_predictive"].dims:
        tree = add_predictive(tree, random_seed=random_seed)
    return tree


def thetas_of(found: Read, seed: int) -> Array:
    """A draw of every task's theta for every prior, (s, n, d)."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, 3]))
    n, d = found.tasks.moment.shape
    theta = np.empty((len(found.means), n, d))
    step = max(1, BLOCK // (n * d))
    for first in range(0, len(theta), step):
        here = slice(first, first + step)
        normals = rng.standard_normal(theta[here].shape)
        priors = Priors(found.means[here], found.roots[here], found.noise_sds[here])
        thetas_given_priors(found.tasks, priors, normals, theta[here])
    return found.outside(theta)


def _own_thetas(tree: xr.DataTree, found: Read) -> Array:
    """Those of the tree, or the same draws whenever they are made: what is computed from them, the
    likelihoods and the predictions of rows, has to be of the same ones."""
    if "theta" in tree["posterior"]:
        kept = tree["posterior"]["theta"].transpose("chain", "draw", "task", "feature").values
        return kept.reshape(-1, *kept.shape[2:])
    return thetas_of(found, 0)


def add_log_likelihood(tree: xr.DataTree, by: str | None = None) -> xr.DataTree:
    """The log-likelihood of every row or of every task, for ArviZ's ``loo`` and ``psense``.

    Of a row: of its reward given the theta of its task (the one of ``add_theta``). What ``loo``
    leaves out is then a reward of a known task. Of a task: of all its rewards, its theta integrated
    out. What is left out is a task, and what is predicted a new one.

    ``az.loo`` warns where one row or task moves the posterior too far for its weights (k above
    0.7), as 3 of 180 rows of the sleep study do, and 1 of its 18 tasks. The warning is right: the
    estimate is then unreliable, and most often too good. ``az.loo(tree, pointwise=True).pareto_k``
    names them; fit again without each, and take the likelihood of what was left out.

    Parameters
    ----------
    tree
        As ``sample_posterior`` returns it, from statistics with ``count`` and ``energy``; changed
        in place.
    by
        "row" or "task"; None: by row where the tree has rows.

    Returns
    -------
    xarray.DataTree
        The same tree, with the group ``log_likelihood``.

    Examples
    --------
    >>> from bayesmeta.posterior.example import example_tree
    >>> tree = example_tree()
    >>> bm.add_log_likelihood(tree)["log_likelihood"]["rewards"].dims
    ('chain', 'draw', 'task')
    """
    import xarray as xr

    if by is not None:
        one_of("by", by, ("row", "task"))
    if "observed_data" not in tree.children:
        raise InputError(
            "the tree has no observed_data, which sample_posterior keeps; draw with it (pm.sample "
            "keeps no data of a likelihood that is a potential)"
        )
    known = "features" in task_sums(tree)
    if by == "row" and not known:
        raise InputError("the tree has no rows; give them to sample_posterior (rows)")
    found = read(tree)
    rows = by == "row" or (by is None and known)
    values = _of_rows(tree, found) if rows else _of_tasks(tree, found)
    dim = "row" if rows else "task"
    coords = {name: tree["posterior"][name] for name in ("chain", "draw")}
    coords[dim] = task_sums(tree)[dim]
    data = {"rewards": (("chain", "draw", dim), values.reshape(*found.shape, -1))}
    tree["log_likelihood"] = xr.DataTree(xr.Dataset(data, coords))
    return tree


def _of_tasks(tree: xr.DataTree, found: Read) -> Array:
    """Log-likelihoods of tasks, (s, n)."""
    sums = task_sums(tree)
    if not {"count", "energy"} <= set(sums.data_vars):
        raise InputError(
            "the likelihood of a task needs its count and energy (steps and sum of squared "
            "rewards); make the TaskStatistics with them"
        )
    values = log_likelihoods(found)
    return values + sums["log_weights"].values / 2 if "log_weights" in sums else values


def _fitted(tree: xr.DataTree, thetas: Array, noise: Array) -> tuple[Array, Array]:
    """Means and standard deviations of the rewards of all rows, (s, rows), given thetas."""
    data = task_sums(tree)
    index, features = data["task_index"].values, data["features"].values
    mean = np.zeros((len(thetas), len(index)))
    for i in range(features.shape[1]):
        mean += thetas[:, index, i] * features[:, i]
    weights = data["weights"].values if "weights" in data else np.ones(len(index))
    return mean, noise[:, None] / np.sqrt(weights)


def _of_rows(tree: xr.DataTree, found: Read) -> Array:
    """Log-likelihoods of rows given the thetas of their tasks, (s, rows)."""
    mean, sd = _fitted(tree, _own_thetas(tree, found), found.noise_sds)
    rewards: Array = tree["observed_data"].to_dataset()["rewards"].values
    out: Array = -0.5 * np.square((rewards - mean) / sd) - np.log(sd) - 0.5 * np.log(2 * np.pi)
    return out


@renamed(seed="random_seed")
def add_predictive(
    tree: xr.DataTree,
    group: str = "posterior",
    draws: int | None = None,
    random_seed: int = 0,
    new_tasks: bool | None = None,
) -> xr.DataTree:
    """Rewards that the same rows could have had, for predictive checks.

    After the data, those of the tasks' own thetas, as ``arviz.plot_loo_pit`` needs them; before the
    data, and where ``new_tasks`` is true, those of new thetas: this checks the prior, not how well
    each task was fitted.

    Where the tree has no rows, moments A'x of new tasks with the same grams. The grams are taken as
    given, which suits a design that was fixed beforehand; where actions were chosen because of
    rewards, new tasks would have other grams, and the comparison misleads.

    Parameters
    ----------
    tree
        As ``sample_posterior`` returns it; changed in place.
    group
        "posterior" or "prior": where mu, Sigma and sigma are drawn from.
    draws
        How many predictions of all rows or tasks; None: one for each draw, and 200 of moments.
    random_seed
        A whole number.
    new_tasks
        Whether new thetas are drawn; None: only where there are none of the tasks' own.

    Returns
    -------
    xarray.DataTree
        The same tree, with the group ``posterior_predictive`` or ``prior_predictive``.

    Examples
    --------
    >>> from bayesmeta.posterior.example import example_tree
    >>> tree = example_tree()
    >>> dict(bm.add_predictive(tree, draws=5)["posterior_predictive"].sizes)
    {'chain': 1, 'draw': 5, 'task': 3, 'feature': 1}
    """
    import xarray as xr

    one_of("group", group, ("prior", "posterior"))
    if draws is not None:
        whole("draws", draws, least=1)
    found, data = read(tree, group), task_sums(tree)
    rows = "features" in data
    own = rows and group == "posterior" and not new_tasks
    if new_tasks is False and not own:
        raise InputError(
            "new_tasks=False needs rows, and the posterior: give rows to sample_posterior"
        )
    rng = np.random.default_rng(np.random.SeedSequence([random_seed, 2]))
    kept, coords = _chosen(tree, group, MOMENTS if draws is None and not rows else draws, rng)
    name, dims = ("rewards", ("row",)) if rows else ("moment", ("task", "feature"))
    if rows:
        thetas = _own_thetas(tree, found)[kept] if own else _new(found, kept, rng)
        mean, sd = _fitted(tree, thetas, found.noise_sds[kept])
        out = mean + sd * rng.standard_normal(mean.shape)
    else:
        out = _moments(data["gram"].values, _new(found, kept, rng), found.noise_sds[kept], rng)
    shape = *(len(coords[dim]) for dim in ("chain", "draw")), *out.shape[1:]
    coords |= {dim: data[dim] for dim in dims}
    made = xr.Dataset({name: (("chain", "draw", *dims), out.reshape(shape))}, coords)
    tree[f"{group}_predictive"] = xr.DataTree(made)
    return tree


def _chosen(
    tree: xr.DataTree, group: str, draws: int | None, rng: np.random.Generator
) -> tuple[NDArray[np.intp], dict[str, Any]]:
    """Which draws to predict from, all of them where no number is given, and their labels."""
    one = tree[group]
    total = one.sizes["chain"] * one.sizes["draw"]
    if draws is None:
        return np.arange(total), {name: one[name].values for name in ("chain", "draw")}
    kept = rng.choice(total, size=min(draws, total), replace=False)
    return kept, {"chain": [0], "draw": np.arange(len(kept))}


def _new(found: Read, kept: NDArray[np.intp], rng: np.random.Generator) -> Array:
    """Thetas of as many new tasks as there are, (kept, n, d)."""
    normals = rng.standard_normal((len(kept), *found.tasks.moment.shape))
    thetas = found.means[kept][:, None] + np.einsum("sij,snj->sni", found.roots[kept], normals)
    return found.outside(thetas)


def _moments(gram: Array, thetas: Array, noise: Array, rng: np.random.Generator) -> Array:
    """Moments of tasks with these grams and thetas, (s, n, d)."""
    values, vectors = np.linalg.eigh(gram)
    half = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    out: Array = np.einsum("nij,snj->sni", gram, thetas)
    out += noise[:, None, None] * np.einsum("nij,snj->sni", half, rng.standard_normal(out.shape))
    return out
