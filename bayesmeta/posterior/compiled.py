"""A PyMC model compiled once for all data, in any dimension.

The log-density with its gradient is one numba function, kept on disk, that releases Python's lock:
a model that has been compiled before on this machine starts in a second or two, and chains run side
by side. (nutpie's own compiler wraps the model's functions anew in every process.) What turns
points into the model's variables is run by NumPy, for all draws at once, and needs no compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import NUMBA, Mode
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.replace import clone_replace, vectorize_graph
from pytensor.graph.traversal import graph_inputs
from pytensor.link.numba.cache import CACHED_SRC_FUNCTIONS
from pytensor.link.numba.dispatch.basic import numba_njit
from pytensor.link.numba.linker import NumbaLinker

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
_BY_NUMPY = Mode(linker="py", optimizer="fast_compile")


@dataclass(frozen=True)
class Compiled:
    """Functions of the unconstrained variables of a model, for any data of the same ranks."""

    parts: dict[str, tuple[str, ...]]
    """the unconstrained variables in their order, and their dimensions"""
    kept: dict[str, tuple[str, ...]]
    """the variables that draws are turned into, and their dimensions"""
    value_and_gradients: Callable[..., tuple[Any, ...]]
    value_data: tuple[str, ...]
    expand: Callable[..., list[Any]]
    expand_data: tuple[str, ...]


def compile_model(model: pm.Model, keep: tuple[str, ...]) -> Compiled:
    """Compile the log-density with its gradients, and what turns many points into the variables
    named in ``keep`` (those that the model has). Every variable of the model must have dims."""
    values = [model.rvs_to_values[variable] for variable in model.free_RVs]
    density = model.logp()
    value, value_data = _function(values, [density, *pt.grad(density, values)], _MODE)
    wanted = [variable for variable in model.unobserved_value_vars if variable.name in keep]
    many = {one: pt.tensor(one.name, shape=(None,) * (one.type.ndim + 1)) for one in values}
    expand, expand_data = _function(many.values(), vectorize_graph(wanted, many), _BY_NUMPY)
    dims = model.named_vars_to_dims

    def dims_of(name: str) -> tuple[str, ...]:
        return tuple(str(dim) for dim in dims.get(name, ()))

    return Compiled(
        {value.name: dims_of(var.name) for var, value in zip(model.free_RVs, values, strict=True)},
        {str(variable.name): dims_of(variable.name) for variable in wanted},
        value.vm.jit_fn,
        value_data,
        expand,
        expand_data,
    )


def _function(arguments: Any, outputs: Sequence[Any], mode: Mode) -> tuple[Any, tuple[str, ...]]:
    """A function whose data are arguments, too, after the others; and their names."""
    shared = [v for v in graph_inputs(outputs) if isinstance(v, SharedVariable)]
    data = {one: one.type(one.name) for one in shared}
    made = pytensor.function(
        [*arguments, *data.values()],
        clone_replace(list(outputs), data),
        mode=mode,
        on_unused_input="ignore",
    )
    return made, tuple(str(one.name) for one in shared)
