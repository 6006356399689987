"""Sums that no rows can have are refused, and rows whose sums have lost what they show."""

from __future__ import annotations

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.checks import InputError
from bayesmeta.statistics import TaskStatistics


def sessions(
    width: float, origin: float, tasks: int = 12, steps: int = 8
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Task, reward and time in seconds: one session a day, of ``width`` seconds about noon."""
    rng = np.random.default_rng(11)
    task = np.repeat(np.arange(tasks), steps)
    within = rng.uniform(-1, 1, len(task))
    theta = rng.standard_normal((tasks, 2)) * [1.0, 0.2] + [0.0, 0.5]
    reward = theta[task, 0] + theta[task, 1] * within + 0.1 * rng.standard_normal(len(task))
    return task, reward, origin + 86400.0 * task + width * within


def with_intercept(feature: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(feature)), feature])


def test_times_whose_sums_lose_the_slope_are_refused() -> None:
    """Unix times of sessions of half a minute; from a nearer origin they are fitted."""
    task, reward, time = sessions(30.0, 1.7e9)
    with pytest.raises(
        InputError, match=r"^in task 0 the feature 'time' .* nearer origin"
    ) as found:
        TaskStatistics.from_arrays(task, reward, with_intercept(time), ["intercept", "time"])
    assert "\n" not in str(found.value)
    days, first = time - 1.7e9, time - time[np.searchsorted(task, task)]
    TaskStatistics.from_arrays(task, reward, with_intercept(days), ["intercept", "time"])
    TaskStatistics.from_arrays(task, reward, with_intercept(first), ["intercept", "time"])


def test_the_task_and_the_feature_are_named() -> None:
    """The one task that is far off, and what depends on others, not what is constant or apart."""
    rng = np.random.default_rng(0)
    rows, task = rng.standard_normal((40, 4)), np.repeat(list("abcdefgh"), 5)
    rows[task == "c", 1] = rows[task == "c", 0] + 1e-8 * rows[task == "c", 1]
    rows[:, 2] = 1.0
    with pytest.raises(InputError, match=r"^in task 'c' the feature 'x2' is"):
        TaskStatistics.from_arrays(task, rng.standard_normal(40), rows)


@pytest.mark.parametrize("scale", [1.0, 1e-60, 1e60])
def test_rows_that_are_dependent_are_held(scale: float) -> None:
    """Few rows, repeated rows, constant and zero features, a feature that is the sum of others."""
    rng = np.random.default_rng(1)
    task = np.repeat(np.arange(6), [1, 2, 5, 6, 7, 300])
    rows = rng.standard_normal((len(task), 3))
    rows[task == 2] = rows[task == 2][0]
    rows[task == 3, 1:] = [1.7e9, 0.0]
    rows[task == 4, 2] = rows[task == 4, 0] + 0.1 * rows[task == 4, 1]
    rows[task == 5] = rng.standard_normal((300, 1)) * [0.1, 0.3, 0.7]
    stats = TaskStatistics.from_arrays(task, rng.standard_normal(len(task)), rows * scale)
    assert not stats.determined().any()
    assert stats.residuals()[1] == 0 + 0 + 4 + 4 + 5 + 299


def test_noise_leaves_out_tasks_of_doubtful_rank() -> None:
    """Two tasks far off, whose sums do not show their slope: it is not taken for noise."""
    task, reward, time = sessions(1.0, 0.0)
    time = time - 86400.0 * task
    rows = with_intercept(time)
    near = TaskStatistics.from_arrays(task, reward, rows)
    rows[task < 2, 1] += 3e6
    far = TaskStatistics(
        [rows[task == j].T @ rows[task == j] for j in range(12)],
        [rows[task == j].T @ reward[task == j] for j in range(12)],
        near.count,
        near.energy,
    )
    assert far.determined().tolist() == [False] * 2 + [True] * 10
    rest = TaskStatistics(far.gram[2:], far.moment[2:], near.count[2:], near.energy[2:])  # type: ignore[index]
    left, free = far.residuals()
    assert free == 60
    np.testing.assert_allclose(left, rest.residuals()[0], rtol=1e-6)
    alone = TaskStatistics(far.gram[:2], far.moment[:2], near.count[:2], near.energy[:2])  # type: ignore[index]
    with pytest.raises(InputError, match="do not show how many parameters"):
        alone.residuals()


NO_PRODUCTS = np.array([[1.0, -0.9, -0.9], [-0.9, 1.0, -0.9], [-0.9, -0.9, 1.0]])
LOPSIDED = np.array([[1.0, 0.9, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize("unit", [1.0, 1e-40, 1e40])
@pytest.mark.parametrize(
    ("gram", "words"), [(NO_PRODUCTS, "negative eigenvalues"), (LOPSIDED, "not symmetric")]
)
def test_grams_are_judged_each_in_its_own_size(gram: np.ndarray, words: str, unit: float) -> None:
    """Beside a task a million million times larger; by statistics and posteriors alike."""
    grams = np.stack([1e12 * np.eye(3), gram]) * unit
    with pytest.raises(InputError, match=words):
        TaskStatistics(grams, np.zeros((2, 3)))
    with pytest.raises(InputError, match=words):
        bm.GaussianPrior(np.zeros(3), np.eye(3)).posterior(grams, np.zeros((2, 3)), 1.0)


def plain(steps: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The sums of three tasks, the first of which is singular."""
    rng = np.random.default_rng(4)
    rows, rewards = rng.standard_normal((3, steps, 2)), rng.standard_normal((3, steps))
    rows[0, :, 1] = 3.0 * rows[0, :, 0]
    gram = np.einsum("nti,ntj->nij", rows, rows)
    moment = np.einsum("nti,nt->ni", rows, rewards)
    return gram, moment, np.full(3, float(steps)), (rewards**2).sum(axis=1)


@pytest.mark.parametrize("unit", [1.0, 1e-50, 1e50])
@pytest.mark.parametrize("known", [True, False])
def test_a_moment_outside_the_range_of_its_gram_is_refused(unit: float, known: bool) -> None:
    """With its label, in any units, with and without count and energy."""
    gram, moment, count, energy = plain()
    rest = (count, energy * unit**2) if known else (None, None)
    labels = ("one", "two", "three")
    TaskStatistics(gram, moment * unit, *rest, labels)
    gram[0] -= 4e-10 * np.linalg.norm(gram[0]) * np.outer([3, -1], [3, -1]) / 10  # a few digits
    TaskStatistics(gram, moment * unit, *rest, labels)
    moment[0] += [1e-3, -1e-3]
    with pytest.raises(InputError, match=r"^moment of task 'one' "):
        TaskStatistics(gram, moment * unit, *rest, labels)


def test_rewards_that_cancel_are_held() -> None:
    """What is left of A'x is rounding, in no range."""
    rows = np.array([[0.1, 0.3], [0.2, 0.6], [0.3, 0.9], [1.0, 0.5], [0.3, 1.0]])
    rewards = np.array([0.7, 0.7, -0.7, 1.0, 2.0])
    stats = TaskStatistics.from_arrays([1, 1, 1, 2, 2], rewards, rows)
    assert 0 < np.abs(stats.moment[0]).max() < 1e-15
    TaskStatistics(stats.gram, stats.moment)


def test_an_energy_smaller_than_the_moment_implies_is_refused() -> None:
    """Least squares explains no more than there is; rewards that are fitted exactly are held."""
    gram, moment, count, energy = plain()
    energy[2] = 0.99 * moment[2] @ np.linalg.solve(gram[2], moment[2])
    with pytest.raises(InputError, match=r"^moment of task 3 is more than its gram and energy"):
        TaskStatistics(gram, moment, count, energy)
    for steps in (1, 2, 3, 10_000):
        theta = np.array([1e3, -2.0])
        rows = np.random.default_rng(steps).uniform(1.0, 1.001, (steps, 2))
        rewards = rows @ theta
        TaskStatistics([rows.T @ rows], [rows.T @ rewards], [steps], [rewards @ rewards])


def test_a_count_below_the_rank_of_the_gram_is_refused() -> None:
    """Rank two takes two steps, rank one takes one."""
    gram, moment, _, energy = plain()
    TaskStatistics(gram, moment, [1, 2, 2], energy)
    for count, label, rank in (([0, 2, 2], 1, 1), ([1, 1, 2], 2, 2)):
        with pytest.raises(InputError, match=f"^count of task {label} is .* at least {rank} steps"):
            TaskStatistics(gram, moment, count, energy)
    with pytest.raises(InputError, match=r"^count of task 1 is 0, .* at least 1 steps"):
        TaskStatistics(np.zeros((1, 2, 2)), np.zeros((1, 2)), [0], [1.0])
