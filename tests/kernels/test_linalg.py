"""Definiteness and rank by elimination, where a pivot is zero."""

from __future__ import annotations

import numpy as np
import pytest

from bayesmeta.kernels.linalg import has_full_rank, is_semidefinite

NAN = float("nan")


@pytest.mark.parametrize(
    ("matrix", "wanted"),
    [
        ([[0.0]], True),
        ([[-1e-300]], False),
        ([[NAN]], False),
        ([[0.0, 1.0], [1.0, 0.0]], False),  # a zero on the diagonal, but not beside it
        ([[0.0, 1e-300], [1e-300, 1.0]], False),
        ([[0.0, 0.0], [0.0, 1.0]], True),
        ([[0.0, 0.0], [0.0, -1.0]], False),
        ([[0.0, 0.0, 0.0], [0.0, 1.0, 2.0], [0.0, 2.0, 3.0]], False),
        ([[0.0, 0.0, 0.0], [0.0, 1.0, 2.0], [0.0, 2.0, 4.0]], True),
        ([[1.0, 1.0], [1.0, 1.0]], True),  # the zero comes by elimination
        ([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 0.0, 2.0]], False),
        ([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 2.0]], True),
        ([[4.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, -1.0]], False),
    ],
)
def test_zero_pivots(matrix: list[list[float]], wanted: bool) -> None:
    """A matrix with a zero pivot is semi-definite only if the rest of its row is zero, too; and
    elimination goes on after it."""
    assert is_semidefinite(np.triu(np.array(matrix))) == wanted


def test_a_direction_never_taken_is_not_full_rank() -> None:
    """Nor is a gram with a feature that is another's multiple, in whatever units."""
    work = np.empty((2, 2))
    assert not has_full_rank(np.diag([1.0, 0.0]), work)
    assert not has_full_rank(np.array([[1.0, 1e8], [1e8, 1e16]]), work)
    assert has_full_rank(np.diag([1e-200, 1e200]), work)
