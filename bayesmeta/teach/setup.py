"""What the sliders set: one family of tasks in two dimensions, and how they are explored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from bayesmeta.actions import UniformBall
from bayesmeta.agents.exploration import Exploration, first_steps, until_eigenvalue
from bayesmeta.checks import InputError, real, whole
from bayesmeta.environment import TaskFamily
from bayesmeta.gaussian import GaussianPrior

THRESHOLD = 0.03
"""Of the exploration of Section 6, in units of the noise."""
MEAN, RADIUS, ACTIONS = 2.0, 0.25, 20
"""Every entry of mu_*, the radius a of actions and how many are on offer, as in Section 6."""


class Control(NamedTuple):
    """A slider: the setting, its label, where it may stand, and whether settings are whole."""

    name: str
    label: str
    stops: tuple[float, ...]
    whole: bool = False


CONTROLS = (
    Control("correlation", "correlation", tuple(k / 20 for k in range(-19, 20))),
    Control("sd1", "spread of θ₁", tuple(k / 4 for k in range(1, 9))),
    Control("sd2", "spread of θ₂", tuple(k / 4 for k in range(1, 9))),
    Control("noise_sd", "noise σ", (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0)),
    Control("horizon", "steps T", (10, 20, 50, 100, 200), True),
    Control("tasks", "tasks N", (5, 10, 20, 50, 100, 200, 500), True),
    Control("explore", "exploration", (0, 5, 10, 20, 50, 200), True),
    Control("widening", "widening c_w", (0.0, 0.3, 1.0, 3.0, 10.0)),
)
"""All sliders; ``explore`` 0 is the rule of Section 6."""
SAME_DATA = ("widening",)
"""Sliders that leave the data, and so the posterior, as they are."""


@dataclass(frozen=True)
class Setup:
    """Where the sliders stand.

    Parameters
    ----------
    correlation, sd1, sd2 : float
        Of Sigma_*.
    noise_sd : float
        sigma.
    horizon, tasks : int
        T and N.
    explore : int
        Steps of a task that explore, at most T; 0: until lambda_min(V / sigma^2) >= 0.03.
    widening : float
        c_w of eq. (12).
    seed : int
        Of all that is drawn.

    Examples
    --------
    >>> from bayesmeta.teach.setup import Setup
    >>> Setup(correlation=0.5, sd2=2.0).family().prior
    GaussianPrior, d = 2
        mean  sd  correlation
    x1     2   1
    x2     2   2  0.50
    """

    correlation: float = 0.8
    sd1: float = 1.0
    sd2: float = 1.0
    noise_sd: float = 0.5
    horizon: int = 100
    tasks: int = 50
    explore: int = 20
    widening: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for control in CONTROLS:
            low, high = control.stops[0], control.stops[-1]
            given = getattr(self, control.name)
            check = whole if control.whole else real
            value = check(control.name, given)
            if not low <= value <= high:
                raise InputError(f"{control.name} must be from {low:g} to {high:g}, got {given:g}")
            object.__setattr__(self, control.name, value)
        object.__setattr__(self, "seed", whole("seed", self.seed))

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Setup:
        """As an address on the page has it; what it does not name is as by default, what is no
        setting is passed over."""
        kinds = {control.name: control.whole for control in CONTROLS} | {"seed": True}
        values: dict[str, Any] = {}
        for name, is_whole in kinds.items():
            if name in given:
                try:
                    values[name] = int(given[name]) if is_whole else float(given[name])
                except ValueError:
                    raise InputError(f"{name} must be a number, got {given[name]!r}") from None
        return cls(**values)

    def changed(self) -> dict[str, float]:
        """The settings that are not as by default."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }

    def of_data(self) -> Setup:
        """The same for all settings that have the same data."""
        default: dict[str, Any] = {field.name: field.default for field in fields(self)}
        return replace(self, **{name: default[name] for name in SAME_DATA})

    def family(self) -> TaskFamily:
        """The family that tasks come from: Section 6 in two dimensions, with this prior, noise and
        number of steps."""
        shared = self.correlation * self.sd1 * self.sd2
        cov = np.array([[self.sd1**2, shared], [shared, self.sd2**2]])
        prior = GaussianPrior(np.full(2, MEAN), cov)
        return TaskFamily(prior, UniformBall(2, RADIUS, ACTIONS), self.noise_sd, self.horizon)

    def rule(self) -> Exploration:
        """When a task explores."""
        if self.explore == 0:
            return until_eigenvalue(THRESHOLD)
        return first_steps(min(self.explore, self.horizon))


def shown(name: str, value: float) -> str:
    """A setting, as the page writes it beside its slider."""
    if name == "explore":
        return "to threshold" if value == 0 else f"{value:g} steps"
    return f"{value:g}"
