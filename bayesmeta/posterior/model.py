"""PyMC models of tasks whose parameters come from one Gaussian prior.

    mu, Sigma ~ a prior over priors (``LKJ``, ``InverseWishart``, ``KnownCovariance``)
    theta_j   ~ N(mu, Sigma)
    x_j       ~ N(A_j theta_j, sigma^2 I)

Four ways to write the same posterior of (mu, Sigma, sigma):

``fused``        theta integrated out, likelihood and gradients in one compiled kernel
``collapsed``    theta integrated out, in PyTensor alone
``noncentred``   theta_j = mu + L z_j with z_j standard normal
``centred``      theta_j itself

Data, the prior's numbers and the places of entries in a triangle are ``pm.Data``, and every shape
follows from them: a compiled model serves any other tasks, in any dimension.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesmeta.checks import Advice, InputError, of_type, one_of, real
from bayesmeta.estimators.restated import check_moderate
from bayesmeta.posterior.conflict import warn_if_at_odds
from bayesmeta.posterior.defaults import default_prior
from bayesmeta.posterior.priors import (
    LKJ,
    InverseWishart,
    KnownCovariance,
    Prior,
    bartlett_root,
)
from bayesmeta.posterior.varying import of_varying, refuse_conjugate
from bayesmeta.statistics import TaskStatistics

if TYPE_CHECKING:
    import pymc as pm

KINDS = ("fused", "collapsed", "noncentred", "centred")
"""Ways to write the model."""


def require(*packages: str) -> None:
    """Refuse with the name of a package that is not installed."""
    for name in packages:
        if find_spec(name) is None:
            raise InputError(f"drawing from a posterior needs the package {name}; install it")


class Problem(NamedTuple):
    """Everything a model is built from, checked."""

    stats: TaskStatistics
    noise_sd: float | None
    prior: Prior
    kind: str


def check_problem(
    stats: TaskStatistics, noise_sd: float | None, prior: Prior | None, kind: str
) -> Problem:
    """Check the arguments of ``build_model``, and give the prior a number a feature."""
    of_type("stats", stats, TaskStatistics, "make one, or use TaskStatistics.from_frame")
    one_of("model", kind, KINDS)
    if len(stats) < 2:
        raise InputError(
            f"stats has {len(stats)} task(s); how tasks differ can be learned from two or more"
        )
    if isinstance(noise_sd, (bool, np.bool_, str)):
        raise InputError(f"noise_sd must be a number, got {noise_sd!r}")
    if noise_sd is not None:
        noise_sd = real("noise_sd", noise_sd, above=0.0)
    elif stats.count is None or stats.energy is None:
        raise InputError(
            Advice(
                "estimating the noise needs count and energy (steps and sum of squared rewards of "
                "each task); give them, or {noise_sd}"
            )
        )
    check_moderate(stats, noise_sd)
    chosen = default_prior(stats, noise_sd, centre=False) if prior is None else prior
    if not isinstance(chosen, (LKJ, InverseWishart, KnownCovariance)):
        raise InputError(
            f"prior must be LKJ, InverseWishart or KnownCovariance, got {type(prior).__name__}"
        )
    settled = chosen.settled(stats.dim)
    refuse_conjugate(settled, stats.differs)
    if prior is not None:
        warn_if_at_odds(stats, noise_sd, settled)
    return Problem(stats, noise_sd, settled, kind)


def data_of(problem: Problem) -> dict[str, Any]:
    """The values of all ``pm.Data`` of a model, by name."""
    stats, prior, noise_sd = problem.stats, problem.prior, problem.noise_sd
    if problem.kind == "fused":
        from bayesmeta.posterior.taskdata import task_data

        values: dict[str, Any] = task_data(stats)._asdict()
    else:
        n = len(stats)
        values = {
            "gram": stats.gram,
            "moment": stats.moment,
            "energy": np.zeros(n) if stats.energy is None else stats.energy,
            "steps": np.asarray(0.0 if stats.count is None else float(stats.count.sum())),
        }
    if noise_sd is None:
        values["noise_scale"] = np.asarray(prior.noise_scale)
    else:
        values["noise_sd"] = np.asarray(noise_sd)
    values |= _numbers_of(of_varying(prior, stats.differs))
    values |= triangle(int(stats.differs.sum()))
    if stats.varying is not None:  # a mean for all features, and where the varying ones are
        values |= {"mean": prior.mean, "selection": np.eye(stats.dim)[:, stats.differs]}
        if not isinstance(prior, InverseWishart):
            values["mean_sd"] = prior.mean_sd
    return {
        name: np.array(value, dtype="int32" if name in ("rows", "columns") else float)
        for name, value in values.items()
    }


def triangle(d: int) -> dict[str, Any]:
    """Rows and columns of the entries below the diagonal of a (d, d) matrix, the identity to put
    them in, and which columns are to the left of which."""
    rows, columns = np.tril_indices(d, -1)
    return {"rows": rows, "columns": columns, "identity": np.eye(d), "left": np.tri(d, k=-1)}


def _numbers_of(prior: Prior) -> dict[str, Any]:
    """The numbers of a settled prior, as the model takes them."""
    d = len(np.asarray(prior.mean))
    if isinstance(prior, LKJ):
        return {
            "mean": prior.mean,
            "mean_sd": prior.mean_sd,
            "scale": prior.scale,
            "beta": prior.eta + (d - 2 - np.tril_indices(d, -1)[1]) / 2,
        }
    if isinstance(prior, InverseWishart):
        return {
            "mean": prior.mean,
            "weight": np.asarray(prior.weight),
            "degrees": prior.degrees - np.arange(d),
            "upper": bartlett_root(np.asarray(prior.scale)),
        }
    known = np.linalg.cholesky(np.asarray(prior.cov))
    return {"mean": prior.mean, "mean_sd": prior.mean_sd, "known_root": known}


def spread_dims(stats: TaskStatistics) -> tuple[str, str]:
    """The dimensions of Sigma: all features, or those whose coefficients differ between tasks."""
    return ("feature", "feature_bis") if stats.varying is None else ("varying", "varying_bis")


def coords_of(problem: Problem) -> dict[str, Any]:
    """Labels of features, of those that vary, of pairs of these, and of tasks where the model has
    their thetas."""
    names = problem.stats.feature_labels
    own = [name for name, one in zip(names, problem.stats.differs, strict=True) if one]
    coords: dict[str, Any] = {"feature": names} | dict.fromkeys(spread_dims(problem.stats), own)
    coords["pair"] = [f"{own[i]}, {own[j]}" for i in range(len(own)) for j in range(i)]
    if problem.kind in ("noncentred", "centred"):
        coords["task"] = problem.stats.task_labels
    return coords


def build_model(
    stats: TaskStatistics,
    noise_sd: float | None = None,
    prior: Prior | None = None,
    kind: str = "fused",
) -> pm.Model:
    """The PyMC model of tasks whose parameters come from one Gaussian prior.

    Parameters
    ----------
    stats
        The tasks.
    noise_sd
        The noise (sigma) of a reward; None: ``sigma`` is a variable of the model.
    prior
        What is believed of (mu, Sigma) before the data; None: ``default_prior`` with
        ``centre=False``.
    kind
        How the model is written: "fused", "collapsed", "noncentred" or "centred".

    Returns
    -------
    pymc.Model
        Variables ``mu``, ``Sigma``, ``sd``, ``corr`` (one entry a pair of features), and ``theta``
        where it is not integrated out, all in the coordinates of the features as they are. Where
        some coefficients are the same in all tasks, ``Sigma`` and the others are of the rest.

    Examples
    --------
    >>> stats = bm.TaskStatistics([[[4.0]], [[4.0]], [[4.0]]], [[6.0], [18.0], [30.0]])
    >>> model = bm.build_model(stats, noise_sd=1.0, kind="noncentred")
    >>> sorted(variable.name for variable in model.free_RVs)
    ['mu', 'partial', 'spread', 'z']
    """
    require("pymc")
    return model_of(check_problem(stats, noise_sd, prior, kind))


def model_of(problem: Problem) -> pm.Model:
    """Build the model of a checked problem."""
    import pymc as pm

    with pm.Model(coords=coords_of(problem)) as model:
        data = {name: pm.Data(name, value) for name, value in data_of(problem).items()}
        mean, root = _mean_and_root(problem, data)
        if problem.noise_sd is None:
            sigma = pm.HalfNormal("sigma", data["noise_scale"])
        else:
            sigma = data["noise_sd"]
        pm.Potential("rewards", _log_likelihood(problem, data, mean, root, sigma))
    return model


def _log_likelihood(
    problem: Problem, data: dict[str, Any], mean: Any, root: Any, sigma: Any
) -> Any:
    """Of all rewards, in the way of the problem's kind; its theta is a variable of the model."""
    import pymc as pm
    import pytensor.tensor as pt

    from bayesmeta.posterior.op import plain_likelihood, task_likelihood
    from bayesmeta.posterior.taskdata import TaskData

    if problem.kind == "fused":
        laid_out = TaskData(*(data[name] for name in TaskData._fields))
        return task_likelihood(mean, root, sigma, laid_out)
    gram, moment, energy, steps = (data[name] for name in ("gram", "moment", "energy", "steps"))
    if problem.kind == "collapsed":
        return plain_likelihood(mean, root, sigma, gram, moment, energy, steps)
    dims = ("task", "feature")
    if problem.kind == "noncentred":
        z = pm.Normal("z", 0.0, 1.0, dims=dims)
        theta = pm.Deterministic("theta", mean + z @ root.T, dims=dims)
    else:
        positive = root * pt.sign(pt.diagonal(root))  # the same covariance
        theta = pm.MvNormal("theta", mean, chol=positive, dims=dims)
    fitted = (gram @ theta[..., None])[..., 0]
    squares = energy.sum() + (theta * (fitted - 2 * moment)).sum()
    return -0.5 * (steps * pt.log(2 * np.pi * sigma**2) + squares / sigma**2)


def _mean_and_root(problem: Problem, data: dict[str, Any]) -> tuple[Any, Any]:
    """mu and a lower root of Sigma, zero where features do not vary; adds ``Sigma``, ``sd``
    and ``corr`` to the model.

    The LKJ prior is written with *signed* spreads z_i ~ N(0, scale_i^2), of which the standard
    deviations are |z_i|: Sigma = diag(z) R diag(z) has the prior of D R D, since LKJ does not
    change when signs of coordinates do. A sampler then moves through standard deviations near zero
    freely; by their logarithms they are the end of a long tail, which it visits too seldom. The
    signs of ``spread`` and of ``partial`` are not identified and have no meaning.
    """
    import pymc as pm
    import pytensor.tensor as pt

    from bayesmeta.posterior.bartlett import inverse_root

    prior, (own, other) = problem.prior, spread_dims(problem.stats)
    if isinstance(prior, LKJ):
        mean = pm.Normal("mu", data["mean"], data["mean_sd"], dims="feature")
        spread = pm.Normal("spread", 0.0, data["scale"], dims=own)
        half = pm.Beta("partial", data["beta"], data["beta"], dims="pair")
        root = spread[:, None] * _correlation_root(half, data)
    elif isinstance(prior, InverseWishart):
        squares = pm.ChiSquared("squares", data["degrees"], dims="feature")
        offs = pm.Normal("offs", 0.0, 1.0, dims="pair")
        lower = _below(offs, data) + data["identity"] * (pt.sqrt(squares) - 1)
        root = inverse_root(data["upper"], lower[::-1, ::-1])
        raw = pm.Normal("raw", 0.0, 1.0, dims="feature")
        mean = pm.Deterministic(
            "mu", data["mean"] + (root * raw).sum(axis=1) / pt.sqrt(data["weight"]), dims="feature"
        )
    else:
        mean = pm.Normal("mu", data["mean"], data["mean_sd"], dims="feature")
        root = data["known_root"]
    cov = root @ root.T
    sd = pt.sqrt(pt.diagonal(cov))
    rows, columns = data["rows"], data["columns"]
    pm.Deterministic("Sigma", cov, dims=(own, other))
    pm.Deterministic("sd", sd, dims=own)
    pm.Deterministic("corr", cov[rows, columns] / (sd[rows] * sd[columns]), dims="pair")
    return mean, root if problem.stats.varying is None else _embedded(root, data["selection"])


def _embedded(root: Any, selection: Any) -> Any:
    """E L E', by sums: products of matrices call BLAS, which takes long to compile."""
    tall = (selection[:, :, None] * root[None, :, :]).sum(axis=1)
    return (tall[:, None, :] * selection[None, :, :]).sum(axis=2)


def _below(entries: Any, data: dict[str, Any]) -> Any:
    """The identity with these entries below its diagonal."""
    import pytensor.tensor as pt

    return pt.set_subtensor(data["identity"][data["rows"], data["columns"]], entries)


def _correlation_root(half: Any, data: dict[str, Any]) -> Any:
    """A lower root of R ~ LKJ(eta), from its partial correlations 2 half - 1, which are independent
    betas on (-1, 1) (Lewandowski, Kurowicka and Joe 2009): that of i and k given those before k has
    both parameters eta + (d - 2 - k) / 2, counting from 0."""
    import pytensor.tensor as pt

    left = _below(pt.log(4 * half * (1 - half)), data)
    # what the columns to the left leave of a row; the ones of the diagonal are to the right of all
    before = (left[:, None, :] * data["left"]).sum(axis=2)
    return _below(2 * half - 1, data) * pt.exp(before / 2)
