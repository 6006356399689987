"""Worlds in which the Gaussian model is wrong, with the mean and the covariance it says.

Thetas have exactly the mean and covariance of the truth, and noise has mean 0 and, on average, the
variance it should: so that mu, Sigma and sigma mean what they mean where the model is right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from bayesmeta.checks import Array, unit_diagonal
from bayesmeta.environment import TaskFamily
from bayesmeta.gaussian import GaussianPrior

FREEDOM = 5
"""Of Student's t: the heaviest tails (in whole numbers) with a finite fourth moment, without which
an estimated covariance has no standard error."""
APART = 0.9
"""How far, in standard deviations along the line through both, a cluster is from the mean."""
VARIANCES = (0.4, 1.6)
"""Of the noise of a task, by chance: standard deviations of 1 to 2, variances of 1 on average."""


@dataclass(frozen=True)
class Wrong:
    """What is not as the estimators take it to be; nothing by default."""

    theta: str = ""
    """heavy-tailed, clustered or skewed"""
    noise: str = ""
    """heavy-tailed (every step) or unequal (between tasks)"""
    told: float = 1.0
    """noise_sd that estimators are told, in units of the true one"""


RIGHT = Wrong()
NOTHING = "nothing"
WRONG = {
    NOTHING: RIGHT,
    "heavy-tailed theta": Wrong(theta="heavy-tailed"),
    "clustered theta": Wrong(theta="clustered"),
    "skewed theta": Wrong(theta="skewed"),
    "heavy-tailed noise": Wrong(noise="heavy-tailed"),
    "unequal noise": Wrong(noise="unequal"),
    "noise told too small": Wrong(told=0.8),
    "noise told too large": Wrong(told=1.2),
}
"""What ``calibrate`` knows by name."""


def thetas(wrong: Wrong, prior: GaussianPrior, rng: np.random.Generator, size: int) -> Array:
    """Draws (size, d) with the mean and covariance of the prior.

    mu + S z with independent or uncorrelated z of variance 1, where S is, in units of the standard
    deviations, the symmetric root of the correlations: neither units nor signs of features matter.
    """
    if not wrong.theta:
        return prior.sample(rng, size)
    draw = {"heavy-tailed": _heavy, "clustered": _clustered, "skewed": _skewed}[wrong.theta]
    sd = np.sqrt(np.diag(prior.cov))
    values, vectors = np.linalg.eigh(unit_diagonal(prior.cov))
    root = sd[:, None] * (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    out: Array = prior.mean + draw(rng, size, prior.dim) @ root.T
    return out


def noises(wrong: Wrong, rng: np.random.Generator, tasks: int, steps: int) -> Array:
    """Noise (tasks, steps) in units of sigma."""
    if wrong.noise == "heavy-tailed":
        scale = math.sqrt((FREEDOM - 2) / FREEDOM)
        return scale * rng.standard_t(FREEDOM, size=(tasks, steps))
    if wrong.noise == "unequal":
        return unequal(rng, tasks)[:, None] * rng.standard_normal((tasks, steps))
    return rng.standard_normal((tasks, steps))


def unequal(rng: np.random.Generator, tasks: int) -> Array:
    """Standard deviations of the noise of tasks in units of sigma."""
    return np.sqrt(rng.choice(VARIANCES, size=tasks))


def _heavy(rng: np.random.Generator, size: int, d: int) -> Array:
    """Multivariate t: all features of a task are far out together."""
    scale = np.sqrt((FREEDOM - 2) / rng.chisquare(FREEDOM, size=(size, 1)))
    out: Array = scale * rng.standard_normal((size, d))
    return out


def _clustered(rng: np.random.Generator, size: int, d: int) -> Array:
    """Two clusters of equal chance on either side of the mean, along the diagonal."""
    line = np.full(d, 1 / math.sqrt(d))
    side = APART * rng.choice([-1.0, 1.0], size=(size, 1))
    normals = rng.standard_normal((size, d))
    along = (normals @ line)[:, None] * line
    out: Array = normals + (math.sqrt(1 - APART**2) - 1) * along + side * line
    return out


def _skewed(rng: np.random.Generator, size: int, d: int) -> Array:
    """Exponential variables less their mean: a skewness of 2."""
    return rng.standard_exponential((size, d)) - 1


@dataclass(frozen=True, repr=False)
class WrongFamily(TaskFamily):
    """A family whose tasks are drawn wrongly; agents and estimators are told nothing of it."""

    wrong: Wrong = RIGHT

    @classmethod
    def of(cls, family: TaskFamily, wrong: Wrong) -> TaskFamily:
        """A family gone wrong; itself where its tasks are right."""
        if not wrong.theta and not wrong.noise:
            return family
        parts = {one.name: getattr(family, one.name) for one in fields(family)}
        return cls(**parts, wrong=wrong)

    def _law(self, rng: np.random.Generator) -> tuple[Array, Array]:
        theta = thetas(self.wrong, self.prior, rng, 1)[0]
        return theta, noises(self.wrong, rng, 1, self.horizon)[0]
