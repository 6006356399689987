"""How every kernel is compiled: cached on disk, IEEE division instead of Python's exceptions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numba

from bayesmeta.kernels import sources

_njit: Any = functools.partial(
    numba.njit, error_model="numpy", fastmath=False, no_cfunc_wrapper=True
)
STAMP = sources.kernel_digest()


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel whose body takes the place of every call to it, with constant arguments put in.

    A loop ``for i in range(d)`` then has a known length, which the compiler unrolls: the hottest
    kernels are called through a choice between a few small dimensions and the general case.
    """
    compiled: Callable[..., Any] = _njit(inline="always")(function)
    return compiled


def helper(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that only kernels call: a way in from Python takes as long to compile as many of
    them do."""
    return kernel(function, no_cpython_wrapper=True)


def kernel(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile for speed, without fast-math, so that results have the same bits on every run.

    It is refused by name: left out, numba takes it over from whatever calls a kernel first, such
    as a model compiled by PyTensor, and the code so compiled is kept for all other callers.
    """
    try:
        compiled: Any = _njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:  # nowhere to keep the compiled code: compile it in every process
        compiled = _njit(nogil=True, **options)(function)
    if not hasattr(compiled, "py_func"):  # numba is switched off
        return function
    compiled.compile = _after_stages(function, compiled.compile)
    # numba's cache asks only whether the function's own file changed, and would go on using the
    # old code of a kernel called from another file; ask for all of them
    file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if file is not None:
        file._source_stamp = STAMP
        file._load_index = _none_where_unreadable(file._load_index)
    out: Callable[..., Any] = compiled
    return out


class Stage(NamedTuple):
    """What is called by its address; ``ready`` compiles or loads it and tells the linker where."""

    ready: Callable[[], None]


def _after_stages(
    function: Callable[..., Any], compile_for: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    """Compile or load a kernel only after the stages that it calls, itself or through others."""

    def compile_after(arguments: Any) -> Any:
        for stage in _stages(function, set()):
            stage.ready()
        return compile_for(arguments)

    return compile_after


def _stages(function: Any, seen: set[Any]) -> Iterator[Stage]:
    for name in function.__code__.co_names:
        called = function.__globals__.get(name)
        stage, inner = getattr(called, "stage", None), getattr(called, "py_func", None)
        if isinstance(stage, Stage):
            yield stage
        elif inner is not None and inner not in seen:
            seen.add(inner)
            yield from _stages(inner, seen)


def _none_where_unreadable(load: Callable[[], dict[Any, Any]]) -> Callable[[], dict[Any, Any]]:
    """Start anew where the kept index names a tuple that this version no longer has.

    numba reads the index, with the argument types in it, before it asks for the stamp.
    """

    def index() -> dict[Any, Any]:
        try:
            return load()
        except (AttributeError, ImportError):
            return {}

    return index
