"""The codes by which kernels know policies and exploration rules."""

from __future__ import annotations

from enum import IntEnum


class Scheme(IntEnum):
    """How an action is chosen from the posterior (``choose.choose``)."""

    THOMPSON = 0
    GREEDY = 1
    BAYES_UCB = 2
    OFUL = 3
    V_IDS = 4
    FREQUENTIST_IDS = 5


class Rule(IntEnum):
    """When a step explores instead (``play.explores``)."""

    NONE = 0
    FIRST_STEPS = 1
    UNTIL_EIGENVALUE = 2
    RESCUE = 3
