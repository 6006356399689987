"""Players that meet the same drawn tasks: one task, or a block of them, in one call of a kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesmeta.agents.block import Learning, Notes, play_block
from bayesmeta.agents.centre import Centre
from bayesmeta.agents.decorrelated import Decorrelated
from bayesmeta.agents.hyper import Hyper
from bayesmeta.agents.learners import Finished, Moments
from bayesmeta.agents.moment_mean import MomentMean
from bayesmeta.agents.policies import Policy
from bayesmeta.agents.restated import (
    Outcomes,
    choosing_inside,
    finished_outside,
    outcomes_outside,
    task_inside,
)
from bayesmeta.checks import Array, InputError
from bayesmeta.environment import Task
from bayesmeta.estimators.estimate import PriorEstimate
from bayesmeta.kernels import play
from bayesmeta.kernels.codes import Memory
from bayesmeta.kernels.pcg import draw_normals
from bayesmeta.kernels.tuples import SETTINGS, TOTALS, Agents, Belief, State, Sums

Player = Any
"""``agents.player.Player``, whose module imports this one."""
ROOM = 2**20
"""How many numbers a block of tasks may draw, 8 MB of them: what a call costs is shared by more."""
LONGEST = 64
"""Tasks of a block, at most."""


IN_KERNEL: dict[type, Memory] = {
    Moments: Memory.MOMENTS,
    Decorrelated: Memory.DECORRELATED,
    MomentMean: Memory.MEAN,
    Hyper: Memory.HYPER,
    Centre: Memory.CENTRE,
}
"""Learners whose memory the kernel keeps, so that blocks of tasks go by without them."""


class Learned(NamedTuple):
    """Priors that an agent came to within a block, after that of its first task."""

    mean: Array
    cov: Array
    raw_cov: Array
    raised: Array
    passed_over: Array


class Part(NamedTuple):
    """Tasks of a block that were played in one go: (task, agent) regret and exploration steps, each
    agent's prior in the first of them, and in the others where it changed. Arrays are reused."""

    regret: Array
    explored: Array
    estimates: list[PriorEstimate]
    learned: list[Learned | None]


class Ensemble:
    """Players that meet the same drawn tasks, played in one call of the kernel."""

    def __init__(self, players: list[Player], *, block: int = 1) -> None:
        self._players, setting = players, players[0].setting
        self._units = setting.units
        if any(player.setting.units != self._units for player in players):
            raise InputError("players of one ensemble must be told the same setting")
        count, d, horizon = len(players), setting.dim, setting.horizon
        self._block = block
        self._policies: list[Policy | None] = [None] * count
        self._own = [np.empty(0)] * count
        self._agents = Agents(
            settings=np.zeros(count, dtype=SETTINGS),
            quantiles=np.empty((count, horizon)),
            points=np.empty((count, 0)),
            normals=np.empty(0),
            mean=np.empty((count, d)),
            root=np.empty((count, d, d)),
            gram=np.zeros((count, d, d)),
            moment=np.zeros((count, d)),
            opening_gram=np.zeros((count, d, d)),
            opening_moment=np.zeros((count, d)),
            chosen=np.empty((count, horizon), dtype=np.int64),
            taken=np.empty((count, horizon, d)),
            rewards=np.empty((count, horizon)),
            totals=np.empty(count, dtype=TOTALS),
        )
        for i, player in enumerate(players):
            self._share(i, player)
        memories = [p._memory for p in players if type(p.agent.learner) is Decorrelated]
        room = max((len(memory.ridges.lowest) for memory in memories), default=0)
        self._learning = Learning.of(block, count, d, room)
        self._notes = Notes.of(block, count, d)
        for i, player in enumerate(players):
            self._share_memory(i, player)

    def _share(self, i: int, player: Player) -> None:
        """Lay out a player's numbers, and let it keep its state in the arrays of the kernel."""
        agents, variance = self._agents, player._state.belief.variance
        agents.settings["keep"][i], agents.settings["variance"][i] = player._keep, variance
        player._adopt(
            State(
                Belief(agents.mean[i], agents.root[i], variance),
                Sums(agents.gram[i], agents.moment[i]),
                Sums(agents.opening_gram[i], agents.opening_moment[i]),
            )
        )

    def _share_memory(self, i: int, player: Player) -> None:
        """Note how a player learns; what the kernel can learn is kept in its arrays."""
        learner, learning, setting = player.agent.learner, self._learning, player.setting
        learning.all_steps[i] = learner.all_steps
        learning.reach[i] = player._reach.square
        # in units of their own, players take one task at a time, and learn by themselves
        if type(learner) not in IN_KERNEL or self._units is not None:
            return
        learning.memory[i] = IN_KERNEL[type(learner)]
        memory: Any = player._memory
        states: tuple[Any, ...] = learning.states
        learning.floor[i] = setting.bounds.prior_min
        learning.variance[i] = setting.noise_sd**2
        if type(learner) is Moments:
            learning.constant[i] = memory.constant
        elif type(learner) is Decorrelated:
            learning.constant[i], learning.use[i] = learner.widening, learner.past
            learning.logs[i] = memory.logs
            memory = memory._replace(ridges=_shared(learning.ridges, i, memory.ridges))
        elif type(learner) is Hyper:
            learning.use[i], states = learner.code, learning.hyper_states
            for values, own in zip(learning.hyper_told, memory.told, strict=True):
                values[i] = own
        else:
            policy = player.agent.policy
            prior = learner.known(setting) if policy.uses_prior else policy.own_prior(setting)
            learning.hyper_told.cov[i] = prior.cov
            learning.hyper_told.root[i] = prior.cholesky.T
        if type(learner) is Centre:
            learning.use[i], learning.ridge[i] = learner.pooled, memory.ridge
            states = learning.centre_sums
        player._memory = memory._replace(state=_shared(states, i, memory.state))

    def play(self, task: Task) -> Outcomes:
        """Play a task that every player has started."""
        self._draw(1)
        agents = self._agents
        play.play_all(agents, task_inside(self._units, task), True)
        for i, (player, numbers) in enumerate(
            zip(self._players, agents.totals.tolist(), strict=True)
        ):
            _, _, opening, energy, opening_energy = numbers
            trace = agents.taken[i], agents.rewards[i]
            player._finish(player.setting.horizon, energy, opening, opening_energy, trace)
        totals = agents.totals
        done = Outcomes(
            totals["regret"], totals["explored"], agents.chosen, agents.taken, agents.rewards
        )
        return outcomes_outside(self._units, done)

    def play_some(self, tasks: Task, first: int) -> Part:
        """Start and play tasks of a block, the arrays of which have a leading axis, from ``first``
        on: as many as leave no player without a turn of its own."""
        players, learning, notes = self._players, self._learning, self._notes
        estimates = [player.start_task() for player in players]
        most = min(len(tasks.theta) - first, self._block)
        count = min(most, *(player._lasting() for player in players))
        here = slice(first, first + count)
        theta, noise, actions, radius, best, earned = tasks
        block = Task(theta[here], noise[here], actions[here], radius, best[here], earned[here])
        learning.mean[:], learning.root[:] = self._agents.mean, self._agents.root
        learning.estimates[:] = [player._in_kernel for player in players]
        learned = [self._learned(i, count) for i in range(len(players))]
        self._draw(count)
        starts = self._agents.settings["start"].copy()
        traced = any(player._traced for player in players)
        play_block(self._agents, task_inside(self._units, block), learning, notes, traced)
        self._agents.settings["start"] = starts
        for i, player in enumerate(players):
            self._finish(i, player, count)
        regret = notes.regret[:count]
        if self._units is not None:
            regret = self._units.outside(regret, 1, 0)
        return Part(regret, notes.explored[:count], estimates, learned)

    def _learned(self, i: int, count: int) -> Learned | None:
        if count == 1 or not self._learning.estimates[i]:
            return None
        notes, here = self._notes, slice(1, count)
        player = self._players[i]
        if type(player.agent.learner) is Hyper:
            drawn = player.agent.learner.normals(player._learner_rng, count - 1, player.setting.dim)
            self._learning.normals[here, i] = drawn
        return Learned(
            mean=notes.mean[here, i],
            cov=notes.cov[here, i],
            raw_cov=notes.raw_cov[here, i],
            raised=notes.raised[here, i],
            passed_over=notes.passed_over[here, i],
        )

    def _finish(self, i: int, player: Player, count: int) -> None:
        """Let a player see the tasks of a block; refuse a prior that it came to on the way."""
        learning, notes = self._learning, self._notes
        if learning.estimates[i]:
            player._reach.check_learned(notes.mean[1:count, i], notes.cov[1:count, i])
        player._in_task = False
        if learning.memory[i] or player._keeps_its_memory:
            player.tasks_seen += count
            return
        found = zip(*(part[:count, i] for part in notes[-4:]), strict=True)
        for gram, moment, steps, energy in found:
            finished = Finished(gram, moment, int(steps), float(energy))
            if player._traced:  # such a player plays one task at a time
                trace = self._agents.taken[i], self._agents.rewards[i]
                finished = finished._replace(trace=trace)
            player._observe(finished_outside(self._units, finished))

    def _draw(self, count: int) -> None:
        """Draw the normals of so many tasks."""
        for i, player in enumerate(self._players):
            if player._policy is not self._policies[i]:
                self._settle(i, player._policy)
            for name, value in player._plan._asdict().items():
                self._agents.settings[name][i] = value
        for player, own in zip(self._players, self._own, strict=True):
            draw_normals(player._rng, own[: count * (len(own) // self._block)])

    def _settle(self, agent: int, policy: Policy) -> None:
        """Note the policy a player has come to, and lay out the normals anew."""
        setting = self._players[agent].setting
        self._policies[agent] = policy
        settings = self._agents.settings
        choosing = policy.choosing(range(setting.horizon), setting.dim, setting)
        choosing = choosing_inside(self._units, choosing)
        self._agents.quantiles[agent] = choosing.quantiles
        for name in choosing._fields:
            if name not in ("quantiles", "points"):
                settings[name][agent] = getattr(choosing, name)
        own, points = len(choosing.points), self._agents.points
        if own > points.shape[1]:
            more = np.empty((len(points), own - points.shape[1]))
            points = np.concatenate([points, more], axis=1)
        points[agent, :own], settings["points"][agent] = choosing.points, own
        settings["width"][agent] = self._players[agent]._normals()
        sizes = settings["width"] * setting.horizon * self._block
        ends = np.cumsum(sizes)
        settings["start"] = ends - sizes
        # four agents read theirs abreast, those that need fewer than d beyond their own
        normals = np.zeros(int(ends[-1]) + setting.dim)
        self._agents = self._agents._replace(normals=normals, points=points)
        self._own = [normals[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def _shared(arrays: tuple[Any, ...], i: int, own: Any) -> Any:
    """The numbers of a player, kept in its rows of the kernel's arrays."""
    rows = type(own)(*(values[i] for values in arrays))
    for row, values in zip(rows, own, strict=True):
        row[:] = values
    return rows


def block_size(players: list[Player], numbers: int) -> int:
    """How many tasks a block should have, where one of them draws so many numbers."""
    setting = players[0].setting
    ball = setting.ball is not None
    own = sum(
        max(
            policy.normals(setting.dim, ball=ball)
            for policy in (a.policy, a.warmup_policy or a.policy)
        )
        for a in (player.agent for player in players)
    )
    return int(min(max(ROOM // max(numbers, own * setting.horizon, 1), 1), LONGEST))
