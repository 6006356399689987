"""The errors of least squares in a task, eq. (9): mean and covariance."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import chi2, norm

from bayesmeta.claims.claim import Kind, Section, claim
from bayesmeta.claims.poles import finite_inverse
from bayesmeta.claims.verdict import Level, Point, equal

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
            raw *= rng.random((replications, steps, 1)) ** (1 / d) / np.linalg.norm(
                raw, axis=2, keepdims=True
            )
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
        gap = float(np.abs(z.mean(axis=0)).max())
        points.append(equal(where, gap, allowed, simulated=True))
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
        points.append(equal({**where, "what": "covariance"}, gap, allowed, simulated=True))
    return points


@claim(
    id="ols-unbiased",
    proof="the paper",
    kind=Kind.EXPECTATION,
    section=Section.LEAST_SQUARES,
    where="lemma “Unbiasedness of the inner instance error”, Appendix D.2",
    quote="Under the event E_v(MQB_τ), … E[ρ_j] = E[θ̂_j - θ_j] = 0",
    statement="E[rho] = 0 under E_v",
    lines="2746",
    mutations={"actions that saw the noise": {"peeking": True}},
    remark="Given the actions, rho is N(0, sigma^2 V^-1) exactly.",
)
def ols_unbiased(level: Level, peeking: bool = False) -> list[Point]:
    """E[rho] = 0 given the actions."""
    return _centred(level, _least_squares(level, "ols-unbiased", peeking=peeking))


@claim(
    id="ols-covariance",
    proof="the paper",
    kind=Kind.EXPECTATION,
    section=Section.LEAST_SQUARES,
    where="lemma “Lack of bias of the covariance estimator - auxiliary”, Appendix D.3.2",
    quote="E[ρ_j ρ_jᵀ] = σ² E[V_{j,τ}⁻¹]",
    statement="E[rho rho'] = sigma^2 E[V^-1]",
    lines="2988",
    mutations={"a ridge": {"ridge": 0.5}},
    remark=(
        "True given the actions, or given E_v; the lemma names neither (see "
        "ols-covariance-literal)."
    ),
)
def ols_covariance(level: Level, ridge: float = 0.0) -> list[Point]:
    """E[rho rho'] = sigma^2 V^-1 given the actions."""
    return _white(level, _least_squares(level, "ols-covariance", ridge))


@claim(
    id="ols-covariance-literal",
    reading_of="ols-covariance",
    statement="the same without an event, as it stands: E[V^-1] is a number",
    mutations={"two actions": {"pole": False, "steps": 2}},
    holds_at={"pole": False},
    remark=(
        "Under a law of Assumption 1 with a pole at 0 E[V^-1] is infinite for every "
        "tau (as is the left side, in one dimension; in more its entries do not exist)."
    ),
    survives="Everything: it is used given E_v, where V^-1 is bounded, or given the actions.",
    sides="ln E[V^-1], at least; that of the largest number in double precision",
)
def ols_covariance_literal(
    level: Level, pole: bool = True, steps: int | None = None
) -> list[Point]:
    """Whether both sides are numbers."""
    return finite_inverse(level, pole, steps)


def _stopped(level: Level, peeking: bool = False) -> Errors:
    """Standardised errors where exploration stops as soon as lambda_min(V / sigma^2) >= 0.03;
    ``peeking`` also stops, after d steps, where the estimate is larger than the truth by a standard
    deviation."""
    rng = level.rng("ols-stopping")
    found: Errors = []
    times = level.pick(3000, 25_000)
    for d, radius, sigma in level.pick(
        ((5, 0.25, 1.0),), ((1, 0.25, 1.0), (2, 1.0, 3.0), (5, 0.25, 1.0))
    ):
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


@claim(
    id="ols-stopping",
    proof="ours",
    kind=Kind.EXPECTATION,
    section=Section.LEAST_SQUARES,
    where="Experiments, the rule for τ",
    quote=(
        "τ was adjusted to be the first time in each instance in which λ_min(V_{j,t}/σ²) ≥ 0.03"
    ),
    statement="the same where tau is the first time that lambda_min(V/sigma^2) >= 0.03",
    lines="581-602",
    mutations={"stops where the estimate is high": {"peeking": True}},
    remark=(
        "tau depends on the actions alone, which do not depend on the noise; and V at "
        "tau is bounded below, so all moments exist. The rule changes with the units "
        "of actions."
    ),
)
def ols_stopping(level: Level, peeking: bool = False) -> list[Point]:
    """Mean and covariance of the errors where exploration stops by the rule of the experiment."""
    errors = _stopped(level, peeking)
    return [*_centred(level, errors), *_white(level, errors)]
