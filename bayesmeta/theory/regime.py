"""The numbers that the theory and the learners are told: one definition for both."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from bayesmeta.checks import InputError, of_type, real, whole


@dataclass(frozen=True)
class Bounds:
    """What a learner is told of the family: the known constants of Assumptions 1-3.

    Parameters
    ----------
    radius : float
        a, a bound on the norm of every action.
    action_min : float
        A lower bound of lambda_min(Sigma_A).
    prior_min, prior_max : float
        Bounds on the eigenvalues of Sigma_*.
    mean_norm : float
        m, a bound on |mu_*|.

    Examples
    --------
    >>> bm.Bounds(radius=1.0, action_min=0.2, prior_min=0.1, prior_max=2.0, mean_norm=3.0).prior_max
    2.0
    """

    radius: float
    action_min: float
    prior_min: float
    prior_max: float
    mean_norm: float

    def __post_init__(self) -> None:
        for name in BOUNDS:
            object.__setattr__(self, name, real(name, getattr(self, name), least=0.0))
        if self.prior_min > self.prior_max:
            raise InputError(
                f"prior_min ({self.prior_min:g}) must not exceed prior_max ({self.prior_max:g})"
            )


BOUNDS = tuple(field.name for field in fields(Bounds))
"""The names of the bounds."""


@dataclass(frozen=True)
class Regime:
    """The numbers of the problem: d, T, N, sigma, and the bounds of Assumptions 1-3."""

    dim: int
    horizon: int
    tasks: int
    noise_sd: float
    bounds: Bounds

    def __post_init__(self) -> None:
        for name in ("dim", "horizon", "tasks"):
            whole(name, getattr(self, name), least=1)
        object.__setattr__(self, "noise_sd", real("noise_sd", self.noise_sd, above=0.0))
        of_type("bounds", self.bounds, Bounds, "use Bounds(radius=…, action_min=…, …)")

    @classmethod
    def of(
        cls,
        *,
        dim: int,
        horizon: int,
        tasks: int,
        noise_sd: float,
        radius: float,
        action_min: float,
        prior_min: float,
        prior_max: float,
        mean_norm: float,
    ) -> Self:
        """A regime from its nine numbers, each by name."""
        bounds = Bounds(radius, action_min, prior_min, prior_max, mean_norm)
        return cls(dim, horizon, tasks, noise_sd, bounds)

    def changed(self, **numbers: Any) -> Self:
        """A copy with other numbers, those of its bounds included, each by name."""
        inner = {name: numbers.pop(name) for name in BOUNDS if name in numbers}
        bounds = replace(self.bounds, **inner) if inner else self.bounds
        return replace(self, **{"bounds": bounds, **numbers})

    def numbers(self) -> dict[str, float]:
        """The nine numbers by name, as plain data."""
        own = {name: getattr(self, name) for name in ("dim", "tasks", "horizon", "noise_sd")}
        return own | {name: getattr(self.bounds, name) for name in BOUNDS}


LARGEST = 10**300
"""The largest horizon or number of tasks that is tried: floating point ends soon after."""


@contextmanager
def within_floats(**numbers: float) -> Iterator[None]:
    """Turn an arithmetic error within the block into an InputError that names the number furthest
    from 1, which is the likely cause."""
    try:
        yield
    except InputError:
        raise
    except (ArithmeticError, ValueError):
        name, value = max(numbers.items(), key=lambda one: abs(math.log(one[1] or 1)))
        shown = f"{value:.3g}" if value < LARGEST else f"of {LARGEST:.0e} or more"
        raise InputError(
            f"the constants cannot be computed in floating point with {name} {shown}; bring it "
            "nearer to 1 (or choose other units for rewards or actions)"
        ) from None


def check_regime(regime: Regime) -> Regime:
    """Refuse numbers that the assumptions exclude."""
    whole("tasks", regime.tasks, least=2)
    bounds = regime.bounds
    for name in ("radius", "action_min", "prior_min", "prior_max"):
        real(name, getattr(bounds, name), above=0.0)
    with within_floats(**regime.numbers()):
        most = bounds.radius**2 / regime.dim
    if bounds.action_min > most * (1 + 1e-9):
        raise InputError(
            f"action_min ({bounds.action_min:g}) is impossible: actions of norm at most "
            f"{bounds.radius:g} in {regime.dim} dimensions have lambda_min(Sigma_A) <= "
            f"radius^2 / dim = {most:g}"
        )
    return regime
