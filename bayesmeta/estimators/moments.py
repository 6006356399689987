"""The paper's estimator of the prior, a method of moments: eqs. (9)-(12).

The one home of these equations: Algorithm 2's learner feeds ``observe`` one task after another, in
O(d^2) memory, and ``fit_prior`` feeds it all tasks of a table. The paper writes "before the n-th
task"; here k = n - 1 is the number of tasks seen.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesmeta.checks import (
    Advice,
    Argument,
    Array,
    InputError,
    one_of,
    real,
    unit_diagonal,
    whole,
)
from bayesmeta.environment import Bounds
from bayesmeta.estimators.clipping import clip
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.estimators.noise import pooled_variance
from bayesmeta.estimators.restated import FeatureUnits
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.kernels.decorrelate import decorrelate
from bayesmeta.kernels.jit import kernel
from bayesmeta.kernels.linalg import has_full_rank, upper_root
from bayesmeta.statistics import TaskStatistics
from bayesmeta.theory.constants import widening_constant
from bayesmeta.units import MOST

LONGEST = 10**12
"""Steps of a task: the kernel of eq. (12) multiplies them by tasks and features, in 64 bits."""


class MomentState(NamedTuple):
    """All that k tasks need to leave behind, updated in place.

    ``tasks`` is [k, tasks passed over because their gram was singular], ``mean`` the running mean
    of the OLS estimates, ``scatter`` their scatter about it, ``inverse_grams`` the sum of V^-1.
    """

    tasks: Array
    mean: Array
    scatter: Array
    inverse_grams: Array


def empty(dim: int) -> MomentState:
    """The state before the first task."""
    return MomentState(np.zeros(2), np.zeros(dim), np.zeros((dim, dim)), np.zeros((dim, dim)))


@kernel
def inverse_gram(gram):
    """V^-1, also where features have very different units.

    Elimination with pivots loses digits there. Lengths that differ by more than 2^10 are brought
    together first by powers of two, which round nothing.
    """
    d = gram.shape[0]
    powers = np.empty(d, dtype=np.int64)
    for i in range(d):
        powers[i] = -round(0.5 * math.log2(gram[i, i]))
    if powers.max() - powers.min() <= 10:
        return np.linalg.inv(gram)
    scaled = np.empty_like(gram)
    for i in range(d):
        for j in range(d):
            scaled[i, j] = math.ldexp(gram[i, j], powers[i] + powers[j])
    inverse = np.linalg.inv(scaled)
    for i in range(d):
        for j in range(d):
            inverse[i, j] = math.ldexp(inverse[i, j], powers[i] + powers[j])
    return inverse


@kernel
def task_estimate(gram, moment):
    """Ordinary least squares of one task, eq. (9): whether its gram is regular, V^-1 and the
    estimate of theta; both are NaN where it is not."""
    if has_full_rank(gram, np.empty_like(gram)):
        inverse = inverse_gram(gram)
        if np.isfinite(inverse).all():  # numbers neither too small nor too large for its digits
            return True, inverse, inverse @ moment
    return False, np.full_like(gram, np.nan), np.full_like(moment, np.nan)


@kernel
def add_estimate(state, theta, spread):
    """Add a task's estimate to the running mean, eq. (10), and the scatter; ``spread`` is its
    covariance over sigma^2, V^-1 of least squares."""
    state.tasks[0] += 1
    step = theta - state.mean
    state.mean[:] += step / state.tasks[0]
    state.scatter[:] += np.outer(step, theta - state.mean)
    state.inverse_grams[:] += spread


@kernel
def observe(state, gram, moment):
    """Add one task's least squares; returns V^-1 and the estimate of theta.

    A task whose gram is singular is passed over and counted, so k counts the tasks that could be
    used, and n = k + 1 in eq. (12).
    """
    regular, inverse, theta = task_estimate(gram, moment)
    if regular:
        add_estimate(state, theta, inverse)
    else:
        state.tasks[1] += 1
    return inverse, theta


@kernel
def observe_decorrelated(state, gram, moment, actions, rewards, ridge, past):
    """Add one task's W-decorrelated estimate, with Q in place of V^-1; nothing before the first
    ridge.

    It starts from the mean of ``past`` estimates, or from the task's least squares; where there are
    none, the task is passed over.
    """
    if not ridge > 0.0:
        return
    regular, start = True, state.mean
    if not past:
        regular, _, start = task_estimate(gram, moment)
    if regular:
        left, told, square = decorrelate(actions, rewards, ridge)
        add_estimate(state, left @ start + told, square)
    else:
        state.tasks[1] += 1


@kernel
def observe_all(state, grams, moments):
    """Add tasks one after another; V^-1 and the estimate of theta of each."""
    inverses, thetas = np.empty_like(grams), np.empty_like(moments)
    for j in range(grams.shape[0]):
        inverses[j], thetas[j] = observe(state, grams[j], moments[j])
    return inverses, thetas


@kernel
def covariance(state, variance):
    """Bias-corrected covariance, eq. (11): the scatter of the OLS estimates less their noise.

    With variance 0 nothing is corrected: the plain covariance of the OLS estimates.
    """
    k = state.tasks[0]
    estimate = state.scatter / (k - 1) - variance / k * state.inverse_grams
    return (estimate + estimate.T) / 2


@kernel
def widening_radius(n, dim, horizon, constant):
    """s = c_w sqrt((5d + 2 ln(d n T)) / (n - 1)) before the n-th task, eq. (12)."""
    return constant * math.sqrt((5 * dim + 2 * math.log(dim * n * horizon)) / (n - 1))


@kernel
def widened(state, variance, horizon, constant):
    """The covariance handed to the next task, eq. (12), and the one before widening, eq. (11)."""
    raw = covariance(state, variance)
    d = raw.shape[0]
    return raw + widening_radius(state.tasks[0] + 1, d, horizon, constant) * np.eye(d), raw


@kernel
def usable(cov, floor):
    """A covariance an agent can play with: where eq. (12) is not positive definite its eigenvalues
    are raised to ``floor``, in place.

    Returns the lower Cholesky factor, and whether eigenvalues had to be raised.
    """
    root = np.empty_like(cov)
    raised = not upper_root(cov, root)
    if raised:
        root[:] = raise_eigenvalues(cov, floor)
    return root.T, raised


@kernel
def raise_eigenvalues(cov, floor):
    """Raise the eigenvalues of ``cov`` below ``floor`` to it, in place; return its upper root.

    The root (root' root = cov) comes from the eigenvalues, so a floor of 0, which leaves ``cov``
    singular, or one lost to rounding, does no harm.
    """
    values, vectors = np.linalg.eigh(cov)
    raised = np.maximum(values, floor)
    lifted = (vectors * raised) @ vectors.T
    cov[:] = (lifted + lifted.T) / 2
    _, root = np.linalg.qr(np.ascontiguousarray((vectors * np.sqrt(raised)).T))
    for i in range(root.shape[0]):
        if root[i, i] < 0.0:
            root[i] = -root[i]
    return root


def merge(first: MomentState, second: MomentState) -> MomentState:
    """The state of the union of two groups of tasks; neither is changed."""
    tasks = first.tasks + second.tasks
    if tasks[0] == 0:
        return MomentState(tasks, *(value.copy() for value in first[1:]))
    gap = second.mean - first.mean
    share = second.tasks[0] / tasks[0]
    return MomentState(
        tasks,
        first.mean + share * gap,
        first.scatter + second.scatter + first.tasks[0] * share * np.outer(gap, gap),
        first.inverse_grams + second.inverse_grams,
    )


def least_squares(stats: TaskStatistics, *, undetermined: str = "raise") -> Array:
    """Ordinary least squares of every task, eq. (9), shape (tasks, d).

    Parameters
    ----------
    stats : TaskStatistics
    undetermined : {"raise", "nan"}
        What to do where a task's gram is singular: refuse, or leave its estimate NaN.

    Examples
    --------
    >>> from bayesmeta.statistics import TaskStatistics
    >>> least_squares(TaskStatistics(gram=[[[2.0, 0.0], [0.0, 4.0]]], moment=[[1.0, 2.0]]))
    array([[0.5, 0.5]])
    """
    one_of("undetermined", undetermined, ("raise", "nan"))
    thetas: Array = observe_all(empty(stats.dim), stats.gram, stats.moment)[1]
    short = np.isnan(thetas).any(axis=1)
    if short.any() and undetermined == "raise":
        task = int(np.argmax(short))
        label = task if stats.tasks is None else repr(stats.tasks[task])
        raise InputError(
            f"gram of task {label} is singular; least squares needs at least as many independent "
            "steps as features"
        )
    return thetas


def fit_moments(
    stats: TaskStatistics,
    variance: float | None,
    method: str = "moment",
    *,
    widening: float | None = None,
    horizon: int | None = None,
    bounds: Bounds | None = None,
) -> PriorEstimate:
    """``moment``, ``moment-widened`` or ``moment-clipped`` of ``fit_prior``, with standard errors
    from how the tasks' contributions to mean and covariance spread."""
    stats.require_independent_features()
    units = FeatureUnits.of(stats, variance=variance)
    if units is None:
        found = _corrected(stats, variance, method)
    else:
        found = _corrected(units.inside(stats), units.variance(variance), method)
        found = units.outside(found, stats.count)
    raw, sigma = found.raw_cov, found.noise_sd
    assert raw is not None and sigma is not None
    if method == "moment-clipped" and found.negative:
        # standard errors are those of the matrix before it was clipped
        prior = GaussianPrior(found.prior.mean, clip(raw))
        return found._replace(prior=prior, status=Status.CLIPPED, cov_sd=None)
    if method == "moment-widened":
        steps, d = _horizon(horizon), stats.dim
        constant = chosen_widening(d, sigma, widening, bounds)
        n = len(stats) - found.passed_over + 1
        radius = widening_radius(n, d, steps, constant)
        if not radius <= MOST**2:
            raise InputError(
                Advice(
                    "{argument} widens variances by {radius}, beyond {most}; give a smaller one",
                    argument=Argument("bounds" if widening is None else "widening"),
                    radius=f"{radius:.3g}",
                    most=f"{MOST**2:g}",
                )
            )
        cov = raw + radius * np.eye(d)
        prior, status = as_it_is(found.prior.mean, cov)
        return found._replace(prior=prior, status=status)
    return found


def _corrected(stats: TaskStatistics, variance: float | None, method: str) -> PriorEstimate:
    """``moment`` of ``fit_prior``; ``method`` is for the message."""
    state = empty(stats.dim)
    inverses, thetas = observe_all(state, stats.gram, stats.moment)
    k = int(state.tasks[0])
    if k < 2:
        raise InputError(
            f"{k} of {len(stats)} tasks have an invertible gram, and {method} needs two; ml and "
            "reml use the others, too"
        )
    doubt = 0.0  # variance of the estimated noise variance
    if variance is None:
        variance, freedom = pooled_variance(stats)
        doubt = 2 * variance**2 / freedom
    used = ~np.isnan(thetas[:, 0])
    raw = covariance(state, variance)
    return PriorEstimate(
        *as_it_is(state.mean, raw),
        raw_cov=raw,
        passed_over=len(stats) - k,
        negative=negative_eigenvalues(raw),
        mean_cov=state.scatter / (k * (k - 1)),
        cov_sd=_spread(thetas[used] - state.mean, inverses[used], variance, doubt),
        noise_sd=math.sqrt(variance),
    )


def _spread(gap: Array, inverse: Array, variance: float, doubt: float) -> Array | None:
    """Standard errors of the entries of eq. (11), a mean over tasks; none for two tasks."""
    k = len(gap)
    if k < 3:
        return None
    each = k / (k - 1) * gap[:, :, None] * gap[:, None, :] - variance * inverse
    spread: Array = np.sqrt(each.var(axis=0, ddof=1) / k + doubt * inverse.mean(axis=0) ** 2)
    return spread


def _horizon(horizon: int | None) -> int:
    if horizon is None:
        raise InputError("moment-widened needs horizon, the number of steps of a task (T)")
    steps = whole("horizon", horizon, least=1)
    if steps > LONGEST:
        raise InputError(Advice("{horizon} must be at most {most}", most=f"{LONGEST:,}"))
    return steps


def chosen_widening(
    dim: int, noise_sd: float, widening: float | None, bounds: Bounds | None
) -> float:
    """c_w of eq. (12): the one given, or the theoretical one for these bounds."""
    if widening is not None:
        return real("widening", widening, least=0.0)
    if bounds is None or bounds.action_min <= 0:
        raise InputError(
            "the theoretical c_w needs bounds with action_min > 0 (Assumption 1); or give widening"
        )
    return widening_constant(dim, noise_sd, bounds.action_min, bounds.prior_max)


def negative_eigenvalues(symmetric: Array) -> int:
    """How many eigenvalues are negative: the same in all units of the features.

    Counted after each feature is measured in its own scale, which changes no sign (Sylvester's law
    of inertia): in raw units rounding in a large feature would swamp a small one.
    """
    return int((np.linalg.eigvalsh(unit_diagonal(symmetric)) < 0).sum())


def as_it_is(mean: Array, cov: Array) -> tuple[GaussianPrior, Status]:
    """A prior whose covariance may have negative eigenvalues: it is handed out all the same, and
    the status says so."""
    if not negative_eigenvalues(cov):
        return GaussianPrior(mean, cov), Status.OK
    return GaussianPrior.unusable(mean, cov), Status.NOT_POSITIVE_DEFINITE
