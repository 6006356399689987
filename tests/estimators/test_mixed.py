"""Features whose coefficients are the same in all tasks, and rows with weights."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

import bayesmeta as bm
from bayesmeta.checks import Array
from bayesmeta.estimators.fit import largest_likelihood
from bayesmeta.estimators.likelihood import evaluate, pack
from bayesmeta.estimators.maximum import Options
from bayesmeta.estimators.restated import FeatureUnits
from bayesmeta.gaussian import lower_root
from bayesmeta.statistics import TaskStatistics


class Rows(NamedTuple):
    """A table with weights; the likelihood is computed from covariance matrices of all rewards."""

    task: NDArray[np.intp]
    rewards: Array
    features: Array
    weights: Array
    varying: NDArray[np.bool_]

    @property
    def stats(self) -> TaskStatistics:
        return TaskStatistics.from_arrays(
            self.task, self.rewards, self.features, weights=self.weights, varying=self.varying
        )

    def exact(self, cov: Array, variance: float, restricted: bool) -> tuple[float, Array, Array]:
        """Log-likelihood, the best mean and its covariance."""
        x, y = self.features, self.rewards
        omega = np.diag(variance / self.weights)
        for task in np.unique(self.task):
            here = np.flatnonzero(self.task == task)
            omega[np.ix_(here, here)] += x[here] @ cov @ x[here].T
        inverse = np.linalg.inv(omega)
        mean_cov = np.linalg.inv(x.T @ inverse @ x)
        mean = mean_cov @ x.T @ inverse @ y
        left = y - x @ mean
        freedom = len(y) - (x.shape[1] if restricted else 0)
        value = freedom * math.log(2 * math.pi) + np.linalg.slogdet(omega)[1]
        value += left @ inverse @ left
        if restricted:
            value -= np.linalg.slogdet(mean_cov)[1]
        return -0.5 * float(value), mean, mean_cov

    def largest(self, restricted: bool) -> float:
        """The highest of three searches by BFGS, in the varying entries alone."""
        units = np.abs(self.features).max(axis=0)
        own, d = int(self.varying.sum()), len(units)
        lower, block = np.tril_indices(own), np.ix_(self.varying, self.varying)

        def loss(x: Array) -> float:
            root, cov = np.zeros((own, own)), np.zeros((d, d))
            root[lower] = x[:-1]
            cov[block] = root @ root.T
            return -self.exact(cov / np.outer(units, units), math.exp(x[-1]), restricted)[0]

        starts = [np.append(size * np.eye(own)[lower], 0.0) for size in (0.1, 1.0, 3.0)]
        return max(-float(minimize(loss, one, method="BFGS").fun) for one in starts)


def rows(seed: int) -> Rows:
    """A random table: an intercept, features of any unit, one of them constant within tasks."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(6, 14)), int(rng.integers(2, 5))
    varying = np.zeros(d, dtype=bool)
    varying[rng.permutation(d)[: rng.integers(1, d)]] = True
    task = np.repeat(np.arange(n), rng.integers(2, 6, size=n))
    features = rng.standard_normal((len(task), d)) * 10.0 ** rng.integers(-2, 3, size=d)
    features[:, 0] = 1.0
    features[:, -1] = rng.standard_normal(n)[task]
    weights = rng.uniform(0.5, 3.0, len(task))
    theta = 1.0 + np.where(varying, rng.standard_normal((n, d)), 0.0)
    rewards = (features * (theta / np.abs(features).max(axis=0))[task]).sum(axis=1)
    rewards += rng.standard_normal(len(task)) / np.sqrt(weights)
    return Rows(task, rewards, features, weights, varying)


@pytest.mark.parametrize("method", ["ml", "reml"])
@pytest.mark.parametrize("seed", range(8))
def test_the_largest_likelihood(seed: int, method: str) -> None:
    """Value, mean and its covariance are those of whole covariance matrices; none is higher."""
    made, restricted = rows(seed), method == "reml"
    found = bm.fit_prior(made.stats, method=method)
    assert found.status in (bm.Status.OK, bm.Status.BOUNDARY)
    assert found.noise_sd is not None and found.mean_cov is not None
    value, mean, mean_cov = made.exact(found.prior.cov, found.noise_sd**2, restricted)
    assert found.log_likelihood == pytest.approx(value, abs=1e-9)
    np.testing.assert_allclose(found.prior.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(found.mean_cov, mean_cov, rtol=1e-8, atol=1e-12 * mean_cov.max())
    assert value > made.largest(restricted) - 1e-8
    assert not found.prior.cov[~made.varying].any()


@pytest.mark.parametrize("restricted", [False, True])
def test_the_gradient_is_zero_at_the_maximum(restricted: bool) -> None:
    """In the varying block, where the maximum is inside; not in the rest, which is held at 0."""
    made = rows(3)
    found = bm.fit_prior(made.stats, method="reml" if restricted else "ml")
    assert found.status is bm.Status.OK and found.noise_sd is not None
    packed = pack(made.stats, np.eye(made.stats.dim))
    root = lower_root(found.prior.cov)
    point = evaluate(packed, found.prior.mean, root, found.noise_sd**2, restricted)
    sd = np.sqrt(np.diag(found.prior.cov))
    assert np.abs(np.outer(sd, sd) * point.gradient).max() < 1e-6
    assert abs(point.noise_gradient) < 1e-6
    fixed = point.gradient[~made.varying][:, ~made.varying]
    assert np.abs(fixed).max() > 1e-3


@pytest.mark.parametrize("seed", [0, 4, 5, 7])
def test_order_and_units_of_features_do_not_matter(seed: int) -> None:
    made = rows(seed)
    usual = bm.fit_prior(made.stats)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(made.varying))
    units = 10.0 ** rng.integers(-3, 4, size=len(order))
    other = made._replace(features=made.features[:, order] * units, varying=made.varying[order])
    found = bm.fit_prior(other.stats, method="ml"), bm.fit_prior(other.stats)
    assert found[0].log_likelihood == pytest.approx(
        bm.fit_prior(made.stats, method="ml").log_likelihood, abs=1e-8
    )
    back = np.outer(units, units)
    scale = np.abs(usual.prior.cov).max()
    block = np.ix_(order, order)
    np.testing.assert_allclose(found[1].prior.mean * units, usual.prior.mean[order], rtol=1e-5)
    np.testing.assert_allclose(
        found[1].prior.cov * back, usual.prior.cov[block], rtol=1e-4, atol=1e-6 * scale
    )
    assert found[1].status is usual.status
    if usual.cov_sd is not None and found[1].cov_sd is not None:
        np.testing.assert_allclose(found[1].cov_sd * back, usual.cov_sd[block], rtol=1e-3)


def test_far_units_do_not_matter() -> None:
    """Units that have to be restated: the same digits."""
    made = rows(7)
    usual = bm.fit_prior(made.stats)
    power = 2.0**200
    far = bm.fit_prior(made._replace(features=made.features * power).stats)
    np.testing.assert_allclose(far.prior.cov * power**2, usual.prior.cov, rtol=1e-6)
    assert far.log_likelihood == pytest.approx(
        usual.log_likelihood - len(made.varying) * math.log(power), abs=1e-6
    )


def test_saying_that_all_differ_changes_no_bit() -> None:
    made = rows(7)
    plain = TaskStatistics.from_arrays(made.task, made.rewards, made.features)
    said = TaskStatistics.from_arrays(
        made.task, made.rewards, made.features, varying=[True] * plain.dim
    )
    one, two = bm.fit_prior(plain), bm.fit_prior(said)
    assert said.varying is None and (one.prior.cov == two.prior.cov).all()
    assert (one.prior.mean == two.prior.mean).all() and one.log_likelihood == two.log_likelihood


def test_a_singular_maximum_is_said_to_be() -> None:
    """Tasks that differ less than their noise would let them: none of it is left for Sigma."""
    made, rng = rows(1), np.random.default_rng(0)
    noise = rng.standard_normal(len(made.task))
    noise -= (np.bincount(made.task, noise) / np.bincount(made.task))[made.task]
    theta = np.arange(1.0, len(made.varying) + 1)
    made = made._replace(
        rewards=made.features @ theta + noise,
        weights=np.ones(len(noise)),
        varying=np.arange(len(theta)) == 0,
    )
    found = bm.fit_prior(made.stats)
    assert found.status is bm.Status.BOUNDARY and found.cov_sd is None
    assert not found.prior.cov.any()
    pooled = np.linalg.lstsq(made.features, made.rewards)[0]
    np.testing.assert_allclose(found.prior.mean, pooled, rtol=1e-6)


def test_standard_errors_are_those_of_the_curvature() -> None:
    """With many tasks the expected information is near what second differences show; entries of
    features that do not differ have none."""
    rng = np.random.default_rng(5)
    n, size = 400, 6
    task = np.repeat(np.arange(n), size)
    features = np.column_stack([np.ones(n * size), rng.standard_normal((n * size, 2))])
    features[:, 1] = rng.standard_normal(n)[task]
    theta = np.array([1.0, 0.5, -1.0]) + rng.standard_normal((n, 3)) * [1.0, 0.0, 0.7]
    rewards = (features * theta[task]).sum(axis=1) + rng.standard_normal(n * size)
    stats = TaskStatistics.from_arrays(task, rewards, features, varying=[True, False, True])
    found = bm.fit_prior(stats, 1.0)
    assert found.cov_sd is not None and found.status is bm.Status.OK
    assert not found.cov_sd[1].any() and not found.cov_sd[:, 1].any()
    packed = pack(stats, np.eye(3))
    entries = [(0, 0), (0, 2), (2, 2)]

    def slope(i: int, j: int, gap: float) -> list[float]:
        cov = found.prior.cov.copy()
        cov[i, j] += gap
        cov[j, i] = cov[i, j]
        point = evaluate(packed, found.prior.mean, lower_root(cov), 1.0, True)
        return [point.gradient[a, b] * (1 if a == b else 2) for a, b in entries]

    gap = 1e-4
    curvature = [
        (np.array(slope(i, j, gap)) - np.array(slope(i, j, -gap))) / (2 * gap) for i, j in entries
    ]
    sd = np.sqrt(np.diag(np.linalg.inv(-np.array(curvature))))
    np.testing.assert_allclose([found.cov_sd[one] for one in entries], sd, rtol=0.1)


@pytest.mark.parametrize("tasks", [40, 150])
def test_many_features_that_do_not_differ(tasks: int) -> None:
    """More than the kernels take at a time, few of which differ; against least squares in the
    metric of the estimate."""
    rng = np.random.default_rng(tasks)
    d, size = 18, 8
    task = np.repeat(np.arange(tasks), size)
    features = rng.standard_normal((len(task), d))
    varying = np.arange(d) % 9 == 3
    theta = 1.0 + np.where(varying, rng.standard_normal((tasks, d)), 0.0)
    rewards = (features * theta[task]).sum(axis=1) + rng.standard_normal(len(task))
    made = Rows(task, rewards, features, np.ones(len(task)), varying)
    found = bm.fit_prior(made.stats)
    assert found.status is bm.Status.OK and found.noise_sd is not None
    value, mean, _ = made.exact(found.prior.cov, found.noise_sd**2, True)
    assert found.log_likelihood == pytest.approx(value, abs=1e-8)
    np.testing.assert_allclose(found.prior.mean, mean, rtol=1e-8)
    for i, j in ((3, 3), (3, 12), (12, 12)):
        for gap in (-1e-3, 1e-3):
            cov = found.prior.cov.copy()
            cov[i, j] += gap
            cov[j, i] = cov[i, j]
            assert made.exact(cov, found.noise_sd**2, True)[0] < value


def test_a_start_near_the_end_saves_steps() -> None:
    """A start is given in the order of the features, which the search changes."""
    rng = np.random.default_rng(2)
    task = np.repeat(np.arange(150), 5)
    features = rng.standard_normal((750, 3))
    theta = rng.standard_normal((150, 3)) * [0.0, 2.0, 1.0]
    rewards = (features * theta[task]).sum(axis=1) + rng.standard_normal(750)
    stats = TaskStatistics.from_arrays(task, rewards, features, varying=[False, True, True])
    scratch = largest_likelihood(stats, None, True, Options())
    start = (scratch.prior.mean, scratch.prior.cov)
    warm = largest_likelihood(stats, None, True, Options(start=start))
    assert scratch.iterations is not None and warm.iterations is not None
    assert warm.iterations < scratch.iterations
    assert warm.log_likelihood == pytest.approx(scratch.log_likelihood, abs=1e-8)


def test_posteriors_of_tasks() -> None:
    """What does not differ is its mean in every task, for certain; the rest by Bayes' rule with
    the fixed part taken off."""
    made = rows(7)
    stats, found = made.stats, bm.fit_prior(made.stats)
    assert found.noise_sd is not None
    mean, cov = bm.task_posteriors(stats, found)
    fixed = ~made.varying
    assert (mean[:, fixed] == found.prior.mean[fixed]).all()
    assert not cov[:, fixed].any() and not cov[:, :, fixed].any()
    block = np.ix_(made.varying, made.varying)
    less = stats.moment - stats.gram[:, :, fixed] @ found.prior.mean[fixed]
    own = bm.GaussianPrior(found.prior.mean[made.varying], found.prior.cov[block])
    expected = own.posterior(stats.gram[:, *block], less[:, made.varying], found.noise_sd)
    np.testing.assert_allclose(mean[:, made.varying], expected[0], rtol=1e-9)
    np.testing.assert_allclose(cov[:, *block], expected[1], rtol=1e-7)


def test_a_covariance_given_for_gls() -> None:
    """Zeros where features do not differ are taken, anything else is refused."""
    made = rows(7)
    cov = np.diag(np.where(made.varying, 1e-2, 0.0))
    found = bm.fit_prior(made.stats, 1.0, "gls", cov=cov)
    value, mean, _ = made.exact(cov, 1.0, False)
    np.testing.assert_allclose(found.prior.mean, mean, rtol=1e-9)
    assert found.log_likelihood == pytest.approx(value, abs=1e-9)
    with pytest.raises(bm.InputError, match=r"cov must be 0 in the rows and columns of features"):
        bm.fit_prior(made.stats, 1.0, "gls", cov=np.eye(len(cov)))


def test_methods_that_know_no_such_features_refuse_them() -> None:
    stats = rows(7).stats
    for method in ("moment", "moment-clipped"):
        with pytest.raises(bm.InputError, match=rf"{method}.* x2 do not; use ml or reml"):
            bm.fit_prior(stats, 1.0, method)
    with pytest.raises(bm.InputError, match=r"split.* x2 do not"):
        bm.fit_prior((stats, stats), method="split")


def test_weights_of_rows() -> None:
    """Weights that are all alike change the unit of the noise, and nothing else."""
    made = rows(7)
    four = bm.fit_prior(made._replace(weights=np.full(len(made.task), 4.0)).stats)
    one = bm.fit_prior(made._replace(weights=np.ones(len(made.task))).stats)
    assert four.noise_sd is not None and one.noise_sd is not None
    assert four.noise_sd == pytest.approx(2 * one.noise_sd, rel=1e-6)
    assert four.log_likelihood == pytest.approx(one.log_likelihood, abs=1e-8)
    np.testing.assert_allclose(four.prior.cov, one.prior.cov, rtol=1e-5, atol=1e-9)


def test_what_differs_and_weights_go_along() -> None:
    """Statistics made of statistics keep them; parts that disagree are refused."""
    made = rows(7)
    stats = made.stats
    assert stats.log_weights is not None
    units = FeatureUnits(3, np.arange(stats.dim))
    for other in (stats.centred()[0], units.inside(stats)):
        assert other.varying == stats.varying and other.log_weights is stats.log_weights
    some = stats.chosen(slice(None, None, 2))
    assert some.varying == stats.varying and some.log_weights is not None
    np.testing.assert_array_equal(some.log_weights, stats.log_weights[::2])
    plain = TaskStatistics(
        stats.gram, stats.moment, stats.count, stats.energy, varying=stats.varying
    )
    both = TaskStatistics.concatenate([plain, made._replace(task=made.task + 100).stats])
    assert both.varying == stats.varying and both.log_weights is not None
    np.testing.assert_array_equal(
        both.log_weights, np.append(np.zeros(len(stats)), stats.log_weights)
    )
    everything = TaskStatistics(stats.gram, stats.moment, stats.count, stats.energy)
    assert TaskStatistics.concatenate([everything, everything]).log_weights is None
    with pytest.raises(bm.InputError, match="the same features to differ"):
        TaskStatistics.concatenate([everything, stats])


def test_columns_of_a_table() -> None:
    """``fixed`` and ``weights`` of ``from_frame`` name columns."""
    import pandas as pd

    frame = pd.DataFrame(
        {"task": [1, 1, 2], "y": [1.0, 2.0, 4.0], "x": [0.5, 1.0, 2.0], "z": 1.0, "w": [1, 2, 4]}
    )
    stats = TaskStatistics.from_frame(
        frame, "task", "y", ["x"], intercept=True, fixed="z", weights="w"
    )
    assert stats.features == ("intercept", "x", "z") and stats.varying == (True, True, False)
    np.testing.assert_allclose(stats.gram[:, 0, 0], [3.0, 4.0])
    np.testing.assert_allclose(stats.moment[:, 1], [0.5 + 4.0, 32.0])
    assert stats.log_weights is not None
    np.testing.assert_allclose(stats.log_weights, np.log([2.0, 4.0]))
    for change, message in (
        ({"fixed": ["x"]}, "'x' is named twice"),
        ({"weights": "v"}, "no column 'v'"),
        ({"weights": "y"}, "'y' is the reward"),
    ):
        with pytest.raises(bm.InputError, match=message):
            TaskStatistics.from_frame(frame, "task", "y", ["x"], **change)  # type: ignore[arg-type]
    with pytest.raises(bm.InputError, match="features is empty"):
        TaskStatistics.from_frame(frame, "task", "y", [], fixed=["z"])
