"""Posterior updates and the alignment of actions (lines 147-158, 929-1100)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.claims.verdict import Claim, Level, Point, at_most, equal
from bayesmeta.theory.alignment import action_log_ratio, original_actions, symmetric_power
from bayesmeta.theory.constants import largest_m
from bayesmeta.theory.regime import Regime

SECTION = "covariance alignment"
Where = dict[str, Any]


Rows = list[list[Fraction]]


def _inverse(matrix: Rows) -> Rows:
    """By Gauss and Jordan, in fractions; for positive definite matrices, which need no swaps."""
    d = len(matrix)
    rows = [[*row, *(Fraction(i == j) for j in range(d))] for i, row in enumerate(matrix)]
    for i in range(d):
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for k in range(d):
            if k != i:
                rows[k] = [x - rows[k][i] * y for x, y in zip(rows[k], rows[i], strict=True)]
    return [row[d:] for row in rows]


def _times(matrix: Rows, vector: list[Fraction]) -> list[Fraction]:
    return [sum((x * y for x, y in zip(row, vector, strict=True)), Fraction()) for row in matrix]


def _exact_gap(rng: np.random.Generator, d: int, squared: bool, late: int) -> Fraction:
    """Between the ways to the posterior, in fractions: step by step, from A'X at once, and from
    V theta + A' Xi at once."""
    steps, sigma = d + 3, Fraction(int(rng.integers(1, 9)), 5)
    variance, batch = sigma**2, sigma**2 if squared else sigma

    def draw(n: int, over: int) -> list[Fraction]:
        return [Fraction(int(k), over) for k in rng.integers(-9, 10, n)]

    half = [draw(d, 4) for _ in range(d)]
    prior = [
        [
            sum((x * y for x, y in zip(a, b, strict=True)), Fraction(i == j))
            for j, b in enumerate(half)
        ]
        for i, a in enumerate(half)
    ]
    mean, theta, noise = draw(d, 5), draw(d, 3), draw(steps, 7)
    actions = [draw(d, 3) for _ in range(steps)]
    rewards = [x + e for x, e in zip(_times(actions, theta), noise, strict=True)]
    cov, centre = prior, mean
    for action, reward in zip(actions, rewards, strict=True):
        before = _inverse(cov)
        cov = _inverse(
            [[before[i][j] + action[i] * action[j] / variance for j in range(d)] for i in range(d)]
        )
        known = _times(before, centre)
        centre = _times(cov, [known[i] + action[i] * reward / variance for i in range(d)])
    used = range(steps - late)
    gram = [
        [sum((actions[t][i] * actions[t][j] for t in used), Fraction()) for j in range(d)]
        for i in range(d)
    ]
    first = _inverse(prior)
    whole = _inverse([[first[i][j] + gram[i][j] / batch for j in range(d)] for i in range(d)])
    known, signal = _times(first, mean), _times(gram, theta)
    columns = [[actions[t][i] for t in used] for i in range(d)]
    moment = _times(columns, [rewards[t] for t in used])
    split = [x + y for x, y in zip(signal, _times(columns, [noise[t] for t in used]), strict=True)]
    gap = max(abs(whole[i][j] - cov[i][j]) for i in range(d) for j in range(d))
    for total in (moment, split):
        found = _times(whole, [known[i] + total[i] / batch for i in range(d)])
        gap = max(gap, *(abs(x - y) for x, y in zip(found, centre, strict=True)))
    return gap


def posterior_recursion(level: Level, squared: bool = True, late: int = 0) -> list[Point]:
    """Step by step and at once: in exact fractions, and in floating point by the update of rank one
    that agents use, relative to the posterior."""
    rng = level.rng("posterior-recursion")
    points = []
    for d in (1, 2, 3):
        for case in range(level.pick(3, 12)):
            gap = _exact_gap(rng, d, squared, late)
            points.append(equal({"d": d, "exact": case}, float(gap), 0.0))
    for d in (2, 5, 10):
        for sigma in (1e-2, 1.0, 3.0):
            for radius in (0.01, 1.0):
                half = rng.standard_normal((d, d))
                prior = half @ half.T + 0.1 * np.eye(d)
                actions = radius * rng.standard_normal((2 * d, d)) / math.sqrt(d)
                start = rng.standard_normal(d)
                theta = rng.multivariate_normal(start, prior)
                rewards = actions @ theta + sigma * rng.standard_normal(2 * d)
                mean, cov = start, prior.copy()
                for action, reward in zip(actions, rewards, strict=True):
                    gain = cov @ action / (sigma**2 + action @ cov @ action)
                    mean = mean + gain * (reward - action @ mean)
                    cov = cov - np.outer(gain, action @ cov)
                used = slice(0, 2 * d - late)
                noise_var = sigma**2 if squared else sigma
                inverse = np.linalg.inv(prior)
                batch = np.linalg.inv(inverse + actions[used].T @ actions[used] / noise_var)
                total = inverse @ start + actions[used].T @ rewards[used] / noise_var
                off = float(np.abs(batch - cov).max() / np.abs(batch).max())
                off = max(off, float(np.abs(mean - batch @ total).max() / np.abs(mean).max()))
                points.append(equal({"d": d, "sigma": sigma, "a": radius}, off, 1e-7))
    return points


def gap_of(true: Array, more: Array, sigma: float) -> Array:
    """B = sigma^2 (Sigma_*^-1 - (Sigma_* + D)^-1) = sigma^2 Sigma_*^-1 D (Sigma_* + D)^-1, written
    so that nothing cancels."""
    made = sigma**2 * np.linalg.solve(true, more) @ np.linalg.inv(true + more)
    return (made + made.T) / 2


def _draws(level: Level, name: str, least: int = 1) -> Iterator[tuple[Where, Array, Array, Array]]:
    """Actions, Sigma_* and D = Sigma-hat - Sigma_* >= 0 with V - B positive definite."""
    rng = level.rng(name)
    for d in (1, 2, 5, 10):
        for case in range(level.pick(4, 20) if d >= least else 0):
            sigma = (1e-4, 0.3, 3.0)[case % 3]
            radius = (0.01, 1.0, 1000.0)[(case // 3) % 3]
            actions = radius * rng.standard_normal((3 * d + 4, d)) / math.sqrt(d)
            gram = actions.T @ actions
            half = rng.standard_normal((d, d))
            true = (half @ half.T + 0.1 * np.eye(d)) * sigma**2 / radius**2
            way = rng.standard_normal((d, 1 if case % 2 else d))
            more = way @ way.T
            low, high = np.linalg.eigvalsh(gram)[0], np.linalg.norm(gap_of(true, more, sigma), 2)
            while high > 0.5 * low:  # closer, until it aligns
                more = more / 4
                high = np.linalg.norm(gap_of(true, more, sigma), 2)
            yield {"d": d, "case": case, "sigma": sigma, "a": radius}, actions, true, more


def alignment_gram(level: Level, sign: int = 1, swapped: bool = False) -> list[Point]:
    """(A^K)'A^K = V - B, the inverse map, and equal covariances after tau steps."""
    points = []
    for where, actions, true, more in _draws(level, "alignment-gram"):
        sigma, gram = where["sigma"], actions.T @ actions
        gap = gap_of(true, more, sigma)
        first, second = symmetric_power(gram, -0.5), symmetric_power(gram - sign * gap, 0.5)
        moved = actions @ (second @ first if swapped else first @ second)
        other = moved.T @ moved
        size = float(np.linalg.norm(gap, 2))
        points.append(equal(where, float(np.abs(other - (gram - gap)).max()) / size, 1e-6))
        back = original_actions(moved, gap)
        off = float(np.abs(back - actions).max() / np.abs(actions).max())
        points.append(equal({**where, "map": "inverse"}, off, 1e-8))
        precise = np.linalg.inv(true + more) + gram / sigma**2
        theirs = np.linalg.inv(true) + other / sigma**2
        off = float(np.abs(precise - theirs).max()) / (size / sigma**2)
        points.append(equal({**where, "what": "precisions"}, off, 1e-5))
    return points


def edge(level: Level) -> Iterator[tuple[Where, Array, Array, Array, float]]:
    """Where it bites: V = (lambda_A d / 2) I, Sigma_* = lambda_min I, D = s I with c_s tau s = 1
    and s much smaller than lambda_min. Yields where, V, B, D and lambda_A."""
    sizes = [(1, 1), (1, 2), (1, 3), (2, 2), (5, 5), (1, 200), (10, 2000)]
    for d, tau in sizes:
        for sigma in level.pick((1.0,), (1e-4, 1.0, 3.0)):
            for low in level.pick((1e-3,), (1e-6, 1e-3, 1.0)):
                action_min = 1.0 / (d + 2)
                c_s = 2 * sigma**2 / (low**2 * action_min)
                s = 1 / (c_s * tau)
                if s > 1e-2 * low:
                    continue
                true, more = low * np.eye(d), s * np.eye(d)
                where = {"d": d, "tau": tau, "sigma": sigma, "lambda_min": low, "s": s}
                gram = action_min * d / 2 * np.eye(d)
                yield where, gram, gap_of(true, more, sigma), more, action_min


def alignment_positive(level: Level, share: float = 1.0) -> list[Point]:
    """Under E_v and E_s with delta <= 1/M, V - B is positive definite: the largest eigenvalue of
    V^-1/2 B V^-1/2 is less than 1."""
    points = []

    def compare(where: Where, gram: Array, gap: Array) -> None:
        turn = symmetric_power(share * gram, -0.5)
        largest = float(np.linalg.eigvalsh(turn @ gap @ turn)[-1])
        points.append(Point(where, largest, 1.0 - 1e-12))

    for where, gram, gap, _, _ in edge(level):
        compare(where, gram, gap)
    for where, actions, true, more in _draws(level, "alignment-positive"):
        # any sufficiently explored task: E_v with lambda_A = 2 lambda_min(V) / d
        gram, d = actions.T @ actions, where["d"]
        low, sigma = float(np.linalg.eigvalsh(gram)[0]), where["sigma"]
        least, size = float(np.linalg.eigvalsh(true)[0]), float(np.linalg.norm(more, 2))
        c_s = 2 * sigma**2 / (least**2 * (2 * low / d))
        near = more * min(1.0, 1 / (c_s * len(actions) * size))
        compare(where, gram, gap_of(true, near, sigma))
    return points


def alignment_norm(level: Level, sign: int = 1) -> list[Point]:
    """|A_t^K| <= |A_t| for every step."""
    points = []
    for where, actions, true, more in _draws(level, "alignment-norm"):
        gram, gap = actions.T @ actions, gap_of(true, more, where["sigma"])
        turn = symmetric_power(gram, -0.5)
        moved = actions @ turn @ symmetric_power(gram - sign * gap, 0.5)
        ratio = np.linalg.norm(moved, axis=1) / np.linalg.norm(actions, axis=1)
        points.append(at_most(where, float(ratio.max()), 1.0, 1e-9))
        drop = np.einsum("ti,ij,tj->t", actions, turn @ gap @ turn, actions)
        left = (actions**2).sum(axis=1) - (moved**2).sum(axis=1)
        size = float(np.abs(drop).max())
        points.append(
            equal({**where, "what": "the drop"}, float(np.abs(left - drop).max()) / size, 1e-5)
        )
    return points


Law = tuple[Callable[[Array], bool], float, Array, Array, float]


def _laws() -> dict[str, Law]:
    """Laws that Assumption 1 admits, constant on their support: whether a point lies in it, its
    lambda_A, actions in it, the direction of D and the size of D. Sigma_* = I, sigma = 1."""
    r = 1 / math.sqrt(2)
    tiny = 1e-12

    def disc(x: Array) -> bool:
        return bool(np.linalg.norm(x) <= 1 + tiny)

    return {
        "interval with a hole, 1/2 <= |A| <= 1": (
            lambda x: bool(0.5 - tiny <= abs(float(x[0])) <= 1 + tiny),
            7 / 12,
            np.array([[0.5], [0.5]]),
            np.array([1.0]),
            0.01,
        ),
        "quarter disc": (
            lambda x: disc(x) and bool((x >= -tiny).all()),
            0.0489,
            np.array([[0.9, 0.0], [0.0, 0.9]]),
            np.array([1.0, 1.0]),
            0.00166,
        ),
        "half disc": (
            lambda x: disc(x) and bool(x[0] >= -tiny),
            0.0699,
            np.array([[0.9, 0.0], [0.0, 0.9]]),
            np.array([1.0, 1.0]),
            0.00216,
        ),
        "square": (
            lambda x: bool((np.abs(x) <= r + tiny).all()),
            1 / 6,
            np.array([[r, -0.5], [r, 0.2], [0.1, r]]),
            np.array([0.3, 1.0]),
            0.00355,
        ),
        "disc off centre": (
            lambda x: bool(np.linalg.norm(x - [0.5, 0.0]) <= 0.4 + tiny),
            0.04,
            np.array([[0.1, 0.0], [0.5, 0.4], [0.5, -0.4]]),
            np.array([1.0, 0.0]),
            0.00129,
        ),
    }


def _ball_laws() -> dict[str, Law]:
    """Laws whose support is the whole ball, with actions on its edge."""

    def ball(x: Array) -> bool:
        return bool(np.linalg.norm(x) <= 1 + 1e-12)

    corner = np.array([[1.0, 0.0], [0.6, 0.8], [-0.8, 0.6]])
    return {
        "interval": (ball, 1 / 3, np.array([[1.0], [0.5]]), np.array([1.0]), 0.01),
        "disc": (ball, 1 / 4, corner, np.array([0.3, 1.0]), 0.004),
    }


def alignment_support(
    level: Level, laws: Callable[[], dict[str, Law]] = _laws, sign: int = 1
) -> list[Point]:
    """Where A_t lies in the support of f_A, so does A_t^K: how many of the steps leave it.

    delta = 1/3 = 1/M, tau < T, E_v holds, |D| = sqrt(f_s delta): all that Theorem 1 asks for.
    """
    points = []
    for name, (inside, action_min, actions, way, size) in laws().items():
        d, tau = actions.shape[1], len(actions)
        true, unit = np.eye(d), way / np.linalg.norm(way)
        more = size * np.outer(unit, unit)
        gram, gap = actions.T @ actions, gap_of(true, more, 1.0)
        assert all(inside(action) for action in actions), name
        assert np.linalg.eigvalsh(gram)[0] >= action_min * d / 2, name
        delta = 1 / 3
        regime = Regime.of(
            dim=d,
            horizon=tau + 1,
            tasks=2,
            noise_sd=1.0,
            radius=1.0,
            action_min=action_min,
            prior_min=1.0,
            prior_max=1.0,
            mean_norm=0.0,
        )
        m = largest_m(regime, tau, 1e-12, size**2 / delta, delta)
        assert m == 3 and tau < regime.horizon, name  # delta = 1/M
        moved = actions @ symmetric_power(gram, -0.5) @ symmetric_power(gram - sign * gap, 0.5)
        left = sum(not inside(action) for action in moved)
        where: Where = {
            "law": name,
            "d": d,
            "tau": tau,
            "T": regime.horizon,
            "delta": delta,
            "M": m,
            "lambda_A": action_min,
            "sigma": 1.0,
            "Sigma_*": "I",
            "s": size,
            "A": actions.tolist(),
            "A^K": moved.round(6).tolist(),
        }
        points.append(Point(where, float(left), 0.0))
    return points


def inside_the_ball(level: Level, sign: int = 1) -> list[Point]:
    """The same for the ball, at random, with an action on its edge."""
    points = []
    for where, actions, true, more in _draws(level, "alignment-support"):
        gram, gap = actions.T @ actions, gap_of(true, more, where["sigma"])
        edge_of = float(np.linalg.norm(actions, axis=1).max())
        moved = actions @ symmetric_power(gram, -0.5) @ symmetric_power(gram - sign * gap, 0.5)
        points.append(at_most(where, float(np.linalg.norm(moved, axis=1).max()), edge_of, 1e-9))
    return points


def alignment_density(
    level: Level, laws: Callable[[], dict[str, Law]] = _laws, sign: int = 1
) -> list[Point]:
    """The product over steps of f(A_t) / f(A_t^K) is at most 1: infinite where a step leaves the
    support of a law that is constant there; exp(-Tr(Sigma^-1 B) / 2) for a Gaussian one."""
    points = []
    for point in alignment_support(level, laws, sign):
        points.append(Point(point.where, math.inf if point.left else 1.0, 1.0))
    for where, actions, true, more in _draws(level, "alignment-density"):
        d, gram = where["d"], actions.T @ actions
        gap = gap_of(true, more, where["sigma"])
        turn = symmetric_power(gram, -0.5) @ symmetric_power(gram - sign * gap, 0.5)
        moved = actions @ turn
        precision = np.diag(np.linspace(1, 3, d)) / where["a"] ** 2
        widest = float(np.linalg.norm(actions, axis=1).max())
        log = action_log_ratio(actions, moved, widest, np.linalg.inv(precision))
        points.append(at_most({**where, "law": "Gaussian, truncated"}, log, 0.0, 1e-9))
        expected = -0.5 * float(np.trace(precision @ gap))
        points.append(equal({**where, "what": "exact value"}, abs(log / expected - 1), 1e-4))
    return points


CLAIMS = (
    Claim(
        "posterior-recursion",
        SECTION,
        "147, 705-745",
        "I",
        "updating step by step and at once give the same posterior",
        posterior_recursion,
        {
            "sigma for sigma^2": partial(posterior_recursion, squared=False),
            "one step late": partial(posterior_recursion, late=1),
        },
    ),
    Claim(
        "alignment-gram",
        SECTION,
        "930-965",
        "I",
        "A^K(A^M) has gram V - B and the printed inverse, and covariances agree after tau steps",
        alignment_gram,
        {
            "V + B": partial(alignment_gram, sign=-1),
            "roots in the other order": partial(alignment_gram, swapped=True),
        },
    ),
    Claim(
        "alignment-positive",
        SECTION,
        "944",
        "D",
        "V - B is positive definite under E_v (and E_s), delta <= 1/M",
        alignment_positive,
        {"half of E_v": partial(alignment_positive, share=0.5)},
        "The printed strict step (d) is an equality at d = tau = 1, delta = 1/M; V - B > 0 holds "
        "there all the same, since |B| is strictly smaller than its bound. The sentence names "
        "E_v only; step (c) uses E_s, as it says.",
    ),
    Claim(
        "alignment-norm",
        SECTION,
        "1018-1045",
        "D",
        "|A_t^K| <= |A_t| for every t <= tau",
        alignment_norm,
        {"V + B": partial(alignment_norm, sign=-1)},
    ),
    Claim(
        "alignment-support",
        SECTION,
        "1018-1045",
        "D",
        "A_t^K lies in the support of f_A, for every law Assumption 1 admits",
        alignment_support,
        {"V + B on the ball": partial(alignment_support, laws=_ball_laws, sign=-1)},
        "Assumption 1 asks for a density that does not grow with the norm *within its support*, "
        "so a law constant on an annulus, a square or half a disc is admitted; the alignment "
        "shrinks or turns actions out of it (line 1018; the displayed lemma proves only that "
        "norms do not grow). Term A (line 1102) is then infinite.",
        partial(alignment_support, laws=_ball_laws),
        survives="Theorems 1 and 2 survive for densities that do not grow with the norm on the "
        "whole ball, and for truncated Gaussians. For other laws of Assumption 1 their proof "
        "breaks, and for a contrived policy both are false (theorem-1, theorem-2).",
        sides="steps whose action leaves the support; none may",
    ),
    Claim(
        "alignment-support-corrected",
        SECTION,
        "1018-1045",
        "D",
        "A_t^K lies in the support of f_A where that is the whole ball",
        lambda level: [*alignment_support(level, _ball_laws), *inside_the_ball(level)],
        {
            "V + B": partial(alignment_support, laws=_ball_laws, sign=-1),
            "V + B, at random": partial(inside_the_ball, sign=-1),
        },
        "|A^K| <= |A| <= a.",
    ),
    Claim(
        "alignment-density",
        SECTION,
        "1047-1100",
        "D",
        "the product of f(A_t) / f(A_t^K) is at most 1",
        alignment_density,
        {"V + B on the ball": partial(alignment_density, laws=_ball_laws, sign=-1)},
        "Infinite for the laws of alignment-support (line 1053, “can be obtained directly”); "
        "the case of a truncated Gaussian is right, with equality exp(-Tr(Sigma^-1 B)/2).",
        partial(alignment_density, laws=_ball_laws),
        survives="As for alignment-support.",
        sides="the product of the ratios; its bound",
    ),
    Claim(
        "alignment-density-corrected",
        SECTION,
        "1047-1100",
        "D",
        "the same where f does not grow with the norm on the ball, or is a truncated Gaussian",
        partial(alignment_density, laws=_ball_laws),
        {"V + B": partial(alignment_density, laws=_ball_laws, sign=-1)},
        "Factor by factor: |A^K| <= |A|; Gaussian: the exponent is -Tr(Sigma^-1 B)/2.",
    ),
)
"""Checks of this section."""
