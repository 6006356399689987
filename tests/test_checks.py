"""The checks of what a user hands in: what passes, and that every refusal names its argument."""

from __future__ import annotations

import math
import pickle
import re

import numpy as np
import pytest

from bayesmeta.checks import (
    Advice,
    Argument,
    InputError,
    array,
    covariance,
    is_covariance,
    one_of,
    real,
    renamed,
    whole,
)


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


@pytest.mark.parametrize(
    "value", ["one", None, [1.0], 1j, {}, np.array([1.0, 2.0]), np.array([1.0])]
)
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
    for scale in (1e-200, 1.0, 1e200, 1e308):
        out = covariance("c", scale * np.array([[1.0, 0.5], [0.5 + 1e-12, 1.0]]), 2)
        assert (out == out.T).all() and not out.flags.writeable
        np.testing.assert_allclose(out, scale * np.array([[1.0, 0.5], [0.5, 1.0]]), rtol=1e-11)


@pytest.mark.parametrize("lowest", [1.0, 0.0, -1e-12, -1e-9, -1.0])
def test_what_is_a_covariance_is_accepted_as_one(lowest: float) -> None:
    """A matrix with variances 1 whose smaller eigenvalue is this; in other units, too."""
    for unit in (1e-6, 1.0, 1e6):
        scale = np.array([1.0, unit])
        matrix = np.array([[1.0, 1 - lowest], [1 - lowest, 1.0]]) * scale * scale[:, None]
        found = is_covariance(matrix)
        assert found is (lowest > -1e-10)
        if found:
            covariance("c", matrix, 2)
        else:
            with pytest.raises(InputError, match="not positive semi-definite"):
                covariance("c", matrix, 2)


def test_covariance_refusals() -> None:
    """Not symmetric, negative definite beyond rounding, wrong shape; a singular one passes."""
    assert (covariance("c", np.zeros((2, 2)), 2) == 0).all()
    assert (covariance("c", np.ones((2, 2)), 2) == 1).all()
    with pytest.raises(InputError, match="c is not symmetric"):
        covariance("c", [[1.0, 0.5], [0.0, 1.0]], 2)
    with pytest.raises(InputError, match="c is not symmetric"):
        covariance("c", [[1e308, 1e308], [-1e308, 1e308]], 2)
    with pytest.raises(InputError, match=r"c is not positive semi-definite .* -1"):
        covariance("c", [[1.0, 2.0], [2.0, 1.0]], 2)
    with pytest.raises(InputError, match=re.escape("c must have shape (2, 2), got (3, 3)")):
        covariance("c", np.eye(3), 2)


@pytest.mark.parametrize(
    "value, message",
    [
        ([[1e12, 0.0], [0.0, -1.0]], "not positive semi-definite .* -1 "),
        ([[1e12, 8e3], [0.0, 1.0]], "not symmetric"),
        ([[1e12, 2e6], [2e6, 1.0]], "not positive semi-definite .* -1 "),
        ([[1.0, 0.0], [0.0, -1e-20]], "not positive semi-definite .* -1 "),
        ([[1.0, 1e-20], [1e-20, 0.0]], "not positive semi-definite"),
        ([[1.0, 1e-20], [0.0, 0.0]], "not symmetric"),
        ([[1e-300, 1e300], [1e300, 1e-300]], "not positive semi-definite"),
    ],
)
def test_a_covariance_is_judged_in_units_of_its_own(value: list, message: str) -> None:
    """A feature with large numbers hides nothing that is wrong with one with small numbers."""
    with pytest.raises(InputError, match="^c is " + message):
        covariance("c", value, 2)


@pytest.mark.parametrize("unit", [1e-140, 1e-8, 1.0, 1e8, 1e140])
def test_rounding_of_a_covariance_is_accepted_in_all_units(unit: float) -> None:
    """Singular covariances, whose smallest eigenvalue may be rounding below 0."""
    for seed in range(20):
        half = np.random.default_rng(seed).standard_normal((4, 2))
        half *= np.array([1.0, unit, 1.0, unit])[:, None]
        half[2] = 0.0
        cov = half @ half.T
        np.testing.assert_array_equal(covariance("c", cov, 4), (cov + cov.T) / 2)


def test_one_of_suggests_the_nearest() -> None:
    """A near miss is answered with the word that was meant, a far one with the list alone."""
    assert one_of("colour", "red", ["red", "green"]) == "red"
    with pytest.raises(InputError, match=r"unknown colour 'gren'; did you mean 'green'\?"):
        one_of("colour", "gren", ["red", "green"])
    with pytest.raises(InputError, match=r"unknown colour 'x' \(choose from red, green\)"):
        one_of("colour", "x", ["red", "green"])
    for no_word in (np.array(["red", "green"]), 1, None, ["red"]):
        with pytest.raises(InputError, match="unknown colour"):
            one_of("colour", no_word, ["red", "green"])


def test_input_error_is_a_value_error() -> None:
    """Callers who catch ValueError catch ours."""
    with pytest.raises(ValueError, match="n must be"):
        whole("n", 0.5)


def test_advice_names_arguments_or_options() -> None:
    """Fields without a value are arguments; values are shown as they are, braces included."""
    advice = Advice("{found} is odd; give {noise_sd} or {prior}", found="{x}_y")
    assert advice == "{x}_y is odd; give noise_sd or prior"
    for one in (advice, pickle.loads(pickle.dumps(advice))):
        assert one.in_options() == "{x}_y is odd; give --noise-sd or --prior"
        assert one.in_options({"prior": "--prior-eta"}).endswith("--noise-sd or --prior-eta")
    words = Advice("{argument} is 0", argument=Argument("the largest reward"))
    assert words.in_options() == "the largest reward is 0"


def test_refusals_of_numbers_name_the_option() -> None:
    """Also of an error that came from another process, and of names that are options already."""
    for name, option in (("random_seed", "--random-seed"), ("--jobs", "--jobs")):
        for value in (-1, "two{}"):
            with pytest.raises(InputError) as found:
                whole(name, value)
            error = pickle.loads(pickle.dumps(found.value))
            assert str(error) == str(found.value)
            assert error.args[0].in_options() == str(error).replace(name, option)


def test_earlier_names_are_accepted() -> None:
    """The argument arrives under its new name; both at once are refused."""

    @renamed(seed="random_seed")
    def twice(random_seed: int = 0) -> int:
        """Double."""
        return 2 * random_seed

    assert twice(seed=3) == twice(random_seed=3) == twice(3) == 6 and twice.__doc__ == "Double."
    with pytest.raises(InputError, match="seed is the earlier name of random_seed"):
        twice(seed=3, random_seed=3)


@pytest.mark.parametrize(
    "value",
    [
        np.ma.masked_array([1.0, 2.0], [True, False]),
        np.array([1, 2], "datetime64[s]"),
        np.array([1, 2], "timedelta64[s]"),
        [np.timedelta64(1, "s"), np.timedelta64(2, "s")],
        np.ones(60) + 1j,
    ],
    ids=["masked", "dates", "lengths", "list of lengths", "complex"],
)
def test_what_only_looks_like_numbers_is_refused_in_one_line(value: object) -> None:
    """NumPy would use what is masked, count seconds, and print several lines."""
    with pytest.raises(InputError, match=r"^x ") as error:
        array("x", value, (None,))  # type: ignore[arg-type]
    assert str(error.value).isprintable() and len(str(error.value)) < 300


def test_a_mask_without_masked_entries_is_no_harm() -> None:
    """Only entries that are masked are missing."""
    assert array("x", np.ma.masked_array([1.0, 2.0]), (2,)).tolist() == [1.0, 2.0]
