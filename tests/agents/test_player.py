"""Ask and tell: the same agent on a live problem."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.agents.agent import Agent
from bayesmeta.agents.player import Player
from bayesmeta.agents.policies import Policy
from bayesmeta.agents.roster import ROSTER
from bayesmeta.streams import ENVIRONMENT, stream

HORIZON = 30


def family(actions: bm.UniformBall | bm.WholeBall | None = None) -> bm.TaskFamily:
    prior = bm.GaussianPrior(np.array([1.0, 0.5, 0.0]), np.diag([1.0, 0.5, 0.3]))
    return bm.TaskFamily(prior, actions or bm.UniformBall(3, 1.0, 6), 0.8, HORIZON)


def learner(base: str, **changes: object) -> Agent:
    """A row of the roster with a warm-up short enough to leave it."""
    return replace(ROSTER[base], warmup=4, **changes)


FREQUENTIST: Policy = bm.agents.frequentist_ids(norm_bound=4.0)
AGENTS = {
    "KTS": ROSTER["KTS"],
    "Th-MTS_tau": learner("Th-MTS_tau", exploration=bm.agents.until_eigenvalue(0.5)),
    "All-MTS": learner("All-MTS"),
    "All-MIDS": learner("All-MIDS", policy=bm.agents.v_ids(draws=10)),
    "frequentist warm-up": learner("All-MTS_tau", name="other", warmup_policy=FREQUENTIST),
    "Bayes-UCB": learner("All-MTS", name="ucb", policy=bm.agents.bayes_ucb()),
}


@pytest.mark.parametrize("name", AGENTS)
def test_ask_and_tell_makes_the_simulators_choices(name: str) -> None:
    """Step by step through the simulator's data, pickled at random moments: the same choices."""
    problem, tasks = family(), 12
    setting = problem.setting(tasks)
    whole, live = (Player(AGENTS[name], setting, random_seed=3) for _ in range(2))
    rng, moments = stream(3, ENVIRONMENT), np.random.default_rng(0)
    for _ in range(tasks):
        task = problem.draw(rng)
        expected = whole.start_task()
        outcome = whole.play(task)
        estimate = live.start_task()
        np.testing.assert_array_equal(estimate.prior.mean, expected.prior.mean)
        np.testing.assert_array_equal(estimate.prior.cov, expected.prior.cov)
        for step in range(HORIZON):
            if moments.random() < 0.1:
                live = pickle.loads(pickle.dumps(live))
            k = live.ask(task.actions[step].T)
            assert k == outcome.chosen[step]
            if moments.random() < 0.1:
                live = pickle.loads(pickle.dumps(live))
            live.tell(outcome.rewards[step])
        live.end_task()


def test_ask_and_tell_on_the_whole_ball() -> None:
    """Without actions the answer is the action itself, the one the simulator takes."""
    problem = family(bm.WholeBall(3, 0.5))
    whole, live = (
        Player(AGENTS["Th-MTS_tau"], problem.setting(6), random_seed=1) for _ in range(2)
    )
    rng = stream(1, ENVIRONMENT)
    for _ in range(6):
        task = problem.draw(rng)
        whole.start_task()
        outcome = whole.play(task)
        live.start_task()
        for action, reward in zip(outcome.taken, outcome.rewards, strict=True):
            np.testing.assert_array_equal(live.ask(), action)
            live.tell(reward)
        live.end_task()


def test_a_task_cut_short_leaves_the_next_ones_randomness_alone() -> None:
    """After a task of three steps the next task's choices are those after a full one."""
    problem = family()
    offers = np.random.default_rng(0).standard_normal((HORIZON, 6, 3))
    choices = []
    for length in (3, HORIZON):
        player = Player(ROSTER["KTS"], problem.setting(2), random_seed=5)
        for steps in (length, HORIZON):
            player.start_task()
            picked = []
            for step in range(steps):
                picked.append(player.ask(offers[step]))
                player.tell(0.1)
            player.end_task()
        choices.append(picked)
    assert choices[0] == choices[1]


def test_an_unanswered_ask_is_forgotten() -> None:
    """Ending a task between ask and tell keeps the streams in step, too."""
    problem, offers = family(), np.eye(3)
    picked = []
    for unanswered in (False, True):
        player = Player(ROSTER["KTS"], problem.setting(2), random_seed=5)
        player.start_task()
        if unanswered:
            player.ask(offers)
        player.end_task()
        player.start_task()
        picked.append([player.ask(offers)])
        for _ in range(5):
            player.tell(0.0)
            picked[-1].append(player.ask(offers))
    assert picked[0] == picked[1]


def test_the_order_of_calls_is_checked() -> None:
    """Every call out of order is refused with what to call instead."""
    player = Player(ROSTER["KTS"], family().setting(2))
    with pytest.raises(bm.InputError, match="call start_task before ask"):
        player.ask(np.eye(3))
    with pytest.raises(bm.InputError, match="no prior yet"):
        _ = player.estimate
    player.start_task()
    with pytest.raises(bm.InputError, match="call end_task before start_task"):
        player.start_task()
    with pytest.raises(bm.InputError, match="call ask before tell"):
        player.tell(1.0)
    with pytest.raises(bm.InputError, match=r"actions must have shape \(any, 3\)"):
        player.ask(np.eye(2))
    with pytest.raises(bm.InputError, match="offer at least one"):
        player.ask(np.empty((0, 3)))
    player.ask(np.eye(3))
    with pytest.raises(bm.InputError, match="call tell before ask"):
        player.ask(np.eye(3))
    with pytest.raises(bm.InputError, match="reward must be finite"):
        player.tell(float("nan"))
    player.tell(0.5)
    with pytest.raises(bm.InputError, match="no step of which has been played"):
        player.play(family().draw(np.random.default_rng(0)))
    for _ in range(HORIZON - 1):
        player.ask(np.eye(3))
        player.tell(0.5)
    with pytest.raises(bm.InputError, match="call end_task"):
        player.ask(np.eye(3))


def test_an_oracle_needs_the_truth() -> None:
    """KTS on a live problem without a known prior says what it lacks; a learner does not."""
    setting = bm.Setting(3, 10, 5, 1.0, bm.Bounds(1.0, 0.1, 0.1, 2.0, 3.0))
    with pytest.raises(bm.InputError, match="truth=GaussianPrior"):
        Player(ROSTER["KTS"], setting)
    assert Player(ROSTER["All-MTS"], setting).start_task().status is bm.Status.GIVEN


def test_a_frequentist_warm_up_ignores_the_prior() -> None:
    """During warm-up with the IDS of Kirschner and Krause the state is that of V = I."""
    player = Player(AGENTS["frequentist warm-up"], family().setting(9))
    prior = player.start_task().prior
    np.testing.assert_array_equal(prior.mean, np.zeros(3))
    np.testing.assert_allclose(prior.cov, 0.64 * np.eye(3))


def test_the_ball_is_the_familys_whatever_its_learners_were_told() -> None:
    """A loose bound on the radius does not let an agent leave the ball."""
    told = bm.Bounds(radius=9.0, action_min=0.01, prior_min=0.1, prior_max=2.0, mean_norm=9.0)
    problem = replace(family(bm.WholeBall(3, 0.5)), bounds=told)
    player = Player(ROSTER["KTS"], problem.setting(1))
    player.start_task()
    outcome = player.play(problem.draw(np.random.default_rng(0)))
    np.testing.assert_allclose(np.linalg.norm(outcome.taken, axis=1), 0.5)


def test_playing_whole_tasks_and_asking_can_be_mixed() -> None:
    """A task played in one go leaves nothing behind that a task asked for would stumble over."""
    problem = family()
    agent = learner("All-MTS", exploration=bm.agents.until_eigenvalue(0.5))
    mixed, whole = (Player(agent, problem.setting(8), random_seed=2) for _ in range(2))
    rng = stream(2, ENVIRONMENT)
    for n in range(8):
        task = problem.draw(rng)
        whole.start_task()
        outcome = whole.play(task)
        mixed.start_task()
        if n % 2 == 0:
            np.testing.assert_array_equal(mixed.play(task).chosen, outcome.chosen)
            continue
        for step in range(HORIZON):
            assert mixed.ask(task.actions[step].T) == outcome.chosen[step]
            mixed.tell(outcome.rewards[step])
        mixed.end_task()


@pytest.mark.parametrize("all_steps", [False, True])
def test_a_learner_sees_the_same_of_a_task_however_it_is_played(all_steps: bool) -> None:
    """What reaches a learner is consistent, and the same from ask and tell as from play."""

    class Memory:
        def __init__(self) -> None:
            self.all_steps = all_steps

        def start(self, setting: bm.Setting) -> list[bm.agents.Finished]:
            return []

        def observe(
            self, memory: list[bm.agents.Finished], task: bm.agents.Finished
        ) -> list[bm.agents.Finished]:
            copied = bm.agents.Finished(
                task.gram.copy(), task.moment.copy(), task.steps, task.energy
            )
            return [*memory, copied]

        def estimate(self, memory: object, setting: bm.Setting, rng: object) -> bm.PriorEstimate:
            return bm.PriorEstimate(setting.truth, bm.Status.OK)

    problem = family()
    agent = Agent("mine", bm.agents.thompson(), bm.agents.first_steps(7), Memory(), "KTS_tau")
    whole, live = (Player(agent, problem.setting(1)) for _ in range(2))
    task = problem.draw(np.random.default_rng(1))
    for player in (whole, live):
        player.start_task()
    outcome = whole.play(task)
    for step in range(HORIZON):
        live.ask(task.actions[step].T)
        live.tell(outcome.rewards[step])
    live.end_task()
    steps = HORIZON if all_steps else 7
    taken, rewards = outcome.taken[:steps], outcome.rewards[:steps]
    for player in (whole, live):
        seen = player._memory[0]
        np.testing.assert_allclose(seen.gram, taken.T @ taken)
        np.testing.assert_allclose(seen.moment, taken.T @ rewards, atol=1e-12)
        assert (seen.steps, seen.energy) == (steps, pytest.approx(float(rewards @ rewards)))


@pytest.mark.parametrize("name", ["KTS", "All-MTS"])
def test_a_horizon_beyond_memory_is_refused(name: str) -> None:
    """Before anything is drawn; the numbers of a task are drawn at once."""
    bounds = bm.Bounds(radius=1.0, action_min=0.1, prior_min=0.1, prior_max=2.0, mean_norm=3.0)
    truth = bm.GaussianPrior([0.0, 0.0], np.eye(2))
    for horizon, fits in ((10**6, True), (2 * 10**9, False)):
        setting = bm.Setting(2, horizon, 3, 0.5, bounds, truth=truth)
        if fits:
            bm.Player(bm.ROSTER[name], setting)
            continue
        with pytest.raises(bm.InputError, match=r"^horizon 2000000000 .* give a shorter horizon"):
            bm.Player(bm.ROSTER[name], setting)
