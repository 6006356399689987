"""The studies of the rivals at a size that is played at once."""

from __future__ import annotations

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.agents.rivals import RIVALS
from bayesmeta.runner.collect import collect_kept
from bayesmeta.runner.run import run_study
from bayesmeta.simulation.simulator import simulate_run
from bayesmeta.studies.rivals import ARMS, arms_study, paper_study, told_family


def test_every_rival_plays_the_papers_experiment() -> None:
    """Every row of the study beside its reference, at the paper's mu_*."""
    rows = paper_study(runs=1, tasks=2).shared["agents"]
    names = {row.name for row in rows}
    assert set(RIVALS) - set(ARMS) <= names and {"REML-IDS", "MQB-TS", "KTS"} <= names
    assert {row.reference for row in rows} <= names
    regret = simulate_run(told_family(), rows, tasks=2)["regret"]
    assert regret.shape == (len(rows), 2) and (regret >= 0).all()


def test_the_hyper_prior_of_the_papers_family_is_what_its_bound_says() -> None:
    """E|mu|^2 = m^2 under it; mu_* itself is the paper's, and stays."""
    told, plain = told_family(), bm.paper_family()
    assert told.hyper.cov.trace() == pytest.approx(plain.told().mean_norm ** 2)
    assert np.array_equal(told.prior.mean, plain.prior.mean) and not told.redraw


def test_the_arms_are_drawn_for_every_run() -> None:
    """Bayes regret: the record says so, and every row opens with each arm once."""
    study = arms_study(runs=2)
    record = collect_kept(study, run_study(study, raise_errors=True))
    assert "drawn from the hyper-prior" in record.attrs["regret"]
    assert (record.exploration_steps == 4).all()
