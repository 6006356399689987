"""Weighted sums of rows, compiled and in Python."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode

from bayesmeta.posterior.rows import sum_of_rows


@pytest.mark.parametrize("mode", ["NUMBA", Mode(linker="py", optimizer="fast_compile")])
def test_sum_of_rows(mode: str | Mode) -> None:
    """Weights times a matrix, whatever its shape; the shape follows from the matrix alone."""
    weights, matrix = pt.dvector(), pt.dmatrix()
    summed = sum_of_rows(weights, matrix)
    function = pytensor.function([weights, matrix], [summed, summed.shape[0]], mode=mode)
    rng = np.random.default_rng(0)
    for shape in ((5, 3), (1, 4), (2, 0)):
        w, m = rng.standard_normal(shape[0]), rng.standard_normal(shape)
        found, length = function(w, m)
        np.testing.assert_allclose(found, w @ m, rtol=1e-14, atol=1e-14)
        assert int(length) == shape[1]
