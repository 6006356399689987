"""Random numbers drawn inside kernels are those of NumPy's generators."""

from __future__ import annotations

import numpy as np
import pytest

from bayesmeta.kernels import pcg
from bayesmeta.kernels.jit import kernel


@kernel
def normals(source, out):
    pcg.fill_normals(source, out)


@kernel
def exponentials(source, out):
    pcg.fill_exponentials(source, out)


LAWS = {"standard_normal": normals, "standard_exponential": exponentials}
BITS = {"pcg": np.random.PCG64, "another": np.random.Philox}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("bits", BITS)
def test_numbers_are_numpys(law: str, bits: str) -> None:
    """Tails included: of a million normals some 260 lie beyond the ziggurat. The generator is left
    where NumPy leaves it."""
    one, other = (np.random.Generator(BITS[bits](5)) for _ in range(2))
    out = np.empty(1_000_000)
    pcg.draw_with(one, LAWS[law], out)
    np.testing.assert_array_equal(out, getattr(other, law)(out.size))
    np.testing.assert_equal(one.bit_generator.state, other.bit_generator.state)


def test_half_a_word_is_kept() -> None:
    """An integer of 32 bits leaves the other half of a word for the next one."""
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    for rng in (one, other):
        rng.integers(2**32, dtype=np.uint32)
    pcg.draw_with(one, normals, np.empty(5))
    other.standard_normal(5)
    assert one.bit_generator.state == other.bit_generator.state
    assert one.bit_generator.state["has_uint32"] == 1


@pytest.mark.parametrize("size", [0, 1, pcg.FEW - 1, pcg.FEW, 3 * pcg.FEW])
def test_few_or_many(size: int) -> None:
    one, other, out = np.random.default_rng(7), np.random.default_rng(7), np.empty(size)
    pcg.draw_normals(one, out)
    np.testing.assert_array_equal(out, other.standard_normal(size))
    assert one.random() == other.random()


@pytest.mark.parametrize("words", [(2**64 - 1,) * 4, (0, 0, 0, 1), (1, 0, 2**63, 2**64 - 1)])
def test_states_with_extreme_words(words: tuple[int, ...]) -> None:
    """Carries between the words of a state."""

    def made() -> np.random.Generator:
        rng = np.random.default_rng(0)
        state = rng.bit_generator.state
        state["state"] = {"state": words[0] << 64 | words[1], "inc": words[2] << 64 | words[3] | 1}
        rng.bit_generator.state = state
        return rng

    one, other, out = made(), made(), np.empty(2000)
    pcg.draw_with(one, normals, out)
    np.testing.assert_array_equal(out, other.standard_normal(2000))
    assert one.bit_generator.state == other.bit_generator.state
