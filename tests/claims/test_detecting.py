"""The laws of V that policies made to detect a wide prior are judged by."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from bayesmeta.claims.detecting import (
    _below,
    _lowest,
    gram_below,
    never_with_the_true_prior,
    one_dimension,
    several_dimensions,
)
from bayesmeta.claims.one_dimension import small_gram
from bayesmeta.claims.verdict import Level

QUICK = Level(quick=True, seed=0, size=1e-8)


def test_the_law_of_the_gram_in_one_dimension() -> None:
    """By inversion, as a ball's volume, and drawn: the same."""
    assert small_gram(2, 0.25) == pytest.approx(np.pi / 16)  # a quarter of the disc in [0, 1]^2
    rng = np.random.default_rng(0)
    drawn = (rng.uniform(-1, 1, (50_000, 40)) ** 2).sum(axis=1)
    for v in (10.0, 13.0, 16.0):
        assert gram_below(40, v) == pytest.approx((drawn <= v).mean(), abs=0.01)
    assert gram_below(40, 12.0) < gram_below(40, 12.01)
    assert gram_below(60, 1.0) == pytest.approx(small_gram(60, 1.0), abs=1e-10)


@pytest.mark.parametrize("d", [1, 2])
def test_a_gram_of_few_moving_actions(d: int) -> None:
    """The bound on P(lambda_min(V) <= v) is the law in one dimension, at least it in two, and not
    much more."""
    rng, tau, v, runs = np.random.default_rng(1), 20, 0.05, 100_000
    drawn = {k: _lowest(rng, d, k, 50_000) for k in range(d, d + 3) if d > 1}
    raw = rng.uniform(-1, 1, (runs, tau, d))
    moves = (np.linalg.norm(raw, axis=2, keepdims=True) <= 1) & (rng.random((runs, tau, 1)) < 0.3)
    share = 0.3 * (1.0 if d == 1 else np.pi / 4)  # of the square the disc
    found = _below(d, binom.pmf(range(tau), tau, share), drawn, 1e-8, v)
    actions = raw * moves
    low = np.linalg.eigvalsh(actions.transpose(0, 2, 1) @ actions)[:, 0] <= v
    assert found == pytest.approx(low.mean(), rel=0.03) if d == 1 else low.mean() < found
    assert found < 1.5 * low.mean()


def test_a_policy_that_never_errs_with_the_true_prior() -> None:
    """Played step by step from posteriors alone: the learner who knows the prior never errs, the
    other in all steps or in none, and just where lambda_min(V) <= B."""
    rng, wide, true, steps = np.random.default_rng(2), 1.5, 1.0, 4
    gap = 1 / true - 1 / wide  # sigma = 1
    seen = set()
    for _ in range(200):
        raw = rng.uniform(-1, 1, (3, 2)) * (rng.random((3, 1)) < 0.5)
        gram = raw.T @ raw
        errs = {}
        for prior in (true, wide):
            precision = np.eye(2) / prior + gram
            errs[prior] = []
            for played in range(steps):
                added = np.diag([played, 0.0])
                least = np.linalg.eigvalsh(precision - added - np.eye(2) / true)[0]
                errs[prior].append(bool(least < -1e-12))
                precision[0, 0] += 1.0  # e_1 or -e_1
        below = bool(np.linalg.eigvalsh(gram)[0] < gap - 1e-12)
        assert errs[true] == [False] * steps and errs[wide] == [below] * steps
        seen.add(below)
    assert seen == {True, False}


def test_theorem_1_is_nearly_reached() -> None:
    """By bad events a fifth of the bound and more, in two dimensions too; where k_1 R is most of
    the bound a hundredth. No part of these bounds is slack that a check would not notice."""
    never = {point.where["d"]: point for point in never_with_the_true_prior(QUICK)}
    assert all(point.outcome == "holds" for point in never.values())
    assert never[1].left > 0.5 * never[1].right and never[2].left > 0.2 * never[2].right
    for point in (*one_dimension(QUICK), *several_dimensions(QUICK)):
        assert point.outcome == "holds" and point.left > 0.01 * point.right
