"""The pictures of recorded draws (notebook 03): what they draw are the numbers of the record."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes

import bayesmeta as bm
from bayesmeta.report.figures import drawn
from bayesmeta.report.figures.ellipse import reach

TRUTH = bm.GaussianPrior([2.0, 2.0], [[1.0, 0.8], [0.8, 1.0]])
SIZES = (10, 500)


@pytest.fixture(scope="module")
def fits() -> xr.Dataset:
    """Draws about the truth, closer with more tasks; eq. (11) has a negative eigenvalue."""
    rng = np.random.default_rng(0)
    names = ["moment", "widened, c_w = 10", "REML"]
    mu, sigma, cov = np.empty((2, 40, 2)), np.empty((2, 40, 2, 2)), np.empty((2, 3, 2, 2))
    for k, n in enumerate(SIZES):
        mu[k] = TRUTH.mean + rng.standard_normal((40, 2)) / np.sqrt(n)
        sigma[k] = TRUTH.cov * rng.uniform(0.5, 2.0, 40)[:, None, None]
        cov[k] = [np.diag([1.0, -0.3]), 3 * TRUTH.cov, 1.1 * TRUTH.cov]
    both = ("feature", "feature_bis")
    return xr.Dataset(
        {
            "mu": (("n", "sample", "feature"), mu),
            "Sigma": (("n", "sample", *both), sigma),
            "mean": (("n", "closed", "feature"), np.tile(TRUTH.mean + 0.1, (2, 3, 1))),
            "cov": (("n", "closed", *both), cov),
        },
        coords={"n": list(SIZES), "closed": names},
    )


def line(axes: Axes, name: str) -> np.ndarray:
    """Heights of the line, or of the markers, with this label."""
    (found,) = [one for one in axes.lines if one.get_label() == name]
    return np.asarray(found.get_ydata())


def test_eigenvalues(fits: xr.Dataset) -> None:
    """Of draws the median, of closed forms as they are, also below 0."""
    figure = drawn.figure_eigenvalues(fits, TRUTH)
    assert [axes.get_title() for axes in figure.axes] == ["10 tasks", "500 tasks"]
    for k, axes in enumerate(figure.axes):
        values = np.linalg.eigvalsh(fits["Sigma"].values[k])
        np.testing.assert_allclose(line(axes, "posterior"), np.median(values, axis=0))
        np.testing.assert_allclose(line(axes, "moment"), [-0.3, 1.0])
        low, high = axes.get_ylim()
        assert low < -0.3 and high > np.linalg.eigvalsh(3 * TRUTH.cov)[1]


def test_entries(fits: xr.Dataset) -> None:
    """Two means, two variances, one covariance."""
    figure = drawn.figure_entries(fits, TRUTH)
    for axes in figure.axes:
        np.testing.assert_allclose(line(axes, "REML"), [2.1, 2.1, 1.1, 1.1, 0.88])
        np.testing.assert_allclose(line(axes, "moment"), [2.1, 2.1, 1.0, -0.3, 0.0])
    labels = [text.get_text() for text in figure.axes[-1].get_xticklabels()]
    assert labels[2:] == [r"$\Sigma_{11}$", r"$\Sigma_{22}$", r"$\Sigma_{21}$"]


def test_priors_of_one_scale(fits: xr.Dataset) -> None:
    """The widest of the closed forms has room in every panel, and all panels have its limits."""
    figure = drawn.figure_drawn_priors(fits, TRUTH, draws=12)
    far = 0.1 + reach(3 * TRUTH.cov, 0.9)
    for axes in figure.axes:
        np.testing.assert_allclose(
            [axes.get_xlim(), axes.get_ylim()], [[2 - far[0], 2 + far[0]]] * 2
        )
        assert sum(one.get_gid() == "draw" for one in axes.lines) == 12
        named = {text.get_text() for text in axes.texts if text.get_gid() == "label"}
        assert named == {"truth", "moment-widened(10)", "reml", "posterior"}
