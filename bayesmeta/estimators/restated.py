"""Statistics of tasks in units that estimators can compute with, and estimates put back."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesmeta.checks import Array, InputError
from bayesmeta.estimators.estimate import PriorEstimate
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.statistics import TaskStatistics
from bayesmeta.units import comfortable, exponent, outer

SMALLEST = 1e-290
"""Of variances: with smaller ones covariances begin to lose digits."""


class FeatureUnits(NamedTuple):
    """Powers of two: the unit of rewards, and that of each feature."""

    reward: int
    features: NDArray[np.int64]

    @classmethod
    def of(cls, *parts: TaskStatistics, variance: float | None = None) -> FeatureUnits | None:
        """Units in which rewards, noise and features of these tasks are near 1; None where they
        can be computed with as they are."""
        sizes = [sizes_of(part) for part in parts]
        lengths = np.max([size[1] for size in sizes], axis=0)
        noise = 0.0 if variance is None else math.sqrt(variance)
        reward = max(size[0] for size in sizes)
        if comfortable(noise, reward, *lengths.tolist()):
            return None
        powers = np.array([exponent(length) for length in lengths.tolist()])
        return cls(exponent(max(noise, reward)), powers)

    @property
    def theta(self) -> NDArray[np.int64]:
        """Of the parameters: reward per feature."""
        return self.reward - self.features

    def inside(self, stats: TaskStatistics) -> TaskStatistics:
        """The same tasks in these units, with their labels."""
        energy = stats.energy
        made = TaskStatistics.trusted(
            np.ldexp(stats.gram, -outer(self.features)),
            np.ldexp(stats.moment, -(self.features + self.reward)),
            stats.count,
            None if energy is None else np.ldexp(energy, -2 * self.reward),
            varying=stats.varying,
            log_weights=stats.log_weights,
        )
        made.__dict__.update(tasks=stats.tasks, features=stats.features)
        return made

    def variance(self, variance: float | None) -> float | None:
        """That of the noise."""
        return None if variance is None else math.ldexp(variance, -2 * self.reward)

    def mean(self, mean: Array) -> Array:
        """That of a prior."""
        return np.ldexp(mean, -self.theta)

    def cov(self, cov: ArrayLike) -> Array:
        """That of a prior."""
        out: Array = np.ldexp(cov, -outer(self.theta))
        return out

    def outside(
        self, found: PriorEstimate, rows: Array | None, restricted: bool = False
    ) -> PriorEstimate:
        """An estimate put back. The density of a reward in other units is divided by their ratio;
        the restricted likelihood integrates the mean out, and is multiplied by that of its."""

        def squares(cov: Array | None) -> Array | None:
            return None if cov is None else np.ldexp(cov, outer(self.theta))

        value = found.log_likelihood
        if value is not None and rows is not None:
            volume = float(self.theta.sum()) if restricted else 0.0
            value += (volume - self.reward * float(rows.sum())) * math.log(2)
        noise = found.noise_sd
        for cov in (found.prior.cov, found.raw_cov, found.mean_cov):
            self._check_variances(cov)
        return found._replace(
            prior=self._prior(found.prior, found.usable),
            raw_cov=squares(found.raw_cov),
            mean_cov=squares(found.mean_cov),
            cov_sd=squares(found.cov_sd),
            noise_sd=None if noise is None else math.ldexp(noise, self.reward),
            log_likelihood=value,
        )

    def _check_variances(self, cov: Array | None) -> None:
        """Refuse variances that would vanish, or be infinite, when put back."""
        inside = np.abs(np.diagonal(cov)) if cov is not None else np.zeros(1)
        with np.errstate(over="ignore", under="ignore"):
            back = np.ldexp(inside, 2 * self.theta)
        lost = (inside > 0) & ~((back >= SMALLEST) & (back < np.inf))
        if lost.any():
            theta = float(self.theta[lost][0]) * math.log10(2)
            raise InputError(
                f"the estimate leaves the range of floating point: parameters are near "
                f"1e{theta:+.0f} (rewards by features), and their squares are no numbers; choose "
                "other units"
            )

    def _prior(self, prior: GaussianPrior, usable: bool) -> GaussianPrior:
        mean, cov = np.ldexp(prior.mean, self.theta), np.ldexp(prior.cov, outer(self.theta))
        if not usable:
            return GaussianPrior.unusable(mean, cov)
        return GaussianPrior.trusted(mean, cov, np.ldexp(prior.cholesky, self.theta[:, None]))


def sizes_of(stats: TaskStatistics) -> tuple[float, Array]:
    """How large rewards and features are: roots of the largest sums of squares of a task. Where
    those of rewards are not known, what its moments say of them."""
    lengths = np.sqrt(np.diagonal(stats.gram, axis1=1, axis2=2).max(axis=0, initial=0.0))
    if stats.energy is not None:
        return math.sqrt(stats.energy.max(initial=0.0)), lengths
    largest = np.abs(stats.moment).max(axis=0, initial=0.0)
    found = np.divide(largest, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return float(found.max()), lengths


MODERATE = 1e30
"""The largest size, and one over the smallest, that a posterior is drawn with."""


def check_moderate(stats: TaskStatistics, noise_sd: float | None) -> None:
    """Refuse numbers so far from 1 that samplers cannot walk among them."""
    rewards, lengths = sizes_of(stats)
    sizes = {"noise_sd": noise_sd or 0.0, "the rewards": rewards}
    for label, length in zip(stats.feature_labels, lengths.tolist(), strict=True):
        sizes[f"feature {label}"] = length
    for name, size in sizes.items():
        if size != 0 and not 1 / MODERATE <= size <= MODERATE:
            raise InputError(
                f"the size of {name} is {size:.3g}; a posterior can be drawn where noise, rewards "
                f"and features are within {1 / MODERATE:g} to {MODERATE:g}: choose other units"
            )
