"""Draws by importance weights: exact posteriors, NUTS's draws, and when they are not trusted."""

from __future__ import annotations

import json

import arviz_stats as azs
import numpy as np
import pytest
import xarray as xr
from scipy import stats as st

import bayesmeta as bm
from bayesmeta.posterior.coordinates import Coordinates, apart
from bayesmeta.posterior.density import log_posterior
from bayesmeta.posterior.laplace import Weights, _systematic, _weighed, draw_laplace, too_close
from bayesmeta.posterior.model import Problem
from bayesmeta.posterior.priors import Prior
from bayesmeta.posterior.target import Target
from bayesmeta.report.posterior import drawn_by
from tests.helpers import size

pytestmark = pytest.mark.slow

COV = np.array([[1.0, 0.4], [0.4, 0.8]])
PRIORS: dict[str, Prior] = {
    "lkj": bm.LKJ([0.3, -0.2], [1.5, 2.0], [0.8, 1.4], 1.7, noise_scale=1.3),
    "wishart": bm.InverseWishart([0.3, -0.2], 2.0, 5.0, [[1.0, 0.4], [0.4, 2.0]]),
    "known": bm.KnownCovariance(COV, 0.1, 1.5),
}
SHARED: dict[str, Prior] = {
    "lkj": bm.LKJ([0.3, -0.2, 0.1], [1.5, 2.0, 3.0], [0.8, 99.0, 1.4], 1.7, noise_scale=1.3),
    "known": bm.KnownCovariance(np.diag([1.0, 9.0, 0.8]), 0.1, 1.5),
}
"""Of three features, of which the second has one coefficient for all tasks."""


def tasks(n: int, sd: float = 1.0, steps: int = 6) -> bm.TaskStatistics:
    rng = np.random.default_rng(3)
    theta = np.array([1.0, 0.0]) + sd * rng.multivariate_normal([0, 0], COV, size=n)
    rows = rng.standard_normal((n, steps, 2))
    rewards = np.einsum("nti,ni->nt", rows, theta) + rng.standard_normal((n, steps))
    task = np.repeat(np.arange(n), steps)
    return bm.TaskStatistics.from_arrays(task, rewards.ravel(), rows.reshape(-1, 2))


def shared(n: int, far: float = 0.0) -> bm.TaskStatistics:
    """Tasks whose second coefficient is the same in all of them, its feature ``far`` from 0."""
    rng = np.random.default_rng(4)
    task, rows = np.repeat(np.arange(n), 6), rng.standard_normal((6 * n, 3))
    rows[:, 0] = 1.0
    rows[:, 1] = rng.standard_normal(n)[task] + far  # of the task: it competes with the intercept
    theta = rng.multivariate_normal([0, 0], COV, size=n)[task]
    rewards = theta[:, 0] + 2 * (rows[:, 1] - far) + theta[:, 1] * rows[:, 2]
    rewards += rng.standard_normal(6 * n)
    names, varying = ["level", "same", "slope"], (True, False, True)
    return bm.TaskStatistics.from_arrays(task, rewards, rows, names, varying=varying)


@pytest.mark.parametrize(
    ("name", "noise", "same"),
    [
        ("lkj", 1.0, False),
        ("lkj", None, False),
        ("wishart", None, False),
        ("known", 1.0, False),
        ("lkj", None, True),
        ("known", 1.0, True),
    ],
)
def test_the_density_is_the_models(name: str, noise: float | None, same: bool) -> None:
    """That of the PyMC model in (mu, Sigma, sigma), by a numerical Jacobian; and in coordinates,
    again by a Jacobian; gradients are those of differences. Also where a coefficient is the same in
    all tasks."""
    stats, prior = (shared(30), SHARED[name]) if same else (tasks(30), PRIORS[name])
    problem = Problem(stats, noise, prior.settled(stats.dim), "fused")
    coordinates, target = Coordinates(problem), Target(problem)
    below = np.tril_indices(2)

    def flat(mean: np.ndarray, cov: np.ndarray, sigma: float) -> np.ndarray:
        free = [] if name == "known" else cov[below]
        return np.concatenate([mean, free, [sigma] if noise is None else []])

    def by_model(point: np.ndarray) -> np.ndarray:
        found = {key: value[0] for key, value in target.constrained(point[None]).items()}
        return flat(found["mu"], found["Sigma"], float(found.get("sigma", 1.0)))

    def by_coordinates(y: np.ndarray) -> np.ndarray:
        at = coordinates.split(y)
        return flat(at.mean, at.cov, float(at.noise_sd))

    def jacobian(function, at: np.ndarray) -> float:  # type: ignore[no-untyped-def]
        steps = 1e-5 * np.eye(len(at))
        columns = [(function(at + step) - function(at - step)) / 2e-5 for step in steps]
        return float(np.linalg.slogdet(np.array(columns))[1])

    rng = np.random.default_rng(8)
    gaps, others = [], []
    for _ in range(4):
        point = 0.4 * rng.standard_normal(target.size)
        found = {key: value[0] for key, value in target.constrained(point[None]).items()}
        sigma = float(found.get("sigma", 1.0))
        ours = log_posterior(problem, coordinates.data, found["mu"], found["Sigma"], sigma).value
        gaps.append(target.log_density(point)[0] - jacobian(by_model, point) - ours)
        y = coordinates.starts()[0] + 0.05 * rng.standard_normal(coordinates.size)
        mean, _, cov, noise_sd, _ = coordinates.split(y)
        value, gradient = coordinates.log_density(y)
        assert coordinates.values(np.array([y, y]))[1] == pytest.approx(value, rel=1e-12)
        ours = log_posterior(problem, coordinates.data, mean, cov, float(noise_sd)).value
        others.append(value - jacobian(by_coordinates, y) - ours)
        steps = 1e-5 * np.eye(len(y))
        slopes = [
            (coordinates.log_density(y + s)[0] - coordinates.log_density(y - s)[0]) / 2e-5
            for s in steps
        ]
        np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-5)
    np.testing.assert_allclose(others, others[0], atol=1e-5)


def test_a_gaussian_posterior_needs_no_weights() -> None:
    """A known covariance and noise: all weights are equal; means and covariance in closed form.

    Size: five z-tests at half of the budget's share.
    """
    stats, draws = tasks(40), 4000
    found = draw_laplace(Problem(stats, 1.0, PRIORS["known"].settled(2), "fused"), draws, seed=1)
    assert found is not None and found.weights.good
    assert found.weights.efficiency == pytest.approx(1.0, abs=1e-6)
    precision, total = np.eye(2) / 1.5**2, np.full(2, 0.1) / 1.5**2
    for gram, moment in zip(stats.gram, stats.moment, strict=True):
        weight = np.linalg.inv(np.eye(2) + gram @ COV)
        precision, total = precision + weight @ gram, total + weight @ moment
    cov = np.linalg.inv(precision)
    gap = found.draws["mu"] - np.linalg.solve(precision, total)
    worst = st.norm.isf(size("models/laplace") / 20)
    squares = np.stack([gap[:, 0] ** 2, gap[:, 0] * gap[:, 1], gap[:, 1] ** 2], axis=1)
    for values, expected in ((gap, np.zeros(2)), (squares, cov[[0, 0, 1], [0, 1, 1]])):
        error = values.std(axis=0) / np.sqrt(draws)
        assert (np.abs(values.mean(axis=0) - expected) < worst * error).all()


def test_laplace_and_nuts_draw_from_one_posterior() -> None:
    """Means, and shares below the quartiles and the 5% and 95% points of the other's draws.

    Size: z-tests at half of the budget's share, the errors of both taken into account.
    """
    stats, prior = tasks(150), PRIORS["lkj"]
    quick = bm.sample_posterior(stats, prior=prior, method="laplace", random_seed=4)
    slow = bm.sample_posterior(stats, prior=prior, method="nuts", random_seed=5)
    assert bm.trustworthy(quick) and bm.trustworthy(slow)
    assert [tree.attrs["method"] for tree in (quick, slow)] == ["laplace", "nuts"]
    places = [("mu", (0,)), ("mu", (1,)), ("Sigma", (0, 0)), ("Sigma", (1, 0)), ("Sigma", (1, 1))]
    levels = (0.05, 0.25, 0.5, 0.75, 0.95)
    worst = st.norm.isf(size("models/laplace") / (4 * 6 * 6))
    efficiency = json.loads(quick.attrs["laplace"])["efficiency"]
    for name, index in [*places, ("sigma", ())]:
        ours, theirs = (
            tree["posterior"][name].isel(
                dict(zip(tree["posterior"][name].dims[2:], index, strict=True))
            )
            for tree in (quick, slow)
        )
        own = float(ours.std()) / np.sqrt(efficiency * ours.size)
        error = np.hypot(own, float(azs.mcse(theirs)))
        assert abs(float(ours.mean() - theirs.mean())) < worst * error
        for level in levels:
            below = (theirs < float(ours.quantile(level))).astype(float)
            own = np.sqrt(level * (1 - level) / (efficiency * ours.size))
            error = np.hypot(own, float(azs.mcse(below)))
            assert abs(float(below.mean()) - level) < worst * error


def _agree(quick: xr.DataTree, slow: xr.DataTree, worst: float) -> None:
    """Means of all quantities, within Monte-Carlo errors of both."""
    efficiency = json.loads(quick.attrs["laplace"])["efficiency"]
    for name in ("mu", "sd", "corr", "sigma"):
        ours, theirs = (tree["posterior"][name] for tree in (quick, slow))
        over = ["chain", "draw"]
        own = ours.std(over) / np.sqrt(efficiency * ours.sizes["chain"] * ours.sizes["draw"])
        gap = np.abs(ours.mean(over) - theirs.mean(over))
        assert (gap < worst * np.hypot(own, azs.mcse(theirs))).all(), name
        np.testing.assert_allclose(ours.std(over), theirs.std(over), rtol=0.15)


@pytest.mark.parametrize("far", [0.0, 300.0])
def test_coefficients_that_do_not_differ(far: float) -> None:
    """Laplace draws them as NUTS does, also where their feature has a far origin; "auto" takes it.

    Size: seven z-tests for each of two origins, at this test's share.
    """
    stats = shared(150, far)
    prior = bm.default_prior(stats)
    quick = bm.sample_posterior(stats, prior=prior, random_seed=4)
    slow = bm.sample_posterior(stats, prior=prior, method="nuts", random_seed=5)
    assert [tree.attrs["method"] for tree in (quick, slow)] == ["laplace", "nuts"]
    assert bm.trustworthy(quick) and bm.trustworthy(slow)
    assert quick["posterior"]["Sigma"].dims[2:] == ("varying", "varying_bis")
    _agree(quick, slow, st.norm.isf(size("models/laplace-shared") / (2 * 2 * 7)))


def test_seen_thetas_have_their_normal_inverse_wishart_posterior() -> None:
    """Grams so large that thetas are seen: conjugate, in five features.

    Size: z-tests of 20 means and 15 second moments, at this test's share.
    """
    d, n, draws = 5, 200, 4000
    rng = np.random.default_rng(1)
    theta = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)))
    prior = bm.InverseWishart([0.3] * d, 2.0, 9.0, np.eye(d) + 0.2)
    seen = bm.TaskStatistics(np.broadcast_to(1e6 * np.eye(d), (n, d, d)), 1e6 * theta)
    found = draw_laplace(Problem(seen, 1.0, prior.settled(d), "fused"), draws, seed=1)
    assert found is not None and found.weights.good
    centre = theta.mean(axis=0)
    gap, scatter = centre - 0.3, (theta - centre).T @ (theta - centre)
    weight, degrees = 2.0 + n, 9.0 + n
    scale = np.eye(d) + 0.2 + scatter + 2.0 * n / weight * np.outer(gap, gap)
    cov = scale / (degrees - d - 1)
    below = np.tril_indices(d)
    off = found.draws["mu"] - (2.0 * 0.3 + n * centre) / weight
    squares = (off[:, :, None] * off[:, None, :])[:, *below]
    worst = st.norm.isf(size("models/laplace-exact") / (2 * 35))
    each = (
        (off, 0.0),
        (found.draws["Sigma"][:, *below], cov[below]),
        (squares, cov[below] / weight),
    )
    for values, expected in each:
        error = values.std(axis=0) / np.sqrt(found.weights.efficiency * draws)
        assert (np.abs(values.mean(axis=0) - expected) < worst * error).all()


def test_repeated_draws_count_once() -> None:
    """ArviZ's effective sample size of draws by uneven weights is that of the weights."""
    rng = np.random.default_rng(2)
    weights = rng.exponential(size=20_000)
    weights /= weights.sum()
    kept = _systematic(weights, 20_000, rng)
    values = rng.standard_normal(20_000)[kept].reshape(4, -1)
    ess = float(azs.ess(xr.DataArray(values, dims=("chain", "draw"))))
    assert ess == pytest.approx(1 / (weights**2).sum(), rel=0.15)


def test_standard_deviations_near_zero_are_left_to_nuts() -> None:
    """Most proposals fall outside, so few that no tail can be told: said, no exception."""
    problem = Problem(tasks(12, sd=0.05), 1.0, PRIORS["lkj"].settled(2), "fused")
    z = np.random.default_rng(0).standard_normal((300, 5))
    values = np.full(300, -np.inf)
    values[:20] = 0.0
    weights, quality = _weighed(values, z)
    assert not weights.any() and not quality.good and quality.outside == pytest.approx(280 / 300)
    found = draw_laplace(problem, 1000, seed=1, pilot=True)
    assert found is None or not found.weights.good


def test_tasks_too_close_for_laplace() -> None:
    """Tasks that differ by nothing lie within two standard errors of it, such as differ clearly do
    not; with Sigma known, or an inverse-Wishart prior, it does not matter."""
    lkj = PRIORS["lkj"].settled(2)
    clear, alike = (Problem(tasks(60, sd=sd), 1.0, lkj, "fused") for sd in (1.0, 0.0))
    assert too_close(clear) is None and apart(clear) > 3
    close = too_close(alike)
    assert close is not None and close == apart(alike) < 2
    assert draw_laplace(alike, 1000, seed=1, pilot=True) is None
    for other in (PRIORS["known"], PRIORS["wishart"]):
        assert too_close(alike._replace(prior=other.settled(2))) is None


def test_auto_is_laplace_where_it_is_good_and_nuts_elsewhere() -> None:
    """The tree says which; what was asked of NUTS alone is done by NUTS."""
    many = bm.sample_posterior(tasks(150), prior=PRIORS["lkj"])
    assert many.attrs["method"] == "laplace" and bm.trustworthy(many)
    assert "Pareto k-hat" in str(bm.trustworthy(many))
    assert drawn_by(many).startswith("laplace")
    few = bm.sample_posterior(tasks(60, sd=0.3), prior=PRIORS["lkj"], random_seed=1)
    assert drawn_by(few).startswith("nuts, since laplace would not do (")
    assert few.attrs["method"] == "nuts" and "diverging" in few["sample_stats"]
    tried = few.attrs["laplace"]
    assert tried == "{}" or not Weights(**json.loads(tried)).good
    alike = bm.sample_posterior(tasks(12, sd=0.05), prior=PRIORS["lkj"], random_seed=1)
    assert json.loads(alike.attrs["laplace"])["apart"] < 2 and alike.attrs["method"] == "nuts"
    assert "laplace not tried, since in some direction tasks differ by" in drawn_by(alike)
    for asked in ({"tune": 200}, {"target_accept": 0.9}):
        told = bm.sample_posterior(tasks(150), prior=PRIORS["lkj"], **asked)  # type: ignore[arg-type]
        assert told.attrs["method"] == "nuts" and told.attrs["laplace"] == "not tried"
        assert drawn_by(told) == "nuts"


def test_laplace_that_fails_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warning, and a tree that is not trusted, with advice; nothing is drawn in its place. Where
    there is no mode at all, nothing can be drawn."""
    with pytest.raises(bm.InputError, match=r"no mode was found .* set method to nuts"):
        bm.sample_posterior(tasks(5), prior=PRIORS["lkj"], method="laplace")
    monkeypatch.setattr("bayesmeta.posterior.diagnostics.EFFICIENCY", 1.1)  # out of reach
    with pytest.warns(bm.FitWarning, match="efficiency"):
        tree = bm.sample_posterior(tasks(15), prior=PRIORS["lkj"], method="laplace")
    verdict = bm.trustworthy(tree)
    assert not verdict and tree.attrs["trusted"] == 0 and tree.attrs["method"] == "laplace"
    assert "set method to nuts" in str(verdict)
    spoiled: xr.DataTree = tree.copy(deep=True)
    spoiled["sample_stats"]["khat"] = 0.1
    spoiled["sample_stats"]["efficiency"] = 0.9
    spoiled["sample_stats"]["outside"] = 0.0
    again = bm.trustworthy(spoiled)  # other numbers are judged anew
    assert not [check for check in again.failed if check.name == "Pareto k-hat"]


@pytest.mark.parametrize(
    ("weights", "good"),
    [
        (Weights(0.1, 0.9, 0.0), True),
        (Weights(0.6, 0.9, 0.0), False),
        (Weights(0.1, 0.05, 0.0), False),
        (Weights(0.1, 0.9, 0.02), False),
        (Weights(np.nan, 0.9, 0.0), False),
    ],
)
def test_every_gate_counts(weights: Weights, good: bool) -> None:
    """A light tail alone, with 5% of effective draws, is not enough."""
    assert weights.good is good


def test_cores_do_not_matter() -> None:
    """To the bit."""
    problem = Problem(tasks(60), 1.0, PRIORS["lkj"].settled(2), "fused")
    one, two = (draw_laplace(problem, 1000, seed=2, cores=cores) for cores in (1, 2))
    assert one is not None and two is not None
    np.testing.assert_array_equal(one.draws["Sigma"], two.draws["Sigma"])


def test_an_unknown_method_is_refused() -> None:
    """By name."""
    with pytest.raises(bm.InputError, match="unknown method 'magic'"):
        bm.sample_posterior(tasks(5), method="magic")
