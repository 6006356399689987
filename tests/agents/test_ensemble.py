"""Players abreast and tasks in blocks: the same bits as one player, one task at a time."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.agents import (
    Commit,
    Decorrelated,
    Moments,
    each_action_once,
    ensemble,
    first_steps,
    frequentist_ids,
    no_exploration,
    thompson,
)
from bayesmeta.agents.learners import MANY, Given, Likelihood, lasts
from bayesmeta.agents.restated import Reach
from bayesmeta.runner.progress import listening
from bayesmeta.simulation.simulator import simulate_run
from bayesmeta.streams import stream

ALL = bm.ROSTER["All-MTS"]


@dataclass(frozen=True)
class Wavering(Given):
    """Looks like a prior that stays, and changes with every task."""

    def observe(self, memory: Any, task: Any) -> Any:
        prior = bm.GaussianPrior(memory.prior.mean + 0.01, memory.prior.cov)
        return memory._replace(prior=prior)


ROWS = [
    *(bm.ROSTER[name] for name in ("KTS", "UKTS", "Th-MTS_tau", "All-MTS_tau", "KUCB", "KIDS")),
    bm.ROSTER["REML-TS"],
    replace(ALL, name="soon", warmup=0),
    replace(ALL, name="first", learner=Moments(widening=0.0), exploration=first_steps(4), warmup=3),
    replace(ALL, name="other", warmup=13, warmup_policy=frequentist_ids(2.0, randomised=True)),
    *(bm.ROSTER[name] for name in ("MetaTS", "AdaTS", "HierBayesUCB")),
    replace(bm.ROSTER["MoM-TS"], warmup=6, learner=Commit(Moments(widening=0.0), 6)),
    *(bm.ROSTER[name] for name in ("Meta-DP", "AVG-OFUL", "W-MTS")),
    replace(bm.ROSTER["AdaTS"], name="late", exploration=each_action_once(), warmup=5),
    replace(bm.ROSTER["KTS"], name="wavering", learner=Wavering()),
]
SOON = replace(bm.ROSTER["W-MTS"], name="W soon", learner=Decorrelated(first=2), warmup=6)
KEPT = [
    SOON,
    replace(SOON, name="past", learner=Decorrelated("past", first=3), warmup=0),
    replace(SOON, name="singular", exploration=no_exploration(), warmup=0),
    *(bm.ROSTER[name] for name in ("AVG-OFUL", "RR-OFUL", "Meta-DP", "MetaTS", "AdaTS")),
    replace(bm.ROSTER["AVG-OFUL"], name="TS", policy=thompson()),
    replace(bm.ROSTER["RR-OFUL"], name="plain first", warmup=5, warmup_policy=bm.agents.oful(3.0)),
    replace(ALL, name="soon", warmup=0),
]
"""Rows whose memory the kernel keeps."""
SETS = {
    "ball": bm.UniformBall(2, 0.7, 9),
    "fixed": bm.UniformBall(2, 0.7, 5, redraw="task"),
    "gauss": bm.TruncatedGaussian(2, 0.7, 6),
    "finite": bm.unit_vectors(2),
}


def family(actions: Any = SETS["ball"]) -> bm.TaskFamily:
    prior = bm.GaussianPrior([1.0, 0.5], [[1.0, 0.3], [0.3, 0.6]])
    hyper = bm.GaussianPrior([0.0, 0.2], [[1.0, 0.0], [0.0, 2.0]])
    return bm.TaskFamily(prior, actions, noise_sd=0.5, horizon=12, hyper=hyper)


def assert_same(first: dict[str, Any], second: dict[str, Any]) -> None:
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name], err_msg=name)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("rows", [ROWS, ROWS[:-1], ROWS[:6], ROWS[7:9], KEPT])
def test_blocks_have_the_bits_of_single_tasks(name: str, rows: list[Any], monkeypatch) -> None:
    """With rows that take no block, some, or all; warm-ups end, and refits fall, inside blocks."""
    tasks = family(SETS[name])
    blocks = simulate_run(tasks, rows, tasks=70, seed=4)
    monkeypatch.setattr(ensemble, "ROOM", 1)
    assert_same(simulate_run(tasks, rows, tasks=70, seed=4), blocks)


def test_blocks_are_played_in_few_calls(monkeypatch) -> None:
    """Where nobody needs a turn between tasks, a call plays as many as a block has."""
    calls, played = [], ensemble.play_block
    monkeypatch.setattr(
        ensemble, "play_block", lambda *args: calls.append(len(args[1].theta)) or played(*args)
    )
    simulate_run(family(), ROWS[:5], tasks=136)
    # the first blocks end where the warm-ups do, after d^3 = 8 tasks
    assert calls == [8, 56, 64, 8]
    calls.clear()
    simulate_run(family(), [bm.ROSTER[name] for name in ("RR-OFUL", "AVG-OFUL")], tasks=136)
    assert calls == [1, 63, 64, 8]  # a centre takes one task
    calls.clear()
    simulate_run(family(), [bm.ROSTER[name] for name in ("W-MTS", "W-MTS_past")], tasks=136)
    # after the warm-up ten tasks settle the ridge, and two more make a prior
    assert calls == [8, 1, 1, 1, 1, 52, 64, 8]


@pytest.mark.parametrize("row", KEPT, ids=lambda row: row.name)
@pytest.mark.parametrize("name", ["ball", "fixed"])
def test_the_kernel_learns_as_the_learner_does(row: Any, name: str) -> None:
    """Nothing is known of a subclass, so that its methods are called, task by task."""
    learner = row.learner
    own = type("Own", (type(learner),), {})
    same = own(**{field.name: getattr(learner, field.name) for field in fields(learner)})
    here, there = (
        simulate_run(family(SETS[name]), [one], tasks=40, seed=1)
        for one in (row, replace(row, learner=same))
    )
    assert_same(here, there)
    assert len(set(here["mean_error"][0])) > 20  # it did learn
    if row.name == "singular" and name == "fixed":
        assert 0 < here["passed_over"][0, -1] < 20


def test_a_player_has_the_same_bits_beside_others() -> None:
    """Whatever lane it is in."""
    whole = simulate_run(family(), ROWS, tasks=30)
    for i in range(len(ROWS)):
        alone = simulate_run(family(), ROWS[i : i + 1], tasks=30)
        assert_same({name: values[0] for name, values in alone.items()},
                    {name: values[i] for name, values in whole.items()})  # fmt: skip


@pytest.mark.parametrize("name", SETS)
def test_a_block_is_drawn_as_its_tasks_are(name: str) -> None:
    tasks, one, many = family(SETS[name]), stream(1, "x"), stream(1, "x")
    block = tasks.draw_block(many, 5)
    for n in range(5):
        for single, part in zip(tasks.draw(one), block, strict=True):
            np.testing.assert_array_equal(single, part if np.ndim(part) == 0 else part[n])
    assert one.random() == many.random()


def test_only_priors_that_stay_last() -> None:
    """A subclass may do otherwise than its parent, so nothing is known of it."""
    setting = family().setting(10)
    assert lasts(Given(), Given().start(setting)) == MANY
    assert lasts(Wavering(), Wavering().start(setting)) == 1
    learner = Likelihood()
    memory = learner.start(setting)
    assert lasts(learner, memory) == 1
    memory.estimate, memory.tasks, memory.next_fit = Given().start(setting), 20, 22
    assert lasts(learner, memory) == 2


def test_a_prior_out_of_reach_is_refused_inside_a_block(monkeypatch) -> None:
    """Moments that leave the bounds told by far: the same words as between two tasks."""
    learner = Moments(all_steps=True, widening=0.0)
    row = replace(ALL, name="soon", learner=learner, warmup=0)
    reach, found = Reach.of, []

    def sizes(seed: int) -> list[float]:
        found.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ensemble, "ROOM", 1)
            patch.setattr(
                Reach, "check_prior", lambda _, p: found.append(p.cov.trace() + p.mean @ p.mean)
            )
            simulate_run(family(), [row], tasks=30, seed=seed)
        return list(map(float, found))

    # a limit that no prior of the first five tasks exceeds, but one of the next ten does
    seed = next(seed for seed in range(50) if max(sizes(seed)[5:15]) > 1.2 * max(found[:5]))
    limit = 1.1 * max(found[:5])
    monkeypatch.setattr(Reach, "of", lambda setting: reach(setting)._replace(square=limit))
    messages = []
    for room in (1, 2**20):
        monkeypatch.setattr(ensemble, "ROOM", room)
        with pytest.raises(bm.InputError) as refused:
            simulate_run(family(), [row], tasks=30, seed=seed)
        messages.append(str(refused.value))
    assert "far beyond the bounds" in messages[0]
    assert messages[0] == messages[1]


def test_progress_is_reported_every_64_tasks_or_so() -> None:
    found: list[float] = []
    with listening(found.append):
        simulate_run(family(), ROWS[:1], tasks=200)
    assert found == [64 / 200, 128 / 200, 192 / 200]
