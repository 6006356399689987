"""The hierarchical models: the same posterior however written, and the right one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from pytensor.compile.mode import Mode
from scipy import stats as st
from scipy.special import logsumexp

import bayesmeta as bm
from bayesmeta.posterior.model import KINDS, Problem, check_problem, model_of
from bayesmeta.posterior.priors import (
    InverseWishart,
    KnownCovariance,
    Prior,
    bartlett_root,
    lkj_roots,
)
from bayesmeta.posterior.target import Target
from tests.helpers import Problem as Data
from tests.helpers import size

pytestmark = pytest.mark.slow

IN_PYTHON = Mode(linker="py", optimizer="fast_compile")
"""Runs the Op's own code, and compiles nothing."""

PRIORS: dict[str, Prior] = {
    "lkj": bm.LKJ(mean=[0.3, -0.2], mean_sd=[1.5, 2.0], scale=[0.8, 1.4], eta=2.0),
    "wishart": InverseWishart([0.3, -0.2], 2.0, 5.0, [[1.0, 0.4], [0.4, 2.0]]),
    "known": KnownCovariance([[1.0, 0.4], [0.4, 2.0]], 0.1, 1.5),
}


@pytest.fixture(scope="module")
def tasks() -> bm.TaskStatistics:
    """Twelve tasks of one to seven steps: some do not determine their theta."""
    return Data(4, 2, 12).stats


def log_density(problem: Problem, point: dict[str, np.ndarray]) -> float:
    """PyMC's own, run in Python: nothing is compiled."""
    return float(_density(problem)(point))


@cache
def _density(problem: Problem):  # type: ignore[no-untyped-def]
    return model_of(problem).compile_logp(mode=IN_PYTHON)


def unconstrained(problem: Problem, seed: int) -> dict[str, np.ndarray]:
    """A random point of a model that has no theta."""
    model = model_of(problem)
    rng = np.random.default_rng(seed)
    return {
        name: 0.7 * rng.standard_normal(value.shape)
        for name, value in model.initial_point(random_seed=1).items()
    }


def variables(problem: Problem, point: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """mu, Sigma and the noise at a point."""
    model = model_of(problem)
    wanted = [v for v in model.unobserved_value_vars if v.name in ("mu", "Sigma", "sigma")]
    function = model.compile_fn(wanted, inputs=model.value_vars, mode=IN_PYTHON)
    return dict(zip([v.name for v in wanted], function(point), strict=True))


@pytest.mark.parametrize("noise", [0.8, None], ids=["noise known", "noise unknown"])
@pytest.mark.parametrize("prior", PRIORS)
def test_all_models_have_one_posterior(
    prior: str, noise: float | None, tasks: bm.TaskStatistics
) -> None:
    """Exactly, at random points: fused and collapsed agree, and the joint density of the others,
    divided by the density of theta given the rest, is the collapsed one, whatever theta is."""
    built = {kind: check_problem(tasks, noise, PRIORS[prior], kind) for kind in KINDS}
    for seed in range(3):
        point = unconstrained(built["fused"], seed)
        value = log_density(built["fused"], point)
        np.testing.assert_allclose(log_density(built["collapsed"], point), value, rtol=1e-9)
        found = variables(built["fused"], point)
        mu, cov = found["mu"], found["Sigma"]
        sigma = float(found.get("sigma", noise))
        rng = np.random.default_rng(100 + seed)
        theta = mu + rng.standard_normal((len(tasks), 2))
        mean, spread = bm.GaussianPrior(mu, cov).posterior(tasks.gram, tasks.moment, sigma)
        given = sum(
            st.multivariate_normal.logpdf(theta[j], mean[j], spread[j]) for j in range(len(tasks))
        )
        centred = log_density(built["centred"], point | {"theta": theta})
        np.testing.assert_allclose(centred - given, value, rtol=1e-9)
        root = np.linalg.cholesky(cov) * np.sign(point.get("spread", 1.0))
        z = np.linalg.solve(root, (theta - mu).T).T
        jacobian = len(tasks) * np.log(np.abs(np.diag(root))).sum()
        noncentred = log_density(built["noncentred"], point | {"z": z})
        np.testing.assert_allclose(noncentred - given - jacobian, value, rtol=1e-9)


def test_known_covariance_has_the_normal_posterior(tasks: bm.TaskStatistics) -> None:
    """Closed form: differences of the log-density are those of N(m, P^-1)."""
    prior = PRIORS["known"]
    assert isinstance(prior, KnownCovariance)
    problem = check_problem(tasks, 0.8, prior, "fused")
    cov = np.asarray(prior.cov)
    precision, total = np.eye(2) / 1.5**2, np.full(2, 0.1) / 1.5**2
    for gram, moment in zip(tasks.gram, tasks.moment, strict=True):
        weight = np.linalg.inv(np.eye(2) + gram @ cov / 0.64) / 0.64
        precision, total = precision + weight @ gram, total + weight @ moment
    mean = np.linalg.solve(precision, total)
    exact = st.multivariate_normal(mean, np.linalg.inv(precision))
    points = np.random.default_rng(0).standard_normal((5, 2))
    ours = [log_density(problem, {"mu": point}) for point in points]
    np.testing.assert_allclose(np.diff(ours), np.diff(exact.logpdf(points)), rtol=1e-8)


def test_normal_inverse_wishart_is_conjugate() -> None:
    """With every theta seen (infinite grams) the posterior is normal-inverse-Wishart."""
    prior = PRIORS["wishart"]
    assert isinstance(prior, InverseWishart)
    theta = np.random.default_rng(1).standard_normal((30, 2)) @ [[1.0, 0.3], [0.0, 0.7]]
    sure = 1e9
    seen = bm.TaskStatistics(np.broadcast_to(sure * np.eye(2), (30, 2, 2)), sure * theta)
    problem = check_problem(seen, 1.0, prior, "fused")
    n, kappa, mean0 = 30, prior.weight, np.asarray(prior.mean)
    centre = theta.mean(axis=0)
    gap = centre - mean0
    scatter = (theta - centre).T @ (theta - centre)
    scale = np.asarray(prior.scale) + scatter + kappa * n / (kappa + n) * np.outer(gap, gap)
    mean = (kappa * mean0 + n * centre) / (kappa + n)

    def exact(mu: np.ndarray, cov: np.ndarray) -> float:
        return float(
            st.invwishart.logpdf(cov, prior.degrees + n, scale)
            + st.multivariate_normal.logpdf(mu, mean, cov / (kappa + n))
        )

    ours, theirs = [], []
    for seed in range(4):
        found, value = density_in_mean_and_covariance(problem, seed)
        ours.append(value)
        theirs.append(exact(found["mu"], found["Sigma"]))
    np.testing.assert_allclose(np.diff(ours), np.diff(theirs), rtol=1e-5, atol=1e-4)


def density_in_mean_and_covariance(
    problem: Problem, seed: int
) -> tuple[dict[str, np.ndarray], float]:
    """mu and Sigma at a random point, and the log-density there with respect to them (the lower
    triangle of Sigma) instead of the unconstrained variables, by a numerical Jacobian."""
    below = np.tril_indices(problem.stats.dim)
    point = unconstrained(problem, seed)
    flat = np.concatenate([value.ravel() for value in point.values()])

    def forward(values: np.ndarray) -> np.ndarray:
        out, used = {}, 0
        for name, value in point.items():
            out[name] = values[used : used + value.size].reshape(value.shape)
            used += value.size
        found = variables(problem, out)
        return np.concatenate([found["mu"], found["Sigma"][below]])

    steps = 1e-5 * np.eye(len(flat))
    jacobian = np.array([(forward(flat + step) - forward(flat - step)) / 2e-5 for step in steps])
    value = log_density(problem, point) - np.linalg.slogdet(jacobian)[1]
    return variables(problem, point), float(value)


def test_signed_spreads_and_partial_correlations_are_half_normal_and_lkj() -> None:
    """Where the data say nothing, the density of (mu, Sigma) is that of the prior as printed."""
    scale, eta = np.array([0.8, 1.4, 2.0]), 1.7
    blind = bm.TaskStatistics(np.zeros((2, 3, 3)), np.zeros((2, 3)))
    problem = check_problem(blind, 1.0, bm.LKJ([0.3, -0.2, 0.0], 1.5, scale, eta), "fused")
    ours, theirs = [], []
    for seed in range(4):
        found, value = density_in_mean_and_covariance(problem, seed)
        ours.append(value)
        sd = np.sqrt(np.diag(found["Sigma"]))
        corr = found["Sigma"] / np.outer(sd, sd)
        exact = st.norm.logpdf(found["mu"], [0.3, -0.2, 0.0], 1.5).sum()
        exact += st.halfnorm.logpdf(sd, scale=scale).sum()
        exact += (eta - 1) * np.linalg.slogdet(corr)[1]
        exact -= 3 * np.log(sd).sum()  # from (sd, corr) to Sigma: prod 2 sd_i prod_{i<j} sd_i sd_j
        theirs.append(exact)
    np.testing.assert_allclose(np.diff(ours), np.diff(theirs), rtol=1e-5, atol=1e-4)


def one_dimensional() -> tuple[bm.TaskStatistics, bm.LKJ]:
    rng = np.random.default_rng(7)
    counts = rng.integers(1, 6, 15)
    task = np.repeat(np.arange(15), counts)
    rows = rng.uniform(0.5, 1.5, (len(task), 1))
    theta = 1.0 + 0.6 * rng.standard_normal(15)
    reward = rows[:, 0] * theta[task] + 0.5 * rng.standard_normal(len(task))
    return bm.TaskStatistics.from_arrays(task, reward, rows), bm.LKJ(0.0, 2.0, 1.0)


def test_draws_are_those_of_the_posterior_by_quadrature() -> None:
    """d = 1 on a grid: means and standard deviations of mu and sd, and their quantiles.

    Size: ten z-tests at the budget's level, each with the Monte-Carlo error of its quantity.
    """
    import arviz_stats as azs

    stats, prior = one_dimensional()
    tree = bm.sample_posterior(stats, 0.5, prior=prior, draws=2000, tune=500, random_seed=4)
    assert bool(bm.trustworthy(tree))  # a divergence spoils one seed in twelve, here and before
    mu, sd = np.linspace(-1, 3, 401), np.linspace(1e-4, 4, 800)
    gram, moment = stats.gram[:, 0, 0], stats.moment[:, 0]
    log = st.norm.logpdf(mu, 0, 2)[:, None] + st.halfnorm.logpdf(sd, scale=1.0)[None, :]
    for v, m in zip(gram, moment, strict=True):  # m ~ N(v mu, v^2 sd^2 + v sigma^2)
        spread = np.sqrt(v**2 * sd**2 + v * 0.25)
        log = log + st.norm.logpdf(m, v * mu[:, None], spread[None, :])
    weight = np.exp(log - logsumexp(log))
    marginals = {"mu": (mu, weight.sum(axis=1)), "sd": (sd, weight.sum(axis=0))}
    posterior = tree["posterior"].to_dataset()
    worst = st.norm.isf(size("models/quadrature") / 20)
    for name, (grid, mass) in marginals.items():
        mean = float(grid @ mass)
        deviation = float(np.sqrt((grid - mean) ** 2 @ mass))
        values = posterior[name].isel(feature=0)
        error = float(azs.mcse(values, method="mean"))
        assert abs(float(values.mean()) - mean) < worst * error
        error = float(azs.mcse(values, method="sd"))
        assert abs(float(values.std()) - deviation) < worst * error
        for level in (0.05, 0.5, 0.95):
            exact = float(np.interp(level, np.cumsum(mass), grid))
            below = (values < exact).astype(float)
            error = float(azs.mcse(below, method="mean"))
            assert abs(float(below.mean()) - level) < worst * error + 2e-3  # the grid's own error


def test_a_second_fit_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other data and another prior of the same kind: the compiled model serves them, too."""
    stats, prior = one_dimensional()
    first = bm.sample_posterior(stats, 0.5, prior=prior, draws=1000, tune=300, random_seed=1)
    monkeypatch.setattr("bayesmeta.posterior.compiled.compile_model", None)
    half = bm.TaskStatistics(stats.gram[:8], stats.moment[:8] + 1.0)
    second = bm.sample_posterior(half, 0.7, draws=1000, tune=300, random_seed=1)
    assert float(second["posterior"]["mu"].mean()) > float(first["posterior"]["mu"].mean()) + 0.3
    again = bm.sample_posterior(stats, 0.5, prior=prior, draws=1000, tune=300, random_seed=1)
    np.testing.assert_array_equal(again["posterior"]["mu"], first["posterior"]["mu"])


def test_a_tree_has_all_that_a_fit_needs() -> None:
    """Groups, labels, attributes, theta from its conditional."""
    stats, prior = one_dimensional()
    named = bm.TaskStatistics(
        stats.gram, stats.moment, stats.count, stats.energy, tuple("abcdefghijklmno"), ("slope",)
    )
    tree = bm.sample_posterior(named, 0.5, prior=prior, draws=1000, tune=300, theta=True)
    own = {"posterior", "sample_stats", "prior", "log_prior", "log_likelihood"}
    assert set(tree.children) == own | {"observed_data", "constant_data"}
    posterior = tree["posterior"].to_dataset()
    assert posterior["theta"].dims == ("chain", "draw", "task", "feature")
    assert posterior["task"].values.tolist() == list("abcdefghijklmno")
    assert posterior["Sigma"].dims[2:] == ("feature", "feature_bis")
    assert posterior["feature"].values.tolist() == ["slope"]
    assert tree.attrs["trusted"] == 1 and tree.attrs["noise_sd"] == 0.5
    # by iterated expectation: E[theta | data] = E[posterior mean given (mu, Sigma)]
    mus, covs = posterior["mu"].values.reshape(-1, 1), posterior["Sigma"].values.reshape(-1, 1, 1)
    exact = np.mean(
        [
            bm.GaussianPrior(mu, cov).posterior(stats.gram, stats.moment, 0.5)[0][:, 0]
            for mu, cov in zip(mus[::10], covs[::10], strict=True)
        ],
        axis=0,
    )
    np.testing.assert_allclose(
        posterior["theta"].mean(["chain", "draw"]).values[:, 0], exact, atol=0.06
    )
    bm.add_predictive(tree, "prior")
    wide, narrow = (tree[group]["mu"].std() for group in ("prior", "posterior"))
    assert wide > 2 * narrow
    moments = tree["prior_predictive"]["moment"]
    assert moments.sizes == {"chain": 1, "draw": 200, "task": 15, "feature": 1}
    assert moments["task"].values.tolist() == list("abcdefghijklmno")


@pytest.mark.filterwarnings("ignore::bayesmeta.FitWarning")
@pytest.mark.parametrize("sampler", ["nutpie", "pymc"])
def test_labels_that_are_numbers_stay_numbers(sampler: str) -> None:
    """In all groups, so that draws and data line up."""
    stats, prior = one_dimensional()
    named = bm.TaskStatistics(stats.gram, stats.moment, tasks=tuple(range(50, 65)), features=(7,))
    tree = bm.sample_posterior(
        named, 0.5, prior=prior, draws=20, tune=50, theta=True, nuts_sampler=sampler, cores=1
    )
    assert tree["observed_data"]["feature"].values.tolist() == [7]
    for group in ("posterior", "prior", "constant_data"):
        for dim in ("feature", "feature_bis"):
            assert tree[group][dim].values.tolist() == [7]
    assert (tree["posterior"]["mu"] - tree["prior"]["mu"].mean("draw")).sizes["feature"] == 1
    assert tree["posterior"]["task"].values.tolist() == list(range(50, 65))


def test_thetas_are_the_same_whatever_is_drawn_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks of three draws, or all at once."""
    tree = small_tree()
    whole = bm.add_theta(tree.copy(), random_seed=3)["posterior"]["theta"].values
    monkeypatch.setattr("bayesmeta.posterior.predictive.BLOCK", 50)
    parts = bm.add_theta(tree.copy(), random_seed=3)["posterior"]["theta"].values
    assert whole.shape == (4, 20, 15, 1) and whole.std() > 0
    np.testing.assert_array_equal(parts, whole)


def small_tree() -> xr.DataTree:
    """A fit of few draws."""
    stats, prior = one_dimensional()
    with pytest.warns(bm.FitWarning):
        return bm.sample_posterior(stats, 0.5, prior=prior, draws=20, tune=100)


def test_a_single_draw_brings_one_warning() -> None:
    """Ours; ArviZ's guess at confused dimensions would be an error here."""
    stats, prior = one_dimensional()
    with pytest.warns(bm.FitWarning, match="draws 1 .wanted >= 4.") as found:
        bm.sample_posterior(stats, 0.5, prior=prior, draws=1, tune=100)
    assert len(found) == 1


def test_trees_that_cannot_be_judged_are_refused() -> None:
    """Something else, or a tree from which something was lost: what is missing is said."""
    with pytest.raises(bm.InputError, match=r"tree must be a DataTree.* got 5"):
        bm.trustworthy(5)  # type: ignore[arg-type]
    tree = small_tree()
    for group, use in (
        ("posterior", bm.trustworthy),
        ("sample_stats", bm.trustworthy),
        ("observed_data", bm.add_theta),
        ("observed_data", bm.add_predictive),
        ("observed_data", bm.add_log_likelihood),
    ):
        cut = tree.copy()
        del cut[group]
        with pytest.raises(bm.InputError, match=f"the tree has no {group}"):
            use(cut)  # type: ignore[operator]
    cut = tree.copy()
    cut["sample_stats"] = xr.DataTree(tree["sample_stats"].to_dataset().drop_vars("diverging"))
    with pytest.raises(bm.InputError, match="sample_stats of the tree has no diverging"):
        bm.trustworthy(cut)


def test_energies_that_hardly_change_fail() -> None:
    """E-BFMI by hand: of a random walk of n steps about 6 / n, of noise about 2; of a chain
    that stands still there is none, which fails, too."""
    rng = np.random.default_rng(1)
    noise = rng.standard_normal((4, 500))
    tree = tree_of(rng.standard_normal((4, 500)), 2.0 + rng.random((4, 500)), fixed=False)
    for energy, good in ((noise, True), (noise.cumsum(axis=1), False), (0 * noise, False)):
        stats = tree["sample_stats"].to_dataset()
        tree["sample_stats"] = xr.DataTree(stats.assign(energy=(("chain", "draw"), energy)))
        (check,) = [check for check in bm.trustworthy(tree) if check.name == "E-BFMI"]
        assert check.passed == good
    assert "converged: the draws can be trusted" in str(
        bm.trustworthy(tree_of(noise, noise**2, False))
    )


def test_a_value_just_beyond_its_limit_is_seen_to_be() -> None:
    """R-hat 1.0104 is not shown as 1.01."""
    from bayesmeta.posterior.diagnostics import Check, Trust

    found = Trust([Check("R-hat", 1.0104, "<= 1.01", False, "mu")])
    assert "1.0104" in str(found)


def test_compiled_log_density_is_the_models() -> None:
    """What PyTensor compiles for nutpie, through its private doors, is PyMC's log-density."""
    stats, prior = one_dimensional()
    problem = check_problem(stats, 0.5, prior, "fused")
    target = Target(problem)
    assert list(target.shapes.values()) == [(1,), (1,), (0,)]
    for seed in range(3):
        point = np.random.default_rng(seed).standard_normal(target.size)
        value, gradient = target.log_density(point)
        mu, spread, partial = target.shapes
        parts = {mu: point[:1], spread: point[1:], partial: np.empty(0)}
        assert value == pytest.approx(log_density(problem, parts), rel=1e-10)
        step = 1e-6 * np.eye(target.size)
        slopes = [
            (target.log_density(point + one)[0] - target.log_density(point - one)[0]) / 2e-6
            for one in step
        ]
        np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-5)


def tree_of(mu: np.ndarray, cov: np.ndarray, fixed: bool) -> xr.DataTree:
    """A posterior with these draws (chain, draw) of d = 1, and a prior that fixes Sigma or not."""
    dims = ("chain", "draw", "feature")
    both = (*dims, "feature_bis")
    rng = np.random.default_rng(0)
    loose = np.full((1, 50, 1, 1), 2.0) if fixed else rng.random((1, 50, 1, 1))
    stats = {"diverging": (dims[:2], np.zeros(mu.shape, dtype=bool))}
    return xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(
                {"mu": (dims, mu[..., None]), "Sigma": (both, cov[..., None, None])}
            ),
            "prior": xr.Dataset({"mu": (dims, rng.random((1, 50, 1))), "Sigma": (both, loose)}),
            "sample_stats": xr.Dataset(stats),
        }
    )


def test_what_the_prior_fixes_is_no_failure_and_what_is_stuck_is() -> None:
    """A known covariance, constant but for rounding, is left out; a stuck chain is not; one chain
    or a single draw is never trusted."""
    rng = np.random.default_rng(1)
    mu = rng.standard_normal((4, 500))
    constant = 2.0 + 1e-16 * rng.standard_normal((4, 500))
    assert bool(bm.trustworthy(tree_of(mu, constant, fixed=True)))
    stuck = bm.trustworthy(tree_of(mu, constant, fixed=False))
    assert not stuck and "Sigma" in str(stuck)
    alone = bm.trustworthy(tree_of(mu[:1], constant[:1], fixed=True))
    assert [check.name for check in alone if not check.passed] == ["chains"]
    assert not bm.trustworthy(tree_of(mu[:, :1], constant[:, :1], fixed=True))


def test_interrupted_draws_are_not_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """nutpie returns what it has when it is interrupted; a chain that is short is no chain."""
    import nutpie

    from bayesmeta.posterior.quick import draw_quickly

    stats, prior = one_dimensional()
    problem = check_problem(stats, 0.5, prior, "fused")
    whole = nutpie.sample
    monkeypatch.setattr(nutpie, "sample", lambda made, **k: whole(made, **(k | {"draws": 20})))
    with pytest.raises(KeyboardInterrupt):
        draw_quickly(problem, draws=50, tune=50, seed=0, method="nuts")


def test_the_likelihood_refuses_other_dimensions() -> None:
    """A mean or root that does not fit the tasks is an error, not a number."""
    import pytensor.tensor as pt

    from bayesmeta.posterior.op import task_likelihood

    stats = Data(4, 2, 12).stats
    with pytest.raises(ValueError, match="the tasks have 2 features"):
        task_likelihood(np.zeros(3), np.eye(3), 1.0, stats)
    value = task_likelihood(pt.dvector("m"), pt.dmatrix("r"), 1.0, stats)
    with pytest.raises(ValueError, match="the tasks have 2 features"):
        value.eval({"m": np.zeros(3), "r": np.eye(3)}, mode=IN_PYTHON)


def test_a_likelihood_without_counts_is_refused() -> None:
    """Without counts and energies the numbers would not be log-likelihoods."""
    stats, prior = one_dimensional()
    bare = bm.TaskStatistics(stats.gram, stats.moment)
    tree = bm.sample_posterior(bare, 0.5, prior=prior, draws=1000, tune=300)
    with pytest.raises(bm.InputError, match="count and energy"):
        bm.add_log_likelihood(tree)
    bm.add_theta(tree, random_seed=4)
    assert tree["posterior"]["theta"].sizes["task"] == 15


def test_labels_that_files_cannot_hold_become_text() -> None:
    """Tuples and mixtures; whole numbers stay numbers."""
    gram, moment = np.ones((2, 1, 1)), np.ones((2, 1))
    labels = [(("a", 1), ("b", 2)), ("x", 3), (7, 9)]
    found = [bm.TaskStatistics(gram, moment, tasks=one).task_labels for one in labels]
    assert found == [["('a', 1)", "('b', 2)"], ["x", "3"], [7, 9]]


def test_a_large_level_costs_tasks_no_digits() -> None:
    """Means and standard deviations of tasks, shifted by 1e8: the same but for the shift."""
    from bayesmeta.posterior.mixture import of_tasks

    stats, prior = one_dimensional()
    tree = bm.sample_posterior(stats, 0.5, prior=prior, draws=1000, tune=300)
    mean, sd = of_tasks(tree).mixed[:2]
    far = tree.copy(deep=True)
    data, posterior = far["constant_data"].to_dataset(), far["posterior"].to_dataset()
    data["moment"] = data["moment"] + 1e8 * data["gram"].isel(feature_bis=0)
    posterior["mu"] = posterior["mu"] + 1e8
    far["constant_data"], far["posterior"] = xr.DataTree(data), xr.DataTree(posterior)
    moved, same = of_tasks(far).mixed[:2]
    np.testing.assert_allclose(same, sd, rtol=1e-5)
    np.testing.assert_allclose(moved - 1e8, mean, atol=1e-5)


def test_bad_fits_are_not_returned_silently() -> None:
    """Too few draws to trust: a warning that says why, and a false verdict with advice."""
    stats, prior = one_dimensional()
    with pytest.warns(bm.FitWarning, match="should not be trusted: .*ESS"):
        tree = bm.sample_posterior(stats, 0.5, prior=prior, draws=20, tune=100)
    verdict = bm.trustworthy(tree)
    assert not verdict and tree.attrs["trusted"] == 0
    text = str(verdict)
    assert "do not trust" in text and "draw more" in text
    tree["sample_stats"]["diverging"][:] = True
    del tree.attrs["diagnostics"]
    assert "divergences" in [check.name for check in bm.trustworthy(tree).failed]


def test_a_tree_keeps_its_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Computed once: read from the tree, also from a file, unless draws were taken off it."""
    import arviz as az

    from bayesmeta.posterior import diagnostics
    from bayesmeta.report.posterior import write_tree

    tree = small_tree()
    fresh = diagnostics.check_draws(tree)
    write_tree(tree, tmp_path / "a.nc")
    called: list[xr.DataTree] = []
    monkeypatch.setattr(diagnostics, "check_draws", lambda one: called.append(one) or fresh)
    for one in (tree, az.from_netcdf(tmp_path / "a.nc")):
        assert list(bm.trustworthy(one)) == list(fresh)
    assert not called
    bm.trustworthy(tree.isel(draw=slice(10)))
    assert len(called) == 1
    spoiled = tree.copy(deep=True)
    spoiled["sample_stats"]["diverging"][:] = True
    assert not bm.trustworthy(spoiled) and len(called) == 2  # other draws of the same number


def test_checks_without_a_number_are_kept_as_failures() -> None:
    """JSON has no NaN; what had none fails when it is read, too."""
    from bayesmeta.posterior.diagnostics import as_attribute

    rng = np.random.default_rng(1)
    tree = tree_of(rng.standard_normal((4, 500)), np.full((4, 500), 2.0), fixed=False)
    found = bm.trustworthy(tree)
    tree.attrs["diagnostics"] = as_attribute(found, tree)
    again = bm.trustworthy(tree)
    assert [check.name for check in again.failed] == [check.name for check in found.failed]
    assert any(np.isnan(check.value) for check in again)


def test_trust_is_what_arviz_finds_nothing_wrong_with() -> None:
    """``arviz.diagnose`` is true where something is wrong, with the same limits."""
    import arviz_stats as azs

    rng = np.random.default_rng(1)
    good, cov = rng.standard_normal((4, 500)), 2.0 + rng.random((4, 500))
    apart = good + np.arange(4)[:, None]
    slow = good.cumsum(axis=1)
    for mu in (good, apart, slow, good[:, :60]):
        tree = tree_of(mu, cov[:, : mu.shape[1]], fixed=False)
        wrong = azs.diagnose(tree, ess_threshold=400, show_diagnostics=False)
        assert bool(bm.trustworthy(tree)) != wrong
        assert wrong == (mu is not good)


def test_advice_has_options_for_every_argument() -> None:
    """In the words of the command line no check or status names an argument of Python's."""
    from bayesmeta.commands.table import in_options
    from bayesmeta.posterior.diagnostics import ADVICE

    assert in_options(ADVICE["ESS bulk"]) == "draw more (--draws, --tune)"
    assert "--target-accept" in in_options(ADVICE["divergences"])
    for advice in (*ADVICE.values(), *(status.advice for status in bm.Status)):
        assert "_" not in in_options(advice).replace("fit_prior", "")
        assert "{" not in in_options(advice) + advice


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"noise_sd": 0.0}, "noise_sd must be greater than 0"),
        ({"noise_sd": -1.0}, "noise_sd must be greater than 0"),
        ({"noise_sd": None}, "needs count and energy"),
        ({"nuts_sampler": "emcee"}, "unknown nuts_sampler 'emcee'"),
        ({"model": "magic"}, "unknown model 'magic'"),
        ({"noise_sd": "1"}, "noise_sd must be a number, got '1'"),
        ({"noise_sd": True}, "noise_sd must be a number, got True"),
        ({"draws": 0}, "draws must be at least 1"),
        ({"draws": 2.5}, "draws must be a whole number"),
        ({"tune": 0}, "tune must be at least 1 with nutpie"),
        ({"random_seed": -1}, "random_seed must be at least 0"),
        ({"random_seed": 2**64}, r"random_seed must be less than 2\*\*64"),
        ({"target_accept": 1.0}, "target_accept must be between 0 and 1"),
        ({"prior": bm.LKJ(scale=0.0)}, "scale must be greater than 0"),
        ({"prior": bm.LKJ(mean_sd=[1.0, -1.0])}, "mean_sd must be greater than 0"),
        ({"prior": bm.LKJ(mean=[1.0, 2.0, 3.0])}, "mean"),
        ({"prior": "wide"}, "prior must be LKJ"),
        ({"prior": bm.InverseWishart([0, 0], 1.0, 0.5, np.eye(2))}, "degrees must be greater"),
        ({"prior": bm.InverseWishart([0, 0], 1.0, 4.0, np.zeros((2, 2)))}, "positive definite"),
        ({"prior": KnownCovariance([[1, 1], [1, 1]])}, "cov must be positive definite"),
    ],
)
def test_bad_input_is_refused(
    arguments: dict[str, object], words: str, tasks: bm.TaskStatistics
) -> None:
    """Named, with what was wrong."""
    without = bm.TaskStatistics(tasks.gram, tasks.moment)
    with pytest.raises(bm.InputError, match=words):
        bm.sample_posterior(without, **({"noise_sd": 1.0} | arguments))  # type: ignore[arg-type]


def test_bad_statistics_are_refused() -> None:
    """NaN, one task, something else."""
    with pytest.raises(bm.InputError, match="moment"):
        bm.TaskStatistics(np.zeros((2, 1, 1)), [[np.nan], [1.0]])
    with pytest.raises(bm.InputError, match=r"1 task\(s\)"):
        bm.sample_posterior(bm.TaskStatistics(np.ones((1, 1, 1)), [[1.0]]), 1.0)
    with pytest.raises(bm.InputError, match="stats"):
        bm.sample_posterior("data.csv", 1.0)  # type: ignore[arg-type]
    rows = np.random.default_rng(0).standard_normal(40)
    dependent = bm.TaskStatistics.from_arrays(
        np.repeat(np.arange(10), 4), rows, np.stack([rows, 3 * rows], axis=1)
    )
    with pytest.raises(bm.InputError, match="linearly dependent"):
        bm.sample_posterior(dependent, 1.0)


def test_a_missing_package_is_said(
    tasks: bm.TaskStatistics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which one, and what to do, wherever it is missed."""
    from bayesmeta.posterior.quick import draw_quickly

    problem = check_problem(tasks, 1.0, None, "fused")
    for missing in ("pymc", "nutpie"):
        words = f"needs the package {missing}; install it"
        monkeypatch.setattr(
            "bayesmeta.posterior.model.find_spec", lambda name, no=missing: name != no or None
        )
        with pytest.raises(bm.InputError, match=words):
            bm.sample_posterior(tasks, 1.0)
        with pytest.raises(bm.InputError, match=words):
            draw_quickly(problem, draws=10, tune=10, seed=0)
    monkeypatch.setattr("bayesmeta.posterior.model.find_spec", lambda name: None)
    with pytest.raises(bm.InputError, match="needs the package pymc"):
        bm.build_model(tasks, 1.0)


def test_numbers_of_numpy_are_numbers() -> None:
    """The largest seed that nutpie takes, and settings that have to go into JSON."""
    stats, prior = one_dimensional()
    with pytest.warns(bm.FitWarning):
        tree = bm.sample_posterior(
            stats,
            np.float32(0.5),
            prior=prior,
            draws=np.int64(5),
            tune=np.int64(1),
            chains=np.int64(2),
            random_seed=2**64 - 1,
            target_accept=np.float64(0.8),
        )
    assert tree.attrs["noise_sd"] == 0.5 and tree["posterior"].sizes["draw"] == 5


def test_draws_from_the_priors_have_their_moments() -> None:
    """LKJ: variance of a correlation 1 / (2 eta + d - 1); inverse-Wishart: its mean.

    Size: a z-test of each at the budget's level.
    """
    rng, draws = np.random.default_rng(2), 40_000
    worst = st.norm.isf(size("models/prior-draws") / 12)
    for d, eta in ((2, 1.0), (4, 2.5)):
        roots = lkj_roots(rng, draws, d, eta)
        corr = (roots @ roots.transpose(0, 2, 1))[:, d - 1, 0]
        np.testing.assert_allclose(np.linalg.norm(roots, axis=2), 1.0, rtol=1e-12)
        variance = 1 / (2 * eta + d - 1)
        for values, expected in ((corr, 0.0), (corr**2, variance)):
            assert abs(values.mean() - expected) < worst * values.std() / np.sqrt(draws)
    prior = InverseWishart([1.0, 2.0], 3.0, 9.0, [[2.0, 0.5], [0.5, 1.0]]).settled(2)
    _, roots, _ = prior.draw(rng, draws)
    cov = roots @ roots.transpose(0, 2, 1)
    assert (np.triu(roots, 1) == 0).all()
    for i, j in ((0, 0), (1, 0)):
        expected = np.asarray(prior.scale)[i, j] / (9.0 - 3)
        assert abs(cov[:, i, j].mean() - expected) < worst * cov[:, i, j].std() / np.sqrt(draws)
    upper = bartlett_root(np.asarray(prior.scale))
    np.testing.assert_allclose(upper @ upper.T @ np.asarray(prior.scale), np.eye(2), atol=1e-12)


def test_chains_start_where_the_prior_is() -> None:
    """In the data's units: the default prior is centred at the data, and chains start there."""
    stats, _ = one_dimensional()
    scaled = bm.TaskStatistics(stats.gram, 1e4 * stats.moment)
    prior = bm.default_prior(scaled, 5e3)
    assert float(np.asarray(prior.mean)[0]) == pytest.approx(1e4, rel=0.4)
    problem = check_problem(scaled, 5e3, None, "fused")
    start, jitter = Target(problem).start()
    assert start[0] == np.asarray(prior.mean)[0] and 1e3 < jitter[0] < 1e5
