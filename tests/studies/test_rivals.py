"""The studies of the rivals at a size that is played at once."""

from __future__ import annotations

import numpy as np

import bayesmeta as bm
from bayesmeta.agents.rivals import RIVALS
from bayesmeta.runner.collect import collect_kept
from bayesmeta.runner.run import run_study
from bayesmeta.studies.rivals import ARMS, arms_study, paper_study, told_family


def test_every_rival_plays_the_papers_experiment() -> None:
    """Beside its reference, at the paper's mu_*, which the record says."""
    study = paper_study(runs=1, tasks=3)
    record = collect_kept(study, run_study(study, raise_errors=True))
    names = set(record.agent.values.tolist())
    assert set(RIVALS) - set(ARMS) <= names and {"REML-IDS", "MQB-TS", "KTS"} <= names
    assert np.isfinite(record.regret).all() and (record.regret >= 0).all()
    assert record.attrs["regret"] == "at the one mu_* of the family"
    told = told_family()
    assert told.prior is not None and float(told.hyper.cov.trace()) == 20.0
    assert np.array_equal(told.prior.mean, bm.paper_family().prior.mean)


def test_the_arms_are_drawn_for_every_run() -> None:
    """Bayes regret: the record says so, and every row opens with each arm once."""
    study = arms_study(runs=2)
    record = collect_kept(study, run_study(study, raise_errors=True))
    assert "drawn from the hyper-prior" in record.attrs["regret"]
    assert (record.exploration_steps == 4).all()
