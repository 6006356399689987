"""An agent at work: task by task and step by step (ask and tell), or a drawn task in one go."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesmeta.agents.agent import Agent
from bayesmeta.agents.exploration import Rule
from bayesmeta.agents.learners import Finished
from bayesmeta.agents.policies import Policy
from bayesmeta.checks import Array, InputError, array, of_type, real, whole
from bayesmeta.environment import Setting, Task
from bayesmeta.estimators.estimate import PriorEstimate
from bayesmeta.kernels import choose, play
from bayesmeta.kernels.linalg import update_posterior
from bayesmeta.streams import stream


class Outcome(NamedTuple):
    """A task played through: regret against the best actions, how many steps explored, and for
    every step the index chosen (where there are finitely many), the action taken, the reward."""

    regret: float
    explored: int
    chosen: NDArray[np.int64]
    taken: Array
    rewards: Array


class Player:
    """One agent meeting one task after another.

    On a live problem::

        player = Player(ROSTER["All-MTS"], Setting(...), seed=1)
        for each task:
            player.start_task()
            for each step:
                k = player.ask(actions)      # (K, d) array -> index of the action to take
                player.tell(reward)
            player.end_task()

    Between any two calls a player can be pickled, and goes on elsewhere as if nothing happened.
    Played through a simulator's tasks it makes the choices ``play`` makes in one go: both use the
    same kernels and the same random stream, that of (seed, agent name).
    """

    def __init__(self, agent: Agent, setting: Setting, *, seed: int = 0) -> None:
        self.agent = of_type("agent", agent, Agent, "take one from ROSTER or make a row")
        self.setting = of_type("setting", setting, Setting, "use family.setting(tasks)")
        whole("seed", seed)
        self.tasks_seen = 0
        self._plan = agent.exploration.plan(setting)
        self._keep = agent.learner.all_steps or agent.exploration.rule is Rule.RESCUE
        self._warmup = agent.warmup_tasks(setting)
        self._rng = stream(seed, agent.name)
        self._learner_rng = stream(seed, agent.name + "/learner")
        self._memory: Any = agent.learner.start(setting)
        self._warmup_memory: Any = agent.warmup_prior.start(setting) if self._warmup else None
        d = setting.dim
        self._variance = setting.noise_sd**2
        self._mean, self._root = np.empty(d), np.empty((d, d))
        self._gram, self._moment = np.zeros((d, d)), np.zeros(d)
        self._early_gram, self._early_moment = np.zeros((d, d)), np.zeros(d)
        self._estimate: PriorEstimate | None = None
        self._policy = agent.policy
        self._alone: Ensemble | None = None
        self._in_task = False
        self._clear()

    def _clear(self) -> None:
        self._step = self._early_steps = 0
        self._energy = self._early_energy = 0.0
        self._opening = True
        self._action: Array | None = None

    @property
    def estimate(self) -> PriorEstimate:
        """The prior in use, with its status; from ``start_task`` on."""
        if self._estimate is None:
            raise InputError("no prior yet: call start_task first")
        return self._estimate

    def start_task(self) -> PriorEstimate:
        """Settle the prior of the next task."""
        if self._in_task:
            raise InputError("a task is under way: call end_task before start_task")
        agent, setting = self.agent, self.setting
        if self.tasks_seen < self._warmup:
            policy = agent.warmup_policy or agent.policy
            estimate = agent.warmup_prior.estimate(self._warmup_memory, setting, self._learner_rng)
        else:
            policy = agent.policy
            estimate = agent.learner.estimate(self._memory, setting, self._learner_rng)
        if not policy.uses_prior:
            estimate = estimate._replace(prior=policy.own_prior(setting))
        if estimate.prior.dim != setting.dim:
            raise InputError(
                f"the learner of agent {agent.name} gave a prior of dimension "
                f"{estimate.prior.dim}; the tasks have {setting.dim}"
            )
        self._policy, self._estimate = policy, estimate
        self._mean[:] = estimate.prior.mean
        self._root[:] = estimate.prior.cholesky.T
        self._in_task = True
        return estimate

    def ask(self, actions: Array | None = None) -> Any:
        """The index of the action to take of the (K, d) actions on offer.

        Without actions the whole ball of radius ``setting.ball`` is on offer, and the
        answer is the action itself.
        """
        self._require_task("ask")
        if self._action is not None:
            raise InputError("the last action has no reward yet: call tell before ask")
        if self._step >= self.setting.horizon:
            raise InputError(f"the task is over after {self.setting.horizon} steps: call end_task")
        d = self.setting.dim
        if actions is None:
            self._policy.check_actions(None)
            if self.setting.ball is None:
                raise InputError(
                    "ask needs the actions on offer; without them the whole ball is on offer, and "
                    "the setting must say so: give it ball=radius"
                )
        else:
            actions = array("actions", actions, (None, d))
            if len(actions) == 0:
                raise InputError("actions is empty; offer at least one")
        if self._step == 0:
            self._gram[:], self._moment[:] = 0.0, 0.0
        draws = self._rng.standard_normal((1, self._normals()))
        exploring = play.explores(
            *self._plan, self._step, self.setting.horizon, self._opening,
            self._gram, self._variance, np.empty((d, d)),
        )  # fmt: skip
        if not exploring:
            self._close_opening()
        if actions is None:
            taken = np.empty(d)
            play.ball_action(
                int(self._policy.scheme), self.setting.ball,
                exploring, self._mean, self._root, draws, 0, np.empty(d), taken,
            )  # fmt: skip
            self._action = taken
            return taken.copy()
        if exploring:
            k = choose.explore(draws, 0, len(actions))
        else:
            k = choose.choose(
                int(self._policy.scheme), self._policy.options(),
                self._policy.quantile(self._step), self._mean, self._root,
                np.array(actions.T, order="C")[None], 0, draws, 0, self._variance,
                np.empty(len(actions)), np.empty(d),
            )  # fmt: skip
        self._action = actions[k].copy()
        return int(k)

    def tell(self, reward: float) -> None:
        """The reward of the action last asked for."""
        self._require_task("tell")
        if self._action is None:
            raise InputError("no action awaits a reward: call ask before tell")
        reward = real("reward", reward)
        d = self.setting.dim
        play.accumulate(self._action, reward, self._gram, self._moment)
        update_posterior(
            self._mean, self._root, self._action, reward, self._variance, np.empty(d), np.empty(d)
        )
        self._energy += reward * reward
        self._step += 1
        self._action = None

    def end_task(self) -> None:
        """Let the learner see the task; an action whose reward was never told is forgotten."""
        self._require_task("end_task")
        if self._step == 0:
            self._gram[:], self._moment[:] = 0.0, 0.0
        self._close_opening()
        # the steps not played consume their share of randomness, so that the next task finds it
        rest = self.setting.horizon - self._step - (self._action is not None)
        self._rng.standard_normal(rest * self._normals())
        play.mirror(self._gram)
        play.mirror(self._early_gram)
        self._finish(self._step, self._energy, self._early_steps, self._early_energy)
        self._clear()

    def play(self, task: Task) -> Outcome:
        """Play a drawn task from start to end, in one kernel."""
        self._require_task("play")
        if self._step or self._action is not None:
            raise InputError("play needs a task no step of which has been played")
        if self._alone is None:
            self._alone = Ensemble([self])
        return self._alone.play(task).of(0)

    def _normals(self) -> int:
        """How many normals a step of the task under way consumes."""
        return self._policy.normals(self.setting.dim, ball=self.setting.ball is not None)

    def _close_opening(self) -> None:
        if self._opening:
            self._opening = False
            self._early_gram[:], self._early_moment[:] = self._gram, self._moment
            self._early_steps, self._early_energy = self._step, self._energy

    def _adopt(self, arrays: list[Array]) -> None:
        """Keep the state in arrays that an ensemble shares with the kernel."""
        names = ("_mean", "_root", "_gram", "_moment", "_early_gram", "_early_moment")
        for name, shared in zip(names, arrays, strict=True):
            shared[:] = getattr(self, name)
            setattr(self, name, shared)

    def _finish(self, steps: int, energy: float, early_steps: int, early_energy: float) -> None:
        if self.agent.learner.all_steps:
            finished = Finished(self._gram, self._moment, steps, energy)
        else:
            finished = Finished(self._early_gram, self._early_moment, early_steps, early_energy)
        self._memory = self.agent.learner.observe(self._memory, finished)
        self.tasks_seen += 1
        self._in_task = False

    def _require_task(self, call: str) -> None:
        if not self._in_task:
            raise InputError(f"no task is under way: call start_task before {call}")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_alone": None}


class Outcomes(NamedTuple):
    """A task played through by several agents: the fields of ``Outcome``, agent by agent.

    The arrays are reused by the next task.
    """

    regret: Array
    explored: Array
    chosen: NDArray[np.int64]
    taken: Array
    rewards: Array

    def of(self, agent: int) -> Outcome:
        """What one of them did."""
        return Outcome(
            float(self.regret[agent]), int(self.explored[agent]),
            self.chosen[agent], self.taken[agent], self.rewards[agent],
        )  # fmt: skip


class Ensemble:
    """Players that meet the same drawn tasks, played in one call of the kernel."""

    def __init__(self, players: list[Player]) -> None:
        self._players, setting = players, players[0].setting
        count, d, horizon = len(players), setting.dim, setting.horizon
        self._policies: list[Policy | None] = [None] * count
        self._scheme, self._options = np.empty(count, dtype=np.int64), np.empty((count, 4))
        self._quantiles = np.empty((count, horizon))
        plans = [player._plan for player in players]
        self._rule = np.array([plan.rule for plan in plans])
        self._tau = np.array([plan.tau for plan in plans])
        self._threshold = np.array([plan.threshold for plan in plans])
        self._keep = np.array([player._keep for player in players])
        self._start, self._width = (np.zeros(count, dtype=np.int64) for _ in range(2))
        self._draws, self._own = np.empty(0), [np.empty(0)] * count
        self._state = (
            np.empty((count, d)), np.empty((count, d, d)), np.zeros((count, d, d)),
            np.zeros((count, d)), np.zeros((count, d, d)), np.zeros((count, d)),
        )  # fmt: skip
        self._steps = (
            np.empty((count, horizon), dtype=np.int64),
            np.empty((count, horizon, d)),
            np.empty((count, horizon)),
        )
        self._totals = np.empty((count, 5))
        for i, player in enumerate(players):
            player._adopt([array[i] for array in self._state])

    def play(self, task: Task) -> Outcomes:
        """Play a task that every player has started."""
        for i, player in enumerate(self._players):
            if player._policy is not self._policies[i]:
                self._settle(i, player._policy)
        for player, own in zip(self._players, self._own, strict=True):
            player._rng.standard_normal(out=own)
        play.play_all(
            self._scheme, self._options, self._quantiles,
            self._rule, self._tau, self._threshold, self._keep,
            task.theta, task.actions, task.radius, task.best, task.noise,
            self._draws, self._start, self._width, self._players[0]._variance,
            *self._state, *self._steps, self._totals,
        )  # fmt: skip
        totals = self._totals.tolist()
        for player, (_, opening, _, early_energy, energy) in zip(
            self._players, totals, strict=True
        ):
            player._finish(player.setting.horizon, energy, int(opening), early_energy)
        chosen, taken, rewards = self._steps
        return Outcomes(self._totals[:, 0], self._totals[:, 2], chosen, taken, rewards)

    def _settle(self, agent: int, policy: Policy) -> None:
        """Note the policy a player has come to, and lay out the normals anew."""
        setting = self._players[agent].setting
        self._policies[agent] = policy
        self._scheme[agent], self._options[agent] = int(policy.scheme), policy.options()
        self._quantiles[agent] = [policy.quantile(step) for step in range(setting.horizon)]
        self._width[agent] = self._players[agent]._normals()
        sizes = self._width * setting.horizon
        ends = np.cumsum(sizes)
        self._start[:] = ends - sizes
        self._draws = np.empty(int(ends[-1]))
        self._own = [self._draws[e - s : e] for e, s in zip(ends, sizes, strict=True)]
