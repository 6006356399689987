"""The laws of V that policies made to detect a wide prior are judged by."""

from __future__ import annotations

import numpy as np
import pytest

from bayesmeta.claims.detecting import gram_below
from bayesmeta.claims.one_dimension import small_gram


def test_the_law_of_the_gram_in_one_dimension() -> None:
    """By inversion, as a ball's volume, and drawn: the same."""
    assert small_gram(2, 0.25) == pytest.approx(np.pi / 16)  # a quarter of the disc in [0, 1]^2
    rng = np.random.default_rng(0)
    drawn = (rng.uniform(-1, 1, (50_000, 40)) ** 2).sum(axis=1)
    for v in (10.0, 13.0, 16.0):
        assert gram_below(40, v) == pytest.approx((drawn <= v).mean(), abs=0.01)
    assert gram_below(40, 12.0) < gram_below(40, 12.01)
    assert gram_below(60, 1.0) == pytest.approx(small_gram(60, 1.0), abs=1e-10)
