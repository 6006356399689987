"""The roster: one row per algorithm."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from bayesmeta.agents.exploration import Exploration, no_exploration, rescue, until_eigenvalue
from bayesmeta.agents.learners import (
    KNOWN,
    KNOWN_MEAN,
    UNKNOWN,
    Given,
    Learner,
    Likelihood,
    Moments,
    Posterior,
)
from bayesmeta.agents.policies import Policy, bayes_ucb, greedy, thompson, v_ids
from bayesmeta.checks import InputError, of_type, one_of, whole
from bayesmeta.environment import Setting
from bayesmeta.kernels.codes import Rule
from bayesmeta.streams import ENVIRONMENT


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
        if not self.name or "/" in self.name or self.name == ENVIRONMENT:
            raise InputError(
                f"an agent cannot be called {self.name!r}: its randomness is keyed by its name, "
                f"which must not be empty, contain '/' or be {ENVIRONMENT!r}"
            )
        of_type("policy", self.policy, Policy, "call a maker such as thompson()")
        made = "call a maker such as no_exploration()"
        of_type("exploration", self.exploration, Exploration, made)
        if isinstance(self.learner, type) or not hasattr(self.learner, "estimate"):
            raise InputError(
                f"learner of agent {self.name} must provide start, observe and estimate, such as "
                f"KNOWN or Moments(widening=1.0), got {self.learner!r}"
            )
        if self.warmup is not None:
            whole(f"warmup of agent {self.name}", self.warmup)
        opens = self.exploration.rule in (Rule.FIRST_STEPS, Rule.UNTIL_EIGENVALUE)
        if isinstance(self.learner, Moments) and not self.learner.all_steps and not opens:
            raise InputError(
                f"agent {self.name} learns from its opening exploration but never explores then; "
                "give it first_steps or until_eigenvalue, or Moments(all_steps=True)"
            )

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
              note="explores as Th does, learns the prior from all steps"),
        Agent(f"All-M{suffix}", policy, last, everything, rescued, warmup=None,
              note="learns from all steps; explores only where these do not determine theta"),
        Agent(explored, policy, until, KNOWN, explored, note="knows the prior, explores as Th"),
        Agent(rescued, policy, last, KNOWN, rescued, note="knows the prior, explores as All"),
    ]  # fmt: skip


def _ours(everything: Agent) -> list[Agent]:
    """Rows that are not the paper's: likelihood learners, and what makes a comparison fair."""
    never = no_exploration()
    return [
        Agent("REML-TS", thompson(), never, Likelihood(), "KTS", warmup=10,
              note="ours: learns the prior by restricted likelihood from all steps"),
        Agent("ML-TS", thompson(), never, Likelihood(restricted=False), "KTS", warmup=10,
              note="ours: learns the prior by likelihood from all steps"),
        Agent("HB-TS", thompson(), never, Posterior(), "KTS",
              note="ours: plays each task with a prior drawn from its posterior"),
        Agent("HB-mean-TS", thompson(), never, Posterior(average=True), "KTS",
              note="ours: plays with the posterior predictive distribution of theta"),
        replace(everything, name="All-MTS_w10", warmup=10, note="All-MTS after ten tasks, not d^3"),
        Agent("KGreedy", greedy(), never, KNOWN, "KGreedy", note="knows the prior, never explores"),
        Agent("KUCB", bayes_ucb(), never, KNOWN, "KUCB", note="knows the prior, Bayes-UCB"),
        *[
            Agent(f"KTS_x{c:g}", thompson(), never, Given(scale=c), "KTS",
                  note=f"KTS with its prior covariance times {c:g}")
            for c in (0.5, 0.2, 0.05)
        ],
    ]  # fmt: skip


_PAPER = {row.name: row for row in [*_rows("TS", thompson()), *_rows("IDS", v_ids())]}
ROSTER: dict[str, Agent] = _PAPER | {row.name: row for row in _ours(_PAPER["All-MTS"])}
"""Every row by name."""

OURS = ("REML-TS", "ML-TS")
"""Rows drawn beside the paper's."""
BAYESIAN = ("HB-TS", "HB-mean-TS")
"""Rows that learn a posterior: slow, so Figure 1 takes them from a recorded study."""
FIGURE_1 = ("KTS", "KMTS", "UKTS", "Th-MTS_tau", "All-MTS_tau", "All-MTS")
"""The rows the paper draws."""


def find_agents(names: str | Iterable[str]) -> list[Agent]:
    """Rows by name, in the order given."""
    if isinstance(names, str):
        names = [names]
    return [ROSTER[one_of("agent", name, ROSTER)] for name in names]


def with_references(agents: Agent | str | Iterable[Agent | str]) -> list[Agent]:
    """The agents, given as rows or by name, and whatever rows they are measured against."""
    given = [agents] if isinstance(agents, (Agent, str)) else list(agents)
    rows = [find_agents(row)[0] if isinstance(row, str) else row for row in given]
    for row in rows:
        of_type("agent", row, Agent, "give a row or the name of one")
    found = {row.name: row for row in rows}
    if len(found) < len(rows):
        names = [row.name for row in rows]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two agents are called {twice!r}; a name keys an agent's randomness")
    for row in rows:
        if row.reference not in found:
            # a row that is not in the roster must be among the agents
            one_of(f"reference of agent {row.name!r}:", row.reference, [*ROSTER, *found])
            found[row.reference] = ROSTER[row.reference]
    return list(found.values())
