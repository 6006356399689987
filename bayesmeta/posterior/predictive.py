"""From draws of the prior to tasks: their thetas, their likelihoods, predicted data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.checks import Array, InputError, one_of, renamed, whole
from bayesmeta.kernels.collapsed import Priors, Tasks, tasks_given_priors
from bayesmeta.posterior.diagnostics import group_of
from bayesmeta.posterior.model import Problem

if TYPE_CHECKING:
    import xarray as xr

PRIOR_DRAWS = 1000
"""Draws in the group ``prior``."""
_BLOCK = 2**22
"""Normals that ``add_theta`` draws at a time."""


def _values(tree: xr.DataTree, group: str = "posterior") -> tuple[Array, Array, Array, Any]:
    """Draws of means (s, d), lower roots (s, d, d), noise (s,), and the shape (chains, draws)."""
    posterior = group_of(tree, group, "mu", "Sigma")
    shape = posterior.sizes["chain"], posterior.sizes["draw"]
    mu = posterior["mu"].transpose("chain", "draw", "feature").values
    cov = posterior["Sigma"].transpose("chain", "draw", "feature", "feature_bis").values
    d = mu.shape[-1]
    values, vectors = np.linalg.eigh(cov.reshape(-1, d, d))
    square = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    upper = np.linalg.qr(square.transpose(0, 2, 1))[1]
    roots = upper.transpose(0, 2, 1)  # lower, up to the signs of its columns
    if "sigma" in posterior:
        noise = posterior["sigma"].values.reshape(-1)
    else:
        known = group_of(tree, "observed_data").attrs.get("noise_sd")
        if known is None:
            raise InputError(f"the tree has no noise_sd, and {group} no sigma; draw the tree anew")
        noise = np.full(shape[0] * shape[1], float(known))
    return mu.reshape(-1, d), np.ascontiguousarray(roots), noise, shape


def _given(tree: xr.DataTree) -> Tasks:
    """Gram, moment, energy and count of the tasks a tree was fitted to."""
    data = group_of(tree, "observed_data", "gram", "moment")
    n = data.sizes["task"]
    energy = data["energy"].values if "energy" in data else np.zeros(n)
    count = data["count"].values if "count" in data else np.zeros(n)
    gram = np.ascontiguousarray(data["gram"].values)
    return Tasks(gram, np.ascontiguousarray(data["moment"].values), energy, count)


def observed(tree: xr.DataTree, problem: Problem) -> xr.DataTree:
    """Keep the data with the draws."""
    import xarray as xr

    stats = problem.stats
    data: dict[str, Any] = {
        "gram": (("task", "feature", "feature_bis"), stats.gram),
        "moment": (("task", "feature"), stats.moment),
    }
    if stats.count is not None:
        data["count"] = ("task", stats.count)
    if stats.energy is not None:
        data["energy"] = ("task", stats.energy)
    names = stats.feature_labels
    coords = {"task": stats.task_labels, "feature": names, "feature_bis": names}
    attrs = {} if problem.noise_sd is None else {"noise_sd": float(problem.noise_sd)}
    tree["observed_data"] = xr.DataTree(xr.Dataset(data, coords=coords, attrs=attrs))
    return tree


def add_prior(tree: xr.DataTree, problem: Problem, rng: np.random.Generator) -> xr.DataTree:
    """Draws of (mu, Sigma, sigma) before the data."""
    import xarray as xr

    means, roots, noise = problem.prior.draw(rng, PRIOR_DRAWS)
    cov = roots @ roots.transpose(0, 2, 1)
    sd = np.sqrt(np.diagonal(cov, axis1=1, axis2=2))
    square = ("chain", "draw", "feature", "feature_bis")
    data: dict[str, Any] = {
        "mu": (square[:3], means[None]),
        "Sigma": (square, cov[None]),
        "sd": (square[:3], sd[None]),
        "corr": (square, (cov / (sd[:, :, None] * sd[:, None, :]))[None]),
    }
    if problem.noise_sd is None:
        data["sigma"] = (square[:2], noise[None])
    names = problem.stats.feature_labels
    coords = {"chain": [0], "draw": np.arange(PRIOR_DRAWS), "feature": names, "feature_bis": names}
    tree["prior"] = xr.DataTree(xr.Dataset(data, coords=coords))
    return tree


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

    rng = np.random.default_rng(np.random.SeedSequence([random_seed, 3]))
    mean, root, noise, shape = _values(tree)
    data = _given(tree)
    n, d = data[1].shape
    theta = np.empty((len(mean), n, d))
    step = max(1, _BLOCK // (n * d))
    for first in range(0, len(mean), step):
        here = slice(first, first + step)
        normals = rng.standard_normal(theta[here].shape)
        priors = Priors(mean[here], root[here], noise[here])
        tasks_given_priors(data, priors, normals, theta[here], np.empty((0, n)))
    posterior = tree["posterior"].to_dataset()
    posterior["theta"] = (("chain", "draw", "task", "feature"), theta.reshape(*shape, n, d))
    posterior = posterior.assign_coords(task=tree["observed_data"]["task"])
    tree["posterior"] = xr.DataTree(posterior)
    return tree


def task_means(tree: xr.DataTree, draws: int = 200) -> tuple[Array, Array]:
    """Mean and standard deviation of every theta_j given the data, both (n, d).

    By iterated expectation over ``draws`` priors, evenly spaced among those drawn, so that the
    uncertainty about the prior is included.
    """
    from bayesmeta.gaussian import GaussianPrior

    mean, root, noise, _ = _values(tree)
    gram, moment, _, _ = _given(tree)
    kept = np.unique(np.linspace(0, len(mean) - 1, draws).round().astype(int))
    middle = mean[kept].mean(axis=0)  # everything relative to it: a large level costs no digits
    moved = moment - gram @ middle
    centres, spread = np.zeros((len(kept), *moment.shape)), np.zeros_like(moment)
    for i, k in enumerate(kept):
        prior = GaussianPrior(mean[k] - middle, root[k] @ root[k].T)
        centres[i], cov = prior.trusted_posterior(gram, moved, float(noise[k]))
        spread += np.diagonal(cov, axis1=1, axis2=2) / len(kept)
    return middle + centres.mean(axis=0), np.sqrt(spread + centres.var(axis=0))


def add_log_likelihood(tree: xr.DataTree) -> xr.DataTree:
    """The log-likelihood of every task, theta_j integrated out, for ArviZ's ``loo``.

    What ``loo`` leaves out is then a task, not a reward, and what it predicts a new task.

    Parameters
    ----------
    tree
        As ``sample_posterior`` returns it, from statistics with ``count`` and ``energy``; changed
        in place.

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

    if "observed_data" not in tree.children:
        raise InputError(
            "the tree has no observed_data, which sample_posterior keeps; draw with it (pm.sample "
            "keeps no data of a likelihood that is a potential)"
        )
    if not {"count", "energy"} <= set(tree["observed_data"].to_dataset().data_vars):
        raise InputError(
            "the likelihood of a task needs its count and energy (steps and sum of squared "
            "rewards); make the TaskStatistics with them"
        )
    mean, root, noise, shape = _values(tree)
    data = _given(tree)
    n, d = data[1].shape
    values = np.empty((len(mean), n))
    none = np.empty((0, n, d))
    tasks_given_priors(data, Priors(mean, root, noise), none, none, values)
    made = xr.Dataset(
        {"rewards": (("chain", "draw", "task"), values.reshape(*shape, n))},
        coords={
            "chain": tree["posterior"]["chain"],
            "draw": tree["posterior"]["draw"],
            "task": tree["observed_data"]["task"],
        },
    )
    tree["log_likelihood"] = xr.DataTree(made)
    return tree


@renamed(seed="random_seed")
def add_predictive(
    tree: xr.DataTree, group: str = "posterior", draws: int = 200, random_seed: int = 0
) -> xr.DataTree:
    """Moments A'x that new tasks with the same grams would have, for predictive checks.

    New thetas are drawn: this checks the prior, not how well each task was fitted. The grams are
    taken as given, which suits a design that was fixed beforehand; where actions were chosen
    because of rewards, new tasks would have other grams, and the comparison misleads.

    Parameters
    ----------
    tree
        As ``sample_posterior`` returns it; changed in place.
    group
        "posterior" or "prior": where mu, Sigma and sigma are drawn from.
    draws
        How many predictions of all tasks.
    random_seed
        A whole number.

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
    whole("draws", draws, least=1)
    mean, root, noise, _ = _values(tree, group)
    rng = np.random.default_rng(np.random.SeedSequence([random_seed, 2]))
    kept = rng.choice(len(mean), size=min(draws, len(mean)), replace=False)
    gram, moment, _, _ = _given(tree)
    n, d = moment.shape
    values, vectors = np.linalg.eigh(gram)
    half = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    out = np.empty((len(kept), n, d))
    for i, k in enumerate(kept):
        theta = mean[k] + rng.standard_normal((n, d)) @ root[k].T
        out[i] = np.einsum("nij,nj->ni", gram, theta)
        out[i] += noise[k] * np.einsum("nij,nj->ni", half, rng.standard_normal((n, d)))
    made = xr.Dataset(
        {"moment": (("chain", "draw", "task", "feature"), out[None])},
        coords={
            "chain": [0],
            "draw": np.arange(len(kept)),
            "task": tree["observed_data"]["task"],
            "feature": tree["posterior"]["feature"],
        },
    )
    tree[f"{group}_predictive"] = xr.DataTree(made)
    return tree
