"""Numbers far from 1, restated in units that are powers of two, which round nothing.

Kernels and estimators multiply variances by variances: numbers of 1e80 and more, or 1e-80 and less,
leave the range of floating point there. Where all sizes lie within 2^-64 to 2^64 nothing is done.
Beyond, the problem is put in units in which they do, solved, and the answer is put back.
Multiplying by a power of two changes no digit, so the answer is the same, bit by bit.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from bayesmeta.checks import Advice, Argument, Array, InputError

LEAST, MOST = 1e-100, 1e100
"""The smallest and largest size that is accepted; squares of it are still far from the ends of
floating point."""
COMFORT = 64
"""Sizes of 2^-COMFORT to 2^COMFORT need no other units."""
RATIO = 365
"""Rewards may be 2^RATIO (1e110) times the noise, and the noise 2^RATIO times the actions."""
FAR = 60
"""Priors and actions may be 2^FAR (1e18) times what the setting says."""


def check_size(name: str, value: float) -> float:
    """Refuse a size that is neither 0 nor within 1e-100 to 1e100."""
    if value != 0 and not LEAST <= abs(value) <= MOST:
        raise InputError(
            Advice(
                "{argument} is {value}, not within {least} to {most}; choose other units",
                argument=Argument(name) if name.isidentifier() else name,
                value=f"{value:.3g}",
                least=f"{LEAST:g}",
                most=f"{MOST:g}",
            )
        )
    return value


def exponent(size: float) -> int:
    """The power of two next above a size; 0 for 0."""
    return math.frexp(size)[1]


def comfortable(*sizes: float) -> bool:
    """Whether sizes need no other units."""
    return all(size == 0 or abs(exponent(size)) <= COMFORT for size in sizes)


class Units(NamedTuple):
    """Powers of two: the units of rewards and of actions; theta has reward per action."""

    reward: int
    action: int

    def inside(self, value: Any, reward: int, action: int) -> Any:
        """A number or array of dimension reward^.. action^.., in these units."""
        return np.ldexp(value, -(reward * self.reward + action * self.action))

    def outside(self, value: Any, reward: int, action: int) -> Any:
        """The same put back."""
        return np.ldexp(value, reward * self.reward + action * self.action)

    @classmethod
    def of(cls, noise_sd: float, radius: float, theta: float) -> Self | None:
        """For actions up to ``radius`` and parameters up to ``theta``; None where none are needed.

        Rewards up to 2^``RATIO`` times the noise are put in its middle between the two.
        """
        for name, size in (("noise_sd", noise_sd), ("radius", radius), ("theta", theta)):
            check_size(name, size)
        if comfortable(noise_sd, radius, theta):
            return None
        noise, action = exponent(noise_sd), exponent(radius)
        signal = noise if theta == 0 else max(noise, action + exponent(theta))
        if signal - noise > RATIO:
            raise InputError(
                f"noise_sd {noise_sd:.3g} is too small beside rewards of up to "
                f"{radius * theta:.3g} (actions of {radius:.3g}, parameters of {theta:.3g}); they "
                f"may be {2.0**RATIO:.0g} times as large"
            )
        if noise - action > RATIO:
            raise InputError(
                f"noise_sd {noise_sd:.3g} is too large beside actions of {radius:.3g}; it may be "
                f"{2.0**RATIO:.0g} times as large"
            )
        return cls((noise + signal) // 2, action)


def check_sizes(name: str, values: Array) -> None:
    """Refuse values, or a column of them, the largest of which is no size that is accepted.

    What is much smaller than the largest does no harm.
    """
    for column in np.atleast_2d(values.T):  # NumPy is slow along an axis beside a short one
        largest = float(np.abs(column).max(initial=0.0))
        check_size(f"the largest entry of {name}", largest)


def check_squares(name: str, squares: Array) -> None:
    """The same for sums of squares of up to 1e9 values."""
    for column in np.atleast_2d(squares.T):
        largest = float(column.max(initial=0.0))
        if largest > MOST**2:
            largest = max(largest / 1e9, MOST**2)
        check_size(f"the largest of {name} (the root of a sum of squares)", math.sqrt(largest))


def outer(powers: ArrayLike) -> Any:
    """The powers of two of products of features."""
    one = np.asarray(powers)
    return one[..., :, None] + one[..., None, :]
