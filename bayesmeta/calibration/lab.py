"""The calibration lab: how good is an estimator, in your setting?"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.agents.agent import Agent
from bayesmeta.agents.exploration import Exploration
from bayesmeta.calibration.answers import Estimator, checked_estimators
from bayesmeta.calibration.cell import Lab, replicate
from bayesmeta.calibration.intervals import RADII, checked_kinds, judges_of
from bayesmeta.calibration.regret import TASKS as NEXT_TASKS
from bayesmeta.calibration.scenarios import scenarios_of
from bayesmeta.calibration.worlds import PRIORS
from bayesmeta.checks import InputError, real, whole
from bayesmeta.environment import TaskFamily
from bayesmeta.estimators.estimate import PriorEstimate
from bayesmeta.fitted.quantities import checked_level
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.posterior.priors import Prior
from bayesmeta.runner.collect import collect
from bayesmeta.runner.run import Bar, run_study
from bayesmeta.runner.study import Study, grid
from bayesmeta.statistics import TaskStatistics

if TYPE_CHECKING:
    import xarray as xr

LEVELS = (0.5, 0.8, 0.9, 0.95)
TASKS = 100
"""Of a family, where no number is asked for."""
type Way = Exploration | Agent | str | None
"""In which data come about."""


def calibrate(
    where: TaskFamily | TaskStatistics,
    *,
    tasks: int | Iterable[int] | None = None,
    estimators: Estimator | Iterable[Estimator] | Mapping[str, Estimator] = ("moment", "reml"),
    intervals: str | Iterable[str] | None = None,
    levels: float | Iterable[float] = LEVELS,
    replications: int = 200,
    explore: Way | Iterable[Way] | Mapping[str, Way] = None,
    truth: GaussianPrior | PriorEstimate | Prior | None = None,
    noise_sd: float | str | None = None,
    wrong: str | Iterable[str] | None = None,
    regret: bool | int = False,
    random_seed: int = 0,
    jobs: int | None = None,
    folder: Path | str | None = None,
    progressbar: bool | Bar = False,
    **workers: Any,
) -> xr.Dataset:
    """Draw data again and again, let every estimator answer, and compare with the truth.

    All estimators see the same data. ``measures`` sums up what this returns.

    Parameters
    ----------
    where : TaskFamily or TaskStatistics
        Simulated tasks; or one's own: their designs are kept, coefficients and noise drawn anew.
    tasks : int or list of int, optional
        How many an estimator gets; by default 100 of a family, all of a table. Other numbers than
        a table has are drawn from its designs with replacement.
    estimators : list, or dict from names
        Methods of ``fit_prior`` (``"moment"``, ``"reml"``, … and ``"moment-widened(10)"`` with its
        c_w), ``"posterior"`` (under ``default_prior``, or under ``truth`` where that is a prior
        over priors), an ``LKJ`` or ``InverseWishart`` (the posterior under it), or a function of
        (stats, noise_sd) that returns a ``PriorEstimate``, a ``GaussianPrior`` or an
        ``EstimateWithIntervals``. What fails is counted in ``failed``, and ``problem`` says why.
    intervals : str or list of str, optional
        ``"wald"`` (standard deviations on the log scale, correlations by Fisher's z),
        ``"wald-natural"``, ``"profile"`` (not of covariances) and ``"bootstrap"`` of estimates;
        ``"radii"`` of ``moment`` and ``moment-widened``, the paper's events E_m and E_s at each
        level, where E_v holds; ``"central"`` and ``"hdi"`` of posteriors. An estimator that has
        none of those named is judged by its usual ones, Wald or central.
    levels : list of float
        Probabilities of intervals.
    replications : int
        How often data are drawn, for each number of tasks.
    explore : Exploration, Agent or str, or a list or dict of them, optional
        How the data of a family come about: by the opening exploration of each task, or by all
        steps of an agent, given as a row or by name. By default all steps explore. Several are
        judged side by side, along a dimension ``data``.
    truth : GaussianPrior, PriorEstimate, LKJ or InverseWishart, optional
        What thetas are drawn from: the family's own prior, or the fit of a table by REML, where
        None. A prior over priors gives a new truth each time, and ``rank`` of it among the draws
        of posteriors. An agent that knows the truth would tell it by its actions.
    noise_sd : float or str, optional
        What estimators are told of the noise: ``"known"`` (the default of a family), ``"estimate"``
        (of a table), or a number, right or wrong.
    wrong : str or list of str, optional
        How the model is wrong: ``"heavy-tailed theta"`` (t with 5 degrees of freedom),
        ``"clustered theta"`` (two clusters), ``"skewed theta"`` (exponential), all with the mean
        and covariance of the truth; ``"heavy-tailed noise"`` (t with 5, of a family only),
        ``"unequal noise"`` (twice the standard deviation in every other task, by chance), of the
        right variance on average; ``"noise told too small"`` or ``"… too large"``, by 20%, where
        ``noise_sd`` is ``"known"``. Several, among them ``"nothing"``, are judged side by side,
        along a dimension ``wrong``.
    regret : bool or int
        Whether Thompson Sampling plays next tasks of a family with every estimated prior, and how
        many (20).
    random_seed : int
        Seed; each replication has its own, made of this, its number and ``tasks``.
    jobs, folder, progressbar, **workers
        As in ``run_study``: with a folder the lab goes on where it was stopped.

    Returns
    -------
    xarray.Dataset
        By tasks, replication and estimator: ``estimate``, ``error`` (the standard error it
        claims), ``low`` and ``high`` of every quantity, beside its ``truth``; ``mean_error`` and
        ``cov_error``, the norm of mu's error and the operator norm of Sigma's, and with radii
        ``mean_radius`` and ``cov_radius``; ``dominates``, whether Sigma is at least the true one;
        ``not_positive_definite``, ``singular`` and ``failed``; ``divergent``, the share of a
        posterior's draws that diverged; and of the next task's theta
        ``inside``, the share of 20 of them in the forecast's ellipsoids, ``next_width``, ``pit``,
        ``pit_distance``, ``log_score`` and ``energy_score``. The forecast is N(mean, Sigma), with
        the covariance of the mean added where the estimate states it (as moments, likelihood and
        split do); that of a posterior is by its draws. With ``regret``, the mean
        ``relative_regret`` of next tasks, over that with the true prior, ``known_regret``: tasks,
        noise and the agent's randomness are the same.

    See Also
    --------
    measures : Bias, coverage, width and scores, with their Monte-Carlo errors.

    Examples
    --------
    >>> family = bm.paper_family(dim=2, horizon=50)
    >>> lab = bm.calibrate(family, tasks=40, estimators=["moment", "reml"], replications=20, jobs=1)
    >>> lab.estimate.dims
    ('tasks', 'replication', 'estimator', 'quantity')
    >>> bm.measures(lab).coverage.sel(level=0.95, quantity="mu[x1]").shape
    (1, 2)
    """
    found = checked_estimators(estimators)
    halved = "split" in found.values()
    if noise_sd is None:
        noise_sd = "known" if isinstance(where, TaskFamily) else "estimate"
    told, kinds, playing = _noise(noise_sd), checked_kinds(intervals), _regret(regret, where)
    if RADII in (kinds or ()) and not isinstance(where, TaskFamily):
        raise InputError("intervals='radii' needs the bounds of a TaskFamily; a table has none")
    scenarios = scenarios_of(where, explore, wrong, truth, told, halved)
    own = scenarios.first.truth.prior
    if isinstance(own, PRIORS):  # the posterior is the one of this prior
        found = {name: own if one == "posterior" else one for name, one in found.items()}
    lab = Lab(scenarios, found, judges_of(found, kinds), _levels(levels), told, playing)
    study = Study(
        "calibrate",
        grid(
            tasks=_numbers(tasks, where),
            replication=range(whole("replications", replications, least=1)),
        ),
        replicate,
        random_seed=random_seed,
        dims=("tasks", "replication"),
        shared={"lab": lab},
    )
    report = run_study(study, folder, jobs=jobs, progressbar=progressbar, **workers)
    if report.failures:
        first = report.failures[0]
        raise InputError(
            f"{report.failed} of {report.total} replications gave no result; the first, "
            f"{first.id}: {first.error}"
        )
    return _described(collect(study, report), lab)


def _described(data: xr.Dataset, lab: Lab) -> xr.Dataset:
    """With estimators' intervals as a coordinate, and why some failed in the attributes."""
    kinds = [kind for _, kind in lab.judges.values()]
    data = data.assign_coords(interval=("estimator", kinds))
    said: dict[str, dict[str, int]] = {}
    for label in data.estimator.values:
        texts = data.problem.sel(estimator=label).values.ravel()
        some, counts = np.unique([text for text in texts if text], return_counts=True)
        if len(some):
            said[str(label)] = {
                str(text): int(count)
                for text, count in sorted(zip(some, counts, strict=True), key=lambda x: -x[1])[:5]
            }
    if bool((data.failed == 1).all()):
        first = next(iter(next(iter(said.values()))))
        raise InputError(f"every estimator failed in every replication: {first}")
    return data.assign_attrs(problems=json.dumps(said))


def _numbers(tasks: int | Iterable[int] | None, where: object) -> list[int]:
    if tasks is None:
        tasks = len(where) if isinstance(where, TaskStatistics) else TASKS
    several = _several(tasks)
    if not several:
        raise InputError("tasks is empty; give a number of tasks, or several")
    return [whole("tasks", one, least=2) for one in several]


def _several(given: object) -> list[Any]:
    """What is given, as a list; a text is one thing."""
    one = isinstance(given, str) or not isinstance(given, Iterable)
    return [given] if one else list(given)  # type: ignore[call-overload]


def _regret(regret: bool | int, where: object) -> int:
    """Next tasks that are played."""
    if regret is False:
        return 0
    if not isinstance(where, TaskFamily):
        raise InputError("regret is of tasks of a TaskFamily; a table's cannot be played")
    return NEXT_TASKS if regret is True else whole("regret", regret, least=1)


def _levels(levels: float | Iterable[float]) -> tuple[float, ...]:
    several = _several(levels)
    if not several:
        raise InputError("levels is empty; give at least one, such as 0.95")
    return tuple(sorted({checked_level(level) for level in several}))


def _noise(noise_sd: float | str) -> float | str:
    if noise_sd in ("known", "estimate"):
        return noise_sd
    if isinstance(noise_sd, str):
        raise InputError(f"noise_sd must be 'known', 'estimate' or a number, got {noise_sd!r}")
    return real("noise_sd", noise_sd, above=0.0)
