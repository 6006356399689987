"""Regret of next tasks with an estimated prior."""

from __future__ import annotations

import numpy as np
import pytest

import bayesmeta as bm
from tests.calibration import planted
from tests.calibration.planted import FAMILY


def far_off(stats: bm.TaskStatistics, noise_sd: float | None) -> bm.GaussianPrior:
    """A prior that is sure of the opposite."""
    return bm.GaussianPrior(-FAMILY.prior.mean, 0.01 * np.eye(2))


def beyond(stats: bm.TaskStatistics, noise_sd: float | None) -> bm.GaussianPrior:
    """A prior that no agent can compute with."""
    return bm.GaussianPrior([0.0, 0.0], 1e250 * np.eye(2))


def test_regret_is_paired_and_relative() -> None:
    """The true prior has none, to the last bit, in a right world and a wrong one; one that is sure
    of the opposite pays; what cannot be played is said, not dropped."""
    lab = bm.calibrate(
        FAMILY, tasks=10, estimators=["moment-widened(1)", planted.truthful, far_off, beyond],
        wrong=["nothing", "heavy-tailed noise"], regret=8, replications=5, jobs=1,
    ).sel(tasks=10)  # fmt: skip
    assert (lab.relative_regret.sel(estimator="truthful") == 0).all()
    assert (lab.known_regret > 0).all()
    assert (lab.relative_regret.sel(estimator="far_off") > 0).all()
    assert (lab.relative_regret.sel(estimator="moment-widened(1)") != 0).any()
    assert lab.relative_regret.sel(estimator="beyond").isnull().all()
    assert "no regret" in lab.attrs["problems"]
    found = bm.measures(lab)
    np.testing.assert_allclose(found.relative_regret, lab.relative_regret.mean("replication"))
    assert (found.relative_regret_error.sel(estimator="far_off") > 0).all()


def test_regret_is_as_a_simulation_has_it() -> None:
    """The known prior's regret is that of KTS in the family's own simulator, task by task."""
    from bayesmeta.runner.study import cell_seed
    from bayesmeta.simulation.simulator import simulate_run

    lab = bm.calibrate(FAMILY, tasks=4, estimators=planted.truthful, regret=True, replications=1,
                       jobs=1)  # fmt: skip
    seed = cell_seed(cell_seed(0, "tasks=4/replication=0"), "next regret")
    played = simulate_run(FAMILY, [bm.ROSTER["KTS"]], tasks=20, seed=seed)
    assert float(lab.known_regret.squeeze()) == pytest.approx(played["regret"].mean())


def test_bad_input() -> None:
    """Of a table, or no task."""
    stats = bm.TaskStatistics.from_arrays([1, 1, 2, 2], [1.0, 2, 3, 5], [[1.0], [2], [1], [2]])
    with pytest.raises(bm.InputError, match="regret is of tasks of a TaskFamily"):
        bm.calibrate(stats, regret=True, jobs=1)
    with pytest.raises(bm.InputError, match="regret must be at least 1"):
        bm.calibrate(FAMILY, regret=0, jobs=1)
