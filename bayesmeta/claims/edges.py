"""The edge of all events of Theorem 1, where its constants are decided."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product

from bayesmeta.claims.regimes import isotropic
from bayesmeta.claims.verdict import Level, Where
from bayesmeta.theory import constants as c
from bayesmeta.theory.regime import Regime


@dataclass(frozen=True)
class Edge:
    """The edge of all events, alike in all directions: Sigma_* = ``low`` I, V = (lambda_A d/2) I,
    Sigma-hat - Sigma_* = ``cov`` I = sqrt(f_s delta) I, |mu-hat - mu_*| = ``mean`` = sqrt(f_m
    delta), in the direction of a corner of E_theta, where theta is, and S in that direction, too.
    """

    dim: int
    sigma: float
    low: float
    action_min: float
    tau: int
    horizon: int
    delta: float
    mean: float
    cov: float

    @property
    def where(self) -> Where:
        return {
            "d": self.dim,
            "sigma": self.sigma,
            "Sigma_*": self.low,
            "lambda_A": self.action_min,
            "tau": self.tau,
            "T": self.horizon,
            "delta": self.delta,
            "mean deviation": self.mean,
            "covariance deviation": self.cov,
        }

    @cached_property
    def regime(self) -> Regime:
        return isotropic(
            dim=self.dim,
            horizon=self.horizon,
            tasks=2,
            noise_sd=self.sigma,
            action_min=self.action_min,
            prior=self.low,
        )

    @property
    def c_s(self) -> float:
        return c.c_s(self.regime)

    @property
    def log(self) -> float:
        """ln(dT / delta), of c_xi."""
        return math.log(self.dim * self.horizon / self.delta)

    @property
    def corner(self) -> float:
        """ln(d^2 T / delta), of E_theta."""
        return self.log + math.log(self.dim)

    @property
    def c_1(self) -> float:
        return c.c_1(self.regime, self.delta)

    @property
    def total(self) -> float:
        """f_m delta + c_1 d f_s delta."""
        return self.mean**2 + self.c_1 * self.dim * self.cov**2

    def c_xi(self, corrected: bool = False) -> float:
        """As printed, or without sigma, which makes M and k_1 free of units."""
        return c.c_xi(self.regime, self.delta, corrected)

    def delta_m(self, corrected: bool = False) -> float:
        """delta M: at most 1 where Theorem 1 applies."""
        fm, fs = self.mean**2 / self.delta, self.cov**2 / self.delta
        return self.delta * c.largest_m(self.regime, self.tau, fm, fs, self.delta, corrected)

    @property
    def gap(self) -> float:
        return self.sigma**2 * self.cov / (self.low * (self.low + self.cov))

    @property
    def aligned(self) -> float:
        """V^K = V - B, a multiple of I."""
        return self.action_min * self.dim / 2 - self.gap

    @property
    def shift(self) -> float:
        """|G|, with theta in the corner of E_theta that makes it large."""
        far = math.sqrt(2 * self.dim * self.corner)
        return self.sigma**2 / (self.low + self.cov) * self.mean + self.gap * far * math.sqrt(
            self.low
        )


def all_edges(level: Level, corrected: bool = False) -> list[Edge]:
    """All edges, the simple ones first, each as far from the truth as delta <= 1/M allows."""
    return _edges(level.quick, corrected)


@cache
def _edges(quick: bool, corrected: bool) -> list[Edge]:
    found = []
    sigmas = (1.0, 0.1, 3.0, 0.9, 0.5, 0.05, 1e-2, 1e-4)
    lows = (1.0, 1e-3) if quick else (1.0, 1e-1, 1e-3, 1e-5)
    shares = (0.0, 0.7) if quick else (0.0, 0.3, 0.7, 0.95)
    deltas = (1 / 3,) if quick else (1 / 3, 1e-3)
    for d in (1, 2, 5, 10):
        times = ((8, 10), (1, 2), (2, 3)) if d == 1 else ((d, d + 1), (8 * d, 8 * d + 2))
        for sigma, low, (tau, horizon), share, delta in product(
            sigmas, lows, times, shares, deltas
        ):
            blank = Edge(d, sigma, low, 1 / (d + 2), tau, horizon, delta, 0.0, 0.0)
            edge = _at_the_edge(blank, share, corrected)
            if edge is not None:
                found.append(edge)
    return found


def _at_the_edge(blank: Edge, share: float, corrected: bool) -> Edge | None:
    """Deviations of covariance (``share`` of what is allowed alone) and mean with delta M = 1."""

    def with_(mean: float, cov: float) -> Edge:
        return replace(blank, mean=mean, cov=cov)

    def allowed(edge: Edge) -> bool:
        return edge.delta_m(corrected) <= 1 + 1e-12

    if not allowed(with_(0.0, 0.0)):
        return None
    cov = share * largest(lambda s: allowed(with_(0.0, s)), blank.low) if share else 0.0
    mean = largest(lambda m: allowed(with_(m, cov)), blank.sigma)
    edge = with_(mean * (1 - 1e-9), cov)
    return edge if edge.aligned > 0 else None


def largest(holds: Callable[[float], bool], top: float) -> float:
    """The largest number for which ``holds`` is true; it must be true below it, false above it."""
    while holds(top):
        top *= 10
    low, high = 0.0, top
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
