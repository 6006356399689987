"""A PyMC model compiled once for all data, in any dimension.

The log-density with its gradient is one numba function, kept on disk, that releases Python's lock:
a model that has been compiled before on this machine starts in a second or two, and chains run side
by side. (nutpie's own compiler wraps the model's functions anew in every process.) What turns
points into the model's variables is run by NumPy, for all draws at once, and needs no compiler.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
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

from bayesmeta.posterior.rows import sum_of_rows

if TYPE_CHECKING:
    import pymc as pm


def exactly() -> AbstractContextManager[None]:
    """Sums are added up in their order, in code compiled within.

    Else it is the compiler's choice, which may differ between a function that has just been
    compiled and the same one kept on disk.
    """
    unchanged: AbstractContextManager[None] = pytensor.config.change_flags(numba__fastmath=False)
    return unchanged


class _Unlocked(NumbaLinker):
    """PyTensor's numba linker, with functions that release Python's lock while they run."""

    def jit_compile(self, fn_and_cache: Any) -> Any:
        function, key = fn_and_cache
        if key is not None:
            CACHED_SRC_FUNCTIONS[function.py_func] = f"{key}-nogil-exact"
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
    framed: bool
    """whether the log-density is a function of z, centre, root and its transpose, at the point
    centre + root z, or of the point"""
    value_and_gradient: Callable[..., tuple[Any, Any]]
    value_data: tuple[str, ...]
    expand: Callable[..., list[Any]]
    expand_data: tuple[str, ...]


def compile_model(model: pm.Model, keep: tuple[str, ...], framed: bool) -> Compiled:
    """Compile the log-density with its gradient, and what turns many points into the variables
    named in ``keep`` (those that the model has). Every variable of the model must have dims."""
    values = [model.rvs_to_values[variable] for variable in model.free_RVs]
    named = model.named_vars_to_dims

    def dims_of(name: str) -> tuple[str, ...]:
        return tuple(str(dim) for dim in named.get(name, ()))

    parts = {one.name: dims_of(v.name) for v, one in zip(model.free_RVs, values, strict=True)}
    z, centre = pt.dvector("z"), pt.dvector("centre")
    root, turned = pt.dmatrix("root"), pt.dmatrix("turned")
    point = centre + sum_of_rows(z, turned) if framed else z
    pieces, end = {}, pt.constant(0)
    for one in values:
        shape = [model.dim_lengths[dim] for dim in parts[one.name]]
        start, end = end, end + math.prod(shape, start=pt.constant(1))
        pieces[one] = point[start:end].reshape(shape)
    density = model.logp()
    slope = pt.concatenate([one.reshape((-1,)) for one in pt.grad(density, values)])
    density, slope = clone_replace([density, slope], pieces)
    gradient = sum_of_rows(slope, root) if framed else slope
    arguments = [z, centre, root, turned] if framed else [z]
    with exactly():
        value, value_data = _function(arguments, [density, gradient], _MODE)
    wanted = [variable for variable in model.unobserved_value_vars if variable.name in keep]
    many = {one: pt.tensor(one.name, shape=(None,) * (one.type.ndim + 1)) for one in values}
    expand, expand_data = _function(many.values(), vectorize_graph(wanted, many), _BY_NUMPY)
    return Compiled(
        parts,
        {str(variable.name): dims_of(variable.name) for variable in wanted},
        framed,
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
