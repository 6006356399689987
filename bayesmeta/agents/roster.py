"""The roster: one row for each algorithm, the paper's and ours. A new algorithm is one more row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from bayesmeta.agents.agent import Agent
from bayesmeta.agents.exploration import no_exploration, rescue, until_eigenvalue
from bayesmeta.agents.learners import (
    KNOWN,
    KNOWN_MEAN,
    UNKNOWN,
    Given,
    Likelihood,
    Moments,
    Posterior,
)
from bayesmeta.agents.policies import Policy, bayes_ucb, frequentist_ids, greedy, thompson, v_ids
from bayesmeta.agents.rivals import RIVALS
from bayesmeta.checks import InputError, of_type, one_of


def _known(name: str, policy: Policy, note: str) -> Agent:
    """A policy with the true prior and no exploration, its own reference."""
    return Agent(name, policy, no_exploration(), KNOWN, reference=name, note=note)


def _paper(suffix: str, policy: Policy) -> list[Agent]:
    """The paper's rows (Section 6) with one policy inside."""
    oracle = _known(f"K{suffix}", policy, "knows the prior")
    explored = replace(
        oracle,
        name=f"K{suffix}_tau",
        exploration=until_eigenvalue(0.03),
        reference=f"K{suffix}_tau",
        note="knows the prior, explores as Th",
    )
    rescued = replace(
        oracle,
        name=f"K{suffix}_rescue",
        exploration=rescue(),
        reference=f"K{suffix}_rescue",
        note="knows the prior, explores as All",
    )
    theory = replace(
        explored,
        name=f"Th-M{suffix}_tau",
        learner=Moments(widening=10.0),
        warmup=None,
        note="learns the prior from its exploration steps, as the theory has it",
    )
    everything = replace(
        rescued,
        name=f"All-M{suffix}",
        learner=Moments(all_steps=True, widening=1.0),
        warmup=None,
        note="learns from all steps; explores only where these do not determine theta",
    )
    both = replace(
        theory,
        name=f"All-M{suffix}_tau",
        learner=everything.learner,
        note="explores as Th does, learns the prior from all steps",
    )
    mean = replace(oracle, name=f"KM{suffix}", learner=KNOWN_MEAN, note="knows the prior mean")
    nothing = replace(
        oracle, name=f"UK{suffix}", learner=UNKNOWN, note="knows nothing, learns nothing"
    )
    return [oracle, mean, nothing, theory, both, everything, explored, rescued]


def _ours(oracle: Agent, everything: Agent) -> list[Agent]:
    """Rows that are not the paper's: likelihood and posterior learners, and what makes a
    comparison with them fair."""
    likelihood = replace(
        oracle,
        name="REML-TS",
        learner=Likelihood(),
        warmup=10,
        note="ours: learns the prior by restricted likelihood from all steps",
    )
    posterior = replace(
        oracle,
        name="HB-TS",
        learner=Posterior(),
        note="ours: plays each task with a prior drawn from its posterior",
    )
    scaled = [
        replace(
            oracle,
            name=f"KTS_x{factor:g}",
            learner=Given(scale=factor),
            note=f"KTS with its prior covariance times {factor:g}",
        )
        for factor in (0.5, 0.2, 0.05)
    ]
    return [
        likelihood,
        replace(
            likelihood,
            name="ML-TS",
            learner=Likelihood(restricted=False),
            note="ours: learns the prior by likelihood from all steps",
        ),
        posterior,
        replace(
            posterior,
            name="HB-mean-TS",
            learner=Posterior(average=True),
            note="ours: plays with the posterior predictive distribution of theta",
        ),
        replace(everything, name="All-MTS_w10", warmup=10, note="All-MTS after ten tasks, not d^3"),
        *_better(likelihood, posterior),
        _known("KGreedy", greedy(), "knows the prior, never explores"),
        _known("KUCB", bayes_ucb(), "knows the prior, Bayes-UCB"),
        *scaled,
    ]


def _better(*learned: Agent) -> list[Agent]:
    """REML and the posterior with policies that need less regret than Thompson sampling, and
    Algorithm 2 with the frequentist IDS that the theory has in its first N_0 tasks."""
    names = {"UCB": bayes_ucb(), "Greedy": greedy(), "IDS": v_ids()}
    rows = [
        replace(
            row,
            name=f"{row.name.removesuffix('TS')}{name}",
            policy=policy,
            reference=f"K{name}",
            note=f"ours: {row.name} with {name} inside a task",
        )
        for row in learned
        for name, policy in names.items()
    ]
    algorithm2 = [
        replace(
            row,
            name=f"MQB-{row.name.removeprefix('Th-M').removesuffix('_tau')}",
            warmup_policy=frequentist_ids(None, delta=None, ridge=None),
            note="Algorithm 2 as printed: frequentist IDS in the first N_0 tasks",
        )
        for suffix, policy in (("TS", thompson()), ("IDS", v_ids()))
        for row in _paper(suffix, policy)
        if row.name.startswith("Th-")
    ]
    return [*rows, *algorithm2]


_PAPER = {row.name: row for row in [*_paper("TS", thompson()), *_paper("IDS", v_ids())]}
ROSTER: dict[str, Agent] = (
    _PAPER
    | {row.name: row for row in _ours(_PAPER["KTS"], _PAPER["All-MTS"])}
    | {name: rival.row for name, rival in RIVALS.items()}
)
"""Every row by name."""

OURS = ("REML-TS", "ML-TS")
"""Rows drawn beside the paper's."""
BAYESIAN = ("HB-TS", "HB-mean-TS")
"""Rows that learn a posterior: slow, so Figure 1 takes them from a recorded study."""
POSTERIOR = (*BAYESIAN, "HB-UCB", "HB-Greedy", "HB-IDS")
"""All rows that learn a posterior."""
FIGURE_1 = ("KTS", "KMTS", "UKTS", "Th-MTS_tau", "All-MTS_tau", "All-MTS")
"""The rows the paper draws."""


def find_agents(names: str | Iterable[str]) -> list[Agent]:
    """Rows by name, in the order given.

    Parameters
    ----------
    names : str or iterable of str
        See ``ROSTER``.

    Returns
    -------
    list of Agent

    Examples
    --------
    >>> [row.note for row in bm.agents.find_agents(["KTS", "UKTS"])]
    ['knows the prior', 'knows nothing, learns nothing']
    """
    if isinstance(names, str):
        names = [names]
    return [ROSTER[one_of("agent", name, ROSTER)] for name in names]


def with_references(agents: Agent | str | Iterable[Agent | str]) -> list[Agent]:
    """The agents, given as rows or by name, and the rows they are measured against."""
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
