"""Arguments of sample_posterior and options of ``bayesmeta sample``, up to the first draw."""

from __future__ import annotations

import math
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from hypothesis import strategies as st

import bayesmeta as bm
from bayesmeta.posterior import sampling
from bayesmeta.posterior.model import Problem
from bayesmeta.posterior.priors import PriorWarning
from tests.properties.command import bayesmeta
from tests.properties.fits import stats_of
from tests.properties.rule import ask, holds_for, refuse
from tests.properties.tables import ordinary_csv
from tests.strategies import (
    ORDINARY,
    Drawn,
    Table,
    any_number,
    contained,
    covariances,
    often,
    positive,
    powers,
    reals,
    tables,
)


class Reached(Exception):
    """All arguments were accepted: drawing would begin now."""

    def __init__(self, problem: Problem, sampler: str, settings: dict[str, Any], bar: bool) -> None:
        self.problem, self.sampler, self.settings = problem, sampler, settings


def reach(*arguments: Any) -> None:
    raise Reached(*arguments)


class Asked(NamedTuple):
    """A table and arguments; ``means`` has what is known of each, None: it must be refused."""

    table: Table
    noise: Drawn
    prior: Any
    numbers: dict[str, np.ndarray | float | None]
    """of the prior"""
    settings: dict[str, Any]
    good: bool


DEFAULTS = {"draws": 1000, "tune": None, "chains": 4, "random_seed": 0, "target_accept": 0.8}
WHOLE = {"draws": 1, "tune": 1, "chains": 1, "random_seed": 0}
"""Settings that are whole numbers, and the least."""


def settings(draw: st.DrawFn) -> tuple[dict[str, Any], bool]:
    """Some of the sampler's arguments, and whether they can be used."""
    found: dict[str, Any] = {}
    good = True
    for name in draw(
        st.lists(st.sampled_from([*WHOLE, "target_accept", "words"]), max_size=3, unique=True)
    ):
        if name == "words":
            word = draw(st.sampled_from(["model", "nuts_sampler"]))
            right = {"model": ["fused", "collapsed", "centred"], "nuts_sampler": ["nutpie", "pymc"]}
            odd = [None, 1, "Fused", "jax", "", ["fused"], np.array(["fused", "pymc"])]
            found[word] = draw(often(st.sampled_from(right[word]), st.sampled_from(odd), of=3))
            good &= isinstance(found[word], str) and found[word] in right[word]
        elif name == "target_accept":
            found[name] = draw(often(st.floats(0.5, 0.99), st.sampled_from([0, 1, -1.0, "x"]), 3))
            good &= isinstance(found[name], float) and 0 < found[name] < 1
        else:
            odd = [-1, 1.0, "3", None, True, math.nan, [2], 2**64 if name == "random_seed" else 0.5]
            found[name] = draw(often(st.integers(WHOLE[name], 50), st.sampled_from(odd), of=4))
            good &= type(found[name]) is int and WHOLE[name] <= found[name] < 2**64
    return found, good


def priors(draw: st.DrawFn, d: int) -> tuple[Any, dict[str, Any], bool]:
    """A prior over priors, the numbers it should have, and whether it can be used."""
    kind = draw(
        st.sampled_from(["none", "none", "LKJ", "KnownCovariance", "InverseWishart", "odd"])
    )
    if kind == "none":
        return None, {}, True
    if kind == "odd":
        odd = ["LKJ", bm.LKJ, 1.0, bm.GaussianPrior(np.zeros(d), np.eye(d))]
        return draw(st.sampled_from(odd)), {}, False
    given: dict[str, Any] = {}
    means: dict[str, Any] = {}
    mean = np.array(draw(st.lists(reals(-3, 3), min_size=d, max_size=d)))
    given["mean"], means["mean"] = contained(draw, mean)
    cov = covariances(draw, d) + draw(st.sampled_from([1.0, 0.1, 0.0, -5.0])) * np.eye(d)
    numbers = {"LKJ": ["eta", "noise_scale"], "KnownCovariance": ["noise_scale"]}
    for name in numbers.get(kind, ["weight", "degrees", "noise_scale"]):
        one: Drawn = draw(often(st.floats(1.0, 9.0).map(lambda x: Drawn(x, x)), any_number(), of=5))
        low = d - 1 if name == "degrees" else 0
        given[name] = one.value
        means[name] = one.means if one.means is not None and one.means > low else None
    matrix = {"KnownCovariance": "cov", "InverseWishart": "scale"}.get(kind)
    if matrix is not None:
        given[matrix] = cov
        low, high = np.linalg.eigvalsh(cov)[[0, -1]]
        if abs(low) < 1e-6 * abs(high):
            cov = given[matrix] = np.eye(d)
            low = 1.0
        means[matrix] = cov if low > 0 else None
    else:
        scale = np.abs(mean) + draw(st.sampled_from([1.0, 0.1, 0.0, -1.0]))
        given["scale"], means["scale"] = scale, scale if (scale > 0).all() else None
    good = all(value is not None and np.isfinite(value).all() for value in means.values())
    return getattr(bm, kind)(**given), means, good


@st.composite
def asked(draw: st.DrawFn) -> Asked:
    flavours, tasks = (
        (*ORDINARY, *ORDINARY, "extreme"),
        draw(often(st.just((2, 6)), st.just((1, 1)), 9)),
    )
    table = draw(tables(flavours=flavours, tasks=tasks, rows=(2, 5), dims=(1, 3)))
    noise: Drawn = draw(
        often(
            st.one_of(positive().map(lambda x: Drawn(x, x)), st.just(Drawn(None, math.nan))),
            st.one_of(any_number(), powers().map(lambda x: Drawn(x, x))),
            of=4,
        )
    )
    chosen, numbers, good = priors(draw, table.dim)
    given, fine = settings(draw)
    return Asked(table, noise, chosen, numbers, given, good and fine)


@holds_for(asked(), weight=4, examples=25)
def sample_posterior_draws_what_was_asked(case: Asked) -> None:
    """What reaches the sampler is what was given: data, noise, prior and settings; the rest is
    refused before anything is compiled."""
    stats = ask(stats_of, case.table)
    arguments: dict[str, Any] = {"prior": case.prior, "method": "nuts", **case.settings}
    with patch.object(sampling, "by_nuts", reach), warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)
        try:
            ask(bm.sample_posterior, stats, case.noise.value, **arguments)
        except Reached as reached:
            problem, told = reached.problem, reached.settings
    assert case.good, f"took {case.prior!r} and {case.settings!r}"
    assert case.table.tasks >= 2
    noise = case.noise.means
    if case.noise.value is None:
        assert problem.noise_sd is None
    else:
        assert noise is not None and not isinstance(case.noise.value, (str, bool)), case.noise
        assert problem.noise_sd == noise > 0
    for name, default in DEFAULTS.items():
        assert told[name] == case.settings.get(name, default), name
    for name, value in case.numbers.items():
        np.testing.assert_allclose(getattr(problem.prior, name), value, rtol=1e-14, err_msg=name)
    # a constant feature is taken for the intercept, under a prior that depends on the origin
    gram, moment = stats.gram, stats.moment
    if isinstance(case.prior, bm.LKJ | None):
        gram, moment = about_means(case.table, gram, moment)
    sizes = np.sqrt(np.diagonal(stats.gram, axis1=1, axis2=2))
    near = 1e-6 * sizes[:, :, None] * sizes[:, None, :]
    assert (np.abs(problem.stats.gram - gram) <= near).all()
    assert stats.energy is not None
    near = 1e-6 * sizes * np.sqrt(stats.energy)[:, None]
    assert (np.abs(problem.stats.moment - moment) <= near).all()
    for name in ("count", "energy"):
        np.testing.assert_array_equal(getattr(problem.stats, name), getattr(stats, name))


def about_means(
    table: Table, gram: np.ndarray, moment: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The sums of the rows, those of other features measured from their means, where exactly one
    may be an intercept: its squares add up to the number of rows in every task."""
    squares = [np.array([(table.rows(j)[0][:, k] ** 2).sum() for j in range(table.tasks)])
               for k in range(table.dim)]  # fmt: skip
    lengths = np.bincount(table.task)
    found = [k for k, one in enumerate(squares) if (one == lengths).all()]
    if len(found) != 1:
        return gram, moment
    one = table.features[:, found]
    means = (one * table.features).sum(axis=0) / len(one)
    means[found] = 0.0
    x, places = table.features - one * means, [table.task == j for j in range(table.tasks)]
    return (
        np.array([x[mine].T @ x[mine] for mine in places]),
        np.array([x[mine].T @ table.rewards[mine] for mine in places]),
    )


class Drawing(NamedTuple):
    """Options of ``bayesmeta sample`` on an ordinary table."""

    options: list[str]
    out: str
    plot: str | None
    good: bool


OPTIONS = [
    *("draws", "tune", "chains", "seed", "target-accept", "noise-sd"),
    *("prior-mean-sd", "prior-scale", "prior-eta", "prior-noise-scale"),
]


@st.composite
def drawing_options(draw: st.DrawFn) -> Drawing:
    options: list[str] = []
    good = True
    for name in draw(st.lists(st.sampled_from(OPTIONS), max_size=3, unique=True)):
        usual = {"target-accept": ["0.9", "0.5"], "prior-scale": ["1", "2,3"], "noise-sd": ["1"]}
        right = usual.get(name, ["1", "20", "7"])
        wrong = ["-1", "nan", "x", "", "1e400", "1,2,3,4", "0" if name != "seed" else "-2"]
        text = draw(often(st.sampled_from(right), st.sampled_from(wrong), of=5))
        options.append(f"--{name}={text}")
        good &= text in right
    if any("noise-scale" in one for one in options) and any("noise-sd" in one for one in options):
        good = False
    out = draw(often(st.just("out.nc"), st.sampled_from(["out.txt", "out", ".", "no/out.nc"]), 8))
    plot = draw(often(st.none(), st.sampled_from(["a.png", "a.txt", "out.png", "out.nc"]), of=5))
    good &= out.endswith(".nc") and plot in (None, "a.png")
    return Drawing(options, out, plot, good)


@holds_for(drawing_options(), weight=3, examples=8)
def options_of_sample(case: Drawing) -> None:
    """They reach the sampler, or one line says what is wrong, and nothing is written."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        path.write_text(ordinary_csv())
        columns = ["--task", "task", "--reward", "y", "--features", "x1,x2", "--json"]
        plot = [] if case.plot is None else ["--plot", Path(folder) / case.plot]
        places = ["--out", Path(folder) / case.out, *plot]
        told = None
        with patch.object(sampling, "by_nuts", reach):
            try:
                ended = bayesmeta("sample", path, *columns, *case.options, *places)
            except Reached as reached:
                told, problem = reached.settings, reached.problem
        files = [file.name for file in Path(folder).rglob("*") if file.is_file()]
    assert files == ["table.csv"], files
    if told is None:
        assert ended.code == 2, ended
        refuse(ended.error)
    assert case.good, f"took {case}"
    assert len(problem.stats) == 6 and problem.stats.dim == 2
    given = dict(one[2:].split("=") for one in case.options)
    for name, default in DEFAULTS.items():
        option = {"random_seed": "seed"}.get(name, name.replace("_", "-"))
        wanted = given.get(option, default)
        assert told[name] == (None if wanted is None else float(wanted)), option
    for name in ("scale", "mean_sd", "eta", "noise_scale"):
        text = given.get(f"prior-{name.replace('_', '-')}")
        if text is not None:
            wanted = np.array(text.split(","), dtype=float)
            assert (np.asarray(getattr(problem.prior, name)) == wanted).all(), name
