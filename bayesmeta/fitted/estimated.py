"""An estimated prior: its numbers with their errors, its likelihood, and what to say of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from bayesmeta.checks import Advice, Argument, Array
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.estimators.origin import origin_note
from bayesmeta.fitted import wald
from bayesmeta.fitted.quantities import Quantities
from bayesmeta.fitted.tasks import SINGULAR
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.statistics import TaskStatistics
from bayesmeta.tables.design import Design


@dataclass(frozen=True, eq=False, repr=False)
class Estimated:
    """The part of ``FittedPrior`` that computes nothing new: what was estimated, and its errors."""

    design: Design
    estimate: PriorEstimate
    method: str
    noise_sd: float | None = None
    level: float = 0.95

    @property
    def stats(self) -> TaskStatistics:
        """The statistics of the tasks."""
        return self.design.stats

    @property
    def prior(self) -> GaussianPrior:
        """N(mu, Sigma)."""
        return self.estimate.prior

    @property
    def quantities(self) -> Quantities:
        """What the summary lists; the noise where it was estimated."""
        noisy = self.noise_sd is None and self.estimate.noise_sd is not None
        return Quantities.of(self.stats, noisy)

    @property
    def conditional(self) -> bool:
        """Whether intervals of tasks are conditional on a singular estimate of Sigma."""
        return self.estimate.status in SINGULAR

    @property
    def known_rows(self) -> bool:
        """Whether the variance of every row is known."""
        return self.stats.log_weights is not None and self.noise_sd == 1.0

    @property
    def loglik(self) -> float | None:
        """The log-likelihood, restricted where the fit is."""
        return self.estimate.log_likelihood

    @property
    def nobs(self) -> int | None:
        """Rows."""
        return None if self.stats.count is None else int(self.stats.count.sum())

    @property
    def df(self) -> int:
        """Parameters, as lme4 counts them: the mean, the entries of Sigma, the noise."""
        q = len(self.quantities.vary)
        return self.stats.dim + q * (q + 1) // 2 + self.quantities.noisy

    @property
    def aic(self) -> float | None:
        """Twice the parameters less twice the log-likelihood."""
        return None if self.loglik is None else 2.0 * self.df - 2 * self.loglik

    @property
    def bic(self) -> float | None:
        """The same with the logarithm of the rows in place of 2."""
        if self.loglik is None or not self.nobs:
            return None
        return math.log(self.nobs) * self.df - 2 * self.loglik

    @property
    def title(self) -> str:
        """The headline of its tables."""
        rows = "" if self.nobs is None else f", {self.nobs} rows"
        return f"The prior by {self.method} ({len(self.stats)} tasks{rows})"

    @property
    def likelihood_line(self) -> str:
        """The log-likelihood with AIC and BIC, which are there where it is."""
        kind = "restricted log-likelihood" if self.method == "reml" else "log-likelihood"
        return f"{kind} {self.loglik:.3f}, AIC {self.aic:.1f}, BIC {self.bic:.1f}, df {self.df}"

    @property
    def noise_line(self) -> str:
        """The noise where it was given, so that it is not in the table; otherwise nothing."""
        if self.quantities.noisy or self.estimate.noise_sd is None:
            return ""
        if self.known_rows:
            return "noise: known for each row"
        return f"noise_sd {self.estimate.noise_sd:.6g}, given"

    @property
    def notes(self) -> list[str]:
        """What one should know of this fit."""
        found = [str(self.estimate.status.advice), *self.design.notes]
        if self.conditional:
            found.append(
                "intervals of tasks are conditional on a covariance that is singular or not "
                'determined, and too short; a posterior (method="posterior") includes what is '
                "missing, a bootstrap a part of it"
            )
        if said := self.no_wald:
            found.append(said)
        if self.estimate.passed_over:
            found.append(
                f"{self.estimate.passed_over} tasks were passed over, which do not determine all "
                "features by themselves (ml and reml use them)"
            )
        origin = origin_note(self.stats, self.estimate) if self.estimate.usable else ""
        return [*found, origin] if origin else found

    @property
    def without_wald(self) -> list[str]:
        """Quantities that have no Wald interval: the rule is that of ``wald.lacking``."""
        none = wald.lacking(self.values(), self.errors(), self.quantities)
        return [name for name, one in zip(self.quantities.names, none, strict=True) if one]

    @property
    def no_wald(self) -> str:
        """Which quantities have no Wald interval, and what to use; empty where all have one."""
        names = self.without_wald
        if not names:
            return ""
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        said = ", ".join(names[:3]) + more
        if self.estimate.status is Status.NOT_IDENTIFIED:
            return f"no Wald interval of {said}, as the data do not determine Sigma"
        likely = self.method in ("ml", "reml")
        reason = (
            "it or its standard deviation is on the boundary, or has an error above 1 on the scale "
            "of its interval"
        )
        way = "profile" if likely else "bootstrap"
        return Advice(
            "no Wald interval of {names} ({reason}): use {way}",
            reason=reason if likely else "this method states no errors of them",
            names=said,
            way=Argument(f"confint({way!r})"),
        )

    def values(self) -> Array:
        """The estimates of all quantities."""
        noise = self.estimate.noise_sd or math.nan
        return self.quantities.values(self.prior.mean, self.prior.cov, noise)

    def errors(self) -> Array:
        """Their standard errors; NaN where there is none."""
        return self._errors.copy()

    @cached_property
    def _errors(self) -> Array:
        """Computed once: the summary, the notes and Wald's intervals need them."""
        restricted = {"reml": True, "ml": False}.get(self.method)
        return wald.errors(self.stats, self.estimate, self.quantities, restricted)
