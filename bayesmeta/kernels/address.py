"""Kernels called by their address from code that is compiled by others, such as a PyTensor graph.

Where numba compiles a call of one function in another, it takes the called one's code over and
optimises it anew: for the likelihood some seconds, at each of the levels that PyTensor nests a
graph in. A call by address takes over nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from numba.core.cgutils import get_or_insert_function, if_unlikely
from numba.extending import intrinsic

from bayesmeta.kernels.jit import STAMP

in_llvm: Any = intrinsic


def by_address(kernel: Any, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    """What compiled code calls to call a kernel of ``collapsed`` with arguments of these types.

    Compiles the kernel, or loads it, and tells the linker where it is: code that was kept on disk
    and calls it may be loaded only after this, in every process.
    """
    kernel.compile(arguments)
    compiled = kernel.overloads[arguments]
    symbol = f"{kernel.__module__}.{kernel.__name__}.{STAMP}"
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

    def call(typing: Any, mean: Any, root: Any, noise_sd: Any, data: Any) -> Any:
        return compiled.signature, code

    found: Callable[..., Any] = in_llvm(call)
    return found
