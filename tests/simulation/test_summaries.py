"""Summaries: intervals, final figures computed by hand, verdicts, a single run."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from bayesmeta.agents.roster import FIGURE_1
from bayesmeta.checks import InputError
from bayesmeta.simulation.records import thin
from bayesmeta.simulation.simulator import VARIABLES
from bayesmeta.simulation.summaries import (
    error_slopes,
    interval,
    judge,
    normaliser,
    orderings,
    summarise,
)


def a_record(agents: dict[str, str], **values: np.ndarray) -> xr.Dataset:
    """A record of (run, agent, task) arrays, zero where not given; agents with references."""
    regret = values["regret"]
    runs, _, tasks = regret.shape
    return xr.Dataset(
        {
            name: (
                ("run", "agent", "task"),
                np.asarray(values.get(name, np.zeros(regret.shape)), float),
                {"long_name": text},
            )
            for name, text in VARIABLES.items()
        },
        coords={
            "run": np.arange(runs),
            "agent": list(agents),
            "task": np.arange(1, tasks + 1),
            "reference": ("agent", list(agents.values())),
            "warmup": ("agent", [0] * len(agents)),
        },
    )


def three_runs() -> xr.Dataset:
    """KTS loses 2, 4, 6 in three runs of two tasks, X loses 3, 5, 10; KTS's mean is 4."""
    regret = np.array(
        [[[1.0, 1.0], [1.0, 2.0]], [[1.0, 3.0], [5.0, 0.0]], [[6.0, 0.0], [4.0, 6.0]]]
    )
    relative = regret - regret[:, :1]
    shape = regret.shape
    last = np.broadcast_to(np.array([100.0, 1.0]), shape)  # error 100 in the first task, 1 after
    per_run = np.array([1.0, 2.0, 6.0])[:, None, None]
    return a_record(
        {"KTS": "KTS", "X": "KTS"},
        regret=regret,
        relative_regret=relative,
        mean_error=last * per_run,
        covariance_error=2 * last * per_run,
        raw_covariance_error=3 * last * per_run,
        smallest_eigenvalue=4 * last * per_run,
        singular=np.broadcast_to(2 * per_run, shape),
        exploration_steps=np.broadcast_to(per_run, shape),
        not_positive_definite=np.array([[[1, 1], [0, 1]], [[0, 0], [0, 0]], [[0, 0], [1, 1]]]),
    )


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_interval_is_students(level: float) -> None:
    """Against SciPy's t interval on a known sample."""
    values = np.array([3.1, -0.4, 2.2, 8.0, 1.9])
    found = interval(values, level)
    low, high = stats.t.interval(level, 4, loc=values.mean(), scale=stats.sem(values))
    assert found.mean == pytest.approx(2.96)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_interval_of_two_runs_by_hand() -> None:
    """t with one degree of freedom at 0.975 is 12.7062; the error of {0, 2} is 1."""
    assert interval(np.array([0.0, 2.0])) == pytest.approx(
        (1.0, 1 - 12.7062, 1 + 12.7062), rel=1e-5
    )


def test_interval_of_one_run_is_open() -> None:
    """One value has a mean and no spread."""
    found = interval(np.array([3.0]))
    assert found.mean == 3.0 and math.isnan(found.low) and math.isnan(found.high)


def test_interval_covers_as_often_as_it_says() -> None:
    """Exact, without draws: the t statistic of the ends is the t quantile."""
    values = np.array([1.0, 4.0, 4.0, 7.0, 12.0, 0.5])
    found = interval(values, 0.9)
    for end, quantile in ((found.low, 0.95), (found.high, 0.05)):
        t = (values.mean() - end) / stats.sem(values)
        assert stats.t.cdf(t, len(values) - 1) == pytest.approx(quantile)


def test_summary_by_hand() -> None:
    """Every figure of ``three_runs`` computed on paper; 4.302653 is t(0.975) with 2 degrees."""
    summary = summarise(three_runs())
    assert list(summary) == ["KTS", "X"]
    kts, x = summary["KTS"], summary["X"]
    assert kts["normalised_regret"] == pytest.approx(1.0)
    # X: 3/4, 5/4, 10/4 with mean 1.5; sd^2 = (0.75^2 + 0.25^2 + 1^2) / 2 = 0.8125
    assert x["normalised_regret"] == pytest.approx(1.5)
    half = 4.302653 * math.sqrt(0.8125 / 3)
    assert x["interval"] == pytest.approx([1.5 - half, 1.5 + half], rel=1e-6)
    # X less KTS, run by run: 1/4, 1/4, 4/4 with mean 0.5; sd^2 = (2 * 0.25^2 + 0.5^2) / 2
    half = 4.302653 * math.sqrt(0.1875 / 3)
    assert x["difference_to_KTS"] == x["relative_regret"] == pytest.approx(0.5)
    assert x["difference_interval"] == pytest.approx([0.5 - half, 0.5 + half], rel=1e-6)
    assert x["relative_interval"] == pytest.approx([0.5 - half, 0.5 + half], rel=1e-6)
    assert kts["difference_to_KTS"] == 0.0 and kts["difference_interval"] == [0.0, 0.0]
    # the errors of the last task averaged over runs, totals per run averaged over runs
    assert (x["mean_error"], x["covariance_error"]) == (pytest.approx(3.0), pytest.approx(6.0))
    assert x["raw_covariance_error"] == pytest.approx(9.0)
    assert x["smallest_eigenvalue"] == pytest.approx(12.0)
    assert x["singular"] == pytest.approx(12.0)
    assert x["exploration_steps"] == pytest.approx(6.0)
    assert kts["not_positive_definite"] == pytest.approx(2 / 3)
    assert x["not_positive_definite"] == pytest.approx(1.0)
    assert kts["reference"] == x["reference"] == "KTS"


def test_summary_of_a_thinned_record_is_the_same() -> None:
    """Final figures survive thinning."""
    assert summarise(thin(three_runs(), 2)) == summarise(three_runs())


def test_normaliser() -> None:
    """The mean over runs of KTS's total; without KTS there is no unit."""
    assert normaliser(three_runs()) == pytest.approx(4.0)
    with pytest.raises(InputError, match="KTS, which this record does not hold"):
        summarise(three_runs().sel(agent=["X"]))
    with pytest.raises(InputError, match="KTS, which is 0 in this record"):
        summarise(three_runs() * 0)


def test_single_run() -> None:
    """No interval, and JSON without NaN; verdicts are undecided, not guessed."""
    summary = summarise(three_runs().isel(run=[1]))
    text = json.dumps(summary, allow_nan=False)
    assert json.loads(text) == summary
    for row in summary.values():
        assert [row[name] for name in row if name.endswith("interval")] == [None] * 3
    assert summary["X"]["normalised_regret"] == pytest.approx(5 / 4)
    assert judge("a claim", "all", "a number", np.array([-5.0]), 0.95).verdict == "undecided"


def test_many_runs_give_valid_json() -> None:
    """Nothing in a summary is NaN, infinite or a NumPy type."""
    text = json.dumps(summarise(three_runs()), allow_nan=False)
    assert json.loads(text)["X"]["interval"][0] < 1.5


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([-1.0, -1.1, -0.9], "holds"),
        ([1.0, 1.1, 0.9], "fails"),
        ([-1.0, 1.0, 0.1], "undecided"),
        ([-1.0, -3.0, 0.0], "undecided"),
        ([0.0, 0.0, 0.0], "undecided"),
    ],
)
def test_verdicts(values: list[float], verdict: str) -> None:
    """A statement holds where its whole interval is negative and fails where it is positive."""
    found = judge("a is better than b", "all tasks", "a less b", np.array(values), 0.95)
    assert found.verdict == verdict and found.statement == "a is better than b"
    assert found.value == interval(np.array(values))


def test_a_higher_level_decides_less() -> None:
    """The level is used: what 95% decides, 99.9% leaves open."""
    values = np.array([-1.0, -1.5, -0.5, -1.2])
    assert judge("", "", "", values, 0.95).verdict == "holds"
    assert judge("", "", "", values, 0.999).verdict == "undecided"


def the_papers_record() -> xr.Dataset:
    """Six agents, three runs, 100 tasks; each loses a constant a task, plus a little by run.

    All-MTS < All-MTS_tau < KMTS < Th-MTS_tau < UKTS in all tasks; in the last half Th-MTS_tau
    loses less than KMTS. Errors of means fall as n^-1/2, n^-1/4 and not at all.
    """
    runs, tasks = np.arange(3)[:, None, None], np.arange(1, 101)
    rate = {
        "KTS": 1.0,
        "KMTS": 2.0,
        "UKTS": 9.0,
        "Th-MTS_tau": 0.0,
        "All-MTS_tau": 1.5,
        "All-MTS": 1.2,
    }
    regret = np.stack([np.full(100, rate[name]) for name in FIGURE_1])[None] + 0.001 * runs
    regret[:, FIGURE_1.index("Th-MTS_tau")] += np.where(tasks <= 50, 5.0, 0.3)
    power = {"Th-MTS_tau": -0.5, "All-MTS_tau": -0.25, "All-MTS": 0.0}
    error = np.stack([tasks ** power.get(name, 0.0) for name in FIGURE_1])[None]
    return a_record(dict.fromkeys(FIGURE_1, "KTS"), regret=regret, mean_error=error + 0.0 * runs)


@pytest.mark.parametrize("thinned", [False, True])
def test_orderings_of_section_6(thinned: bool) -> None:
    """Verdicts and values on a record whose orderings are known, thinned or not."""
    record = the_papers_record()
    found = orderings(thin(record) if thinned else record)
    assert len(found) == 8 * 2 + 5
    verdicts = {(c.statement, c.span == "the last half"): c.verdict for c in found[:16]}
    assert verdicts["Th-MTS_tau reaches KMTS", False] == "fails"
    assert verdicts["Th-MTS_tau reaches KMTS", True] == "holds"
    assert verdicts["All-MTS_tau is better than Th-MTS_tau", False] == "holds"
    assert verdicts["All-MTS_tau is better than Th-MTS_tau", True] == "fails"
    assert all(
        verdict == "holds" for (text, _), verdict in verdicts.items() if "better than UKTS" in text
    )
    # Th-MTS_tau against KMTS: 50 * 5 + 50 * 0.3 - 100 * 2 in all, 50 * (0.3 - 2) in the last half,
    # in units of KTS's 100 * 1.001
    whole, half = (c.value.mean for c in found if c.statement == "Th-MTS_tau reaches KMTS")
    assert (whole, half) == (pytest.approx(65 / 100.1), pytest.approx(-85 / 100.1))
    # the slopes are -0.5, -0.25 and 0, the same in every run
    assert [c.verdict for c in found[16:]] == ["holds", "holds", "holds", "fails", "undecided"]


def test_slopes() -> None:
    """The power of the error in the task number, over the last decade of tasks."""
    record = the_papers_record()
    np.testing.assert_allclose(error_slopes(record, "Th-MTS_tau"), [-0.5] * 3)
    np.testing.assert_allclose(error_slopes(record, "All-MTS"), [0.0] * 3, atol=1e-12)
    # only the last decade counts: before task 10 anything may happen
    record.mean_error[:, :, :9] = 1e6
    np.testing.assert_allclose(error_slopes(record, "All-MTS_tau"), [-0.25] * 3)
