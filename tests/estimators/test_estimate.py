"""How an estimate of the prior is shown."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import bayesmeta as bm


@pytest.mark.parametrize("status", bm.Status)
def test_a_status_has_advice_and_survives_a_pickle(status: bm.Status) -> None:
    """As text for Python, the value itself; studies carry statuses between processes."""
    assert str(status.advice) == status.value and "{" not in status.advice
    assert pickle.loads(pickle.dumps(status)) is status


def test_an_estimate_is_shown_in_short() -> None:
    """Status, mean with its standard error, sd, correlations and noise; in HTML, too."""
    cov = np.array([[4.0, -1.0], [-1.0, 1.0]])
    prior = bm.GaussianPrior([251.40523, 10.0], cov)
    estimate = bm.PriorEstimate(
        prior, bm.Status.OK, mean_cov=np.diag([46.6, 0.25]), noise_sd=25.5918
    )
    lines = repr(estimate).splitlines()
    assert lines[0] == "PriorEstimate, OK: estimated from data"
    assert lines[2].split() == ["x1", "251.4", "±", "6.83", "2"]
    assert lines[3].split() == ["x2", "10", "±", "0.5", "1", "-0.50"]
    assert lines[4] == "noise_sd 25.59"
    html = estimate._repr_html_()
    assert "<td>251.4 ± 6.83</td>" in html and html.count("<tr>") == 3


def test_a_matrix_that_is_no_covariance_is_shown_as_none() -> None:
    """A negative variance has no sd, and a correlation beyond 1 is none."""
    prior = bm.GaussianPrior.unusable(np.zeros(2), np.array([[-1.0, 0.0], [0.0, 1.0]]))
    shown = repr(bm.PriorEstimate(prior, bm.Status.NOT_POSITIVE_DEFINITE)).splitlines()
    assert shown[2].split() == ["x1", "0", "none"] and shown[3].split()[-1] == "none"
