"""A fitted tree is what ArviZ expects: each call runs without arguments and without warnings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import arviz as az
import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats as st

import bayesmeta as bm
from bayesmeta.posterior.tree import check_rows_of
from bayesmeta.tables.design import Design, Rows, tabulate

pytestmark = pytest.mark.slow
mpl.use("Agg")


def table(seed: int = 0, tasks: int = 25, rows: int = 20) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 4, tasks * rows)
    theta = rng.normal([2.0, 1.0], [1.0, 0.5], (tasks, 2)).repeat(rows, axis=0)
    y = theta[:, 0] + theta[:, 1] * x + 0.8 * rng.standard_normal(len(x))
    return pd.DataFrame({"shop": np.arange(tasks).repeat(rows), "x": x, "y": y})


def designed(features: list[str]) -> Design:
    return tabulate(table(), task="shop", reward="y", features=features, intercept=True)


@pytest.fixture(scope="module")
def tree() -> xr.DataTree:
    design = designed(["x"])
    return bm.sample_posterior(design.stats, rows=design.rows)


@pytest.fixture(scope="module")
def smaller() -> xr.DataTree:
    design = designed([])
    return bm.sample_posterior(design.stats, rows=design.rows)


CALLS: list[Callable[[Any], Any]] = [
    az.summary,
    az.loo,
    az.psense_summary,
    az.plot_forest,
    az.plot_ppc_dist,
    az.plot_loo_pit,
    az.plot_trace,
    az.plot_trace_dist,
    az.plot_rank,
    az.plot_dist,
    az.plot_prior_posterior,
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_arviz_takes_the_tree_as_it_comes(tree: xr.DataTree, call: Callable[[Any], Any]) -> None:
    """Warnings are errors."""
    found = call(tree)
    if isinstance(found, pd.DataFrame):
        assert not found.isna().any().any()
        assert len(found) == 10  # mu 2, Sigma 4, sd 2, corr 1, sigma


def test_a_summary_of_each_quantity_once(tree: xr.DataTree) -> None:
    """Sigma is symmetric, and its entries follow from sd and corr; without it there are no two rows
    of the same numbers."""
    found = az.summary(tree, var_names=["mu", "sd", "corr", "sigma"], round_to="none")
    assert len(found) == 6 and not found.duplicated().any()


def test_the_warning_of_loo_is_not_silenced() -> None:
    """A few rows of the sleep study move the posterior too far, as the docstring says."""
    formula = "Reaction ~ Days + (Days | Subject)"
    fit = bm.fit(bm.load_data("sleepstudy"), formula, method="posterior")
    with pytest.warns(UserWarning, match="shape parameter of Pareto"):
        found = az.loo(fit.tree, pointwise=True)
    assert 1 <= int((found.pareto_k > 0.7).sum()) <= 8


def test_models_compare(tree: xr.DataTree, smaller: xr.DataTree) -> None:
    """The one that rewards came from is better than one without slopes."""
    found = az.compare({"slopes": tree, "levels": smaller})
    assert found.index[0] == "slopes"
    assert "corr" not in smaller["posterior"]


def test_groups_share_the_name_of_what_was_observed(tree: xr.DataTree) -> None:
    """And rows."""
    for group in ("observed_data", "posterior_predictive", "prior_predictive", "log_likelihood"):
        assert list(tree[group].data_vars) == ["rewards"]
        assert tree[group]["rewards"].dims[-1] == "row"


def test_likelihoods_of_rows_are_those_of_their_tasks_thetas(tree: xr.DataTree) -> None:
    """By SciPy, from the thetas that ``add_theta`` draws."""
    drawn = bm.add_theta(tree.copy(deep=True))["posterior"].to_dataset()
    data, rewards = tree["constant_data"].to_dataset(), tree["observed_data"]["rewards"].values
    theta = drawn["theta"].values[2, 17][data["task_index"].values]
    mean = (theta * data["features"].values).sum(axis=1)
    exact = st.norm.logpdf(rewards, mean, float(drawn["sigma"].values[2, 17]))
    found = tree["log_likelihood"]["rewards"].values[2, 17]
    np.testing.assert_allclose(found, exact, rtol=1e-8)
    gap = tree["posterior_predictive"]["rewards"].values[2, 17] - mean
    assert abs(gap.std() / float(drawn["sigma"].values[2, 17]) - 1) < 0.2


def test_likelihoods_of_tasks_replace_them_when_asked_for(tree: xr.DataTree) -> None:
    """They are those of a Gaussian with theta integrated out."""
    other = bm.add_log_likelihood(tree.copy(deep=True), by="task")
    found = other["log_likelihood"]["rewards"].values[1, 5, 3]
    data, draw = tree["constant_data"].to_dataset(), tree["posterior"].to_dataset()
    draw = draw.isel(chain=1, draw=5)
    mine = data["task_index"].values == 3
    x, y = data["features"].values[mine], tree["observed_data"]["rewards"].values[mine]
    cov = x @ draw["Sigma"].values @ x.T + float(draw["sigma"]) ** 2 * np.eye(len(y))
    exact = st.multivariate_normal.logpdf(y, x @ draw["mu"].values, cov)
    assert found == pytest.approx(exact, rel=1e-8)


def test_the_log_prior_is_that_of_centred_features(tree: xr.DataTree) -> None:
    """By SciPy, up to a constant: differences between two draws."""
    prior = bm.default_prior(designed(["x"]).stats)
    posterior, found = tree["posterior"].to_dataset(), tree["log_prior"].to_dataset()
    mean = float(tree["constant_data"]["features"].values[:, 1].mean())
    change = np.array([[1.0, mean], [0.0, 1.0]])

    def exact(draw: int) -> dict[str, float]:
        one = posterior.isel(chain=0, draw=draw)
        cov = change @ one["Sigma"].values @ change.T
        sd = np.sqrt(np.diag(cov))
        corr = cov[0, 1] / sd.prod()
        return {
            "mu": st.norm.logpdf(change @ one["mu"].values, prior.mean, prior.mean_sd).sum(),
            "sd": st.halfnorm.logpdf(sd, scale=prior.scale).sum(),
            "corr": (prior.eta - 1) * np.log(1 - corr**2),
            "sigma": st.halfnorm.logpdf(float(one["sigma"]), scale=prior.noise_scale),
        }

    one, other = exact(3), exact(900)
    assert set(found.data_vars) == set(one)
    for name in one:
        values = found[name].values[0]
        assert values[3] - values[900] == pytest.approx(one[name] - other[name], rel=1e-6, abs=1e-9)


def test_rows_of_other_statistics_are_refused() -> None:
    """Their order, and their tasks."""
    design = designed(["x"])
    rows = design.rows
    assert rows is not None
    check_rows_of(design.stats, rows)
    for wrong in (
        rows._replace(reward=rows.reward[::-1]),
        rows._replace(task=rows.task + 1),
        Rows(rows.task, rows.reward, rows.features[:, :1]),
    ):
        with pytest.raises(bm.InputError, match="rows must be those"):
            check_rows_of(design.stats, wrong)


def test_without_rows_tasks_are_what_is_left_out(smaller: xr.DataTree) -> None:
    """And moments what is predicted."""
    found = bm.sample_posterior(designed(["x"]).stats)
    assert found["log_likelihood"]["rewards"].dims == ("chain", "draw", "task")
    bm.add_predictive(found)
    az.plot_ppc_dist(found)
    with pytest.raises(bm.InputError, match="no rows"):
        bm.add_log_likelihood(found, by="row")


def test_other_thetas_come_with_their_own_likelihoods(tree: xr.DataTree) -> None:
    """Likelihoods of rows are those of the thetas that the tree has."""
    own = bm.add_theta(tree.copy(), random_seed=5)
    theta = own["posterior"]["theta"].values
    data = own["constant_data"].to_dataset()
    fitted = np.einsum("cdri,ri->cdr", theta[:, :, data["task_index"].values], data["features"])
    sigma = own["posterior"]["sigma"].values[..., None]
    z = (own["observed_data"]["rewards"].values - fitted) / sigma
    expected = -0.5 * z**2 - np.log(sigma) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(own["log_likelihood"]["rewards"], expected, rtol=1e-8)
    assert not np.allclose(tree["log_likelihood"]["rewards"], expected)
