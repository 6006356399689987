"""The ratio of the densities of S and S^K, eqs. (47)-(50), at the edge of the events."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from bayesmeta.claims.claim import Kind, Section, claim
from bayesmeta.claims.edges import Edge, all_edges
from bayesmeta.claims.turned import turned_edges
from bayesmeta.claims.verdict import Level, Point, Where, at_most
from bayesmeta.theory import alignment


def _all(edge: Edge) -> bool:
    return True


def _one(edge: Edge) -> bool:
    return edge.sigma == 1


def _below_one(edge: Edge) -> bool:
    return edge.sigma == 0.9 and edge.cov == 0


def _right_covariance(edge: Edge) -> bool:
    return edge.cov == 0


@claim(
    id="shift-bound",
    kind=Kind.INEQUALITY,
    section=Section.MEAN_ALIGNMENT,
    where="eq. (48), Appendix C.2.2",
    quote="‖G‖²_{(V^K)⁻¹} ≤ 2 c_s δ (f_m + c_1 d f_s) / d",
    statement="|G|^2 in the norm of (V^K)^-1 is at most 2 c_s delta (f_m + c_1 d f_s) / d",
    lines="1670-1698",
    mutations={"0.5 for 2, where sigma = 0.9": {"factor": 0.5, "keep": _below_one}},
    holds_at={"keep": _below_one},
    remark=(
        "Two slips. Step (c) of eq. (48) loses sigma^2: 2 sigma^4 / (lambda_min^2 "
        "lambda_A d/2) is 2 sigma^2 c_s / d. And E_v bounds V, not V^K = V - B (see "
        "aligned-gram). A change of units shows it: the left side changes with the "
        "units of rewards, the right side does not."
    ),
    survives=(
        "density-ratio survives as printed for sigma >= 1, and with 5 ln(dT/delta) for "
        "c_xi^2 for all sigma. Theorem 1 survives, for laws of "
        "alignment-density-corrected, where sigma >= 1, and for all sigma with 5 "
        "ln(dT/delta) for c_xi^2."
    ),
    sides="|G|^2; its bound",
)
def shift_bound(
    level: Level,
    corrected: bool = False,
    factor: float = 2.0,
    keep: Callable[[Edge], bool] = _all,
) -> list[Point]:
    """|G|^2_{(V^K)^-1} <= 2 c_s delta (f_m + c_1 d f_s) / d; corrected: times sigma^2 kappa with
    kappa = 1 / (1 - c_s sqrt(f_s delta) / d)."""
    points = []
    for edge in filter(keep, all_edges(level, corrected)):
        left = edge.shift**2 / edge.aligned
        right = factor * edge.c_s * edge.total / edge.dim
        if corrected:
            right *= edge.sigma**2 / (1 - edge.c_s * edge.cov / edge.dim)
        point = at_most(edge.where, left, right, 1e-9)
        points.append(point._replace(label="" if edge.cov else "sigma^2"))
    return points


@claim(
    id="shift-bound-corrected",
    constant=("factor", 2.0),
    proof="ours",
    corrects="shift-bound",
    statement="the same times sigma^2 / (1 - c_s sqrt(f_s delta) / d)",
    mutations={"1.9 for 2": {"factor": 1.9}},
    remark="The printed steps with aligned-gram-corrected.",
)
def shift_bound_corrected(level: Level, factor: float = 2.0) -> list[Point]:
    """The same times sigma^2 kappa, alike in all directions, and turned."""
    points = shift_bound(level, corrected=True, factor=factor)
    for one in turned_edges(level):
        edge = one.edge
        right = factor * edge.c_s * edge.total / (edge.dim - edge.c_s * edge.cov)
        points.append(at_most(one.where, float(one.shift @ one.shift), right, 1e-9))
    return points


@claim(
    id="aligned-gram",
    kind=Kind.INEQUALITY,
    section=Section.MEAN_ALIGNMENT,
    where="step (c) of eq. (48) and step (d) of eq. (49), Appendix C.2.2",
    quote="2σ⁴/λ_min(V^K) ‖Σ̂⁻¹‖² (…) ≤ (2c_s/d) (…), where … (c) uses the event E_v",
    statement="lambda_min(V^K) >= lambda_A d / 2 where eqs. (48) and (49) use it",
    lines="1688-1760",
    mutations={"without its factor 1/2": {"whole": True, "keep": _right_covariance}},
    holds_at={"keep": _right_covariance},
    remark=(
        "E_v is about V = V^K + B. Step (a) of eq. (37) then drops E_v altogether, and "
        "over all V^K > 0 the ratio has no bound; E_v must be kept until the ratio is "
        "bounded."
    ),
    survives="density-ratio-corrected: the lost factor is at most 1.19, which its slack covers.",
    sides="-lambda_min(V^K); -lambda_A d / 2, so that lambda_min is the smaller",
)
def aligned_gram(
    level: Level,
    corrected: bool = False,
    share: float = 1.0,
    whole: bool = False,
    keep: Callable[[Edge], bool] = _all,
) -> list[Point]:
    """lambda_min(V^K) >= lambda_A d / 2, where it is used; corrected: times 1 - c_s sqrt(f_s
    delta) / d."""
    points = []
    for edge in filter(keep, all_edges(level, corrected)):
        bound = edge.action_min * edge.dim * (1.0 if whole else 0.5)
        if corrected:
            bound *= 1 - share * edge.c_s * edge.cov / edge.dim
        points.append(at_most(edge.where, -edge.aligned, -bound, 1e-9))
    return points


@claim(
    id="aligned-gram-corrected",
    constant=("share", 1.0),
    factor_of="c_s",
    proof="ours",
    corrects="aligned-gram",
    statement="lambda_min(V^K) >= (lambda_A d / 2)(1 - c_s sqrt(f_s delta) / d)",
    mutations={"half of c_s": {"share": 0.5}},
    remark="Weyl, with |B| <= sigma^2 sqrt(f_s delta) / lambda_min^2.",
)
def aligned_gram_corrected(level: Level, share: float = 1.0) -> list[Point]:
    """The same times 1 - c_s sqrt(f_s delta) / d, alike in all directions, and turned."""
    points = aligned_gram(level, corrected=True, share=share)
    for one in turned_edges(level):
        edge = one.edge
        bound = edge.action_min * edge.dim / 2 * (1 - share * edge.c_s * edge.cov / edge.dim)
        points.append(at_most(one.where, -one.least, -bound, 1e-9))
    return points


def largest_log_ratio(edge: Edge) -> float:
    """The largest log p(S) - log p(S^K) within E_xi under the law of the model, N(0, sigma^2 V)."""
    g = edge.shift / (edge.sigma * math.sqrt(edge.aligned))
    turn = math.sqrt(1 + edge.gap / edge.aligned)
    far = math.sqrt(5 * edge.dim * edge.log)
    way = np.full(edge.dim, edge.sigma * math.sqrt(edge.aligned / edge.dim))  # of norm sigma
    gram = edge.aligned * np.eye(edge.dim)
    return alignment.noise_log_ratio(far * way, (g + turn * far) * way, gram, edge.sigma)


def _density_point(where: Where, left: float, right: float) -> Point:
    most = math.log1p(right)
    return Point(where, left, most + 1e-9 * max(left, most), logs=True)


@claim(
    id="density-ratio",
    kind=Kind.INEQUALITY,
    section=Section.MEAN_ALIGNMENT,
    where="eq. (50), Appendix C.2.2",
    quote=(
        "max_{E_ξ} {exp(-½‖S‖²) / exp(-½‖S^K(S)‖²)} ≤ 1 + 6√(c_ξ² c_s) √(f_m δ) + "
        "6(√(c_ξ² c_s c_1 d) + c_ξ² c_s) √(f_s δ)"
    ),
    statement=(
        "the ratio of the densities of S and S^K is at most 1 + 6 sqrt(c_xi^2 c_s) "
        "sqrt(f_m delta) + 6 (sqrt(c_xi^2 c_s c_1 d) + c_xi^2 c_s) sqrt(f_s delta)"
    ),
    lines="1582-1810",
    mutations={"0.5 for 6, where sigma = 1": {"six": 0.5, "keep": _one}},
    holds_at={"keep": _one},
    remark=(
        "Under the law the model implies, the exponent has 1 / sigma^2, which eq. (43) "
        "loses. So the claim fails for small sigma, from about 0.6 down (in the form "
        "eq. (52) uses, from about 0.97 down); for sigma >= 1 it follows from the "
        "corrected one."
    ),
    survives=(
        "Theorem 1 survives, for laws of alignment-density-corrected, where sigma >= "
        "1, and for all sigma with 5 ln(dT/delta) for c_xi^2."
    ),
    sides="the largest ratio; its bound",
)
def density_ratio(
    level: Level, six: float = 6.0, keep: Callable[[Edge], bool] = _all
) -> list[Point]:
    """The ratio is at most 1 + 6 sqrt(c_xi^2 c_s) sqrt(f_m delta) + 6 (sqrt(c_xi^2 c_s c_1 d) +
    c_xi^2 c_s) sqrt(f_s delta), eq. (50); eq. (52) uses it with c_xi^2 c_s for 6 c_xi^2 c_s."""
    points = []
    for edge in filter(keep, all_edges(level)):
        c2 = edge.c_xi() ** 2 * edge.c_s
        root = math.sqrt(c2 * edge.c_1 * edge.dim)
        right = six * math.sqrt(c2) * edge.mean + six * (root + c2) * edge.cov
        points.append(_density_point(edge.where, largest_log_ratio(edge), right))
    return points


@claim(
    id="density-ratio-corrected",
    constant=("six", 6.0),
    proof="ours",
    corrects="density-ratio",
    statement=(
        "the ratio is at most 1 + 6 sqrt(c^2 c_s delta (f_m + c_1 d f_s)) + c^2 c_s "
        "sqrt(f_s delta), c^2 = 5 ln(dT/delta) for c_xi^2, in M as well, where V >= "
        "lambda_A d / 2"
    ),
    mutations={"0.9 for 6": {"six": 0.9}},
    remark=(
        "With c^2 = 5 ln(dT/delta), u = c sqrt(c_s (f_m + c_1 d f_s) delta) and v = "
        "c^2 c_s sqrt(f_s delta) / 2, delta <= 1/M says 18 u^2 + 2 v^2 <= 1. Since c^2 "
        ">= 5 ln 6, kappa = 1 / (1 - c_s sqrt(f_s delta) / d) <= 1.1875, and the "
        "exponent is at most kappa (c_s (…) / d + sqrt(2) u + v) <= 1.711 u + 1.1875 "
        "v. exp of that less 1 + 6u + 2v is convex, and not positive at the corners of "
        "u <= 1/sqrt(18), v <= 1/sqrt(2)."
    ),
)
def density_ratio_corrected(level: Level, six: float = 6.0) -> list[Point]:
    """Step (c), from which both follow, with c_xi without its sigma, in M as well: at most 1 +
    6 sqrt(c_xi^2 c_s delta (f_m + c_1 d f_s)) + c_xi^2 c_s sqrt(f_s delta); alike in all
    directions, and turned."""
    points = []
    found = [(edge, edge.where, largest_log_ratio(edge)) for edge in all_edges(level, True)]
    found += [(one.edge, one.where, one.log_ratio) for one in turned_edges(level)]
    for edge, where, log_ratio in found:
        c = edge.c_xi(corrected=True)
        right = six * c * math.sqrt(edge.c_s * edge.total) + c**2 * edge.c_s * edge.cov
        points.append(_density_point(where, log_ratio, right))
    return points
