"""When a task explores: chooses its action uniformly from the set on offer, or each once."""

from __future__ import annotations

from dataclasses import dataclass

from bayesmeta.checks import InputError, real, whole
from bayesmeta.display import other_than_default
from bayesmeta.environment import Setting
from bayesmeta.kernels.codes import Rule
from bayesmeta.kernels.tuples import Plan
from bayesmeta.theory.constants import exploration_length

WHOLE_TASK = -1


@dataclass(frozen=True, repr=False)
class Exploration:
    """When a step explores; made by ``no_exploration``, ``first_steps`` and so on.

    Parameters
    ----------
    rule : Rule
        Which rule.
    tau : int or None
        Steps of ``first_steps``; None is the tau of eq. (8), ``WHOLE_TASK`` (-1) every step.
    threshold : float
        Of ``until_eigenvalue`` and ``two_ends``.

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
        if tau == WHOLE_TASK:
            tau = setting.horizon
        if tau > setting.horizon:
            source = " of eq. (8)" if self.tau is None else ""
            raise InputError(
                f"tau{source} is {tau} steps but a task has horizon {setting.horizon}; lengthen "
                "the horizon, or use a smaller fixed tau or the eigenvalue rule"
            )
        return Plan(int(self.rule), tau, self.threshold, setting.horizon)

    def check_actions(self, count: int | None, *, weighted: bool = False) -> None:
        """Refuse the whole ball where finitely many actions are needed, and sets whose two ends
        mean nothing, as those of prices (``weighted``) do."""
        if count is None and self.rule in (Rule.EACH_ACTION, Rule.TWO_ENDS):
            name = "two_ends" if self.rule is Rule.TWO_ENDS else "each_action_once"
            raise InputError(
                f"{name} takes finitely many actions and cannot be given the whole ball; "
                "use another exploration rule, or draw a finite set"
            )
        if count is not None and not weighted and self.rule is Rule.TWO_ENDS:
            raise InputError(
                "two_ends explores with the lowest and the highest price and needs a family of "
                "prices, such as pricing_family(); use until_eigenvalue"
            )


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


def every_step() -> Exploration:
    """Explore in every step: a task for learning alone.

    Examples
    --------
    >>> bm.agents.every_step().plan(bm.paper_family(horizon=30).setting(tasks=2)).tau
    30
    """
    return Exploration(Rule.FIRST_STEPS, WHOLE_TASK)


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


def two_ends(threshold: float) -> Exploration:
    """Explore as ``until_eigenvalue``, with the first or the last action at random.

    In a family of prices these are the lowest and the highest: after Meta-DP.

    Parameters
    ----------
    threshold
        Greater than 0; exploration ends when lambda_min(V / sigma^2) reaches it.

    Examples
    --------
    >>> bm.agents.two_ends(10.0).rule.name
    'TWO_ENDS'
    """
    return Exploration(Rule.TWO_ENDS, threshold=real("threshold", threshold, above=0.0))


def each_action_once() -> Exploration:
    """Take action k in step k, for as many steps as there are actions: MetaTS and AdaTS with arms.

    Examples
    --------
    >>> bm.agents.each_action_once().rule.name
    'EACH_ACTION'
    """
    return Exploration(Rule.EACH_ACTION)


def rescue() -> Exploration:
    """Explore in the last d steps while the gram has rank below d (All-MTS, Section 6).

    Examples
    --------
    >>> bm.agents.rescue().rule.name
    'RESCUE'
    """
    return Exploration(Rule.RESCUE)
