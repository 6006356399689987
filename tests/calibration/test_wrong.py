"""Worlds in which the model is wrong: their moments, their shapes, and what they do to the lab."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy.stats import kurtosis, norm, skew

import bayesmeta as bm
from bayesmeta.calibration.wrong import VARIANCES, WRONG, WrongFamily, noises, thetas
from tests.calibration import planted
from tests.calibration.planted import FAMILY
from tests.helpers import size

SHAPES = ["heavy-tailed theta", "clustered theta", "skewed theta"]
NOISES = ["heavy-tailed noise", "unequal noise"]
PRIOR = bm.GaussianPrior([1.0, -50.0, 0.0], [[1.0, 30.0, 0.0], [30.0, 2500.0, 0.0], [0.0] * 3])
"""Very different units, and a feature that is the same in all tasks."""


@pytest.mark.parametrize("name", SHAPES)
def test_thetas_have_the_moments_of_the_truth(name: str) -> None:
    """Null: means, variances and the covariance of 40,000 thetas are those of the prior, by their
    own standard errors: 5 comparisons for each of three shapes."""
    theta = thetas(WRONG[name], PRIOR, np.random.default_rng(1), 40_000)
    z = (theta[:, :2] - PRIOR.mean[:2]) / np.array([1.0, 50.0])
    parts = np.column_stack([z, z[:, 0] ** 2 - 1, z[:, 1] ** 2 - 1, z[:, 0] * z[:, 1] - 0.6])
    score = np.sqrt(len(z)) * parts.mean(axis=0) / parts.std(axis=0)
    assert np.abs(score).max() < norm.isf(size("lab/wrong-moments") / 2 / 21)
    np.testing.assert_array_equal(theta[:, 2], 0.0)


def test_shapes_are_not_normal() -> None:
    """Heavy tails, two clusters (flat), skewness: far from 0, where normals are within 0.1."""
    rng = np.random.default_rng(2)
    one = bm.GaussianPrior([0.0], [[4.0]])
    drawn = {name: thetas(WRONG[name], one, rng, 20_000)[:, 0] for name in ["nothing", *SHAPES]}
    assert abs(kurtosis(drawn["nothing"])) < 0.15 and abs(skew(drawn["nothing"])) < 0.1
    assert kurtosis(drawn["heavy-tailed theta"]) > 2
    assert kurtosis(drawn["clustered theta"]) < -1
    assert skew(drawn["skewed theta"]) > 1.7  # 2 of an exponential


def test_noise_has_the_right_variance_on_average() -> None:
    """Null: the variance of the noise of 2,000 tasks is 1, by its standard error over tasks; its
    own shape each: three comparisons with the moments' fifteen, and three of shape."""
    rng = np.random.default_rng(3)
    found = {name: noises(WRONG[name], rng, 2000, 30) for name in ["nothing", *NOISES]}
    for values in found.values():
        each = (values**2).mean(axis=1)
        score = np.sqrt(len(each)) * (each.mean() - 1) / each.std()
        assert abs(score) < norm.isf(size("lab/wrong-moments") / 2 / 21)
    assert kurtosis(found["heavy-tailed noise"], axis=None) > 2
    variances = (found["unequal noise"] ** 2).mean(axis=1)
    assert variances.std() > 2 * (found["nothing"] ** 2).mean(axis=1).std()
    assert np.mean(VARIANCES) == 1.0


def test_played_tasks_are_wrong_in_the_same_way() -> None:
    """Null: a task of a family gone wrong has theta and noise of those laws; its best reward is
    that of its theta, and the block of tasks is the tasks one by one."""
    from scipy.stats import ks_2samp

    wrong = WRONG["skewed theta"]
    family = WrongFamily.of(FAMILY, wrong)
    rng = np.random.default_rng(4)
    theta = np.array([family.draw(rng).theta for _ in range(1000)])
    other = thetas(wrong, FAMILY.prior, np.random.default_rng(5), 1000)
    for i in range(2):
        assert ks_2samp(theta[:, i], other[:, i]).pvalue > size("lab/wrong-moments") / 21
    block = family.draw_block(np.random.default_rng(6), 3)
    again = np.random.default_rng(6)
    for j in range(3):
        task = family.draw(again)
        np.testing.assert_array_equal(block.theta[j], task.theta)
        np.testing.assert_allclose(task.best, (task.theta @ task.actions).max(axis=-1))
    assert WrongFamily.of(FAMILY, WRONG["noise told too small"]) is FAMILY
    assert family.setting(3).bounds == FAMILY.told()


@pytest.fixture(scope="module")
def lab() -> xr.Dataset:
    """200 replications of two planted estimators in six worlds."""
    wrong = ["nothing", "heavy-tailed theta", "skewed theta", "unequal noise"]
    wrong += ["noise told too small", "noise told too large"]
    return bm.calibrate(
        FAMILY, tasks=25, estimators=["moment", planted.truthful], levels=[0.5, 0.95],
        replications=200, wrong=wrong, jobs=1,
    )  # fmt: skip


@pytest.mark.slow
def test_moments_are_unbiased_whatever_the_shape(lab: xr.Dataset) -> None:
    """Null: eqs. (10) and (11) ask for no law, so mean and covariance have no bias in any world
    but where the noise is told wrong: 5 quantities in 4 worlds."""
    found = bm.measures(lab).sel(tasks=25, estimator="moment")
    names = ["mu[x1]", "mu[x2]", "cov[x1, x1]", "cov[x2, x1]", "cov[x2, x2]"]
    score = (found.bias / found.bias_error).sel(quantity=names)
    right = score.drop_sel(wrong=["noise told too small", "noise told too large"])
    assert (abs(right) < norm.isf(size("lab/wrong-bias") / 2 / 20)).all()


@pytest.mark.slow
def test_noise_told_wrong_changes_what_is_taken_off(lab: xr.Dataset) -> None:
    """The data are the same, and eq. (11) takes off 0.8^2 or 1.2^2 of what it should."""
    one = lab.estimate.sel(estimator="moment", tasks=25, quantity=["cov[x1, x1]", "cov[x2, x2]"])
    small, right, large = (
        one.sel(wrong=name, drop=True)
        for name in ("noise told too small", "nothing", "noise told too large")
    )
    assert (small > right).all()
    np.testing.assert_allclose((small - right) / (right - large), 0.36 / 0.44)


@pytest.mark.slow
def test_the_next_theta_is_of_the_wrong_law_too(lab: xr.Dataset) -> None:
    """The true mean and covariance as a forecast: exact where the model is right, seen to be off
    where thetas are not normal; with the noise alone wrong the next theta is right."""
    found = bm.measures(lab).sel(tasks=25, estimator="truthful", level=0.5)
    score = (found.next_coverage - 0.5) / found.next_coverage_error
    limit = norm.isf(size("lab/wrong-next") / 2 / 2)
    assert (abs(score.sel(wrong=["nothing", "unequal noise"])) < limit).all()
    assert (score.sel(wrong=["heavy-tailed theta", "skewed theta"]) > 6).all()


@pytest.mark.slow
def test_a_table_goes_wrong_too() -> None:
    """Thetas and the noise of tasks of a table's own designs: same seed, other data; the noise of
    rows cannot be changed where only sums are kept."""
    sleep = bm.tabulate(bm.load_data("sleepstudy"), "Reaction ~ Days + (Days | Subject)").stats
    names = ["nothing", *SHAPES, "unequal noise", "noise told too large"]
    lab = bm.calibrate(
        sleep, estimators="moment", wrong=names, noise_sd="known", replications=4, jobs=1
    )
    alone = bm.calibrate(sleep, estimators="moment", noise_sd="known", replications=4, jobs=1)
    one = lab.sel(wrong="nothing", drop=True)
    np.testing.assert_array_equal(one.estimate.transpose(*alone.estimate.dims), alone.estimate)
    means = lab.estimate.sel(quantity="mu[Days]").values.reshape(4, 6)
    assert len(np.unique(means.round(9))) == 20  # where noise is told wrong, means are the same
    variance = lab.estimate.sel(quantity="cov[Days, Days]")
    assert (variance.sel(wrong="noise told too large") < variance.sel(wrong="nothing")).all()
    with pytest.raises(bm.InputError, match="has kept the sums only"):
        bm.calibrate(sleep, wrong="heavy-tailed noise", jobs=1)
    with pytest.raises(bm.InputError, match="needs noise_sd='known'"):
        bm.calibrate(sleep, wrong="noise told too large", jobs=1)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("heavy tailed theta", "unknown wrong.*did you mean 'heavy-tailed theta'"),
        ([], "wrong is empty"),
        (["nothing", "nothing"], "wrong has a name twice"),
        (3, "wrong must be a name"),
    ],
)
def test_bad_names(wrong: object, words: str) -> None:
    """One clear line."""
    with pytest.raises(bm.InputError, match=words):
        bm.calibrate(FAMILY, wrong=wrong, replications=1, jobs=1)  # type: ignore[arg-type]
