"""A prior that was fitted to a table, with all that one asks of a fitted model."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesmeta.checks import Array, InputError, one_of
from bayesmeta.display import html_table
from bayesmeta.fitted import wald
from bayesmeta.fitted.bootstrap import Drawn, basic, bootstrap, percentiles
from bayesmeta.fitted.estimated import Estimated
from bayesmeta.fitted.profile import profile_intervals
from bayesmeta.fitted.quantities import checked_level
from bayesmeta.fitted.rows import asked_rows
from bayesmeta.fitted.tables import summary_rows, text_of
from bayesmeta.fitted.tasks import (
    Moments,
    around,
    given_prior,
    new_prior,
    normal_columns,
    tasks_frame,
    with_ends,
)

if TYPE_CHECKING:
    from pandas import DataFrame

INTERVALS = ("wald", "profile", "bootstrap", "basic")
UNCERTAINTY = ("mean", "bootstrap", "none")
"""What of (mu, Sigma, sigma) is in intervals of tasks and predictions."""
REPLICATIONS = 500
"""Of the bootstrap."""


@dataclass(frozen=True, eq=False, repr=False)
class FittedPrior(Estimated):
    """A prior estimated from a table: what ``bm.fit`` returns.

    Parameters
    ----------
    design : Design
        The table it was fitted to.
    estimate : PriorEstimate
        The prior, and how it came about.
    method : str
        How it was estimated.
    noise_sd : float, optional
        The noise where it was given.
    level : float
        Of intervals, where none is asked for.

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> shop = np.arange(30).repeat(5)
    >>> price = rng.uniform(1, 2, size=150)
    >>> sales = 5 + rng.normal(-1, 1, 30)[shop] * price + rng.normal(0, 0.5, 150)
    >>> frame = pd.DataFrame({"shop": shop, "price": price, "sales": sales})
    >>> fit = bm.fit(frame, task="shop", reward="sales", features=["price"], intercept=True)
    >>> fit.summary().loc["mu[price]"].round(2).tolist()
    [-0.83, 0.2, -1.22, -0.44]
    >>> fit.predict(pd.DataFrame({"price": [1.5]})).round(1)  # of a new shop
       mean   sd  low  high  conditional
    0   3.3  1.4  0.5   6.1        False
    """

    def summary(self, level: float | None = None) -> DataFrame:
        """Estimates, standard errors and Wald intervals of means, standard deviations, correlations
        and noise.

        Parameters
        ----------
        level : float, optional
            Of the intervals; that of the fit where None.

        Returns
        -------
        pandas.DataFrame
            Columns estimate, error (the standard error, "s.e." in the tables of
            ``bayesmeta fit``), low, high; low and high are NaN where there is no Wald interval
            (the error exceeds the estimate of a standard deviation, a correlation is close to +-1,
            Sigma is singular), and ``notes`` says so.
        """
        import pandas as pd

        level = checked_level(self.level if level is None else level)
        values, errors = self.values(), self.errors()
        low, high = wald.interval(values, errors, self.quantities, level)
        index = pd.Index(self.quantities.names, name="quantity")
        columns = {"estimate": values, "error": errors, "low": low, "high": high}
        return pd.DataFrame(columns, index=index)

    def confint(
        self,
        method: str = "wald",
        level: float | None = None,
        *,
        random_seed: int = 0,
        replications: int = REPLICATIONS,
    ) -> DataFrame:
        """Confidence intervals of means, standard deviations, correlations and noise.

        Parameters
        ----------
        method : str
            ``"wald"``
                by standard errors: of standard deviations and the noise on the log scale, of
                correlations by Fisher's z; NaN where the error exceeds 1 on that scale (that of a
                standard deviation exceeds its estimate), or Sigma is singular
            ``"profile"``
                where twice the log-likelihood, all else at its best, is below its largest by a
                quantile of chi-squared; as in lme4 that of maximum likelihood, also after REML
            ``"bootstrap"``, ``"basic"``
                percentiles of estimates from data drawn from the fit, or these reflected
        level : float, optional
            Their probability; that of the fit where None.
        random_seed, replications : int
            Of the bootstrap.

        Returns
        -------
        pandas.DataFrame
            Columns low and high; ``attrs`` has method, level and failed replications.
        """
        import pandas as pd

        one_of("method", method, INTERVALS)
        level = checked_level(self.level if level is None else level)
        failed = 0
        if method == "wald":
            low, high = wald.interval(self.values(), self.errors(), self.quantities, level)
        elif method == "profile":
            if self.method not in ("ml", "reml"):
                raise InputError(f"profile intervals are of ml and reml, not of {self.method!r}")
            low, high = profile_intervals(self.stats, self.estimate, self.quantities, level)
        else:
            drawn = self.redrawn(replications, random_seed)
            draws, failed = self.quantities.values(drawn.mean, drawn.cov, drawn.noise), drawn.failed
            low, high = percentiles(draws, level)
            if method == "basic":
                low, high = basic(draws, self.values(), level)
        index = pd.Index(self.quantities.names, name="quantity")
        found = pd.DataFrame({"low": low, "high": high}, index=index)
        found.attrs |= {"method": method, "level": level, "failed": failed}
        return found

    def redrawn(self, replications: int = REPLICATIONS, random_seed: int = 0) -> Drawn:
        """Estimates from data drawn from this fit."""
        return bootstrap(
            self.stats, self.estimate, self.method, self.noise_sd, replications, random_seed
        )

    def tasks(
        self,
        level: float | None = None,
        uncertainty: str = "mean",
        *,
        fixed: bool = False,
        random_seed: int = 0,
        replications: int = 200,
    ) -> DataFrame:
        """Every task's coefficients given its data.

        Parameters
        ----------
        level : float, optional
            Of the intervals; that of the fit where None.
        uncertainty : str
            ``"mean"``: that of mu is included, exactly; ``"bootstrap"``: that of Sigma and the
            noise, too, as far as data drawn from the estimate show it; ``"none"``: as if the prior
            were known.
        fixed : bool
            Whether to list coefficients that are the same in all tasks, too; ``summary`` has them
            as ``mu``.
        random_seed, replications : int
            Of the bootstrap.

        Returns
        -------
        pandas.DataFrame
            A row for every task and feature; columns estimate, sd, low, high, and conditional,
            which is true where the estimated Sigma is singular: such intervals are too short. A
            bootstrap draws from the singular estimate itself, and so shows a part of the
            uncertainty only; the mark stays. A posterior (``method="posterior"``) has all of it.
        """
        one_of("uncertainty", uncertainty, UNCERTAINTY)
        level = checked_level(self.level if level is None else level)
        gram, moment = self.stats.gram, self.stats.moment
        found = self.moments(gram, moment, uncertainty != "none")
        if uncertainty == "bootstrap":
            found = around(found.mean, self.redrawn(replications, random_seed), gram, moment)
        columns = normal_columns(found, level)
        made = tasks_frame(self.stats, columns, fixed, self.conditional)
        made.attrs |= {"level": level, "uncertainty": uncertainty}
        return made

    def moments(self, gram: Array, moment: Array, mean: bool = True, new: bool = False) -> Moments:
        """Of the coefficients of tasks with these statistics, which were fitted or are ``new``."""
        if not self.estimate.usable:
            raise InputError(f"this estimate is no prior: {self.estimate.status.advice}")
        if self.estimate.noise_sd is None:
            raise InputError("this estimate has no noise_sd (split does not need it)")
        doubt = self.estimate.mean_cov if mean else None
        told = new_prior if new else given_prior
        return told(self.prior, doubt, gram, moment, self.estimate.noise_sd)

    def predict(
        self,
        new: object,
        task: Hashable | None = None,
        *,
        given: object = None,
        level: float | None = None,
        rewards: bool = False,
        uncertainty: str = "mean",
        random_seed: int = 0,
        replications: int = 200,
    ) -> DataFrame:
        """Predict the mean rewards, or rewards, of rows.

        Parameters
        ----------
        new : pandas.DataFrame or array_like, shape (rows, d)
            A table with the columns that were fitted, or features. Where it has the column of the
            tasks, each row is of the task named there (308.0 and "308" are 308); a label that was
            not there is a new task, with a ``NewTaskWarning``.
        task : hashable, optional
            The task of all rows, one of those that were fitted.
        given : pandas.DataFrame, optional
            Rows that new tasks have of their own, with their rewards. Where both tables have the
            column of the tasks, rows of ``new`` are predicted from those with their label; a label
            that was fitted is refused here. Otherwise all are of one new task.
        level : float, optional
            Of the intervals; that of the fit where None.
        rewards : bool
            Whether to predict rewards, with their noise, instead of their means.
        uncertainty : str
            As ``tasks`` has it: that of mu is included, or with ``"bootstrap"`` that of Sigma and
            the noise, too, or ``"none"``.
        random_seed, replications : int
            Of the bootstrap.

        Returns
        -------
        pandas.DataFrame
            Columns mean, sd, low, high, and conditional, as ``tasks`` has it: true where the
            estimated Sigma is singular, so that intervals are too short.
        """
        import pandas as pd

        one_of("uncertainty", uncertainty, UNCERTAINTY)
        level = checked_level(self.level if level is None else level)
        rows = asked_rows(self.design, new, task, rewards, given)
        doubt, sums = uncertainty != "none", (self.stats, rows.others)
        found = [self.moments(one.gram, one.moment, doubt, one is rows.others) for one in sums]
        if uncertainty == "bootstrap":
            drawn = self.redrawn(replications, random_seed)
            found = [
                around(own.mean, drawn, one.gram, one.moment)
                for own, one in zip(found, sums, strict=True)
            ]
        mean, cov = (np.concatenate(both) for both in zip(*found, strict=True))
        where = rows.task
        centre = np.einsum("ri,ri->r", rows.features, mean[where])
        variance = np.einsum("ri,rij,rj->r", rows.features, cov[where], rows.features)
        if rewards:
            variance = variance + float(self.estimate.noise_sd or 0.0) ** 2 / rows.weights
        sd = np.sqrt(np.maximum(variance, 0.0))
        columns = with_ends(centre, sd, level)
        return pd.DataFrame({**columns, "conditional": self.conditional}, index=rows.labels)

    def _shown(self) -> tuple[str, list[list[str]], list[str]]:
        """Headline, table and lines below it."""
        below = [self.likelihood_line] if self.loglik is not None else []
        if said := self.noise_line:
            below.append(said)
        return self.title, summary_rows(self.summary(), self.level), below + self.notes

    def __repr__(self) -> str:
        title, rows, below = self._shown()
        return text_of(title, rows, below)

    def _repr_html_(self) -> str:
        title, rows, below = self._shown()
        return html_table(title, rows, "; ".join(below))
