"""When a task explores: chooses its action uniformly from the set on offer."""

from __future__ import annotations

from dataclasses import dataclass

from bayesmeta.checks import InputError, real, whole
from bayesmeta.display import other_than_default
from bayesmeta.environment import Setting
from bayesmeta.kernels.codes import Rule
from bayesmeta.kernels.tuples import Plan
from bayesmeta.theory.constants import exploration_length


@dataclass(frozen=True, repr=False)
class Exploration:
    """When a step explores; made by ``no_exploration``, ``first_steps`` and so on.

    Parameters
    ----------
    rule : Rule
        Which rule.
    tau : int or None
        Steps of ``first_steps``; None is the tau of eq. (8).
    threshold : float
        Of ``until_eigenvalue``.

    Examples
    --------
    >>> bm.agents.until_eigenvalue(0.03).plan(bm.paper_family().setting(100)).threshold
    0.03
    """

    rule: Rule
    tau: int | None = 0
    threshold: float = 0.0

    def __repr__(self) -> str:
        return f"{self.rule.name.lower()}({other_than_default(self, 'rule')})"

    def plan(self, setting: Setting) -> Plan:
        """Settle the rule for a setting; a tau longer than the task is refused."""
        tau = self.tau
        if tau is None:
            bounds = setting.bounds
            if not bounds.action_min > 0:
                raise InputError(
                    "tau of eq. (8) needs action_min > 0 (Assumption 1); "
                    "choose a fixed tau or the eigenvalue rule instead"
                )
            tau = exploration_length(
                setting.dim, setting.tasks, setting.horizon, bounds.radius, bounds.action_min
            )
        if tau > setting.horizon:
            source = " of eq. (8)" if self.tau is None else ""
            raise InputError(
                f"tau{source} is {tau} steps but a task has horizon {setting.horizon}; lengthen "
                "the horizon, or use a smaller fixed tau or the eigenvalue rule"
            )
        return Plan(int(self.rule), tau, self.threshold, setting.horizon)


def no_exploration() -> Exploration:
    """Never explore.

    Examples
    --------
    >>> bm.agents.no_exploration().rule.name
    'NONE'
    """
    return Exploration(Rule.NONE)


def first_steps(tau: int) -> Exploration:
    """Explore for the first ``tau`` steps.

    Parameters
    ----------
    tau
        How many; at most the horizon of the tasks.

    Examples
    --------
    >>> bm.agents.first_steps(10).tau
    10
    """
    return Exploration(Rule.FIRST_STEPS, whole("tau", tau))


def theoretical_steps() -> Exploration:
    """Explore for the tau of eq. (8), settled when the tasks are known.

    Examples
    --------
    >>> family = bm.paper_family(horizon=2000)
    >>> bm.agents.theoretical_steps().plan(family.setting(tasks=100)).tau
    1122
    """
    return Exploration(Rule.FIRST_STEPS, None)


def until_eigenvalue(threshold: float) -> Exploration:
    """Explore until the first time lambda_min(V / sigma^2) >= threshold (Section 6).

    Parameters
    ----------
    threshold
        Greater than 0; the paper's experiment has 0.03.

    Examples
    --------
    >>> bm.agents.until_eigenvalue(0.03).threshold
    0.03
    """
    return Exploration(Rule.UNTIL_EIGENVALUE, threshold=real("threshold", threshold, above=0.0))


def rescue() -> Exploration:
    """Explore in the last d steps while the gram has rank below d (All-MTS, Section 6).

    Examples
    --------
    >>> bm.agents.rescue().rule.name
    'RESCUE'
    """
    return Exploration(Rule.RESCUE)
