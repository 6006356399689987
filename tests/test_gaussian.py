"""GaussianPrior: validation, the posterior of eq. (4), singular covariances, draws, widening."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesmeta.checks import InputError
from bayesmeta.gaussian import GaussianPrior


def a_prior(rng: np.random.Generator, dim: int, rank: int | None = None) -> GaussianPrior:
    half = rng.standard_normal((dim, dim if rank is None else rank))
    return GaussianPrior(rng.standard_normal(dim), half @ half.T)


def data(rng: np.random.Generator, dim: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    actions, rewards = rng.standard_normal((steps, dim)), rng.standard_normal(steps)
    return actions.T @ actions, actions.T @ rewards


@pytest.mark.parametrize(
    ("mean", "cov", "message"),
    [
        ([], np.zeros((0, 0)), "prior mean is empty"),
        ([[0.0]], [[1.0]], "prior mean must have shape"),
        ([0.0, math.nan], np.eye(2), "prior mean has a NaN"),
        ([0.0, 0.0], np.eye(3), "prior covariance must have shape"),
        ([0.0, 0.0], [[1.0, 0.5], [0.4, 1.0]], "prior covariance is not symmetric"),
        ([0.0, 0.0], np.diag([1.0, -1.0]), "prior covariance is not positive semi-definite"),
        ([0.0, 0.0], np.diag([1.0, math.inf]), "prior covariance has a NaN or infinite"),
        ("zero", np.eye(1), "prior mean must be an array of numbers"),
    ],
)
def test_bad_priors_are_refused_by_name(mean: object, cov: object, message: str) -> None:
    """The message names the argument and what is wrong with it."""
    with pytest.raises(InputError, match="^" + message):
        GaussianPrior(mean, cov)


def test_a_prior_does_not_change() -> None:
    """Neither through its own arrays nor through those it was made from."""
    mean, cov = np.zeros(2), np.eye(2)
    prior = GaussianPrior(mean, cov)
    mean[0] = cov[0, 0] = 9.0
    assert prior.mean[0] == 0.0 and prior.cov[0, 0] == 1.0 and prior.dim == 2
    for entry in (prior.mean, prior.cov):
        with pytest.raises(ValueError, match="read-only"):
            entry[0] = 1.0


@given(dim=st.integers(1, 8), steps=st.integers(0, 12), seed=st.integers(0, 2**31))
def test_posterior_is_eq_4(dim: int, steps: int, seed: int) -> None:
    """The square-root form against eq. (4) with plain inverses, with few and with many steps."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((dim, dim))
    prior = GaussianPrior(rng.standard_normal(dim), half @ half.T + 0.1 * np.eye(dim))
    gram, moment = data(rng, dim, steps)
    mean, cov = prior.posterior(gram, moment, 0.7)
    precision = np.linalg.inv(prior.cov)
    expected = np.linalg.inv(precision + gram / 0.49)
    np.testing.assert_allclose(cov, expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(
        mean, expected @ (precision @ prior.mean + moment / 0.49), rtol=1e-7, atol=1e-8
    )
    assert (cov == cov.T).all()


def test_posterior_by_hand() -> None:
    """One dimension, prior N(1, 4), noise sd 2, two unit steps of rewards 3 and 5: N(3, 4/3)."""
    mean, cov = GaussianPrior([1.0], [[4.0]]).posterior(np.array([[2.0]]), np.array([8.0]), 2.0)
    # precision 1/4 + 2/4 = 3/4; mean (1/4 + 8/4) / (3/4) = 3
    assert cov[0, 0] == pytest.approx(4 / 3) and mean[0] == pytest.approx(3.0)


def test_posterior_is_batched_over_leading_axes() -> None:
    """A batch of shape (2, 3) gives what its members give one by one."""
    rng = np.random.default_rng(1)
    prior = a_prior(rng, 4)
    pairs = [[data(rng, 4, 5) for _ in range(3)] for _ in range(2)]
    gram = np.array([[g for g, _ in row] for row in pairs])
    moment = np.array([[m for _, m in row] for row in pairs])
    mean, cov = prior.posterior(gram, moment, 1.3)
    assert mean.shape == (2, 3, 4) and cov.shape == (2, 3, 4, 4)
    for i in range(2):
        for j in range(3):
            one_mean, one_cov = prior.posterior(gram[i, j], moment[i, j], 1.3)
            np.testing.assert_allclose(mean[i, j], one_mean, rtol=1e-12)
            np.testing.assert_allclose(cov[i, j], one_cov, rtol=1e-12, atol=1e-15)


def test_posterior_without_data_is_the_prior() -> None:
    """A zero gram leaves mean and covariance, also of a singular prior."""
    for rank in (3, 1):
        prior = a_prior(np.random.default_rng(2), 3, rank)
        mean, cov = prior.posterior(np.zeros((3, 3)), np.zeros(3), 1.0)
        np.testing.assert_allclose(mean, prior.mean, rtol=1e-12)
        np.testing.assert_allclose(cov, prior.cov, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_posterior_of_a_singular_prior_is_the_limit(rank: int) -> None:
    """As a covariance of rank below d is approached by Sigma + eps I, so is its posterior.

    The error of the limit is of order eps (times conditioning), so it must fall with eps.
    """
    rng = np.random.default_rng(3)
    prior = a_prior(rng, 4, rank)
    gram, moment = data(rng, 4, 6)
    mean, cov = prior.posterior(gram, moment, 0.5)
    for eps in (1e-3, 1e-6):
        near = np.linalg.inv(np.linalg.inv(prior.cov + eps * np.eye(4)) + gram / 0.25)
        shifted = prior.mean + near @ (moment - gram @ prior.mean) / 0.25
        np.testing.assert_allclose(cov, near, atol=20 * eps)
        np.testing.assert_allclose(mean, shifted, atol=2000 * eps)
    # nothing is learned where the prior is certain
    null = np.linalg.svd(prior.cov)[0][:, rank:]
    assert np.abs(null.T @ (mean - prior.mean)).max() < 1e-6


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("rank", [0, 1, 3, 5])
def test_cholesky_of_any_covariance(rank: int, scale: float) -> None:
    """L is lower triangular with L L' = Sigma and no negative diagonal, whatever the rank."""
    prior = a_prior(np.random.default_rng(rank), 5, rank)
    prior = GaussianPrior(prior.mean, scale * prior.cov)
    root = prior.cholesky
    assert (np.triu(root, 1) == 0).all() and (np.diag(root) >= 0).all()
    np.testing.assert_allclose(root @ root.T, prior.cov, atol=1e-9 * scale)


@pytest.mark.parametrize("power", [-500, -305, 0, 40, 305, 500])
def test_the_root_of_a_singular_covariance_has_no_units(power: int) -> None:
    """Powers of two change no bit of it, also where LAPACK would restate the matrix."""
    rows = np.random.default_rng(0).standard_normal((20, 3, 2)).round(2)
    singular = 0
    for row in rows:
        cov = row @ row.T
        try:
            np.linalg.cholesky(cov)
        except np.linalg.LinAlgError:
            singular += 1
        root = GaussianPrior(np.zeros(3), np.ldexp(cov, 2 * power)).cholesky
        plain = GaussianPrior(np.zeros(3), cov).cholesky
        np.testing.assert_array_equal(np.ldexp(root, -power), plain)
    assert singular > 3


@pytest.mark.parametrize("units", [(1e-18, 1e18, 1.0), (1e8, 1.0, 1e-8), (1e16, 1.0, 1e16)])
def test_a_singular_prior_in_mixed_units(units: tuple[float, ...]) -> None:
    """Root and posterior are those of the same prior in unit 1, feature by feature."""
    own = np.array(units)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        half = rng.integers(1, 4, (3, 2)).astype(float)
        gram, moment = data(rng, 3, 4)
        cov = half @ half.T
        prior = GaussianPrior(np.zeros(3), own[:, None] * cov * own)
        root = prior.cholesky / own[:, None]
        np.testing.assert_allclose(root @ root.T, cov, rtol=1e-12)
        mean, spread = prior.posterior(gram / own[:, None] / own, moment / own, 1.0)
        inside = np.eye(3) + gram @ cov
        np.testing.assert_allclose(mean / own, cov @ np.linalg.solve(inside, moment), rtol=1e-9)
        expected = cov @ np.linalg.inv(inside)
        np.testing.assert_allclose(spread / own[:, None] / own, expected, rtol=1e-8, atol=1e-9)


def test_cholesky_with_zero_variance_in_the_middle() -> None:
    """A coordinate that does not vary gets a zero row."""
    root = GaussianPrior(np.zeros(3), np.diag([4.0, 0.0, 9.0])).cholesky
    np.testing.assert_allclose(root, np.diag([2.0, 0.0, 3.0]), atol=1e-12)


@pytest.mark.parametrize("rank", [2, 3])
def test_sample_maps_standard_normals(rank: int) -> None:
    """A draw is mean + L z for the generator's standard normals z, one or many at a time."""
    prior = a_prior(np.random.default_rng(4), 3, rank)
    z = np.random.default_rng(5).standard_normal((7, 3))
    draws = prior.sample(np.random.default_rng(5), 7)
    np.testing.assert_allclose(draws, [prior.mean + prior.cholesky @ row for row in z], rtol=1e-12)
    one = prior.sample(np.random.default_rng(5))
    assert one.shape == (3,)
    np.testing.assert_allclose(one, draws[0], rtol=1e-12)


def test_widen_adds_to_every_eigenvalue() -> None:
    """Sigma + s I, eq. (12): a wider prior, the mean untouched, the original unchanged."""
    prior = a_prior(np.random.default_rng(6), 4, 2)
    wide = prior.widen(0.3)
    np.testing.assert_allclose(
        np.linalg.eigvalsh(wide.cov), np.linalg.eigvalsh(prior.cov) + 0.3, atol=1e-12
    )
    assert (wide.mean == prior.mean).all() and (prior.widen(0.0).cov == prior.cov).all()


@pytest.mark.parametrize("radius", [-1e-9, math.nan, math.inf, "much"])
def test_widen_refuses(radius: object) -> None:
    """A negative or undefined radius would narrow the prior in silence."""
    with pytest.raises(InputError, match=r"^radius must be"):
        a_prior(np.random.default_rng(7), 2).widen(radius)


def test_widen_refuses_what_is_no_number_any_more() -> None:
    """The sum may be infinite where its terms are not."""
    with pytest.raises(InputError, match="NaN or infinite"):
        GaussianPrior([0.0], [[1e308]]).widen(1e308)


def test_posterior_refuses() -> None:
    """Shapes that do not fit and noise that is not positive, each by name."""
    prior = GaussianPrior(np.zeros(2), np.eye(2))
    for noise in (0.0, -1.0, math.nan):
        with pytest.raises(InputError, match=r"^noise_sd must be"):
            prior.posterior(np.eye(2), np.zeros(2), noise)
    for gram, moment in (
        (np.eye(3), np.zeros(3)),
        (np.eye(2), np.zeros((1, 2))),
        (np.zeros((4, 2, 2)), np.zeros((3, 2))),
        (np.zeros(2), np.zeros(2)),
    ):
        with pytest.raises(InputError, match=r"^gram and moment must end in"):
            prior.posterior(gram, moment, 1.0)
    for wrong in ("text", [["a"]], np.eye(2) + 1j, np.eye(2).astype("timedelta64[s]"), None):
        with pytest.raises(InputError, match=r"^gram "):
            prior.posterior(wrong, np.zeros(2), 1.0)
        with pytest.raises(InputError, match=r"^(moment |gram and moment)"):
            prior.posterior(np.eye(2), wrong, 1.0)


def test_trusted_priors_behave_like_checked_ones() -> None:
    """``trusted`` skips the checks and nothing else."""
    checked = a_prior(np.random.default_rng(8), 3)
    trusted = GaussianPrior.trusted(checked.mean, checked.cov, checked.cholesky)
    gram, moment = data(np.random.default_rng(9), 3, 4)
    for one, other in zip(
        trusted.posterior(gram, moment, 1.0), checked.posterior(gram, moment, 1.0), strict=True
    ):
        assert (one == other).all()
    assert trusted.dim == 3


@pytest.mark.parametrize(
    "gram, moment, message",
    [
        ([[np.nan, 0.0], [0.0, 1.0]], [0.0, 0.0], "NaN or infinite"),
        ([[1.0, 0.0], [0.0, 1.0]], [0.0, np.inf], "NaN or infinite"),
        ([[1.0, 0.5], [0.0, 1.0]], [0.0, 0.0], "not symmetric"),
        ([[1.0, 0.0], [0.0, -1e-3]], [0.0, 0.0], "negative eigenvalues"),
        ([[1.0, 2.0], [2.0, 1.0]], [0.0, 0.0], "negative eigenvalues"),
        ([[0.0, 1e-3], [1e-3, 0.0]], [0.0, 0.0], "negative eigenvalues"),
        ([[1e12, 0.0], [0.0, -1.0]], [0.0, 0.0], "negative eigenvalues"),
        ([[1e12, 8e3], [0.0, 1.0]], [0.0, 0.0], "not symmetric"),
        ([[1e220, 0.0], [0.0, 1.0]], [0.0, 0.0], "not within 1e-100"),
        ([[0.0, 0.0], [0.0, 0.0]], [100.0, 0.0], "moment lies outside the range of gram"),
        ([[1e12, 0.0], [0.0, 0.0]], [1e6, 1e-9], "moment lies outside the range of gram"),
        ([[1e-9, 1e-3], [1e-3, 1e3]], [1.0, -1e6], "moment lies outside the range of gram"),
    ],
)
@pytest.mark.parametrize("batch", [False, True])
def test_a_posterior_refuses_what_is_no_gram(
    gram: list[list[float]], moment: list[float], message: str, batch: bool
) -> None:
    """NaN, asymmetry, negative eigenvalues and rewards of no step, also in one of many tasks."""
    prior = GaussianPrior([0.0, 0.0], np.eye(2))
    V, b = np.array(gram), np.array(moment)
    if batch:
        V, b = np.stack([np.eye(2), V]), np.stack([b * 0 if np.isfinite(b).all() else b, b])
    with pytest.raises(InputError, match=message):
        prior.posterior(V, b, 1.0)
    prior.posterior(np.diag([1.0, 0.0]), [1.0, 0.0], 1.0)  # singular is none of these


@pytest.mark.parametrize("units", [(1.0, 1.0, 1.0), (1e-9, 1.0, 1e9)])
@pytest.mark.parametrize("steps", [1, 2, 40])
def test_moments_of_dependent_features_are_in_the_range_of_their_gram(
    units: tuple[float, ...], steps: int
) -> None:
    """Rounding is not refused: neither that of rewards far larger than their sum, nor of units."""
    prior = GaussianPrior(np.zeros(3), np.diag(1 / np.square(units)))
    for seed in range(30):
        rng = np.random.default_rng(seed)
        actions = rng.standard_normal((steps, 2)) @ rng.standard_normal((2, 3)) * np.array(units)
        rewards = 1e6 * rng.standard_normal(steps)
        prior.posterior(actions.T @ actions, actions.T @ rewards, 1.0)
        # the same action again and again, with rewards that sum to 0 but for rounding
        actions, rewards = actions[:1].repeat(steps, axis=0), rewards - rewards.mean()
        prior.posterior(actions.T @ actions, actions.T @ rewards, 1.0)


def test_a_posterior_beyond_floats_is_refused_without_a_warning() -> None:
    """Warnings are errors here, so one would be raised in place of the refusal."""
    prior = GaussianPrior([0.0], [[1e200]])
    with pytest.raises(InputError, match="leaves the range of floating point"):
        prior.posterior([[1e200]], [3e200], 1e-100)


@pytest.mark.parametrize(
    "arguments, message",
    [((5,), "^rng must be Generator, got 5"), ((np.random.default_rng(0), 1.5), "^size must be")],
)
def test_sample_refuses(arguments: tuple[object, ...], message: str) -> None:
    """A seed in place of a generator, and a size that is no whole number."""
    with pytest.raises(InputError, match=message):
        GaussianPrior([0.0], [[1.0]]).sample(*arguments)
