"""``bm.fit``: from a table to a fitted model."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

from bayesmeta.checks import Array, InputError, one_of
from bayesmeta.estimators.fit import METHODS, fit_prior
from bayesmeta.fitted.prior import FittedPrior
from bayesmeta.fitted.quantities import checked_level
from bayesmeta.statistics import TaskStatistics
from bayesmeta.tables.design import Design, tabulate

if TYPE_CHECKING:
    from pandas import DataFrame

    from bayesmeta.fitted.posterior import FittedPosterior

OPTIONS = ("widening", "horizon", "bounds", "limit", "threads")
"""Those of ``fit_prior`` that ``fit`` hands on."""
KNOWN = tuple(one for one in METHODS if one not in ("split", "gls"))
"""Methods of ``fit_prior`` that estimate all of the prior, from one table."""


def fit(
    source: Any,
    formula: str | None = None,
    *,
    method: str = "reml",
    noise_sd: float | None = None,
    level: float = 0.95,
    **options: Any,
) -> FittedPrior | FittedPosterior:
    """Fit the prior N(mu, Sigma) of tasks' coefficients to a table (a linear mixed model).

    Parameters
    ----------
    source : pandas.DataFrame, Design or TaskStatistics
        A table with a row for every reward (or a file, or a Dask table), what ``tabulate`` made of
        one, or sums of tasks.
    formula : str, optional
        As lme4 has it, such as ``"y ~ x + (x | g)"``, in place of ``task``, ``reward``,
        ``features``, ``intercept`` and ``fixed``.
    method : str
        ``"reml"``, ``"ml"``, ``"moment"``, ``"moment-widened"`` or ``"moment-clipped"`` estimate
        the prior; ``"posterior"`` draws from its posterior.
    noise_sd : float, optional
        The noise (sigma) of a reward; None: it is estimated.
    level : float
        Probability of intervals, unless a method is asked for another.
    **options
        What describes a table, as ``tabulate`` has it:

        task, reward : str
            The columns of tasks and of rewards.
        features : list of str
            Columns whose coefficients differ between tasks.
        intercept : bool
            Whether tasks have a level of their own.
        fixed : list of str
            Columns whose coefficient is the same in all tasks.
        weights, noise_var, noise_se : str
            A column of weights, of known variances, or of known standard errors of rows.
        drop_missing : bool
            Leave out rows that lack a value, instead of refusing them.
        batches : bool
            Whether to sum a file up in batches; by default those above 200 MB are.

        And those of the method: ``widening``, ``horizon``, ``bounds``, ``limit`` and ``threads`` of
        ``fit_prior``; with ``"posterior"`` those of ``sample_posterior`` (``prior``, ``draws``,
        ``chains``, ``random_seed``, ``centre``, …).

    Returns
    -------
    FittedPrior or FittedPosterior
        Both print as a table and have ``summary()``, ``confint()``, ``tasks()`` and ``predict()``,
        ``prior`` and ``notes``. An estimate has ``loglik``, ``aic``, ``bic`` and ``estimate``, too,
        a posterior ``tree``, for ArviZ.

    See Also
    --------
    fit_prior, sample_posterior : The same from sums of tasks, without a table.

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"shop": np.arange(40).repeat(6), "y": rng.normal(3, 1, 240)})
    >>> frame["y"] += rng.normal(0, 2, 40).repeat(6)
    >>> bm.fit(frame, task="shop", reward="y", intercept=True)
    The prior by reml (40 tasks, 240 rows)
                   estimate     error     2.5%   97.5%
    mu[intercept]    3.0844   0.35115   2.3962  3.7727
    sd[intercept]    2.1848   0.25564   1.7371   2.748
    sigma           0.97622  0.048811  0.88509  1.0767
    restricted log-likelihood -403.110, AIC 812.2, BIC 822.7, df 3
    estimated from data

    With a formula, profile intervals, one task, and a new one:

    >>> sleep = bm.load_data("sleepstudy")
    >>> fit = bm.fit(sleep, "Reaction ~ Days + (Days | Subject)")
    >>> fit.confint("profile").loc["sd[Days]"].round(2).tolist()
    [3.8, 8.75]
    >>> fit.tasks().loc[308, "estimate"].round(1).tolist()
    [253.7, 19.7]
    >>> fit.predict(pd.DataFrame({"Days": [9.0]})).round(0)["mean"].tolist()
    [346.0]
    """
    one_of("method", method, (*KNOWN, "posterior"))
    given = {name: options.pop(name) for name in _own(method) if name in options}
    _check_options(method, options)
    design = _design(source, formula, options)
    noise = design.noise_sd if noise_sd is None else noise_sd
    if design.noise_sd is not None and noise_sd is not None:
        raise InputError("the variances of rows are known, so noise_sd must not be given")
    checked_level(level)
    if method == "posterior":
        from bayesmeta.fitted.posterior import FittedPosterior
        from bayesmeta.posterior.sampling import sample_posterior

        tree = sample_posterior(design.stats, noise, **({"rows": design.rows} | given))
        return FittedPosterior(design, tree, level)
    found = fit_prior(design.stats, noise, method, **given)
    return FittedPrior(design, found, method, noise, level)


def _own(method: str) -> list[str]:
    """The options of a method, which are not those of a table."""
    if method != "posterior":
        return list(OPTIONS)
    from bayesmeta.posterior.sampling import sample_posterior

    names = signature(sample_posterior).parameters
    return [name for name in names if name not in ("stats", "noise_sd", "method")]


def _check_options(method: str, options: dict[str, Any]) -> None:
    """Refuse an option that neither a table nor the method has."""
    table = list(signature(tabulate).parameters)[2:]
    for name in (name for name in options if name not in table):
        if method != "posterior" and name in _own("posterior"):
            raise InputError(
                f'unknown option {name!r} of {method}; it needs method="posterior", which draws'
            )
        if method == "posterior" and name in OPTIONS:
            raise InputError(f"unknown option {name!r} of posterior; estimates have it, as of reml")
        one_of("option", name, ["method", "noise_sd", "level", *table, *_own(method)])


def _design(source: Any, formula: str | None, options: dict[str, Any]) -> Design:
    """What a source says; options are those of a table."""
    if not isinstance(source, (Design, TaskStatistics)):
        return tabulate(source, formula, **options)
    if formula is not None or options:
        named = "formula" if formula is not None else next(iter(options))
        raise InputError(
            f"{named} describes a table, but source is a {type(source).__name__}: leave it out"
        )
    return source if isinstance(source, Design) else of_statistics(source)


def of_statistics(stats: TaskStatistics) -> Design:
    """A design without a table: predictions take columns named as the features are."""
    import numpy as np

    from bayesmeta.columns import numbers

    def matrix(frame: DataFrame) -> Array:
        lacking = [name for name in stats.feature_labels if name not in frame.columns]
        if lacking:
            raise InputError(f"there is no column {lacking[0]!r}, a feature; add it")
        return np.column_stack([numbers(frame, name) for name in stats.feature_labels])

    return Design(stats, "task", "reward", matrix)
