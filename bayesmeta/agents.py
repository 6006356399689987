"""The roster: one row per algorithm."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bayesmeta.checks import InputError, one_of
from bayesmeta.environment import Setting
from bayesmeta.exploration import Exploration, no_exploration, rescue, until_eigenvalue
from bayesmeta.learners import KNOWN, KNOWN_MEAN, UNKNOWN, Learner, Moments
from bayesmeta.policies import Policy, thompson, v_ids


@dataclass(frozen=True)
class Agent:
    """A row: what is played inside a task, when it explores, and where its prior comes from.

    ``reference`` names the row that relative regret, eq. (2), is measured against: the same
    policy with the same exploration and the true prior. The first ``warmup`` tasks (N_0; None is
    d^3, as in Section 6) are played with ``warmup_policy`` (None: the agent's own) and the prior
    of ``warmup_prior``. An agent's randomness is keyed by its name.
    """

    name: str
    policy: Policy
    exploration: Exploration
    learner: Learner
    reference: str
    warmup: int | None = 0
    warmup_policy: Policy | None = None
    warmup_prior: Learner = UNKNOWN
    note: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError("an agent needs a name; its randomness is keyed by it")
        if self.warmup is not None and self.warmup < 0:
            raise InputError(f"warmup of agent {self.name} must not be negative")

    def warmup_tasks(self, setting: Setting) -> int:
        """N_0 for this setting."""
        return setting.dim**3 if self.warmup is None else self.warmup


def _rows(suffix: str, policy: Policy) -> list[Agent]:
    """The paper's rows (Section 6) with one policy inside."""
    known, explored, rescued = f"K{suffix}", f"K{suffix}_tau", f"K{suffix}_rescue"
    never, until, last = no_exploration(), until_eigenvalue(0.03), rescue()
    theory, everything = Moments(widening=10.0), Moments(all_steps=True, widening=1.0)
    return [
        Agent(known, policy, never, KNOWN, known, note="knows the prior"),
        Agent(f"KM{suffix}", policy, never, KNOWN_MEAN, known, note="knows the prior mean"),
        Agent(f"UK{suffix}", policy, never, UNKNOWN, known, note="knows nothing, learns nothing"),
        Agent(f"Th-M{suffix}_tau", policy, until, theory, explored, warmup=None,
              note="learns the prior from its exploration steps, as the theory has it"),
        Agent(f"All-M{suffix}_tau", policy, until, everything, explored, warmup=None,
              note="explores alike, learns the prior from all steps"),
        Agent(f"All-M{suffix}", policy, last, everything, rescued, warmup=None,
              note="learns from all steps, explores only to rescue a singular gram"),
        Agent(explored, policy, until, KNOWN, explored, note="knows the prior, explores"),
        Agent(rescued, policy, last, KNOWN, rescued, note="knows the prior, rescues"),
    ]  # fmt: skip


ROSTER: dict[str, Agent] = {
    agent.name: agent for agent in [*_rows("TS", thompson()), *_rows("IDS", v_ids())]
}
"""Every row by name."""

FIGURE_1 = ("KTS", "KMTS", "UKTS", "Th-MTS_tau", "All-MTS_tau", "All-MTS")
"""The rows the paper draws."""


def find_agents(names: Iterable[str]) -> list[Agent]:
    """Rows by name, in the order given."""
    return [ROSTER[one_of("agent", name, ROSTER)] for name in names]


def with_references(agents: Iterable[Agent]) -> list[Agent]:
    """The agents and whatever rows they are measured against, each once."""
    agents = list(agents)
    found = {agent.name: agent for agent in agents}
    if len(found) < len(agents):
        names = [agent.name for agent in agents]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two agents are called {twice!r}; a name keys an agent's randomness")
    for agent in agents:
        if agent.reference not in found:
            one_of(f"reference of agent {agent.name!r}:", agent.reference, ROSTER)
            found[agent.reference] = ROSTER[agent.reference]
    return list(found.values())
