"""A posterior of the prior, with the same methods as a fitted prior."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bayesmeta.checks import Array, one_of
from bayesmeta.display import html_table
from bayesmeta.fitted.quantities import Quantities, checked_level
from bayesmeta.fitted.rows import asked_rows
from bayesmeta.fitted.tables import posterior_title, summary_rows, text_of
from bayesmeta.fitted.tasks import tasks_frame
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.posterior.centring import centred_in_words
from bayesmeta.posterior.diagnostics import trustworthy
from bayesmeta.posterior.mixture import TaskMixtures, mixed, of_tasks
from bayesmeta.posterior.reweighted import shares_given
from bayesmeta.posterior.tree import read
from bayesmeta.statistics import TaskStatistics
from bayesmeta.tables.design import Design

if TYPE_CHECKING:
    import xarray as xr
    from pandas import DataFrame


@dataclass(frozen=True, eq=False, repr=False)
class FittedPosterior:
    """Draws of the prior given a table: what ``bm.fit(…, method="posterior")`` returns.

    Parameters
    ----------
    design : Design
        The table it was fitted to.
    tree : xarray.DataTree
        As ``sample_posterior`` returns it, for ArviZ.
    level : float
        Of intervals, where none is asked for.

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"shop": np.arange(40).repeat(6), "y": rng.normal(3, 1, 240)})
    >>> frame["y"] += rng.normal(0, 2, 40).repeat(6)
    >>> fit = bm.fit(frame, task="shop", reward="y", intercept=True, method="posterior")
    >>> fit.summary()["estimate"].round(1).tolist()
    [3.1, 2.2, 1.0]
    """

    design: Design
    tree: xr.DataTree
    level: float = 0.95

    @property
    def stats(self) -> TaskStatistics:
        """The statistics of the tasks."""
        return self.design.stats

    @property
    def nobs(self) -> int | None:
        """Rows."""
        return None if self.stats.count is None else int(self.stats.count.sum())

    @property
    def quantities(self) -> Quantities:
        """What the summary lists; the noise where it was drawn."""
        return Quantities.of(self.stats, "sigma" in self.tree["posterior"].to_dataset())

    @property
    def prior(self) -> GaussianPrior:
        """N(mu, Sigma) with the posterior means of both."""
        mean, cov, _ = self._draws()
        return GaussianPrior(mean.mean(axis=0), cov.mean(axis=0))

    @property
    def prior_sd(self) -> tuple[Array, Array]:
        """Standard deviations, over the draws, of mu (d,) and of the entries of Sigma (d, d); NaN
        where there is one draw only."""
        mean, cov, _ = self._draws()
        return _sd(mean), _sd(cov)

    @cached_property
    def task_mixtures(self) -> TaskMixtures:
        """Mean and standard deviation of every task's coefficients, without the ends of intervals,
        which ``tasks`` has and which take most of its time; computed once."""
        return of_tasks(self.tree)

    @property
    def notes(self) -> list[str]:
        """Whether the draws can be trusted, and what the prior is about where features were
        centred."""
        trust = trustworthy(self.tree)
        failed = [f"not to be trusted: {c.name}: {c.advice}" for c in trust.failed]
        centred = centred_in_words(self.tree).split("\n")
        told = [*(failed or ["the draws pass every check"]), *centred, *self.design.notes]
        return [one for one in told if one]

    def _draws(self) -> tuple[Array, Array, Array]:
        """Means (s, d), covariances (s, d, d) and noises (s,), all chains after each other."""
        posterior = self.tree["posterior"].to_dataset()
        mu = posterior["mu"].transpose("chain", "draw", ...).values
        cov = posterior["Sigma"].transpose("chain", "draw", ...).values
        d, r = mu.shape[-1], cov.shape[-1]
        mean, part = mu.reshape(-1, d), cov.reshape(-1, r, r)
        cov = np.zeros((len(mean), d, d))  # it may be kept without the features that do not vary
        vary = np.arange(d) if r == d else np.flatnonzero(self.stats.differs)
        cov[:, vary[:, None], vary] = part
        if "sigma" in posterior:
            return mean, cov, posterior["sigma"].values.ravel()
        return mean, cov, np.full(len(mean), float(self.tree.attrs["noise_sd"]))

    def _quantity_draws(self) -> Array:
        """(chains, draws, quantities)."""
        sizes = self.tree["posterior"].to_dataset().sizes
        found = self.quantities.values(*self._draws())
        return found.reshape(sizes["chain"], sizes["draw"], -1)

    def summary(self, level: float | None = None) -> DataFrame:
        """Means, standard deviations, intervals of equal tails, effective sample sizes and R-hat
        of the draws of means, standard deviations, correlations and noise.

        Parameters
        ----------
        level : float, optional
            Of the intervals; that of the fit where None.

        Returns
        -------
        pandas.DataFrame
            Columns estimate, error, low, high, ess and rhat.
        """
        import arviz_stats as azs
        import pandas as pd
        import xarray as xr

        level = checked_level(self.level if level is None else level)
        draws = self._quantity_draws()
        flat = draws.reshape(-1, draws.shape[-1])
        low, high = np.quantile(flat, [(1 - level) / 2, (1 + level) / 2], axis=0)
        each = [xr.DataArray(draws[..., k], dims=("chain", "draw")) for k in range(draws.shape[-1])]
        several = draws.shape[0] > 1
        columns = {
            "estimate": flat.mean(axis=0),
            "error": _sd(flat),
            "low": low,
            "high": high,
            "ess": [float(azs.ess(one)) for one in each],
            "rhat": [float(azs.rhat(one)) if several else np.nan for one in each],
        }
        return pd.DataFrame(columns, index=pd.Index(self.quantities.names, name="quantity"))

    def confint(self, method: str = "eti", level: float | None = None) -> DataFrame:
        """Posterior intervals of means, standard deviations, correlations and noise.

        Parameters
        ----------
        method : str
            ``"eti"``: of equal tails; ``"hdi"``: the shortest.
        level : float, optional
            Their probability; that of the fit where None.

        Returns
        -------
        pandas.DataFrame
            Columns low and high.
        """
        import pandas as pd

        one_of("method", method, ("eti", "hdi"))
        level = checked_level(self.level if level is None else level)
        draws = self._quantity_draws()
        flat = draws.reshape(-1, draws.shape[-1])
        if method == "eti":
            low, high = np.quantile(flat, [(1 - level) / 2, (1 + level) / 2], axis=0)
        else:
            import arviz_stats as azs
            import xarray as xr

            named = xr.DataArray(draws, dims=("chain", "draw", "quantity"))
            low, high = azs.hdi(named, prob=level).transpose("ci_bound", "quantity").values
        index = pd.Index(self.quantities.names, name="quantity")
        found = pd.DataFrame({"low": low, "high": high}, index=index)
        found.attrs |= {"method": method, "level": level}
        return found

    def tasks(self, level: float | None = None, *, fixed: bool = False) -> DataFrame:
        """Every task's coefficients given all data; the uncertainty of the prior is included.

        Parameters
        ----------
        level : float, optional
            Of the intervals, whose tails are equal; that of the fit where None.
        fixed : bool
            Whether to list coefficients that are the same in all tasks, too; ``summary`` has them
            as ``mu``.

        Returns
        -------
        pandas.DataFrame
            A row for every task and feature; columns estimate, sd, low, high, and conditional,
            which is false. All are of the average over drawn priors of what each says of a task, a
            normal distribution: exact given these draws, as ``bayesmeta sample`` prints them.
            Above 20 million tasks times draws, of some draws only, evenly spaced;
            ``attrs["draws"]`` is their number.
        """
        level = checked_level(self.level if level is None else level)
        found = of_tasks(self.tree, level)
        made = tasks_frame(self.stats, found.mixed._asdict(), fixed, conditional=False)
        made.attrs |= {"level": level, "draws": found.draws}
        return made

    def predict(
        self,
        new: object,
        task: Hashable | None = None,
        *,
        given: object = None,
        level: float | None = None,
        rewards: bool = False,
    ) -> DataFrame:
        """Predict the mean rewards, or rewards, of rows, with all uncertainty included.

        Parameters
        ----------
        new, task, given, level, rewards
            As ``FittedPrior.predict`` has them.

        Returns
        -------
        pandas.DataFrame
            Columns mean, sd, low and high, exact given the drawn priors, and conditional, which
            is false. All rows of ``given`` move the prior: its draws count by their likelihood of
            these rows. Where few of them do, a ``FewDrawsWarning`` says so.
        """
        import pandas as pd

        level = checked_level(self.level if level is None else level)
        rows = asked_rows(self.design, new, task, rewards, given)
        used, local = np.unique(rows.task, return_inverse=True)
        stats = TaskStatistics.trusted(
            np.concatenate([self.stats.gram, rows.others.gram])[used],
            np.concatenate([self.stats.moment, rows.others.moment])[used],
        )
        weights = rows.weights if rewards else None
        parts = None if given is None else shares_given(self.tree, rows.others)
        columns = mixed(read(self.tree, stats=stats), local, rows.features, level, weights, parts)
        return pd.DataFrame({**columns._asdict(), "conditional": False}, index=rows.labels)

    def _shown(self) -> tuple[str, list[list[str]], list[str]]:
        """Headline, table and lines below it."""
        sizes = self.tree["posterior"].to_dataset().sizes
        title = posterior_title(len(self.stats), sizes)
        return title, summary_rows(self.summary(), self.level), self.notes

    def __repr__(self) -> str:
        title, rows, below = self._shown()
        return text_of(title, rows, below)

    def _repr_html_(self) -> str:
        title, rows, below = self._shown()
        return html_table(title, rows, "; ".join(below))


def _sd(draws: Array) -> Array:
    """Standard deviations over draws, along the first axis; NaN for a single one."""
    if len(draws) == 1:
        return np.full(draws.shape[1:], np.nan)
    found: Array = draws.std(axis=0, ddof=1)
    return found
