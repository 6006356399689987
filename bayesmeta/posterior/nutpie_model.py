"""A compiled log-density as a model that ``nutpie.sample`` takes, called without Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nutpie import _lib
from nutpie.sample import CompiledModel

from bayesmeta.checks import Array
from bayesmeta.posterior.callback import Callback, as_callback


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
            settings.update_settings(
                settings.as_dict()["settings"] | {"trajectory_kind": "ExactNormal"}
            )
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
