"""Checks of what a user hands in: every message names the argument, what is wrong, what to do."""

from __future__ import annotations

import functools
import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
LATER = {"written": "where it is not the default"}
"""Metadata of a field that a dataclass was given later: descriptions and files of objects that do
not use it stay as they were."""
ROUNDING = 1e-10
"""How far below 0 an eigenvalue of a covariance may be, in units of the standard deviations."""
_PACKAGE = f"{Path(__file__).parent}{os.sep}"


class Argument(str):
    """The name of an argument, a value for ``Advice``."""

    __slots__ = ()


class Advice(str):
    """Text that names arguments, for Python and for the command line.

    Fields in braces are filled with ``values``; a field without a value is the name of an argument.
    The string itself is what a user of Python reads.

    >>> advice = Advice("{found} tasks are few; give {noise_sd}", found="2")
    >>> print(advice)
    2 tasks are few; give noise_sd
    >>> advice.in_options()
    '2 tasks are few; give --noise-sd'
    """

    template: str
    values: dict[str, str]

    def __new__(cls, template: str, /, **values: str) -> Advice:
        made = super().__new__(cls, _filled(template, values, str))
        made.template, made.values = template, values
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, str]]:
        return (self.template,), self.values

    def in_options(self, names: Mapping[str, str] | None = None) -> str:
        """For the command line: ``noise_sd`` is called --noise-sd, or what ``names`` says."""

        def option(name: str) -> str:
            plain = name.isidentifier()  # not words such as "the largest reward", nor an option
            usual = f"--{name.replace('_', '-')}" if plain else name
            return (names or {}).get(name, usual)

        return _filled(self.template, self.values, option)


def _filled(template: str, values: dict[str, str], rename: Callable[[str], str]) -> str:
    """The template with its values; names of arguments go through ``rename``."""
    fields = {field: Argument(field) for _, field, _, _ in Formatter().parse(template) if field}
    return template.format_map(
        {
            field: rename(str(value)) if isinstance(value, Argument) else value
            for field, value in (fields | values).items()
        }
    )


class InputError(ValueError):
    """An argument that cannot be used; the message says which, why, and what would do.

    The message may be an ``Advice``, which commands show with the names of their options.
    """


def warn(message: str, category: type[Warning]) -> None:
    """Warn, as of the line outside the package that led here."""
    warnings.warn(message, category, skip_file_prefixes=(_PACKAGE,))


def _bad(name: str, problem: str) -> InputError:
    """The argument and what is wrong with it."""
    return InputError(Advice("{argument} {problem}", argument=Argument(name), problem=problem))


def _shown(value: object) -> str:
    """A value in a message: one printable line, not too long."""
    text = " ".join(repr(value).split())[:200]
    return "".join(mark if mark.isprintable() else repr(mark)[1:-1] for mark in text)


def real(name: str, value: Any, *, above: float = -math.inf, least: float = -math.inf) -> float:
    """A finite number greater than ``above`` and at least ``least``."""
    try:
        if getattr(value, "ndim", 0):
            raise TypeError  # an array of one number is an array
        if isinstance(value, str) and "_" in value:
            raise ValueError  # to Python, 1_5 is 15
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise _bad(name, f"must be a number, got {_shown(value)}") from None
    if not math.isfinite(number):
        raise _bad(name, f"must be finite, got {value!r}")
    if number <= above:
        raise _bad(name, f"must be greater than {above:g}, got {value!r}")
    if number < least:
        raise _bad(name, f"must be at least {least:g}, got {value!r}")
    return number


def whole(name: str, value: Any, *, least: int = 0) -> int:
    """A whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise _bad(name, f"must be a whole number, got {_shown(value)}")
    if value < least:
        raise _bad(name, f"must be at least {least}, got {value}")
    return int(value)


def numbers(name: str, value: ArrayLike) -> Array:
    """A float array of any shape, a copy: not text that is no number, complex numbers, dates."""
    try:
        if np.iscomplexobj(value) or _is_time(value):
            raise TypeError
        out = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be an array of numbers, got {_shown(value)}") from None
    if np.ma.is_masked(value):
        raise InputError(f"{name} has masked entries; leave their rows out, or fill them")
    return out


def array(name: str, value: ArrayLike, shape: tuple[int | None, ...]) -> Array:
    """A finite float array of the given shape (None: any length), frozen, a copy."""
    out = numbers(name, value)
    if out.ndim != len(shape) or any(
        n is not None and n != m for n, m in zip(shape, out.shape, strict=True)
    ):
        wanted = "(" + ", ".join("any" if n is None else str(n) for n in shape) + ")"
        raise InputError(f"{name} must have shape {wanted}, got {out.shape}")
    if not np.isfinite(out).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(out))[0])
        raise InputError(f"{name} has a NaN or infinite entry at {place}; remove or replace it")
    out.setflags(write=False)
    return out


def _is_time(value: ArrayLike) -> bool:
    """Whether these are dates or lengths of time, which NumPy would count in units of its own."""
    return np.asarray(value).dtype.kind in "mM"


def own_sizes(squares: Array) -> Array:
    """Roots of the sizes of diagonal entries: in units of them no tolerance depends on units.

    A zero has the least size there is, so that whatever stands in its row is far beyond 1.
    """
    return np.sqrt(np.maximum(np.abs(squares), 5e-324))


def in_sizes(value: Array, *sizes: Array) -> Array:
    """``value`` by ``sizes``, no further from 0 than 1e150, whose squares are numbers."""
    with np.errstate(over="ignore"):
        for size in sizes:
            value = value / size
    return np.clip(value, -1e150, 1e150)


def unit_diagonal(symmetric: Array) -> Array:
    """Symmetric matrices with each feature in its own size: 1, -1 or 0 on the diagonal.

    It has as many negative eigenvalues as before (Sylvester's law of inertia).
    """
    sizes = own_sizes(np.diagonal(symmetric, axis1=-2, axis2=-1))
    return in_sizes(symmetric, sizes[..., :, None], sizes[..., None, :])


def is_covariance(symmetric: Array) -> bool:
    """Whether no eigenvalue is negative but by rounding, as ``covariance`` has it."""
    return float(np.linalg.eigvalsh(unit_diagonal(symmetric))[0]) >= -ROUNDING


def covariance(name: str, value: ArrayLike, dim: int) -> Array:
    """A symmetric positive semi-definite (dim, dim) array, exactly symmetric on return."""
    out = array(name, value, (dim, dim))
    scaled = unit_diagonal(out)
    if (np.abs(scaled - scaled.T) > 1e-8).any():
        raise InputError(f"{name} is not symmetric; pass (C + C.T) / 2 if that is what you mean")
    out = (out + out.T) / 2 if np.abs(out).max(initial=0.0) < 1e300 else out / 2 + out.T / 2
    lowest = float(np.linalg.eigvalsh(scaled)[0])
    if lowest < -ROUNDING:
        raise InputError(
            f"{name} is not positive semi-definite (smallest eigenvalue {lowest:.3g} in units of "
            "the standard deviations); a covariance has no negative eigenvalue, no variance "
            "below 0, and no covariance beside a variance of 0"
        )
    out.setflags(write=False)
    return out


def one_of(name: str, value: Any, choices: Iterable[str]) -> str:
    """One of the listed words; the message suggests the nearest."""
    import difflib

    words = list(choices)
    if not isinstance(value, str) or value not in words:
        folded = {word.casefold(): word for word in words}
        near = difflib.get_close_matches(str(value).casefold(), folded, n=1, cutoff=0.5)
        hint = f"; did you mean {folded[near[0]]!r}?" if near else ""
        more = f", … ({len(words)} in all)" if len(words) > 30 else ""
        shown = ", ".join(words[:8] if more else words)
        raise InputError(f"unknown {name} {_shown(value)}{hint} (choose from {shown}{more})")
    return str(value)


def of_type[T](name: str, value: Any, kind: type[T], hint: str) -> T:
    """A value of one type; the message says how to make one."""
    if not isinstance(value, kind):
        what = f"the class {value.__name__}" if isinstance(value, type) else _shown(value)
        raise InputError(f"{name} must be {kind.__name__}, got {what[:80]}; {hint}")
    return value


def renamed[**P, R](**old: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Accept arguments under earlier names too: ``@renamed(seed="random_seed")``."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def accepting(*args: P.args, **kwargs: P.kwargs) -> R:
            for name, new in old.items():
                if name in kwargs:
                    if new in kwargs:
                        raise InputError(f"{name} is the earlier name of {new}; give one of them")
                    kwargs[new] = kwargs.pop(name)
            return function(*args, **kwargs)

        return accepting

    return decorate
