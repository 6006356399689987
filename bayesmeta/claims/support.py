"""The laws of actions under alignment: their supports and densities, eqs. (30)-(32)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.claims.aligning import draws, gap_of
from bayesmeta.claims.claim import Kind, Section, claim
from bayesmeta.claims.regimes import isotropic
from bayesmeta.claims.verdict import Level, Point, Where, at_most, equal
from bayesmeta.theory.alignment import action_log_ratio, symmetric_power
from bayesmeta.theory.constants import largest_m

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


@claim(
    id="alignment-support",
    kind=Kind.INEQUALITY,
    section=Section.COVARIANCE_ALIGNMENT,
    where="sentence before the first lemma on Term A, Appendix C.2.1",
    quote="for A_t in the support of f_A, A_t^K is in the support as well",
    statement="A_t^K lies in the support of f_A, for every law Assumption 1 admits",
    lines="1018-1045",
    mutations={"V + B on the ball": {"laws": _ball_laws, "sign": -1}},
    holds_at={"laws": _ball_laws},
    remark=(
        "Assumption 1 asks for a density that does not grow with the norm *within its "
        "support*, so a law constant on an annulus, a square or half a disc is "
        "admitted; the alignment shrinks or turns actions out of it. The lemma proves "
        "only that norms do not grow, which keeps actions in the ball, not in the "
        "support. Term A, eq. (32), is then infinite. If “support” is read as the ball, "
        "the statement holds: then Assumption 1 is the corrected one."
    ),
    survives=(
        "Theorems 1 and 2 survive for densities that do not grow with the norm on the "
        "whole ball, and for truncated Gaussians. For other laws of Assumption 1 their "
        "proof breaks, and for a contrived policy both are false (theorem-1, "
        "theorem-2)."
    ),
    sides="steps whose action leaves the support; none may",
)
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
        regime = isotropic(dim=d, horizon=tau + 1, tasks=2, noise_sd=1.0, action_min=action_min)
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
    for where, actions, true, more in draws(level, "alignment-support"):
        gram, gap = actions.T @ actions, gap_of(true, more, where["sigma"])
        edge_of = float(np.linalg.norm(actions, axis=1).max())
        moved = actions @ symmetric_power(gram, -0.5) @ symmetric_power(gram - sign * gap, 0.5)
        points.append(at_most(where, float(np.linalg.norm(moved, axis=1).max()), edge_of, 1e-9))
    return points


@claim(
    id="alignment-support-corrected",
    proof="ours",
    corrects="alignment-support",
    statement="A_t^K lies in the support of f_A where that is the whole ball",
    mutations={
        "V + B": partial(alignment_support, laws=_ball_laws, sign=-1),
        "V + B, at random": partial(inside_the_ball, sign=-1),
    },
    remark="|A^K| <= |A| <= a.",
)
def alignment_support_corrected(level: Level) -> list[Point]:
    """The same for laws whose support is the ball: two of them, and actions at random."""
    return [*alignment_support(level, _ball_laws), *inside_the_ball(level)]


@claim(
    id="alignment-density",
    kind=Kind.INEQUALITY,
    section=Section.COVARIANCE_ALIGNMENT,
    where="second lemma on Term A, eq. (30), Appendix C.2.1",
    quote="∏_{t=1}^τ f̃_A(A_t) / f̃_A(A_t^K) ≤ 1",
    statement=(
        "the product of the ratios of unnormalised densities, f~(A_t) / f~(A_t^K), is at most 1"
    ),
    lines="1047-1100",
    mutations={"V + B on the ball": {"laws": _ball_laws, "sign": -1}},
    holds_at={"laws": _ball_laws},
    remark=(
        "The same fault as alignment-support: infinite where an action leaves the "
        "support. For laws that are not Gaussian the proof says only that the result "
        "“can be obtained directly”. With the ball for the support it holds; so does "
        "the case of a truncated Gaussian, with equality exp(-Tr(Sigma^-1 B)/2)."
    ),
    survives="As for alignment-support.",
    sides="the product of the ratios; its bound",
)
def alignment_density(
    level: Level, laws: Callable[[], dict[str, Law]] = _laws, sign: int = 1
) -> list[Point]:
    """The product over steps of f~(A_t) / f~(A_t^K) is at most 1: infinite where a step leaves the
    support of a law that is constant there; exp(-Tr(Sigma^-1 B) / 2) for a Gaussian one."""
    points = []
    for point in alignment_support(level, laws, sign):
        points.append(Point(point.where, math.inf if point.left else 1.0, 1.0))
    for where, actions, true, more in draws(level, "alignment-density"):
        d, gram = where["d"], actions.T @ actions
        gap = gap_of(true, more, where["sigma"])
        turn = symmetric_power(gram, -0.5) @ symmetric_power(gram - sign * gap, 0.5)
        moved = actions @ turn
        precision = np.diag(np.linspace(1, 3, d)) / where["a"] ** 2
        widest = float(np.linalg.norm(actions, axis=1).max())
        log = action_log_ratio(actions, moved, widest, np.linalg.inv(precision))
        points.append(at_most({**where, "law": "Gaussian, truncated"}, log, 0.0, 1e-9))
        shorter, norms = (float(np.linalg.norm(x, axis=1).sum()) for x in (moved, actions))
        falling = {**where, "law": "exp(-|A|/a) on the ball"}
        points.append(at_most(falling, (shorter - norms) / where["a"], 0.0, 1e-9))
        expected = -0.5 * float(np.trace(precision @ gap))
        points.append(equal({**where, "what": "exact value"}, abs(log / expected - 1), 1e-4))
    return points


@claim(
    id="alignment-density-corrected",
    proof="ours",
    corrects="alignment-density",
    statement=(
        "the same where f does not grow with the norm on the ball, or is a truncated Gaussian"
    ),
    mutations={"V + B": {"sign": -1}},
    remark="Factor by factor: |A^K| <= |A|; Gaussian: the exponent is -Tr(Sigma^-1 B)/2.",
)
def alignment_density_corrected(level: Level, sign: int = 1) -> list[Point]:
    """The same for laws whose support is the ball."""
    return alignment_density(level, _ball_laws, sign)
