"""Studies without a folder, shared arguments, and what a study prints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import bayesmeta as bm
from bayesmeta.runner.plain import describe
from bayesmeta.runner.study import tasks_of
from tests.runner import example_cells as example
from tests.runner.example_cells import small_study


def test_memory_gives_what_a_folder_gives(tmp_path: Path) -> None:
    """The same Dataset, also where cells differ in shape, and nothing is written."""
    for study in (
        small_study(5),
        replace(small_study(3), dims=()),
        bm.Study("shapes", bm.grid(d=[3, 1], run=[0, 1]), example.of_dimension, 0, ("d", "run")),
    ):
        report = bm.run_study(study, jobs=1)
        assert report.complete and report.folder is None
        bm.run_study(study, tmp_path / study.name / str(study.dims), jobs=1)
        xr.testing.assert_identical(
            bm.collect(study, report), bm.collect(study, tmp_path / study.name / str(study.dims))
        )


def test_failures_in_memory_are_reported() -> None:
    """Noted and the others go on, or raised where asked."""
    study = bm.Study("odd", bm.grid(run=range(3)), example.not_a_dataset, 0, ("run",))
    report = bm.run_study(study, jobs=1)
    assert (report.done, report.failed) == (1, 2)
    with pytest.raises(bm.InputError, match="2 of 3 cells of odd are not in memory"):
        bm.collect(study, report)
    assert int(bm.collect(study, report, partial=True).value.notnull().all("axis").sum()) == 1
    with pytest.raises(TypeError, match="must return an xarray Dataset"):
        bm.run_study(study, jobs=1, raise_errors=True)


def test_raised_errors_keep_what_is_finished(tmp_path: Path) -> None:
    """The first cell is done and written when the second raises."""
    settings = {"marker": str(tmp_path / "marker"), "bad": [1]}
    study = bm.Study("moody", bm.grid(settings, run=range(3)), example.moody, 0, ("run",))
    with pytest.raises(RuntimeError, match="run 1 is in a mood"):
        bm.run_study(study, tmp_path / "out", jobs=1, raise_errors=True)
    assert bm.study_status(study, tmp_path / "out").done == 1


def scaled(settings: dict[str, Any], seed: int, scale: np.ndarray) -> xr.Dataset:
    """Uses an array that all cells share."""
    return xr.Dataset({"value": settings["n"] * scale.sum()})


@pytest.mark.parametrize("jobs", [1, 2])
def test_shared_arguments_reach_every_cell_and_count(tmp_path: Path, jobs: int) -> None:
    """Another value of one is another result: both are kept in one folder."""
    study = bm.Study(
        "scaled", bm.grid(n=[1, 2]), scaled, dims=("n",), shared={"scale": np.array([1.0, 2.0])}
    )
    other = replace(study, shared={"scale": np.array([1.0, 4.0])})
    bm.run_study(study, tmp_path, jobs=jobs)
    assert bm.study_status(other, tmp_path).done == 0
    bm.run_study(other, tmp_path, jobs=jobs)
    assert bm.collect(study, tmp_path).value.values.tolist() == [3.0, 6.0]
    assert bm.collect(other, tmp_path).value.values.tolist() == [5.0, 10.0]


def test_keys_without_shared_arguments_are_unchanged() -> None:
    """Folders of earlier versions go on: the key of a cell is what it always was."""
    (task,) = tasks_of(bm.Study("one", {"a": {"x": 1}}, example.draws, 3))
    assert task.key == "94675262e4ab299a96fc1a4d"


def test_shared_arguments_that_cannot_be_sent_are_named() -> None:
    """By their name, before a process starts."""
    study = bm.Study("local", bm.grid(n=[1, 2]), scaled, shared={"scale": lambda: 0})
    with pytest.raises(bm.InputError, match=r"scale cannot be sent.*use jobs=1"):
        bm.run_study(study, jobs=2)


def test_descriptions_tell_lambdas_apart() -> None:
    """Names alone would not; equal objects without a repr have equal descriptions."""

    class Plain:
        def __init__(self, x: float) -> None:
            self.x = x

    one, two = (lambda r: r), (lambda r: r + 1)
    assert describe(one) != describe(two) and describe(one) == describe(one)
    assert describe(Plain(1.0)) == describe(Plain(1.0)) != describe(Plain(2.0))
    assert describe(np.linalg.norm) == "numpy.linalg.norm"
    assert describe((np.float64(1.5), {"a": np.arange(2)})) == [1.5, {"a": [0, 1]}]


def test_a_study_prints_short() -> None:
    """Name, cells, dimensions, function; as HTML with the note, its text escaped."""
    study = replace(small_study(4), note="a < b")
    assert repr(study) == (
        "Study('small', 4 cells, dims=('run',), function=tests.runner.example_cells.draws)"
    )
    html = study._repr_html_()
    assert "Study small" in html and "a &lt; b" in html and "<td>4</td>" in html


def test_the_seed_goes_by_either_name() -> None:
    """Of a study, too; not by both."""
    assert bm.Study("s", {}, example.draws, seed=4).random_seed == 4  # type: ignore[call-arg]
    with pytest.raises(bm.InputError, match="give one of them"):
        bm.Study("s", {}, example.draws, seed=4, random_seed=4)  # type: ignore[call-arg]


def test_another_class_of_the_same_name_is_another_study(tmp_path: Path) -> None:
    """A learner of one's own that was edited, or that differs in a slot, is played anew."""

    def told(value: float) -> bm.Agent:
        class Mine:
            __slots__ = ("value",)
            all_steps = False

            def start(self, setting: bm.Setting) -> None:
                return None

            def observe(self, memory: None, task: bm.agents.Finished) -> None:
                return None

            def estimate(
                self, memory: None, setting: bm.Setting, rng: np.random.Generator
            ) -> bm.PriorEstimate:
                prior = bm.GaussianPrior(np.full(setting.dim, self.value), np.eye(setting.dim))
                return bm.PriorEstimate(prior, bm.Status.GIVEN)

        learner = Mine()
        learner.value = value
        return replace(bm.ROSTER["KTS"], name="mine", learner=learner)

    family = bm.paper_family(dim=2, horizon=5)
    errors = [
        float(
            bm.simulate(family, told(v), tasks=2, folder=tmp_path).mean_error.sel(agent="mine")[
                0, 0
            ]
        )
        for v in (2.0, 50.0)
    ]
    assert errors[0] == 0 and errors[1] > 60
