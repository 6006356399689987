"""A row of the roster: policy, exploration rule, learner, and what it is measured against."""

from __future__ import annotations

from dataclasses import dataclass, field

from bayesmeta.agents.exploration import Exploration
from bayesmeta.agents.learners import UNKNOWN, Learner, Moments, missing_parts
from bayesmeta.agents.policies import Policy
from bayesmeta.checks import LATER, InputError, of_type, whole
from bayesmeta.display import html_table
from bayesmeta.environment import Setting
from bayesmeta.kernels.codes import Rule
from bayesmeta.streams import ENVIRONMENT


@dataclass(frozen=True, repr=False)
class Agent:
    """One algorithm: a policy, an exploration rule and a learner that provides its prior.

    Parameters
    ----------
    name : str
        Also keys the agent's random stream.
    policy : Policy
        What is played inside a task, such as ``thompson()``.
    exploration : Exploration
        When a step explores, such as ``no_exploration()``.
    learner : Learner
        Where the prior comes from, such as ``KNOWN`` or ``Moments(widening=1.0)``.
    reference : str
        The row that relative regret, eq. (2), is measured against: the same policy with the same
        exploration and the true prior.
    warmup : int or None
        N_0: so many tasks are played before what was learned is used; None is d^3, as in Section 6.
    warmup_policy : Policy, optional
        What plays them; the agent's own policy by default.
    warmup_prior : Learner
        The prior they are played with.
    warmup_exploration : Exploration, optional
        When they explore; as all tasks do by default.
    note : str
        What the row is, in a few words.

    Examples
    --------
    >>> from bayesmeta.agents import KNOWN, no_exploration, thompson
    >>> Agent("KTS", thompson(), no_exploration(), KNOWN, reference="KTS")
    Agent KTS
    plays         thompson(posterior_draws=1)
    explores      none()
    learns        Given(mean='known', cov='known', scale=1.0)
    warm-up       0 tasks
    compared with KTS
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
    warmup_exploration: Exploration | None = field(default=None, metadata=LATER)

    def __post_init__(self) -> None:
        if not self.name or "/" in self.name or self.name == ENVIRONMENT:
            raise InputError(
                f"an agent cannot be called {self.name!r}: its randomness is keyed by its name, "
                f"which must not be empty, contain '/' or be {ENVIRONMENT!r}"
            )
        of_type("policy", self.policy, Policy, "call a maker such as thompson()")
        made = "call a maker such as no_exploration()"
        of_type("exploration", self.exploration, Exploration, made)
        if self.warmup_exploration is not None:
            of_type("warmup_exploration", self.warmup_exploration, Exploration, made)
        for part in ("learner", "warmup_prior"):
            _check_learner(f"{part} of agent {self.name}", getattr(self, part))
        if self.warmup is not None:
            whole(f"warmup of agent {self.name}", self.warmup)
        opens = self.exploration.rule not in (Rule.NONE, Rule.RESCUE)
        if isinstance(self.learner, Moments) and not self.learner.all_steps and not opens:
            raise InputError(
                f"agent {self.name} learns from its opening exploration but never explores then; "
                "give it first_steps or until_eigenvalue, or Moments(all_steps=True)"
            )

    def warmup_tasks(self, setting: Setting) -> int:
        """N_0 for this setting."""
        return setting.dim**3 if self.warmup is None else self.warmup

    def _rows(self) -> list[list[str]]:
        warmup = "d^3 tasks" if self.warmup is None else f"{self.warmup} tasks"
        rows = [
            ["plays", repr(self.policy)],
            ["explores", repr(self.exploration)],
            ["learns", repr(self.learner)],
            ["warm-up", warmup],
        ]
        if self.warmup != 0:
            policy = self.policy if self.warmup_policy is None else self.warmup_policy
            rule = "" if self.warmup_exploration is None else f", {self.warmup_exploration!r}"
            rows.append(["", f"by {policy!r} with {self.warmup_prior!r}{rule}"])
        rows.append(["compared with", self.reference])
        return rows + ([["note", self.note]] if self.note else [])

    def __repr__(self) -> str:
        lines = [f"{name:<14}{value}" for name, value in self._rows()]
        return "\n".join([f"Agent {self.name}", *lines])

    def _repr_html_(self) -> str:
        return html_table(f"Agent {self.name}", [["part", "what it is"], *self._rows()])


def _check_learner(name: str, learner: object) -> None:
    """Refuse what lacks a part of a learner, naming the part."""
    if isinstance(learner, type):
        raise InputError(
            f"{name} must be an object, got the class {learner.__name__}; call it, as in "
            f"{learner.__name__}()"
        )
    missing = missing_parts(learner)
    if missing:
        raise InputError(
            f"{name} lacks {', '.join(missing)}; a learner has the property all_steps and the "
            "methods start, observe and estimate (bayesmeta.agents.Learner), as KNOWN and "
            f"Moments(widening=1.0) do; got {learner!r:.80}"
        )


MOST_DRAWS = 10**8
"""Random numbers of a task, which are drawn at once: 0.8 GB."""


def check_draws(agent: Agent, setting: Setting) -> None:
    """Refuse a task whose random numbers would fill the memory."""
    for policy in (agent.policy, agent.warmup_policy or agent.policy):
        each = policy.normals(setting.dim, ball=setting.ball is not None)
        if setting.horizon * each > MOST_DRAWS:
            raise InputError(
                f"horizon {setting.horizon} with {each} random numbers a step is more than fits in "
                f"memory ({MOST_DRAWS:,} numbers a task); give a shorter horizon, or an agent "
                "whose policy has fewer posterior_draws"
            )
