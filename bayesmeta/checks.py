"""Checks of what a user hands in: every message names the argument, what is wrong, what to do."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


class InputError(ValueError):
    """An argument that cannot be used; the message says which, why, and what would do."""


def real(name: str, value: Any, *, above: float = -math.inf, least: float = -math.inf) -> float:
    """A finite number greater than ``above`` and at least ``least``."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be a number, got {value!r}") from None
    if not math.isfinite(number):
        raise InputError(f"{name} must be finite, got {value!r}")
    if number <= above:
        raise InputError(f"{name} must be greater than {above:g}, got {value!r}")
    if number < least:
        raise InputError(f"{name} must be at least {least:g}, got {value!r}")
    return number


def whole(name: str, value: Any, *, least: int = 0) -> int:
    """A whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InputError(f"{name} must be a whole number, got {value!r}")
    if value < least:
        raise InputError(f"{name} must be at least {least}, got {value}")
    return int(value)


def array(name: str, value: ArrayLike, shape: tuple[int | None, ...]) -> Array:
    """A finite float array of the given shape (None: any length), frozen, a copy."""
    try:
        if np.iscomplexobj(value):
            raise TypeError
        out = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be an array of numbers, got {value!r}") from None
    wanted = "(" + ", ".join("any" if n is None else str(n) for n in shape) + ")"
    if out.ndim != len(shape) or any(
        n is not None and n != m for n, m in zip(shape, out.shape, strict=True)
    ):
        raise InputError(f"{name} must have shape {wanted}, got {out.shape}")
    if not np.isfinite(out).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(out))[0])
        raise InputError(f"{name} has a NaN or infinite entry at {place}; remove or replace it")
    out.setflags(write=False)
    return out


def covariance(name: str, value: ArrayLike, dim: int) -> Array:
    """A symmetric positive semi-definite (dim, dim) array, exactly symmetric on return."""
    out = array(name, value, (dim, dim))
    scale = float(np.abs(out).max(initial=0.0))
    if np.abs(out - out.T).max(initial=0.0) > 1e-8 * scale:
        raise InputError(f"{name} is not symmetric; pass (C + C.T) / 2 if that is what you mean")
    out = (out + out.T) / 2
    lowest = float(np.linalg.eigvalsh(out)[0])
    if lowest < -1e-10 * scale:
        raise InputError(
            f"{name} is not positive semi-definite (smallest eigenvalue {lowest:.3g}); "
            "a covariance has no negative eigenvalue"
        )
    out.setflags(write=False)
    return out


def one_of(name: str, value: Any, choices: Iterable[str]) -> str:
    """One of the listed words; the message suggests the nearest."""
    import difflib

    words = list(choices)
    if value not in words:
        near = difflib.get_close_matches(str(value), words, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        more = f", … ({len(words)} in all)" if len(words) > 30 else ""
        shown = ", ".join(words[:8] if more else words)
        raise InputError(f"unknown {name} {value!r}{hint} (choose from {shown}{more})")
    return str(value)


def of_type[T](name: str, value: Any, kind: type[T], hint: str) -> T:
    """A value of one type; the message says how to make one."""
    if not isinstance(value, kind):
        what = f"the class {value.__name__}" if isinstance(value, type) else repr(value)
        raise InputError(f"{name} must be {kind.__name__}, got {what[:80]}; {hint}")
    return value


def renamed[**P, R](**old: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Accept arguments under earlier names too: ``renamed(seed="random_seed")``."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def accepting(*args: P.args, **kwargs: P.kwargs) -> R:
            for before, now in old.items():
                if before in kwargs:
                    if now in kwargs:
                        raise InputError(
                            f"{before} is an earlier name of {now}; give {now} alone, not both"
                        )
                    kwargs[now] = kwargs.pop(before)
            return function(*args, **kwargs)

        return accepting

    return decorate
