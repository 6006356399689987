"""An agent at work: task by task and step by step (ask and tell), or a drawn task in one go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bayesmeta.agents import saved
from bayesmeta.agents.agent import Agent, check_draws
from bayesmeta.agents.centre import Centre
from bayesmeta.agents.commit import Commit
from bayesmeta.agents.ensemble import IN_KERNEL, Ensemble
from bayesmeta.agents.hyper import Hyper
from bayesmeta.agents.learners import MANY, Finished, Given, lasts
from bayesmeta.agents.restated import (
    Outcome,
    Reach,
    choosing_inside,
    finished_outside,
    own_variance,
    plan_inside,
)
from bayesmeta.checks import Array, InputError, array, of_type, real, renamed, whole
from bayesmeta.environment import NOTHING, Setting, Task
from bayesmeta.estimators.estimate import PriorEstimate
from bayesmeta.kernels import choose, play
from bayesmeta.kernels.codes import Rule
from bayesmeta.kernels.linalg import update_posterior
from bayesmeta.kernels.tuples import Belief, Plan, State, Sums, work_space
from bayesmeta.streams import stream


class Player:
    """One agent meeting one task after another.

    Between any two calls a player can be saved (``save``, ``load``) or pickled, and goes on
    elsewhere as if nothing happened. Unpickling runs code: unpickle only what you trust. Loading
    what ``save`` wrote runs none, whoever wrote the file.
    Played through a simulator's tasks it makes the choices ``play`` makes in one go: both use the
    same kernels and the same random stream, that of (random_seed, agent name).

    Parameters
    ----------
    agent
        A row of ``ROSTER``, or one of your own.
    setting
        What the agent is told before its first task.
    random_seed
        Keys, with the agent's name, all its randomness.

    Examples
    --------
    On a live problem: every task is started, asked and told step by step, and ended.

    >>> bounds = bm.Bounds(
    ...     radius=1.0, action_min=0.1, prior_min=0.1, prior_max=2.0, mean_norm=3.0
    ... )
    >>> setting = bm.Setting(dim=2, horizon=5, tasks=3, noise_sd=0.1, bounds=bounds)
    >>> player = bm.Player(bm.ROSTER["All-MTS"], setting, random_seed=1)
    >>> for task in range(3):
    ...     _ = player.start_task()
    ...     for step in range(5):
    ...         k = player.ask(np.eye(2))  # (K, d) actions on offer -> index of the one to take
    ...         player.tell(reward=float(k))
    ...     player.end_task()
    >>> player.tasks_seen
    3
    """

    @renamed(seed="random_seed")
    def __init__(self, agent: Agent, setting: Setting, *, random_seed: int = 0) -> None:
        self.agent = of_type("agent", agent, Agent, "take one from ROSTER or make a row")
        self.setting = of_type("setting", setting, Setting, "use family.setting(tasks)")
        whole("random_seed", random_seed)
        check_draws(agent, setting)
        self.tasks_seen = 0
        self._units, self._reach = setting.units, Reach.of(setting)
        first = agent.warmup_exploration or agent.exploration
        self._plans = [
            plan_inside(self._units, rule.plan(setting)) for rule in (agent.exploration, first)
        ]
        self._traced = bool(getattr(agent.learner, "needs_steps", False))
        self._keep = agent.learner.all_steps or Rule.RESCUE in (agent.exploration.rule, first.rule)
        self._warmup = agent.warmup_tasks(setting)
        self._rng = stream(random_seed, agent.name)
        self._learner_rng = stream(random_seed, agent.name + "/learner")
        self._memory: Any = agent.learner.start(setting)
        self._warmup_memory: Any = agent.warmup_prior.start(setting) if self._warmup else None
        d = setting.dim
        self._state = State(
            Belief(np.empty(d), np.empty((d, d)), own_variance(setting)),
            Sums(np.zeros((d, d)), np.zeros(d)),
            Sums(np.zeros((d, d)), np.zeros(d)),
        )
        self._estimate: PriorEstimate | None = None
        self._policy = agent.policy
        self._alone: Ensemble | None = None
        self._in_task = False
        self._clear()

    def _clear(self) -> None:
        self._step = self._opening_steps = 0
        self._energy = self._opening_energy = 0.0
        self._opening = True
        self._action: Array | None = None
        self._told: list[tuple[Array, float]] = []

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
        of_type(
            f"the estimate of the learner of agent {agent.name}",
            estimate,
            PriorEstimate,
            "return PriorEstimate(prior, Status.OK)",
        )
        if not policy.uses_prior:
            estimate = estimate._replace(prior=policy.own_prior(setting, estimate.prior.mean))
        if estimate.prior.dim != setting.dim:
            raise InputError(
                f"the learner of agent {agent.name} gave a prior of dimension "
                f"{estimate.prior.dim}; the tasks have {setting.dim}"
            )
        if self._estimate is None or estimate.prior is not self._estimate.prior:
            self._reach.check_prior(estimate.prior)
        self._policy, self._estimate = policy, estimate
        self._state.belief.mean[:] = estimate.prior.mean
        self._state.belief.root[:] = estimate.prior.cholesky.T
        if self._units is not None:
            for values in self._state.belief[:2]:
                values[:] = self._units.inside(values, 1, -1)
        self._in_task = True
        return estimate

    def ask(self, actions: Array | None = None, payoffs: Array | None = None) -> Any:
        """The index of the action to take of the (K, d) actions on offer.

        Without actions the whole ball of radius ``setting.ball`` is on offer, and the
        answer is the action itself. Where an action earns something else than its reward,
        ``payoffs`` (K,) says what it earns a unit of reward, such as a price a unit of demand.
        """
        self._require_task("ask")
        if self._action is not None:
            raise InputError("the last action has no reward yet: call tell before ask")
        if self._step >= self.setting.horizon:
            raise InputError(f"the task is over after {self.setting.horizon} steps: call end_task")
        d, earned = self.setting.dim, NOTHING
        if actions is None:
            if payoffs is not None:
                raise InputError("payoffs are those of actions on offer; give the actions, too")
            self._policy.check_actions(None)
            for rule in (self.agent.exploration, self.agent.warmup_exploration):
                if rule is not None:
                    rule.check_actions(None)
            if self.setting.ball is None:
                raise InputError(
                    "ask needs the actions on offer; without them the whole ball is on offer, and "
                    "the setting must say so: give it ball=radius"
                )
        else:
            actions = array("actions", actions, (None, d))
            if len(actions) == 0:
                raise InputError("actions is empty; offer at least one")
            weighted = payoffs is not None
            if payoffs is not None:
                payoffs = array("payoffs", payoffs, (len(actions),))
            self._policy.check_actions(len(actions), weighted=weighted)
            for rule in (self.agent.exploration, self.agent.warmup_exploration):
                if rule is not None:
                    rule.check_actions(len(actions), weighted=weighted)
            self._reach.check_actions(max(float(actions.max()), -float(actions.min())))
        self._clear_sums()
        belief, step = self._state.belief, self._step
        draws = self._rng.standard_normal((1, self._normals()))
        work = work_space(d, 0 if actions is None else len(actions))
        gram, count = self._state.sums.gram, 0 if actions is None else len(actions)
        exploring = play.explores(
            self._plan, step, self._opening, gram, belief.variance, count, work.square
        )
        if not exploring:
            self._close_opening()
        choosing, units = self._policy.choosing([step], d, self.setting), self._units
        choosing = choosing_inside(units, choosing)
        if actions is None:
            radius = self.setting.ball if units is None else units.inside(self.setting.ball, 0, 1)
            play.ball_action(choosing.scheme, radius, exploring, belief, draws, 0, work)
            self._action = work.action
            return work.action.copy() if units is None else units.outside(work.action, 0, 1)
        if units is not None:
            actions = units.inside(actions, 0, 1)
        if exploring:
            k = play.explored(self._plan.rule, draws, 0, step, len(actions))
        else:
            offered = np.array(actions.T, order="C")[None]
            if payoffs is not None:
                earned = offered * payoffs
            k = choose.choose(choosing, belief, offered, earned, draws, 0, work)
        self._action = actions[k].copy()
        return int(k)

    def tell(self, reward: float) -> None:
        """The reward of the action last asked for."""
        self._require_task("tell")
        if self._action is None:
            raise InputError("no action awaits a reward: call ask before tell")
        reward = real("reward", reward)
        self._reach.check_reward(reward)
        if self._units is not None:
            reward = float(self._units.inside(reward, 1, 0))
        play.accumulate(self._action, reward, *self._state.sums)
        mean, root, variance = self._state.belief
        work = work_space(self.setting.dim, 0)
        update_posterior(mean, root, self._action, reward, variance, work.left, work.gain)
        if self._traced:
            self._told.append((self._action, reward))
        self._energy += reward * reward
        self._step += 1
        self._action = None

    def end_task(self) -> None:
        """Let the learner see the task; an action whose reward was never told is forgotten."""
        self._require_task("end_task")
        self._clear_sums()
        self._close_opening()
        # the steps not played consume their share of randomness, so that the next task finds it
        rest = self.setting.horizon - self._step - (self._action is not None)
        self._rng.standard_normal(rest * self._normals())
        play.mirror(self._state.sums.gram)
        play.mirror(self._state.opening.gram)
        trace = (
            np.array([action for action, _ in self._told]).reshape(-1, self.setting.dim),
            np.array([reward for _, reward in self._told]),
        )
        self._finish(self._step, self._energy, self._opening_steps, self._opening_energy, trace)
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

    def _clear_sums(self) -> None:
        """At the first step: a task played in one go leaves its sums behind."""
        if self._step == 0:
            for values in self._state.sums:
                values[:] = 0.0

    def _close_opening(self) -> None:
        if self._opening:
            self._opening = False
            for opening, values in zip(self._state.opening, self._state.sums, strict=True):
                opening[:] = values
            self._opening_steps, self._opening_energy = self._step, self._energy

    def _adopt(self, shared: State) -> None:
        """Keep the state in arrays that an ensemble shares with the kernel."""
        shared.belief.mean[:], shared.belief.root[:] = self._state.belief[:2]
        for values, own in zip(shared[1:], self._state[1:], strict=True):
            values.gram[:], values.moment[:] = own
        self._state = shared

    @property
    def _plan(self) -> Plan:
        """When the task under way, or else the next one, explores."""
        return self._plans[self.tasks_seen < self._warmup]

    def _finish(
        self,
        steps: int,
        energy: float,
        opening: int,
        opening_energy: float,
        trace: tuple[Array, Array],
    ) -> None:
        if self.agent.learner.all_steps:
            finished = Finished(*self._state.sums, steps, energy)
        else:
            finished = Finished(*self._state.opening, opening, opening_energy)
        if self._traced:
            finished = finished._replace(trace=trace)
        self._observe(finished_outside(self._units, finished))
        self._in_task = False

    def _observe(self, finished: Finished) -> None:
        self._memory = self.agent.learner.observe(self._memory, finished)
        self.tasks_seen += 1

    def _lasting(self) -> int:
        """For how many tasks, that under way included, its prior stays or follows in the kernel."""
        learner = self.agent.learner
        if self._units is not None or (self._traced and type(learner) not in IN_KERNEL):
            return 1
        if self.tasks_seen < self._warmup:
            lasting = lasts(self.agent.warmup_prior, self._warmup_memory)
            return min(lasting, self._warmup - self.tasks_seen)
        if self._in_kernel or self._keeps_its_memory:
            return MANY
        return lasts(learner, self._memory)

    @property
    def _in_kernel(self) -> bool:
        """Whether the prior of the task under way, and of those to come, is one that the kernel
        learns: by moments of two tasks at least, with a hyper-prior, or a centre of one task."""
        policy, kind = self._policy, type(self.agent.learner)
        if self.tasks_seen < self._warmup or kind not in IN_KERNEL:
            return False
        if kind is Centre:
            return (policy.uses_prior or policy.centred) and bool(self._memory.state.tasks[0])
        return policy.uses_prior and (kind is Hyper or bool(self._memory.state.tasks[0] >= 2))

    @property
    def _keeps_its_memory(self) -> bool:
        """Whether tasks to come change neither its memory nor its prior."""
        learner = self.agent.learner
        if type(learner) is Commit:
            return learner.settled(self._memory)
        return type(learner) is Given

    def _require_task(self, call: str) -> None:
        if not self._in_task:
            raise InputError(f"no task is under way: call start_task before {call}")

    def save(self, path: Path | str) -> None:
        """Write all there is to the player, between any two calls, to a text file (JSON).

        The learner, policies and rules of its agent must be the package's own; a player with others
        can be pickled.
        """
        saved.write(self, path)

    @classmethod
    def load(cls, path: Path | str) -> Player:
        """The player that ``save`` wrote: it goes on to the same bits. Runs no code from the file.

        Parameters
        ----------
        path
            Of the file.
        """
        return saved.read(cls, path)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_alone": None}
