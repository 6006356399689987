"""The studies of the rivals at a size that is played at once."""

from __future__ import annotations

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.agents.rivals import RIVALS
from bayesmeta.simulation.simulator import simulate_run
from bayesmeta.studies.rivals import ARMS, DRAWS, PRICES, draws_study, paper_study, told_family


def test_every_rival_plays_the_papers_experiment() -> None:
    """Every row of the study beside its reference, at the paper's mu_*."""
    parts = (paper_study(runs=1, tasks=2), draws_study(runs=1, tasks=2))
    rows = list({row.name: row for part in parts for row in part.shared["agents"]}.values())
    names = {row.name for row in rows}
    assert set(RIVALS) - {*ARMS, *PRICES} <= names and {*DRAWS, "MQB-TS", "KTS"} <= names
    assert {row.reference for row in rows} <= names
    regret = simulate_run(told_family(), rows, tasks=2)["regret"]
    assert regret.shape == (len(rows), 2) and (regret >= 0).all()


def test_the_hyper_prior_of_the_papers_family_is_what_its_bound_says() -> None:
    """E|mu|^2 = m^2 under it; mu_* itself is the paper's, and stays."""
    told, plain = told_family(), bm.paper_family()
    assert told.hyper.cov.trace() == pytest.approx(plain.told().mean_norm ** 2)
    assert np.array_equal(told.prior.mean, plain.prior.mean) and not told.redraw
