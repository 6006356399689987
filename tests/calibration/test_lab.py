"""The lab is itself calibrated: planted estimators come out as they must."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binomtest, norm

import bayesmeta as bm
from tests.calibration import planted
from tests.calibration.planted import FAMILY
from tests.helpers import size

MEANS = ["mu[x1]", "mu[x2]"]


@pytest.fixture(scope="module")
def lab() -> xr.Dataset:
    """400 replications of planted estimators beside usual ones."""
    estimators = ["moment", planted.known, planted.halved, planted.truthful]
    return bm.calibrate(FAMILY, tasks=20, estimators=estimators, replications=400, jobs=1)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "factor"), [("known", 1.0), ("halved", 0.5)])
def test_known_coverage_of_the_mean(lab: xr.Dataset, name: str, factor: float) -> None:
    """Null: generalised least squares with the true Sigma covers mu with exactly the level, its
    intervals halved with 2 Phi(z / 2) - 1. Exact binomial tests; 16 comparisons in all."""
    one = lab.sel(estimator=name, tasks=20, quantity=MEANS)
    covered = ((one.low <= one.truth) & (one.truth <= one.high)).sum("replication")
    for level in lab.level.values:
        chance = 2 * norm.cdf(factor * norm.isf((1 - level) / 2)) - 1
        for count in covered.sel(level=level).values:
            assert binomtest(int(count), 400, chance).pvalue > size("lab/known-coverage") / 16


@pytest.mark.slow
def test_wrong_intervals_are_called_wrong(lab: xr.Dataset) -> None:
    """The exact interval of the halved ones' coverage excludes the level, at all levels."""
    found = bm.measures(lab).sel(estimator="halved", tasks=20, quantity=MEANS)
    assert (found.coverage_high < found.level).all()


@pytest.mark.slow
def test_the_truth_forecasts_the_next_task(lab: xr.Dataset) -> None:
    """Null: ellipsoids of the true prior hold the next theta with their level; the PIT of its
    first one is uniform. No estimate has a better log or energy score than the truth on average."""
    from scipy.stats import kstest

    one = lab.sel(estimator="truthful", tasks=20)
    for level in lab.level.values:
        count = round(float(one.inside.sel(level=level).sum()) * 20)
        assert binomtest(count, 400 * 20, level).pvalue > size("lab/next-task") / 7
    for values in (one.pit_distance, *one.pit.transpose("varying", ...)):
        assert kstest(values, "uniform").pvalue > size("lab/next-task") / 7
    found = bm.measures(lab).sel(tasks=20)
    for score in ("log_score", "energy_score"):
        assert found[score].sel(estimator="moment") > found[score].sel(estimator="truthful")


@pytest.mark.slow
def test_claimed_errors_and_bias_of_the_planted(lab: xr.Dataset) -> None:
    """Null: the mean of generalised least squares has no bias and the error it states."""
    found = bm.measures(lab).sel(estimator="known", tasks=20, quantity=MEANS)
    limit = norm.isf(size("lab/bias") / 8)
    assert (abs(found.bias / found.bias_error) < limit).all()
    assert (abs(found.se_ratio - 1) / found.se_ratio_error < limit).all()


@pytest.mark.slow
def test_monte_carlo_errors_are_the_spread_of_repeated_labs(lab: xr.Dataset) -> None:
    """Null: over 20 labs of 20 replications, measures spread as their errors say, so that sums of
    squared standard scores are chi-squared. Two quantities of two estimators, five measures.

    Those of a lab of 20 are noisy, so the errors are pooled over the labs.
    """
    from scipy.stats import chi2

    labs = [bm.measures(lab.isel(replication=slice(20 * k, 20 * k + 20))) for k in range(20)]
    every = xr.concat(labs, "lab").sel(tasks=20, quantity=MEANS, estimator=["moment", "known"])
    levels = {"width": 0.9, "coverage": 0.5, "interval_score": 0.5}
    for name in ("bias", "rmse", *levels):
        one, error = every[name], every[f"{name}_error"]
        if name in levels:
            one, error = one.sel(level=levels[name]), error.sel(level=levels[name])
        squares = ((one - one.mean("lab")) ** 2).sum("lab") / (error**2).mean("lab")
        chance = chi2.cdf(squares, 19)
        limit = size("lab/monte-carlo-error") / 40
        assert ((chance > limit) & (chance < 1 - limit)).all()


def test_failures_are_counted_and_shown() -> None:
    """Whatever a function does, its replications stay in the record, with the reason."""
    bad = [planted.failing, planted.wrong_type, planted.wrong_intervals]
    lab = bm.calibrate(FAMILY, tasks=20, estimators=bad, replications=40, jobs=1)
    found = bm.measures(lab).sel(tasks=20)
    failed = found.failed.sel(estimator="failing")
    assert 0 < failed < 1
    assert found.replications.sel(estimator="failing") == round(40 * (1 - float(failed)))
    problems = json.loads(lab.attrs["problems"])
    assert problems["failing"] == {"ZeroDivisionError: planted failure": round(40 * float(failed))}
    (text,) = problems["wrong_type"]
    assert "must return PriorEstimate" in text and "not a dict" in text
    assert found.failed.sel(estimator="wrong_type") == 1
    assert found.coverage.sel(estimator="wrong_type").isnull().all()
    (text,) = problems["wrong_intervals"]
    assert text.startswith("no intervals:") and "mu[x9]" in text
    assert found.failed.sel(estimator="wrong_intervals") == 0
    assert (found.available.sel(estimator="wrong_intervals") == 0).all()


def test_estimators_do_not_see_what_others_do_to_the_data() -> None:
    """All get the same, also after a function that changes what it is given."""
    options: dict[str, Any] = {"tasks": 20, "replications": 2, "jobs": 1}
    both = bm.calibrate(FAMILY, estimators=[planted.careless, "moment"], **options)
    alone = bm.calibrate(FAMILY, estimators=[planted.known, "moment"], **options)
    np.testing.assert_array_equal(both.estimate, alone.estimate)
    np.testing.assert_array_equal(both.low.isel(estimator=1), alone.low.isel(estimator=1))


@pytest.mark.slow
def test_measures_by_hand(lab: xr.Dataset) -> None:
    """Bias, errors, coverage and scores as their formulas say, of one estimator."""
    found = bm.measures(lab).sel(estimator="moment", tasks=20, quantity="sd[x1]")
    one = lab.sel(estimator="moment", tasks=20, quantity="sd[x1]")
    gap = (one.estimate - one.truth).values
    assert found.bias == pytest.approx(gap.mean())
    assert found.bias_error == pytest.approx(gap.std(ddof=1) / 20)
    assert found.rmse == pytest.approx(np.sqrt((gap**2).mean()))
    assert found.empirical_se == pytest.approx(gap.std(ddof=1))
    low, high = (one[name].sel(level=0.9).values for name in ("low", "high"))
    there = np.isfinite(low)
    inside = (low <= 1.0) & (high >= 1.0)
    at = found.sel(level=0.9)
    assert at.coverage == pytest.approx(inside.sum() / there.sum())
    exact = binomtest(int(inside.sum()), int(there.sum())).proportion_ci(0.95, "exact")
    assert (at.coverage_low, at.coverage_high) == pytest.approx((exact.low, exact.high))
    score = (high - low) + 20 * (np.maximum(low - 1, 0) + np.maximum(1 - high, 0))
    assert at.interval_score == pytest.approx(np.nanmean(score))
    assert at.available == pytest.approx(there.mean())


def test_exploration_drawn_at_once_has_the_law_of_played_steps() -> None:
    """Null: statistics of exploration steps drawn at once have the law of those that an agent plays
    from sets of five. Two-sample Kolmogorov-Smirnov tests of three sums."""
    from dataclasses import replace

    from scipy.stats import ks_2samp

    from bayesmeta.calibration.steps import explored_at_once, sums_of
    from bayesmeta.simulation.played import statistics_of

    row = replace(bm.ROSTER["UKTS"], exploration=bm.agents.first_steps(12))
    played = statistics_of(FAMILY, row, 600, 3, opening=True)
    drawn = sums_of(*explored_at_once(FAMILY, 12, 600, np.random.default_rng(4)))
    for value in (
        lambda one: one.gram[:, 0, 0],
        lambda one: one.gram[:, 0, 1],
        lambda one: one.moment[:, 1],
        lambda one: one.energy,
    ):
        chance = ks_2samp(value(played), value(drawn)).pvalue
        assert chance > size("lab/explored-at-once") / 4
    np.testing.assert_array_equal(drawn.count, played.count)


def test_operator_norm_and_dominance() -> None:
    """Of a widened covariance: its error is the widening's, and it dominates."""
    names = ["moment", "moment-widened", "moment-widened(10)"]
    found = bm.measures(bm.calibrate(FAMILY, tasks=30, estimators=names, replications=5, jobs=1))
    one = found.sel(tasks=30)
    assert one.dominates.sel(estimator="moment-widened") == 1
    assert (one.cov_error.diff("estimator") != 0).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"estimators": ["rmel"]}, "unknown estimator.*did you mean 'reml'"),
        ({"estimators": []}, "no estimators"),
        ({"estimators": [planted.known, planted.known]}, "two estimators are called 'known'"),
        ({"estimators": [3]}, "must be a name"),
        ({"estimators": {" ": "reml"}}, "an estimator has no name"),
        ({"replications": 0}, "replications must be at least 1"),
        ({"replications": 2.5}, "replications must be a whole number"),
        ({"levels": [0.5, 1.0]}, "level must be below 1"),
        ({"levels": [0.0]}, "level must be greater than 0"),
        ({"levels": []}, "levels is empty"),
        ({"levels": "high"}, "level must be a number, got 'high'"),
        ({"tasks": "10"}, "tasks must be a whole number, got '10'"),
        ({"tasks": []}, "tasks is empty"),
        ({"tasks": 1}, "tasks must be at least 2"),
        ({"intervals": []}, "intervals is empty"),
        ({"intervals": "hdi"}, "none of the estimators .* has hdi"),
        ({"intervals": "walt"}, "unknown intervals.*'wald'"),
        ({"noise_sd": "unknown"}, "noise_sd must be"),
        ({"noise_sd": -1.0}, "noise_sd must be greater"),
        ({"explore": bm.agents.no_exploration()}, "no exploration steps"),
        ({"explore": "nobody"}, "unknown agent"),
        ({"explore": bm.agents.first_steps(99)}, "horizon"),
        ({"truth": bm.GaussianPrior([0.0], [[1.0]])}, "truth has dimension 1"),
        ({"explore": bm.agents.first_steps(1), "estimators": ["moment"]}, "every estimator failed"),
        ({"where": 5}, "where must be"),
    ],
)
def test_bad_input(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    """One clear line, and nothing is written but what was computed."""
    arguments: dict[str, Any] = {"where": FAMILY, "replications": 2, "jobs": 1} | change
    with pytest.raises(bm.InputError, match=words):
        bm.calibrate(arguments.pop("where"), **arguments)


def test_tables_that_determine_nothing() -> None:
    """A table whose tasks say nothing of a feature, or of the noise, is refused."""
    gram = np.tile(np.array([[2.0, 2.0], [2.0, 2.0]]), (5, 1, 1))
    with pytest.raises(bm.InputError, match="linearly dependent"):
        bm.calibrate(bm.TaskStatistics(gram, np.ones((5, 2))), noise_sd=1.0, jobs=1)
    once = bm.TaskStatistics.from_arrays(np.arange(6), np.arange(6.0), np.ones((6, 1)))
    with pytest.raises(bm.InputError, match="no data can be drawn like these"):
        bm.calibrate(once, jobs=1)
    two = bm.TaskStatistics.from_arrays([1, 1, 2, 2], [1.0, 2, 3, 5], [[1.0], [2], [1], [2]])
    with pytest.raises(bm.InputError, match="split needs the steps"):
        bm.calibrate(two, estimators="split", jobs=1)
    with pytest.raises(bm.InputError, match="explore is for"):
        bm.calibrate(two, explore="KTS", jobs=1)


@pytest.mark.slow
def test_a_table_of_ones_own() -> None:
    """Designs are kept, labels too; other numbers of tasks are drawn from them; moments have no
    intervals of correlations, and the noise is a quantity."""
    sleep = bm.tabulate(bm.load_data("sleepstudy"), "Reaction ~ Days + (Days | Subject)").stats
    lab = bm.calibrate(sleep, tasks=[18, 40], replications=20, jobs=1)
    assert list(lab.quantity.values[:2]) == ["mu[intercept]", "mu[Days]"]
    assert lab.quantity.values[-1] == "sigma"
    fitted = bm.fit_prior(sleep)
    np.testing.assert_allclose(lab.truth.sel(quantity="sigma"), fitted.noise_sd)
    found = bm.measures(lab).sel(level=0.95)
    assert (found.coverage.sel(quantity="mu[Days]") > 0.7).all()
    widths = found.width.sel(quantity="mu[Days]")
    assert (widths.sel(tasks=40) < widths.sel(tasks=18)).all()
    assert (found.available.sel(quantity="corr[Days, intercept]", estimator="moment") == 0).all()


@pytest.mark.slow
def test_other_data_and_intervals() -> None:
    """All steps of an agent, split halves, profile and bootstrap, a wrong noise: all have answers,
    under labels that tell kinds of intervals apart."""
    lab = bm.calibrate(
        FAMILY, tasks=20, explore="UKTS", estimators=["ml", "split", "gls"],
        intervals=["wald", "wald-natural", "profile", "bootstrap"], replications=2, jobs=1,
        noise_sd=0.6,
    )  # fmt: skip
    assert list(lab.interval.values[:4]) == ["wald", "wald-natural", "profile", "bootstrap"]
    assert list(lab.estimator.values[:4]) == [f"ml, {kind}" for kind in lab.interval.values[:4]]
    assert (lab.failed == 0).all() and lab.attrs["problems"] == "{}"
    ml = lab.isel(estimator=slice(4)).sel(quantity="mu[x1]", level=0.95)
    assert (ml.low < ml.estimate).all() and (ml.high > ml.estimate).all()


@pytest.mark.slow
def test_the_posterior_and_a_prior_over_priors() -> None:
    """Ranks where the truth is drawn; central and shortest intervals; a prior as an estimator."""
    truth = bm.LKJ(mean_sd=2.0, scale=1.0)
    lab = bm.calibrate(
        FAMILY, tasks=25, truth=truth, intervals=["central", "hdi"],
        estimators={"posterior": "posterior", "wide": bm.LKJ(mean_sd=9.0)}, replications=3, jobs=1,
    )  # fmt: skip
    assert list(lab.estimator.values) == [
        "posterior, central", "posterior, hdi", "wide, central", "wide, hdi"
    ]  # fmt: skip
    assert (lab["rank"] >= 0).all() and (lab["rank"] <= 99).all()
    width = (lab.high - lab.low).sel(level=0.95)
    assert width.isel(estimator=1).mean() < width.isel(estimator=0).mean()
    assert float(lab.truth.std("replication").min()) > 0
    assert (lab.failed == 0).all()


@pytest.mark.slow
def test_same_seed_same_bits(tmp_path: Path) -> None:
    """On 1 and 2 processes, and stopped and resumed."""

    def run(replications: int = 6, **options: Any) -> xr.Dataset:
        estimators = ["moment", "reml", planted.halved]
        return bm.calibrate(
            FAMILY, tasks=[10, 15], estimators=estimators, replications=replications, **options
        )

    whole = run(jobs=1)
    xr.testing.assert_identical(run(jobs=2), whole)
    part = run(3, jobs=1, folder=tmp_path / "lab")
    xr.testing.assert_identical(part, whole.isel(replication=slice(3)))
    files = {path for path in (tmp_path / "lab").rglob("*") if path.is_file()}
    xr.testing.assert_identical(run(jobs=1, folder=tmp_path / "lab"), whole)
    assert files <= {path for path in (tmp_path / "lab").rglob("*") if path.is_file()}
    assert not run(jobs=1, random_seed=1).equals(whole)


def test_an_estimator_more_changes_no_data() -> None:
    """``split`` needs the steps themselves: of tasks that are played, too, each its own."""
    family = bm.paper_family(dim=2, horizon=20)
    alone, beside = (
        bm.calibrate(
            family, tasks=6, estimators=names, replications=2, explore="UKTS", random_seed=1, jobs=1
        )
        for names in (["moment"], ["moment", "split"])
    )
    own = beside.estimate.sel(estimator="moment")
    np.testing.assert_allclose(own, alone.estimate.sel(estimator="moment"), rtol=1e-9)
