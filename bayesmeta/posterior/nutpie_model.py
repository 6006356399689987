"""A compiled log-density as a model that ``nutpie.sample`` takes, called without Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nutpie import _lib
from nutpie.sample import CompiledModel

from bayesmeta.checks import Array
from bayesmeta.posterior.callback import Callback, as_callback

LONGEST = 0.75
"""Of the steps along circles, in radians: a density that is a standard normal allows any, and half
a circle leads to the opposite point, over and over."""
LENGTH = 2.2
"""Of trajectories along circles, in radians, at which they are doubled no more. They would turn
back after half a circle only, where a point is the opposite of the first, as far from the middle:
shorter ones give more effective draws of the tails for as many steps."""
DEPTH = 10
"""Doublings of a trajectory at most, however short its steps."""


@dataclass(frozen=True)
class Model(CompiledModel):
    """What nutpie asks of a model; the only variable is the point."""

    callback: Callback
    size: int
    begin: Callable[[int], Array]
    normal: bool = False
    """Whether points are nearly standard normal: trajectories are then those of a standard normal,
    exact, and only what the density differs by is left to steps, which may be longer."""

    @property
    def n_dim(self) -> int:
        """The entries of a point."""
        return self.size

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the variable."""
        return {"point": (self.size,)}

    @property
    def coords(self) -> dict[str, Any]:
        """None."""
        return {}

    def _make_sampler(
        self,
        settings: Any,
        init_mean: Any,
        cores: int,
        progress_type: Any,
        extra_callback: Any,
        extra_callback_rate: int,
        store: Any,
    ) -> Any:
        if self.normal:
            _move_on_circles(settings)
        at = self.callback.places.ctypes.data
        density = _lib.LogpFunc(self.callback.density.address, at, self)
        expand = _lib.ExpandFunc(self.size, self.size, self.callback.expand.address, at, self)
        sizes = {"entry": self.size}
        variables = _lib.PyVariable.new_variables(
            ["point"], ["float64"], [(self.size,)], sizes, self.dims
        )
        model = _lib.PyMcModel(
            density, expand, variables, self.size, sizes, {}, self.begin, _no_adapter
        )
        return _lib.PySampler.from_pymc(
            settings,
            cores,
            model,
            progress_type,
            extra_callback,
            extra_callback_rate,
            store,
        )


def _move_on_circles(settings: Any) -> None:
    """Let nutpie's trajectories be those of a standard normal, in steps of at most ``LONGEST``."""
    own = settings.as_dict()["settings"]
    own |= {"trajectory_kind": "ExactNormal", "target_integration_time": LENGTH, "maxdepth": DEPTH}
    steps = own["adapt_options"]["step_size_settings"]["adapt_options"]
    steps["dual_average"]["max_step_size"] = LONGEST
    settings.update_settings(own)


def _no_adapter(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError("transformations are not adapted")


def model_for_nutpie(
    function: Any,
    data: Sequence[Any],
    size: int,
    begin: Callable[[int], Array],
    normal: bool = False,
) -> Model:
    """Of a compiled function of a point of this size and data; chains start at ``begin(seed)``, and
    move along trajectories of a standard ``normal`` or straight ones."""
    return Model(
        dims={"point": ("entry",)},
        reparameterized_names=None,
        callback=as_callback(function, data),
        size=size,
        begin=begin,
        normal=normal,
    )
