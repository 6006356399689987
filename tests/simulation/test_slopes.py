"""Exponents of growth: exact powers, intervals that cover, and none where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from bayesmeta.checks import InputError
from bayesmeta.simulation import growth_exponent
from tests.helpers import size

RNG = np.random.default_rng


@pytest.mark.parametrize("power", [-0.5, 0.0, 2.0])
def test_a_power_has_its_exponent(power: float) -> None:
    """Paired runs that all grow alike leave no doubt."""
    runs = RNG(0).uniform(1, 2, 20)
    found = growth_exponent([1, 2, 8], [runs * x**power for x in (1, 2, 8)], paired=True)
    assert found is not None
    np.testing.assert_allclose(found, power, atol=1e-12)


def test_none_where_relative_regret_is_not_positive() -> None:
    """Where an interval reaches 0, at any x."""
    good = np.linspace(0.9, 1.1, 9)
    for bad in (-good, good - 1.0, np.r_[good[:-1], -40.0]):
        assert growth_exponent([1, 2], [good, bad], paired=False) is None


def test_intervals_cover_as_they_say() -> None:
    """Null: 40 runs at either of two values, exponent 1/2; a percentile bootstrap of so few holds
    the truth in 93% at least, 95% less what it is known to lack; a binomial bound."""
    rng, held, count = RNG(1), 0, 200
    for seed in range(count):
        values = [x**0.5 * rng.normal(1, 0.3, 40) for x in (1, 4)]
        found = growth_exponent([1, 4], values, paired=False, random_seed=seed)
        assert found is not None and found.low < found.mean < found.high
        held += found.low <= 0.5 <= found.high
    from scipy.stats import binom

    assert held >= binom.ppf(size("slopes/coverage"), count, 0.93)


def test_pairing_narrows() -> None:
    """Runs that vary together vary less in their slope."""
    rng = RNG(2)
    level = rng.lognormal(0, 0.5, 30)
    values = [level * x**0.5 * rng.normal(1, 0.01, 30) for x in (1, 4)]
    paired, free = (growth_exponent([1, 4], values, paired=p) for p in (True, False))
    assert paired is not None and free is not None
    assert paired.high - paired.low < 0.2 * (free.high - free.low)


def test_refused_input() -> None:
    """One value, or as many values as not."""
    with pytest.raises(InputError, match="give two at least"):
        growth_exponent([1], [np.ones(3)], paired=True)
    runs = np.linspace(0.9, 1.1, 5)
    for x in ([2, 2], [-1, 2]):
        with pytest.raises(InputError, match="x must be positive"):
            growth_exponent(x, [runs, runs], paired=True)
    with pytest.raises(InputError, match="other numbers of runs"):
        growth_exponent([1, 2], [runs, runs[1:]], paired=True)
