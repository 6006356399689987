"""The checks of what a user hands in: what passes, and that every refusal names its argument."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from bayesmeta.checks import InputError, array, covariance, one_of, real, renamed, whole


def test_real_returns_a_float() -> None:
    """Integers, NumPy scalars and zero-dimensional arrays come back as Python floats."""
    for value in (2, 2.0, np.float32(2), np.int64(2), np.array(2.0)):
        number = real("x", value)
        assert type(number) is float and number == 2.0


def test_real_bounds() -> None:
    """``above`` is strict and ``least`` is not."""
    assert real("x", 0.0, least=0.0) == 0.0
    with pytest.raises(InputError, match="x must be greater than 0"):
        real("x", 0.0, above=0.0)
    with pytest.raises(InputError, match="x must be at least 0"):
        real("x", -1e-300, least=0.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_real_refuses_what_is_not_finite(value: float) -> None:
    """NaN passes every comparison, so it must be refused before any."""
    with pytest.raises(InputError, match="noise_sd must be finite"):
        real("noise_sd", value, above=0.0)


@pytest.mark.parametrize("value", ["one", None, [1.0], 1j, {}, np.array([1.0, 2.0])])
def test_real_refuses_what_is_not_a_number(value: object) -> None:
    """Anything without a float value is refused by name."""
    with pytest.raises(InputError, match=r"^radius must be a number"):
        real("radius", value)


def test_integers_beyond_floats_are_refused() -> None:
    """An integer too large for a float is bad input like any other, alone and in an array."""
    with pytest.raises(InputError, match=r"^radius must be"):
        real("radius", 10**400)
    with pytest.raises(InputError, match=r"^x must be"):
        array("x", [10**400], (1,))


def test_whole_accepts_integers_only() -> None:
    """Python and NumPy integers; not floats, truth values, text or nothing."""
    assert whole("n", np.int32(3), least=3) == 3 and type(whole("n", np.int32(3))) is int
    for value in (3.0, True, np.True_, "3", None, math.nan):
        with pytest.raises(InputError, match="n must be a whole number"):
            whole("n", value)
    with pytest.raises(InputError, match="n must be at least 1, got 0"):
        whole("n", 0, least=1)


def test_array_is_a_frozen_copy() -> None:
    """The caller's array can change afterwards without changing ours, and ours cannot change."""
    mine = np.ones((2, 3))
    out = array("x", mine, (None, 3))
    mine[:] = 7.0
    assert (out == 1.0).all() and out.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        out[0, 0] = 2.0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones(3), "x must have shape (any, 2), got (3,)"),
        (np.ones((2, 3)), "x must have shape (any, 2), got (2, 3)"),
        (1.0, "x must have shape (any, 2), got ()"),
        ([[1.0, 2.0], [3.0, math.nan]], "x has a NaN or infinite entry at (1, 1)"),
        ([[math.inf, 2.0]], "x has a NaN or infinite entry at (0, 0)"),
        ([[1.0], [1.0, 2.0]], "x must be an array of numbers"),
        ([["a", "b"]], "x must be an array of numbers"),
        (None, "x must"),
        ([[1j, 1.0]], "x must be an array of numbers"),
    ],
)
def test_array_refusals(value: object, message: str) -> None:
    """A wrong shape, a NaN and its place, and what is not numbers, each by name."""
    with pytest.raises(InputError, match="^" + re.escape(message)):
        array("x", value, (None, 2))


def test_covariance_is_exactly_symmetric() -> None:
    """Rounding asymmetry is removed, not refused, at any scale."""
    for scale in (1e-200, 1.0, 1e200):
        out = covariance("c", scale * np.array([[1.0, 0.5], [0.5 + 1e-12, 1.0]]), 2)
        assert (out == out.T).all() and not out.flags.writeable


def test_covariance_refusals() -> None:
    """Not symmetric, negative definite beyond rounding, wrong shape; a singular one passes."""
    assert (covariance("c", np.zeros((2, 2)), 2) == 0).all()
    assert (covariance("c", np.ones((2, 2)), 2) == 1).all()
    with pytest.raises(InputError, match="c is not symmetric"):
        covariance("c", [[1.0, 0.5], [0.0, 1.0]], 2)
    with pytest.raises(InputError, match=r"c is not positive semi-definite .* -1"):
        covariance("c", [[1.0, 2.0], [2.0, 1.0]], 2)
    with pytest.raises(InputError, match=re.escape("c must have shape (2, 2), got (3, 3)")):
        covariance("c", np.eye(3), 2)


def test_one_of_suggests_the_nearest() -> None:
    """A near miss is answered with the word that was meant, a far one with the list alone."""
    assert one_of("colour", "red", ["red", "green"]) == "red"
    with pytest.raises(InputError, match=r"unknown colour 'gren'; did you mean 'green'\?"):
        one_of("colour", "gren", ["red", "green"])
    with pytest.raises(InputError, match=r"unknown colour 'x' \(choose from red, green\)"):
        one_of("colour", "x", ["red", "green"])


def test_input_error_is_a_value_error() -> None:
    """Callers who catch ValueError catch ours."""
    with pytest.raises(ValueError, match="n must be"):
        whole("n", 0.5)


def test_an_earlier_name_of_an_argument_is_accepted() -> None:
    """Under either name, not under both; others pass as they are."""

    @renamed(seed="random_seed")
    def draw(n: int, *, random_seed: int = 0) -> tuple[int, int]:
        """What it does."""
        return n, random_seed

    assert draw(3, seed=5) == draw(3, random_seed=5) == (3, 5) and draw(n=1) == (1, 0)
    assert (draw.__name__, draw.__doc__) == ("draw", "What it does.")
    with pytest.raises(InputError, match=r"^seed is an earlier name of random_seed; .* not both"):
        draw(3, seed=1, random_seed=1)
    with pytest.raises(TypeError, match="sead"):
        draw(3, sead=1)
