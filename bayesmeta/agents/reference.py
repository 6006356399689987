"""The kernels again in plain NumPy: for reading, and for the tests that compare the two.

One step recomputes the posterior from all data by eq. (4) and factorises it anew; nothing here is
updated in place and nothing is shared with the kernels but the random numbers.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from bayesmeta.agents.policies import AHEAD, Policy
from bayesmeta.checks import Array
from bayesmeta.environment import Task
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.kernels.codes import SINGULAR, Rule, Scheme
from bayesmeta.kernels.tuples import Plan


class Played(NamedTuple):
    """A task as the reference played it."""

    chosen: Array
    rewards: Array
    regret: float
    explored: int
    opening: int
    gram: Array
    moment: Array
    mean: Array
    cov: Array


def play(
    policy: Policy,
    plan: Plan,
    task: Task,
    prior: GaussianPrior,
    noise_sd: float,
    draws: Array,
    radius: float,
) -> Played:
    """Algorithm 1 on one drawn task; ``draws`` are the standard normals of every step."""
    horizon, d = len(task.noise), prior.dim
    played: list[Array] = []
    chosen: list[Array | int] = []
    rewards = np.zeros(horizon)
    regret, explored, opening = 0.0, 0, horizon
    for t in range(horizon):
        taken = np.array(played).reshape(t, d)
        gram, moment = taken.T @ taken, taken.T @ rewards[:t]
        mean, cov = prior.trusted_posterior(gram, moment, noise_sd)
        count = task.actions.shape[-1]
        exploring = explores(plan, t, horizon, explored == t, gram, noise_sd, count)
        explored += exploring
        if not exploring:
            opening = min(opening, t)
        uniform = NormalDist().cdf(float(draws[t, -1]))
        if task.actions.shape[-1] == 0:
            action = ball_action(policy, exploring, mean, cov, draws[t], uniform, radius)
            chosen.append(action)
            best = radius * float(np.linalg.norm(task.theta))
        else:
            actions = task.actions[min(t, len(task.actions) - 1)].T
            earned = task.earned[min(t, len(task.actions) - 1)].T if task.earned.size else actions
            if exploring:
                k = to_explore(plan, t, uniform, len(actions))
            else:
                k = choose(policy, t, mean, cov, actions, draws[t], uniform, noise_sd, earned)
            action = actions[k]
            chosen.append(k)
            best = float((earned @ task.theta).max())
        value = float(action @ task.theta)
        rewards[t] = value + noise_sd * task.noise[t]
        regret += best - (float(earned[k] @ task.theta) if count else value)
        played.append(action)
    taken = np.array(played)
    gram, moment = taken.T @ taken, taken.T @ rewards
    mean, cov = prior.posterior(gram, moment, noise_sd)
    return Played(np.array(chosen), rewards, regret, explored, opening, gram, moment, mean, cov)


def explores(
    plan: Plan, t: int, horizon: int, all_so_far: bool, gram: Array, noise_sd: float, count: int
) -> bool:
    """Whether step t (from 0) explores; ``all_so_far`` says that every step before it did."""
    if plan.rule == Rule.EACH_ACTION:
        return t < count
    d = len(gram)
    lowest = float(np.linalg.eigvalsh(gram)[0])
    if plan.rule == Rule.FIRST_STEPS:
        return bool(t < plan.tau)
    if plan.rule in (Rule.UNTIL_EIGENVALUE, Rule.TWO_ENDS):
        return all_so_far and bool(t < d or lowest < plan.threshold * noise_sd**2)
    if plan.rule == Rule.RESCUE:
        return t >= horizon - d and not (t >= d and full_rank(gram))
    return False


def to_explore(plan: Plan, t: int, uniform: float, count: int) -> int:
    """The action that step t explores."""
    if plan.rule == Rule.EACH_ACTION:
        return t
    if plan.rule == Rule.TWO_ENDS:
        return 0 if uniform < 0.5 else count - 1
    return int(uniform * count)


def full_rank(gram: Array) -> bool:
    """Whether a gram is invertible, each feature measured in its own length."""
    lengths = np.sqrt(np.diag(gram))
    if lengths.min() == 0:
        return False
    lowest = float(np.linalg.eigvalsh(gram / np.outer(lengths, lengths))[0])
    return lowest >= SINGULAR * len(gram)


def ball_action(
    policy: Policy,
    exploring: bool,
    mean: Array,
    cov: Array,
    draws: Array,
    uniform: float,
    radius: float,
) -> Array:
    """The action from the whole ball."""
    d = len(mean)
    if exploring:
        direction, length = draws[:d], radius * uniform ** (1 / d)
    elif policy.scheme is Scheme.THOMPSON:
        direction, length = mean + root(cov) @ draws[:d], radius
    else:
        direction, length = mean, radius
    norm = float(np.linalg.norm(direction))
    unit: Array = direction / norm if norm > 0 else np.eye(d)[0]
    out: Array = length * unit
    return out


def root(cov: Array) -> Array:
    """The lower Cholesky factor."""
    return GaussianPrior(np.zeros(len(cov)), cov).cholesky


def choose(
    policy: Policy,
    t: int,
    mean: Array,
    cov: Array,
    actions: Array,
    draws: Array,
    uniform: float,
    noise_sd: float,
    earned: Array | None = None,
) -> int:
    """The index of the action a policy takes, given the posterior; ``earned`` where what an action
    earns is not its reward."""
    d = len(mean)
    earned = actions if earned is None else earned
    vectors = 1 if policy.sobol else policy.posterior_draws
    normals = draws[: len(draws) // d * d if policy.scheme in AHEAD else vectors * d].reshape(-1, d)
    if policy.sobol:
        normals = shifted_normals(policy.points(d), normals[0])
    widths = np.sqrt(np.einsum("ki,ij,kj->k", earned, cov, earned).clip(min=0))
    if policy.scheme is Scheme.THOMPSON:
        return int(np.argmax(earned @ (mean + root(cov) @ normals[0])))
    if policy.scheme is Scheme.GREEDY:
        return int(np.argmax(earned @ mean))
    if policy.scheme is Scheme.BAYES_UCB:
        quantile = NormalDist().inv_cdf(1 - 1 / (t + 2))
        return int(np.argmax(earned @ mean + quantile * widths))
    if policy.scheme is Scheme.V_IDS:
        samples = mean + normals @ root(cov).T
        return v_ids(actions, earned, samples, uniform)
    if policy.scheme in AHEAD:
        return look_ahead(policy.scheme, mean, cov, actions, draws, noise_sd)
    assert policy.ridge is not None and policy.norm_bound is not None and policy.delta is not None
    # frequentist: Sigma_t = sigma^2 V^-1, so the norm of V^-1 is widths / sigma
    _, logdet = np.linalg.slogdet(noise_sd**2 / policy.ridge * np.linalg.inv(cov))
    root_beta = noise_sd * np.sqrt(max(logdet, 0.0) + 2 * np.log(1 / policy.delta))
    root_beta += np.sqrt(policy.ridge) * policy.norm_bound
    upper = earned @ mean + root_beta * widths / noise_sd
    if policy.scheme is Scheme.OFUL:
        return int(np.argmax(upper))
    gap = upper.max() - (earned @ mean - root_beta * widths / noise_sd)
    information = np.log1p(np.einsum("ki,ij,kj->k", actions, cov, actions) / noise_sd**2)
    if policy.randomised:
        return two_point(gap, information, uniform)
    return best_single(gap, information)


def look_ahead(
    scheme: Scheme, mean: Array, cov: Array, actions: Array, draws: Array, noise_sd: float
) -> int:
    """The knowledge gradient and 2-RHC: every action is tried with every reward drawn for it."""
    values = np.zeros(len(actions))
    for k, action in enumerate(actions):
        sd = np.sqrt(action @ cov @ action + noise_sd**2)
        for z in draws:
            after = mean + cov @ action * z / sd
            values[k] += (actions @ after).max()
            if scheme is Scheme.TWO_STEPS:
                values[k] += action @ mean + sd * z
    return int(np.argmax(values))


def shifted_normals(points: Array, shift: Array) -> Array:
    """Antithetic pairs of normals, from points of the cube shifted by one uniform vector."""
    normal = NormalDist()
    moved = (points + [normal.cdf(z) for z in shift.tolist()]) % 1.0
    pairs = [[z, -z] for z in np.vectorize(normal.inv_cdf)(moved)]
    return np.array(pairs).reshape(-1, len(shift))


def v_ids(actions: Array, earned: Array, samples: Array, uniform: float) -> int:
    """Variance-based IDS from posterior samples, one a row."""
    scores = samples @ earned.T
    best = scores.argmax(axis=1)
    centre = samples.mean(axis=0)
    gap = (scores.max(axis=1).mean() - earned @ centre).clip(min=0)
    spread = np.zeros((len(centre), len(centre)))
    for k in np.unique(best):
        shift = samples[best == k].mean(axis=0) - centre
        spread += (best == k).mean() * np.outer(shift, shift)
    information = np.einsum("ki,ij,kj->k", actions, spread, actions)
    return two_point(gap, information, uniform)


def best_single(gap: Array, information: Array) -> int:
    """argmin of gap^2 / information; gap 0 wins, and the smallest gap where none informs."""
    if gap.min() <= 0 or not (information > 0).any():
        return int(np.argmin(gap))
    ratio = np.full(len(gap), np.inf)
    np.divide(gap**2, information, out=ratio, where=information > 0)
    return int(np.argmin(ratio))


def two_point(gap: Array, information: Array, uniform: float) -> int:
    """A draw from the two-point law that minimises (E gap)^2 / E information."""
    first = second = best_single(gap, information)
    if not (gap[first] > 0 and information[first] > 0):
        return first
    weight, lowest = 1.0, gap[first] ** 2 / information[first]
    for i in range(len(gap)):
        for j in range(i + 1, len(gap)):
            if gap[i] == gap[j] or information[i] == information[j]:
                continue
            q = gap[j] / (gap[i] - gap[j]) - 2 * information[j] / (information[i] - information[j])
            if 0 < q < 1:
                ratio = (q * gap[i] + (1 - q) * gap[j]) ** 2
                ratio /= q * information[i] + (1 - q) * information[j]
                if ratio < lowest:
                    first, second, weight, lowest = i, j, q, ratio
    return first if uniform < weight else second
