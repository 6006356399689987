"""Priors, statistics, action sets, families and the constants of the theory."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import bayesmeta as bm
from bayesmeta.theory.bounds import describe_theory
from bayesmeta.theory.regime import Regime, check_regime
from tests.properties.command import bayesmeta
from tests.properties.rule import ask, holds_for, refuse
from tests.strategies import (
    SEEDS,
    Drawn,
    any_number,
    contained,
    covariances,
    label_sets,
    often,
    positive,
    powers,
    reals,
    tables,
)

# ---- GaussianPrior.


class Prior(NamedTuple):
    """Arguments of GaussianPrior, and the arrays they stand for; None: it must be refused."""

    mean: Any
    cov: Any
    expected: tuple[np.ndarray, np.ndarray] | None


@st.composite
def priors(draw: st.DrawFn) -> Prior:
    d = draw(st.integers(1, 4))
    mean = np.array(draw(st.lists(reals(), min_size=d, max_size=d)))
    cov = covariances(draw, d) * draw(often(st.just(1.0), powers(140)))
    bad = draw(often(st.just(""), st.sampled_from(["bent", "negative", "shape", "nan"]), of=6))
    if bad == "bent" and d > 1:
        cov[0, 1] += 1e-3 * np.abs(cov).max() + 1e-100
        return Prior(mean, cov, None)
    if bad == "negative":
        return Prior(mean, cov - 1.5 * (np.abs(cov).sum() + 1.0) * np.eye(d), None)
    if bad == "shape":
        return Prior(mean, np.eye(d + 1), None)
    if bad == "nan":
        return Prior(np.where(mean == mean[0], np.nan, mean), cov, None)
    if draw(st.booleans()):
        given, mean_is = contained(draw, mean)
        return Prior(given, cov, None if mean_is is None else (mean_is, cov))
    return Prior(mean, cov, (mean, cov))


@holds_for(priors(), weight=4, examples=40)
def priors_are_what_was_given(case: Prior) -> None:
    """Frozen copies of the numbers; the root squared is the covariance; draws lie in its range."""
    prior = ask(bm.GaussianPrior, case.mean, case.cov)
    assert case.expected is not None, f"made {prior!r} of {case!r}"
    mean, cov = case.expected
    np.testing.assert_array_equal(prior.mean, mean)
    np.testing.assert_allclose(prior.cov, cov, rtol=1e-15)
    root, scale = prior.cholesky, float(np.abs(cov).max())
    assert (np.triu(root, 1) == 0).all() and np.isfinite(root).all()
    assert np.abs(root @ root.T - cov).max() <= 1e-12 * scale, (root, cov)
    sample = prior.sample(np.random.default_rng(0), size=3)
    assert sample.shape == (3, len(mean)) and np.isfinite(sample).all()
    assert (cov.any() or (sample == mean).all()) and isinstance(repr(prior), str)


# ---- TaskStatistics from sums.


class Sums(NamedTuple):
    """Arguments of TaskStatistics; ``good`` False: it must be refused."""

    arguments: dict[str, Any]
    good: bool


@st.composite
def sums(draw: st.DrawFn) -> Sums:
    table = draw(tables(flavours=("ordinary", "ties")))
    groups = [table.rows(j) for j in range(table.tasks)]
    given: dict[str, Any] = {
        "gram": np.array([a.T @ a for a, _ in groups]),
        "moment": np.array([a.T @ x for a, x in groups]),
        "count": np.array([len(x) for _, x in groups], dtype=float),
        "energy": np.array([x @ x for _, x in groups]),
    }
    good = True
    kind = draw(
        often(st.just("as it is"), st.sampled_from(["container", "change", "labels"]), of=2)
    )
    name = draw(st.sampled_from(list(given)))
    if kind == "container":
        given[name], values = contained(draw, given[name])
        same = {"gram": 3, "moment": 2}.get(name, 1)
        if values is None or np.shape(values) != np.shape(given[name]) or values.ndim != same:
            good = values is not None
        elif not np.allclose(values, np.asarray(given[name], float)) or name == "gram":
            good = None  # type: ignore[assignment]
        if name == "moment":
            good = None if values is not None else False  # type: ignore[assignment]
    elif kind == "change":
        change = draw(st.sampled_from(["nan", "negative", "short", "bent", "drop"]))
        value = given[name].copy()
        if change == "drop":
            given[name] = None
            good = name in ("count", "energy")
        elif change == "nan":
            value.flat[-1] = math.nan
            given[name], good = value, False
        elif change == "negative":
            given[name], good = -value - 1.0, name == "moment" and bool(table.features.all())
        elif change == "short":
            given[name], good = value[:-1], False
        else:
            given[name] = value[..., None]
            good = False
    elif kind == "labels":
        given["tasks"] = draw(label_sets(table.tasks))
        given["features"] = ["a"] * table.dim if draw(st.booleans()) else list("abcd")[: table.dim]
        good = len(set(given["features"])) == table.dim
    return Sums(given, good)


@holds_for(sums(), weight=4, examples=30)
def statistics_are_what_was_given(case: Sums) -> None:
    """The numbers given, or a refusal; joined with themselves they are there twice."""
    stats = ask(bm.TaskStatistics, **case.arguments)
    assert case.good is not False, f"made {stats!r} of {case.arguments!r}"
    for name in ("gram", "moment", "count", "energy"):
        given, found = case.arguments.get(name), getattr(stats, name)
        if given is None:
            assert found is None
        else:
            np.testing.assert_array_equal(found, np.array(given, dtype=float))
    if stats.tasks is None:
        twice = bm.TaskStatistics.concatenate([stats, stats])
        assert len(twice) == 2 * len(stats)
        np.testing.assert_array_equal(twice.moment[len(stats) :], stats.moment)


# ---- Action sets.


class Law(NamedTuple):
    """An action set's class and arguments; what its numbers stand for."""

    kind: Any
    arguments: dict[str, Any]
    radius: float | None
    seed: int


@st.composite
def laws(draw: st.DrawFn) -> Law:
    kind = draw(
        st.sampled_from([bm.UniformBall, bm.TruncatedGaussian, bm.RadialDensity, bm.WholeBall])
    )
    d = draw(st.integers(1, 4))
    radius: Drawn = draw(often(positive().map(lambda x: Drawn(x, x)), any_number(), of=3))
    if radius.means == radius.value and draw(st.integers(0, 3)) == 3:
        radius = Drawn(*[draw(powers())] * 2)
    given: dict[str, Any] = {"dim": d, "radius": radius.value}
    if kind is not bm.WholeBall:
        given["count"] = draw(often(st.integers(1, 5), st.sampled_from([0, 2.0, "3", None]), of=8))
        given["redraw"] = draw(often(st.sampled_from(["step", "task"]), st.just("never"), of=8))
    if kind is bm.RadialDensity:
        given["density"] = draw(
            st.sampled_from(
                [
                    np.ones_like,
                    lambda r: 1 / (1 + r),
                    lambda r: r,
                    lambda r: np.exp(-r),
                    lambda r: -r,
                    lambda r: np.full_like(r, np.inf),
                    lambda r: 1.0,
                    lambda r: np.where(r < 0, 1.0, 0.0),
                    lambda r: "a",
                    "no function",
                ]
            )
        )
    if kind is bm.TruncatedGaussian and draw(st.booleans()):
        size = radius.means if radius.means is not None and 0 < radius.means < 1e90 else 1.0
        cov = covariances(draw, d) + draw(st.sampled_from([0.0, 0.1])) * np.eye(d)
        given["cov"] = cov * size * size * draw(st.sampled_from([1.0, 1.0, 100.0, 0.01]))
    return Law(kind, given, radius.means, draw(SEEDS))


@holds_for(laws(), weight=6, examples=30)
def actions_lie_in_their_ball(case: Law) -> None:
    """Draws have the shape that was asked for and stay within the radius; their second moment is
    that of many of them."""
    law = ask(lambda: case.kind(**case.arguments))
    assert case.radius is not None and case.radius > 0 and law.radius == case.radius, case
    moment = ask(law.second_moment)
    drawn = ask(law.draw, np.random.default_rng(case.seed), 7)
    d, count = case.arguments["dim"], case.arguments.get("count", 0)
    steps = 7 if case.arguments.get("redraw") == "step" else 1
    assert drawn.shape == (steps, d, count)
    lengths = np.linalg.norm(drawn / law.radius, axis=1)
    assert (lengths <= 1 + 1e-9).all() and np.isfinite(drawn).all(), lengths.max()
    scaled = moment / law.radius / law.radius
    values = np.linalg.eigvalsh(scaled)
    assert values[0] > 0 and values.sum() <= 1 + 1e-9, values
    if count:
        points = law.points(np.random.default_rng(case.seed), 4000) / law.radius
        gap = np.abs(points.T @ points / 4000 - scaled).max()
        assert gap <= 7 / math.sqrt(4000) * math.sqrt(scaled.max()), (gap, scaled)
        assert count == 1 or np.unique(drawn).size > 1


@st.composite
def point_sets(draw: st.DrawFn) -> tuple[Any, np.ndarray | None]:
    shape = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    points = np.random.default_rng(draw(SEEDS)).standard_normal(shape) * draw(
        often(st.just(1.0), powers(150), of=3)
    )
    return contained(draw, points)


@holds_for(point_sets(), weight=2, examples=25)
def finite_sets_are_what_was_given(case: tuple[Any, np.ndarray | None]) -> None:
    """The same actions at every step; the radius is their largest norm."""
    given, points = case
    law = ask(bm.FiniteSet, given)
    assert points is not None, f"made {law!r} of {given!r}"
    np.testing.assert_array_equal(law.actions, points)
    assert math.isclose(law.radius, max(math.hypot(*row) for row in points), rel_tol=1e-12)
    np.testing.assert_array_equal(law.draw(np.random.default_rng(0), 5), points.T[None])
    assert np.isfinite(ask(law.second_moment)).all()


# ---- Bounds, settings, families.


class Numbers(NamedTuple):
    """The numbers of a setting, of any type."""

    numbers: dict[str, Drawn]
    odd: str


BOUNDED = ("radius", "action_min", "prior_min", "prior_max", "mean_norm", "noise_sd")


@st.composite
def numbers(draw: st.DrawFn) -> Numbers:
    usual = {"radius": 1.0, "action_min": 0.1, "prior_min": 0.2, "prior_max": 2.0, "mean_norm": 3.0}
    found = {name: Drawn(value, value) for name, value in {**usual, "noise_sd": 0.5}.items()}
    for name in draw(st.lists(st.sampled_from(BOUNDED), max_size=2)):
        found[name] = draw(often(positive().map(lambda x: Drawn(x, x)), any_number(), of=3))
    odd = draw(often(st.just(""), st.sampled_from(["dim", "horizon", "tasks", "truth", "ball"]), 8))
    return Numbers(found, odd)


@holds_for(numbers(), weight=3, examples=40)
def settings_are_what_was_given(case: Numbers) -> None:
    """Plain floats of the numbers given, in their ranges."""
    given = {name: one.value for name, one in case.numbers.items()}
    noise = given.pop("noise_sd")
    bounds = ask(lambda: bm.Bounds(**given))
    whole: dict[str, Any] = {"dim": 2, "horizon": 5, "tasks": 9}
    more: dict[str, Any] = {}
    if case.odd in whole:
        whole[case.odd] = [0, -1, 2.0, "2", None, True, [1]][len(str(given)) % 7]
    elif case.odd == "truth":
        more["truth"] = bm.GaussianPrior([0.0], [[1.0]])
    elif case.odd == "ball":
        more["ball"] = -1.0
    setting = ask(lambda: bm.Setting(**whole, noise_sd=noise, bounds=bounds, **more))
    assert not case.odd, f"took {whole} {more}"
    means = {name: one.means for name, one in case.numbers.items()}
    for name, value in means.items():
        assert value is not None, f"took {case.numbers[name]!r} for {name}"
        found = setting.noise_sd if name == "noise_sd" else getattr(bounds, name)
        assert type(found) is float and found == value, (name, found, value)
        assert value > 0 or (value == 0 and name != "noise_sd"), (name, value)
    assert means["prior_min"] <= means["prior_max"]  # type: ignore[operator]


@st.composite
def families(draw: st.DrawFn) -> dict[str, Any]:
    d = draw(st.integers(1, 3))
    prior = bm.GaussianPrior(np.ones(d), covariances(draw, d) * draw(often(st.just(1.0), powers())))
    other = draw(often(st.just(d), st.just(d + 1), of=8))
    actions = draw(
        often(
            st.sampled_from([bm.UniformBall(other, 0.5, 3), bm.WholeBall(other, 2.0)]),
            st.sampled_from([bm.unit_vectors(other), np.eye(other), None, bm.UniformBall]),
            of=6,
        )
    )
    return {
        "prior": draw(often(st.just(prior), st.sampled_from([None, prior.cov]), of=10)),
        "actions": actions,
        "noise_sd": draw(often(positive(), any_number().map(lambda one: one.value), of=4)),
        "horizon": draw(often(st.integers(1, 9), st.sampled_from([0, 1.0, None, "5"]), of=12)),
    }


@holds_for(families(), weight=3, examples=30)
def families_draw_tasks(case: dict[str, Any]) -> None:
    """A drawn task's best rewards are those of a plain loop; what learners are told is true."""
    family = ask(lambda: bm.TaskFamily(**case))
    noise = case["noise_sd"]
    assert family.noise_sd > 0 and math.isfinite(family.noise_sd), noise
    task = family.draw(np.random.default_rng(0))
    assert task.noise.shape == (family.horizon,) and task.theta.shape == (family.dim,)
    if task.actions.shape[-1]:
        best = [max(float(a @ task.theta) for a in step.T) for step in task.actions]
    else:
        best = [family.actions.radius * math.hypot(*task.theta)]
    np.testing.assert_allclose(task.best, best, rtol=1e-9, atol=1e-12 * np.abs(task.theta).max())
    told = family.told()
    values = np.linalg.eigvalsh(family.prior.cov)
    assert math.isclose(told.prior_max, max(values[-1], 0.0), rel_tol=1e-9)
    assert told.prior_min <= max(values[0], 0.0) * (1 + 1e-9)
    assert told.mean_norm >= np.linalg.norm(family.prior.mean) * (1 - 1e-12)
    assert "Assumption 3" not in family.violations()


# ---- Constants of the theory.


class Constants(NamedTuple):
    """Options of ``bayesmeta theory``."""

    numbers: dict[str, Any]
    grown: str


@st.composite
def constants(draw: st.DrawFn) -> Constants:
    found: dict[str, Any] = {
        "dim": draw(st.integers(1, 30)),
        "horizon": draw(st.integers(1, 10**5)),
        "tasks": draw(st.integers(2, 10**6)),
        "noise_sd": draw(positive()),
        "radius": draw(positive()),
        "prior_min": draw(positive()),
        "mean_norm": draw(positive()),
    }
    found["prior_max"] = found["prior_min"] * draw(st.floats(1.0, 100.0))
    found["action_min"] = found["radius"] ** 2 / found["dim"] * draw(st.floats(0.01, 0.99))
    for name in draw(often(st.just([]), st.lists(st.sampled_from(list(found)), max_size=2), of=3)):
        found[name] = draw(
            st.one_of(powers(200), st.sampled_from([0, -1, 1.5, math.nan, 10**30, "a"]))
        )
    return Constants(found, draw(st.sampled_from(["noise_sd", "prior_max", "horizon", "tasks"])))


@holds_for(constants(), weight=4, examples=25)
def constants_grow_and_the_command_prints_them(case: Constants) -> None:
    """Each constant is finite; more noise, wider priors, longer tasks never make c_w, tau, f_m or
    f_s smaller; ``bayesmeta theory --json`` prints the same numbers."""
    options = [
        text for name, x in case.numbers.items() for text in (f"--{name.replace('_', '-')}", x)
    ]
    ended = bayesmeta("theory", "--json", *options)
    if ended.code == 2:
        refuse(ended.error)
    assert ended.code == 0 and not ended.error, ended
    told = json.loads(ended.output, parse_constant=lambda word: 1 / 0)
    regime = check_regime(Regime.of(**told["regime"]))
    lines = {line.name: line for line in describe_theory(regime, 20)}
    assert all(math.isfinite(line.value) and line.value >= 0 for line in lines.values())
    assert told["constants"] == {name: line.value for name, line in lines.items()}
    for name, value in case.numbers.items():
        whole = name in ("dim", "horizon", "tasks")  # 1e+30, as text, is a whole number
        exact = int(Decimal(str(value))) if whole else float(value)
        assert told["regime"][name] == exact, (name, value)
    tau = 8 * regime.bounds.radius**2 / regime.bounds.action_min
    tau *= math.log(regime.dim**2 * regime.tasks**2 * regime.horizon)
    assert lines["tau"].value == math.ceil(max(regime.dim, tau))
    bigger = regime.numbers()[case.grown] * 2
    more = (
        regime.changed(**{case.grown: bigger})
        if case.grown in ("prior_max", "noise_sd")
        else replace(regime, **{case.grown: int(bigger)})
    )
    try:
        grown = {line.name: line for line in describe_theory(more, 20)}
    except bm.InputError:
        return  # twice as much is too much for floating point
    for name in ("tau", "c_w", "f_m", "f_s", "c_bad", "N_0", "k_2"):
        assert grown[name].value >= lines[name].value * (1 - 1e-12), (name, case.grown)
