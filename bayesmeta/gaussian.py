"""The one prior type: a Gaussian over task parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayesmeta.checks import (
    Array,
    InputError,
    array,
    covariance,
    in_sizes,
    numbers,
    of_type,
    own_sizes,
    real,
    whole,
)
from bayesmeta.display import html_table, moments_rows, text_table
from bayesmeta.sums import check_grams
from bayesmeta.units import check_size, check_squares, comfortable, exponent, outer


@dataclass(frozen=True, eq=False, repr=False)
class GaussianPrior:
    """The prior N(mu, Sigma) of a task's parameter theta.

    Parameters
    ----------
    mean : array_like, shape (d,)
        mu.
    cov : array_like, shape (d, d)
        Sigma. It may be singular: every update uses a square root of it, never its inverse.

    Examples
    --------
    >>> GaussianPrior(mean=[1.0, 0.0], cov=[[1.0, 0.6], [0.6, 4.0]])
    GaussianPrior, d = 2
        mean  sd  correlation
    x1     1   1
    x2     0   2  0.30
    """

    mean: Array
    cov: Array

    def __post_init__(self) -> None:
        mean = array("prior mean", self.mean, (None,))
        if mean.size == 0:
            raise InputError("prior mean is empty; a task needs at least one dimension")
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "cov", covariance("prior covariance", self.cov, mean.size))

    @classmethod
    def trusted(cls, mean: Array, cov: Array, cholesky: Array) -> GaussianPrior:
        """Wrap arrays known to be valid (an estimator's own output) without checking them."""
        prior = object.__new__(cls)
        prior.__dict__.update(mean=mean, cov=cov, cholesky=cholesky)
        return prior

    @classmethod
    def unusable(cls, mean: Array, cov: Array) -> GaussianPrior:
        """Carry an estimate with negative eigenvalues; whatever needs a root of it refuses."""
        prior = object.__new__(cls)
        prior.__dict__.update(mean=mean, cov=cov, _unusable=True)
        return prior

    @property
    def dim(self) -> int:
        """The number of features, d."""
        return int(self.mean.shape[0])

    def __repr__(self) -> str:
        return f"GaussianPrior, d = {self.dim}\n{text_table(moments_rows(self.mean, self.cov))}"

    def _repr_html_(self) -> str:
        return html_table(f"GaussianPrior, d = {self.dim}", moments_rows(self.mean, self.cov))

    @cached_property
    def cholesky(self) -> Array:
        """The lower triangular L with L L' = Sigma; zero columns where Sigma is singular."""
        if self.__dict__.get("_unusable"):
            raise InputError(
                "this estimate of the prior covariance has negative eigenvalues, so it is no "
                "covariance; use moment-clipped, ml or reml"
            )
        return lower_root(self.cov)

    def sample(self, rng: np.random.Generator, size: int | None = None) -> Array:
        """Draws of theta, shape (d,) or (size, d)."""
        of_type("rng", rng, np.random.Generator, "make one with np.random.default_rng(seed)")
        shape = (self.dim,) if size is None else (whole("size", size), self.dim)
        return self.mean + rng.standard_normal(shape) @ self.cholesky.T

    def widen(self, radius: float) -> GaussianPrior:
        """A wider prior: ``radius`` is added to every eigenvalue of Sigma."""
        radius = real("radius", radius, least=0.0)
        with np.errstate(over="ignore"):  # what is infinite is refused
            return GaussianPrior(self.mean, self.cov + radius * np.eye(self.dim))

    def rows(self, noise_sd: float, ridge: float) -> tuple[Array, Array]:
        """d made-up observations by which a package with a ridge prior takes N(mu, Sigma) over.

        Ridge regression, or Thompson sampling from it, starts from the gram ridge I and the moment
        0. After these rows A with rewards x it has ridge I + A'A = sigma^2 Sigma^-1 and
        A'x = sigma^2 Sigma^-1 mu, which is N(mu, Sigma) in its terms: from then on its posterior is
        that of eq. (4). Give them to its ``fit`` before any data.

        Parameters
        ----------
        noise_sd : float
            sigma, of the rewards.
        ridge : float
            What the package adds to every diagonal entry of the gram; its prior is
            N(0, sigma^2 / ridge I), which must be wider than Sigma in every direction.

        Returns
        -------
        rows, rewards : arrays, shapes (d, d) and (d,)

        Examples
        --------
        >>> prior = GaussianPrior(mean=[2.0], cov=[[0.25]])
        >>> rows, rewards = prior.rows(noise_sd=1.0, ridge=1e-3)
        >>> gram = rows.T @ rows + 1e-3
        >>> gram, rows.T @ rewards / gram[0]
        (array([[4.]]), array([2.]))
        """
        sigma = check_size("noise_sd", real("noise_sd", noise_sd, above=0.0))
        ridge = real("ridge", ridge, least=0.0)
        lower, d = self.cholesky, self.dim
        if not lower.diagonal().all():
            raise InputError(
                "a prior with a singular covariance is no finite number of observations; widen it "
                "a little first, as prior.widen(1e-6) does"
            )
        # sigma^2 Sigma^-1 - ridge I = L^-T (sigma^2 I - ridge L'L) L^-1
        inner = sigma**2 * np.eye(d) - ridge * lower.T @ lower
        try:
            upper = np.linalg.cholesky(inner).T
        except np.linalg.LinAlgError:
            widest = float(np.linalg.eigvalsh(self.cov)[-1])
            raise InputError(
                f"ridge is {ridge:.3g}, a prior narrower than this one in some direction; it must "
                f"be below noise_sd^2 / (largest eigenvalue of the covariance) = "
                f"{sigma**2 / widest:.3g}: set it so in the package, too"
            ) from None
        inverse = np.linalg.inv(lower)
        return upper @ inverse, sigma**2 * np.linalg.solve(upper.T, inverse @ self.mean)

    def posterior(self, gram: Array, moment: Array, noise_sd: float) -> tuple[Array, Array]:
        """Mean and covariance of theta given data, eq. (4).

        Written with Sigma = L L' as Sigma_t = L (I + L' V L / sigma^2)^-1 L', which is eq. (4)
        where Sigma is invertible and remains right where it is not.

        Parameters
        ----------
        gram : array, shape (..., d, d)
            V = A'A of the steps of a task; leading axes are a batch of tasks.
        moment : array, shape (..., d)
            A'x of the same steps.
        noise_sd : float
            sigma.

        Returns
        -------
        mean, cov : arrays, shapes (..., d) and (..., d, d)

        Examples
        --------
        >>> prior = GaussianPrior(mean=[0.0], cov=[[1.0]])
        >>> prior.posterior(gram=[[3.0]], moment=[6.0], noise_sd=1.0)
        (array([1.5]), array([[0.25]]))
        """
        sigma = check_size("noise_sd", real("noise_sd", noise_sd, above=0.0))
        gram, moment = numbers("gram", gram), numbers("moment", moment)
        if gram.shape[-2:] != (self.dim, self.dim) or moment.shape != gram.shape[:-1]:
            raise InputError(
                f"gram and moment must end in ({self.dim}, {self.dim}) and ({self.dim},), "
                f"got {gram.shape} and {moment.shape}"
            )
        _check_sums(gram, moment, sigma)
        return self.trusted_posterior(gram, moment, sigma)

    def trusted_posterior(self, gram: Array, moment: Array, noise_sd: float) -> tuple[Array, Array]:
        """``posterior`` of arrays known to be valid, such as those of ``TaskStatistics``."""
        root, mean = self.cholesky, self.mean
        largest = math.sqrt(gram.max(initial=0.0)) if gram.size else 0.0
        if comfortable(noise_sd, largest, math.sqrt(self.cov.diagonal().max())):
            return _posterior(mean, root, gram, moment, noise_sd**2)
        # in units of the noise and of each parameter's standard deviation
        noise = exponent(noise_sd)
        powers = np.array([exponent(math.sqrt(square)) for square in self.cov.diagonal()])
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
            found = _posterior(
                np.ldexp(mean, -powers),
                np.ldexp(root, -powers[:, None]),
                np.ldexp(gram, outer(powers) - 2 * noise),
                np.ldexp(moment, powers - 2 * noise),
                math.ldexp(noise_sd, -noise) ** 2,
            )
        if not all(np.isfinite(part).all() for part in found):
            raise InputError(
                f"the posterior leaves the range of floating point: noise_sd {noise_sd:.3g} is too "
                "small beside gram and prior; choose other units"
            )
        return np.ldexp(found[0], powers), np.ldexp(found[1], outer(powers))


def _posterior(
    prior_mean: Array, root: Array, gram: Array, moment: Array, variance: float
) -> tuple[Array, Array]:
    """Eq. (4), see ``GaussianPrior.posterior``."""
    inner = np.eye(len(root)) + root.T @ gram @ root / variance
    cov = root @ np.linalg.solve(inner, np.broadcast_to(root.T, inner.shape))
    cov = (cov + np.swapaxes(cov, -1, -2)) / 2
    residual = moment - gram @ prior_mean
    mean = prior_mean + np.einsum("...ij,...j->...i", cov, residual) / variance
    return mean, cov


def _check_sums(gram: Array, moment: Array, noise_sd: float) -> None:
    """Refuse what is no A'A and A'x: NaN, no gram, sizes beyond, rewards of no step."""
    if not (np.isfinite(gram).all() and np.isfinite(moment).all()):
        raise InputError("gram or moment has a NaN or infinite entry; remove or replace it")
    scaled, factor = check_grams(gram)
    squares = np.diagonal(gram, axis1=-2, axis2=-1)
    check_squares("actions", squares.reshape(-1, squares.shape[-1]))
    short = np.diagonal(factor, axis1=-2, axis2=-1).min(axis=-1) < 1e-2  # perhaps singular
    rewards = in_sizes(moment, own_sizes(squares))[short]
    values, vectors = np.linalg.eigh(scaled[short])
    along = np.abs(np.einsum("...ji,...j->...i", vectors, rewards))
    size = np.linalg.norm(rewards, axis=-1, keepdims=True) + noise_sd
    # eigenvalues that are rounding belong to directions that no step has taken
    if (along > np.where(values > 1e-14 * gram.shape[-1], np.inf, 1e-5 * size)).any():
        raise InputError(
            "moment lies outside the range of gram: it has rewards of a direction that no step has "
            "taken; give A'A and A'x of the same steps"
        )


def lower_root(cov: Array) -> Array:
    """The lower triangular L with L L' = ``cov``, also where that is singular.

    There each feature is measured in the power of two next to its standard deviation, since
    rounding in the eigenvalues of a large feature would swamp a small one. Rows of features without
    a variance are exactly zero.
    """
    try:
        return np.linalg.cholesky(cov)
    except np.linalg.LinAlgError:
        some = np.flatnonzero(cov.diagonal() > 0)
        if len(some) < len(cov):
            out = np.zeros(cov.shape)
            out[np.ix_(some, some)] = lower_root(cov[np.ix_(some, some)])
            return out
        powers = np.frexp(np.sqrt(np.maximum(cov.diagonal(), 0.0)))[1]
        values, vectors = np.linalg.eigh(np.ldexp(cov, -outer(powers)))
        half = vectors * np.sqrt(np.clip(values, 0.0, None))
        root: Array = np.ldexp(triangular(half), powers[:, None])
        return root


def triangular(half: Array) -> Array:
    """The lower triangular L, its diagonal not negative, with L L' = ``half half'``."""
    upper = np.linalg.qr(half.T, mode="r")
    signs = np.where(np.diag(upper) < 0, -1.0, 1.0)
    return np.ascontiguousarray((upper * signs[:, None]).T)
