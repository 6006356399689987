"""The one ellipse of all pictures, and what is within them."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from bayesmeta.checks import Array
from bayesmeta.report.figures.ellipse import ellipse, radius, reach, within

MEAN = np.array([1.0, -2.0])
COVS = np.array([[[4.0, 1.0], [1.0, 0.5]], [[1.0, 0.0], [0.0, 0.0]], [[1.0, -1.0], [-1.0, 1.0]]])
"""A covariance, one without a spread of the second feature, and a singular one."""


@pytest.mark.parametrize("cov", COVS)
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_it_reaches_as_far_as_its_marginals_say(cov: Array, level: float) -> None:
    """Along both axes, to both sides, also where it is a line."""
    curve = ellipse(MEAN, cov, level)
    far = reach(cov, level)
    np.testing.assert_allclose(curve.max(axis=1) - MEAN, far, atol=1e-3)
    np.testing.assert_allclose(MEAN - curve.min(axis=1), far, atol=1e-3)
    np.testing.assert_allclose(far, radius(level) * np.sqrt(np.diag(cov)))


def test_many_reach_at_once() -> None:
    """An array of covariances gives an array of reaches."""
    np.testing.assert_array_equal(reach(COVS, 0.9), [reach(cov, 0.9) for cov in COVS])


def test_a_radius_holds_its_share() -> None:
    """The distribution function of the distance from the centre, 1 - exp(-r^2 / 2)."""
    for level in (1e-9, 0.5, 0.99):
        assert -np.expm1(-(radius(level) ** 2) / 2) == pytest.approx(level)


def test_what_is_within() -> None:
    """The limits of the axes, their edges included."""
    axes = Figure().subplots()
    axes.set(xlim=(0, 1), ylim=(0, 2))
    points = np.array([[0.5, 1.0], [1.0, 2.0], [1.1, 1.0], [0.5, 2.1], [-0.1, 1.0], [0.5, -0.1]])
    np.testing.assert_array_equal(within(axes, points), [True, True, False, False, False, False])
