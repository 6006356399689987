"""Concurrent tasks in round-robin against tasks one after another."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

import bayesmeta as bm
from bayesmeta.checks import InputError
from bayesmeta.simulation.concurrent import play_concurrent
from bayesmeta.simulation.simulator import simulate_run
from tests.helpers import size

FAMILY = bm.linear_family(dim=2, hyper_sd=1.0, prior_sd=0.3, noise_sd=0.5, horizon=12)


def test_one_at_a_time_is_the_row() -> None:
    """HierBayesUCB draws nothing: with one task at a time it makes the row's choices."""
    alone = play_concurrent(FAMILY, tasks=5, at_once=1, policy="bayes-ucb", random_seed=4)
    row = simulate_run(FAMILY, [bm.ROSTER["HierBayesUCB"]], tasks=5, seed=4)
    np.testing.assert_allclose(alone.sum(axis=1), row["regret"][0], rtol=1e-9, atol=1e-12)


def test_one_at_a_time_is_adats_in_law() -> None:
    """Null: HierTS, one task after another, has AdaTS's mean regret (paired by tasks and noise)."""
    family = bm.arms_family(arms=2, hyper_sd=1.0, prior_sd=0.3, noise_sd=0.5, horizon=10)
    gaps = []
    for seed in range(60):
        hier = play_concurrent(family, tasks=3, at_once=1, random_seed=seed).sum()
        ada = simulate_run(family, [bm.ROSTER["AdaTS"]], tasks=3, seed=seed)["regret"].sum()
        gaps.append(hier - ada)
    z = np.mean(gaps) / (np.std(gaps, ddof=1) / np.sqrt(len(gaps)))
    assert abs(z) < norm.isf(size("simulation/concurrent") / 2)


def test_tasks_learn_from_those_beside_them() -> None:
    """A task that has played nothing yet is played with what the others have seen: the regret of
    the last task's first step falls when more steps of others come before it."""
    family = bm.arms_family(arms=2, hyper_sd=2.0, prior_sd=0.01, noise_sd=0.1, horizon=4)
    first, later = np.empty(40), np.empty(40)
    for seed in range(40):
        found = play_concurrent(family, tasks=6, random_seed=seed)
        first[seed], later[seed] = found[0, 0], found[5, 1]
    assert later.mean() < 0.2 * first.mean()


def test_bad_input_is_refused() -> None:
    for changes, words in (
        ({"tasks": 0}, "tasks must be at least 1"),
        ({"at_once": 0}, "at_once must be at least 1"),
        ({"policy": "greedy"}, "unknown policy 'greedy'"),
    ):
        with pytest.raises(InputError, match=words):
            play_concurrent(FAMILY, **({"tasks": 2} | changes))
    ball = bm.linear_family(dim=2, actions=bm.WholeBall(2, 1.0))
    with pytest.raises(InputError, match="finitely many actions"):
        play_concurrent(ball, tasks=2)
    with pytest.raises(InputError, match="which the setting lacks"):
        play_concurrent(bm.paper_family(), tasks=2)
