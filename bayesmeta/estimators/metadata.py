"""Tasks with metadata, theta_n ~ N(Phi_n gamma, Sigma), as the mixed model that they are.

Rewards A theta_n = A m + A (Phi_n - M) b + A delta_n, with M the mean of all Phi_n: coefficients of
A differ between tasks, those of A (Phi_n - M) are the same in all. b are entries of gamma, those of
columns that no earlier ones make up, and m is the mean of theta of a task whose Phi_n is M. So
whatever fits such tasks (REML, ML, a posterior) fits these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import ArrayLike

from bayesmeta.checks import Array, InputError, array, of_type, one_of
from bayesmeta.estimators.designs import Coordinates, checked_designs, gamma_names
from bayesmeta.estimators.estimate import PriorEstimate
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.statistics import TaskStatistics
from bayesmeta.units import check_sizes, check_squares

if TYPE_CHECKING:
    import xarray as xr

USES = ("marginal", "mean")
"""What ``prior_of`` makes of what is known of gamma."""


def restated(stats: TaskStatistics, features: Array) -> TaskStatistics:
    """The tasks with features A F_n of the mixed model in place of A, unchecked and unnamed."""
    own, all_of_them = features.shape[1:]
    varying = (*(bool(one) for one in stats.differs), *(False,) * (all_of_them - own))
    return TaskStatistics.trusted(
        features.transpose(0, 2, 1) @ stats.gram @ features,
        np.einsum("nij,ni->nj", features, stats.moment),
        stats.count,
        stats.energy,
        varying=None if all(varying) else varying,
        log_weights=stats.log_weights,
    )


def prior_at(features: Array, found: PriorEstimate, use: str) -> GaussianPrior:
    """The prior of a task whose mean is F (m, b), with the error of the estimated mean in its
    covariance ("marginal") or without ("mean")."""
    d = len(features)
    cov = found.prior.cov[:d, :d]
    if use == "marginal" and found.mean_cov is not None:
        cov = cov + features @ found.mean_cov @ features.T
    return GaussianPrior(features @ found.prior.mean, cov)


@dataclass(frozen=True, eq=False, repr=False)
class MetadataModel:
    """What ``with_metadata`` makes: statistics to fit, and the way back to gamma.

    Parameters
    ----------
    stats : TaskStatistics
        Of the mixed model, for ``fit_prior`` and ``sample_posterior``: the mean of their first d
        features is that of theta where the metadata are at their mean; the others are the entries
        of gamma by their names, of which those are left out that the rest determine.
    coordinates : Coordinates
        What these features are.
    names : tuple of str
        Of the entries of gamma.

    Examples
    --------
    Eight shops in two cities; what a city adds is known of these two, and of no third:

    >>> sales = [1.0, 2.0, 1.5, 1.7, 3.0, 3.4, 2.8, 3.6]
    >>> stats = bm.TaskStatistics.from_arrays(np.arange(8), sales, np.ones((8, 1)))
    >>> cities = np.eye(3)[[0, 0, 0, 0, 1, 1, 1, 1]][:, None, :]  # (8, 1, 3), a column for each
    >>> model = bm.with_metadata(stats, cities, names=["A", "B", "C"])
    >>> estimate = bm.fit_prior(model.stats, noise_sd=0.1)
    >>> model.gamma(estimate).round(2)
    array([1.55, 3.2 , 0.  ])
    >>> np.sqrt(np.diag(model.gamma_cov(estimate))).round(2)
    array([0.19, 0.19,  inf])
    >>> model.prior_of([[0, 1, 0]], estimate).mean.round(2)
    array([3.2])
    """

    stats: TaskStatistics
    coordinates: Coordinates
    names: tuple[str, ...]

    @property
    def has_intercept(self) -> bool:
        """Whether the mean of theta is Phi_n gamma and nothing else: some gamma gives any vector
        in all tasks alike. If not, such a vector is added to the mean (``offset``)."""
        return not self.coordinates.rest.any()

    def __repr__(self) -> str:
        added = "" if self.has_intercept else ", and an intercept beside it"
        d, p = self.coordinates.middle.shape
        tasks = f"{len(self.stats)} task{'s' * (len(self.stats) != 1)}"
        return f"MetadataModel: {tasks}, d = {d}, gamma of {p}{added}"

    @overload
    def gamma(self, found: PriorEstimate) -> Array: ...
    @overload
    def gamma(self, found: xr.DataTree) -> xr.DataArray: ...
    def gamma(self, found: PriorEstimate | xr.DataTree) -> Array | xr.DataArray:
        """The coefficients gamma of the metadata.

        Where columns are collinear, in all tasks together, later ones get coefficient 0, and the
        earlier ones are what they are without them. Such entries are a choice among many that fit
        as well: their variance in ``gamma_cov`` is infinite.

        Parameters
        ----------
        found : PriorEstimate or xarray.DataTree
            From ``fit_prior(model.stats)``, or from ``sample_posterior(model.stats)``.

        Returns
        -------
        array, shape (p,), or xarray.DataArray
            Of an estimate gamma; of a posterior its draws, with dimensions (chain, draw,
            coefficient).
        """
        lift = self.coordinates.lift
        if isinstance(found, PriorEstimate):
            out: Array = lift @ self._checked(found).prior.mean
            return out
        import xarray as xr

        return xr.DataArray(
            self._draws(found) @ lift.T,
            dims=("chain", "draw", "coefficient"),
            coords={"coefficient": list(self.names)},
            name="gamma",
        )

    def gamma_cov(self, estimate: PriorEstimate) -> Array:
        """The covariance of an estimated gamma.

        Parameters
        ----------
        estimate : PriorEstimate
            From ``fit_prior(model.stats)``, by a method that has standard errors of the mean.

        Returns
        -------
        array, shape (p, p)
            Entries of gamma that the tasks do not determine (a column that is always 0, and all
            columns of a set that is collinear) have variance infinity, and NaN as covariance with
            any other entry. ``prior_of`` has the variance of combinations that are determined.
        """
        lift, cov = self.coordinates.lift, self._checked(estimate).mean_cov
        if cov is None:
            raise InputError("this estimate has no covariance of its mean; use ml, reml or gls")
        out: Array = lift @ cov @ lift.T
        unknown = np.flatnonzero(~self.coordinates.determined)
        out[unknown] = out[:, unknown] = np.nan
        out[unknown, unknown] = np.inf
        return out

    def offset(self, found: PriorEstimate | xr.DataTree) -> Array:
        """What the mean of every theta_n is beside Phi_n gamma.

        It is orthogonal to all vectors that some gamma gives in all tasks alike: a column that is
        the same in all tasks takes as much of the mean as it can.

        Parameters
        ----------
        found : PriorEstimate or xarray.DataTree
            From ``fit_prior(model.stats)``, or from ``sample_posterior(model.stats)``.

        Returns
        -------
        array, shape (d,)
            0 where designs have an intercept (``has_intercept``); of a posterior the mean of its
            draws.
        """
        if isinstance(found, PriorEstimate):
            mean = self._checked(found).prior.mean
        else:
            mean = self._draws(found).mean(axis=(0, 1))
        out: Array = self.coordinates.rest @ mean
        return out

    def prior_of(
        self, design: ArrayLike, found: PriorEstimate | xr.DataTree, use: str = "marginal"
    ) -> GaussianPrior:
        """The prior of a new task, by what was found of the others: its mean is Phi gamma, and the
        offset beside it.

        A design is refused whose mean depends on what the tasks say nothing of: a category that
        none of them had, or columns that were collinear in all of them and are not in this one.

        Parameters
        ----------
        design : array_like, shape (d, p)
            Phi of the new task.
        found : PriorEstimate or xarray.DataTree
            From ``fit_prior(model.stats)``, or from ``sample_posterior(model.stats)``.
        use : {"marginal", "mean"}
            The covariance of the prior: with the uncertainty of the mean, or Sigma alone.

        Returns
        -------
        GaussianPrior
            Of theta. Of a posterior, whose theta is no Gaussian, it has mean and covariance over
            all draws.
        """
        one_of("use", use, USES)
        phi = array("design", design, self.coordinates.middle.shape)
        check_sizes("design", phi)
        self.coordinates.require_determined(phi, self.names)
        features = self.coordinates.features_of_new(phi)
        if isinstance(found, PriorEstimate):
            return prior_at(features, self._checked(found), use)
        d = len(features)
        means = self._draws(found).reshape(-1, self.stats.dim) @ features.T
        spread = np.asarray(found["posterior"]["Sigma"].mean(["chain", "draw"]))
        differs = self.stats.differs[:d]
        cov = np.zeros((d, d))
        cov[np.ix_(differs, differs)] = spread
        if use == "marginal":
            cov += np.cov(means.T, bias=True)
        return GaussianPrior(means.mean(axis=0), cov)

    def _checked(self, found: PriorEstimate) -> PriorEstimate:
        """An estimate of these statistics."""
        if found.prior.dim != self.stats.dim:
            raise InputError(
                f"this estimate has {found.prior.dim} coefficients, and the tasks with their "
                f"metadata {self.stats.dim}; give that of fit_prior(model.stats)"
            )
        return found

    def _draws(self, tree: xr.DataTree) -> Array:
        """Draws of (m, b), (chain, draw, d + q)."""
        posterior = tree["posterior"] if "posterior" in getattr(tree, "children", ()) else ()
        if "mu" not in posterior:
            raise InputError(
                f"got {type(tree).__name__}; give an estimate from fit_prior(model.stats), or what "
                "sample_posterior(model.stats) returned"
            )
        draws = np.asarray(tree["posterior"]["mu"].transpose("chain", "draw", "feature"))
        if draws.shape[-1] != self.stats.dim:
            raise InputError(
                f"these draws have {draws.shape[-1]} coefficients, and the tasks with their "
                f"metadata {self.stats.dim}; give those of sample_posterior(model.stats)"
            )
        return draws


def with_metadata(
    stats: TaskStatistics, designs: ArrayLike, names: Sequence[str] | None = None
) -> MetadataModel:
    """Tasks that are known to differ: theta_n ~ N(Phi_n gamma, Sigma), Phi_n being told.

    Fit the ``stats`` of what is returned by any method that knows mixed models: REML, maximum
    likelihood, ``gls``, or a posterior. Its ``gamma`` and ``prior_of`` take what was found. Where
    the designs have no intercept (no gamma gives every vector in all tasks alike), one is added to
    the mean of theta: ``has_intercept`` says so, and ``offset`` has it.

    Parameters
    ----------
    stats : TaskStatistics
        What the tasks leave behind.
    designs : array_like, shape (n, d, p)
        Phi_n of every task, in their order: row i of Phi_n is what the mean of the i-th entry of
        theta_n depends on. A task that is described by k numbers z has Phi = I_d (x) (1, z'), or
        fewer columns where not all of theta depends on z.
    names : sequence of str, optional
        Of the p columns; gamma1, gamma2, ... where None.

    Returns
    -------
    MetadataModel
        With ``stats``, ``gamma(found)``, ``gamma_cov(estimate)``, ``offset(found)`` and
        ``prior_of(design, found)``, where ``found`` is an estimate or a posterior.

    Notes
    -----
    Columns may be collinear: what tasks do not determine, ``gamma_cov`` says to be infinite, and
    ``prior_of`` refuses a design that depends on it. Columns that are collinear but for less than
    about a millionth of their spread, and more than rounding, are refused here.

    Examples
    --------
    Sixty shops whose level of sales depends on their size:

    >>> rng = np.random.default_rng(0)
    >>> size = rng.normal(size=60)
    >>> level = 2.0 + 0.5 * size + 0.3 * rng.standard_normal(60)
    >>> sales = level.repeat(5) + 0.4 * rng.standard_normal(300)
    >>> stats = bm.TaskStatistics.from_arrays(np.arange(60).repeat(5), sales, np.ones((300, 1)))
    >>> designs = np.stack([np.ones(60), size], axis=1)[:, None, :]  # (60, 1, 2)
    >>> model = bm.with_metadata(stats, designs, names=["level", "size"])
    >>> estimate = bm.fit_prior(model.stats)
    >>> model.gamma(estimate).round(1)
    array([2. , 0.5])
    >>> model.prior_of([[1.0, 2.0]], estimate).mean.round(1)  # of a large shop without sales yet
    array([2.9])
    """
    of_type("stats", stats, TaskStatistics, "make one, or use TaskStatistics.from_frame")
    found = checked_designs(designs)
    if found.shape[:2] != (len(stats), stats.dim):
        raise InputError(
            f"designs have shape {found.shape}, but there are {len(stats)} tasks of dimension "
            f"{stats.dim}; give a (d, p) matrix for every task, in their order"
        )
    p = found.shape[2]
    if isinstance(names, str | bytes):
        raise InputError(f"names must be a list of {p} labels, got the text {names!r:.80}")
    called = gamma_names(p) if names is None else tuple(map(str, names))
    own = set(stats.feature_labels)
    if len(called) != p or len(set(called)) < p or own & set(called):
        raise InputError(
            f"names must be {p} different labels, and none of a feature "
            f"({', '.join(stats.feature_labels):.60}), got {called!r:.80}"
        )
    coordinates = Coordinates.of(found, called)
    made = restated(stats, coordinates.features(found))
    products = np.diagonal(made.gram, axis1=1, axis2=2)[:, stats.dim :]
    check_squares("features times designs", products)
    labelled = TaskStatistics(
        made.gram,
        made.moment,
        made.count,
        made.energy,
        stats.tasks,
        (*stats.feature_labels, *(called[j] for j in coordinates.kept)),
        made.varying,
        made.log_weights,
    )
    return MetadataModel(labelled, coordinates, called)
