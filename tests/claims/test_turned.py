"""Edges whose matrices do not commute: all events hold, with nothing to spare."""

from __future__ import annotations

import math

import numpy as np

from bayesmeta.claims.turned import turned_edges
from bayesmeta.claims.verdict import Level
from bayesmeta.theory import alignment

QUICK = Level(quick=True, seed=0, size=1e-8)


def test_edges_are_on_the_edge() -> None:
    """At least 100 of them, most far from commuting; E_v, E_s and E_theta are reached exactly."""
    edges = turned_edges(QUICK)
    assert len(edges) >= 100
    apart = []
    for one in edges:
        edge = one.edge
        np.testing.assert_allclose(np.linalg.eigvalsh(one.true)[0], edge.low, rtol=1e-9)
        np.testing.assert_allclose(np.linalg.norm(one.more, 2), edge.cov, rtol=1e-9)
        assert np.linalg.eigvalsh(one.more)[0] >= -1e-12 * edge.cov
        floor = edge.action_min * edge.dim / 2
        np.testing.assert_allclose(np.linalg.eigvalsh(one.gram)[0], floor, rtol=1e-9)
        assert edge.delta_m(corrected=True) <= 1 + 1e-9
        swap = one.true @ one.gram - one.gram @ one.true
        apart.append(np.linalg.norm(swap, 2) / np.linalg.norm(one.true @ one.gram, 2))
    assert np.mean(np.array(apart) > 0.01) > 0.3


def test_the_largest_ratio_is_one_of_the_model() -> None:
    """The shift and the ratio are those of the alignment, at no theta, mean or noise beyond the
    events; and no random ones within them do worse."""
    rng = np.random.default_rng(0)
    for one in turned_edges(QUICK)[::16]:
        edge, d = one.edge, one.edge.dim
        far, root = math.sqrt(5 * d * edge.log), alignment.symmetric_power(one.aligned, 0.5)
        turn = alignment.symmetric_power(one.gram, 0.5) @ np.linalg.inv(root)
        worst = 0.0
        for _ in range(20):
            corner = math.sqrt(2 * edge.corner) * rng.uniform(-1, 1, d)
            way, y = rng.standard_normal((2, d))
            off = edge.mean * way / np.linalg.norm(way)
            y *= far / np.linalg.norm(y)
            inner = off + one.more @ alignment.symmetric_power(one.true, -0.5) @ corner
            shift = edge.sigma**2 * np.linalg.solve(one.true + one.more, inner)
            noise = edge.sigma * root @ y
            moved = shift + turn @ noise
            log = alignment.noise_log_ratio(noise, moved, one.aligned, edge.sigma)
            worst = max(worst, log)
        assert worst <= one.log_ratio * (1 + 1e-9)
