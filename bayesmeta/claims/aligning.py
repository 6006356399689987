"""The alignment of actions, eqs. (25)-(28), and the norms of what it gives."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.claims.claim import Kind, Section, claim
from bayesmeta.claims.verdict import Level, Point, Where, at_most, equal
from bayesmeta.theory.alignment import original_actions, symmetric_power


def gap_of(true: Array, more: Array, sigma: float) -> Array:
    """B = sigma^2 (Sigma_*^-1 - (Sigma_* + D)^-1) = sigma^2 Sigma_*^-1 D (Sigma_* + D)^-1, written
    so that nothing cancels."""
    made = sigma**2 * np.linalg.solve(true, more) @ np.linalg.inv(true + more)
    return (made + made.T) / 2


def draws(level: Level, name: str, least: int = 1) -> Iterator[tuple[Where, Array, Array, Array]]:
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


@claim(
    id="alignment-gram",
    proof="the paper",
    kind=Kind.IDENTITY,
    section=Section.COVARIANCE_ALIGNMENT,
    where="eqs. (25), (26) and (28), Appendix C.2.1",
    quote=(
        "V^K(A) = V - B; A^K(A) ≜ A V^{-1/2} (V - B)^{1/2}; A(A^K) = A^K (V^K)^{-1/2} "
        "(V^K + B)^{1/2}"
    ),
    statement=(
        "A^K(A^M) has gram V - B and the printed inverse, and covariances agree after tau steps"
    ),
    lines="930-965",
    mutations={"V + B": {"sign": -1}, "roots in the other order": {"swapped": True}},
)
def alignment_gram(level: Level, sign: int = 1, swapped: bool = False) -> list[Point]:
    """(A^K)'A^K = V - B, the inverse map, and equal covariances after tau steps."""
    points = []
    for where, actions, true, more in draws(level, "alignment-gram"):
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
    """Points where the bounds are tight: V = (lambda_A d / 2) I, Sigma_* = lambda_min I, D = s I
    with c_s tau s = 1 and s much smaller than lambda_min. Yields where, V, B, D and lambda_A."""
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


@claim(
    id="alignment-positive",
    constant=("share", 1.0),
    factor_of="V",
    proof="the paper",
    kind=Kind.INEQUALITY,
    section=Section.COVARIANCE_ALIGNMENT,
    where="eq. (27), Appendix C.2.1",
    quote=(
        "V_τ ≻ B under the event E_v and for δ ≤ 1/M: λ_min(V_τ - B) ≥ λ_A d/2 - "
        "σ²√(f_s δ)/λ_min² > 0"
    ),
    statement="V - B is positive definite under E_v (and E_s), delta <= 1/M",
    lines="944",
    mutations={"half of E_v": {"share": 0.5}},
    remark=(
        "The printed strict step (d) of eq. (27) is an equality at d = tau = 1, delta "
        "= 1/M; V - B > 0 holds there all the same, since |B| is strictly smaller than "
        "its bound. The sentence names E_v only; step (c) uses E_s as well, as the "
        "paper says there."
    ),
)
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
    for where, actions, true, more in draws(level, "alignment-positive"):
        # any sufficiently explored task: E_v with lambda_A = 2 lambda_min(V) / d
        gram, d = actions.T @ actions, where["d"]
        low, sigma = float(np.linalg.eigvalsh(gram)[0]), where["sigma"]
        least, size = float(np.linalg.eigvalsh(true)[0]), float(np.linalg.norm(more, 2))
        c_s = 2 * sigma**2 / (least**2 * (2 * low / d))
        near = more * min(1.0, 1 / (c_s * len(actions) * size))
        compare(where, gram, gap_of(true, near, sigma))
    return points


@claim(
    id="alignment-norm",
    proof="the paper",
    kind=Kind.INEQUALITY,
    section=Section.COVARIANCE_ALIGNMENT,
    where="proof of the first lemma on Term A, Appendix C.2.1",
    quote="‖A_t^K‖² = ‖A_t‖² - A_tᵀ V^{-1/2} B V^{-1/2} A_t ≤ ‖A_t‖²",
    statement="|A_t^K| <= |A_t| for every t <= tau",
    lines="1018-1045",
    mutations={"V + B": {"sign": -1}},
)
def alignment_norm(level: Level, sign: int = 1) -> list[Point]:
    """|A_t^K| <= |A_t| for every step."""
    points = []
    for where, actions, true, more in draws(level, "alignment-norm"):
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
