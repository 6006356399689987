"""Fits of tables unlike the examples: known noise, far origins, labels as pandas leaves them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesmeta as bm

FORMULA = "y ~ x + z + (x | g)"


def table(offset: float = 0.0) -> pd.DataFrame:
    """Thirty tasks of eight rows; x differs between tasks, z does not."""
    rng = np.random.default_rng(0)
    g = np.arange(30).repeat(8)
    x, z = rng.normal(size=240), rng.normal(size=240)
    own = rng.normal(size=(30, 2)) * [1.0, 0.7]
    y = 1 + own[g, 0] + (0.5 + own[g, 1]) * x + 0.3 * z + 0.5 * rng.normal(size=240)
    return pd.DataFrame({"g": g, "x": x + offset, "z": z, "y": y, "v": 0.25})


@pytest.mark.parametrize("formula", ["y ~ x + z + (1 | g)", FORMULA])
@pytest.mark.parametrize("known", [True, False])
def test_profile_intervals_hold_the_estimates(formula: str, known: bool) -> None:
    """One or two features that differ, the noise known or not."""
    fit = bm.fit(table(), formula, **({"noise_var": "v"} if known else {}))
    ends, values = fit.confint("profile"), fit.summary()["estimate"]
    assert (ends["low"] < values).all() and (values < ends["high"]).all()
    assert ("sigma" in values.index) is not known


def test_errors_do_not_depend_on_the_origin() -> None:
    """Those of the slope and of the noise, as of years."""
    near, far = (bm.fit(table(offset), FORMULA).summary()["error"] for offset in (0.0, 2000.0))
    for name in ("mu[x]", "mu[z]", "sd[x]", "sigma"):
        assert far[name] == pytest.approx(near[name], rel=1e-3)
    estimate = bm.fit(table(), FORMULA).estimate
    variances = np.diag(estimate.cov_sd)[1]
    assert near["sd[x]"] == pytest.approx(variances / (2 * np.sqrt(estimate.prior.cov[1, 1])))


def test_labels_are_the_same_as_numbers_and_text() -> None:
    """3, 3.0 and "3" are one task; no label is none."""
    fit, rows = bm.fit(table(), FORMULA), table().iloc[24:26]
    expected = fit.predict(rows)
    for labels in ([3.0, 3.0], ["3", "3"]):
        pd.testing.assert_frame_equal(fit.predict(rows.assign(g=labels)), expected)
    with pytest.raises(bm.InputError, match="without a task"):
        fit.predict(rows.assign(g=[3.0, np.nan]))
    assert fit.tasks().loc[(3, "x"), "sd"] > 0


def test_given_rows_are_those_of_one_new_task() -> None:
    """Known tasks beside it stay what they are."""
    fit, frame = bm.fit(table(), FORMULA), table()
    own = frame.head(4).assign(g=99)
    asked = frame.iloc[24:26].assign(g=[3, 99])
    found = fit.predict(asked, given=own)
    with pytest.warns(bm.NewTaskWarning, match="know 99$"):
        plain = fit.predict(asked)
    assert found["mean"].iloc[0] == plain["mean"].iloc[0]
    assert found["sd"].iloc[1] < plain["sd"].iloc[1]
    for bad in (frame.head(4), frame.head(20).assign(g=np.arange(20) + 50), own.head(0)):
        with pytest.raises(bm.InputError, match="given"):
            fit.predict(asked, given=bad)


def test_rewards_of_known_variances_need_them() -> None:
    """Means do not."""
    fit = bm.fit(table(), FORMULA, noise_var="v")
    new = table().head(2)
    assert len(fit.predict(new.drop(columns="v"))) == 2
    assert (fit.predict(new, rewards=True)["sd"] > fit.predict(new)["sd"]).all()
    with pytest.raises(bm.InputError, match="variances of their own"):
        fit.predict(np.ones((1, 3)), rewards=True)


def test_options_that_are_none() -> None:
    """Named, with those that there are."""
    with pytest.raises(bm.InputError, match="methd"):
        bm.fit(table(), FORMULA, methd="ml")
