"""What least squares leaves of a task (lines 354-362, 581-609, 2746-3155)."""

from __future__ import annotations

import math
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from scipy.stats import chi2, norm

from bayesmeta.agents.player import Player
from bayesmeta.agents.roster import ROSTER
from bayesmeta.claims.matrices import positive
from bayesmeta.claims.verdict import Claim, Level, Point, at_most, equal, estimated
from bayesmeta.environment import paper_family
from bayesmeta.estimators import moments
from bayesmeta.streams import ENVIRONMENT, stream

SECTION = "least squares"
Errors = list[tuple[dict[str, object], np.ndarray]]


def _least_squares(level: Level, name: str, ridge: float = 0.0, peeking: bool = False) -> Errors:
    """Standardised errors V^1/2 rho / sigma of least squares, (replications, d), for actions from a
    ball; ``peeking`` chooses the last of them in view of the first noise."""
    rng = level.rng(name)
    found: Errors = []
    replications = level.pick(4000, 40_000)
    for d in level.pick((1, 2), (1, 2, 5, 10)):
        for sigma in (1e-4, 1.0, 3.0):
            steps = d + 3
            raw = rng.standard_normal((replications, steps, d))
            raw *= (rng.random((replications, steps, 1)) ** (1 / d)
                    / np.linalg.norm(raw, axis=2, keepdims=True))  # fmt: skip
            noise = sigma * rng.standard_normal((replications, steps))
            if peeking:  # the last action is large where the noise so far was low
                raw[:, 0] = np.abs(raw[:, 0])
                raw[noise[:, 0] > 0, -1] *= 10.0
            gram = np.einsum("nti,ntj->nij", raw, raw) + ridge * np.eye(d)
            moment = np.einsum("nti,nt->ni", raw, noise)
            root = np.linalg.cholesky(np.linalg.inv(gram))
            z = np.einsum("nji,nj->ni", root, moment) / sigma  # L'A'xi with L L' = V^-1
            found.append(({"d": d, "tau": steps, "sigma": sigma}, z))
    return found


def _centred(level: Level, errors: Errors) -> list[Point]:
    """The standardised errors have mean 0, up to what chance allows the mean of normals; so no
    moments are averaged that may not exist."""
    points = []
    for where, z in errors:
        allowed = float(norm.isf(level.size / (2 * z.shape[1]))) / math.sqrt(len(z))
        points.append(equal(where, float(np.abs(z.mean(axis=0)).max()), allowed))
    return points


def _white(level: Level, errors: Errors) -> list[Point]:
    """The standardised errors have covariance I, up to the largest deviation that chance allows
    the covariance of so many normals, entry by entry: d variances, and d(d-1)/2 covariances, each
    half the difference of two variances; all are chi-squared."""
    points = []
    for where, z in errors:
        free, tail = len(z) - 1, level.size / (2 * z.shape[1] ** 2)
        gap = float(np.abs(np.cov(z.T) - np.eye(z.shape[1])).max())
        allowed = float(max(chi2.isf(tail, free) / free - 1, 1 - chi2.ppf(tail, free) / free))
        points.append(equal({**where, "what": "covariance"}, gap, allowed))
    return points


def ols_unbiased(level: Level, peeking: bool = False) -> list[Point]:
    """E[rho] = 0 given the actions."""
    return _centred(level, _least_squares(level, "ols-unbiased", peeking=peeking))


def ols_covariance(level: Level, ridge: float = 0.0) -> list[Point]:
    """E[rho rho'] = sigma^2 V^-1 given the actions."""
    return _white(level, _least_squares(level, "ols-covariance", ridge))


def _stopped(level: Level, peeking: bool = False) -> Errors:
    """Standardised errors where exploration stops as soon as lambda_min(V / sigma^2) >= 0.03;
    ``peeking`` also stops, after d steps, where the estimate is larger than the truth by a standard
    deviation."""
    rng = level.rng("ols-stopping")
    found: Errors = []
    times = level.pick(3000, 25_000)
    for d, radius, sigma in level.pick(((5, 0.25, 1.0),), ((1, 0.25, 1.0), (2, 1.0, 3.0),
                                                           (5, 0.25, 1.0))):  # fmt: skip
        gram, moment = np.zeros((times, d, d)), np.zeros((times, d))
        z, steps = np.empty((times, d)), np.zeros(times)
        going = np.arange(times)
        for t in range(1, 10_000):
            raw = rng.standard_normal((len(going), d))
            scale = radius * rng.random(len(going)) ** (1 / d) / np.linalg.norm(raw, axis=1)
            raw *= scale[:, None]
            gram[going] += raw[:, :, None] * raw[:, None, :]
            moment[going] += raw * (sigma * rng.standard_normal(len(going)))[:, None]
            done = np.linalg.eigvalsh(gram[going])[:, 0] >= 0.03 * sigma**2
            if t < d:
                continue
            root = np.linalg.cholesky(np.linalg.inv(gram[going] + 1e-300 * np.eye(d)))
            now = np.einsum("nji,nj->ni", root, moment[going]) / sigma  # L'A'xi with L L' = V^-1
            if peeking:
                done |= now.mean(axis=1) * math.sqrt(d) > 1
            z[going[done]], steps[going[done]] = now[done], t
            going = going[~done]
            if len(going) == 0:
                break
        where: dict[str, object] = {
            "d": d,
            "a": radius,
            "sigma": sigma,
            "mean tau": float(steps.mean()),
        }
        found.append((where, z))
    return found


def ols_stopping(level: Level, peeking: bool = False) -> list[Point]:
    """Mean and covariance of the errors where exploration stops at the rule of Section 6."""
    errors = _stopped(level, peeking)
    return [*_centred(level, errors), *_white(level, errors)]


def _log_moment(s: float, sigma: float, a: float, event: bool = True) -> float:
    """log E[exp(s rho) | E_v] for one action uniform on [-a, a]: E[exp(s^2 sigma^2 / (2 A^2))] with
    |A| >= a/sqrt(6), by the midpoint rule."""
    edge = a / math.sqrt(6) if event else 1e-3 * a
    grid = edge + (a - edge) * (np.arange(100_000) + 0.5) / 100_000
    return float(logsumexp((s * sigma / grid) ** 2 / 2) - math.log(len(grid)))


def _tilts(level: Level) -> list[tuple[float, float, float, float]]:
    """s in units of the standard deviation, sigma, a and Sigma_* = lambda_max."""
    scales = level.pick((0.1, 3.0, 100.0), (0.01, 0.1, 1.0, 3.0, 10.0, 100.0))
    cases = level.pick(((1.0, 1.0, 1.0), (1e-4, 0.01, 1.0)),
                       ((1.0, 1.0, 1.0), (1e-4, 0.01, 1.0), (3.0, 1000.0, 1e-3),
                        (1e-4, 1.0, 1e3)))  # fmt: skip
    return [(s / math.sqrt(6 * sigma**2 / a**2 + top), sigma, a, top)
            for sigma, a, top in cases for s in scales]  # fmt: skip


def subgaussian_task(level: Level, two: float = 2.0, event: bool = True) -> list[Point]:
    """log E[exp(s rho)] <= s^2/2 2 sigma^2/(lambda_A d), and with theta - mu_* added s^2/2 s2,
    given E_v; d = 1 and a single action, where nothing averages out."""
    points = []
    for s, sigma, a, top in _tilts(level):
        inner, bound = _log_moment(s, sigma, a, event), two * sigma**2 * 3 / a**2
        where = {"d": 1, "tau": 1, "s": s, "sigma": sigma, "a": a, "Sigma_*": top}
        points.append(at_most(where, inner, s * s / 2 * bound))
        both = inner + s * s / 2 * top
        points.append(at_most({**where, "of": "theta-hat - mu_*"}, both, s * s / 2 * (bound + top)))
    return points


def subgaussian_mean(level: Level, late: int = 1, two: float = 2.0) -> list[Point]:
    """log E[exp(s (mu-hat - mu_*))] <= s^2 s2 / (2(n-1)), given E_v: n - 1 independent tasks, each
    tilted by s / (n - 1)."""
    points = []
    for tilt, sigma, a, top in _tilts(level):
        for n in level.pick((2, 1000), (2, 10, 1000, 10**6)):
            s = tilt * math.sqrt(n - 1)
            each = s / (n - 1)
            left = (n - 1) * (_log_moment(each, sigma, a) + each**2 / 2 * top)
            right = s**2 / 2 * (two * sigma**2 * 3 / a**2 + top) / (n - late)
            where = {"d": 1, "n": n, "s": s, "sigma": sigma, "a": a, "Sigma_*": top}
            points.append(at_most(where, left, right, 1e-9))
    return points


def covariance_unbiased(level: Level, ddof: int = 1, noise: float = 1.0) -> list[Point]:
    """E[Sigma-hat] = Sigma_* given the grams, exactly, for the estimator as it is implemented.

    It is quadratic in the least squares estimates, so its expectation under N(mu, C) is its value
    at mu plus half the sum of its second differences along the columns of the root of C.
    """
    rng = level.rng("covariance-unbiased")
    points = []
    for d, m in level.pick(((1, 2), (2, 3)), ((1, 2), (1, 5), (2, 2), (2, 3), (3, 4), (5, 3))):
        for sigma in (1e-3, 1.0, 3.0):
            true, mean = positive(rng, d), rng.standard_normal(d)
            grams = np.array([positive(rng, d) for _ in range(m)])
            roots = [np.linalg.cholesky(true + sigma**2 * np.linalg.inv(g)) for g in grams]

            def value(
                thetas: np.ndarray, grams: np.ndarray = grams, m: int = m, sigma: float = sigma
            ) -> np.ndarray:
                state = moments.empty(thetas.shape[1])
                for gram, theta in zip(grams, thetas, strict=True):
                    moments.observe(*state, gram, gram @ theta)
                raw: np.ndarray = moments.covariance(*state, noise * sigma**2)
                return raw + (1 / (m - ddof) - 1 / (m - 1)) * state.scatter

            centre = np.tile(mean, (m, 1))
            base, expected = value(centre), value(centre)
            for j, root in enumerate(roots):
                for column in root.T:
                    step = np.zeros((m, d))
                    step[j] = column
                    expected = expected + (value(centre + step) + value(centre - step)) / 2 - base
            scale = float(np.linalg.norm(true, 2)) + sigma**2 / float(
                np.linalg.eigvalsh(grams).min()
            )
            gap = float(np.abs(expected - true).max()) / scale
            points.append(equal({"d": d, "n": m + 1, "sigma": sigma}, gap, 1e-10))
    return points


class Played(NamedTuple):
    """theta-hat - theta, averaged over coordinates, task by task: from all steps, from all steps
    with other noise than the agent saw, and from forced exploration only."""

    all_steps: np.ndarray
    other_noise: np.ndarray
    explored: np.ndarray


@cache
def _played(seed: int, tasks: int, name: str) -> Played:
    """Tasks of Section 6."""
    family, rng = paper_family(), stream(seed, ENVIRONMENT)
    player = Player(ROSTER[name], family.setting(tasks), random_seed=seed)
    fresh = stream(seed, "claims/adaptive-bias")
    errors = np.full((3, tasks), np.nan)
    for j in range(tasks):
        player.start_task()
        task = family.draw(rng)
        done = player.play(task)
        noise = done.rewards - done.taken @ task.theta
        other = family.noise_sd * fresh.standard_normal(len(noise))
        first = slice(0, done.explored)
        for row, steps, seen in ((0, slice(None), noise), (1, slice(None), other),
                                 (2, first, noise)):  # fmt: skip
            actions = done.taken[steps]
            if len(actions) >= family.dim:
                off = np.linalg.solve(actions.T @ actions, actions.T @ seen[steps])
                errors[row, j] = float(off.mean())
    return Played(*errors)


def adaptive_bias(level: Level, other_noise: bool = False) -> list[Point]:
    """The estimates are too low by at least 0.02 a coordinate where all steps are used, as Thompson
    Sampling with the true prior takes them (which learned priors come to); where only the steps of
    exploration are, their mean is 0 as far as chance tells."""
    points = []
    for name in level.pick(("KTS_tau",), ("KTS_tau", "KTS_rescue")):
        found = _played(level.seed, level.pick(8000, 25_000), name)
        errors = found.other_noise if other_noise else found.all_steps
        where = {"agent": name, "tasks": len(errors), "steps": "all"}
        points.append(estimated(where, errors, -0.02, level.size))
        if name == "KTS_tau":
            few = found.explored
            allowed = float(norm.isf(level.size / 2) * few.std() / math.sqrt(len(few)))
            where = {"agent": name, "tasks": len(few), "steps": "of exploration"}
            points.append(equal(where, abs(float(few.mean())), allowed))
    return points


CLAIMS = (
    Claim("ols-unbiased", SECTION, "2746", "E", "E[rho] = 0 under E_v", ols_unbiased,
          {"actions that saw the noise": partial(ols_unbiased, peeking=True)},
          "Given the actions, rho is N(0, sigma^2 V^-1) exactly."),
    Claim("ols-covariance", SECTION, "2988", "E", "E[rho rho'] = sigma^2 E[V^-1]", ols_covariance,
          {"a ridge": partial(ols_covariance, ridge=0.5)},
          "True given the actions, or given E_v. Without an event the moments need not exist: "
          "there are laws of Assumption 1 with E[V^-1] infinite for every tau."),
    Claim("ols-stopping", SECTION, "581-602", "E",
          "the same where tau is the first time that lambda_min(V/sigma^2) >= 0.03", ols_stopping,
          {"stops where the estimate is high": partial(ols_stopping, peeking=True)},
          "tau depends on the actions alone, which do not depend on the noise; and V at tau is "
          "bounded below, so all moments exist. The rule is not free of units of actions."),
    Claim("subgaussian-task", SECTION, "2770-2852", "E",
          "given E_v, rho is sqrt(2 sigma^2/(lambda_A d)) sub-Gaussian, theta-hat - mu_* is "
          "sqrt(s2)", subgaussian_task,
          {"1 for 2": partial(subgaussian_task, two=1.0),
           "without E_v": partial(subgaussian_task, event=False)},
          "Sharp as s grows, for a single action. With tau of eq. (8) loose by a factor of about "
          "16 ln(d^2 N^2 T), since V is then about tau lambda_A."),
    Claim("subgaussian-mean", SECTION, "2855-2890", "E",
          "given E_v, mu-hat - mu_* is sqrt(s2/(n-1)) sub-Gaussian", subgaussian_mean,
          {"1 for 2": partial(subgaussian_mean, two=1.0),
           "n for n - 1": partial(subgaussian_mean, late=0)}),
    Claim("covariance-unbiased", SECTION, "354, 2903-3155", "E",
          "E[Sigma-hat] = Sigma_*, eq. (11)", covariance_unbiased,
          {"1/(n-1) for 1/(n-2)": partial(covariance_unbiased, ddof=0),
           "noise not taken off": partial(covariance_unbiased, noise=0.0)},
          "True for n >= 3, given all the grams, equal or not; n = 2 divides by 0. Without an "
          "event the expectation need not exist."),
    Claim("adaptive-bias", SECTION, "605-609", "E",
          "using all steps biases the estimates (by at least 0.02 a coordinate here)",
          adaptive_bias, {"noise the agent did not see": partial(adaptive_bias, other_noise=True)},
          "About -0.038 a coordinate, 0.084 in norm, which is what sampling error of the steps of "
          "exploration comes down to only after some 10,000 tasks. In one dimension with symmetric "
          "actions it is 0."),
)  # fmt: skip
"""Checks of this section."""
