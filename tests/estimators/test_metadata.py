"""Tasks with metadata as a mixed model, beside dense Gaussians of all rewards."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import optimize

import bayesmeta as bm
from bayesmeta.checks import Array, InputError
from bayesmeta.estimators.designs import Coordinates

GAMMA = np.array([1.0, -0.5, 2.0, 0.7])
"""Of an intercept for each of two features, and of two covariates."""
SIGMA = np.array([[0.36, 0.12], [0.12, 0.2]])
NOISE = 0.5


class Planted:
    """Tasks of theta_n ~ N(Phi_n gamma, Sigma), with their rows; Phi_n = (I, X_n) or X_n alone."""

    def __init__(self, tasks: int = 30, intercept: bool = True, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.designs = rng.standard_normal((tasks, 2, 2)) + np.array([1.0, -0.3])
        if intercept:
            eye = np.tile(np.eye(2), (tasks, 1, 1))
            self.designs = np.concatenate([eye, self.designs], axis=2)
        self.gamma = GAMMA[4 - self.designs.shape[2] :]
        theta = self.designs @ self.gamma + bm.GaussianPrior([0, 0], SIGMA).sample(rng, tasks)
        self.rows = rng.standard_normal((tasks, 4, 2))
        self.rewards = np.einsum("nsd,nd->ns", self.rows, theta)
        self.rewards += NOISE * rng.standard_normal(self.rewards.shape)
        self.stats = bm.TaskStatistics.from_arrays(
            np.arange(tasks).repeat(4), self.rewards.ravel(), self.rows.reshape(-1, 2)
        )

    def regression(self, intercept: bool = False) -> Array:
        """Of all rewards on gamma; with an intercept before it where the designs have none."""
        own = np.einsum("nsd,ndp->nsp", self.rows, self.designs)
        parts = [self.rows, own] if intercept else [own]
        return np.concatenate(parts, axis=2).reshape(self.rewards.size, -1)

    def dense(self, cov: Array, noise_sd: float = NOISE) -> Array:
        """The covariance of all rewards."""
        n, steps, _ = self.rows.shape
        out = noise_sd**2 * np.eye(n * steps)
        for j, rows in enumerate(self.rows):
            here = slice(j * steps, (j + 1) * steps)
            out[here, here] += rows @ cov @ rows.T
        return out


def by_gls(x: Array, y: Array, cov: Array) -> tuple[Array, Array, Array]:
    """Generalised least squares, its covariance, and residuals."""
    inverse = np.linalg.inv(cov)
    spread = np.linalg.inv(x.T @ inverse @ x)
    found = spread @ x.T @ inverse @ y
    return found, spread, y - x @ found


def log_likelihood(x: Array, y: Array, cov: Array, restricted: bool) -> float:
    """Of all rewards, the mean maximised or integrated out."""
    _, spread, left = by_gls(x, y, cov)
    free = len(y) - (x.shape[1] if restricted else 0)
    value = free * math.log(2 * math.pi) + float(np.linalg.slogdet(cov)[1])
    value += float(left @ np.linalg.solve(cov, left))
    if restricted:
        value -= float(np.linalg.slogdet(spread)[1])
    return -value / 2


def maximum(value: Callable[[Array, float], float]) -> tuple[Array, float]:
    """Sigma and the noise where a likelihood of both is largest, found without derivatives."""

    def unpack(at: Array) -> tuple[Array, float]:
        root = np.array([[math.exp(at[0]), 0.0], [at[1], math.exp(at[2])]])
        return root @ root.T, math.exp(at[3])

    found = optimize.minimize(
        lambda at: -value(*unpack(at)),
        np.log([0.5, 1.0, 0.5, 0.5]),
        method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-10, "maxiter": 4000, "maxfev": 4000},
    )
    return unpack(found.x)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("method", ["reml", "ml"])
def test_likelihoods_are_those_of_all_rewards(method: str, intercept: bool) -> None:
    """Sigma, the noise, gamma, its covariance and the likelihood itself, by a dense Gaussian of all
    rewards and a search without derivatives. Where the designs have no intercept, one is added."""
    made = Planted(20, intercept)
    model = bm.with_metadata(made.stats, made.designs)
    assert model.has_intercept == intercept
    found = bm.fit_prior(model.stats, method=method)
    x, y = made.regression(not intercept), made.rewards.ravel()
    cov, noise_sd = maximum(
        lambda cov, noise: log_likelihood(x, y, made.dense(cov, noise), method == "reml")
    )
    np.testing.assert_allclose(found.prior.cov[:2, :2], cov, rtol=1e-4)
    assert found.noise_sd == pytest.approx(noise_sd, rel=1e-4)
    dense = made.dense(found.prior.cov[:2, :2], found.noise_sd or 0.0)
    gamma, spread, _ = by_gls(x, y, dense)
    np.testing.assert_allclose(model.gamma(found), gamma[-made.designs.shape[2] :], rtol=1e-8)
    np.testing.assert_allclose(
        model.gamma_cov(found), spread[-len(made.gamma) :, -len(made.gamma) :], rtol=1e-7
    )
    expected = np.zeros(2) if intercept else gamma[:2]
    np.testing.assert_allclose(model.offset(found), expected, rtol=1e-7, atol=1e-12)
    # with an intercept (m, b) is another name of gamma, whose volume is that of lift
    volume = float(np.linalg.slogdet(model.coordinates.lift)[1]) if intercept else 0.0
    value = log_likelihood(x, y, dense, method == "reml")
    assert found.log_likelihood is not None
    shift = -volume if method == "reml" else 0.0
    assert found.log_likelihood + shift == pytest.approx(value, abs=1e-6)
    known = bm.fit_prior(model.stats, NOISE, method)
    assert known.log_likelihood is not None and known.log_likelihood < found.log_likelihood


def test_the_prior_of_a_new_task() -> None:
    """N(Phi gamma, Sigma), with the error of gamma or without; Sigma alone has that of a task whose
    metadata were never varied."""
    made = Planted()
    model = bm.with_metadata(made.stats, made.designs)
    found = bm.fit_prior(model.stats, NOISE)
    phi = np.random.default_rng(9).standard_normal((2, 4))
    bare, whole = model.prior_of(phi, found, "mean"), model.prior_of(phi, found)
    for prior in (bare, whole):
        np.testing.assert_allclose(prior.mean, phi @ model.gamma(found), rtol=1e-9)
    np.testing.assert_array_equal(bare.cov, found.prior.cov[:2, :2])
    np.testing.assert_allclose(whole.cov - bare.cov, phi @ model.gamma_cov(found) @ phi.T, 1e-8)


@pytest.mark.parametrize("phi", [np.eye(2), np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]])])
def test_without_metadata_it_is_the_plain_model(phi: Array) -> None:
    """Phi = I, or any that is the same in all tasks and of full rank: the same statistics, so the
    same bits of every fit; gamma is what gives the mean."""
    made = Planted()
    model = bm.with_metadata(made.stats, np.tile(phi, (30, 1, 1)))
    for name in ("gram", "moment", "count", "energy"):
        np.testing.assert_array_equal(getattr(model.stats, name), getattr(made.stats, name))
    assert model.stats.varying is None and model.has_intercept
    found = bm.fit_prior(model.stats)
    np.testing.assert_allclose(phi @ model.gamma(found), found.prior.mean, rtol=1e-12)
    np.testing.assert_allclose(model.prior_of(phi, found, "mean").mean, found.prior.mean, 1e-12)
    assert len(model.gamma(found)) == phi.shape[1]


def test_columns_in_any_units_and_columns_that_say_nothing() -> None:
    """Covariates in other units, about another origin, or twice, and zeros: the same prior of a new
    task; gamma in the new units, and nothing for a column that others make up."""
    made = Planted()
    plain = bm.with_metadata(made.stats, made.designs)
    usual = bm.fit_prior(plain.stats, NOISE)
    units = np.array([1.0, 1.0, 1e-7, 1e9])
    scaled = bm.with_metadata(made.stats, made.designs * units)
    found = bm.fit_prior(scaled.stats, NOISE)
    np.testing.assert_allclose(scaled.gamma(found) * units, plain.gamma(usual), rtol=1e-5)
    far = made.designs + np.array([0, 0, 2000.0, 0])
    dates = bm.with_metadata(made.stats, far)
    moved = dates.gamma(bm.fit_prior(dates.stats, NOISE))
    np.testing.assert_allclose(moved[2:], plain.gamma(usual)[2:], rtol=1e-5)
    np.testing.assert_allclose(moved[:2], (plain.gamma(usual) - [2000 * moved[2]] * 4)[:2], 1e-5)
    idle = np.concatenate([made.designs, 3 * made.designs[:, :, 2:3], np.zeros((30, 2, 1))], 2)
    more = bm.with_metadata(made.stats, idle)
    assert more.stats.dim == plain.stats.dim and more.has_intercept
    wider = bm.fit_prior(more.stats, NOISE)
    expected = [*plain.gamma(usual), 0, 0]
    np.testing.assert_allclose(more.gamma(wider), expected, rtol=1e-6, atol=1e-12)
    phi = idle[0]
    np.testing.assert_allclose(
        more.prior_of(phi, wider).cov, plain.prior_of(phi[:, :4], usual).cov, rtol=1e-6
    )


def test_what_is_left_open() -> None:
    """An intercept for one feature alone: of the other the mean is beside Phi gamma. Coordinates
    take any gamma and offset there and back."""
    rng = np.random.default_rng(3)
    designs = np.concatenate([np.tile([[1.0], [0.0]], (9, 1, 1)), rng.normal(size=(9, 2, 1))], 2)
    made = Coordinates.of(designs)
    assert made.coefficients == 3
    coefficients = rng.normal(size=3)
    gamma, beside = made.lift @ coefficients, made.rest @ coefficients
    assert abs(beside[0]) < 1e-12 < abs(beside[1])
    means = made.features(designs) @ coefficients
    np.testing.assert_allclose(means, designs @ gamma + beside, rtol=1e-12, atol=1e-14)
    again = np.stack([made.features_of_new(design) for design in designs])
    np.testing.assert_allclose(again, made.features(designs), rtol=1e-12, atol=1e-14)


def test_labels() -> None:
    """Tasks keep theirs; coefficients are the features, then entries of gamma by name."""
    made = Planted(5)
    names = ["a", "b", "size", "age"]
    stats = bm.TaskStatistics(
        made.stats.gram, made.stats.moment, tasks=tuple("vwxyz"), features=("level", "slope")
    )
    model = bm.with_metadata(stats, made.designs, names)
    assert model.stats.features == ("level", "slope", "size", "age")
    assert model.stats.tasks == tuple("vwxyz") and model.names == tuple(names)
    assert repr(model) == "MetadataModel: 5 tasks, d = 2, gamma of 4"
    bare = bm.with_metadata(stats, made.designs[:, :, 2:])
    assert repr(bare).endswith("gamma of 2, and an intercept beside it")
    assert bare.stats.features == ("level", "slope", "gamma1", "gamma2")


def test_features_that_are_the_same_in_all_tasks_stay_so() -> None:
    """A coefficient without a variance whose mean depends on metadata: Sigma has none for it."""
    made = Planted()
    one = bm.TaskStatistics.trusted(
        made.stats.gram,
        made.stats.moment,
        made.stats.count,
        made.stats.energy,
        varying=(True, False),
    )
    model = bm.with_metadata(one, made.designs)
    assert model.stats.varying == (True, False, False, False)
    prior = model.prior_of(made.designs[0], bm.fit_prior(model.stats, NOISE), "mean")
    assert prior.cov[0, 0] > 0 and not prior.cov[1].any()


def test_bad_metadata_is_refused() -> None:
    made = Planted(6)
    stats, designs = made.stats, made.designs
    for given, words in (
        (designs[:5], r"shape \(5, 2, 4\), but there are 6 tasks of dimension 2"),
        (designs[:, :1], r"shape \(6, 1, 4\), but there are 6 tasks of dimension 2"),
        (designs[:, :, :0], "at least one column"),
        (designs[0], "designs must have"),
        (np.where(designs == designs.max(), np.nan, designs), "designs"),
    ):
        with pytest.raises(InputError, match=words):
            bm.with_metadata(stats, given)
    for names in (["a", "b", "c"], ["a", "a", "b", "c"], ["x1", "a", "b", "c"]):
        with pytest.raises(InputError, match="names must be 4 different labels"):
            bm.with_metadata(stats, designs, names)
    with pytest.raises(InputError, match="stats"):
        bm.with_metadata(designs, designs)  # type: ignore[arg-type]
    model, plain = bm.with_metadata(stats, designs), bm.fit_prior(stats, NOISE)
    with pytest.raises(InputError, match=r"has 2 coefficients, and the tasks .* 4; give that of"):
        model.gamma(plain)
    with pytest.raises(InputError, match="give an estimate from fit_prior"):
        model.gamma(plain.prior)  # type: ignore[call-overload]
    found = bm.fit_prior(model.stats, NOISE)
    with pytest.raises(InputError, match="design"):
        model.prior_of(designs[0, :, :3], found)
    with pytest.raises(InputError, match="use"):
        model.prior_of(designs[0], found, "draw")
    with pytest.raises(InputError, match="no covariance of its mean"):
        model.gamma_cov(found._replace(mean_cov=None))


@pytest.mark.slow
def test_the_posterior_of_gamma_is_gaussian_where_sigma_is_known() -> None:
    """Beside the closed form from all rewards: mean and covariance of gamma, and the prior of a new
    task; Phi without an intercept, too. Each mean within 4.5 of its errors."""
    for intercept in (True, False):
        made = Planted(12, intercept, seed=4)
        model = bm.with_metadata(made.stats, made.designs)
        p, dim, sd = len(made.gamma), model.stats.dim, 3.0
        whole = np.eye(dim)
        whole[:2, :2] = SIGMA
        tree = bm.sample_posterior(
            model.stats, NOISE, prior=bm.KnownCovariance(whole, 0.0, sd), random_seed=1
        )
        # (m, b) ~ N(0, sd^2 I); rest and lift say what that is of the intercept and gamma
        both = np.concatenate([model.coordinates.rest, model.coordinates.lift])
        both = both[2:] if intercept else both
        x, y = made.regression(not intercept), made.rewards.ravel()
        inverse = np.linalg.inv(made.dense(SIGMA))
        precision = x.T @ inverse @ x + np.linalg.inv(sd**2 * both @ both.T)
        spread = np.linalg.inv(precision)
        exact = spread @ x.T @ inverse @ y
        draws = model.gamma(tree)
        assert draws.dims == ("chain", "draw", "coefficient")
        flat = draws.values.reshape(-1, p)
        own = spread[-p:, -p:]
        allowed = 4.5 * np.sqrt(np.diag(own) / 1000)
        assert (np.abs(flat.mean(axis=0) - exact[-p:]) < allowed).all()
        np.testing.assert_allclose(np.cov(flat.T), own, rtol=0.15, atol=0.1 * own.max())
        phi = np.random.default_rng(9).standard_normal((2, p))
        prior = model.prior_of(phi, tree)
        at = phi if intercept else np.concatenate([np.eye(2), phi], axis=1)
        error = 4.5 * np.sqrt(np.diag(at @ spread @ at.T) / 1000)
        assert (np.abs(prior.mean - at @ exact) < error).all()
        np.testing.assert_allclose(prior.cov, SIGMA + at @ spread @ at.T, rtol=0.15, atol=0.02)
        np.testing.assert_allclose(model.prior_of(phi, tree, "mean").cov, SIGMA, rtol=1e-9)
        np.testing.assert_allclose(
            model.offset(tree), np.zeros(2) if intercept else exact[:2], atol=0.05
        )
