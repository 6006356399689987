"""The fused likelihood against PyTensor alone, finite differences and full matrices."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.gradient import DisconnectedInputError, verify_grad
from scipy.stats import multivariate_normal

from bayesmeta.kernels.collapsed import Priors, Tasks, thetas_given_priors
from bayesmeta.posterior.op import (
    RANKS,
    CollapsedLikelihood,
    plain_likelihood,
    task_likelihood,
)
from bayesmeta.posterior.taskdata import likelihood_of_each, task_data
from bayesmeta.statistics import TaskStatistics
from tests.helpers import Problem

DIMS = (1, 2, 3, 5, 10)
IN_PYTHON = Mode(linker="py", optimizer="fast_compile")
"""Runs the Op's own code, and compiles nothing."""


@pytest.mark.parametrize("dim", DIMS)
def test_value_is_the_gaussian_density_of_the_rewards(dim: int) -> None:
    """Against full covariance matrices of the rewards; some tasks too short to determine theta."""
    problem = Problem(dim, dim, 70)
    assert (np.linalg.matrix_rank(problem.stats.gram) < dim).any() or dim == 1
    value = task_likelihood(problem.mean, problem.root, 1.3, problem.stats).eval(mode=IN_PYTHON)
    expected = problem.log_likelihood(problem.mean, problem.root @ problem.root.T, 1.3**2)
    np.testing.assert_allclose(value, expected, rtol=1e-10)


@pytest.fixture(scope="module")
def fused_and_plain() -> tuple[pytensor.compile.Function, pytensor.compile.Function]:
    """Value and gradients of both for all dimensions: ours by numba, the plain graph in Python."""
    mean, root, noise = pt.dvector("mean"), pt.dmatrix("root"), pt.dscalar("noise")
    packed = [pt.tensor(dtype="float64", shape=(None,) * rank) for rank in RANKS[3:]]
    arrays = [pt.dtensor3(), pt.dmatrix(), pt.dvector(), pt.dscalar()]
    point = [mean, root, noise]
    made = []
    for value, data, mode in (
        (CollapsedLikelihood()(*point, *packed)[0], packed, "NUMBA"),
        (plain_likelihood(*point, *arrays), arrays, IN_PYTHON),
    ):
        outputs = [value, *pt.grad(value, point)]
        made.append(pytensor.function([*point, *data], outputs, mode=mode))
    return made[0], made[1]


@pytest.mark.parametrize("dim", DIMS)
def test_gradients_are_those_of_the_plain_graph(
    dim: int, fused_and_plain: tuple[pytensor.compile.Function, pytensor.compile.Function]
) -> None:
    """By numba's dispatch, in mean, root and noise; singular grams included."""
    problem = Problem(10 + dim, dim, 130)
    stats = problem.stats
    assert stats.count is not None and stats.energy is not None
    fused, plain = fused_and_plain
    point = (problem.mean, problem.root, 0.7)
    ours = fused(*point, *task_data(stats))
    theirs = plain(*point, stats.gram, stats.moment, stats.energy, stats.count.sum())
    theirs[2] = np.tril(theirs[2])  # above the diagonal ours is not a variable
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("dim", DIMS)
def test_pytensors_own_verification(dim: int) -> None:
    """Finite differences by ``verify_grad``, through the Python path of the Op."""
    problem = Problem(20 + dim, dim, 12)
    data = task_data(problem.stats)
    lower = np.tril_indices(dim)

    def value(mean: pt.TensorVariable, packed: pt.TensorVariable, log_sd: pt.TensorVariable):  # type: ignore[no-untyped-def]
        root = pt.set_subtensor(pt.zeros((dim, dim))[lower], packed)
        return task_likelihood(mean, root, pt.exp(log_sd), data)

    verify_grad(
        value,
        [problem.mean, problem.root[lower], np.array(0.2)],
        rng=np.random.default_rng(0),
        mode=IN_PYTHON,
        abs_tol=1e-5,
        rel_tol=1e-5,
    )


def test_only_the_value_can_be_differentiated() -> None:
    """Second derivatives are refused, not wrong."""
    problem = Problem(3, 2, 5)
    mean = pt.dvector("mean")
    value = task_likelihood(mean, problem.root, 1.0, problem.stats)
    (first,) = pt.grad(value, [mean])
    with pytest.raises(DisconnectedInputError):
        pt.grad(first.sum(), [mean])


def test_wrong_ranks_are_refused() -> None:
    """A matrix for a mean is said to be one."""
    problem = Problem(3, 2, 5)
    with pytest.raises(TypeError, match="takes a mean"):
        task_likelihood(problem.root, problem.root, 1.0, problem.stats)


@pytest.mark.parametrize("dim", DIMS)
def test_tasks_one_by_one(dim: int) -> None:
    """Log-likelihoods add up to that of all; draws without noise are the posterior means."""
    problem = Problem(30 + dim, dim, 40)
    stats = problem.stats
    assert stats.count is not None and stats.energy is not None
    means, roots = problem.mean[None], problem.root[None]
    thetas = np.empty((1, 40, dim))
    tasks = Tasks(stats.gram, stats.moment, stats.energy, stats.count)
    priors = Priors(means, roots, np.array([0.8]))
    thetas_given_priors(tasks, priors, np.zeros((1, 40, dim)), thetas)
    values = likelihood_of_each(stats, *priors, cores=1)
    cov = problem.root @ problem.root.T
    expected = problem.log_likelihood(problem.mean, cov, 0.8**2)
    np.testing.assert_allclose(values.sum(), expected, rtol=1e-10)
    for k in range(40):
        rows, x = problem.rows[k], problem.rewards[k]
        omega = 0.64 * np.eye(len(x)) + rows @ cov @ rows.T
        mean = problem.mean + cov @ rows.T @ np.linalg.solve(omega, x - rows @ problem.mean)
        np.testing.assert_allclose(thetas[0, k], mean, rtol=1e-7, atol=1e-9)
        own = multivariate_normal(rows @ problem.mean, omega).logpdf(x)
        np.testing.assert_allclose(values[0, k], own, rtol=1e-9, atol=1e-9)


def test_draws_of_theta_have_the_posterior_covariance() -> None:
    """The map from normals to theta squares to Sigma - Sigma W Sigma: exact, no Monte Carlo."""
    problem = Problem(5, 3, 1, most=4)
    stats = problem.stats
    assert stats.count is not None and stats.energy is not None
    normals = np.concatenate([np.zeros((1, 1, 3)), np.eye(3)[:, None, :]])
    thetas = np.empty((4, 1, 3))
    means, roots = np.tile(problem.mean, (4, 1)), np.tile(problem.root, (4, 1, 1))
    tasks = Tasks(stats.gram, stats.moment, stats.energy, stats.count)
    priors = Priors(means, roots, np.full(4, 0.8))
    thetas_given_priors(tasks, priors, normals, thetas)
    spread = (thetas[1:, 0] - thetas[0, 0]).T
    cov = problem.root @ problem.root.T
    rows = problem.rows[0]
    omega = 0.64 * np.eye(len(rows)) + rows @ cov @ rows.T
    expected = cov - cov @ rows.T @ np.linalg.solve(omega, rows @ cov)
    np.testing.assert_allclose(spread @ spread.T, expected, rtol=1e-8, atol=1e-10)


def test_no_tasks_too_many() -> None:
    """Padding to whole lanes adds nothing: one task alone and with another of no steps."""
    problem = Problem(6, 2, 2)
    stats = problem.stats
    assert stats.count is not None and stats.energy is not None
    one = TaskStatistics(stats.gram[:1], stats.moment[:1], stats.count[:1], stats.energy[:1])
    empty = TaskStatistics(np.zeros((1, 2, 2)), np.zeros((1, 2)), np.zeros(1), np.zeros(1))
    both = TaskStatistics.concatenate([one, empty])
    values = [
        float(task_likelihood(problem.mean, problem.root, 1.0, which).eval(mode=IN_PYTHON))
        for which in (one, both)
    ]
    assert values[0] == values[1]
