"""The rivals in the settings of their own papers, and what a wrongly told covariance costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesmeta.actions import FiniteSet, Law, UniformBall, unit_vectors
from bayesmeta.agents.agent import Agent
from bayesmeta.agents.commit import ArmMoments, Commit
from bayesmeta.agents.exploration import each_action_once
from bayesmeta.agents.hyper import Hyper
from bayesmeta.agents.learners import Given, Learner
from bayesmeta.agents.roster import ROSTER, find_agents, with_references
from bayesmeta.checks import Array
from bayesmeta.environment import TaskFamily
from bayesmeta.families import arms_family, linear_family
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.runner.study import Study, grid
from bayesmeta.simulation.concurrent import play_concurrent
from bayesmeta.simulation.metadata import play_with_metadata
from bayesmeta.simulation.simulator import record_run, simulate_run
from bayesmeta.streams import cell_seed
from bayesmeta.studies.growing import TASKS, arms_scaled, read_at
from bayesmeta.studies.rivals import told_family

if TYPE_CHECKING:
    import xarray as xr

BLOCK = 25
"""Runs of a cell, where they are short."""
LAST = 5
"""Tasks at the end whose regret is kept apart."""
KVETON = ("KTS", "MarginalTS", "AdaTS", "MetaTS", "MetaMean")
HIERARCHY = ("KTS", "KBayesUCB", "HierBayesUCB", "HierTS", "MetaTS", "MarginalTS")
COMMITTED = 500
"""Random episodes before Simchowitz et al.'s rows commit; theirs is the best of many by
hindsight."""


class Setting(NamedTuple):
    """Rows that play so many tasks of a family, which a run may draw its actions for."""

    family: Callable[[int], TaskFamily]
    rows: list[Agent]
    tasks: int
    runs: int
    block: int = BLOCK
    at_once: int = 0
    designs: Callable[[int], Array] | None = None


def _kveton_rows() -> list[Agent]:
    """Their rows, with AdaTS told a hyper-prior three times too wide or too narrow."""
    ada = ROSTER["AdaTS"]
    wrong = [
        replace(
            ada, name=f"AdaTS, hyper-prior too {word}", learner=Hyper("marginal", hyper_scale=scale)
        )
        for word, scale in (("wide", 9.0), ("narrow", 1 / 9))
    ]
    return [*find_agents(KVETON), *wrong]


def _kveton(arms: int, spread: float, once: bool) -> Setting:
    """Kveton et al. 2021, Basu et al. 2021: K arms, 20 tasks, each arm played once or not."""
    rows = _kveton_rows()
    if once:
        rows = [replace(row, exploration=each_action_once()) for row in rows]
    family = arms_family(arms, spread, 0.1, 1.0, 200)
    return Setting(lambda seed: family, rows, tasks=20, runs=500)


class Sphere(Law):
    """Actions uniform on a sphere."""

    def second_moment(self) -> Array:
        return self.radius**2 / self.dim * np.eye(self.dim)

    def points(self, rng: np.random.Generator, size: int) -> Array:
        found = rng.standard_normal((size, self.dim))
        return self.radius * found / np.linalg.norm(found, axis=1, keepdims=True)


def _basu(dim: int, spread: float) -> Setting:
    """Basu et al. 2021, linear: 5 d actions on the unit sphere, drawn once a task, 20 tasks."""
    family = linear_family(dim, spread, actions=Sphere(dim, 1.0, 5 * dim, redraw="task"))
    return Setting(lambda seed: family, _kveton_rows(), tasks=20, runs=100)


def _guan(seed: int) -> TaskFamily:
    """Guan and Xiong 2024: ten actions uniform in [-1/2, 1/2]^4, drawn for every run."""
    actions = np.random.default_rng(seed).uniform(-0.5, 0.5, size=(10, 4))
    return linear_family(4, 1.0, 0.1, math.sqrt(0.5), 200, actions=FiniteSet(actions))


def blocks_family() -> TaskFamily:
    """Simchowitz et al. 2021: six arms in two blocks of correlation 0.9, ten steps; mu_* is one,
    and N(0, |mu_*|^2 / 6 I) told where a hyper-prior is."""
    cov = np.kron(np.eye(2), np.full((3, 3), 0.9)) + 0.1 * np.eye(6)
    mean = np.array([0.5, 0.0, 0.0, 0.1, 0.0, 0.0])
    hyper = GaussianPrior(np.zeros(6), mean @ mean / 6 * np.eye(6))
    return TaskFamily(GaussianPrior(mean, cov), unit_vectors(6), 1.0, 10, hyper=hyper)


def _simchowitz() -> Setting:
    arms, bare = find_agents(("MoM-TS_arms", "MoM-TS_arms_mean"))
    committed = [
        replace(row, learner=Commit(inner, COMMITTED), warmup=COMMITTED)
        for row, inner in ((arms, ArmMoments()), (bare, ArmMoments(covariance=False)))
    ]
    rows = [*find_agents(("KTS", "UKTS", "KMTS", "AdaTS", "REML-TS")), *committed]
    return Setting(lambda seed: blocks_family(), rows, tasks=10_000, runs=5, block=5)


def _cella(within: float) -> Setting:
    """After Cella et al. 2020: d = 20, theta near one another or far apart; their constants were
    not at hand."""
    alone = replace(ROSTER["BIAS-OFUL"], name="ITL-OFUL", learner=Given("zero"))
    rows = [*find_agents(("BIAS-OFUL", "AVG-OFUL", "RR-OFUL")), alone]
    family = TaskFamily(
        GaussianPrior(np.full(20, 1 / math.sqrt(20)), within**2 / 20 * np.eye(20)),
        UniformBall(20, 1.0, 10),
        0.1,
        50,
    )
    return Setting(lambda seed: family, rows, tasks=50, runs=BLOCK)


def _wan() -> Setting:
    """Wan et al. 2021: 8 arms with 15 features, Phi = [I, X], gamma ~ N(0, I / 15), 200 tasks."""
    family = arms_family(8, 0.0, 0.5, 1.0, 200, mean=np.zeros(8))

    def designs(seed: int) -> Array:
        own = np.random.default_rng(seed).standard_normal((200, 8, 7))
        return np.concatenate([np.broadcast_to(np.eye(8), (200, 8, 8)), own], axis=2)

    return Setting(lambda seed: family, [], tasks=200, runs=5, block=5, designs=designs)


def settings() -> dict[str, Setting]:
    """All published settings, by name."""
    made = {
        f"arms, K = {arms}, {start}": _kveton(arms, spread, start == "each once")
        for arms, spread in ((2, 0.5), (4, 1.0))
        for start in ("each once", "free")
    }
    made |= {
        f"sphere, d = {dim}, sigma_q = {spread:g}": _basu(dim, spread)
        for dim, spread in ((2, 1.0), (4, 1.0), (4, 0.5), (8, 1.0), (16, 1.0))
    }
    return made | {
        "hierarchy": Setting(_guan, find_agents(HIERARCHY), tasks=10, runs=100),
        "hierarchy, 5 at once": Setting(_guan, [], tasks=10, runs=BLOCK, at_once=5),
        "blocks": _simchowitz(),
        "low variance": _cella(0.3),
        "high variance": _cella(3.0),
        "metadata": _wan(),
    }


def play_published(settings_: dict[str, Any], seed: int) -> xr.Dataset:
    """One cell: regret of all tasks, and of the last ones, of some runs of a setting."""
    import xarray as xr

    name = settings_["setting"]
    here = settings()[name]
    found = [_regret(here, cell_seed(seed, f"run={k}")) for k in range(here.block)]
    each = {agent: np.array([one[agent] for one in found]) for agent in found[0]}
    parts = {
        "regret": np.array([one.sum(axis=1) for one in each.values()]),
        "last": np.array([one[:, -LAST:].sum(axis=1) for one in each.values()]),
    }
    return xr.Dataset(
        {part: (("agent", "replicate"), value.astype(np.float32)) for part, value in parts.items()},
        coords={"agent": list(each), "replicate": range(here.block)},
    )


def _regret(here: Setting, seed: int) -> dict[str, Any]:
    """Regret of every task by agent."""
    family = here.family(seed)
    if here.designs is not None:
        gamma = GaussianPrior(np.zeros(15), np.eye(15) / 15)
        return dict(play_with_metadata(family, here.designs(seed), gamma, random_seed=seed))
    if here.at_once:
        asked: dict[str, Any] = {
            "tasks": here.tasks,
            "at_once": here.at_once,
            "random_seed": seed,
        }
        return {
            name: play_concurrent(family, policy=policy, **asked).sum(axis=1)
            for name, policy in (("HierTS", "thompson"), ("HierBayesUCB", "bayes-ucb"))
        }
    rows = with_references(here.rows)
    regret = simulate_run(family, rows, tasks=here.tasks, seed=seed)["regret"]
    return dict(zip([row.name for row in rows], regret, strict=True))


FACTORS = (0.04, 0.2, 1.0, 5.0, 25.0)
"""By which a told covariance is multiplied."""
TOLD: dict[str, Callable[[float], Learner]] = {
    "KTS": lambda factor: Given(scale=factor),
    "AdaTS": lambda factor: Hyper("marginal", scale=factor),
    "MetaMean": lambda factor: Hyper("mean", scale=factor),
    "KMTS": lambda factor: Given(cov="bound", scale=factor),
    "MetaMean, c I": lambda factor: Hyper("mean", cov="bound", scale=factor),
}
"""Rows that are told Sigma_* times a factor, or, the last two, know no more than c I: lambda_max I
times the factor. MetaMean stands for all that estimate the mean under a covariance they were told,
without what MetaTS loses by its draw."""
UNTOLD = ("KTS", "UKTS", "Th-MTS_tau", "All-MTS", "REML-TS")
KNOWING = {
    "linear": (told_family, 300),
    "arms": (arms_scaled, 300),
    "blocks": (blocks_family, 500),
}
"""Families, and how many of their tasks are played."""


def told_rows() -> list[Agent]:
    """Rows that are told the covariance times every factor, and rows that are not told it."""
    rows = [
        replace(ROSTER[name.split(",")[0]], name=f"{name} x {factor:g}", learner=learner(factor))
        for name, learner in TOLD.items()
        for factor in FACTORS
    ]
    return [*rows, *find_agents(UNTOLD)]


def know(settings_: dict[str, Any], seed: int) -> xr.Dataset:
    """One cell: one run of a family by rows that are told the covariance, wrongly, or not."""
    family, tasks = KNOWING[settings_["family"]]
    record = record_run(family(), with_references(told_rows()), tasks, seed)
    return read_at(record, [n for n in TASKS if n < tasks] + [tasks])


STUDIES = (
    Study(
        "rivals-published",
        {
            f"{name}/{block}": {"setting": name, "block": block}
            for name, here in settings().items()
            for block in range(here.runs // here.block)
        },
        play_published,
        random_seed=9,
        dims=("setting", "block"),
        note="every rival in the setting of its own paper",
        record="rivals/published.nc",
    ),
    Study(
        "rivals-covariance",
        grid(family=list(KNOWING), run=range(6)),
        know,
        random_seed=10,
        dims=("family", "run"),
        note="a covariance that is known, known wrongly, or unknown",
        record="rivals/covariance.nc",
    ),
)
"""What is recorded in analyses/rivals of published settings and of the covariance."""
