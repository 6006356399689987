"""fit_prior and posteriors, against rational numbers, dense algebra and changes that change
nothing: order, labels, units."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import bayesmeta as bm
from bayesmeta import Status, TaskStatistics
from tests.properties import oracles
from tests.properties.rule import Unjudged, ask, holds_for
from tests.strategies import ORDINARY, SEEDS, Table, contained, covariances, often, reals, tables

NOISE = often(st.floats(0.05, 5.0).map(lambda x: float(f"{x:.3g}")), st.none(), of=2)


def stats_of(table: Table, **labels: Any) -> TaskStatistics:
    """The package's own sums; tests of tables hold them."""
    stats = TaskStatistics.from_arrays(table.task, table.rewards, table.features)
    return TaskStatistics(stats.gram, stats.moment, stats.count, stats.energy, **labels)


# ---- Moments, eqs. (9)-(11).


class Fitted(NamedTuple):
    """A table to be fitted."""

    table: Table
    noise_sd: float | None
    method: str
    seed: int


@st.composite
def fits(
    draw: st.DrawFn, methods: tuple[str, ...], flavours: tuple[str, ...], least: int = 1
) -> Fitted:
    rows = (least, 6)
    table = draw(tables(flavours=flavours, tasks=(1, 8), rows=rows, dims=(1, 3)))
    noise = draw(NOISE)
    if noise is not None and table.flavour == "scaled":
        noise *= float(np.abs(table.rewards).max()) or 1.0
    return Fitted(table, noise, draw(st.sampled_from(methods)), draw(SEEDS))


MOMENTS = ("moment", "moment-clipped", "moment-widened")


@holds_for(fits(MOMENTS, (*ORDINARY, "scaled", "extreme"), least=2), weight=8, examples=25)
def moments_are_eqs_9_to_11(case: Fitted) -> None:
    """In rational numbers from the rows; the status says whether eq. (11) is a covariance."""
    table = case.table
    stats = ask(stats_of, table)
    widened = {"widening": 0.5, "horizon": 7} if case.method == "moment-widened" else {}
    found = ask(bm.fit_prior, stats, case.noise_sd, case.method, **widened)
    exact = oracles.exact_moments(table)
    conditions = [oracles.scaled_condition(gram) for gram in stats.gram]
    clear = all(c < 1e9 for j, c in enumerate(conditions) if j in exact.used)
    if not clear:  # the package may call a task singular that is only nearly so
        assert found.passed_over >= table.tasks - len(exact.used)
        raise Unjudged("a gram that is nearly singular")
    k = len(exact.used)
    assert found.passed_over == table.tasks - k
    slack = 1e-14 * max(conditions[j] for j in exact.used)
    assert found.noise_sd is not None
    noise = found.noise_sd if case.noise_sd is None else case.noise_sd
    assert found.noise_sd == noise or math.isclose(found.noise_sd, noise, rel_tol=1e-12)
    raw = np.array([[float(x) for x in row] for row in exact.cov(noise)])
    mean = np.array([float(x) for x in exact.mean])
    thetas = np.array([[float(x) for x in theta] for theta in exact.thetas])
    lengths = np.array([[float(v[i][i]) ** 0.5 for i in range(table.dim)] for v in exact.inverses])
    energy = np.array([math.hypot(*table.rows(j)[1]) for j in exact.used])
    size = (np.abs(thetas) + lengths * energy[:, None]).max(axis=0)  # of what rounding acts on
    spread = size[:, None] * size + noise**2 * (lengths.max(axis=0)[:, None] * lengths.max(axis=0))
    assert found.raw_cov is not None
    assert (np.abs(found.prior.mean - mean) <= slack * size).all(), (found.prior.mean, mean)
    assert (np.abs(found.raw_cov - raw) <= 10 * slack * spread).all(), (found.raw_cov, raw)
    if case.noise_sd is None:
        _check_pooled(table, exact, noise)
    _check_status(found, raw, case.method, k, 100 * slack * spread)


def _check_pooled(table: Table, exact: oracles.Moments, noise: float) -> None:
    """The noise is that of the residuals of every task's least squares, pooled."""
    left, free = 0.0, 0
    for j in range(table.tasks):
        a, x = table.rows(j)
        theta, _, rank, _ = np.linalg.lstsq(a / (np.abs(a).max(axis=0) + 1e-300), x)
        gap = x - a / (np.abs(a).max(axis=0) + 1e-300) @ theta
        left, free = left + float(gap @ gap), free + len(x) - int(rank)
    level = float(np.abs(table.rewards).max()) ** 2 * len(table.rewards)
    assert free > 0 and abs(noise**2 * free - left) <= 1e-6 * left + 1e-9 * level, (
        noise,
        left,
        free,
    )


def _check_status(
    found: bm.PriorEstimate, raw: np.ndarray, method: str, k: int, doubt: np.ndarray
) -> None:
    """What is done with negative eigenvalues, and what is said of it."""
    cov = found.prior.cov
    if method == "moment-widened":
        d = len(raw)
        radius = 0.5 * math.sqrt((5 * d + 2 * math.log(d * (k + 1) * 7)) / k)  # eq. (12), n = k + 1
        raw = raw + radius * np.eye(d)
        assert (np.abs(cov - raw) <= doubt + 1e-12 * np.abs(raw).max()).all(), (cov, raw)
    units = np.sqrt(np.abs(np.diag(raw)))
    units = np.where(units > 0, units, 1.0)
    lowest = np.linalg.eigvalsh(raw / units[:, None] / units)[0]
    if abs(lowest) < 1e-6 + float((doubt / units[:, None] / units).max()) * len(raw):
        return  # too near to 0 to say
    negative = Status.CLIPPED if method == "moment-clipped" else Status.NOT_POSITIVE_DEFINITE
    assert found.status is (negative if lowest < 0 else Status.OK), (found.status, lowest)
    if found.status is Status.CLIPPED:
        values, vectors = np.linalg.eigh(raw)
        clipped = (vectors * np.maximum(values, 0)) @ vectors.T
        assert np.abs(cov - clipped).max() <= doubt.max() + 1e-9 * np.abs(raw).max()


# ---- Changes that change nothing, for every method.

ALL = (*MOMENTS, "ml", "reml", "gls")
EXTRA: dict[str, dict[str, Any]] = {"moment-widened": {"widening": 0.5, "horizon": 7}}


def likelihood_fit(method: str) -> bool:
    return method in ("ml", "reml", "gls")


def trusted(found: bm.PriorEstimate) -> bool:
    """Whether a maximum is one point, and reached: not where a status warns."""
    return found.status in (Status.OK, Status.NOT_POSITIVE_DEFINITE, Status.CLIPPED)


@holds_for(fits(ALL, ORDINARY, least=2), weight=6, examples=8)
def order_and_labels_do_not_matter(case: Fitted) -> None:
    """Rows, tasks and features in another order, other labels: the same estimate."""
    table, rng = case.table, np.random.default_rng(case.seed)
    extra = EXTRA.get(case.method, {})
    first = ask(bm.fit_prior, stats_of(table), case.noise_sd, case.method, **extra)
    rows, columns = rng.permutation(len(table.task)), rng.permutation(table.dim)
    other = Table(table.task[rows], table.rewards[rows], table.features[rows][:, columns], "")
    labels = np.array([f"t{j}" for j in range(table.tasks)], dtype=object)
    stats = TaskStatistics.from_arrays(labels[other.task], other.rewards, other.features)
    second = bm.fit_prior(stats, case.noise_sd, case.method, **extra)
    back = np.argsort(columns)
    cov = second.prior.cov[np.ix_(back, back)]
    same_estimate(first, second, second.prior.mean[back], cov, likelihood_fit(case.method))


def same_estimate(
    first: bm.PriorEstimate,
    second: bm.PriorEstimate,
    mean: np.ndarray,
    cov: np.ndarray,
    searched: bool,
) -> None:
    """The same prior where it is determined, to fewer digits where a likelihood was ``searched``;
    the same likelihood in any case."""
    compared = False
    if first.log_likelihood is not None:
        assert second.log_likelihood is not None
        if Status.NO_NOISE not in (first.status, second.status):  # there it has no bound
            assert abs(first.log_likelihood - second.log_likelihood) <= 1e-5, (first, second)
            compared = True
    if not (trusted(first) and trusted(second)):
        if not compared:
            raise Unjudged("no likelihood, and a status that warns")
        return
    assert first.status is second.status
    scale = np.sqrt(np.diag(np.abs(first.prior.cov))) + np.abs(first.prior.mean) + 1e-9
    slack = 2e-3 if searched else 1e-8
    assert (np.abs(first.prior.mean - mean) <= slack * scale).all(), (first, second)
    assert (np.abs(first.prior.cov - cov) <= slack * scale[:, None] * scale).all(), (first, second)


@st.composite
def in_units(draw: st.DrawFn) -> tuple[Fitted, list[float], float]:
    case = draw(fits(ALL, ("ordinary",), least=3))
    binary = draw(st.booleans())
    power = (
        st.integers(-300, 300).map(lambda k: 2.0**k)
        if binary
        else st.integers(-90, 90).map(lambda k: 10.0**k)
    )
    near = st.sampled_from([1.0, 2.0, 1000.0, 0.01])
    units = [draw(often(near, power, of=2)) for _ in range(case.table.dim)]
    return case, units, draw(often(near, power, of=2))


@holds_for(in_units(), weight=6, examples=12)
def units_do_not_matter(case: tuple[Fitted, list[float], float]) -> None:
    """Features and rewards in other units: the same estimate in other units (eq. (12) adds a
    constant, so not moment-widened)."""
    fitted, units, level = case
    table, method = fitted.table, fitted.method.replace("-widened", "-clipped")
    if method == "moment-clipped":
        method = "moment"  # clipping depends on units, too
    first = ask(bm.fit_prior, stats_of(table), fitted.noise_sd, method)
    other = Table(table.task, table.rewards * level, table.features * units, "scaled")
    noise = None if fitted.noise_sd is None else fitted.noise_sd * level
    sizes = [
        level,
        *units,
        *((level / u) ** 0.7 for u in units),
    ]  # variances within 1e-280 to 1e280
    if max(abs(math.log10(size)) for size in sizes) > 100:
        second = ask(lambda: bm.fit_prior(stats_of(other), noise, method))
    else:
        second = bm.fit_prior(stats_of(other), noise, method)
    ratio = np.array(units) / level
    shift = len(table.task) * math.log(level)
    if second.log_likelihood is not None and method == "reml":
        shift -= float(np.log(level / np.array(units)).sum())
    if method == "gls":  # which is reml where no covariance is given
        shift = 0.0
        first, second = (one._replace(log_likelihood=None) for one in (first, second))
    if second.log_likelihood is not None:
        second = second._replace(log_likelihood=second.log_likelihood + shift)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        mean, cov = second.prior.mean * ratio, second.prior.cov * ratio[:, None] * ratio
    assert np.isfinite(mean).all() and np.isfinite(cov).all(), second
    same_estimate(first, second, mean, cov, likelihood_fit(method))


# ---- Likelihood.


@holds_for(fits(("ml", "reml"), (*ORDINARY, "scaled"), least=2), weight=8, examples=12)
def likelihood_is_dense_and_no_neighbour_is_higher(case: Fitted) -> None:
    """The value is that of dense matrices at the estimate; none of thirty points near it that has
    status OK is higher."""
    table, restricted = case.table, case.method == "reml"
    if table.flavour == "scaled":  # dense matrices need units near 1
        table = Table(
            table.task,
            table.rewards / (np.abs(table.rewards).max() or 1.0),
            table.features / np.maximum(np.abs(table.features).max(axis=0), 1e-300),
            "scaled",
        )
        case = case._replace(noise_sd=None)
    found = ask(bm.fit_prior, stats_of(table), case.noise_sd, case.method)
    assert found.noise_sd is not None and found.log_likelihood is not None
    if case.noise_sd is not None:
        assert math.isclose(found.noise_sd, case.noise_sd, rel_tol=1e-12)
    cov, variance = found.prior.cov, found.noise_sd**2
    assert np.linalg.eigvalsh(cov)[0] >= -1e-9 * np.abs(cov).max()
    if found.status in (Status.NO_NOISE, Status.IMPRECISE):
        raise Unjudged(f"status {found.status}: dense matrices have no digits left")
    value = oracles.profile(table, cov, variance, restricted)
    assert abs(value - found.log_likelihood) <= 1e-5 * max(1.0, abs(value) / 10), (value, found)
    best = oracles.best_mean(table, cov, variance)
    info = oracles.information(table, cov, variance)[0]
    errors = np.sqrt(np.diag(np.linalg.inv(info)))
    assert (np.abs(best - found.prior.mean) <= 1e-4 * errors + 1e-9 * np.abs(best)).all()
    assert found.mean_sd is not None
    np.testing.assert_allclose(found.mean_sd, errors, rtol=1e-3)
    if found.status not in (Status.OK, Status.BOUNDARY):
        return
    rng = np.random.default_rng(case.seed)
    values, vectors = np.linalg.eigh(cov)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    for size in np.repeat([1e-3, 0.05, 0.5], 10):
        turn = np.eye(len(cov)) + size * rng.standard_normal(cov.shape)
        other = root @ turn @ turn.T @ root.T
        if rng.random() < 0.3:
            wide = rng.standard_normal(len(cov)) * math.sqrt(variance) * size
            other = other + np.outer(wide, wide)
        noise = variance
        if case.noise_sd is None:
            noise *= math.exp(size * rng.standard_normal())
        higher = oracles.profile(table, other, noise, restricted)
        assert higher <= value + 1e-5, (higher - value, found, other, noise)


@st.composite
def weighted(draw: st.DrawFn) -> tuple[Fitted, Any, np.ndarray | None]:
    case = draw(fits(("gls",), (*ORDINARY, "extreme"), least=2))
    cov = covariances(draw, case.table.dim)
    kind = draw(often(st.just("right"), st.sampled_from(["odd", "asymmetric", "negative"]), of=4))
    if kind == "odd":
        return case, *contained(draw, cov)
    if kind == "asymmetric" and case.table.dim > 1:
        bent = cov.copy()
        bent[0, 1] += 1.0
        return case, bent, None
    if kind == "negative":
        return case, cov - (np.abs(cov).max() + 1.0) * np.eye(len(cov)), None
    return case, cov.tolist(), cov


@holds_for(weighted(), weight=4, examples=25)
def gls_is_dense(case: tuple[Fitted, Any, np.ndarray | None]) -> None:
    """The mean weighted by its dense information, with its covariance."""
    fitted, given, cov = case
    stats = ask(stats_of, fitted.table)
    found = ask(bm.fit_prior, stats, fitted.noise_sd, "gls", cov=given)
    assert cov is not None, f"took {given!r} for a covariance"
    if fitted.table.flavour == "extreme" and np.abs(stats.gram).max() > 1e8:
        assert np.isfinite(found.prior.mean).all()
        raise Unjudged("dense matrices have no digits left")
    assert found.noise_sd is not None and found.mean_cov is not None
    variance = found.noise_sd**2
    info, total = oracles.information(fitted.table, cov, variance)
    signal = max(float(np.trace(gram @ cov)) for gram in stats.gram) / variance
    slack = (1e-12 + 1e-15 * signal) * np.linalg.cond(info)  # 1/variance is taken from itself
    errors = np.sqrt(np.diag(np.linalg.inv(info)))
    mean = np.linalg.solve(info, total)
    assert (np.abs(found.prior.mean - mean) <= slack * (errors + np.abs(mean).max())).all()
    assert np.abs(found.mean_cov - np.linalg.inv(info)).max() <= slack * errors.max() ** 2
    value = oracles.log_likelihood(fitted.table, found.prior.mean, cov, variance)
    assert found.log_likelihood is not None
    assert abs(value - found.log_likelihood) <= 1e-8 * max(1.0, abs(value)), (value, found)


# ---- Posteriors of tasks.


class Conditioned(NamedTuple):
    """A prior and a task's data."""

    mean: np.ndarray
    cov: np.ndarray
    rows: np.ndarray
    rewards: np.ndarray
    noise_sd: Any
    scale: float
    """of rewards, noise and the prior's standard deviations"""
    broken: str


BROKEN = ["nan", "negative", "shape", "bent", "moment", "text", "complex", "masked"]


@st.composite
def conditioned(draw: st.DrawFn) -> Conditioned:
    d, count = draw(st.integers(1, 4)), draw(st.integers(0, 6))
    rng = np.random.default_rng(draw(SEEDS))
    return Conditioned(
        np.array(draw(st.lists(reals(), min_size=d, max_size=d))),
        covariances(draw, d),
        rng.standard_normal((count, d)).round(draw(st.sampled_from([0, 8]))),
        rng.standard_normal(count),
        draw(often(st.floats(0.05, 5.0), st.sampled_from([0.0, -1.0, math.nan, "x", None]), of=8)),
        draw(often(st.just(1.0), st.integers(-100, 100).map(lambda k: 10.0**k), of=3)),
        draw(often(st.just(""), st.sampled_from(BROKEN), 5)),
    )


@holds_for(conditioned(), weight=6, examples=40)
def posterior_is_conditioning(case: Conditioned) -> None:
    """Eq. (4) against conditioning of the joint Gaussian of theta and rewards, at any scale; grams
    that are none are refused."""
    c = case.scale
    prior = bm.GaussianPrior(case.mean * c, case.cov * c * c)
    gram, moment = case.rows.T @ case.rows, case.rows.T @ case.rewards * c
    if case.broken == "nan":
        gram = gram + np.nan
    elif case.broken == "negative":
        gram = gram - (1.0 + np.abs(gram).max()) * np.eye(len(gram))
    elif case.broken == "shape":
        gram = gram[None, None, :, :-1]
    elif case.broken == "moment":
        moment = np.full_like(moment, np.inf)
    elif case.broken == "bent":
        gram = gram + np.triu(np.ones_like(gram), 1) * (1 + np.abs(gram).max())
    elif case.broken == "text":
        moment = [f"{x}?" for x in moment]
    elif case.broken == "complex":
        gram = gram + 1j
    elif case.broken == "masked":
        gram = np.ma.masked_array(gram, mask=np.eye(len(gram)))
    noise = case.noise_sd * c if isinstance(case.noise_sd, float) else case.noise_sd
    mean, cov = ask(prior.posterior, gram, moment, noise)
    assert not case.broken or (case.broken == "bent" and len(gram) == 1), case.broken
    told, spread = oracles.conditioned(
        case.mean, case.cov, case.rows, case.rewards, case.noise_sd**2
    )
    slack = 1e-11 * (1 + np.abs(case.mean).max() + np.abs(case.cov).max() / case.noise_sd**2)
    assert np.abs(mean / c - told).max() <= slack * (1 + np.abs(told).max()), (mean / c, told)
    assert np.abs(cov / c / c - spread).max() <= slack * (1e-9 + np.abs(case.cov).max())
    wider = prior.widen(c * c)
    assert np.abs(wider.cov / c / c - case.cov - np.eye(len(cov))).max() <= 1e-14 * (
        1 + np.abs(case.cov).max()
    )
    stacked = prior.posterior(np.stack([gram, gram]), np.stack([moment, moment]), noise)
    np.testing.assert_array_equal(stacked[0][1], stacked[0][0])
    np.testing.assert_allclose(stacked[1][0], cov, rtol=1e-12, atol=1e-14 * c * c)


@holds_for(fits(("moment-clipped", "ml", "reml"), ORDINARY, least=3), weight=3, examples=10)
def task_posteriors_are_conditioning(case: Fitted) -> None:
    """Every task given the estimated prior."""
    table = case.table
    stats = stats_of(table)
    found = ask(bm.fit_prior, stats, case.noise_sd, case.method)
    means, covs = bm.task_posteriors(stats, found)
    assert found.noise_sd is not None
    if found.status in (Status.NO_NOISE, Status.IMPRECISE):
        raise Unjudged(f"status {found.status}: dense matrices have no digits left")
    for j in range(table.tasks):
        told, spread = oracles.conditioned(
            found.prior.mean, found.prior.cov, *table.rows(j), found.noise_sd**2
        )
        ratio = 1 + np.abs(found.prior.cov).max() / found.noise_sd**2
        slack = 1e-10 * ratio * (1 + np.abs(told).max() + np.abs(found.prior.cov).max())
        assert np.abs(means[j] - told).max() <= slack, (means[j], told)
        assert np.abs(covs[j] - spread).max() <= slack


@holds_for(fits(("split",), ORDINARY, least=5), weight=3, examples=15)
def split_is_a_cross_covariance(case: Fitted) -> None:
    """Against np.cov of the least squares of two halves."""
    table, place = case.table, np.zeros(len(case.table.task), dtype=int)
    for j in range(table.tasks):
        place[table.task == j] = np.arange((table.task == j).sum()) % 2
    halves = []
    for half in (0, 1):
        here = place == half
        halves.append(Table(table.task[here], table.rewards[here], table.features[here], ""))
    found = ask(
        bm.fit_prior,
        tuple(TaskStatistics.from_arrays(one.task, one.rewards, one.features) for one in halves),  # type: ignore[arg-type]
        method="split",
    )
    one, two = (
        np.array([np.linalg.lstsq(*half.rows(j))[0] for j in range(table.tasks)]) for half in halves
    )
    cross = (one - one.mean(0)).T @ (two - two.mean(0)) / (table.tasks - 1)
    cross = (cross + cross.T) / 2
    worst = max(np.linalg.cond(half.rows(j)[0]) for half in halves for j in range(table.tasks))
    slack = 1e-13 * worst**2 * (1 + np.abs(one).max()) * (1 + np.abs(two).max())
    assert np.abs(found.prior.cov - cross).max() <= slack, (found, cross)
    assert np.abs(found.prior.mean - (one + two).mean(0) / 2).max() <= slack
