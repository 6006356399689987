"""Records: thinning and cumulative sums, writing whole or not at all, reading back."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import bayesmeta as bm
from bayesmeta.agents.roster import find_agents
from bayesmeta.checks import InputError
from bayesmeta.environment import paper_family
from bayesmeta.runner.files import writable_folder, write_atomically
from bayesmeta.simulation.records import (
    cumulative,
    log_spaced,
    read_record,
    settings_of,
    thin,
    write_record,
)
from bayesmeta.simulation.simulate import simulate
from bayesmeta.simulation.simulator import VARIABLES

SUMMED = ("regret", "relative_regret", "exploration_steps", "not_positive_definite", "singular")


def play() -> xr.Dataset:
    family = paper_family(dim=2, horizon=6, actions=3)
    return simulate(family, find_agents(["Th-MTS_tau", "UKTS"]), tasks=30, runs=2, random_seed=3)


@pytest.fixture(scope="module")
def record() -> xr.Dataset:
    return play()


def made_up(tasks: int) -> xr.Dataset:
    """One run of one agent; every variable is the task number times a constant."""
    task = np.arange(1, tasks + 1)
    values = {
        name: (("run", "agent", "task"), (i + 1.0) * task[None, None], {"long_name": text})
        for i, (name, text) in enumerate(VARIABLES.items())
    }
    return xr.Dataset(values, coords={"run": [0], "agent": ["KTS"], "task": task})


def test_cumulative_sums(record: xr.Dataset) -> None:
    """What adds up is summed over tasks, errors stay, names and texts say which is which."""
    total = cumulative(record)
    for name in SUMMED:
        expected = np.cumsum(record[name].values, axis=-1)
        np.testing.assert_allclose(total[f"cumulative_{name}"].values, expected, rtol=1e-12)
        assert record[name].attrs["long_name"] in total[f"cumulative_{name}"].attrs["long_name"]
        assert name not in total
    for name in set(VARIABLES) - set(SUMMED):
        xr.testing.assert_identical(total[name], record[name])
    assert total.attrs == record.attrs and set(record.data_vars) == set(VARIABLES)


def test_cumulative_is_done_once(record: xr.Dataset) -> None:
    """A record that is cumulative already is left as it is."""
    total = cumulative(record)
    xr.testing.assert_identical(cumulative(total), total)


@pytest.mark.parametrize("tasks", [1, 2, 3, 10, 11, 99, 1000, 1001])
@pytest.mark.parametrize("points", [2, 7, 200])
def test_thin_keeps_what_summaries_need(tasks: int, points: int) -> None:
    """The first task, the last, the half-way one and a tenth; few others; sums n (n + 1) / 2."""
    thinned = thin(made_up(tasks), points)
    task = thinned.task.values
    assert {1, max(tasks // 2, 1), max(tasks // 10, 1), tasks} <= {*task.tolist()}
    assert len(task) <= min(points + 2, tasks) and (np.diff(task) > 0).all()
    regret = thinned.cumulative_regret.values[0, 0]
    np.testing.assert_array_equal(regret, task * (task + 1) / 2)
    error = list(VARIABLES).index("mean_error") + 1
    np.testing.assert_array_equal(thinned.mean_error.values[0, 0], error * task)
    assert f"of {tasks} tasks" in thinned.attrs["thinned"]


def test_thin_to_a_single_point_keeps_the_last_task() -> None:
    """However few points are asked for, the final figures survive."""
    assert int(thin(made_up(30), 1).task[-1]) == 30


def test_log_spaced() -> None:
    """From 1 to N without repetition, and whatever must be there."""
    assert log_spaced(1, 5).tolist() == [1]
    assert log_spaced(100, 3).tolist() == [1, 10, 100]
    assert log_spaced(100, 3, (50, 0, 101)).tolist() == [1, 10, 50, 100]


def test_round_trip(record: xr.Dataset, tmp_path: Path) -> None:
    """Values, coordinates and attributes come back bit by bit, and the file is alone."""
    for name, data in (("full.nc", record), ("thin.nc", thin(record, 5))):
        write_record(data, tmp_path / name)
        back = read_record(str(tmp_path / name))
        xr.testing.assert_identical(back, data)
        assert back.reference.values.tolist() == data.reference.values.tolist()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full.nc", "thin.nc"]


def test_settings_repeat_a_record(record: xr.Dataset, tmp_path: Path) -> None:
    """Settings and versions survive as JSON, and say what was run."""
    write_record(record, tmp_path / "r.nc")
    back = read_record(tmp_path / "r.nc")
    found = settings_of(back)
    assert (found["tasks"], found["runs"], found["seed"]) == (30, 2, 3)
    assert found["family"]["mean"] == [2.0, 2.0] and found["family"]["violations"] == {}
    assert {"python", "bayesmeta", "numpy", "numba", "xarray"} <= set(
        json.loads(back.attrs["versions"])
    )


def test_same_seed_same_bytes(record: xr.Dataset, tmp_path: Path) -> None:
    """Two simulations with one seed leave files without a differing byte; another seed does not."""
    for name, data in (("one.nc", record), ("two.nc", play())):
        write_record(data, tmp_path / name)
    assert (tmp_path / "one.nc").read_bytes() == (tmp_path / "two.nc").read_bytes()
    other = simulate(
        paper_family(dim=2, horizon=6, actions=3), find_agents(["UKTS"]), tasks=30, runs=2, seed=4
    )
    assert not np.array_equal(other.regret.sel(agent="UKTS"), record.regret.sel(agent="UKTS"))


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, OSError])
def test_a_failed_write_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    """The writer fails half-way: no file, no temporary file, and the exception goes on."""

    def fail(to: Path) -> None:
        to.write_text("half")
        raise error("the disk is full")

    told = InputError if error is OSError else error  # what a user can mend is told as such
    with pytest.raises(told, match="the disk is full"):
        write_atomically(tmp_path / "r.txt", fail)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    """What was there stays; a write that succeeds replaces it."""
    path = tmp_path / "r.txt"
    write_atomically(path, lambda to: to.write_text("old"))
    with pytest.raises(ZeroDivisionError):
        write_atomically(path, lambda to: to.write_text(str(1 / 0)))
    assert path.read_text() == "old"
    write_atomically(str(path), lambda to: to.write_text("new"))
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]


def test_a_record_that_cannot_be_written_leaves_nothing(record: xr.Dataset, tmp_path: Path) -> None:
    """NetCDF has no attribute of this kind; the half-written file is removed."""
    broken = record.assign_attrs(bad=object())
    with pytest.raises(TypeError):
        write_record(broken, tmp_path / "r.nc")
    assert list(tmp_path.iterdir()) == []


def test_reading_what_is_not_there(tmp_path: Path) -> None:
    """The message names the path and says what would make it."""
    with pytest.raises(InputError, match=r"no record at .*missing\.nc; run the study"):
        read_record(tmp_path / "missing.nc")


def test_reading_what_is_not_a_record(tmp_path: Path) -> None:
    """A file of another kind, an empty file and a folder are refused by path."""
    (tmp_path / "text.nc").write_text("hello")
    (tmp_path / "empty.nc").touch()
    (tmp_path / "folder.nc").mkdir()
    for name in ("text.nc", "empty.nc", "folder.nc"):
        with pytest.raises(InputError, match=name):
            read_record(tmp_path / name)


def test_writable_folder(tmp_path: Path) -> None:
    """Folders are made with their parents, and the trial leaves nothing in them."""
    folder = writable_folder(tmp_path / "a" / "b")
    assert folder.is_dir() and list(folder.iterdir()) == []
    assert writable_folder(str(folder)) == folder


def test_unwritable_folder(tmp_path: Path) -> None:
    """A file where a folder should be is refused by path, before any work."""
    (tmp_path / "file").write_text("here")
    for path in (tmp_path / "file", tmp_path / "file" / "sub", Path("/proc/none")):
        with pytest.raises(InputError, match=f"cannot write in {re.escape(str(path))} "):
            writable_folder(path)
    assert (tmp_path / "file").read_text() == "here"


def test_public_names_are_these() -> None:
    """The package offers reading, writing and thinning."""
    assert (bm.read_record, bm.write_record, bm.simulation.thin) == (
        read_record,
        write_record,
        thin,
    )
