"""Draws, however the model is written and whoever draws: those of one posterior, the right one.

Two features, twelve tasks. The z-tests take the Monte-Carlo error of each quantity; they share the
budget of "models/draws".
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import arviz_stats as azs
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats as st

import bayesmeta as bm
from bayesmeta.posterior.model import Problem, check_problem
from bayesmeta.posterior.op import task_likelihood
from bayesmeta.posterior.priors import InverseWishart, KnownCovariance
from bayesmeta.posterior.target import Target, compiled
from tests.helpers import Problem as Data
from tests.helpers import size

pytestmark = pytest.mark.slow

DATA = Data(3, 2, 12, most=15)
TASKS = DATA.stats
PRIOR = bm.LKJ(mean=[0.3, -0.2], mean_sd=[1.5, 2.0], scale=[0.8, 1.4], eta=2.0)
KNOWN = KnownCovariance([[1.0, 0.4], [0.4, 2.0]], 0.1, 1.5)
PLACES = {
    "mu": [(0,), (1,)],
    "Sigma": [(0, 0), (1, 0), (1, 1)],
}
SHARE = size("models/draws") / 6
"""Of each of the six tests that compare draws."""

draw = partial(
    bm.sample_posterior,
    TASKS,
    1.0,
    prior=PRIOR,
    draws=1000,
    tune=400,
    chains=2,
    random_seed=1,
    target_accept=0.9,
)


def summary(posterior: xr.Dataset) -> dict[str, tuple[float, float]]:
    """Means and standard deviations of mu and Sigma, with their Monte-Carlo errors."""
    found = {}
    for name in [name for name in PLACES if name in posterior]:
        for place in PLACES[name]:
            values = posterior[name].isel(dict(zip(posterior[name].dims[2:], place, strict=True)))
            if float(values.std()) > 1e-9:  # not known
                for method, value in (("mean", values.mean()), ("sd", values.std())):
                    error = float(azs.mcse(values, method=method))
                    found[f"{method} of {name}{place}"] = (float(value), error)
    return found


def assert_means_and_sds(
    posterior: xr.Dataset, expected: dict[str, tuple[float, float]], comparisons: int
) -> None:
    """All within Monte-Carlo error; ``comparisons`` is how many the test makes in all."""
    worst = st.norm.isf(SHARE / (2 * comparisons))
    found = summary(posterior)
    assert found.keys() == expected.keys()
    for name, (value, error) in found.items():
        exact, other = expected[name]
        assert abs(value - exact) < worst * np.hypot(error, other), name


@pytest.fixture(scope="module")
def reference() -> dict[str, tuple[float, float]]:
    """Fused, by nutpie, with another seed and more draws."""
    return summary(draw(draws=4000, random_seed=7)["posterior"].to_dataset())


@pytest.mark.parametrize(
    "how",
    [
        {"model": "collapsed", "random_seed": 2},
        {"model": "noncentred"},
        {"model": "centred"},
        {"nuts_sampler": "pymc", "cores": 1},
    ],
    ids=lambda how: how.get("model", "pymc"),
)
@pytest.mark.filterwarnings("ignore::bayesmeta.FitWarning")  # centred: theta and Sigma are tied
def test_every_way_draws_from_one_posterior(
    how: dict[str, Any], reference: dict[str, tuple[float, float]]
) -> None:
    """Other ways to write the model, and PyMC's sampler, against the fused one by nutpie.

    Size: four times ten z-tests at this test's share.
    """
    assert_means_and_sds(draw(**how)["posterior"].to_dataset(), reference, 40)


def normal_posterior(stats: bm.TaskStatistics, noise_sd: float) -> dict[str, tuple[float, float]]:
    """Of mu with the covariance known: closed form, no error."""
    cov = np.asarray(KNOWN.cov)
    precision, total = np.eye(2) / 1.5**2, np.full(2, 0.1) / 1.5**2
    for gram, moment in zip(stats.gram, stats.moment, strict=True):
        weight = np.linalg.inv(np.eye(2) + gram @ cov / noise_sd**2) / noise_sd**2
        precision, total = precision + weight @ gram, total + weight @ moment
    mean, sd = np.linalg.solve(precision, total), np.sqrt(np.diag(np.linalg.inv(precision)))
    both = (("mean", mean), ("sd", sd))
    return {f"{what} of mu({i},)": (value[i], 0.0) for i in range(2) for what, value in both}


@pytest.fixture(scope="module")
def known() -> xr.DataTree:
    return draw(prior=KNOWN)


def test_a_known_covariance_has_its_normal_posterior(known: xr.DataTree) -> None:
    """Means and sds of mu in closed form. Size: four z-tests at this test's share."""
    tree = known
    np.testing.assert_allclose(tree["posterior"]["Sigma"][0, 0], KNOWN.cov, rtol=1e-12)
    assert_means_and_sds(tree["posterior"].to_dataset(), normal_posterior(TASKS, 1.0), 4)


def test_leaving_out_a_task_is_exact(known: xr.DataTree) -> None:
    """PSIS against log p(x_j | all others), from the Gaussian law of all rewards together.

    Size: a z-test for every task at this test's share, with the error of the mean of 1 / p(x_j).
    """
    bm.add_log_likelihood(known)
    found = azs.loo(known, pointwise=True)
    rows, rewards = np.concatenate(DATA.rows), np.concatenate(DATA.rewards)
    task = np.repeat(np.arange(12), [len(x) for x in DATA.rewards])
    cov = np.eye(len(rows)) + 1.5**2 * rows @ rows.T  # noise, and mu ~ N(0.1, 1.5^2)
    cov += (rows @ np.asarray(KNOWN.cov) @ rows.T) * (task[:, None] == task)
    mean = rows @ [0.1, 0.1]

    def log_density(kept: np.ndarray) -> float:
        law = st.multivariate_normal(mean[kept], cov[np.ix_(kept, kept)])
        return float(law.logpdf(rewards[kept]))

    exact = np.array([log_density(task >= 0) - log_density(task != j) for j in range(12)])
    inverse = np.exp(exact - known["log_likelihood"]["rewards"])
    error = azs.mcse(inverse).values
    assert error.max() < 0.05
    worst = st.norm.isf(SHARE / 24)
    assert (np.abs(found.elpd_i.values - exact) < worst * error).all()
    assert float(found.elpd) == pytest.approx(exact.sum(), abs=0.1)


def test_predicted_moments_have_their_law(known: xr.DataTree) -> None:
    """Mean V m and covariance V (Sigma + C) V + sigma^2 V, where m and C are those of the draws
    of mu: given these, predictions are independent.

    Size: five z-tests for each of three tasks at this test's share.
    """
    bm.add_predictive(known, draws=10**6, random_seed=2)
    predicted = known["posterior_predictive"]["moment"]
    assert predicted.dims == ("chain", "draw", "task", "feature")
    assert predicted["task"].values.tolist() == list(range(1, 13))
    mu = known["posterior"]["mu"].values.reshape(-1, 2)
    spread = np.asarray(KNOWN.cov) + np.cov(mu.T, bias=True)
    worst = st.norm.isf(SHARE / 30)
    for j in (0, 5, 11):
        gram, values = TASKS.gram[j], predicted.values[0, :, j]
        assert len(values) == len(mu)
        gap = values - gram @ mu.mean(axis=0)
        cov = gram @ spread @ gram + gram
        squares = np.stack([gap[:, 0] ** 2, gap[:, 0] * gap[:, 1], gap[:, 1] ** 2], axis=1)
        for found, expected in ((gap, np.zeros(2)), (squares, cov[[0, 0, 1], [0, 1, 1]])):
            error = found.std(axis=0) / np.sqrt(len(found))
            assert (np.abs(found.mean(axis=0) - expected) < worst * error).all()


def test_seen_thetas_have_their_normal_inverse_wishart_posterior() -> None:
    """Grams so large that thetas are seen: conjugate. Size: ten z-tests at this test's share."""
    prior = InverseWishart([0.3, -0.2], 2.0, 5.0, [[1.0, 0.4], [0.4, 2.0]])
    n, sure = 30, 1e6
    theta = np.random.default_rng(1).standard_normal((n, 2)) @ [[1.0, 0.3], [0.0, 0.7]]
    seen = bm.TaskStatistics(np.broadcast_to(sure * np.eye(2), (n, 2, 2)), sure * theta)
    tree = bm.sample_posterior(
        seen, 1.0, prior=prior, draws=1000, tune=400, chains=2, random_seed=5
    )
    weight, degrees = 2.0 + n, 5.0 + n
    centre = theta.mean(axis=0)
    gap = centre - [0.3, -0.2]
    scatter = (theta - centre).T @ (theta - centre)
    scale = np.asarray(prior.scale) + scatter + 2.0 * n / weight * np.outer(gap, gap)
    mean, cov = (0.6 * np.array([1.0, -2.0 / 3]) + n * centre) / weight, scale / (degrees - 3)
    expected = {}
    for i in range(2):
        expected[f"mean of mu({i},)"] = mean[i]
        expected[f"sd of mu({i},)"] = np.sqrt(cov[i, i] / weight)
    for i, j in PLACES["Sigma"]:
        across = (degrees - 1) * scale[i, j] ** 2 + (degrees - 3) * scale[i, i] * scale[j, j]
        variance = across / ((degrees - 2) * (degrees - 3) ** 2 * (degrees - 5))
        expected[f"mean of Sigma({i}, {j})"] = cov[i, j]
        expected[f"sd of Sigma({i}, {j})"] = np.sqrt(variance)
    exact = {name: (float(value), 0.0) for name, value in expected.items()}
    assert_means_and_sds(tree["posterior"].to_dataset(), exact, 10)


def test_the_likelihood_serves_a_model_of_ones_own() -> None:
    """A PyMC model that has ``task_likelihood`` as a potential, drawn by PyMC: the closed form.

    Size: four z-tests at this test's share.
    """
    with pm.Model():
        mu = pm.Normal("mu", 0.1, 1.5, shape=2)
        root = np.linalg.cholesky(np.asarray(KNOWN.cov))
        pm.Potential("tasks", task_likelihood(mu, root, 1.0, TASKS))
        tree = pm.sample(
            draws=800,
            tune=300,
            chains=2,
            cores=1,
            random_seed=3,
            nuts_sampler="pymc",
            progressbar=False,
            compute_convergence_checks=False,
        )
    assert_means_and_sds(tree["posterior"].to_dataset(), normal_posterior(TASKS, 1.0), 4)


def problem_of(kind: str) -> Problem:
    return check_problem(TASKS, 1.0, PRIOR, kind)


@pytest.mark.parametrize("kind", ["fused", "centred"])
def test_compiled_functions_let_go_of_pythons_lock(kind: str) -> None:
    """Chains run side by side."""
    function = compiled(problem_of(kind)).value_and_gradient
    assert function.targetoptions["nogil"] is True  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore::bayesmeta.FitWarning")
def test_cores_do_not_matter() -> None:
    """The same seed draws the same, one chain after another or side by side."""
    one, two = (draw(draws=100, tune=100, cores=cores)["posterior"]["Sigma"] for cores in (1, 2))
    assert float(one.std()) > 0
    np.testing.assert_array_equal(one, two)


@pytest.mark.filterwarnings("ignore::bayesmeta.FitWarning")
def test_where_a_spread_vanishes_the_centred_model_has_no_density() -> None:
    """PyMC's check of a covariance is -inf, as in PyMC's own sampler, not an error, of which nutpie
    dies; short runs of many seeds come near it."""
    target = Target(problem_of("centred"))
    point, _ = target.start()
    assert np.isfinite(target.log_density(point)[0])
    flat = point.copy()
    flat[list(target.shapes).index("spread") * 2] = 0.0  # after two entries of mu
    assert target.log_density(flat)[0] == -np.inf
    for seed in range(8):
        tree = draw(model="centred", draws=20, tune=60, random_seed=seed, target_accept=0.6)
        assert np.isfinite(tree["posterior"]["Sigma"]).all()


def test_a_breakdown_of_nutpie_is_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rust's panic derives from BaseException; ours is a RuntimeError that says what to try."""

    class PanicException(BaseException):
        pass

    def broken(*args: Any, **kwargs: Any) -> None:
        raise PanicException("Poisoned sampler state mutex")

    monkeypatch.setattr("nutpie.sample", broken)
    with pytest.raises(RuntimeError, match=r"nutpie broke down .Poisoned .* another random_seed"):
        draw()


def interrupted(when: Callable[[int, int], bool]) -> Callable[..., Any]:
    """pm.sample, interrupted by Ctrl-C at some draw of some chain."""
    real = pm.sample

    def callback(trace: Any, draw: Any) -> None:
        if when(draw.chain, draw.draw_idx):
            raise KeyboardInterrupt

    return lambda **kwargs: real(callback=callback, **kwargs)


@pytest.mark.parametrize(
    "when",
    [lambda chain, step: step == 20, lambda chain, step: chain == 1 and step == 60],
    ids=["while tuning", "in the second chain"],
)
def test_an_interrupted_pymc_hands_out_nothing(
    when: Callable[[int, int], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyMC finds nothing to make a trace of, or drops the chain that is short: neither is a fit."""
    monkeypatch.setattr(pm, "sample", interrupted(when))
    with pytest.raises(KeyboardInterrupt):
        draw(prior=KNOWN, nuts_sampler="pymc", cores=1, draws=50, tune=50)


@pytest.mark.parametrize("how", ["fewer draws", "fewer chains", "a short chain"])
def test_an_interrupted_nutpie_hands_out_nothing(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It returns what it has, the chains that are short filled up with NaN."""
    import nutpie

    real = nutpie.sample

    def cut(made: Any, **kwargs: Any) -> xr.DataTree:
        tree = real(made, **kwargs)
        if how == "fewer draws":
            return tree.isel(draw=slice(5))
        if how == "fewer chains":
            return tree.isel(chain=slice(1))
        tree["posterior"]["point"][1, 30:] = np.nan
        return tree

    monkeypatch.setattr(nutpie, "sample", cut)
    with pytest.raises(KeyboardInterrupt):
        draw(draws=50, tune=50)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C is heard, also where a shell runs the tests in the background and switches it off."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("lost", ["returned", "an error"])
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_after_the_last_draw_is_not_lost(lost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """nutpie catches it and hands out all draws, or finds that it has handed them out already."""
    import nutpie

    real = nutpie.sample

    def late(made: Any, **kwargs: Any) -> xr.DataTree:
        tree = real(made, **kwargs)
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            if lost == "an error":
                raise ValueError("Sampler has no results to take") from None
        return tree

    monkeypatch.setattr(nutpie, "sample", late)
    with pytest.raises(KeyboardInterrupt):
        draw(draws=50, tune=50)


@pytest.mark.filterwarnings("ignore::bayesmeta.FitWarning")
def test_earlier_names_of_arguments_are_accepted() -> None:
    """seed, sampler and progress; a name twice is refused."""
    few = partial(bm.sample_posterior, TASKS, 1.0, prior=PRIOR, draws=20, tune=50, chains=1)
    now = few(random_seed=3, nuts_sampler="nutpie", progressbar=False)
    before = few(seed=3, sampler="nutpie", progress=False)
    np.testing.assert_array_equal(now["posterior"]["mu"], before["posterior"]["mu"])
    one, two = bm.add_theta(now, random_seed=4), bm.add_theta(before, seed=4)
    np.testing.assert_array_equal(one["posterior"]["theta"], two["posterior"]["theta"])
    with pytest.raises(bm.InputError, match="seed is the earlier name of random_seed"):
        few(seed=3, random_seed=3)


@pytest.mark.filterwarnings("always")
def test_warnings_point_at_the_line_of_the_user() -> None:
    """Not into the package."""
    with pytest.warns(bm.FitWarning) as found:
        bm.sample_posterior(TASKS, 1.0, prior=PRIOR, draws=20, tune=50, chains=1)
    assert found[0].filename == __file__
