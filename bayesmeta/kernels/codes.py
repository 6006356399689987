"""What kernels share with code that does not wait for numba: codes of policies and exploration
rules, and when a gram is singular."""

from __future__ import annotations

from enum import IntEnum

SINGULAR = 1e-12
"""A gram is singular where lambda_min of V_ij / sqrt(V_ii V_jj) is below this times d."""


class Scheme(IntEnum):
    """How an action is chosen from the posterior (``choose.choose``)."""

    THOMPSON = 0
    GREEDY = 1
    BAYES_UCB = 2
    OFUL = 3
    V_IDS = 4
    FREQUENTIST_IDS = 5
    KNOWLEDGE_GRADIENT = 6
    TWO_STEPS = 7


class Use(IntEnum):
    """What becomes of the hyper-posterior N(m, C) of mu (``hyper.task_prior``): the prior of a task
    is N(m, S), N(draw from it, S) or N(m, S + C)."""

    MEAN = 0
    DRAW = 1
    MARGINAL = 2


class Memory(IntEnum):
    """What a learner adds finished tasks to, and makes its next prior of, within a block of tasks
    (``agents.block``); a memory of other kinds is left to its learner."""

    OTHER = 0
    MOMENTS = 1
    DECORRELATED = 2
    MEAN = 3
    HYPER = 4
    CENTRE = 5


class Rule(IntEnum):
    """When a step explores instead (``play.explores``)."""

    NONE = 0
    FIRST_STEPS = 1
    UNTIL_EIGENVALUE = 2
    RESCUE = 3
    EACH_ACTION = 4
    TWO_ENDS = 5
