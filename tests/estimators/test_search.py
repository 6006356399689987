"""The search for the largest likelihood, and what it climbs."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.agents import learners
from bayesmeta.estimators.likelihood import evaluate, in_threads, pack
from bayesmeta.estimators.maximum import Options, maximise
from bayesmeta.estimators.search import LIMIT, Search
from bayesmeta.estimators.starts import Climbs, some_of
from bayesmeta.kernels import ascend
from bayesmeta.kernels.estep import estep
from bayesmeta.kernels.layout import EachTask, Parameters
from bayesmeta.statistics import TaskStatistics
from tests.helpers import ROOT, Problem
from tests.trials.maxima import SAYS_SO, SHORT, fitted, statistics
from tests.trials.tables import Table, exact, table

HARD = json.loads((ROOT / "analyses/hardening/maxima.json").read_text())["hard"]
"""Tables on which the usual starts fall short, and the best of 50 starts for them."""


def nearly_noiseless(seed: int) -> Table:
    """Six tasks of two rows each and three features, told by REML."""
    rng = np.random.default_rng(seed)
    rows = [rng.standard_normal((2, 3)) for _ in range(6)]
    rewards = [a @ rng.standard_normal(3) + 0.001 * rng.standard_normal(2) for a in rows]
    return Table(rows, rewards, None, True)


def test_a_higher_maximum_is_found() -> None:
    """Less noise and another covariance: 1.69 above where the usual starts end."""
    made = nearly_noiseless(16)
    found, usual = fitted(made), fitted(made, thorough=False)
    assert usual["value"] < -8.05
    assert found["value"] == pytest.approx(-6.369082867, abs=1e-6)
    assert found["status"] == "BOUNDARY" and found["noise_sd"] == pytest.approx(0.0391, abs=1e-4)


def test_a_likelihood_that_rises_to_no_noise_is_said_to() -> None:
    """The usual starts end at a maximum 1.55 lower, which has noise, and it looked like one."""
    made = nearly_noiseless(7)
    found, usual = fitted(made), fitted(made, thorough=False)
    assert usual["status"] == "BOUNDARY" and usual["noise_sd"] > 0.2
    assert found["status"] == "NO_NOISE" and found["value"] > usual["value"] + 1.5
    prior = bm.fit_prior(statistics(made)).prior
    values = [exact(made, prior.cov, found["noise_sd"] ** 2 * part) for part in (1.0, 0.1, 1e-3)]
    assert values[0] - 1e-6 < values[1] < values[2] + 1e-6


def test_hard_tables() -> None:
    """Where the usual starts end in lower maxima, the highest is found or its lack is said."""
    assert len(HARD) >= 20
    for seed, best in HARD.items():
        found = fitted(table(int(seed)))
        assert found["status"] in SAYS_SO or found["value"] > best - SHORT, seed


def test_a_singular_start_is_left() -> None:
    """Gradients in a root vanish where Sigma is singular: the search steps off on purpose."""
    made = Problem(3, 2, 30)
    stats, _ = made.stats.centred()
    packed, mean = pack(stats, np.eye(2)), np.zeros(2)
    with in_threads(1) as each:
        ends = []
        for cov in (np.eye(2), np.diag([1.0, 0.0]), np.zeros((2, 2))):
            search = Search(packed, mean, cov, 1.0, 1.0, False, True, each)
            _, arrived = search.climb(LIMIT)
            assert arrived
            ends.append(search.point.value)
            assert np.linalg.eigvalsh(search.cov)[0] > 0.1
    np.testing.assert_allclose(ends, ends[0], atol=1e-9)


def test_a_start_near_the_end_saves_steps() -> None:
    """With more than 100 tasks one search is made, and it begins where it is told to."""
    made = Problem(2, 3, 150)
    scratch = maximise(made.stats, 1.0, True, Options())
    warm = maximise(made.stats, 1.0, True, Options(start=(scratch.mean, scratch.cov)))
    assert warm.iterations < scratch.iterations
    assert warm.value == pytest.approx(scratch.value, abs=1e-9)
    far = maximise(made.stats, 1.0, True, Options(start=(scratch.mean, 1e6 * scratch.cov), limit=1))
    assert far.value < scratch.value - 1


def test_agents_keep_to_the_usual_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """They fit often and know the noise; ``fit_prior`` looks elsewhere, too."""

    def looked(*_: object) -> None:
        raise AssertionError("looked elsewhere")

    monkeypatch.setattr(Climbs, "elsewhere", looked)
    setting, rng = bm.paper_family(dim=2).setting(10), np.random.default_rng(0)
    learner = bm.agents.Likelihood()
    memory = learner.start(setting)
    for _ in range(3):
        rows = rng.standard_normal((6, 2))
        rewards = rows @ rng.standard_normal(2) + rng.standard_normal(6)
        memory = learner.observe(
            memory, learners.Finished(rows.T @ rows, rows.T @ rewards, 6, float(rewards @ rewards))
        )
        found = learner.estimate(memory, setting, rng)
    assert found.status in (bm.Status.OK, bm.Status.BOUNDARY)
    with pytest.raises(AssertionError, match="looked elsewhere"):
        bm.fit_prior(Problem(1, 2, 5).stats, 1.0)


@pytest.mark.parametrize(
    ("seed", "height"), [(39, -36.567767649), (106, 2.392766479), (391, -5.138775938)]
)
def test_agents_look_elsewhere_where_tasks_tell_few_numbers(seed: int, height: float) -> None:
    """Known noise and tasks that lack rank: ends of the usual starts by BFGS in NumPy, which were
    higher than those of compiled climbs alone."""
    found = fitted(table(seed), thorough=False)
    assert found["value"] > height - SHORT


def test_climbs_that_lead_nowhere_are_searched() -> None:
    """A climb to noise without bound is dropped, and the search begins where the climb did."""
    found = fitted(table(169), thorough=False)
    assert found["value"] == pytest.approx(25.4526569, abs=1e-4)


def test_rounding_is_no_negative_square() -> None:
    """Rewards that least squares fit exactly: less noise is not likelier for what rounding left."""
    stats = statistics(table(256))
    (chunk,) = pack(stats.centred()[0], np.eye(stats.dim)).chunks
    assert chunk.residuals.min() >= 0
    assert fitted(table(256), thorough=False)["noise_sd"] > 0.04


@pytest.mark.parametrize("dim", [1, 4, 5, 9])
def test_determinants_do_not_overflow(dim: int) -> None:
    """log|I + tau L'VL| where the determinant itself is beyond 1e308."""
    n, none = 3, np.empty((0, 0))
    stats = TaskStatistics(np.tile(np.eye(dim), (n, 1, 1)), np.zeros((n, dim)))
    (chunk,) = pack(stats, np.eye(dim)).chunks
    sums = estep(chunk, Parameters(np.zeros(dim), 1e35 * np.eye(dim), 1.0), EachTask(none, none))
    assert sums.logs == pytest.approx(n * dim * 2 * math.log(1e35), rel=1e-12)


@pytest.mark.parametrize("restricted", [True, False])
@pytest.mark.parametrize("dim", [1, 3])
def test_climbs_see_the_same_likelihood(dim: int, restricted: bool) -> None:
    """The compiled value and gradient are those of ``evaluate``; a climb ends at a maximum."""
    made = Problem(4, dim, 12)
    stats, _ = made.stats.centred()
    packed = pack(stats, np.eye(dim))
    rng, lower = np.random.default_rng(0), np.tril_indices(dim)
    root, variance = np.tril(rng.standard_normal((dim, dim))), 0.7
    point = evaluate(packed, np.zeros(dim), root, variance, restricted)
    slope = 2 * (point.gradient @ root)[lower]
    for free in (True, False):
        problem = ascend.Problem(
            packed.chunks[0], packed.steps, 0.0 if free else variance, 1e-9, restricted, dim
        )
        x = np.append(root[lower], math.log(variance)) if free else root[lower].copy()
        gradient = np.zeros(len(x))
        assert ascend.height(problem, x, gradient) == pytest.approx(point.value, rel=1e-12)
        exact_slope = np.append(slope, point.noise_gradient) if free else slope
        np.testing.assert_allclose(gradient, exact_slope, rtol=1e-9, atol=1e-9)
        value, _ = ascend.ascend(problem, x, 200, 1e-13, ascend.nowhere(dim))
        assert value > point.value + 0.1
        assert ascend.height(problem, x, gradient) == value
        np.testing.assert_allclose(gradient, 0, atol=1e-4)


def test_a_climb_ends_next_to_a_goal() -> None:
    """It ends early where it leads to the known maximum, also with free noise, and climbs on where
    a place as high is another."""
    made = Problem(100, 2, 12)
    stats, _ = made.stats.centred()
    packed = pack(stats, np.eye(2))
    climbs = Climbs(packed, 1.0, 1e-9, True, True)
    high = climbs.climb(np.eye(2), 1.0)
    again = climbs.climb(9.0 * np.eye(2), 3.0)
    assert high is not None and again is not None and again.value != high.value
    assert climbs.climb(9.0 * np.eye(2), 3.0, high) is high
    for elsewhere in (
        high._replace(root=high.root + 0.5 * np.eye(2)),
        high._replace(variance=2 * high.variance),
        high._replace(value=high.value + 1.0),
    ):
        found = climbs.climb(9.0 * np.eye(2), 3.0, elsewhere)
        assert found is not None and found.value == again.value


def test_noise_below_the_least_is_not_tried() -> None:
    """A climb keeps to noise at which the likelihood has its digits."""
    made = Problem(4, 2, 12)
    stats, _ = made.stats.centred()
    packed = pack(stats, np.eye(2))
    problem = ascend.Problem(packed.chunks[0], packed.steps, 0.0, 1e-3, True, packed.dim)
    x, gradient = np.array([1.0, 0.0, 1.0, math.log(1e-3)]), np.zeros(4)
    value = ascend.height(problem, x, gradient)
    x[3] = math.log(1e-9)
    assert ascend.height(problem, x, gradient) == pytest.approx(value, rel=1e-12)
    assert gradient[3] == 0.0


def test_steps_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """25 of scoring, then L-BFGS with what is left of the limit, and again."""
    scored: list[int] = []
    asked: list[int] = []
    made = Problem(3, 2, 30)
    packed = pack(made.stats.centred()[0], np.eye(2))
    with in_threads(1) as each:
        search = Search(packed, np.zeros(2), np.eye(2), 1.0, 1.0, False, True, each)
        monkeypatch.setattr(Search, "_score", lambda self: scored.append(1))
        monkeypatch.setattr(Search, "in_scale", lambda self, limit: [asked.append(limit), 5][1])
        assert search.climb(60) == (60, False)
    assert len(scored) == 50 and asked == [35, 5]


@pytest.mark.parametrize("tasks", [12, 150])
def test_tasks_far_from_a_common_origin(tasks: int) -> None:
    """Times that hardly vary within a task: seen from a common origin tasks differ by far more than
    any usual start has it. Never below a search that begins at eq. (11)."""
    rng = np.random.default_rng(11)
    label, z = np.repeat(np.arange(tasks), 8), rng.standard_normal((tasks, 2))
    x, noise = rng.uniform(-1, 1, 8 * tasks), rng.standard_normal(8 * tasks)
    time = 24.0 * (label % 12) + 0.25 * x
    rewards = z[label, 0] + (0.5 + 0.2 * z[label, 1]) * x + 0.1 * noise
    rows = np.column_stack([np.ones(8 * tasks), (time - time.mean()) / 80])
    stats = TaskStatistics.from_arrays(label, rewards, rows)
    found, start = bm.fit_prior(stats), bm.fit_prior(stats, method="moment-clipped").prior
    other = maximise(stats, None, True, Options(start=(start.mean, start.cov), thorough=False))
    assert found.status in (bm.Status.OK, bm.Status.IMPRECISE)
    assert found.log_likelihood is not None and found.log_likelihood > other.value - SHORT
    assert found.noise_sd == pytest.approx(0.1, rel=0.2)
    usual = maximise(stats, None, True, Options(thorough=False))
    assert usual.value < other.value - 1


def test_a_covariance_of_almost_one_direction_is_one() -> None:
    """Rounding of the largest deviation, which is a billion times the others here, does not make an
    eigenvalue negative in their units: four people's answers, of whom few are alike in a trait."""
    signed = [[-1, 3, -2, 2, 0], [-1, 3, -2, 1, 1], [4, 3, 1, 0, 0], [4, 3, 1, 0, 0]]
    asked = [[1, 3, 2, 2, 0], [1, 3, 2, 1, 1], [4, 3, 1, 0, 0], [4, 3, 1, 0, 0]]
    moment = [
        [24, -2, 14, -4, 4, 0],
        [31, -3, 16, -7, 2, 3],
        [40, 22, 14, 4, 0, 0],
        [39, 21, 13, 5, 0, 0],
    ]
    gram = np.zeros((4, 6, 6))
    gram[:, 0, 0] = 8
    gram[:, 0, 1:] = gram[:, 1:, 0] = signed
    gram[:, range(1, 6), range(1, 6)] = asked
    found = bm.fit_prior(bm.TaskStatistics(gram=gram, moment=moment), 2.2419, "reml")
    sd = np.sqrt(np.diag(found.prior.cov))
    assert sd.min() < 1e-6 * sd.max()
    used = sd > 0
    scaled = found.prior.cov[np.ix_(used, used)] / np.outer(sd[used], sd[used])
    assert np.linalg.eigvalsh(scaled)[0] > -1e-13


def test_where_to_begin_does_not_depend_on_the_order_of_tasks() -> None:
    """Of 1,600 tasks every fourth is without noise: these are not taken for what all are like."""
    rng = np.random.default_rng(3)
    noise = np.where(np.arange(1600) % 4 == 0, 1e-4, 1.0)
    features = rng.standard_normal((1600, 8, 2))
    theta = rng.standard_normal((1600, 2))
    rewards = np.einsum("nti,ni->nt", features, theta)
    rewards += noise[:, None] * rng.standard_normal(rewards.shape)
    made = TaskStatistics(
        np.einsum("nti,ntj->nij", features, features),
        np.einsum("nti,nt->ni", features, rewards),
        np.full(1600, 8),
        (rewards**2).sum(axis=1),
    )
    found = bm.fit_prior(made)
    assert found.status is bm.Status.OK
    some = some_of(made)
    assert 400 <= len(some) < 800
    moments = {tuple(one) for one in made.moment[::4]}
    quiet = sum(tuple(one) in moments for one in some.moment) / len(some)
    assert 0.2 < quiet < 0.3
