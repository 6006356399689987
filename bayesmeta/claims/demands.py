"""What Theorem 1 makes of the bounds: k_1, eq. (52), and the demands on delta, eq. (53)."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import product

from bayesmeta.claims.claim import Kind, Section, claim
from bayesmeta.claims.edges import Edge, all_edges, largest
from bayesmeta.claims.regimes import isotropic
from bayesmeta.claims.turned import turned_edges
from bayesmeta.claims.verdict import Level, Point, at_most
from bayesmeta.theory.constants import largest_m, linear_in_log, m_tilde, m_tilde_of


@claim(
    id="good-event-product",
    constant=("twelve", 12.0),
    proof="the paper",
    kind=Kind.INEQUALITY,
    section=Section.MEAN_ALIGNMENT,
    where="eq. (52), Appendix C.2.2",
    quote=(
        "(1 + c_s τ √(f_s δ)) [(1 + …) E[R] + c_bad δ/(11√d)] ≤ (1 + k_1) E[R] + 2 c_bad δ/(11√d)"
    ),
    statement="(1 + c_s tau sqrt(f_s delta)) (1 + …) <= 1 + k_1, and the constants add to c_bad",
    lines="1874-1905",
    mutations={"11 for 12": {"twelve": 11.0}, "10 for 11 under c_bad": {"eleven": 10.0}},
    remark=(
        "k_1 = p + 2q and pq <= q; tight at p = 1. The 6 c_xi^2 c_s in the last line "
        "of eq. (50) is a misprint for c_xi^2 c_s."
    ),
)
def good_event_product(level: Level, twelve: float = 12.0, eleven: float = 11.0) -> list[Point]:
    """(1 + p)(1 + q) <= 1 + k_1, with p = c_s tau sqrt(f_s delta) <= 1; and 2/11 + 9/11 = 1."""
    points = []
    for edge in all_edges(level):
        c2 = edge.c_xi() ** 2 * edge.c_s
        p = edge.c_s * edge.tau * edge.cov
        root = math.sqrt(c2 * edge.c_1 * edge.dim)
        q = 6 * math.sqrt(c2) * edge.mean + (6 * root + c2) * edge.cov
        k_1 = twelve * math.sqrt(c2) * edge.mean
        k_1 += (edge.c_s * edge.tau + twelve * root + 2 * c2) * edge.cov
        points.append(at_most(edge.where, p + q + p * q, k_1, 1e-9))
    for p in (0.0, 0.5, 1.0):
        points.append(at_most({"p": p}, (1 + p) / eleven + 9 / 11, 1.0))
    p, q = 1.0, 0.3  # tight at p = 1
    points.append(at_most({"p": p, "q": q}, p + q + p * q, p + 2 * q * twelve / 12))
    return points


def delta_demands(level: Level, corrected: bool = False, three: float = 3.0) -> list[Point]:
    """(iii) and (iv) for delta <= 1/M; (iii) follows from (iv)."""
    points = []
    for edge in all_edges(level, corrected):
        c, c_s = edge.c_xi(corrected), edge.c_s
        inner = c * math.sqrt(c_s * edge.total)
        four = three * inner + c**2 * c_s * edge.cov / 2
        points.append(at_most({**edge.where, "demand": "iv"}, four, 1.0, 1e-6))
        left = math.sqrt(c_s * edge.total)
        points.append(at_most({**edge.where, "demand": "iii"}, left, c * edge.dim, 1e-9))
    return points


def explored_demands(level: Level, corrected: bool = False, share: float = 1.0) -> list[Point]:
    """(i) and (ii) as they are used, of matrices at the edge that do not commute: V > B, and d tau
    |V^-1/2 B V^-1/2| <= 1, which makes the Jacobian's factor at most 1 + c_s tau sqrt(f_s delta);
    with ``share`` of E_v."""
    points = []
    for one in turned_edges(level, corrected):
        left = one.explored / share
        points.append(at_most({**one.where, "demand": "i"}, left, 1.0, 1e-9))
        steps = one.edge.dim * one.edge.tau
        points.append(at_most({**one.where, "demand": "ii"}, steps * left, 1.0, 1e-9))
    return points


def demand_four(level: Level, share: float = 1.0) -> list[Point]:
    """(iv) at the edge of ``share`` of M, where it is tight: c_xi^2 c_s sqrt(f_s delta) = 1, which
    leaves c_xi sqrt(c_s (f_m + c_1 d f_s) delta) = 1/6 to the mean."""
    points = []
    for low in (0.1, 1e-2, 1e-3):
        edge = _tight(low, share)
        c, c_s = edge.c_xi(), edge.c_s
        four = 3 * c * math.sqrt(c_s * edge.total) + c**2 * c_s * edge.cov / 2
        points.append(at_most({**edge.where, "demand": "iv, tight"}, four, 1.0, 1e-9))
    return points


def _tight(low: float, share: float) -> Edge:
    """The edge of ``demand_four``, one dimension and sigma = 1."""
    blank = Edge(1, 1.0, low, 1 / 3, 1, 2, 0.3, 0.0, 0.0)
    wide = replace(blank, cov=1 / (math.sqrt(share) * blank.c_xi() ** 2 * blank.c_s))
    mean = largest(lambda m: share * replace(wide, mean=m).delta_m() <= 1, low)
    return replace(wide, mean=mean)


@claim(
    id="delta-demands",
    kind=Kind.INEQUALITY,
    section=Section.MEAN_ALIGNMENT,
    where="eq. (53) and the text below it, Appendix C.3",
    quote=(
        "inequalities (i), (iii) … are directly implied by inequalities (ii), (iv) respectively"
    ),
    statement="(i)-(iv) follow from delta <= 1/M, and (iii) from (iv)",
    lines="1906-1965",
    mutations={"half of M": partial(demand_four, share=0.5)},
    holds_at=demand_four,
    remark=(
        "(iv) holds, tightly. (iii) fails for small sigma: (iv) gives sqrt(c_s (…)) <= "
        "1 / (3 c_xi), which is at most c_xi d only if 3 d c_xi^2 >= 1. (ii) holds as "
        "<=, not as < as printed, at delta = 1/M; so does (i) for d = tau = 1."
    ),
    survives=(
        "Theorem 1 with 5 ln(dT/delta) for c_xi^2, where (iii) holds, for laws of "
        "alignment-density-corrected."
    ),
    sides="sqrt(c_s (f_m + c_1 d f_s) delta); c_xi d, demand (iii)",
)
def all_demands(level: Level) -> list[Point]:
    """(iv) where it is tight, and all four at the edge of the events."""
    return [*demand_four(level), *delta_demands(level), *explored_demands(level)]


@claim(
    id="delta-demands-corrected",
    proof="ours",
    corrects="delta-demands",
    statement=(
        "(i)-(iv), (i) and (ii) with <=, follow from delta <= 1/M with 5 ln(dT/delta) for c_xi^2"
    ),
    mutations={
        "half of M": partial(demand_four, share=0.5),
        "5 for 3 in (iv)": partial(delta_demands, corrected=True, three=5.0),
        "sigma in c_xi": delta_demands,
        "half of E_v": partial(explored_demands, corrected=True, share=0.5),
    },
    remark="(iii) from (iv): 3 d c^2 >= 15 ln 3 > 1.",
)
def all_demands_corrected(level: Level) -> list[Point]:
    """The same with c_xi without its sigma."""
    return [
        *demand_four(level),
        *delta_demands(level, corrected=True),
        *explored_demands(level, corrected=True),
    ]


@claim(
    id="log-bound",
    constant=("two", 2.0),
    proof="Shalev-Shwartz and Ben-David (2014)",
    kind=Kind.INEQUALITY,
    section=Section.MEAN_ALIGNMENT,
    where="lemma “Log bound”, Appendix F",
    quote="x ≥ 4a₁ ln(2a₁) + 2b₁ ⇒ x ≥ a₁ ln(x) + b₁",
    statement="x >= 4 a ln(2a) + 2b implies x >= a ln x + b",
    lines="3617",
    mutations={"0.5 b for 2b": {"two": 0.5}},
)
def log_bound(level: Level, two: float = 2.0) -> list[Point]:
    """x >= 4 a ln(2a) + 2b implies x >= a ln x + b, for a >= 1 and b > 0."""
    points = []
    for a in (1.0, 1.5, 10.0, 1e4, 1e8):
        for b in (1e-12, 1.0, 1e4, 1e8):
            for stretch in level.pick((1.0, 2.0), (1.0, 1.01, 2.0, 10.0, 1e6)):
                x = stretch * (4 * a * math.log(2 * a) + two * b)
                points.append(at_most({"a": a, "b": b, "x": x}, a * math.log(x) + b, x))
    return points


@claim(
    id="m-tilde",
    proof="the paper",
    kind=Kind.INEQUALITY,
    section=Section.MEAN_ALIGNMENT,
    where="definition of M̃, end of Appendix C.3",
    quote="for δ ≤ 1/M̃, it follows that δ ≤ 1/(a lnᵖ(1/δ) + b) ≤ 1/M(δ)",
    statement="delta <= 1 / M-tilde implies delta <= 1 / M(delta)",
    lines="1966-1985",
    mutations={"not raised to p": {"raised": False}},
    remark=(
        "The note below eq. (21), that M-tilde >= M, is false as delta goes to 0 (M "
        "grows without bound); only the implication is used."
    ),
)
def m_tilde_suffices(level: Level, raised: bool = True) -> list[Point]:
    """delta <= 1 / M-tilde implies delta (a ln^p(1/delta) + b) <= 1; and so for M(delta) itself."""
    points = []
    for p in (1, 2, 3):
        for a in (p**-p, 1.0, 50.0, 1e6):
            for b in (1e-3, 1.0, 1e3, 1e6):
                for less in level.pick((1.0, 1e3), (1.0, 1.5, 10.0, 1e3, 1e10)):
                    bound = m_tilde(a, b, p)
                    delta = 1 / ((bound if raised else bound ** (1 / p)) * less)
                    left = delta * (a * math.log(1 / delta) ** p + b) if delta < 1 else math.inf
                    points.append(at_most({"p": p, "a": a, "b": b, "delta": delta}, left, 1.0))
    for d, sigma, low in product((1, 2, 5, 10), (1e-4, 1.0, 3.0), (1e-3, 1.0)):
        regime = isotropic(dim=d, horizon=1000, tasks=2, noise_sd=sigma, prior=low, mean_norm=1.0)
        delta = 1 / m_tilde_of(regime)
        log = math.log(1 / delta)
        tau, fm, fs = (one[0] + one[1] * log for one in linear_in_log(regime))
        left = delta * largest_m(regime, tau, fm, fs, delta)
        where = {"d": d, "sigma": sigma, "Sigma_*": low, "of": "M(delta)", "delta": delta}
        points.append(at_most(where, left, 1.0))
    return points
