"""Clipping: the same as by hand, also where features have very different units."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.estimators.clipping import clip


def by_hand(cov: np.ndarray) -> np.ndarray:
    """The part of a 2 x 2 matrix with the one positive eigenvalue, with 500 digits."""
    with localcontext(prec=500):
        a, b, c = (Decimal(float(entry)) for entry in (cov[0, 0], cov[0, 1], cov[1, 1]))
        top = (a + c) / 2 + (((a - c) / 2) ** 2 + b * b).sqrt()
        one = (top - c, b) if a > c else (b, top - a)
        share = top / (one[0] ** 2 + one[1] ** 2)
        return np.array([[float(share * x * y) for y in one] for x in one])


@pytest.mark.parametrize("units", [(1.0, 1.0), (1e-3, 1e3), (1e8, 1e-8), (1e-40, 1e30)])
def test_clipping_keeps_the_digits_of_small_features(units: tuple[float, float]) -> None:
    """Every entry, relative to the standard deviations of its row and column."""
    own = np.array(units)
    for plain in ([[2.0, 1.5], [1.5, -1.0]], [[-1.0, 0.3], [0.3, 2.0]], [[1.0, 3.0], [3.0, 1.0]]):
        cov = own[:, None] * np.array(plain) * own
        np.testing.assert_allclose(clip(cov), by_hand(cov), rtol=1e-13)


def test_clipping_many_features_of_mixed_units() -> None:
    """Blocks of two features each, in an order that scatters them, are clipped block by block."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        cov, expected = np.zeros((6, 6)), np.zeros((6, 6))
        order = rng.permutation(6)
        for pair in order.reshape(3, 2):
            own, (low, across, high) = 10.0 ** rng.integers(-9, 10, 2), rng.standard_normal(3)
            plain = np.array([[abs(low), across], [across, -abs(high)]])
            block = np.ix_(pair, pair)
            cov[block] = own[:, None] * plain * own
            expected[block] = by_hand(cov[block])
        np.testing.assert_allclose(clip(cov), expected, rtol=1e-12)


def test_clipping_dense_matrices_has_no_units() -> None:
    """Features in steps of 2^20: the clipped matrix is that of exact elimination, nearly.

    With units so far apart, each feature is clipped after those with larger numbers are taken out:
    pivots of elimination that are negative are left out.
    """
    own = 2.0 ** np.array([40, 20, 0, -20])
    for seed in range(20):
        half = np.random.default_rng(seed).standard_normal((4, 4))
        rest, expected = half + half.T, np.zeros((4, 4))
        for i in range(4):
            part = np.outer(rest[i], rest[i]) / rest[i, i]
            rest = rest - part
            expected += part * (part[i, i] > 0)
        cov, place = own[:, None] * (half + half.T) * own, np.argsort([3, 1, 0, 2])
        found = clip(cov[np.ix_([3, 1, 0, 2], [3, 1, 0, 2])])[np.ix_(place, place)]
        found = found / own[:, None] / own
        # what is left of features before the first positive pivot is smaller than its rounding here
        kept = np.ix_(*2 * [np.diag(expected) > 0])
        np.testing.assert_allclose(found[kept], expected[kept], rtol=1e-6, atol=1e-6)


def test_clipped_moments_in_mixed_units() -> None:
    """``fit_prior`` gives what the definition says of its own covariance before clipping."""
    rng, own = np.random.default_rng(3), np.array([1e-8, 1e8])
    task, x = np.repeat(range(5), 6), rng.standard_normal((30, 2))
    theta = 1 + rng.standard_normal((5, 2)) * [0.2, 2]
    y = (x * theta[task]).sum(axis=1) + 3 * rng.standard_normal(30)
    found = bm.fit_prior(bm.TaskStatistics.from_arrays(task, y, x * own), 3.0, "moment-clipped")
    assert found.status is bm.Status.CLIPPED and found.raw_cov is not None
    np.testing.assert_allclose(found.prior.cov, by_hand(found.raw_cov), rtol=1e-12)
