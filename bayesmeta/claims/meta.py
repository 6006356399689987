"""Theorem 2, measured: MQB in one dimension, all its tasks at once.

The estimates use exploration only, which does not depend on what is learned; so the priors of all
tasks are known before any is played on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.claims import one_dimension
from bayesmeta.claims.claim import Kind, Section, claim
from bayesmeta.claims.regimes import isotropic
from bayesmeta.claims.verdict import Level, Point, estimated
from bayesmeta.theory import constants as c
from bayesmeta.theory.regime import Regime

ACTIONS = 20


class Shell(NamedTuple):
    """An action law of Assumption 1 in one dimension: uniform on ``inner`` <= |A| <= 1 = a."""

    inner: float

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        size = self.inner + (1 - self.inner) * rng.random(shape)
        signed: Array = np.where(rng.random(shape) < 0.5, -size, size)
        return signed

    @property
    def action_min(self) -> float:
        """lambda_A, the mean of A^2."""
        return (1 + self.inner + self.inner**2) / 3


def thompson(mean: Array, precision: Array, draws: Array, least: float) -> Array:
    """The parameter whose best action is played: a draw from the posterior."""
    return mean + draws / np.sqrt(precision)


def threshold(mean: Array, precision: Array, draws: Array, least: float) -> Array:
    """A quasi-Bayesian scheme: greedy where the posterior precision is at least what one with
    Sigma_* and actions of the shell has, else the opposite."""
    return np.where(precision >= least, mean, -mean)


class Played(NamedTuple):
    """Run by run: relative regret of all tasks; and a task's mean regret of KQB after exploration,
    and of the algorithm of the first N_0 tasks (actions at random)."""

    relative: Array
    known: float
    single: float


def play(
    rng: np.random.Generator,
    regime: Regime,
    law: Shell,
    scheme: Callable[..., Array],
    first: int,
    runs: int,
) -> Played:
    """MQB with N_0 = ``first`` against KQB, simulated on the same actions, noise and draws; mu_* is
    m and Sigma_* lambda_max."""
    n, steps, tau = regime.tasks, regime.horizon, c.tau_of(regime)
    sigma, true = regime.noise_sd, regime.bounds.prior_max
    shape = (runs, n)
    theta = regime.bounds.mean_norm + math.sqrt(true) * rng.standard_normal(shape)
    gram = np.zeros(shape)
    offered = np.zeros(shape)  # regret of exploration, at random
    for _ in range(tau):
        actions = law.draw(rng, (*shape, ACTIONS))
        gram += actions[..., 0] ** 2
        offered += (actions * theta[..., None]).max(axis=2) - actions[..., 0] * theta
    noise = sigma * np.sqrt(gram) * rng.standard_normal(shape)
    mean, cov = _estimates(theta + noise / gram, 1 / gram, regime)
    mine, wide = np.full(shape, regime.bounds.mean_norm), np.full(shape, true)
    mine[:, first:], wide[:, first:] = mean[:, first:], cov[:, first:]
    precision = [1 / wide + gram / sigma**2, 1 / true + gram / sigma**2]
    score = gram * theta + noise
    weighted = [mine / wide + score / sigma**2, regime.bounds.mean_norm / true + score / sigma**2]
    regret = [np.zeros(shape), np.zeros(shape)]
    random = np.zeros(shape)
    for t in range(tau, steps):
        actions = law.draw(rng, (*shape, ACTIONS))
        best = (actions * theta[..., None]).max(axis=2)
        random += best - actions[..., 0] * theta
        draws, shock = rng.standard_normal(shape), sigma * rng.standard_normal(shape)
        least = 1 / true + t * law.inner**2 / sigma**2
        for who in (0, 1):
            aim = scheme(weighted[who] / precision[who], precision[who], draws, least)
            index = (actions * aim[..., None]).argmax(axis=2)
            taken = np.take_along_axis(actions, index[..., None], axis=2)[..., 0]
            regret[who] += best - taken * theta
            precision[who] = precision[who] + taken**2 / sigma**2
            weighted[who] = weighted[who] + taken * (taken * theta + shock) / sigma**2
    regret[0][:, :first] = random[:, :first]
    relative = (regret[0] - regret[1]).sum(axis=1)
    return Played(relative, float(regret[1].mean()), float((offered + random).mean()))


def _estimates(fitted: Array, inverse: Array, regime: Regime) -> tuple[Array, Array]:
    """mu-hat_n and the widened covariance, eqs. (10)-(12), for every n (meaningless for n <= 2)."""
    n = np.arange(1, regime.tasks + 1)
    m = n - 1.0
    centred = fitted - regime.bounds.mean_norm  # for rounding
    before = np.cumsum(centred, axis=1) - centred
    squares = np.cumsum(centred**2, axis=1) - centred**2
    noise = np.cumsum(inverse, axis=1) - inverse
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = before / m
        cov = (squares - m * mean**2) / (m - 1) - regime.noise_sd**2 * noise / m
        radius = np.sqrt((5 + 2 * np.log(n * regime.horizon)) / m)
    return mean + regime.bounds.mean_norm, cov + c.widening_constant_of(regime) * radius


def on_the_ball(
    level: Level, corrected: bool, policy: str, sigma: float, tasks: int, peeking: bool = False
) -> Point:
    """The tasks beyond N_0, where [-1, 1] is on offer, against k_2 sqrt(N) R (corrected: and c_bad
    (1 + ln N) / sqrt(d), with the corrected k_2 and N_0): each task's regret given its prior and V
    is known (the first N_0 tasks cost at most N_0 R_sing more, whatever they play).

    ``threshold`` goes wrong where V is among the smallest per cent. With ``peeking`` the learner's
    always goes wrong, as if it knew that its prior is not the true one, which a quasi-Bayesian
    algorithm cannot know.
    """
    regime = isotropic(dim=1, horizon=600, tasks=tasks, noise_sd=sigma)
    first, tau, runs = math.ceil(c.n_0(regime, corrected)), c.tau_of(regime), level.pick(10, 30)
    if first >= tasks or tau >= regime.horizon:
        raise ValueError("the conditions of Theorem 2 do not hold in this regime")
    rng = level.rng(f"theorem-2/ball/{sigma}/{tasks}")
    gram = np.stack([(rng.uniform(-1, 1, (tau, tasks)) ** 2).sum(axis=0) for _ in range(runs)])
    theta = rng.standard_normal((runs, tasks))
    fitted = theta + sigma * rng.standard_normal((runs, tasks)) / np.sqrt(gram)
    mean, wide = _estimates(fitted, 1 / gram, regime)
    late, rest = slice(first, None), (1.0, sigma, regime.horizon - tau)
    if policy == "thompson":
        known = one_dimension.thompson(gram, 0.0, 1.0, *rest)
        used = one_dimension.thompson(gram[:, late], mean[:, late], wide[:, late], *rest)
    else:
        least = float(np.quantile(gram, 0.01))
        known = one_dimension.threshold(gram, 0.0, 1.0, *rest, least)
        used = one_dimension.threshold(
            gram[:, late], mean[:, late], wide[:, late], *rest, math.inf if peeking else least
        )
    bound = c.k_2(regime, corrected) * math.sqrt(tasks) * float(known.mean())
    if corrected:
        bound += c.bad_tasks(regime)
    where = {
        "d": 1,
        "actions": "all of [-1, 1]",
        "policy": policy,
        "sigma": sigma,
        "Sigma_*": 1.0,
        "mu_*": 0.0,
        "tau": tau,
        "T": regime.horizon,
        "N": tasks,
        "N_0": first,
        "R": float(known.mean()),
        "tasks": f"beyond N_0, {runs} runs",
    }
    return estimated(where, (used - known[:, late]).sum(axis=1), bound, level.size)


def on_a_shell(
    level: Level,
    corrected: bool = False,
    sigma: float = 1e-3,
    schemes: tuple[Callable[..., Array], ...] = (threshold, thompson),
) -> list[Point]:
    """All tasks against k_2 sqrt(N) R + N_0 R_sing, actions from a shell so thin that V/sigma^2
    hardly varies; corrected as ``on_the_ball``."""
    points = []
    law = Shell(1 - 1e-4 * sigma**2)
    for scheme in schemes:
        regime = isotropic(
            dim=1, horizon=600, tasks=100, noise_sd=sigma, action_min=law.action_min, mean_norm=3.0
        )
        first = math.ceil(c.n_0(regime, corrected))
        if first > regime.tasks or c.tau_of(regime) >= regime.horizon:
            raise ValueError("the conditions of Theorem 2 do not hold in this regime")
        rng = level.rng(f"theorem-2/{law.inner}/{scheme.__name__}")
        found = play(rng, regime, law, scheme, first, level.pick(40, 60))
        right = c.k_2(regime, corrected) * math.sqrt(regime.tasks) * found.known
        right += first * found.single
        if corrected:
            right += c.bad_tasks(regime)
        where = {
            "d": 1,
            "f_A": f"uniform on {law.inner:.15g} <= |A| <= 1",
            "policy": scheme.__name__,
            "sigma": sigma,
            "Sigma_*": 1.0,
            "mu_*": 3.0,
            "tau": c.tau_of(regime),
            "T": regime.horizon,
            "N": regime.tasks,
            "N_0": first,
            "R": found.known,
            "R_sing": found.single,
        }
        points.append(estimated(where, found.relative, right, level.size))
    return points


def balls(level: Level, corrected: bool = False, peeking: bool = False) -> list[Point]:
    """Regimes with N_0 <= N: the noise must be tiny."""
    sizes = level.pick(((1e-5, 200),), ((1e-5, 200), (1e-5, 1000), (1e-4, 1000)))
    policies = ("threshold",) if peeking else ("thompson", "threshold")
    return [
        on_the_ball(level, corrected, policy, sigma, tasks, peeking)
        for sigma, tasks in sizes
        for policy in policies
    ]


@claim(
    id="theorem-2",
    kind=Kind.EXPECTATION,
    section=Section.THEOREMS,
    where="Theorem 2, Section 5; constants in eq. (82), Appendix E",
    quote="∑_{n=1}^N E[R^K(μ̂_n, Σ^w_n, T)] ≤ k_2 √N E[R(μ_{*,τ+1}, Σ_{*,τ+1}, T-τ)] + N_0 R_sing",
    statement="relative regret of N tasks <= k_2 sqrt(N) R + N_0 R_sing",
    lines="440",
    mutations={"a policy that sees the prior, on the ball": partial(balls, peeking=True)},
    holds_at=balls,
    remark=(
        "False for “any QB” and every law of Assumption 1, through alignment-support: "
        "on a thin shell V hardly varies, so actions of the learner cannot be aligned "
        "with actions of one that knows the prior, and a policy that tells their "
        "precisions apart (threshold: greedy where the precision is that of the true "
        "prior, else the opposite) loses everything. For Thompson Sampling no "
        "violation was found. On the ball, and for truncated Gaussians, it is proved for "
        "sigma >= 1, where the printed constants are the larger ones, if two or more actions "
        "are on offer and N_0 >= 10d + 4 ln(16dT) or 5d + 2 ln(4dT) <= 225 "
        "(theorem-2-corrected, theorem-2-step-sharp); for sigma < 1 it is neither proved nor "
        "refuted there."
    ),
    survives=(
        "theorem-2-corrected: laws whose support is the ball or truncated Gaussians, c_xi "
        "without sigma, N_0 at least what Lemma M-QB asks for; and with it the rate in N, "
        "T and d (lambda_A fixed). The sum that theorem-2-step drops is covered by N_0 "
        "R_sing where two or more actions are on offer (theorem-2-step-sharp)."
    ),
    sides="relative regret of all tasks, with its interval; the bound",
)
def theorem_2(level: Level) -> list[Point]:
    """Actions from the ball, and from a thin shell."""
    return [*balls(level), *on_a_shell(level)]


@claim(
    id="theorem-2-corrected",
    proof="ours",
    corrects="theorem-2",
    statement=(
        "relative regret of N tasks <= k_2 sqrt(N) R + c_bad (1 + ln N) / sqrt(d) + "
        "N_0 R_sing, with 5 ln(dT/delta) for c_xi^2, N_0 >= 10d + 4 ln(16dT), f_A as "
        "in alignment-density-corrected"
    ),
    mutations={
        "on the shell": partial(on_a_shell, corrected=True, sigma=1e-05, schemes=(threshold,)),
        "a policy that sees the prior": partial(balls, corrected=True, peeking=True),
    },
    remark=(
        "The paper's sum over n with theorem-1-corrected, lemma-mqb and "
        "theorem-2-step-corrected; the term with c_bad can be left out where two or more "
        "actions are on offer (theorem-2-step-sharp). No regime is known in which a check "
        "could fail: eq. (8) makes V about 2 tau / d times what E_v asks for, so a policy that "
        "tells a wider prior by its precision gains |B|/lambda_min(V), where k_2 allows for "
        "2|B|/(lambda_A d); and N_0 <= N asks for noise so small that relative regret is "
        "not to be told from 0. Where a condition is broken the check does fail (shell)."
    ),
)
def theorem_2_corrected(level: Level) -> list[Point]:
    """Actions from the ball, with the corrected constants."""
    return balls(level, corrected=True)
