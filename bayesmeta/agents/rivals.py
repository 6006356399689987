"""Rows of the systems the paper compares with, each with its source and what it is told.

A fidelity of A means equations from the authors' own text or code, B text without code or code as
changed by others, C what an abstract and later papers say: a row "after" the authors, not theirs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from bayesmeta.agents.agent import Agent
from bayesmeta.agents.centre import Centre
from bayesmeta.agents.commit import ArmMoments, Commit
from bayesmeta.agents.decorrelated import Decorrelated
from bayesmeta.agents.exploration import (
    every_step,
    no_exploration,
    rescue,
    two_ends,
    until_eigenvalue,
)
from bayesmeta.agents.hyper import Hyper
from bayesmeta.agents.learners import Given, Moments
from bayesmeta.agents.moment_mean import MomentMean
from bayesmeta.agents.policies import bayes_ucb, knowledge_gradient, oful, thompson, two_rhc


class Rival(NamedTuple):
    """A row, whose it is, how near to the original, and what it is told besides noise, horizon and
    number of tasks.

    Parameters
    ----------
    row : Agent
        The row.
    source : str
        Authors and year.
    fidelity : {"A", "B", "C"}
        See the module.
    told : str
        What it is told.

    Examples
    --------
    >>> bm.agents.RIVALS["MetaTS"].told
    'Sigma_*, hyper-prior'
    """

    row: Agent
    source: str
    fidelity: str
    told: str


_HYPER = "Sigma_*, hyper-prior"


def _hyper(name: str, use: str, note: str) -> Agent:
    return Agent(name, thompson(), no_exploration(), Hyper(use), reference="KTS", note=note)


def _hierarchical() -> list[Rival]:
    """One learner, the hyper-posterior of mu_*, and what is made of it."""
    ada = _hyper("AdaTS", "marginal", "Basu et al. 2021: TS from N(m, Sigma_* + C)")
    marginal = replace(
        ada,
        name="MarginalTS",
        learner=Given("hyper", "marginal"),
        note="no learning: TS from N(m_q, Sigma_* + S_q)",
    )
    ucb_known = Agent(
        "KBayesUCB",
        bayes_ucb("total"),
        no_exploration(),
        Given(),
        reference="KBayesUCB",
        note="knows the prior, plays as HierBayesUCB",
    )
    ucb = replace(
        ucb_known,
        name="HierBayesUCB",
        learner=Hyper("marginal"),
        note="Guan and Xiong 2024: upper bounds of width sqrt(2 ln N T) from AdaTS's prior",
    )
    hier = replace(
        ada,
        name="HierTS",
        note="Hong et al. 2022, tasks in sequence: in law AdaTS, with draws of its own",
    )
    meta = _hyper(
        "MetaTS", "draw", "Kveton et al. 2021: TS from N(mu, Sigma_*), mu drawn once a task"
    )
    mean = _hyper("MetaMean", "mean", "ours: TS from N(m, Sigma_*), MetaTS without its draw")
    return [
        Rival(meta, "Kveton et al. 2021", "A", _HYPER),
        Rival(ada, "Basu et al. 2021", "A", _HYPER),
        Rival(mean, "ours", "A", _HYPER),
        Rival(hier, "Hong et al. 2022", "A", _HYPER),
        Rival(ucb, "Guan and Xiong 2024", "A", _HYPER),
        Rival(ucb_known, "Guan and Xiong 2024", "A", "the prior"),
        Rival(marginal, "baseline of Kveton et al. 2021", "A", _HYPER),
    ]


OPENING = 10.0
"""Where the opening with two prices ends, as lambda_min(V / sigma^2): least squares then have a
standard deviation of 0.32 at most, where ``pricing_family`` has a prior of 0.2."""


def _pricing() -> list[Rival]:
    """Meta-DP and Meta-DP++, on a linear bandit and with prices: OLS of the opening steps, a known
    covariance or one widened by its error. Constants are the paper's, those of the authors not
    being at hand."""
    known = Agent(
        "Meta-DP",
        thompson(),
        until_eigenvalue(0.03),
        MomentMean(),
        reference="KTS_tau",
        warmup=None,
        note="after Bastani et al. 2022: the mean of OLS, Sigma_* known",
    )
    unknown = replace(
        known,
        name="Meta-DP++",
        learner=Moments(widening=10.0),
        note="after Bastani et al. 2022: on a linear bandit Th-MTS_tau, with draws of its own",
    )
    oracle = Agent(
        "KTS_price",
        thompson(),
        two_ends(OPENING),
        Given(),
        reference="KTS_price",
        note="after Bastani et al. 2022: knows the prior, opens with two prices",
    )
    prices = [
        replace(
            row,
            name=f"{row.name}_price",
            exploration=oracle.exploration,
            reference=oracle.name,
            note=f"{row.note.split(':')[0]}: with prices, opening with the two ends",
        )
        for row in (known, unknown)
    ]
    source = "Bastani, Simchi-Levi and Zhu 2022"
    return [
        Rival(known, source, "C", "Sigma_*"),
        Rival(unknown, source, "C", "bounds"),
        Rival(prices[0], source, "C", "Sigma_*"),
        Rival(prices[1], source, "C", "bounds"),
        Rival(oracle, "baseline of Bastani et al. 2022", "C", "the prior"),
    ]


def _biased() -> list[Rival]:
    """BIAS-OFUL, and what its centre may be learned by."""
    policy = oful(None, delta=None, ridge=None, centred=True)
    bias = Agent(
        "BIAS-OFUL",
        policy,
        no_exploration(),
        Given(),
        reference="BIAS-OFUL",
        note="after Cella et al. 2020: OFUL around mu_*, the ridge that is Bayesian",
    )
    average = replace(
        bias,
        name="AVG-OFUL",
        learner=Centre("average"),
        note="after Cella et al. 2020: around the mean of ridge estimates of finished tasks",
    )
    pooled = replace(
        bias,
        name="RR-OFUL",
        learner=Centre("pooled"),
        note="after Cella et al. 2020: around one ridge regression of finished tasks",
    )
    source, told = "Cella, Lazaric and Pontil 2020", "trace of Sigma_*, bounds"
    return [
        Rival(bias, source, "C", "mu_*, trace of Sigma_*, bounds"),
        Rival(average, source, "C", told),
        Rival(pooled, source, "C", told),
    ]


COMMITTED = 50
"""Tasks that explore before a row of Simchowitz et al. commits; theirs is the best of many, chosen
with hindsight, which no agent can do."""


def _committed() -> list[Rival]:
    """Explore-then-commit to moments, and policies that look ahead."""
    linear = Agent(
        "MoM-TS",
        thompson(),
        no_exploration(),
        Commit(Moments(widening=0.0), COMMITTED),
        reference="KTS",
        warmup=COMMITTED,
        warmup_exploration=every_step(),
        note="Simchowitz et al. 2021: random tasks, then TS from the moments of OLS, kept",
    )
    mean = replace(
        linear,
        name="MoM-TS_mean",
        learner=Commit(MomentMean(), COMMITTED),
        note="Simchowitz et al. 2021: the mean alone, Sigma_* told",
    )
    arms = replace(
        linear,
        name="MoM-TS_arms",
        learner=Commit(ArmMoments(), COMMITTED),
        note="Simchowitz et al. 2021, K arms: random tasks, then TS from unbiased moments, kept",
    )
    bare = replace(
        arms,
        name="MoM-TS_arms_mean",
        learner=Commit(ArmMoments(covariance=False), COMMITTED),
        note="Simchowitz et al. 2021, K arms: the mean alone, covariance lambda_max I",
    )
    known = {
        name: Agent(name, policy, no_exploration(), Given(), name, note=f"knows the prior, {what}")
        for name, policy, what in (
            ("K2RHC", two_rhc(), "2-RHC of Simchowitz et al. 2021"),
            ("KKG", knowledge_gradient(), "knowledge gradient"),
        )
    }
    ahead = [
        replace(linear, name=f"MoM-{name[1:]}", policy=row.policy, reference=name, note=text)
        for (name, row), text in zip(
            known.items(),
            (
                "Simchowitz et al. 2021: random tasks, then 2-RHC from the moments, kept",
                "Simchowitz et al. 2021: random tasks, then the knowledge gradient",
            ),
            strict=True,
        )
    ]
    source = "Simchowitz et al. 2021"
    return [
        Rival(linear, source, "A", "nothing"),
        Rival(mean, source, "B", "Sigma_*"),
        Rival(arms, source, "A", "that actions are arms"),
        Rival(bare, source, "B", "that actions are arms, lambda_max"),
        *(Rival(row, source, "A", "the prior") for row in known.values()),
        *(Rival(row, source, "A", "nothing") for row in ahead),
    ]


def _decorrelated() -> list[Rival]:
    """All-MTS with W-decorrelated estimates."""
    own = Agent(
        "W-MTS",
        thompson(),
        rescue(),
        Decorrelated(),
        reference="KTS_rescue",
        warmup=None,
        note="Deshpande et al. 2018: learns from W-decorrelated estimates of all steps",
    )
    past = replace(
        own,
        name="W-MTS_past",
        learner=Decorrelated("past"),
        note="ours: the same, decorrelated from the mean of past tasks",
    )
    source = "Deshpande et al. 2018"
    return [Rival(own, source, "A", "bounds"), Rival(past, f"{source}, changed", "B", "bounds")]


RIVALS: dict[str, Rival] = {
    rival.row.name: rival
    for part in (_hierarchical, _pricing, _biased, _committed, _decorrelated)
    for rival in part()
}
"""Every rival by the name of its row."""
