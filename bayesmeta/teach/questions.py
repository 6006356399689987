"""Seven questions for a class; their answers are computed when they are opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bayesmeta.teach.setup import Setup
from bayesmeta.teach.world import METHODS, NEXT, Cloud, cloud, compare, playable, prior_of, regrets

SETS = 40
"""Data sets over which an answer counts or averages."""
SINGULAR = 1e-6
"""A smallest eigenvalue below this is that of a singular covariance."""


class Question(NamedTuple):
    """What is asked, where the sliders are to stand, what to look at, and the answer, a text that
    ``facts`` of these settings fill."""

    title: str
    ask: str
    setup: Setup
    facts: Callable[[Setup], dict[str, float]]
    answer: str

    def answered(self) -> str:
        """The answer with its numbers."""
        return self.answer.format(**self.facts(self.setup))


def clouds(setup: Setup) -> list[Cloud]:
    """Forty data sets from the same settings."""
    return [cloud.__wrapped__(replace(setup, seed=1 + k)) for k in range(SETS)]


def spreads(setup: Setup) -> dict[str, float]:
    """Standard deviations of theta_1: of thetas, of least squares, and by eq. (11)."""
    found = cloud(setup)
    return {
        "theta": float(found.thetas[:, 0].std(ddof=1)),
        "least": float(found.estimates[:, 0].std(ddof=1)),
        "moment": float(np.sqrt(found.fit("moment").prior.cov[0, 0])),
        "truth": setup.sd1,
    }


def negative(setup: Setup) -> dict[str, float]:
    """Steps and noise of theta_1 to the threshold and with all steps, and in how many per cent of
    data sets eq. (11) is no covariance; to the threshold also eq. (12), and REML singular."""
    out = {}
    for name, explore in (("few", 0), ("many", 200)):
        found = clouds(replace(setup, explore=explore))
        out[f"{name}_steps"] = float(np.mean([one.steps.mean() for one in found]))
        noise = [setup.noise_sd**2 * np.linalg.inv(one.stats.gram)[:, 0, 0] for one in found]
        out[f"{name}_noise"] = float(np.sqrt(np.mean(noise)))
        for method in METHODS if name == "few" else ("moment",):
            lowest = [np.linalg.eigvalsh(one.fit(method).prior.cov)[0] for one in found]
            bound = SINGULAR if method == "reml" else 0.0
            out[f"{name}_{method}"] = 100 * float(np.mean(np.array(lowest) < bound))
    return out


def widened(setup: Setup) -> dict[str, float]:
    """Per cent of data sets in which an estimate is at least as wide as the truth in every
    direction, and how much regret of the next task it adds, in per cent of that with the truth."""
    truth, found = setup.family().prior, clouds(setup)
    methods = {"plain": "moment", "wide": "moment-widened"}
    out = {}
    for name, method in methods.items():
        gaps = [np.linalg.eigvalsh(one.fit(method).prior.cov - truth.cov)[0] for one in found]
        out[f"{name}_covers"] = 100 * float(np.mean(np.array(gaps) >= 0))
    played = []
    for k, one in enumerate(found[:10]):
        priors = [playable(one.fit(method).prior, one.family) for method in methods.values()]
        played.append(regrets(replace(setup, seed=1 + k), [truth, *priors]).mean(axis=1))
    own, plain, wide = np.mean(played, axis=0)
    more = {"plain_more": plain / own - 1, "wide_more": wide / own - 1}
    return out | {name: 100 * float(value) for name, value in more.items()}


def tasks_or_steps(setup: Setup) -> dict[str, float]:
    """Root mean square error of the estimated mean: as set, with four times the tasks, and with
    four times the steps of exploration."""
    ways = {
        "base": setup,
        "tasks": replace(setup, tasks=4 * setup.tasks),
        "steps": replace(setup, explore=4 * setup.explore),
    }
    out = {}
    for name, way in ways.items():
        gaps = [one.estimates.mean(axis=0) - one.family.prior.mean for one in clouds(way)]
        out[name] = float(np.sqrt((np.array(gaps) ** 2).sum(axis=1).mean()))
    return out


def early(setup: Setup) -> dict[str, float]:
    """How much more regret a task has without a prior: over all its steps, and over the first."""
    out = {}
    for name, horizon in (("tenth", setup.horizon // 10), ("all", setup.horizon)):
        here = replace(setup, horizon=horizon)
        own, truth = regrets(here, [prior_of(here, "nothing"), prior_of(here, "truth")])
        out[name] = float((own - truth).mean())
    return out | {"share": 100 * out["tenth"] / out["all"], "count": NEXT}


def signs(setup: Setup) -> dict[str, float]:
    """Regret of a task with the true prior, correlated this way and the other way round."""
    other = replace(setup, correlation=-setup.correlation)
    return {
        name: float(regrets(here, [here.family().prior]).mean())
        for name, here in (("same", setup), ("other", other))
    }


def correlations(setup: Setup) -> dict[str, float]:
    """REML's correlation over data sets of few and of many tasks: where the middle 80% of it lie,
    and in how many per cent it is 1 or -1."""
    out = {}
    for name, tasks in (("few", setup.tasks), ("many", 200)):
        found = [
            compare(one.fit("reml").prior.mean, one.fit("reml").prior.cov, one.family.prior)
            for one in clouds(replace(setup, tasks=tasks))
        ]
        values = np.array([one.correlation for one in found])
        values = values[np.isfinite(values)]
        out[f"{name}_low"], out[f"{name}_high"] = map(float, np.quantile(values, [0.1, 0.9]))
        out[f"{name}_singular"] = 100 * float(np.mean([one.lowest < SINGULAR for one in found]))
    return out


QUESTIONS = (
    Question(
        "The hollow points",
        "Least squares (hollow) are more spread out than the θs (filled). Why, and what does "
        "eq. (11) do about it? Then lower the noise, or explore longer.",
        Setup(noise_sd=1.0, tasks=500, explore=50),
        spreads,
        "Least squares is θ plus noise of its own, with covariance σ²V⁻¹. Here the standard "
        "deviation of θ₁ is {theta:.2f} among the θs and {least:.2f} among their least squares. "
        "Eq. (11) takes the noise off again and says {moment:.2f}; the truth is {truth:g}. With "
        "less noise or more steps hollow and filled points come together.",
    ),
    Question(
        "Where is the ellipse of eq. (11)?",
        "Tasks explore only to the threshold of Section 6. Why has eq. (11) no ellipse, and what "
        "would help?",
        Setup(explore=0, noise_sd=1.0, tasks=100, horizon=200),
        negative,
        "To the threshold a task explores {few_steps:.1f} steps, and the noise in its least "
        "squares has a standard deviation of {few_noise:.1f}, much more than θ varies. Eq. (11) "
        "subtracts the noise from a scatter that is itself uncertain by more than θ varies, and "
        "what is left has a negative eigenvalue in {few_moment:.0f}% of 40 data sets. With all "
        "steps exploring the noise is {many_noise:.1f} and that happens in {many_moment:.0f}%. "
        "To the threshold eq. (12) with c_w = 1 still has one in {few_moment-widened:.0f}%. REML "
        "always is a covariance, but in {few_reml:.0f}% a singular one, its ellipse a line.",
    ),
    Question(
        "What widening buys",
        "Move c_w from 0 to 10. What is the ellipse of eq. (12) good for, and what does it cost "
        "the next task?",
        Setup(widening=10.0, tasks=50),
        widened,
        "With c_w = 10 it is at least as wide as the truth in every direction in "
        "{wide_covers:.0f}% of 40 data sets, where eq. (11) is in {plain_covers:.0f}%; the proofs "
        "need that. But a prior that is too wide explores for nothing: the next task has "
        "{wide_more:.0f}% more regret than with the true prior, with eq. (11) {plain_more:.0f}%.",
    ),
    Question(
        "More tasks or more steps?",
        "You may have four times as many tasks, or explore four times as long in each. Which "
        "helps the estimated mean more?",
        Setup(tasks=25, explore=20),
        tasks_or_steps,
        "Tasks. Its squared error is tr(Σ + σ²V⁻¹)/N on average: four times the tasks halve the "
        "error, while more steps shrink only the part of the noise and leave that θs differ. Over "
        "40 data sets the error is {base:.2f}, with four times the tasks {tasks:.2f}, with four "
        "times the steps {steps:.2f}.",
    ),
    Question(
        "When a prior pays",
        "Play the task below with the true prior and with none. When does the difference in "
        "regret arise? Then raise the number of steps: does it go on growing as fast?",
        Setup(horizon=200),
        early,
        "Early. Without a prior a task of 200 steps has {all:.1f} more regret than with the true "
        "one, on average over {count} tasks, and the first 20 steps, a tenth of them, account for "
        "{share:.0f}% of it. Later the task's own rewards have said most of what a prior would.",
    ),
    Question(
        "The same correlation, turned",
        "Set the correlation to 0.9, then to -0.9: the same ellipse, turned. Is the regret of the "
        "next task with the true prior the same?",
        Setup(correlation=0.9),
        signs,
        "No: {same:.2f} with 0.9 and {other:.2f} with -0.9. With 0.9 the θs lie along their mean: "
        "they differ mostly in length, and which action is best depends on the direction of θ "
        "alone. With -0.9 they differ across it, and every task must find its direction.",
    ),
    Question(
        "How sure is REML?",
        "With five tasks, what does REML say about the correlation? Draw new data a few times. "
        "Then draw the posterior, here and with 200 tasks.",
        Setup(tasks=5),
        correlations,
        "It says one number, and another one for every data set: with five tasks the middle 80% "
        "of 40 data sets have {few_low:.2f} to {few_high:.2f}, and {few_singular:.0f}% have a "
        "singular covariance (a correlation of ±1, or a spread of 0). With 200 tasks they have "
        "{many_low:.2f} to {many_high:.2f}. The posterior shows as much from one data set: its "
        "ellipses differ widely with five tasks and hardly with 200, and its interval of the "
        "correlation stands below the picture.",
    ),
)
"""In the order of a class."""
