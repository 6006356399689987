"""The alignment of means by noise, eqs. (35)-(45)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.claims.claim import Kind, Section, claim
from bayesmeta.claims.verdict import Level, Point, Where, at_most, equal
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.theory import alignment
from bayesmeta.theory.alignment import symmetric_power


def _learners(
    level: Level, name: str
) -> Iterator[tuple[Where, GaussianPrior, GaussianPrior, Array, Array, Array]]:
    """Prior in use, true prior, actions, noise and theta. B <= sigma^2 Sigma_*^-1 <= V/4 whatever
    the prior in use, so V - B is positive definite; and the priors are far enough apart for a
    dropped term to show."""
    rng = level.rng(name)
    for d in (1, 2, 5, 10):
        for case in range(level.pick(3, 15)):
            sigma = (1e-4, 0.3, 3.0)[case % 3]
            actions = rng.standard_normal((2 * d + 4, d))
            low = float(np.linalg.eigvalsh(actions.T @ actions)[0])
            half = rng.standard_normal((d, d))
            true = half @ half.T + 0.1 * np.eye(d)
            true *= 4 * sigma**2 / (low * float(np.linalg.eigvalsh(true)[0]))
            way = rng.standard_normal((d, 1 if case % 2 else d))
            more = 0.3 * true if case % 3 == 2 else (way @ way.T) * float(np.trace(true)) / d
            mean = rng.standard_normal(d) * sigma
            used = GaussianPrior(mean + sigma * rng.standard_normal(d), true + more)
            theta = mean + np.linalg.cholesky(true) @ rng.standard_normal(d)
            noise = sigma * rng.standard_normal(len(actions))
            where = {"d": d, "sigma": sigma, "case": case}
            yield where, used, GaussianPrior(mean, true), actions, noise, theta


@claim(
    id="alignment-mean",
    proof="the paper",
    kind=Kind.IDENTITY,
    section=Section.MEAN_ALIGNMENT,
    where="eqs. (35)-(36), Appendix C.2.1; eq. (40), Appendix C.2.2",
    quote="S^K(S) = S + σ²Σ_*⁻¹(μ̃ - μ_*) = G + (V^K + B)^{1/2} (V^K)^{-1/2} S",
    statement="mu-tilde and S^K(S^M) bring both learners to the same mean",
    lines="1276-1445",
    mutations={"B (theta - mu) dropped": {"dropped": True}},
)
def alignment_mean(level: Level, dropped: bool = False) -> list[Point]:
    """mu-tilde and S^K(S^M) make the means equal after tau steps."""
    points = []
    for where, used, true, actions, noise, theta in _learners(level, "alignment-mean"):
        sigma, gram = where["sigma"], actions.T @ actions
        moved = alignment.aligned_actions(actions, alignment.covariance_gap(used, true, sigma))
        other, s = moved.T @ moved, moved.T @ noise
        mine, _ = alignment.posterior_after(used, sigma, gram, actions.T @ noise, theta)
        tilde = alignment.aligned_mean(used, true, sigma, actions, noise, theta)
        between, _ = alignment.posterior_after(
            GaussianPrior(tilde, true.cov), sigma, other, s, theta
        )
        shifted = alignment.aligned_noise(used, true, sigma, other, s, theta)
        if dropped:
            shifted = shifted - alignment.covariance_gap(used, true, sigma) @ (theta - true.mean)
        theirs, _ = alignment.posterior_after(true, sigma, other, shifted, theta)
        scale = float(np.abs(mine).max()) + float(np.sqrt(np.linalg.norm(true.cov, 2)))
        off = max(float(np.abs(mine - between).max()), float(np.abs(mine - theirs).max())) / scale
        points.append(equal(where, off, 1e-6))
    return points


_CASES = ((1, 1, 1.0), (1, 1, 0.01), (1, 2, 1.0), (2, 4, 1.0), (2, 4, 3.0), (5, 9, 0.3))


_SQUARE = ((1, 1, 1.0), (2, 2, 1.0))  # d = tau and sigma = 1, where nothing is lost


@claim(
    id="noise-density",
    kind=Kind.IDENTITY,
    section=Section.MEAN_ALIGNMENT,
    where="eq. (43), Appendix C.2.2; again in eqs. (46) and (51)",
    quote="∫_{E_ξ} exp(-½‖S_τ‖²_{(V^K)⁻¹}) / √((2π)^τ det V^K) · R(…) dS_τ",
    statement="S given A has density exp(-|S|^2_{V^-1}/2) / sqrt((2 pi)^tau det V)",
    lines="1494, 1586, 1607, 1829-1851",
    mutations={"pi for 2 pi, where d = tau": {"cases": _SQUARE, "two": 1.0}},
    holds_at={"cases": _SQUARE},
    remark=(
        "The law is N(0, sigma^2 V) in d dimensions, as Appendix C.2.2 says above eq. "
        "(39): eq. (43) loses sigma^2 and takes tau for the dimension. The constants "
        "cancel between two such densities, the missing 1/sigma^2 in the exponent does "
        "not: see density-ratio and theorem-1."
    ),
    survives=(
        "The lost constants cancel in the ratio of two such densities; the lost "
        "1/sigma^2 does not. Theorem 1 survives, for laws of "
        "alignment-density-corrected, where sigma >= 1, and for all sigma with 5 "
        "ln(dT/delta) for c_xi^2."
    ),
    sides="difference of the logarithms of printed and true density at a point; rounding",
)
def noise_density(
    level: Level,
    cases: tuple[tuple[int, int, float], ...] = _CASES,
    two: float = 2.0,
) -> list[Point]:
    """The density written for S given the actions against that of N(0, sigma^2 V), the law of
    A' Xi: printed exp(-|S|^2/2) / sqrt((2 pi)^tau det V)."""
    rng = level.rng("noise-density")
    points = []
    for d, tau, sigma in cases:
        actions = rng.standard_normal((tau, d)) if tau > 1 else np.ones((1, 1))
        gram = actions.T @ actions
        s = actions.T @ (sigma * rng.standard_normal(tau)) if tau > 1 else np.zeros(1)
        square = float(s @ np.linalg.solve(gram, s))
        printed = -0.5 * (square + tau * math.log(two * math.pi))
        printed -= 0.5 * float(np.linalg.slogdet(gram)[1])
        law = alignment.noise_log_density(s, gram, sigma)
        where: Where = {"d": d, "tau": tau, "sigma": sigma}
        if tau == 1:
            where |= {"A": 1.0, "S": 0.0, "log density": law, "log density as printed": printed}
        points.append(equal(where, abs(printed - law), 1e-8))
    return points


@claim(
    id="noise-density-corrected",
    proof="ours",
    corrects="noise-density",
    kind=Kind.PROBABILITY,
    statement=(
        "S given A has density exp(-|S|^2_{V^-1}/(2 sigma^2)) / sqrt((2 pi sigma^2)^d det V)"
    ),
    lines="1494",
    mutations={"tau for d": {"power": "tau"}, "without sigma^2": {"scaled": False}},
)
def noise_density_corrected(level: Level, power: str = "d", scaled: bool = True) -> list[Point]:
    """A'Xi drawn from the model: how often it lies in boxes, against the integral of the density
    over them (midpoint rule), within what Hoeffding's inequality allows chance."""
    rng, trials = level.rng("noise-density-corrected"), level.pick(100_000, 1_000_000)
    allowed = math.sqrt(math.log(2 / level.size) / (2 * trials))
    points = []
    for d, tau, sigma in ((1, 1, 1e-2), (1, 4, 3.0), (2, 4, 0.3), (2, 5, 3.0)):
        actions = rng.standard_normal((tau, d))
        gram = actions.T @ actions
        drawn = sigma * rng.standard_normal((trials, tau)) @ actions
        scale = sigma * np.sqrt(np.diag(gram))
        for corner in (0.7, 2.0):  # of the box, in standard deviations
            inside = float((np.abs(drawn) <= corner * scale).all(axis=1).mean())
            side = corner * (2 * (np.arange(400) + 0.5) / 400 - 1)
            grid = np.stack(np.meshgrid(*[side] * d, indexing="ij"), axis=-1).reshape(-1, d) * scale
            square = np.einsum("ki,ki->k", grid, np.linalg.solve(gram, grid.T).T)
            variance = sigma**2 if scaled else 1.0
            log = -0.5 * (square / variance + float(np.linalg.slogdet(gram)[1]))
            log -= 0.5 * (tau if power == "tau" else d) * math.log(2 * math.pi * variance)
            integral = float(np.exp(log).sum() * np.prod(2 * corner * scale / 400))
            where = {"d": d, "tau": tau, "sigma": sigma, "box": corner, "draws": trials}
            points.append(equal(where, abs(inside - integral), allowed + 1e-4, simulated=True))
    return points


@claim(
    id="noise-jacobian",
    proof="the paper",
    kind=Kind.INEQUALITY,
    section=Section.MEAN_ALIGNMENT,
    where="eq. (45), Appendix C.2.2",
    quote="|det J_S| = (det(V^K + B) / det V^K)^{1/2} ≥ 1",
    statement="|det J_S| >= 1",
    lines="1570",
    mutations={"V^K - B": {"sign": -1}},
)
def noise_jacobian(level: Level, sign: int = 1) -> list[Point]:
    """|det J_S| = (det(V^K + B) / det V^K)^1/2 >= 1."""
    points = []
    for where, used, true, actions, _, _ in _learners(level, "noise-jacobian"):
        gap = alignment.covariance_gap(used, true, where["sigma"])
        gram = actions.T @ actions - gap  # V^K
        low = float(np.linalg.eigvalsh(gram)[0])
        near = gap * min(1.0, 0.5 * low / float(np.linalg.norm(gap, 2)))
        turn = symmetric_power(gram + sign * near, 0.5) @ symmetric_power(gram, -0.5)
        points.append(at_most(where, 1.0, float(np.exp(np.linalg.slogdet(turn)[1])), 1e-9))
    return points
