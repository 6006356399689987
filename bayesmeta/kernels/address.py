"""Kernels called by their address: the stages of others, and what a PyTensor graph calls.

Where numba compiles a call of one function in another, it takes the called one's code over and
optimises it anew: for the likelihood some seconds, in every caller. A call by address takes over
nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from numba.core import types
from numba.core.cgutils import get_or_insert_function, if_unlikely
from numba.extending import intrinsic

from bayesmeta.kernels.jit import STAMP, Stage, helper

in_llvm: Any = intrinsic


def stage(*arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A part of several kernels, compiled once, for arguments of these types.

    With others it is compiled into its caller, as a ``helper`` is.
    """

    def made(function: Callable[..., Any]) -> Callable[..., Any]:
        compiled = helper(function)
        return by_address(compiled, arguments) if hasattr(compiled, "py_func") else compiled

    return made


def by_address(kernel: Any, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    """What compiled code calls to call a kernel with arguments of these types.

    Code that was kept on disk and calls it may be loaded only after ``stage.ready`` of what this
    returns, in every process.
    """
    symbol = f"{kernel.__module__}.{kernel.__name__}.{STAMP}"

    @cache
    def ready() -> None:
        kernel.compile(arguments)
        compiled = kernel.overloads[arguments]
        name = compiled.fndesc.llvm_func_name
        llvm.add_symbol(symbol, compiled.library.get_pointer_to_function(name))

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = context.call_conv.get_function_type(sig.return_type, sig.args)
        function = get_or_insert_function(builder.module, kind, symbol)
        status, out = context.call_conv.call_function(
            builder, function, sig.return_type, sig.args, args
        )
        with if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return out

    def call(typing: Any, *given: Any) -> Any:
        if tuple(map(types.unliteral, given)) == arguments:
            ready()
            return kernel.overloads[arguments].signature, code
        called = types.Dispatcher(kernel)
        sig = typing.resolve_function_type(called, given, {})

        def code_taken_over(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            found = context.get_function(called, sig)
            context.add_linking_libs(found.libs)
            return found(builder, args)

        return sig, code_taken_over

    own: Any = call
    names = inspect.signature(kernel.py_func).parameters.values()
    context = inspect.Parameter("typing", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    own.__signature__ = inspect.Signature([context, *names])
    made: Any = in_llvm(own)
    made.stage = Stage(ready)
    found: Callable[..., Any] = made
    return found
