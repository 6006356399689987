"""The fuzzer, in short: every property on a few drawn cases, the same every time; and faults that
its oracles must notice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import bayesmeta as bm
from bayesmeta.estimators import fit, moments
from bayesmeta.posterior import sampling
from bayesmeta.tables import reading
from tests.properties import PROPERTIES, judge


def fuzz(name: str, *phases: Phase) -> Counter[str]:
    """How cases of a property end; always the same cases."""
    cases, check, _, examples = PROPERTIES[name]
    ends: Counter[str] = Counter()

    @settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=phases,
        print_blob=False,
        report_multiple_bugs=False,
    )
    @given(cases)
    def every(case: object) -> None:
        ends[judge(check, case)] += 1

    every()
    return ends


@cache
def usual(name: str) -> Counter[str]:
    """How they end as the package is."""
    return fuzz(name, Phase.generate, Phase.shrink)


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_right_answer_or_one_line(name: str) -> None:
    """For all drawn input: what the oracle says, or InputError with one line."""
    ends = usual(name)
    assert ends["right"] >= ends.total() / 10, f"of {ends.total()} cases {ends['right']} are right"
    assert ends["unjudged"] <= ends.total() / 4, f"{ends['unjudged']} of {ends.total()} not judged"


# ---- Planted faults.


def shifted(right: Callable[..., Any]) -> Callable[..., Any]:
    """A table whose columns of numbers have moved by one."""

    def read(*args: Any, **kwargs: Any) -> pd.DataFrame:
        frame = right(*args, **kwargs)
        numbers = [name for name in frame.columns if name != "task"]
        return frame.rename(columns=dict(zip(numbers, [*numbers[1:], numbers[0]], strict=True)))

    return read


def wrong_sign(right: Callable[..., Any]) -> Callable[..., Any]:
    """A posterior whose mean has moved away from the data."""

    def posterior(prior: bm.GaussianPrior, *args: Any) -> Any:
        mean, cov = right(prior, *args)
        return 2 * prior.mean - mean, cov

    return posterior


def changed(**changes: Callable[[bm.PriorEstimate], Any]) -> Callable[..., Any]:
    """An estimate some fields of which are wrong."""

    def fault(right: Callable[..., Any]) -> Callable[..., Any]:
        def wrong(*args: Any, **kwargs: Any) -> bm.PriorEstimate:
            found = right(*args, **kwargs)
            return found._replace(**{name: change(found) for name, change in changes.items()})

        return wrong

    return fault


def narrower(found: bm.PriorEstimate) -> bm.GaussianPrior:
    return bm.GaussianPrior(found.prior.mean, 0.7 * found.prior.cov)


def first_tasks(right: Callable[..., Any]) -> Callable[..., Any]:
    """Labels cut to their first letter."""

    def from_arrays(task: Any, *args: Any) -> bm.TaskStatistics:
        return right([str(label)[:1] for label in np.asarray(task, dtype=object)], *args)

    return from_arrays


def biased(right: Callable[..., Any]) -> Callable[..., Any]:
    """Eq. (11) with k for k - 1."""

    def covariance(state: moments.MomentState, variance: float) -> Any:
        k = state.tasks[0]
        return right(state, variance) - state.scatter / (k - 1) + state.scatter / k

    return covariance


def reseeded(right: Callable[..., Any]) -> Callable[..., Any]:
    """A player loaded without the state of its stream."""

    def load(path: Path) -> bm.Player:
        player = right(path)
        player._rng = np.random.default_rng(0)
        return player

    return load


def one_more(right: Callable[..., Any]) -> Callable[..., Any]:
    """Settings with a draw more than was asked for."""

    def check_settings(*args: Any, **kwargs: Any) -> dict[str, Any]:
        settings = right(*args, **kwargs)
        return {**settings, "draws": settings["draws"] + 1}

    return check_settings


FAULTS: dict[str, tuple[str, object, str, Callable[[Any], Any]]] = {
    "columns shifted": ("csv_is_read_as_python_reads_it", reading, "_csv", shifted),
    "labels cut": ("from_arrays_sums_by_task", bm.TaskStatistics, "from_arrays", first_tasks),
    "posterior's sign": ("posterior_is_conditioning", bm.GaussianPrior, "posterior", wrong_sign),
    "k for k - 1": ("moments_are_eqs_9_to_11", moments, "covariance", biased),
    "stream forgotten": (
        "a_saved_player_goes_on_to_the_same_bits",
        bm.Player,
        "load",
        reseeded,
    ),
    "a draw more": (
        "sample_posterior_draws_what_was_asked",
        sampling,
        "check_settings",
        one_more,
    ),
    "likelihood off": (
        "likelihood_is_dense_and_no_neighbour_is_higher",
        fit,
        "fit_likelihood",
        changed(log_likelihood=lambda found: found.log_likelihood + 1e-3),
    ),
    "not the maximum": (
        "likelihood_is_dense_and_no_neighbour_is_higher",
        fit,
        "fit_likelihood",
        changed(prior=narrower, status=lambda found: bm.Status.OK),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases that are right without a fault fail with it: by the oracle's word, not by a crash."""
    name, place, attribute, plant = FAULTS[fault]
    assert usual(name)["right"] > 0
    monkeypatch.setattr(place, attribute, plant(getattr(place, attribute)))
    with pytest.raises(AssertionError) as found:
        fuzz(name, Phase.generate)
    files = [str(entry.path) for entry in found.traceback if "site-packages" not in str(entry.path)]
    assert "tests/properties" in files[-1], files
