"""Rows that are told a hyper-prior: limits that other rows are, coverage, refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2, kstest

import bayesmeta as bm
from bayesmeta.agents import KNOWN, RIVALS, Given, Hyper
from bayesmeta.agents.agent import Agent
from bayesmeta.agents.ensemble import Ensemble
from bayesmeta.checks import InputError
from bayesmeta.kernels.hyper import posterior_of_mean
from bayesmeta.simulation.simulator import simulate_run
from bayesmeta.statistics import TaskStatistics
from bayesmeta.streams import ENVIRONMENT, stream
from tests.agents.test_learners import HYPER, SETTING, TRUTH, after, planted
from tests.helpers import size

USES = ("mean", "draw", "marginal")


def a_family(**changes: object) -> bm.TaskFamily:
    """With a correlated hyper-prior around the truth."""
    actions = bm.UniformBall(2, 0.7, 5)
    return replace(bm.TaskFamily(TRUTH, actions, 0.5, 8, hyper=HYPER), **changes)


@pytest.mark.parametrize("use", USES)
def test_a_sure_hyper_prior_is_kts(use: str) -> None:
    """S_q = 0 and m_q = mu_*: KTS bit for bit, given its stream."""
    family = a_family(hyper=bm.GaussianPrior(TRUTH.mean, np.zeros((2, 2))))
    row = replace(bm.ROSTER["KTS"], learner=Hyper(use))
    one, two = (simulate_run(family, [r], tasks=30) for r in (row, bm.ROSTER["KTS"]))
    np.testing.assert_array_equal(one["regret"], two["regret"])
    np.testing.assert_array_equal(one["mean_error"], 0.0 * two["mean_error"])


def test_one_task_is_the_marginal_prior() -> None:
    """AdaTS before any task is MarginalTS."""
    ada, marginal = (after(learner, []).prior for learner in (Hyper(), Given("hyper", "marginal")))
    np.testing.assert_array_equal(ada.mean, marginal.mean)
    np.testing.assert_allclose(ada.cov, marginal.cov, rtol=1e-15)
    np.testing.assert_allclose(ada.cholesky, marginal.cholesky, rtol=1e-14)


def test_a_wide_hyper_prior_is_least_squares() -> None:
    """S_q to infinity: after one task its least squares; after many ``gls`` with the same Sigma."""
    wide = replace(SETTING, hyper=bm.GaussianPrior([0.0, 0.0], 1e10 * np.eye(2)))
    tasks = planted(20)
    one = after(Hyper("mean"), tasks[:1], wide).prior.mean
    np.testing.assert_allclose(one, np.linalg.solve(tasks[0].gram, tasks[0].moment), rtol=1e-7)
    stats = TaskStatistics([task.gram for task in tasks], [task.moment for task in tasks])
    expected = bm.fit_prior(stats, SETTING.noise_sd, "gls", cov=TRUTH.cov)
    found = after(Hyper(), tasks, wide).prior
    np.testing.assert_allclose(found.mean, expected.prior.mean, rtol=1e-7)
    np.testing.assert_allclose(found.cov - TRUTH.cov, expected.mean_cov, rtol=1e-6)


def test_arms_have_the_form_of_arms() -> None:
    """Diagonal: precision 1/s_q^2 + sum of N_a / (N_a s_0^2 + sigma^2), arm by arm."""
    family = bm.arms_family(arms=3, hyper_sd=0.7, prior_sd=0.2, noise_sd=0.5)
    rng, setting = np.random.default_rng(0), family.setting(9)
    counts = rng.integers(0, 20, (9, 3)).astype(float)
    sums = counts * rng.standard_normal((9, 3))
    tasks = [
        bm.agents.Finished(np.diag(n), s, int(n.sum()), 0.0)
        for n, s in zip(counts, sums, strict=True)
    ]
    weights = counts * 0.04 + 0.25
    precision = 1 / 0.49 + (counts / weights).sum(axis=0)
    found = after(Hyper(), tasks, setting).prior
    np.testing.assert_allclose(found.mean, (sums / weights).sum(axis=0) / precision, rtol=1e-12)
    np.testing.assert_allclose(found.cov, np.diag(0.04 + 1 / precision), rtol=1e-12)


def test_what_is_told_wrongly() -> None:
    """Sigma and S_q times a factor; Sigma as its bound."""
    told = [
        Hyper(scale=3.0).start(SETTING).told,
        Hyper(hyper_scale=9.0).start(SETTING).told,
        Hyper(cov="bound").start(SETTING).told,
    ]
    np.testing.assert_allclose(told[0].cov, 3 * TRUTH.cov)
    np.testing.assert_allclose(told[1].hyper_root.T @ told[1].hyper_root, 9 * HYPER.cov)
    np.testing.assert_allclose(told[2].cov, 2.0 * np.eye(2))
    for one in told:
        np.testing.assert_allclose(one.root.T @ one.root, one.cov, atol=1e-14)


POLICIES = {
    "thompson": bm.agents.thompson(),
    "greedy": bm.agents.greedy(),
    "bayes-ucb": bm.agents.bayes_ucb("total"),
    "v-ids": bm.agents.v_ids(10),
    "oful": bm.agents.oful(2.0),
}


def hyper_posteriors(rows: list[Agent], runs: int, tasks: int) -> np.ndarray:
    """(run, row): squared distances of mu_* from the hyper-posterior's mean, in its units."""
    family, found = a_family(redraw=True), np.empty((runs, len(rows)))
    for run in range(runs):
        here, rng = family.in_run(run), stream(run, ENVIRONMENT)
        players = [bm.Player(row, here.setting(tasks), random_seed=run) for row in rows]
        together = Ensemble(players)
        for _ in range(tasks):
            task = here.draw(rng)
            for player in players:
                player.start_task()
            together.play(task)
        for i, player in enumerate(players):
            state, told = player._memory
            mean, half = posterior_of_mean(*state, told.centre, told.hyper_root)
            gap = here.prior.mean - mean
            found[run, i] = gap @ np.linalg.solve(half.T @ half, gap)
    return found


def test_the_hyper_posterior_covers_under_every_policy() -> None:
    """Null: (mu_* - m)' C^-1 (mu_* - m) is chi^2 with d degrees of freedom, whatever chose the
    actions (Kolmogorov-Smirnov, one a policy and one with the draws of MetaTS)."""
    base = bm.ROSTER["AdaTS"]
    rows = [replace(base, name=name, policy=policy) for name, policy in POLICIES.items()]
    found = hyper_posteriors([*rows, bm.ROSTER["MetaTS"]], runs=200, tasks=3)
    values = [kstest(one, chi2(2).cdf).pvalue for one in found.T]
    assert min(values) > size("hyper/coverage") / len(values)
    # a deviation taken for a variance would be seen
    assert kstest(found[:, 0] * 2, chi2(2).cdf).pvalue < 1e-6


def test_rows_say_whose_they_are() -> None:
    """Every rival is in the roster, with a source and what it is told."""
    for name, rival in RIVALS.items():
        assert bm.ROSTER[name] is rival.row and rival.source and rival.told
        assert rival.fidelity in ("A", "B", "C") and rival.row.note
        assert (rival.fidelity == "C") == ("after" in rival.row.note)
    assert RIVALS["HierBayesUCB"].row.policy.quantile(3, 2000) == np.sqrt(2 * np.log(2000))


@pytest.mark.parametrize("name", ["MetaTS", "AdaTS", "MarginalTS", "HierBayesUCB"])
def test_a_family_without_hyper_prior_is_refused(name: str) -> None:
    """By the simulator and by a player, before anything is played."""
    with pytest.raises(InputError, match=r"hyper-prior of mu_\*, which the setting lacks"):
        bm.simulate(bm.paper_family(), name, tasks=3)
    with pytest.raises(InputError, match="which the setting lacks"):
        bm.Player(bm.ROSTER[name], replace(SETTING, hyper=None))


def test_bad_settings_of_the_learner_are_refused() -> None:
    """By name; so is a covariance that is to be known but is not."""
    for wrong in ({"use": "draws"}, {"cov": "marginal"}, {"scale": -1.0}, {"hyper_scale": np.nan}):
        with pytest.raises(InputError, match=f"^(unknown )?{next(iter(wrong))}"):
            Hyper(**wrong)
    with pytest.raises(InputError, match="knows part of the true prior"):
        Hyper().start(replace(SETTING, truth=None))
    with pytest.raises(InputError, match="choose other units"):
        huge = planted(1)[0]._replace(gram=np.diag([np.inf, 1.0]))
        after(Hyper(), [huge])
    assert KNOWN.start(SETTING).prior.dim == 2
