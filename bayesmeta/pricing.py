"""Dynamic pricing: demand is observed, price times demand is earned (after Bastani et al. 2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from bayesmeta.checks import Array, InputError, array, real, whole
from bayesmeta.environment import Bounds, TaskFamily
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.units import check_size

REACH = 3.0
"""Standard deviations of a drawn mu_* that the told bound on its norm allows for."""
CUSTOMERS = 10_000
"""Drawn to say how many have a demand that rises with the price."""


@dataclass(frozen=True)
class Prices:
    """Prices for a customer: action features (x; p x), where demand is <alpha, x> + p <beta, x>.

    A customer's x is (1, u) with u uniform in [-1, 1]^(features - 1), drawn anew at each step;
    theta is (alpha; beta). An action earns its price times its reward, which is the demand.

    Parameters
    ----------
    features
        Entries of x; theta has twice as many.
    lowest, highest
        The range of prices, both greater than 0.
    count
        Prices on offer, evenly spaced.

    Examples
    --------
    >>> bm.Prices(features=1, lowest=1.0, highest=2.0, count=3).payoffs
    array([1. , 1.5, 2. ])
    """

    features: int
    lowest: float
    highest: float
    count: int

    def __post_init__(self) -> None:
        whole("features", self.features, least=1)
        whole("count", self.count, least=2)
        for name in ("lowest", "highest"):
            value = check_size(name, real(name, getattr(self, name), above=0.0))
            object.__setattr__(self, name, value)
        if not self.lowest < self.highest:
            raise InputError(
                f"the range of prices is empty: lowest is {self.lowest:g}, highest "
                f"{self.highest:g}; give a lowest price below the highest"
            )

    @property
    def dim(self) -> int:
        return 2 * self.features

    @property
    def radius(self) -> float:
        """A bound on |(x; p x)|, reached where every entry of x is 1 or -1."""
        return float(np.sqrt(self.features * (1 + self.highest**2)))

    @property
    def payoffs(self) -> Array:
        """The prices: what a unit of demand earns."""
        return np.linspace(self.lowest, self.highest, self.count)

    def second_moment(self) -> Array:
        price = self.payoffs
        of_price = [[1.0, price.mean()], [price.mean(), (price**2).mean()]]
        of_features = np.diag([1.0] + [1 / 3] * (self.features - 1))
        return np.kron(np.array(of_price, dtype=float), of_features)

    def customers(self, rng: np.random.Generator, size: int) -> Array:
        """Their x, (size, features)."""
        return np.column_stack([np.ones(size), rng.uniform(-1, 1, (size, self.features - 1))])

    def draw(self, rng: np.random.Generator, horizon: int) -> Array:
        x = self.customers(rng, horizon)[:, :, None]
        return np.concatenate([np.broadcast_to(x, (*x.shape[:2], self.count)), x * self.payoffs], 1)

    def violation(self) -> str:
        return "actions are a customer's features times prices, not drawn from a density on a ball"

    def upward(self, prior: GaussianPrior) -> float:
        """The share of customers, over tasks and x, whose demand rises with the price."""
        x = self.customers(np.random.default_rng(0), CUSTOMERS)
        half = slice(self.features, None)
        variance = np.einsum("ni,ij,nj->n", x, prior.cov[half, half], x).clip(min=0.0)
        slope = x @ prior.mean[half]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = norm.cdf(slope / np.sqrt(variance))
        return float(np.where(variance > 0, share, slope >= 0).mean())

    def note(self, prior: GaussianPrior) -> str | None:
        """Says where the Gaussian prior is wrong as a model of demand; None where hardly ever."""
        share = self.upward(prior)
        if share < 1e-6:
            return None
        return (
            f"demand rises with the price for {100 * share:.2g}% of customers under this prior, "
            "where a Gaussian model of demand is wrong"
        )


def pricing_family(
    features: int = 2,
    hyper_sd: float | None = None,
    prior_sd: float = 0.2,
    noise_sd: float = 0.3,
    horizon: int = 200,
    *,
    lowest: float = 0.5,
    highest: float = 3.0,
    prices: int = 20,
    mean: ArrayLike | None = None,
) -> TaskFamily:
    """Dynamic pricing after Bastani et al. 2022: a task is a product, a step a customer.

    Demand <alpha, x> + p <beta, x> + noise is observed, p times it is earned, and regret is in what
    is earned. theta = (alpha; beta) ~ N(mu_*, s_0^2 I). Numbers are ours, theirs not being at hand.
    The bound on Sigma that agents are told is |mu_*|^2 / d + s_0^2, so that N(0, bound I), which
    agents start from that know nothing, reaches theta.

    Parameters
    ----------
    features : int
        Entries of a customer's x, half the dimension.
    hyper_sd : float, optional
        s_q: mu_* is drawn from N(mean, s_q^2 I) anew for every run, and agents are told so.
    prior_sd, noise_sd : float
        s_0 and sigma.
    horizon : int
        T, the customers of a product.
    lowest, highest : float
        The range of prices.
    prices : int
        Prices on offer (K).
    mean : array_like, optional
        mu_*; alpha = (1.5, 0.3, 0, ...) and beta = (-0.5, -0.1, 0, ...) where None.

    Returns
    -------
    TaskFamily

    Examples
    --------
    >>> family = bm.pricing_family()
    >>> record = bm.simulate(family, ["Meta-DP_price", "KTS_price"], tasks=3)
    >>> record.attrs["notes"][:49]
    'demand rises with the price for 1.9% of customers'
    """
    offered = Prices(features, lowest, highest, prices)
    d = offered.dim
    if mean is None:
        centre = np.zeros(d)
        centre[:features] = np.array([1.5, 0.3] + [0.0] * features)[:features]
        centre[features:] = np.array([-0.5, -0.1] + [0.0] * features)[:features]
    else:
        centre = array("mean", mean, (d,))
    variance = real("prior_sd", prior_sd, least=0.0) ** 2
    hyper, spread = None, 0.0
    if hyper_sd is not None:
        spread = real("hyper_sd", hyper_sd, least=0.0) ** 2
        hyper = GaussianPrior(centre, spread * np.eye(d))
    length = float(np.linalg.norm(centre)) + REACH * math.sqrt(d * spread)
    bounds = Bounds(
        radius=offered.radius,
        action_min=float(np.linalg.eigvalsh(offered.second_moment())[0]),
        prior_min=variance,
        prior_max=length**2 / d + variance,
        mean_norm=length,
    )
    return TaskFamily(
        GaussianPrior(centre, variance * np.eye(d)),
        offered,
        noise_sd,
        horizon,
        bounds,
        hyper=hyper,
        redraw=hyper is not None,
    )
