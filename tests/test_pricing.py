"""Dynamic pricing: demand is observed, price times demand is earned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.agents import ROSTER, Given, Moments
from bayesmeta.agents.moment_mean import MomentMean
from bayesmeta.checks import InputError
from bayesmeta.estimators.fit import fit_prior
from bayesmeta.simulation.played import statistics_of, steps_of
from bayesmeta.simulation.simulator import simulate_run

RNG = np.random.default_rng
FAMILY = bm.pricing_family(horizon=60)


def test_a_known_demand_is_sold_at_the_price_of_the_textbook() -> None:
    """x constant, theta known: p = -alpha / (2 beta), the end of the range beyond it, the best end
    where demand rises; no regret but that of the grid's step."""
    for alpha, beta, price in ((1.5, -0.5, 1.5), (3.0, -0.2, 3.0), (0.4, -0.9, 0.5), (1.0, 0.1, 3)):
        family = bm.pricing_family(1, prior_sd=0.0, horizon=5, prices=251, mean=[alpha, beta])
        player = bm.Player(ROSTER["KTS"], family.setting(1))
        player.start_task()
        task = family.draw(RNG(0))
        outcome = player.play(task)
        np.testing.assert_allclose(outcome.taken, np.tile([1.0, price], (5, 1)), atol=0.005)
        assert outcome.regret == pytest.approx(0.0, abs=1e-12)
        np.testing.assert_allclose(task.best, price * (alpha + beta * price), atol=1e-4)


def test_what_is_observed_earned_and_lost() -> None:
    """Rewards are demand with noise; regret sums price times demand, the best less the taken."""
    player = bm.Player(ROSTER["UKTS"], FAMILY.setting(1))
    player.start_task()
    task = FAMILY.draw(RNG(1))
    outcome = player.play(task)
    demand = np.einsum("tdk,d->tk", task.actions, task.theta)
    steps = np.arange(60)
    observed = demand[steps, outcome.chosen] + FAMILY.noise_sd * task.noise
    np.testing.assert_allclose(outcome.rewards, observed, rtol=1e-12)
    earned = demand * FAMILY.actions.payoffs
    lost = earned.max(axis=1) - earned[steps, outcome.chosen]
    assert outcome.regret == pytest.approx(lost.sum(), rel=1e-12) and lost.sum() > 1


def test_ask_and_tell_take_the_prices_of_play() -> None:
    """The same choices step by step, payoffs given, as in one go."""
    for name in ("KTS_price", "KUCB"):
        one, two = (bm.Player(ROSTER[name], FAMILY.setting(3), random_seed=4) for _ in range(2))
        rng = RNG(2)
        for _ in range(2):
            task = FAMILY.draw(rng)
            one.start_task()
            chosen = one.play(task).chosen.copy()
            two.start_task()
            for step, actions in enumerate(task.actions):
                k = two.ask(actions.T, FAMILY.actions.payoffs)
                assert k == chosen[step]
                two.tell(float(actions.T[k] @ task.theta + FAMILY.noise_sd * task.noise[step]))
            two.end_task()


def test_two_prices_determine_a_constant_demand_in_two_steps() -> None:
    """The opening offers the two ends alone, and ends once both have been offered."""
    family = bm.pricing_family(1, horizon=20)
    row = replace(ROSTER["KTS_price"], exploration=bm.agents.two_ends(1e-3))
    lengths = []
    for actions, _ in steps_of(family, row, 40, 0, opening=True):
        assert set(actions[:, 1]) == {0.5, 3.0} and len(set(actions[:-1, 1])) == 1
        lengths.append(len(actions))
        assert np.linalg.matrix_rank(actions[-2:].T @ actions[-2:]) == 2
    assert min(lengths) == 2 and 2 < np.mean(lengths) < 4  # 3 on average: geometric


def test_meta_dp_with_the_true_mean_is_kts_with_its_opening() -> None:
    """Bit for bit, and Meta-DP++ without widening has the prior of eqs. (9)-(11)."""
    truth = replace(ROSTER["Meta-DP_price"], learner=Given(), warmup=0, name="KTS_price")
    found = simulate_run(FAMILY, [truth], tasks=20)["regret"]
    known = simulate_run(FAMILY, [ROSTER["KTS_price"]], tasks=20)["regret"]
    np.testing.assert_array_equal(found, known)
    setting = FAMILY.setting(20)
    memory = MomentMean().start(setting)
    memory.state.mean[:], memory.state.tasks[0] = FAMILY.prior.mean, 9
    prior = MomentMean().estimate(memory, setting, RNG(0)).prior
    np.testing.assert_array_equal(prior.cholesky, FAMILY.prior.cholesky)
    bare = replace(ROSTER["Meta-DP++_price"], learner=Moments(widening=0.0), warmup=0)
    player, rng = bm.Player(bare, FAMILY.setting(100)), RNG(3)
    for _ in range(100):
        player.start_task()
        player.play(FAMILY.draw(rng))
    raw = player.start_task().raw_cov
    rng = RNG(3)
    again = bm.Player(bare, FAMILY.setting(100))
    grams, moments = [], []
    for _ in range(100):
        again.start_task()
        outcome = again.play(FAMILY.draw(rng))
        actions, rewards = (part[: outcome.explored] for part in outcome[3:])
        grams.append(actions.T @ actions)
        moments.append(actions.T @ rewards)
    expected = fit_prior(bm.TaskStatistics(grams, moments), FAMILY.noise_sd, "moment").prior.cov
    np.testing.assert_allclose(raw, expected, rtol=1e-9)


def test_the_prior_is_learned_from_prices() -> None:
    """REML of 400 products of 60 customers, whichever prices were taken: within 0.05 of mu_*."""
    found = fit_prior(statistics_of(FAMILY, ROSTER["UKTS"], 400, 0), FAMILY.noise_sd).prior
    assert np.abs(found.mean - FAMILY.prior.mean).max() < 0.05
    assert np.abs(found.cov - FAMILY.prior.cov).max() < 0.02


def test_learning_pays() -> None:
    """Total regret: the known prior below REML's below that of no learning; with a hyper-prior
    AdaTS below MarginalTS."""
    record = bm.simulate(FAMILY, ["KTS", "REML-TS", "UKTS"], tasks=60)
    total = record.regret.sum(["run", "task"]).to_series()
    assert total["KTS"] < total["REML-TS"] < total["UKTS"]
    told = bm.pricing_family(hyper_sd=0.5, horizon=60)
    total = bm.simulate(told, ["AdaTS", "MarginalTS"], tasks=60).regret.sum(["run", "task"])
    assert float(total.sel(agent="AdaTS")) < float(total.sel(agent="MarginalTS"))


def test_upward_demand_is_noted() -> None:
    """The share of customers, in the record and where the family is shown; none: no note."""
    prices = bm.Prices(1, 0.5, 3.0, 20)
    prior = bm.GaussianPrior([1.0, -0.5], np.diag([0.04, 0.25]))
    assert prices.upward(prior) == pytest.approx(0.15866, abs=1e-5)  # P(Z > 1)
    sure = bm.GaussianPrior([1.0, -0.5], np.zeros((2, 2)))
    assert prices.upward(sure) == 0.0 and prices.note(sure) is None
    many = bm.Prices(2, 0.5, 3.0, 20).customers(RNG(7), 20_000)
    theta = FAMILY.prior.sample(RNG(8), 20_000)[:, 2:]
    share = ((many * theta).sum(axis=1) > 0).mean()
    assert FAMILY.actions.upward(FAMILY.prior) == pytest.approx(share, abs=0.005)
    record = bm.simulate(FAMILY, "KTS", tasks=2)
    assert record.attrs["notes"] in repr(FAMILY) and "of customers" in record.attrs["notes"]
    wide = bm.pricing_family(hyper_sd=1.0)
    assert wide.actions.upward(wide._marginal()) > 0.25  # of beta / sd ~ N(-0.5, 1) about 0.3
    assert "notes" not in bm.simulate(bm.paper_family(horizon=5), "KTS", tasks=2).attrs


def test_actions_are_what_they_say() -> None:
    """Their bound and their second moment."""
    prices = bm.Prices(3, 1.0, 2.0, 4)
    drawn = prices.draw(RNG(0), 20_000)
    assert drawn.shape == (20_000, 6, 4)
    assert np.linalg.norm(drawn, axis=1).max() <= prices.radius
    moment = np.einsum("tik,tjk->ij", drawn, drawn) / (20_000 * 4)
    np.testing.assert_allclose(moment, prices.second_moment(), atol=0.03)
    assert set(bm.pricing_family().violations()) == {"Assumption 1"}


def test_in_other_units() -> None:
    """Currency a million times smaller: the same choices, and regret in that unit."""
    found = simulate_run(FAMILY, [ROSTER["KTS"]], tasks=5)["regret"]
    far = 2.0**60
    family = bm.TaskFamily(
        bm.GaussianPrior(far * FAMILY.prior.mean, far**2 * FAMILY.prior.cov),
        FAMILY.actions,
        far * FAMILY.noise_sd,
        FAMILY.horizon,
    )
    np.testing.assert_allclose(
        simulate_run(family, [ROSTER["KTS"]], tasks=5)["regret"], far * found
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lowest": 3.0, "highest": 3.0}, "the range of prices is empty: lowest is 3, highest 3"),
        ({"lowest": 4.0}, "the range of prices is empty: lowest is 4"),
        ({"lowest": 0.0}, "lowest must be"),
        ({"highest": np.inf}, "highest must be"),
        ({"prices": 1}, "count must be"),
        ({"features": 0}, "features must be"),
        ({"mean": [1.0, 2.0]}, "mean must have shape|mean has shape|mean"),
        ({"prior_sd": -1.0}, "prior_sd must be"),
        ({"hyper_sd": -1.0}, "hyper_sd must be"),
    ],
)
def test_bad_families_are_refused(change: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        bm.pricing_family(**change)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "family", "words"),
    [
        ("K2RHC", FAMILY, "looks ahead to rewards, and is not defined"),
        ("KKG", FAMILY, "looks ahead to rewards, and is not defined"),
        ("MetaTS", FAMILY, "is told a hyper-prior of mu_"),
        ("MoM-TS_arms", FAMILY, "need actions that are unit vectors"),
        ("Meta-DP_price", bm.paper_family(), "needs a family of prices"),
        ("KTS_price", replace(bm.paper_family(), actions=bm.WholeBall(5, 1.0)), "finitely many"),
    ],
)
def test_rows_that_are_not_defined_are_refused(
    name: str, family: bm.TaskFamily, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        bm.simulate(family, name, tasks=2)


def test_payoffs_that_make_no_sense_are_refused() -> None:
    player = bm.Player(ROSTER["KTS"], FAMILY.setting(1))
    player.start_task()
    with pytest.raises(InputError, match="payoffs"):
        player.ask(np.eye(4), [1.0, 2.0])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="give the actions, too"):
        player.ask(None, np.ones(4))


def test_two_ends_need_prices_step_by_step_too() -> None:
    """Where the first and the last action are no prices, they mean nothing."""
    player = bm.Player(ROSTER["KTS_price"], FAMILY.setting(1))
    player.start_task()
    with pytest.raises(InputError, match="two_ends"):
        player.ask(np.eye(4))


def test_bounds_reach_means_that_are_drawn() -> None:
    """Where mu_* is drawn for every run, what agents are told allows for it."""
    family = bm.pricing_family(hyper_sd=3.0)
    assert family.hyper is not None
    told, drawn = family.told(), family.hyper.sample(RNG(5), 200)
    assert (np.linalg.norm(drawn, axis=1) <= told.mean_norm).mean() > 0.99
    assert told.prior_max > 9.0
