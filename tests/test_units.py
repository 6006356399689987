"""Numbers far from 1: the same answers in other units, or a refusal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta import units
from bayesmeta.agents.agent import Agent
from bayesmeta.agents.decorrelated import Decorrelated
from bayesmeta.agents.learners import Likelihood, Moments
from bayesmeta.agents.roster import POSTERIOR, ROSTER
from bayesmeta.checks import InputError
from bayesmeta.simulation.simulator import simulate_run
from bayesmeta.statistics import TaskStatistics
from tests.helpers import Problem, run

TASKS = 6
DIMENSIONS = {
    "regret": (1, 0),
    "mean_error": (1, -1),
    "covariance_error": (2, -2),
    "raw_covariance_error": (2, -2),
    "smallest_eigenvalue": (2, -2),
}
"""Of the variables of a record: powers of rewards and of actions."""
POWERS = [(280, 0), (-280, 0), (0, 300), (0, -300), (300, 300), (-150, 170), (150, -170), (90, 30)]
"""Rewards and actions times these powers of two."""
SIZES = [(1e-85, 1.0), (1e80, 1.0), (1e-95, 1e-2), (1.0, 1e90), (1.0, 1e-90), (1e99, 1e40)]
"""Rewards and actions times these."""


def family(reward: float = 1.0, action: float = 1.0, *, ball: bool = False) -> bm.TaskFamily:
    """One family in units: rewards times ``reward``, actions times ``action``."""
    t, plain = reward / action, bm.paper_family(dim=2, horizon=12, actions=4)
    prior = bm.GaussianPrior(t * plain.prior.mean, t * (t * plain.prior.cov))
    law = replace(plain.actions, radius=0.25 * action)
    hyper = bm.GaussianPrior(t * np.ones(2), t * (t * np.eye(2)))
    sets = bm.WholeBall(2, 0.25 * action) if ball else law
    return bm.TaskFamily(prior, sets, reward, 12, hyper=hyper)


def in_units(row: Agent, t: float, action: float) -> Agent:
    """A row whose own numbers are in the units, theta being times t."""
    rule = replace(row.exploration, threshold=row.exploration.threshold / t / t)
    learner = row.learner
    if isinstance(learner, (Moments, Decorrelated)) and learner.widening is not None:
        learner = replace(learner, widening=learner.widening * t * t)
    ridge, bound = row.policy.ridge, row.policy.norm_bound
    policy = replace(
        row.policy,
        ridge=None if ridge is None else ridge * action**2,
        norm_bound=None if bound is None else bound * t,
    )
    warmup = None if row.warmup is None else min(row.warmup, 3)
    return replace(
        row,
        exploration=rule,
        learner=learner,
        policy=policy,
        warmup=3 if warmup is None else warmup,
    )


ARMS = ("MoM-TS_arms", "MoM-TS_arms_mean")
PRICES = [name for name in ROSTER if name.endswith("_price")]
LEFT_OUT = (*POSTERIOR, *ARMS, *PRICES)  # such families have units of their own
ROWS = [row for name, row in ROSTER.items() if name not in LEFT_OUT] + [
    replace(ROSTER["KTS"], name="OFUL", policy=bm.agents.oful(3.0, ridge=0.01)),
    replace(ROSTER["KTS"], name="FIDS", policy=bm.agents.frequentist_ids(3.0, ridge=0.01)),
    replace(ROSTER["KTS"], name="theory", exploration=bm.agents.first_steps(4), learner=Moments()),
]
LIKELIHOOD = np.array([isinstance(row.learner, Likelihood) for row in ROWS])


def played(reward: float = 1.0, action: float = 1.0) -> dict[str, np.ndarray]:
    """Every row, what it did in units 1."""
    rows = [in_units(row, reward / action, action) for row in ROWS]
    found = simulate_run(family(reward, action), rows, tasks=TASKS)
    for name, (p, q) in DIMENSIONS.items():
        for _ in range(abs(p)):
            found[name] = found[name] / reward
        for _ in range(abs(q)):
            found[name] = found[name] * action
    return found


@pytest.fixture(scope="module")
def plain() -> dict[str, np.ndarray]:
    return played()


@pytest.mark.parametrize("powers", POWERS, ids=str)
def test_powers_of_two_change_no_bit(powers: tuple[int, int], plain: dict[str, np.ndarray]) -> None:
    """Every row of the roster: a family times a power of two gives the record times it. To rounding
    where a likelihood takes logarithms, and where LAPACK, which scales by other numbers, computes
    eigenvalues: of errors, and of covariances that had to be raised."""
    other = played(2.0 ** powers[0], 2.0 ** powers[1])
    exact = ~LIKELIHOOD & (plain["not_positive_definite"].sum(axis=1) == 0)
    assert exact.sum() >= 15
    for name, values in plain.items():
        if name not in ("covariance_error", "raw_covariance_error", "smallest_eigenvalue"):
            np.testing.assert_array_equal(other[name][exact], values[exact], name)
        np.testing.assert_allclose(other[name], values, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_units_do_not_matter_to_any_row(
    sizes: tuple[float, float], plain: dict[str, np.ndarray]
) -> None:
    """Within 1e-100 to 1e100 the record is that in units 1, to rounding."""
    other = played(*sizes)
    for name, values in plain.items():
        np.testing.assert_allclose(other[name], values, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.slow
def test_a_posterior_has_no_units() -> None:
    """HB-TS draws in the units that tasks are played in: the same bits at 2^280 and at 2^-280. In
    units 1 a sampler walks elsewhere, to the same posterior of the first task's data; from then on
    other choices are made. (In four seeds the two differed by 7% at most.)"""
    row = replace(ROSTER["HB-mean-TS"], learner=bm.agents.Posterior(average=True, draws=1000))
    plain, large, small = (
        {
            "regret": found["regret"] / c,
            "mean_error": found["mean_error"] / c,
            "covariance_error": found["covariance_error"] / c / c,
        }
        for c in (1.0, 2.0**280, 2.0**-280)
        for found in [simulate_run(family(c), [row], tasks=3)]
    )
    for name in ("regret", "mean_error"):
        np.testing.assert_array_equal(large[name], small[name], name)
    for name, values in plain.items():
        np.testing.assert_allclose(large[name][0, 0], values[0, 0], rtol=1e-12, err_msg=name)
    for name in ("mean_error", "covariance_error"):
        np.testing.assert_allclose(large[name][0, 1], plain[name][0, 1], rtol=0.25, err_msg=name)


@pytest.mark.parametrize("ball", [False, True])
@pytest.mark.parametrize("reward, action", [(2.0**280, 1.0), (2.0**-100, 2.0**-300)])
def test_ask_and_tell_in_other_units(ball: bool, reward: float, action: float) -> None:
    """A live player takes actions and rewards, and shows its prior, in the user's units."""
    found = []
    for c, a in ((1.0, 1.0), (reward, action)):
        row = in_units(ROSTER["All-MTS"], c / a, a)
        player, rng = bm.Player(row, family(c, a, ball=ball).setting(9)), np.random.default_rng(0)
        for _ in range(6):
            prior = player.start_task().prior
            found.append(prior.mean / (c / a))
            for _ in range(12):
                offered = rng.normal(size=(3, 2))
                asked = player.ask() if ball else player.ask(a * offered)
                found.append(asked / a if ball else asked)
                player.tell(c * rng.normal())
            player.end_task()
    half = len(found) // 2
    for one, two in zip(found[:half], found[half:], strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12)


def test_a_noise_of_1e100_leaves_a_root() -> None:
    """Tasks are played in units of the noise."""
    player = bm.Player(ROSTER["KTS"], replace(family(), noise_sd=1e100).setting(2))
    for _ in range(2):
        player.start_task()
        for _ in range(12):
            player.ask(np.eye(2))
            player.tell(1e100)
        root = player._state.belief.root
        assert np.isfinite(root).all() and (np.diag(root) > 0).all()
        player.end_task()


REFUSED = {
    "noise_sd": (lambda: family(1e101), "noise_sd is 1e\\+101, not within 1e-100 to 1e\\+100"),
    "small noise": (lambda: family(1e-101), "noise_sd is 1e-101"),
    "large prior": (lambda: family(1e60, 1e-60), "theta is 2e\\+120"),
    "large actions": (lambda: family(1e10, 1e102), "radius is"),
    "noise beside rewards": (
        lambda: replace(family(1e90), noise_sd=1e-90),
        "noise_sd 1e-90 is too small beside rewards of up to 5e\\+89",
    ),
    "noise beside actions": (
        lambda: replace(family(1e-90, 1e-90), noise_sd=1e90),
        "noise_sd 1e\\+90 is too large beside actions",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_beyond_it_a_family_is_refused(name: str) -> None:
    """When it is made."""
    make, message = REFUSED[name]
    with pytest.raises(InputError, match=message):
        make()


def test_a_player_refuses_what_its_kernels_cannot_hold() -> None:
    """Actions times 1e200, actions far beyond the radius told, rewards of 1e150, huge priors."""
    player = bm.Player(ROSTER["KTS"], family().setting(2))
    player.start_task()
    for size, message in ((1e200, "not within"), (1e-200, "not within"), (1e50, "a radius of")):
        with pytest.raises(InputError, match=message):
            player.ask(size * np.eye(2))
    player.ask(np.zeros((2, 2)))
    with pytest.raises(InputError, match="reward is 1e\\+150; with this setting"):
        player.tell(1e150)
    huge = bm.agents.Given(scale=1e150)
    player = bm.Player(replace(ROSTER["KTS"], learner=huge), family().setting(2))
    with pytest.raises(InputError, match=r"reaches 1\.41e\+75, far beyond the bounds"):
        player.start_task()
    row = replace(ROSTER["KTS"], policy=bm.agents.oful(1.0, ridge=1e-290))
    with pytest.raises(InputError, match="noise_sd over the root of ridge"):
        bm.Player(row, family().setting(2)).start_task()


# ---- estimators

STATS = Problem(3, 2, 12, 9).stats
METHODS = ("moment", "moment-clipped", "moment-widened", "gls", "ml", "reml", "split", "given gls")


def fitted(
    method: str, reward: float = 1.0, features: tuple[float, float] = (1.0, 1.0), **options: object
) -> bm.PriorEstimate:
    """An estimate in units, put back into units 1."""
    u = np.array(features)
    stats = TaskStatistics(
        STATS.gram * u[:, None] * u,
        STATS.moment * u * reward,
        STATS.count,
        STATS.energy * reward * reward,
    )
    back = u / reward
    if method == "given gls":
        options |= {"cov": np.eye(2) / back[:, None] / back}
    if method == "moment-widened":
        options |= {"widening": reward**2, "horizon": 9}
    if method == "split":
        full = stats.determined()
        half = TaskStatistics(stats.gram[full], stats.moment[full])
        found = bm.fit_prior((half, half), method=method)
    else:
        found = bm.fit_prior(stats, method=method.removeprefix("given "), **options)
    rows, restricted = float(STATS.count.sum()), method in ("reml", "gls")
    shift = rows * np.log(reward) + (np.log(back).sum() if restricted else 0.0)
    squares = {
        name: value * back[:, None] * back
        for name in ("raw_cov", "mean_cov", "cov_sd")
        if (value := getattr(found, name)) is not None
    }
    prior = bm.GaussianPrior.unusable(
        found.prior.mean * back, found.prior.cov * back[:, None] * back
    )
    if found.log_likelihood is not None:
        squares["log_likelihood"] = found.log_likelihood + shift
    if found.noise_sd is not None:
        squares["noise_sd"] = found.noise_sd / reward
    return found._replace(prior=prior, **squares)


def assert_alike(one: bm.PriorEstimate, two: bm.PriorEstimate, rtol: float) -> None:
    """All numbers of an estimate."""
    assert (one.status, one.negative, one.passed_over) == (
        two.status,
        two.negative,
        two.passed_over,
    )
    np.testing.assert_allclose(one.prior.mean, two.prior.mean, rtol=rtol)
    np.testing.assert_allclose(one.prior.cov, two.prior.cov, rtol=rtol, atol=1e-9)
    for name in ("raw_cov", "mean_cov", "cov_sd", "noise_sd", "log_likelihood"):
        values = getattr(one, name), getattr(two, name)
        assert (values[0] is None) == (values[1] is None), name
        if values[0] is not None:
            np.testing.assert_allclose(*values, rtol=rtol, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("method", METHODS)
def test_restated_estimates_are_the_same(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mean, covariance, standard errors, noise and log-likelihood, of data that need no other
    units, computed in other units all the same."""
    plain = fitted(method, 5.0, (0.3, 40.0))
    monkeypatch.setattr(units, "COMFORT", -1)
    assert_alike(fitted(method, 5.0, (0.3, 40.0)), plain, 1e-6)


FAR = [
    (method, reward, features, noise_sd)
    for method in METHODS
    for reward, features in (
        (1e95, (1.0, 1.0)),
        (1e-95, (1.0, 1.0)),
        (1.0, (1e95, 1e-95)),
        (1e-90, (1e-90, 1e5)),
    )
    for noise_sd in (None, 0.7)
    # widening and clipping depend on the units of features, and split does not need the noise
    if not (method in ("moment-widened", "moment-clipped") and features[0] != features[1])
    if not (method == "split" and noise_sd is not None)
]


@pytest.mark.parametrize("method, reward, features, noise_sd", FAR)
def test_estimates_far_from_1(
    method: str, reward: float, features: tuple[float, float], noise_sd: float | None
) -> None:
    """What they are in units 1."""
    plain = fitted(method, **({} if noise_sd is None else {"noise_sd": noise_sd}))
    options = {} if noise_sd is None else {"noise_sd": noise_sd * reward}
    assert_alike(fitted(method, reward, features, **options), plain, 1e-5)


@pytest.mark.parametrize("method", ["moment", "ml", "reml"])
@pytest.mark.parametrize("noise_sd", [1e-100, 1e-60, 1e60, 1e100])
def test_a_noise_far_from_the_rewards(method: str, noise_sd: float) -> None:
    """An answer of finite numbers, or a refusal of one line; no warning."""
    try:
        found = bm.fit_prior(STATS, noise_sd, method)
    except InputError as error:
        assert "\n" not in str(error) and "noise" in str(error)
        return
    assert found.noise_sd == pytest.approx(noise_sd)
    assert np.isfinite(found.prior.cov).all() and np.isfinite(found.mean_cov).all()


@pytest.mark.parametrize("noise_sd", [1e-300, 1e-101, 1e101, 1e308])
def test_a_noise_beyond_is_refused(noise_sd: float) -> None:
    with pytest.raises(InputError, match=r"noise_sd is .*, not within 1e-100 to 1e\+100"):
        bm.fit_prior(STATS, noise_sd)


@pytest.mark.parametrize("size", [1e-150, 1e101, 1e150, 1e300])
@pytest.mark.parametrize("part", ["reward", "features"])
def test_tables_beyond_are_refused(part: str, size: float) -> None:
    """Before their squares leave the range."""
    rng = np.random.default_rng(0)
    data = {"reward": rng.normal(size=20), "features": rng.normal(size=(20, 2))}
    data[part] = data[part] * size
    with pytest.raises(InputError, match=f"the largest entry of {part} is"):
        TaskStatistics.from_arrays(np.arange(20) % 4, **data)
    with pytest.raises(InputError, match="the largest of features"):
        TaskStatistics([[[1e240]]], [[1.0]])


@pytest.mark.parametrize("method", METHODS[:-1])
@pytest.mark.parametrize("reward, feature", [(1e-95, 1e95), (1e95, 1e-95)])
def test_variances_that_are_no_numbers_are_refused(
    method: str, reward: float, feature: float
) -> None:
    """Parameters of 1e-190 and 1e190: their squares would be 0, or infinite."""
    options = {"noise_sd": 0.7 * reward} if method == "moment" else {}
    with pytest.raises(InputError, match="leaves the range of floating point") as error:
        fitted(method, reward, (feature, 1.0), **options)
    assert f"near 1e{'-' if reward < 1 else '+'}1" in str(error.value)


def test_task_posteriors_far_from_1() -> None:
    """They are those in units 1; a noise that no digits are left beside is refused."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(5, 4, 2))
    gram, moment = np.einsum("nti,ntj->nij", rows, rows), rng.normal(size=(5, 2))
    prior = bm.GaussianPrior([1.0, -1.0], [[1.0, 0.3], [0.3, 2.0]])
    mean, cov = prior.posterior(gram, moment, 0.5)
    for c, a in ((2.0**300, 1.0), (2.0**-300, 1.0), (1.0, 2.0**300), (2.0**-250, 2.0**-270)):
        t = c / a
        scaled = bm.GaussianPrior(t * prior.mean, t * (t * prior.cov))
        found = scaled.posterior(gram * a * a, moment * a * c, 0.5 * c)
        np.testing.assert_allclose(found[0] / t, mean, rtol=1e-13)
        np.testing.assert_allclose(found[1] / t / t, cov, rtol=1e-13)


def test_a_posterior_is_not_drawn_far_from_1() -> None:
    """Refused before anything else, the sampler included."""
    far = TaskStatistics(STATS.gram, STATS.moment * 1e40, STATS.count, STATS.energy * 1e80)
    with pytest.raises(InputError, match=r"the size of the rewards is .*e\+4"):
        bm.sample_posterior(far)
    with pytest.raises(InputError, match="the size of noise_sd is 1e-50"):
        bm.sample_posterior(STATS, 1e-50)


@pytest.mark.parametrize(
    "noise, size, code",
    [
        ("1e-300", 1.0, 2),
        ("1e-100", 1.0, 2),
        ("1e100", 1.0, 0),
        ("1e308", 1.0, 2),
        ("1", 1e100, 2),
        ("", 1e101, 2),
        ("", 1e150, 2),
        ("", 1e90, 0),
    ],
)
def test_the_command_says_it_in_one_line(
    noise: str, size: float, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2 and one line, without a traceback or a warning of NumPy's."""
    rng, lines = np.random.default_rng(0), ["task,y,x"]
    for task in range(8):
        theta = rng.normal()
        for x in rng.normal(size=6):
            lines.append(f"{task},{size * (theta * x + 0.3 * rng.normal())!r},{x}")
    (tmp_path / "data.csv").write_text("\n".join(lines).replace("np.float64(", "").replace(")", ""))
    given = ["--noise-sd", noise] if noise else []
    columns = ["--task", "task", "--reward", "y", "--features", "x"]
    assert run("fit", str(tmp_path / "data.csv"), *columns, *given) == code
    error = capsys.readouterr().err
    assert error.count("\n") == (1 if code else 0) and "Traceback" not in error
    named = any(name in error for name in ("noise-sd", "reward", "column 'y'"))
    assert named == (code == 2)
