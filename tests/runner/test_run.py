"""Studies: what is run, kept, run again, noted, and collected."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import bayesmeta as bm
from bayesmeta.runner import cell as cells
from bayesmeta.runner import folder as store
from bayesmeta.runner import provenance
from bayesmeta.runner.collect import collect_kept
from bayesmeta.streams import cell_seed
from tests.runner import example_cells as example
from tests.runner.example_cells import small_study

run = partial(bm.run_study, jobs=1)


def files(folder: Path) -> list[Path]:
    return sorted((folder / "cells").iterdir())


# ---- what a study is


def test_grid_makes_readable_ids() -> None:
    """Texts bare, numbers with their names; NumPy's numbers as Python's; common settings in all."""
    made = bm.grid({"d": 5}, agent=["th-mts"], n=np.array([10, 1000]), run=range(2))
    assert list(made) == [
        "th-mts/n=10/run=0",
        "th-mts/n=10/run=1",
        "th-mts/n=1000/run=0",
        "th-mts/n=1000/run=1",
    ]
    assert made["th-mts/n=1000/run=1"] == {"d": 5, "agent": "th-mts", "n": 1000, "run": 1}
    assert type(made["th-mts/n=10/run=0"]["n"]) is int


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: bm.grid(n=[]), "n has no values"),
        (lambda: bm.grid(n=[1, 1]), "n has a value twice"),
        (lambda: bm.grid(n="abc"), "n must be a list of values"),
        (lambda: bm.grid(a=["x/y", "x"], b=["z", "y/z"]), "two cells would be called x/y/z"),
        (lambda: bm.Study("s", {}, partial(example.draws, {})), "function must be a plain"),
        (lambda: bm.Study("s", {}, example.draws, dims="run"), "dims must be a tuple"),
        (lambda: bm.Study("", {}, example.draws), "name"),
        (lambda: bm.Study("s", [1], example.draws), "cells must map"),
        (lambda: bm.Study("s", {}, 3), "function must be"),
        (
            lambda: bm.Study("s", {}, example.draws, random_seed=-1),
            "random_seed must be at least 0",
        ),
    ],
)
def test_bad_descriptions_are_refused(make: object, words: str) -> None:
    """The message names the argument."""
    with pytest.raises(bm.InputError, match=words):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ({}, "has no cells"),
        ({"a": 3}, "settings of cell a must be a dict"),
        ({"a": {"x": object()}}, "settings of cell a cannot be written as JSON"),
        ({"a": {"x": float("nan")}}, "settings of cell a cannot be written as JSON"),
        ({"": {}}, "cell ids are short printable texts"),
        ({"a\nb": {}}, "cell ids are short printable texts"),
        ({3: {}}, "cell ids are short printable texts"),
    ],
)
def test_bad_cells_are_refused_before_anything_runs(
    made: dict[str, object], words: str, tmp_path: Path
) -> None:
    """And nothing is left behind."""
    with pytest.raises(bm.InputError, match=words):
        run(bm.Study("s", made, example.draws), tmp_path / "out")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_seeds_come_from_the_seed_and_the_id_alone(tmp_path: Path) -> None:
    """Fewer cells, another order, another name: the same numbers; another seed: others."""
    whole = small_study(6)
    some = {name: whole.cells[name] for name in ("run=4", "run=1")}
    run(whole, tmp_path / "whole")
    run(replace(whole, cells=some, name="other"), tmp_path / "some")
    run(replace(whole, random_seed=8), tmp_path / "seed")
    first = bm.collect(whole, tmp_path / "whole")
    second = bm.collect(replace(whole, cells=some), tmp_path / "some")
    xr.testing.assert_identical(first.sel(run=[4, 1]), second)
    third = bm.collect(replace(whole, random_seed=8), tmp_path / "seed")
    assert not np.isin(third.value, first.value).any()
    assert cell_seed(7, "run=4") != cell_seed(7, "run=1") != cell_seed(8, "run=1")
    assert 0 <= min(cell_seed(0, str(i)) for i in range(100)) < 2**63


# ---- running, again and again


def test_a_run_leaves_cells_and_a_manifest(tmp_path: Path) -> None:
    """The manifest says what was run, by what, when; the report counts."""
    study = small_study(5)
    report = run(study, tmp_path / "out")
    assert report.complete and str(report) == "small: 5 of 5 cells done, 0 failed, 0 remaining"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "cells",
        "manifest.json",
        "lock",
    }
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert (manifest["study"], manifest["seed"], manifest["cells"]) == ("small", 7, 5)
    assert manifest["settings"] == {"seconds": 0.0} and manifest["done"] == 5
    (session,) = manifest["sessions"]
    assert session["versions"] == provenance.versions() and session["workers"] == "this process"
    assert session["started"] <= session["ended"] and session["cells"] == 5
    if (Path(bm.__file__).parent.parent / ".git").exists():
        assert len(session["commit"].removesuffix("+changes")) >= 7


@pytest.mark.parametrize("bound", ["SHARD_SECONDS", "SHARD_BYTES"])
def test_small_cells_share_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    """Quick cells are written together; what is old or large is written at once."""
    monkeypatch.setattr(store, "SHARD_SECONDS", 60.0)  # quick also on a busy machine
    run(small_study(30), tmp_path / "quick")
    assert len(files(tmp_path / "quick")) == 1
    monkeypatch.setattr(store, bound, 0)
    run(small_study(4), tmp_path / "long")
    assert len(files(tmp_path / "long")) == 4
    names = [path.name.split(".")[0] for path in files(tmp_path / "long")]
    assert names == ["run=0", "run=1", "run=2", "run=3"]


def test_run_again_only_what_is_missing(tmp_path: Path) -> None:
    """Nothing when all is done; new cells alone when some were added."""
    run(small_study(3), tmp_path)
    before = {path: path.stat().st_mtime_ns for path in files(tmp_path)}
    again = run(small_study(3), tmp_path)
    assert (again.done, again.before) == (3, 3)
    more = run(small_study(5), tmp_path)
    assert (more.done, more.before, more.total) == (5, 3, 5)
    assert before.items() <= {path: path.stat().st_mtime_ns for path in files(tmp_path)}.items()
    fresh = tmp_path / "fresh"
    run(small_study(5), fresh)
    xr.testing.assert_identical(
        bm.collect(small_study(5), tmp_path), bm.collect(small_study(5), fresh)
    )


def test_a_cell_whose_settings_changed_is_run_again(tmp_path: Path) -> None:
    """The old result is not taken for the new one, nor lost: going back finds it again."""
    old, new = small_study(3), small_study(3, shift=100.0)
    run(old, tmp_path)
    assert bm.study_status(new, tmp_path).done == 0
    report = run(new, tmp_path)
    assert (report.done, report.before) == (3, 0)
    difference = bm.collect(new, tmp_path).value - bm.collect(old, tmp_path).value
    np.testing.assert_allclose(difference, 100.0)
    assert run(old, tmp_path).before == 3


def test_a_changed_version_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of other versions are kept, and the report names what changed and how many."""
    older = provenance.versions() | {"bayesmeta": "0.0.1"}
    monkeypatch.setattr(cells, "versions", lambda: older)
    run(small_study(2), tmp_path)
    monkeypatch.undo()
    report = run(small_study(3), tmp_path)
    (note,) = report.notes
    assert "2 cells were made by other versions" in note
    assert f"bayesmeta 0.0.1 then, {bm.__version__} now" in note
    assert bm.study_status(small_study(3), tmp_path).notes == report.notes


def test_the_commit_is_none_outside_a_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installed package has none."""
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "provenance.py"))
    assert provenance.commit() is None


# ---- failures


def test_a_cell_that_raises_is_noted_and_the_others_go_on(tmp_path: Path) -> None:
    """With its traceback; it is run again next time, unless told not to, and then forgotten."""
    marker = tmp_path / "marker"
    study = bm.Study(
        "moody",
        bm.grid({"marker": str(marker), "bad": [1, 3]}, run=range(5)),
        example.moody,
        0,
        ("run",),
    )
    out = tmp_path / "out"
    report = run(study, out)
    assert not report.complete
    assert (report.done, report.failed, report.remaining) == (3, 2, 0)
    assert [failure.id for failure in report.failures] == ["run=1", "run=3"]
    assert report.failures[0].error == "RuntimeError: run 1 is in a mood"
    lines = [json.loads(line) for line in (out / "failures.jsonl").read_text().splitlines()]
    assert "in moody" in lines[0]["traceback"] and len(lines) == 2
    with pytest.raises(bm.InputError, match="2 of 5 cells of moody are not in"):
        bm.collect(study, out)
    marker.touch()
    assert run(study, out, retry_failed=False).failed == 2
    assert bm.study_status(study, out).failed == 2
    assert run(study, out).done == 5
    assert not (out / "failures.jsonl").exists()


def test_a_torn_line_of_failures_costs_no_other(tmp_path: Path) -> None:
    """A driver killed while it noted a failure: that one is lost, the others and later ones not."""
    kept = store.Folder(tmp_path)
    first, second = (store.Failure(name, name, "why", "where") for name in "ab")
    kept.fail(first)
    with (tmp_path / "failures.jsonl").open("a") as file:
        file.write('{"id": "torn", "ke')
    assert kept.failures() == {"a": first}
    kept.fail(second)
    assert kept.failures() == {"a": first, "b": second}


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_wrong_result_is_a_failure_with_a_clear_word(tmp_path: Path, jobs: int) -> None:
    """Not a Dataset, or one that NetCDF cannot hold; the good cell is kept."""
    study = bm.Study("odd", bm.grid(run=range(4)), example.not_a_dataset, 0, ("run",))
    report = bm.run_study(study, tmp_path, jobs=jobs)
    assert (report.done, report.failed) == (1, 3)
    errors = {failure.id: failure.error for failure in report.failures}
    assert errors["run=1"] == "TypeError: a cell must return an xarray Dataset, not a dict"
    assert errors["run=2"] == "TypeError: a cell must return an xarray Dataset, not None"
    assert "cannot be written as NetCDF" in errors["run=3"]
    assert bm.study_status(study, tmp_path).failed == 3
    kept = bm.collect(study, tmp_path, partial=True)
    np.testing.assert_array_equal(kept.value.notnull().all("axis"), [True, False, False, False])


def test_a_cell_that_exits_is_a_failure(tmp_path: Path) -> None:
    """SystemExit ends the cell, not the study."""
    report = run(bm.Study("quits", bm.grid(run=[0, 1]), example.quits), tmp_path)
    assert report.failed == 2 and "SystemExit: 3" in report.failures[0].error


# ---- the folder


@pytest.mark.parametrize("damage", ["truncated", "changed", "empty", "text"])
def test_a_damaged_file_is_named_and_its_cells_run_again(tmp_path: Path, damage: str) -> None:
    """Never read, never lost without a word; the collected result is the same."""
    study = small_study(4)
    run(study, tmp_path)
    expected = bm.collect(study, tmp_path)
    (file,) = files(tmp_path)
    content = file.read_bytes()
    middle = len(content) // 2
    file.write_bytes(
        {
            "truncated": content[:middle],
            "changed": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
            "empty": b"",
            "text": b"not NetCDF",
        }[damage]
    )
    status = bm.study_status(study, tmp_path)
    assert status.done == 0 and str(file) in status.notes[0]
    report = run(study, tmp_path)
    assert report.done == 4 and str(file) in report.notes[0] and "damaged" in report.notes[0]
    assert file.with_name(file.name + ".damaged").exists()
    xr.testing.assert_identical(bm.collect(study, tmp_path), expected)
    assert run(study, tmp_path).notes == []


def test_no_temporary_file_is_taken_for_a_result(tmp_path: Path) -> None:
    """What a killed driver was writing is ignored by readers and swept away by the next driver."""
    study = small_study(2)
    run(study, tmp_path)
    (file,) = files(tmp_path)
    left = file.with_name(f".{file.stem}.abcdefgh.nc")
    file.rename(left)
    (tmp_path / ".keep").touch()  # somebody else's
    assert bm.study_status(study, tmp_path).done == 0
    with pytest.raises(bm.InputError, match="2 of 2 cells"):
        bm.collect(study, tmp_path, partial=True)
    assert run(study, tmp_path).before == 0
    assert not left.exists() and (tmp_path / ".keep").exists()


def test_two_drivers_cannot_share_a_folder(tmp_path: Path) -> None:
    """The second is told who holds it; when the first is gone, however, it is free."""
    code = f"""
import os, sys
from bayesmeta.runner.folder import Folder
with Folder({str(tmp_path)!r}).lock():
    print("locked", flush=True)
    sys.stdin.readline()
    os._exit(1)  # no clean-up
"""
    first = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert first.stdin and first.stdout and first.stdout.readline() == "locked\n"
    with pytest.raises(bm.InputError, match=f"is in use by process {first.pid} on "):
        run(small_study(2), tmp_path)
    first.communicate("\n", timeout=20)
    assert run(small_study(2), tmp_path).done == 2


def test_an_unwritable_folder_is_refused(tmp_path: Path) -> None:
    """Before anything runs."""
    (tmp_path / "file").write_text("mine")
    with pytest.raises(bm.InputError, match=r"cannot write in .*file"):
        run(small_study(2), tmp_path / "file" / "out")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_full_disk_loses_nothing_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that fails stops the study with one clear word; what was written stays."""
    run(small_study(2), tmp_path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)  # cells
    with pytest.raises(bm.InputError, match=r"cells.*No space left on device.*make room"):
        run(small_study(4), tmp_path)
    monkeypatch.setattr(Path, "write_text", full)  # the manifest, too
    with pytest.raises(bm.InputError, match=r"No space left on device.*make room"):
        run(small_study(4), tmp_path)
    monkeypatch.undo()
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["done"] == 2
    assert run(small_study(4), tmp_path).before == 2


def test_ctrl_c_writes_what_is_finished(tmp_path: Path) -> None:
    """Interrupted in the third cell: two are kept, the report says so, and a new run goes on."""
    study = small_study(5)
    calls = []

    def interrupt(settings: dict[str, object], seed: int) -> xr.Dataset:
        calls.append(settings["run"])
        if len(calls) == 3:
            raise KeyboardInterrupt
        return example.draws(settings, seed)

    with pytest.raises(
        bm.runner.Interrupted, match="2 of 5 cells done, 0 failed, 3 remaining"
    ) as stop:
        run(replace(study, function=interrupt), tmp_path)
    assert stop.value.report.done == 2
    report = run(replace(study, function=interrupt), tmp_path)
    assert report.complete and report.before == 2 and calls == [0, 1, 2, 2, 3, 4]


def test_ctrl_c_in_compiled_code_is_ctrl_c(tmp_path: Path) -> None:
    """A kernel of numba's that returns with Ctrl-C pending raises SystemError in its place."""

    def interrupt(settings: dict[str, object], seed: int) -> xr.Dataset:
        if settings["run"] == 1:
            raise SystemError("returned a result with an exception set") from KeyboardInterrupt()
        return example.draws(settings, seed)

    with pytest.raises(bm.runner.Interrupted, match="1 of 3 cells done, 0 failed, 2 remaining"):
        run(replace(small_study(3), function=interrupt), tmp_path)


def test_ctrl_c_with_nothing_done_leaves_nothing(tmp_path: Path) -> None:
    """No folder where there was none."""

    def interrupt(settings: dict[str, object], seed: int) -> xr.Dataset:
        raise KeyboardInterrupt

    with pytest.raises(bm.runner.Interrupted):
        run(replace(small_study(), function=interrupt), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_study_runs_in_any_thread(tmp_path: Path) -> None:
    """Only the main thread can hold Ctrl-C back; elsewhere there is none to hold."""
    found: list[bm.runner.Report] = []
    thread = threading.Thread(target=lambda: found.append(run(small_study(2), tmp_path)))
    thread.start()
    thread.join(30)
    assert found and found[0].done == 2


def test_progress_is_said(tmp_path: Path) -> None:
    """Cells done before, halves while they run, all at the end."""
    said: list[float] = []

    @contextmanager
    def bar(total: int, done: int) -> Iterator[object]:
        said.append(-total)
        said.append(done)
        yield said.append

    study = replace(small_study(3), function=example.halves)
    run(replace(study, cells=dict(list(study.cells.items())[:1])), tmp_path)
    run(study, tmp_path, progressbar=bar)
    assert said[:3] == [-3, 1, 1.5] and said[-1] == 3 and 2.5 in said


def unwelcome(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """One of many results that would not come back from NetCDF as they are."""
    made = example.draws(settings, seed)
    text = settings["what"]
    if text == "dimension cell":
        return made.expand_dims("cell")
    if text == "variable cell":
        return made.assign(cell=1.0)
    if text == "variable study_key":
        return made.assign(study_key=1.0)
    if text == "time span":
        return made.assign(span=np.timedelta64(1, "s"))
    if text == "lambda":
        return made.assign_attrs(bad=lambda: None)
    made["value"].attrs = {text: "days since 2000-01-01" if text == "units" else 10}
    return made


WORDS = {
    "dimension cell": "'cell' is a name the study itself uses",
    "variable cell": "'cell' is a name the study itself uses",
    "variable study_key": "'study_key' is a name the study itself uses",
    "time span": "'span' is a time span",
    "lambda": "cannot be stored",
    "units": "attribute 'units' of 'value' has a meaning",
    "scale_factor": "attribute 'scale_factor' of 'value' has a meaning",
    "missing_value": "attribute 'missing_value' of 'value' has a meaning",
}


def test_results_that_would_come_back_changed_are_failures(tmp_path: Path) -> None:
    """Each with what is wrong; none is silently altered."""
    study = bm.Study("unwelcome", bm.grid(what=list(WORDS)), unwelcome, 0, ("what",))
    report = run(study, tmp_path)
    assert report.done == 0
    for failure in report.failures:
        assert WORDS[failure.id] in failure.error


def rich(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """Many kinds of values, coordinates and attributes."""
    k = settings["run"]
    return xr.Dataset(
        {
            "flag": ("axis", [True, False]),
            "small": ((), np.int8(k)),
            "word": ((), "x" * (k + 1)),
            "date": ((), np.datetime64("2026-01-01", "ns")),
            "seconds_": ((), 1.5, {"units": "seconds"}),
            "nothing": ("none", np.zeros(0)),
        },
        coords={"axis": ["a", "b"], "odd": ("axis", [np.nan, 1.0]), "level": k},
        attrs={"seed": seed, "same": [1, 2], "array": np.arange(2)},
    )


def test_all_kinds_of_values_come_back_as_they_are(tmp_path: Path) -> None:
    """Types, texts of different lengths, scalars, NaN in coordinates, attributes that differ."""
    study = bm.Study("rich", bm.grid(run=range(3)), rich, 0, ("run",))
    assert run(study, tmp_path).complete
    data = bm.collect(study, tmp_path)
    assert data.flag.dtype == bool and data.small.dtype == np.int8
    assert data.word.values.tolist() == ["x", "xx", "xxx"]
    assert (data.date == np.datetime64("2026-01-01")).all()
    assert data.seconds_.dtype == float and data.seconds_.attrs == {"units": "seconds"}
    assert data.sizes["none"] == 0 and data.odd.dims == ("axis",)
    assert data.level.dims == ("run",) and data.level.values.tolist() == [0, 1, 2]
    assert data.attrs["same"] == [1, 2] and "seed" not in data.attrs
    assert json.loads(data.attrs["versions"])["numpy"] == np.__version__


def test_what_a_study_keeps_says_which_versions_made_it(tmp_path: Path) -> None:
    """Even where what it keeps has lost all attributes."""
    study = replace(small_study(), keep=lambda data: data.drop_attrs())
    assert run(study, tmp_path).complete
    kept = collect_kept(study, tmp_path)
    assert provenance.versions().items() <= json.loads(kept.attrs["versions"]).items()


def test_attributes_that_differ_do_not_cost_a_file_each(tmp_path: Path) -> None:
    """Cells that say their seed still share files."""
    cells = bm.grid(run=[0, 0.5, 1])
    study = bm.Study("seeds", cells, says_its_seed, 0, ("run",))
    run(study, tmp_path)
    assert len(files(tmp_path)) == 1 and bm.collect(study, tmp_path).sizes["run"] == 3


def says_its_seed(settings: dict[str, Any], seed: int) -> xr.Dataset:
    return example.draws(settings, seed).assign_attrs(seed=seed)


def test_an_edited_study_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function of one's own has no version: the digest of its file shows an edit."""
    module = tmp_path / "edited_study.py"
    text = "import xarray as xr\n\n\ndef cell(settings, seed):\n    return xr.Dataset({'x': 1})\n"
    module.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    import edited_study  # type: ignore[import-not-found]

    study = bm.Study("edited", bm.grid(run=range(2)), edited_study.cell, 0, ("run",))
    run(replace(study, cells=bm.grid(run=[0])), tmp_path / "out")
    module.write_text(text + "# changed\n")
    report = run(study, tmp_path / "out")
    assert report.complete and "edited_study.py" in report.notes[0]
    assert run(study, tmp_path / "out").complete
    (note,) = bm.study_status(study, tmp_path / "out").notes
    assert "1 cells were made by other versions (edited_study.py" in note
    monkeypatch.delitem(sys.modules, "edited_study")


def test_progress_starts_from_what_is_left_on_a_retry(tmp_path: Path) -> None:
    """Old failures that are run again do not count as ended."""
    settings = {"marker": str(tmp_path / "marker"), "bad": [0, 1]}
    study = bm.Study("moody", bm.grid(settings, run=range(3)), example.moody, 0, ("run",))
    run(study, tmp_path / "out")
    seen: list[float] = []

    @contextmanager
    def bar(total: int, done: int) -> Iterator[object]:
        seen.append(done)
        yield seen.append

    run(study, tmp_path / "out", progressbar=bar)
    assert seen[0] == 1 and seen[-1] == 3


def test_somebody_elses_folder_is_left_alone(tmp_path: Path) -> None:
    """A manifest.json that is not a study's is not overwritten, and a lock not removed."""
    (tmp_path / "manifest.json").write_text('{"mine": 1}')
    with pytest.raises(bm.InputError, match=r"manifest.json is not a study's"):
        run(small_study(2), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


def test_what_is_finished_is_kept_when_something_else_stops_the_driver(tmp_path: Path) -> None:
    """Not only Ctrl-C: a progress bar that raises, say. The manifest counts what is written."""

    @contextmanager
    def bar(total: int, done: int) -> Iterator[object]:
        def tick(now: float) -> None:
            if now >= 3:
                raise OSError("the terminal is gone")

        yield tick

    with pytest.raises(OSError, match="the terminal is gone"):
        run(small_study(6), tmp_path, progressbar=bar)
    assert bm.study_status(small_study(6), tmp_path).done == 3
    assert json.loads((tmp_path / "manifest.json").read_text())["done"] == 3


# ---- collecting


def test_collect_has_the_dimensions_of_the_study(tmp_path: Path) -> None:
    """Cells in a full grid: leading dimensions in order, types, labels, coordinates, attributes."""
    cells = bm.grid(word=["b", "a"], n=[10, 2], run=range(3))
    study = bm.Study("full", cells, example.draws, 3, ("word", "n", "run"))
    run(study, tmp_path)
    data = bm.collect(study, tmp_path)
    assert data.value.dims == ("word", "n", "run", "axis") and data["count"].dtype == np.int64
    assert data.word.values.tolist() == ["b", "a"] and data.n.values.tolist() == [10, 2]
    assert data.weight.dims == ("axis",) and data.attrs["about"] == "draws"
    for name, settings in cells.items():
        own = example.draws(settings, cell_seed(3, name))
        here = data.sel(word=settings["word"], n=settings["n"], run=settings["run"])
        np.testing.assert_array_equal(here.value, own.value)
        assert here["count"] == own["count"]


def test_collect_without_dimensions_keeps_the_ids(tmp_path: Path) -> None:
    """One dimension, ``cell``."""
    study = replace(small_study(3), dims=())
    run(study, tmp_path)
    data = bm.collect(study, tmp_path)
    assert data.value.dims == ("cell", "axis")
    assert data.cell.values.tolist() == ["run=0", "run=1", "run=2"]


def test_collect_cells_of_different_shapes(tmp_path: Path) -> None:
    """Labels and variables that a cell lacks are NaN."""
    study = bm.Study(
        "shapes", bm.grid(d=[3, 1, 2], run=range(2)), example.of_dimension, 0, ("d", "run")
    )
    run(study, tmp_path)
    data = bm.collect(study, tmp_path)
    assert data.value.dims == ("d", "run", "axis") and data.sizes == {"d": 3, "run": 2, "axis": 3}
    np.testing.assert_array_equal(
        data.value.notnull().sum("axis"), np.repeat([[3], [1], [2]], 2, axis=1)
    )
    np.testing.assert_array_equal(data.extra.isel(run=0), [1.5, np.nan, np.nan])


def test_collect_part_of_a_study(tmp_path: Path) -> None:
    """Only when asked to; cells of an incomplete grid are NaN."""
    cells = bm.grid(n=[1, 2], run=range(2))
    whole = bm.Study("part", cells, example.draws, 0, ("n", "run"))
    run(replace(whole, cells={k: v for k, v in cells.items() if k != "n=2/run=0"}), tmp_path)
    with pytest.raises(bm.InputError, match="1 of 4 cells of part are not in"):
        bm.collect(whole, tmp_path)
    data = bm.collect(whole, tmp_path, partial=True)
    assert int(data.value.isnull().sum()) == 3
    assert data.value.sel(n=2, run=0).isnull().all()


@pytest.mark.parametrize(
    ("dims", "words"),
    [
        (("axis",), "'axis' of study small must be a number or a text .* cell run=0 has None"),
        (("seconds",), "have the same seconds"),
        (("run", "run"), "dims must be different names"),
        (("cell",), "dims must be different names, and not 'cell'"),
    ],
)
def test_dimensions_that_cannot_be(tmp_path: Path, dims: tuple[str, ...], words: str) -> None:
    """Said before anything is computed."""
    with pytest.raises(bm.InputError, match=words):
        run(replace(small_study(2), dims=dims), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_choose_one_way_to_run(tmp_path: Path) -> None:
    """Processes or a cluster; a whole number of them."""
    with pytest.raises(bm.InputError, match="choose one of jobs, scheduler and dask"):
        bm.run_study(small_study(), tmp_path, jobs=2, dask=2)
    with pytest.raises(bm.InputError, match="jobs must be at least 1"):
        bm.run_study(small_study(), tmp_path, jobs=0)
    with pytest.raises(bm.InputError, match="dask must be at least 1"):
        bm.run_study(small_study(), tmp_path, dask=0)
    with pytest.raises(bm.InputError, match="study must be Study"):
        bm.run_study("small", tmp_path)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
