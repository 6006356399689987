"""TaskStatistics: validation, least squares, concatenation."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from bayesmeta.checks import InputError
from bayesmeta.statistics import TaskStatistics


def tasks(seed: int, n: int, d: int, steps: int, *, full: bool = True) -> TaskStatistics:
    rng = np.random.default_rng(seed)
    actions, rewards = rng.standard_normal((n, steps, d)), rng.standard_normal((n, steps))
    gram = np.einsum("nti,ntj->nij", actions, actions)
    moment = np.einsum("nti,nt->ni", actions, rewards)
    if not full:
        return TaskStatistics(gram, moment)
    return TaskStatistics(gram, moment, np.full(n, steps), (rewards**2).sum(1))


def test_shapes_and_freezing() -> None:
    """n tasks of dimension d; arrays are frozen copies."""
    gram = np.zeros((3, 2, 2))
    found = TaskStatistics(gram, np.zeros((3, 2)), [1, 2, 3])
    gram[0, 0, 0] = 5.0
    assert len(found) == 3 and found.dim == 2 and found.energy is None
    assert (
        found.gram[0, 0, 0] == 0.0 and found.count is not None and found.count.tolist() == [1, 2, 3]
    )
    with pytest.raises(ValueError, match="read-only"):
        found.moment[0, 0] = 1.0


def test_no_tasks_are_allowed() -> None:
    """An empty collection has a dimension and no estimates."""
    none = TaskStatistics(np.zeros((0, 3, 3)), np.zeros((0, 3)), [], [])
    assert len(none) == 0 and none.dim == 3 and none.determined().shape == (0,)


def test_singular_grams_are_allowed() -> None:
    """Fewer steps than dimensions can be held; such a task does not determine its theta."""
    gram = np.stack([np.eye(2), [[1.0, 1.0], [1.0, 1.0]]])
    assert TaskStatistics(gram, np.ones((2, 2))).determined().tolist() == [True, False]


def test_concatenate() -> None:
    """All tasks in order; an optional field survives only where every part has it."""
    first, second, bare = tasks(1, 2, 3, 5), tasks(2, 4, 3, 6), tasks(3, 1, 3, 5, full=False)
    both = TaskStatistics.concatenate([first, second])
    assert len(both) == 6
    np.testing.assert_array_equal(both.gram, np.concatenate([first.gram, second.gram]))
    np.testing.assert_array_equal(both.moment, np.concatenate([first.moment, second.moment]))
    assert both.count is not None and both.count.tolist() == [5, 5, 6, 6, 6, 6]
    assert both.energy is not None and both.energy.shape == (6,)
    mixed = TaskStatistics.concatenate(iter([first, bare]))
    assert len(mixed) == 3 and mixed.count is None and mixed.energy is None
    np.testing.assert_array_equal(mixed.moment[2], bare.moment[0])


def test_concatenate_refuses() -> None:
    """Nothing to join has no dimension; parts of different dimensions do not join."""
    with pytest.raises(InputError, match="concatenate needs at least one"):
        TaskStatistics.concatenate([])
    with pytest.raises(InputError, match="dimension"):
        TaskStatistics.concatenate([tasks(0, 1, 2, 3), tasks(0, 1, 3, 4)])
    gram, moment = np.stack([np.eye(2)] * 2), np.ones((2, 2))
    parts = [TaskStatistics(gram, moment, features=f) for f in (("a", "b"), ("b", "a"))]
    with pytest.raises(InputError, match="same features in all parts, in the same order"):
        TaskStatistics.concatenate(parts)


@pytest.mark.parametrize(
    ("gram", "moment", "words"),
    [
        ([[[1.0, 2.0], [2.0, 1.0]]], [[1.0, 1.0]], "negative eigenvalues"),
        ([[[-1.0, 0.0], [0.0, 1.0]]], [[1.0, 1.0]], "negative eigenvalues"),
        ([[[1.0, 0.0], [0.0, 0.0]]], [[1.0, 1.0]], "moment must be 0 where"),
        (np.zeros((2, 0, 0)), np.zeros((2, 0)), "no features"),
    ],
)
def test_sums_that_cannot_be_are_refused(gram: object, moment: object, words: str) -> None:
    """Grams that are no sums of squares, rewards of features that are always 0, no features."""
    with pytest.raises(InputError, match=words):
        TaskStatistics(gram, moment)  # type: ignore[arg-type]


def test_a_rank_one_gram_of_many_steps_is_singular() -> None:
    """Rounding of two thousand additions does not make it invertible, in any units."""
    rng = np.random.default_rng(0)
    for scale in (1.0, 1e-7, 1e8):
        direction = rng.standard_normal((50, 1, 3)) * [1.0, scale, 1.0]
        rows = rng.standard_normal((50, 2000, 1)) * direction
        found = TaskStatistics(
            np.einsum("nti,ntj->nij", rows, rows), np.einsum("nti->ni", rows), None, None
        )
        assert not found.determined().any()


def test_a_large_level_of_the_rewards_costs_no_digits() -> None:
    """Residuals do not depend on what is added to all rewards, until their sums do not show it."""
    rng = np.random.default_rng(1)
    task, rows = np.repeat(np.arange(20), 6), np.column_stack([np.ones(120), rng.uniform(size=120)])
    rewards = rng.standard_normal(120)
    plain = TaskStatistics.from_arrays(task, rewards, rows).residuals()
    lifted = TaskStatistics.from_arrays(task, rewards + 1e4, rows).residuals()
    np.testing.assert_allclose(lifted, plain, rtol=1e-6)
    with pytest.raises(InputError, match="take a constant off"):
        TaskStatistics.from_arrays(task, rewards + 1e7, rows).residuals()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"moment": np.zeros(2)}, "moment must have shape (any, any), got (2,)"),
        ({"gram": np.zeros((2, 2))}, "gram must have shape (1, 2, 2), got (2, 2)"),
        ({"gram": np.zeros((2, 2, 2))}, "gram must have shape (1, 2, 2), got (2, 2, 2)"),
        ({"gram": [[[1.0, 0.0], [0.5, 1.0]]]}, "gram is not symmetric"),
        ({"gram": [[[1.0, math.nan], [0.5, 1.0]]]}, "gram has a NaN"),
        ({"moment": [[0.0, math.inf]]}, "moment has a NaN or infinite entry at (0, 1)"),
        ({"count": [1.0, 2.0]}, "count must have shape (1"),
        ({"count": [-1.0]}, "count must not be negative"),
        ({"count": [5.5]}, "count must be whole numbers"),
        ({"energy": [-1.0]}, "energy must not be negative"),
        ({"energy": [math.nan]}, "energy has a NaN"),
    ],
)
def test_bad_statistics_are_refused_by_name(change: dict[str, object], message: str) -> None:
    """The message names the field."""
    fields: dict[str, object] = {"gram": np.zeros((1, 2, 2)), "moment": np.zeros((1, 2))}
    with pytest.raises(InputError, match="^" + re.escape(message)):
        TaskStatistics(**(fields | change))


def test_residuals_are_those_of_least_squares() -> None:
    """Pooled over tasks, with the rank of each taken off its steps, singular grams included."""
    rng = np.random.default_rng(3)
    left = free = 0.0
    grams, moments, counts, energies = [], [], [], []
    for steps in (1, 2, 5, 9):
        rows, rewards = rng.standard_normal((steps, 3)), rng.standard_normal(steps)
        gap = rewards - rows @ np.linalg.lstsq(rows, rewards)[0]
        left, free = left + gap @ gap, free + steps - min(steps, 3)
        grams.append(rows.T @ rows)
        moments.append(rows.T @ rewards)
        counts.append(steps)
        energies.append(rewards @ rewards)
    found = TaskStatistics(grams, moments, counts, energies).residuals()
    np.testing.assert_allclose(found, (left, free), rtol=1e-9)
    with pytest.raises(InputError, match="needs count and energy"):
        TaskStatistics(grams, moments).residuals()
