"""Coefficients that are the same in all tasks have a mean and no variance."""

from __future__ import annotations

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.posterior.model import check_problem, model_of
from bayesmeta.posterior.priors import InverseWishart, KnownCovariance
from tests.helpers import Problem as Data

VARYING = (True, False, True)


def tasks(n: int = 12) -> bm.TaskStatistics:
    """Three features, of which the second has one coefficient for all tasks."""
    rng = np.random.default_rng(5)
    labels, rows = np.arange(n).repeat(8), rng.standard_normal((8 * n, 3))
    theta = rng.normal([1.0, -2.0, 0.5], [0.7, 0.0, 0.4], (n, 3))
    rewards = (rows * theta[labels]).sum(axis=1) + 0.5 * rng.standard_normal(8 * n)
    return bm.TaskStatistics.from_arrays(labels, rewards, rows, ["a", "b", "c"], varying=VARYING)


PRIOR = bm.LKJ(0.0, 3.0, [1.0, 99.0, 2.0])


def test_the_density_is_that_of_an_embedded_covariance() -> None:
    """All ways to write the model agree at a point, up to a constant of each."""
    from pytensor.compile.mode import Mode

    plain, found = Mode(linker="py", optimizer="fast_compile"), []
    for kind in ("fused", "collapsed"):
        model = model_of(check_problem(tasks(), 0.5, PRIOR, kind))
        density = model.compile_logp(mode=plain)
        rng = np.random.default_rng(0)
        points = [
            {
                name: value + 0.3 * rng.standard_normal(value.shape)
                for name, value in model.initial_point().items()
            }
            for _ in range(3)
        ]
        found.append([float(density(point)) for point in points])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


def test_the_likelihood_is_that_of_the_rows() -> None:
    """log p(rewards | mu, Sigma) with zero rows in Sigma, by a dense Gaussian."""
    from scipy import stats as st

    from bayesmeta.posterior.taskdata import likelihood_value, task_data

    rng = np.random.default_rng(5)
    n = 4
    labels, rows = np.arange(n).repeat(8), rng.standard_normal((8 * n, 3))
    rewards = rng.standard_normal(8 * n)
    stats = bm.TaskStatistics.from_arrays(labels, rewards, rows, varying=VARYING)
    root = np.array([[0.7, 0, 0], [0, 0, 0], [-0.2, 0, 0.4]])
    mean = np.array([1.0, -2.0, 0.5])
    exact = 0.0
    for j in range(n):
        x, y = rows[labels == j], rewards[labels == j]
        cov = x @ root @ root.T @ x.T + 0.25 * np.eye(8)
        exact += st.multivariate_normal.logpdf(y, x @ mean, cov)
    found = likelihood_value(mean, root, 0.5, task_data(stats))
    assert found == pytest.approx(exact, rel=1e-9)


@pytest.mark.slow
def test_the_posterior_is_that_of_a_known_covariance() -> None:
    """With Sigma and the noise known, mu is Gaussian: mean and covariance in closed form.

    Three means, |z| < 4.5 each.
    """
    stats = tasks()
    cov = np.diag([0.49, 1.0, 0.16])
    used = cov * np.outer(VARYING, VARYING)
    with pytest.raises(bm.InputError, match="KnownCovariance has covariances"):
        bm.sample_posterior(stats, 0.5, prior=KnownCovariance(cov + 0.1, 0.0, 3.0))
    tree = bm.sample_posterior(stats, 0.5, prior=KnownCovariance(cov, 0.0, 3.0))
    precision, right = np.eye(3) / 9, np.zeros(3)
    for gram, moment in zip(stats.gram, stats.moment, strict=True):
        inner = np.linalg.inv(np.eye(3) + gram @ used / 0.25) / 0.25
        precision += inner @ gram
        right += inner @ moment
    exact, sd = np.linalg.solve(precision, right), np.sqrt(np.diag(np.linalg.inv(precision)))
    draws = tree["posterior"]["mu"].values.reshape(-1, 3)
    assert (np.abs(draws.mean(axis=0) - exact) < 4.5 * sd / np.sqrt(1000)).all()
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.1)


@pytest.mark.slow
def test_draws_agree_with_the_plain_model() -> None:
    """The fused kernel and PyTensor's own likelihood, by their Monte-Carlo errors; the tree has
    spreads of the varying features alone."""
    import arviz_stats as azs

    trees = [
        bm.sample_posterior(tasks(), prior=PRIOR, model=kind, method="nuts", random_seed=seed)
        for seed, kind in enumerate(("fused", "collapsed"))
    ]
    one, other = (tree["posterior"].to_dataset() for tree in trees)
    assert one["mu"].sizes["feature"] == 3
    assert one["varying"].values.tolist() == ["a", "c"]
    assert one["Sigma"].dims[2:] == ("varying", "varying_bis")
    assert one["pair"].values.tolist() == ["c, a"]
    for name in ("mu", "sd", "corr", "sigma"):
        gap = np.abs(one[name].mean(["chain", "draw"]) - other[name].mean(["chain", "draw"]))
        error = np.hypot(azs.mcse(one[name]), azs.mcse(other[name]))
        assert (gap < 4.5 * error).all()
    assert all(tree.attrs["trusted"] for tree in trees)
    theta = bm.add_theta(trees[0])["posterior"]["theta"]
    spread = np.ptp(theta.sel(feature="b").values, axis=2)
    assert spread.max() < 1e-9  # one coefficient for all tasks, in every draw
    assert trees[0]["prior"]["sd"].sizes["varying"] == 2


def test_a_conjugate_prior_is_refused() -> None:
    """It has a variance for every feature."""
    prior = InverseWishart(0.0, 1.0, 5.0, np.eye(3))
    with pytest.raises(bm.InputError, match="use LKJ"):
        check_problem(tasks(), 0.5, prior, "fused")


def test_where_all_vary_nothing_changes() -> None:
    """The dimensions are those of features."""
    problem = check_problem(Data(3, 2, 12).stats, 1.0, None, "fused")
    model = model_of(problem)
    assert model.named_vars_to_dims["Sigma"] == ("feature", "feature_bis")
