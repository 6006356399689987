"""Many features: four tasks at a time give what the general way gives, task by task."""

from __future__ import annotations

import numpy as np
import pytest

from bayesmeta.estimators.likelihood import lay_out
from bayesmeta.kernels.estep import estep, estep_value
from bayesmeta.kernels.layout import LANES, MANY, EachTask, Parameters
from tests.kernels.test_regular import NONE, all_general, tasks


@pytest.mark.parametrize("dim", [MANY, MANY + 1, MANY + 2, MANY + 3, 31])
@pytest.mark.parametrize("rank", ["full", "singular"])
def test_agrees_with_the_general_way(dim: int, rank: str) -> None:
    """Sums, and s and W of every task, whatever the number of features leaves over by four."""
    count = LANES + 7
    stats = tasks(dim, dim, count)
    chunk = lay_out(stats, np.eye(dim), slice(None))
    assert chunk.regular >= LANES
    root = 0.3 * np.tril(np.ones((dim, dim))) + np.eye(dim)
    if rank == "singular":
        root[:, dim // 2 :] = 0.0
    at = Parameters(np.linspace(-1, 1, dim), root, 0.7)
    found = []
    for given in (chunk, all_general(chunk)):
        each = EachTask(np.empty_like(given.moments), np.empty_like(given.grams))
        found.append((*estep(given, at, each), *each))
    for one, other in zip(*found, strict=True):
        size = np.abs(other).max()
        np.testing.assert_allclose(one, other, rtol=0, atol=3e-13 * size)
    assert np.abs(found[0][-1][:, : LANES // 2]).min() > 0  # every task has a W


@pytest.mark.parametrize("dim", [MANY, MANY + 1])
def test_value_alone(dim: int) -> None:
    """The same bits as with gradients."""
    chunk = lay_out(tasks(1, dim, 2 * LANES), np.eye(dim), slice(None))
    at = Parameters(np.zeros(dim), np.eye(dim), 0.7)
    found = estep(chunk, at, NONE)
    assert estep_value(chunk, at, np.empty(0)) == (found.logs, found.quad)
