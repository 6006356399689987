"""Agents whose prior is drawn from a posterior: when they fit, what they play with."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.posterior.model import Problem
from bayesmeta.posterior.online import prior_from_bounds
from bayesmeta.posterior.quick import Drawn, draw_quickly
from bayesmeta.simulation.played import statistics_of

pytestmark = pytest.mark.slow

FAMILY = bm.TaskFamily(
    bm.GaussianPrior([1.5], [[0.4]]), bm.UniformBall(1, 1.0, 5), noise_sd=0.7, horizon=12
)


def play(agent: bm.Agent, tasks: int, seed: int = 0) -> tuple[list[bm.PriorEstimate], bm.Player]:
    """The priors of tasks in a row, and the player after them."""
    player = bm.Player(agent, FAMILY.setting(tasks), random_seed=seed)
    rng = np.random.default_rng(5)
    found = []
    for _ in range(tasks):
        found.append(player.start_task())
        player.play(FAMILY.draw(rng))
    return found, player


@pytest.fixture(scope="module")
def drawn() -> list[bm.PriorEstimate]:
    return play(bm.ROSTER["HB-TS"], 60)[0]


def test_every_task_has_a_prior_of_its_own(drawn: list[bm.PriorEstimate]) -> None:
    """From the first on, when they are draws of the prior over priors; later ones differ, and lie
    about the truth. With one to four tasks a draw of a fit in 300 diverges, which is said."""
    assert {one.status for one in drawn[:6]} <= {bm.Status.POSTERIOR, bm.Status.DIVERGENT}
    assert {one.status for one in (drawn[0], *drawn[6:])} == {bm.Status.POSTERIOR}
    means = np.array([one.prior.mean[0] for one in drawn[30:]])
    assert len(np.unique(means)) > 20
    assert abs(means.mean() - 1.5) < 0.5 and 0.03 < means.std() < 0.5


def test_the_same_seed_draws_the_same(drawn: list[bm.PriorEstimate]) -> None:
    """To the bit, whatever was compiled or fitted before; another seed differs."""
    again, _ = play(bm.ROSTER["HB-TS"], 25)
    for one, other in zip(again, drawn[:25], strict=True):
        np.testing.assert_array_equal(one.prior.cov, other.prior.cov)
    other, _ = play(bm.ROSTER["HB-TS"], 15, seed=1)
    assert other[-1].prior.mean != drawn[14].prior.mean


def test_the_mean_agent_plays_with_the_predictive_distribution() -> None:
    """One prior between refits, wider than the average Sigma by the doubt about mu."""
    found, player = play(bm.ROSTER["HB-mean-TS"], 40)
    first = found[0].prior  # nothing seen: mu has variance b^2, Sigma the mean s^2
    bounds = FAMILY.told()
    expected = bounds.mean_norm**2 + bounds.prior_max
    assert first.cov[0, 0] == pytest.approx(expected, rel=0.5) and abs(first.mean[0]) < 0.5
    changes = [k for k in range(1, 40) if found[k].prior is not found[k - 1].prior]
    assert changes[:4] == [1, 2, 3, 4]
    assert all(later >= 1.25 * earlier for earlier, later in pairwise(changes[3:]))
    memory = player._memory
    covs = np.array([prior.cov[0, 0] for prior in memory.priors])
    means = np.array([prior.mean[0] for prior in memory.priors])
    expected = covs.mean() + means.var(ddof=1)
    assert memory.centre.cov[0, 0] == pytest.approx(expected)
    assert memory.centre.mean[0] == pytest.approx(means.mean())


@pytest.mark.parametrize(
    ("divergent", "moves", "status"),
    [
        (0, True, bm.Status.POSTERIOR),
        (1, True, bm.Status.DIVERGENT),
        (0, False, bm.Status.DIVERGENT),
    ],
    ids=["good", "divergent", "stuck"],
)
def test_draws_that_cannot_be_trusted_are_said(
    divergent: int, moves: bool, status: bm.Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A draw that diverged, or an entry of mu that never moved; before any task there is no
    chain."""

    def chain(problem: object, *, draws: int, **rest: object) -> Drawn:
        mu = np.random.default_rng(0).standard_normal((draws, 1))
        found = {"mu": mu if moves else np.ones_like(mu), "Sigma": np.ones((draws, 1, 1))}
        return Drawn(found, None, divergent, "nuts")

    monkeypatch.setattr("bayesmeta.posterior.online.draw_quickly", chain)
    for name in bm.agents.BAYESIAN:
        found, _ = play(bm.ROSTER[name], 5)
        assert [one.status for one in found] == [bm.Status.POSTERIOR] + [status] * 4


def test_a_player_goes_elsewhere(tmp_path: Path) -> None:
    """Between tasks, by pickle or as text, and goes on as if nothing had happened: the mode from
    which the next fit looks goes with it."""
    _, player = play(bm.ROSTER["HB-TS"], 14)
    assert player._memory.mode is not None
    player.save(tmp_path / "player.json")
    others = [pickle.loads(pickle.dumps(player)), bm.Player.load(tmp_path / "player.json")]
    for other in others:
        for one, same in zip(player._memory.mode, other._memory.mode, strict=True):
            np.testing.assert_array_equal(one, same)
    found = []
    for one in (player, *others):
        rng = np.random.default_rng(9)
        for _ in range(6):  # past the next fit
            prior = one.start_task().prior
            one.play(FAMILY.draw(rng))
        found.append(prior)
    for other in found[1:]:
        np.testing.assert_array_equal(other.mean, found[0].mean)
        np.testing.assert_array_equal(other.cov, found[0].cov)


def test_many_tasks_are_drawn_by_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where these pass their checks; few tasks by NUTS, and all where no weights do."""
    stats = statistics_of(FAMILY, bm.ROSTER["UKTS"], 300, 0)
    prior = prior_from_bounds(FAMILY.told()).settled(1)

    def method(n: int) -> str:
        few = bm.TaskStatistics(stats.gram[:n], stats.moment[:n])
        problem = Problem(few, FAMILY.noise_sd, prior, "fused")
        return draw_quickly(problem, draws=50, tune=50, seed=1).method

    assert [method(n) for n in (3, 300)] == ["nuts", "laplace"]
    monkeypatch.setattr("bayesmeta.posterior.laplace.EFFICIENCY", 1.1)
    assert method(300) == "nuts"


def test_a_fit_looks_from_the_mode_of_the_last() -> None:
    """By either method the mode is the same, and from any start the draws have the same law."""
    stats = statistics_of(FAMILY, bm.ROSTER["UKTS"], 300, 0)
    problem = Problem(stats, FAMILY.noise_sd, prior_from_bounds(FAMILY.told()).settled(1), "fused")
    options = {"draws": 50, "tune": 50, "seed": 1}
    for name in ("auto", "nuts"):
        first = draw_quickly(problem, method=name, **options)  # type: ignore[arg-type]
        again = draw_quickly(problem, method=name, start=first.mode, **options)  # type: ignore[arg-type]
        assert first.mode is not None and again.mode is not None
        for one, other in zip(first.mode, again.mode, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-2)
        worthless = np.zeros(1), np.array([[-1e9]])  # no covariance: passed over
        other_start = draw_quickly(problem, method=name, start=worthless, **options)  # type: ignore[arg-type]
        np.testing.assert_array_equal(other_start.draws["mu"], first.draws["mu"])


@pytest.mark.parametrize("wrong", [{"growth": 1.0}, {"draws": 5}, {"tune": 10}])
def test_bad_settings_are_refused(wrong: dict[str, float]) -> None:
    """Named."""
    with pytest.raises(bm.InputError, match=next(iter(wrong))):
        replace(bm.agents.Posterior(), **wrong)  # type: ignore[arg-type]


def test_a_prior_mean_that_may_be_zero() -> None:
    """Told that mu_* = 0, an agent still has a scale to begin with; told that tasks do not differ,
    it says that there is nothing to learn."""
    centred = bm.TaskFamily(
        bm.GaussianPrior([0.0], [[0.4]]), bm.UniformBall(1, 1.0, 5), noise_sd=0.7, horizon=12
    )
    estimate = bm.Player(bm.ROSTER["HB-TS"], centred.setting(5)).start_task()
    assert estimate.status is bm.Status.POSTERIOR
    same = replace(centred, bounds=bm.Bounds(1.0, 0.3, 0.0, 0.0, 0.0))
    with pytest.raises(bm.InputError, match="prior_max > 0"):
        bm.Player(bm.ROSTER["HB-TS"], same.setting(5)).start_task()
