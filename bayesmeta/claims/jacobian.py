"""The Jacobian of the aligned actions, eq. (34) and Appendix C.4."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.claims.aligning import edge
from bayesmeta.claims.claim import Kind, Section, claim
from bayesmeta.claims.turned import turned_edges
from bayesmeta.claims.verdict import Level, Point, Where, at_most, equal
from bayesmeta.theory.alignment import jacobian_by_differences, symmetric_power


def log_jacobian(actions: Array, gap: Array) -> float:
    """log |det d vec A^K / d vec A| from the formulas of eqs. (56)-(58)."""
    n, d = actions.shape
    gram = actions.T @ actions
    v, w = symmetric_power(gram, 0.5), symmetric_power(gram - gap, 0.5)
    inverse = np.linalg.inv(v)
    swap = np.zeros((d * d, d * d))  # the commutation matrix
    for i in range(d):
        for j in range(d):
            swap[i * d + j, j * d + i] = 1.0
    change = (np.eye(d * d) + swap) @ np.kron(np.eye(d), actions.T)

    def through(root: Array) -> Array:
        total = np.kron(root, np.eye(d)) + np.kron(np.eye(d), root)
        made: Array = np.linalg.solve(total, change)
        return made

    first = np.kron(w @ inverse, np.eye(n))
    second = -np.kron(w, actions) @ np.kron(inverse, inverse) @ through(v)
    third = np.kron(np.eye(d), actions @ inverse) @ through(w)
    return float(np.linalg.slogdet(first + second + third)[1])


def _jacobian_cases(level: Level, name: str) -> Iterator[tuple[Where, Array, Array]]:
    rng = level.rng(name)
    for d in level.pick((1, 2, 5), (1, 2, 3, 5, 10)):
        for n in (d, d + 3) if d == 10 else sorted({d, d + 1, d + 2, 2 * d, 3 * d + 4}):
            for top in level.pick((0.3, 0.9), (1e-4, 0.3, 0.9, 0.99)):
                for scale in level.pick((1.0,), (0.01, 1.0, 1000.0)):
                    actions = scale * rng.standard_normal((n, d))
                    way = rng.standard_normal((d, 1 if n % 2 else d))
                    gap = way @ way.T
                    inner = symmetric_power(actions.T @ actions, -0.5)
                    gap = gap * top / np.linalg.norm(inner @ gap @ inner, 2)
                    yield {"d": d, "n": n, "top": top, "scale": scale}, actions, gap


def _ratio(actions: Array, gap: Array) -> float:
    gram = actions.T @ actions
    return float(np.linalg.slogdet(gram)[1] - np.linalg.slogdet(gram - gap)[1])


def _by_differences(actions: Array, gap: Array) -> float:
    """log |det J| by central differences, in units in which V = I is of the order of 1."""
    size = float(np.linalg.norm(actions, 2))
    close = float(np.linalg.eigvalsh(actions.T @ actions - gap)[0]) / size**2
    found = jacobian_by_differences(actions / size, gap / size**2, min(1e-5, 1e-3 * close))
    return float(np.linalg.slogdet(found)[1])


class Measured(NamedTuple):
    """log |det J| by differences and by the printed formula, and log(det V / det(V - B))."""

    where: Where
    steps: int
    dim: int
    log: float
    formula: float
    ratio: float


@cache
def _measured(level: Level) -> list[Measured]:
    return [
        Measured(
            where,
            len(actions),
            actions.shape[1],
            _by_differences(actions, gap),
            log_jacobian(actions, gap),
            _ratio(actions, gap),
        )
        for where, actions, gap in _jacobian_cases(level, "jacobian-determinant")
    ]


@claim(
    id="jacobian-determinant",
    constant=("share", 1.0),
    factor_of="the exponent",
    proof="ours",
    kind=Kind.INEQUALITY,
    section=Section.COVARIANCE_ALIGNMENT,
    where="lemma on the actions Jacobian, Appendix C.2.1, proved in Appendix C.4",
    quote="1/|det J| ≤ (det XᵀX / det(XᵀX - B))^{n/2}",
    statement="1 / |det J_A| <= (det V / det(V - B))^(tau/2)",
    lines="1157, 1988-2345",
    mutations={"exponent (n - d - 2)/2": {"fewer": True}},
    remark=(
        "True, not sharp: the exponent is (tau - d - 1)/2 exactly. Its proof does not "
        "cover tau = d = 1, where it uses a lemma on matrices of size 2 or more."
    ),
)
def jacobian_determinant(level: Level, fewer: bool = False, share: float = 1.0) -> list[Point]:
    """log(1 / |det J|) <= n/2 log(det V / det(V - B)), J by differences; the printed formula for J,
    eqs. (56)-(58), gives the same. With ``fewer`` (n - d - 2)/2 for n/2."""
    points = []
    for where, n, d, log, formula, ratio in _measured(level):
        power = (n - d - 2) / 2 if fewer else share * n / 2
        points.append(Point(where, -log, power * ratio + 1e-6 * max(1.0, ratio), logs=True))
        off = abs(formula - log) / max(1.0, ratio)
        points.append(equal({**where, "what": "the formula"}, off, 1e-5))
    return points


@claim(
    id="jacobian-determinant-sharp",
    proof="ours",
    sharpens="jacobian-determinant",
    kind=Kind.IDENTITY,
    statement="|det J_A| = (det(V - B) / det V)^((tau - d - 1)/2)",
    mutations={"n/2 as an equality": {"extra": 0.0}},
)
def jacobian_exact(level: Level, extra: float = 1.0) -> list[Point]:
    """|det J| = (det(V - B) / det V)^((n - d - 1) / 2), exactly.

    Proof: turn the rows so that A = [P; 0] with P = V^1/2. The lower n - d rows map linearly,
    dA_2 -> dA_2 V^-1/2 (V - B)^1/2: a factor (det(V - B) / det V)^((n - d) / 2). For the upper
    block write dA_1 = Omega P + dP with Omega skew: in the eigenbasis of P, (Omega, dP) -> dA_1 has
    determinant prod_{i<j} (p_i + p_j), while dV = P dP + dP P has 2^d det P prod_{i<j} (p_i + p_j),
    so that |dA_1| = |dOmega| |dV| / (2^d det P). The image has the same Omega and d(V - B) = dV: a
    factor det P / det (V - B)^1/2 = (det(V - B) / det V)^(-1/2).
    """
    points = []
    for where, n, d, log, _, ratio in _measured(level):
        off = abs(log + (n - d - extra) / 2 * ratio) / max(1.0, ratio)
        points.append(equal(where, off, 1e-5))
    return points


@claim(
    id="jacobian-bound",
    constant=("factor", 1.0),
    factor_of="c_s",
    proof="ours",
    kind=Kind.INEQUALITY,
    section=Section.COVARIANCE_ALIGNMENT,
    where="eq. (34), Appendix C.2.1",
    quote="max_{E_v} {1/|det J_A|} ≤ 1 + c_s τ √(f_s δ)",
    statement="1 / |det J_A| <= 1 + c_s tau sqrt(f_s delta)",
    lines="1179-1255",
    mutations={
        "half of c_s": {"factor": 0.5},
        "the printed chain, at d = tau = 1": {"steps": True},
    },
    remark=(
        "True by the exact determinant. The printed chain breaks at d = tau = 1 (step "
        "(g), Bernoulli's inequality, needs d tau >= 2)."
    ),
)
def jacobian_bound(level: Level, factor: float = 1.0, steps: bool = False) -> list[Point]:
    """1 / |det J| <= 1 + c_s tau sqrt(f_s delta) under E_v, E_s and delta <= 1/M, by the exact
    determinant at the edge of the events, alike in all directions and turned; with ``steps`` the
    printed chain's (det V / det(V - B))^(tau / 2) instead."""
    points = []
    for where, gram, gap, more, action_min in edge(level):
        d, tau = where["d"], where["tau"]
        log = float(np.linalg.slogdet(gram)[1] - np.linalg.slogdet(gram - gap)[1])
        power = tau / 2 if steps else (tau - d - 1) / 2
        c_s = 2 * where["sigma"] ** 2 / (where["lambda_min"] ** 2 * action_min)
        right = c_s * tau * float(np.linalg.norm(more, 2))
        points.append(at_most(where, math.exp(power * log), 1 + factor * right))
    for one in turned_edges(level):
        where, d, tau = one.where, one.edge.dim, one.edge.tau
        power = tau / 2 if steps else (tau - d - 1) / 2
        right = one.edge.c_s * tau * one.edge.cov
        points.append(at_most(where, math.exp(power * one.log_determinants), 1 + factor * right))
    return points
