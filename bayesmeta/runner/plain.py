"""Plain data: what JSON can hold."""

from __future__ import annotations

import marshal
import math
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from bayesmeta.checks import LATER


def without_nan(value: Any) -> Any:
    """Plain data as JSON knows it: numbers that are not finite become null, tuples lists."""
    if isinstance(value, dict):
        return {str(key): without_nan(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plain(value: Any) -> Any:
    """For JSON: a number of NumPy's as one of Python's; nothing else is plain data."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is not plain data")


def parts_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass by name, without those that came later and are at their default."""
    found = {field: getattr(value, field.name) for field in fields(value)}
    return {
        field.name: inner
        for field, inner in found.items()
        if not (field.metadata == LATER and type(inner) is type(field.default))
        or inner != field.default
    }


def describe(value: object) -> Any:
    """Frozen descriptions (dataclasses, arrays, functions, containers of them) as plain data.

    Numbers keep every digit. A function is described by its name; a lambda or a local function,
    whose name says little, also by a digest of its code.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        parts = {name: describe(inner) for name, inner in parts_of(value).items()}
        return {"type": _type(value)} | parts
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [describe(inner) for inner in value]
    if isinstance(value, dict):
        return {str(key): describe(inner) for key, inner in value.items()}
    return _name(value)


def _type(value: object) -> str:
    """The class of an object: by its name where it is the package's, otherwise also by its module
    and a digest of its methods, so that a class of a user's that was edited is another one."""
    kind = type(value)
    if kind.__module__.startswith("bayesmeta."):
        return kind.__name__
    codes = [
        marshal.dumps(part.__code__)
        for base in kind.__mro__
        for part in map(_function, vars(base).values())
        if part is not None and not base.__module__.startswith("builtins")
    ]
    digest = blake2b(b"".join(codes), digest_size=6).hexdigest()
    return f"{kind.__module__}.{kind.__qualname__} {digest}"


def _function(part: object) -> Any:
    """The function behind a method or a property; None where there is none."""
    inner = getattr(part, "fget", None) or getattr(part, "__func__", part)
    return inner if hasattr(inner, "__code__") else None


def _name(value: object) -> Any:
    name = getattr(value, "__qualname__", None)
    if name is None:
        if type(value).__module__ == "builtins":
            return repr(value)
        slots = [name for base in type(value).__mro__ for name in getattr(base, "__slots__", ())]
        parts = {name: getattr(value, name) for name in slots if hasattr(value, name)}
        return {"type": _type(value)} | describe(parts | getattr(value, "__dict__", {}))
    code = getattr(value, "__code__", None)
    if "<" not in name or code is None:
        return f"{value.__module__}.{name}"
    digest = blake2b(marshal.dumps(code), digest_size=6).hexdigest()
    return f"{value.__module__}.{name} {digest}"
