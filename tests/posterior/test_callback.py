"""The log-density that nutpie calls without Python is the one that Python calls."""

from __future__ import annotations

import ctypes
from typing import Any

import numba
import numpy as np
import pytest

from bayesmeta.checks import Array
from bayesmeta.posterior.callback import RECOVERABLE, Callback, as_callback
from bayesmeta.posterior.model import check_problem
from bayesmeta.posterior.target import Target
from bayesmeta.posterior.whitening import find_frame
from tests.helpers import Problem

POINTER = ctypes.POINTER(ctypes.c_double)


def answer(callback: Callback, point: Array) -> tuple[int, float, Array]:
    """What nutpie gets: a code, a value and a gradient."""
    value, gradient = np.zeros(1), np.zeros(len(point))
    call: Any = callback.density.ctypes
    places = callback.places.ctypes.data_as(call.argtypes[-1])
    arrays = [one.ctypes.data_as(call.argtypes[1]) for one in (point, gradient, value)]
    return call(len(point), *arrays, places), float(value[0]), gradient


@pytest.mark.parametrize(("dim", "model"), [(2, "fused"), (5, "fused"), (2, "noncentred")])
def test_same_bits_as_through_python(dim: int, model: str) -> None:
    """In a frame or not, for two dimensions of one compiled model."""
    target = Target(check_problem(Problem(dim, dim, 30).stats, 1.0, None, model))
    frame = find_frame(target) if model == "fused" else None
    callback = as_callback(target.compiled.value_and_gradient, target.data(frame))
    for seed in range(5):
        point = np.random.default_rng(seed).standard_normal(target.size)
        code, value, gradient = answer(callback, point)
        expected = target.density(frame)(point)
        assert (code, value) == (0, expected[0])
        np.testing.assert_array_equal(gradient, expected[1])


@numba.njit
def _moody(*args):  # type: ignore[no-untyped-def]
    point, limit = args
    if point[0] > limit[0]:
        raise ValueError("too large")
    return np.asarray(np.log(point[0])), 1 / point


def test_errors_and_infinities_are_told() -> None:
    """As codes: nothing is raised, and nothing is printed."""
    callback = as_callback(_moody, [np.array([2.0])])
    assert answer(callback, np.array([1.0, 2.0]))[0] == 0
    assert answer(callback, np.array([3.0, 2.0]))[0] == RECOVERABLE
    assert answer(callback, np.array([0.0, 2.0]))[0] == RECOVERABLE
    assert answer(callback, np.array([1.0, 0.0]))[0] == RECOVERABLE
