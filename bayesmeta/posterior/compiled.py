"""A PyMC model compiled for nutpie, quickly.

nutpie's own compiler wraps the model's functions anew in every process, which costs 15 to 25 s even
where all else is cached on disk. Here whole functions are cached on disk, compiled so that they
release Python's lock, and handed to nutpie as Python functions: a model that has been compiled
before on this machine starts in a second or two, and chains still run side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import NUMBA, Mode
from pytensor.graph.replace import clone_replace
from pytensor.link.numba.cache import CACHED_SRC_FUNCTIONS
from pytensor.link.numba.dispatch.basic import numba_njit
from pytensor.link.numba.linker import NumbaLinker

from bayesmeta.checks import Array

if TYPE_CHECKING:
    import pymc as pm


class _Unlocked(NumbaLinker):
    """PyTensor's numba linker, with functions that release Python's lock while they run."""

    def jit_compile(self, fn_and_cache: Any) -> Any:
        function, key = fn_and_cache
        if key is not None:
            CACHED_SRC_FUNCTIONS[function.py_func] = f"{key}-nogil"
        return numba_njit(function.py_func, final_function=True, cache=key is not None, nogil=True)


# as PyMC does it: where a parameter is not allowed, the log-density is -inf, and nothing is raised
_CHECKS = "local_check_parameter_to_ninf_switch"
_MODE = Mode(_Unlocked(), NUMBA.provided_optimizer.including(_CHECKS))


@dataclass(frozen=True)
class Compiled:
    """Functions of the unconstrained point of a model, for any data of the same ranks."""

    size: int
    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dims: dict[str, tuple[str, ...]]
    parts: tuple[tuple[str, int], ...]
    """names and sizes of the unconstrained variables that make up a point"""
    value_and_gradient: Callable[..., tuple[Any, Array]]
    value_data: tuple[str, ...]
    expand: Callable[..., Any]
    expand_data: tuple[str, ...]

    def log_density(self, point: Array, data: dict[str, Array]) -> tuple[float, Array]:
        """Log-density at an unconstrained point, up to a constant, and its gradient."""
        value, gradient = self.value_and_gradient(point, *(data[name] for name in self.value_data))
        return float(value), gradient

    def constrained(self, point: Array, data: dict[str, Array]) -> dict[str, Array]:
        """The variables of the model at an unconstrained point."""
        values = self.expand(point, *(data[name] for name in self.expand_data))
        return dict(zip(self.names, values, strict=True))


def compile_model(model: pm.Model, keep: tuple[str, ...]) -> Compiled:
    """Compile the log-density with its gradient, and what turns a point into the variables named
    in ``keep`` (those that the model has)."""
    free = model.free_RVs
    values = [model.rvs_to_values[variable] for variable in free]
    shapes = [tuple(value.type.shape) for value in values]
    if any(length is None for shape in shapes for length in shape):
        raise TypeError("every variable of the model must have a fixed shape: give shape=")
    sizes = [prod(shape) for shape in shapes]
    ends = np.cumsum(sizes)
    size = int(ends[-1])
    point = pt.vector("point", shape=(size,))
    parts = {
        value: point[end - length : end].reshape(shape)
        for value, shape, length, end in zip(values, shapes, sizes, ends, strict=True)
    }
    density = model.logp()
    gradient = pt.concatenate([part.ravel() for part in pt.grad(density, values)])
    density, gradient = clone_replace([density, gradient], parts)
    value = pytensor.function([point], [density, gradient], mode=_MODE)
    value(np.ones(size))  # numba compiles at the first call
    wanted = [variable for variable in model.unobserved_value_vars if variable.name in keep]
    outputs = clone_replace(wanted, parts)
    expand = pytensor.function([point], outputs, mode=_MODE)
    found = expand(np.ones(size))
    names = [str(variable.name) for variable in wanted]
    dims = {
        name: tuple(str(dim) for dim in model.named_vars_to_dims[name])
        for name in names
        if name in model.named_vars_to_dims
    }
    return Compiled(
        size,
        tuple(names),
        tuple(np.shape(one) for one in found),
        dims,
        tuple((value.name, length) for value, length in zip(values, sizes, strict=True)),
        value.vm.jit_fn,
        tuple(shared.name for shared in value.get_shared()),
        expand.vm.jit_fn,
        tuple(shared.name for shared in expand.get_shared()),
    )
