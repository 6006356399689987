"""Simulations and players: the same bits again, regret that is one, units that do not matter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import bayesmeta as bm
from bayesmeta.streams import ENVIRONMENT, cell_seed, stream
from tests.properties.rule import ask, holds_for
from tests.strategies import SEEDS, covariances, often, positive, reals

FREE = ("KTS", "KGreedy", "KUCB", "KIDS", "KTS_x0.5", "UKTS", "KMTS", "KTS_rescue")
"""Rows that have no constant with a unit."""
LEARN = ("All-MTS", "All-MTS_tau", "Th-MTS_tau", "REML-TS", "ML-TS", "All-MIDS")


def row(name: str) -> bm.Agent:
    """A row of the roster that uses what it learned soon, and is quick."""
    found = bm.ROSTER[name]
    if "IDS" in name:
        found = replace(found, policy=bm.agents.v_ids(draws=5))
    if "ML-TS" in name:  # each of its estimates is a search
        return replace(found, warmup=4)
    return replace(found, warmup=2) if name in LEARN else found


class Played(NamedTuple):
    """A family, agents and a seed."""

    mean: list[float]
    cov: np.ndarray
    actions: Actions
    noise_sd: float
    horizon: int
    agents: list[str]
    tasks: int
    runs: int
    seed: int
    scale: float
    """of rewards"""
    stretch: float
    """of actions"""

    def family(self, scale: float = 1.0, stretch: float = 1.0) -> bm.TaskFamily:
        c = scale / stretch
        prior = bm.GaussianPrior(np.array(self.mean) * c, self.cov * c * c)
        return bm.TaskFamily(prior, self.actions.made(stretch), self.noise_sd * scale, self.horizon)

    def restated(self) -> bm.TaskFamily:
        """In other units; refused only where its sizes are beyond 1e-100 to 1e100."""
        return self.called(self.family, self.scale, self.stretch)

    def called[**P, R](self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call what may refuse only where sizes are beyond 1e-100 to 1e100."""
        sizes = (self.scale, self.stretch, self.scale / self.stretch)
        if all(1e-97 <= size <= 1e97 for size in sizes):  # noise and priors are up to 100
            return function(*args, **kwargs)
        return ask(function, *args, **kwargs)


class Actions(NamedTuple):
    """An action set, to be made at any size."""

    kind: str
    dim: int
    count: int
    redraw: Any
    seed: int

    def made(self, a: float) -> Any:
        """With radius ``a``, or points times ``a``."""
        if self.kind == "ball":
            return bm.WholeBall(self.dim, a)
        if self.kind == "uniform":
            return bm.UniformBall(self.dim, a, self.count, self.redraw)
        if self.kind == "gaussian":
            cov = a * a * np.eye(self.dim) / 2
            return bm.TruncatedGaussian(self.dim, a, self.count, self.redraw, cov=cov)
        points = np.random.default_rng(self.seed).standard_normal((self.count, self.dim))
        return bm.FiniteSet(points.round(2) * a)


def action_sets(d: int, kinds: tuple[str, ...]) -> st.SearchStrategy[Actions]:
    redraw = st.sampled_from(["step", "task"])
    return st.builds(
        Actions,
        st.sampled_from(kinds),
        st.just(d),
        often(st.integers(2, 6), st.just(1), of=8),
        redraw,
        SEEDS,
    )


KINDS = ("uniform", "finite", "gaussian", "ball")


@st.composite
def played(
    draw: st.DrawFn,
    names: tuple[str, ...] = FREE + LEARN,
    most: int = 3,
    kinds: tuple[str, ...] = KINDS,
) -> Played:
    d = draw(st.integers(1, 3))
    scales = often(
        st.integers(-60, 60).map(lambda k: 2.0**k), st.integers(-300, 300).map(lambda k: 2.0**k)
    )
    means = reals(-3, 3).map(lambda x: x if abs(x) > 1e-9 else 0.0)  # scales come apart
    return Played(
        draw(st.lists(means, min_size=d, max_size=d)),
        covariances(draw, d),
        draw(action_sets(d, kinds)),
        draw(positive()),
        draw(st.integers(1, 8)),
        draw(st.lists(st.sampled_from(names), min_size=1, max_size=most, unique=True)),
        draw(st.integers(1, 6)),
        draw(st.integers(1, 2)),
        draw(SEEDS),
        draw(scales),
        draw(scales),
    )


@holds_for(played(), weight=4, examples=6)
def a_simulation_is_its_seed(case: Played) -> None:
    """The same bits again, whatever other agents and runs there are; regret that a plain loop over
    the taken actions finds; errors of a known prior are 0."""
    family, rows = case.family(), [row(name) for name in case.agents]
    record = ask(bm.simulate, family, rows, tasks=case.tasks, runs=case.runs, random_seed=case.seed)
    regret = record.regret.values
    bound = 2 * family.actions.radius
    assert np.isfinite(regret).all() and (regret >= -1e-12 * bound * case.horizon).all()
    for name in ("relative_regret", "mean_error", "covariance_error", "smallest_eigenvalue"):
        assert np.isfinite(record[name].values).all(), name
    again = bm.simulate(
        family, rows[::-1], tasks=case.tasks, runs=case.runs + 1, random_seed=case.seed
    )
    same = again.sel(agent=record.agent.values).isel(run=slice(case.runs))
    for name in record.data_vars:
        np.testing.assert_array_equal(same[name].values, record[name].values, err_msg=str(name))
    for name in {"KTS", "KUCB", "KGreedy", "KIDS"} & set(record.agent.values.tolist()):
        here = record.sel(agent=name)
        assert (here.mean_error == 0).all() and (here.covariance_error == 0).all()
        assert (here.relative_regret == 0).all()
    reference = record.regret.sel(agent=record.reference).values
    np.testing.assert_array_equal(record.relative_regret.values, regret - reference)


@holds_for(played(FREE, 2, ("uniform", "finite", "ball")), weight=4, examples=12)
def a_simulation_has_no_units(case: Played) -> None:
    """Rewards and actions times powers of two: regret times that of rewards, to rounding; the same
    actions are taken."""
    plain = ask(bm.simulate, case.family(), case.agents, tasks=case.tasks, random_seed=case.seed)
    other = case.restated()
    record = case.called(bm.simulate, other, case.agents, tasks=case.tasks, random_seed=case.seed)
    found = record.regret.values / case.scale
    size = (1 + np.abs(plain.regret.values).max()) * case.horizon
    np.testing.assert_allclose(found, plain.regret.values, rtol=1e-9, atol=1e-9 * size)


@holds_for(played(most=1), weight=4, examples=8)
def ask_and_tell_is_the_simulator(case: Played) -> None:
    """Step by step the choices of ``simulate``, whose regret is what a plain loop finds. Where a
    search for a likelihood ends depends on the last bits of rewards, in the eighth digit, and any
    point of a whole ball may be taken."""
    family, agent = case.family(), row(case.agents[0])
    whole, learner = isinstance(family.actions, bm.WholeBall), agent.learner
    slack = 1e-6 if whole and isinstance(learner, bm.agents.Likelihood) else 1e-10
    record = ask(bm.simulate, family, agent, tasks=case.tasks, random_seed=case.seed)
    seed = cell_seed(case.seed, "run=0")
    player = bm.Player(agent, family.setting(case.tasks), random_seed=seed)
    rng = stream(seed, ENVIRONMENT)
    expected = record.regret.sel(agent=agent.name).isel(run=0).values
    for n in range(case.tasks):
        task = family.draw(rng)
        player.start_task()
        lost = 0.0
        for step in range(case.horizon):
            offered = task.actions[min(step, len(task.actions) - 1)].T
            if len(offered):
                taken = offered[player.ask(offered)]
                best = float((offered @ task.theta).max())
            else:
                taken = player.ask()
                best = family.actions.radius * float(np.linalg.norm(task.theta))
            lost += best - float(taken @ task.theta)
            player.tell(float(taken @ task.theta) + family.noise_sd * task.noise[step])
        player.end_task()
        size = 1 + float(np.abs(task.theta).sum()) * family.actions.radius * case.horizon
        assert abs(lost - expected[n]) <= slack * size, (n, lost, expected)


@holds_for(played(("KTS", "UKTS", "KMTS", "All-MTS")), weight=2, examples=6)
def summaries_are_means_over_runs(case: Played) -> None:
    """Of total regret over that of KTS, with t intervals: by a plain loop."""
    from scipy.stats import t

    names = list(dict.fromkeys(case.agents))
    record = ask(
        bm.simulate,
        case.family(),
        [row(name) for name in names],
        tasks=case.tasks,
        runs=case.runs + 1,
        random_seed=case.seed,
    )
    found = ask(bm.summarise, record)
    runs = record.sizes["run"]
    totals = {
        str(name): [sum(record.regret.sel(agent=name, run=r).values.tolist()) for r in range(runs)]
        for name in record.agent.values
    }
    unit = sum(totals["KTS"]) / runs
    assert unit > 0, "a unit of 0"
    for name, values in totals.items():
        here: dict[str, Any] = found[name]
        scaled = np.array(values) / unit
        assert np.isclose(here["normalised_regret"], scaled.mean(), rtol=1e-9)
        half = t.ppf(0.975, runs - 1) * scaled.std(ddof=1) / np.sqrt(runs)
        ends = [scaled.mean() - half, scaled.mean() + half]
        np.testing.assert_allclose(here["interval"], ends, rtol=1e-8, atol=1e-12)
        gap = float((scaled - np.array(totals[here["reference"]]) / unit).mean())
        assert np.isclose(here["relative_regret"], gap, rtol=1e-8, atol=1e-9)
