"""A study's folder under attack: links, damage, deletion, full disks, other drivers."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
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
from bayesmeta.runner import folder as store
from bayesmeta.runner.files import reason, write_together
from bayesmeta.streams import cell_seed
from tests.helpers import run as command
from tests.runner import example_cells as example
from tests.runner.example_cells import small_study

run = partial(bm.run_study, jobs=1)
FAILURE = store.Failure("a", "a", "why", "where")


# ---- the order of cells


@pytest.mark.parametrize("where", ["folder", "memory"])
def test_cells_come_back_in_their_own_order(tmp_path: Path, where: str) -> None:
    """Not in that of the files: cells 0 and 2 share one, 1 and 3 another; in memory, 0 and 2 have
    one shape."""
    if where == "folder":
        study = small_study(4)
        some = {name: study.cells[name] for name in ("run=0", "run=2")}
        run(replace(study, cells=some), tmp_path)
        run(study, tmp_path)
        assert len(list((tmp_path / "cells").iterdir())) == 2
        data = bm.collect(study, tmp_path)
    else:
        study = bm.Study("s", bm.grid(run=range(4)), two_shapes, 7, ("run",))
        data = bm.collect(study, run(study))
    for k in range(4):
        own = study.function(study.cells[f"run={k}"], cell_seed(7, f"run={k}"))
        np.testing.assert_array_equal(data["count"].sel(run=k), own["count"])
        np.testing.assert_array_equal(data.value.sel(run=k), own.value)


def two_shapes(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """Like ``draws``; odd runs have a variable more."""
    data = example.draws(settings, seed)
    return data.assign(odd=1.0) if settings["run"] % 2 else data


# ---- links, rights


@pytest.mark.parametrize("name", ["lock", "failures.jsonl", "manifest.json", "cells"])
def test_a_link_in_the_folder_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it points to is neither cut, nor added to, nor filled."""
    out, target = tmp_path / "out", tmp_path / "target"
    out.mkdir()
    target.mkdir() if name == "cells" else target.write_text("precious")
    (out / name).symlink_to(target)
    study = bm.Study("quits", bm.grid(run=[0]), example.quits)
    with pytest.raises(bm.InputError, match=rf"{name} is a symbolic link, which is not followed"):
        run(study, out)
    assert [path.name for path in out.iterdir()] == [name] and (out / name).is_symlink()
    assert list(target.iterdir()) == [] if name == "cells" else target.read_text() == "precious"


def test_a_link_put_there_later_is_not_followed(tmp_path: Path) -> None:
    """The failures file is opened anew for every failure."""
    target = tmp_path / "target"
    target.write_text("precious")
    out = store.Folder(tmp_path / "out")
    with out.lock():
        (tmp_path / "out" / "failures.jsonl").symlink_to(target)
        with pytest.raises(bm.InputError, match="symbolic link"):
            out.fail(FAILURE)
    assert target.read_text() == "precious"


def test_a_folder_that_is_itself_a_link_is_the_users_choice(tmp_path: Path) -> None:
    """Somebody whose disk is elsewhere."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
    assert run(small_study(2), tmp_path / "out").complete
    assert bm.study_status(small_study(2), tmp_path / "elsewhere").done == 2


@pytest.mark.parametrize(("mask", "rights"), [(0o077, 0o600), (0o022, 0o644), (0o002, 0o664)])
def test_files_have_the_rights_of_the_umask(tmp_path: Path, mask: int, rights: int) -> None:
    """Cells, manifest, lock, failures: what a user keeps private stays so."""
    settings = {"marker": str(tmp_path / "marker"), "bad": [1]}
    study = bm.Study("moody", bm.grid(settings, run=range(2)), example.moody)
    before = os.umask(mask)
    try:
        run(study, tmp_path / "out")
    finally:
        os.umask(before)
    found = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "out").rglob("*")}
    assert found.pop("cells") == 0o777 & ~mask
    assert len(found) == 4 and set(found.values()) == {rights}


# ---- damage


DAMAGE: dict[str, bytes | None] = {
    "not UTF-8": b"\xff\xfe\x00{",
    "not JSON": b"{]",
    "another JSON": b'{"study": "small", "sessions": 5}\n',
    "a list": b"[1, 2]",
    "deep": b"[" * 100_000,
    "a folder": None,
}


def damage(path: Path, content: bytes | None) -> None:
    path.unlink(missing_ok=True)
    path.mkdir() if content is None else path.write_bytes(content)


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_manifest_is_refused_in_one_line(
    how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The results are kept; status and collect do not need it, and say so."""
    study = example.slow
    some = replace(study, cells={name: study.cells[name] for name in ("run=0", "run=1")})
    run(some, tmp_path)
    damage(tmp_path / "manifest.json", DAMAGE[how])
    name = "tests.runner.example_cells:slow"
    assert command("study", "run", name, "--jobs", "1", "--folder", str(tmp_path)) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "manifest.json is not a study's, or damaged; remove it" in said
    status = bm.study_status(some, tmp_path)
    assert status.done == 2 and "manifest.json is not a study's, or damaged" in status.notes[0]
    out = str(tmp_path / "out.nc")
    collect = ("study", "collect", name, "--folder", str(tmp_path), "--partial", "--out", out)
    assert command(*collect) == 0
    assert "manifest.json is not a study's, or damaged" in capsys.readouterr().out


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_file_of_failures_is_set_aside(how: str, tmp_path: Path) -> None:
    """Status says so; a run says so and goes on; nothing is deleted."""
    settings = {"marker": str(tmp_path / "marker"), "bad": [1]}
    study = bm.Study("moody", bm.grid(settings, run=range(3)), example.moody, 0, ("run",))
    out = tmp_path / "out"
    assert run(study, out).failed == 1
    failures = out / "failures.jsonl"
    damage(failures, DAMAGE[how])
    (note,) = bm.study_status(study, out).notes
    assert "failures.jsonl is damaged" in note
    report = run(study, out)
    assert (report.done, report.before, report.failed) == (2, 2, 1)
    assert "failures.jsonl is damaged: it was renamed to failures.jsonl.damaged" in report.notes[0]
    kept = out / "failures.jsonl.damaged"
    assert kept.is_dir() if DAMAGE[how] is None else kept.read_bytes() == DAMAGE[how]
    assert bm.study_status(study, out).notes == []


def test_damage_in_mid_run_is_left_for_the_next_driver(tmp_path: Path) -> None:
    """Not overwritten when failures of finished cells are dropped."""
    out = store.Folder(tmp_path)
    out.fail(FAILURE)
    (tmp_path / "failures.jsonl").write_bytes(b"\xff\n")
    out.forget_failures({"a"})
    assert (tmp_path / "failures.jsonl").read_bytes() == b"\xff\n"


# ---- deletion


@contextmanager
def deleting(folder: Path, at: int, total: int, done: int) -> Iterator[object]:
    """A progress bar that deletes the folder when some cells have ended."""

    def tick(now: float) -> None:
        if now == at and folder.exists():
            shutil.rmtree(folder)

    yield tick


def test_a_folder_deleted_in_mid_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One clear line; the cells in memory are written to a new folder, and a new run goes on."""
    monkeypatch.setattr(store, "SHARD_SECONDS", 60.0)
    out, study = tmp_path / "out", small_study(4)
    with pytest.raises(bm.InputError) as caught:
        run(study, out, progressbar=partial(deleting, out, 3))
    assert str(caught.value) == (
        f"{out} was deleted or renamed while the study ran; the 4 cells that were not written yet "
        "are in a new folder of that name; run the same command again"
    )
    assert not (out / "manifest.json").exists()  # it would count cells that are gone
    monkeypatch.undo()
    assert run(study, out).before == 4
    xr.testing.assert_identical(bm.collect(study, out), bm.collect(study, run(study)))


def test_a_folder_deleted_after_the_last_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no cell in memory: nothing is made, and the line says what happened."""
    monkeypatch.setattr(store, "SHARD_SECONDS", 0.0)
    out = store.Folder(tmp_path / "out")
    words = "out was deleted or renamed while the study ran; run"
    with pytest.raises(bm.InputError, match=words), out.lock():
        shutil.rmtree(tmp_path / "out")
        assert out.flush() == ([], [])
        out.write_manifest({})
    assert list(tmp_path.iterdir()) == []


def test_a_failure_after_the_folder_was_deleted(tmp_path: Path) -> None:
    """Said, not raised as what the system says."""
    out, settings = tmp_path / "out", {"marker": str(tmp_path / "marker"), "bad": [2]}
    study = bm.Study("moody", bm.grid(settings, run=range(3)), example.moody, 0, ("run",))
    with pytest.raises(bm.InputError, match="was deleted or renamed while the study ran"):
        run(study, out, progressbar=partial(deleting, out, 2))
    assert bm.study_status(study, out).done == 2


# ---- the lock


@pytest.mark.parametrize("then", ["another", "nothing"])
def test_a_lock_that_was_replaced_is_not_held(
    then: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening and locking the file another driver removed it, as it does where it finished
    no cell: two drivers would each hold a lock of their own."""
    real = fcntl.flock

    def late(handle: int, how: int) -> None:
        (tmp_path / "lock").unlink()
        if then == "another":
            (tmp_path / "lock").write_text("process 1 on elsewhere")
        real(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(bm.InputError, match="is in use by another process"):
        run(small_study(2), tmp_path)
    monkeypatch.undo()
    assert run(small_study(2), tmp_path).complete


def test_a_lock_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    """In one line."""
    (tmp_path / "lock").mkdir()
    with pytest.raises(bm.InputError, match=r"cannot lock .*lock \(Is a directory\); remove it"):
        run(small_study(2), tmp_path)


def test_temporaries_of_a_killed_driver_are_swept_away(tmp_path: Path) -> None:
    """Those of cells, of the manifest and of failures; nobody else's; when a driver starts."""
    run(small_study(2), tmp_path)
    left = ["cells/.run=0.12ab34cd.nc", ".manifest.12ab34cd.json", ".failures.12ab34cd.jsonl"]
    others = ["cells/.notes.txt", ".manifest.txt", ".other.json", "cells/mine.txt"]
    for name in (*left, *others):
        (tmp_path / name).write_text("x")
    bm.study_status(small_study(2), tmp_path)
    assert all((tmp_path / name).exists() for name in left)
    run(small_study(2), tmp_path)
    assert not any((tmp_path / name).exists() for name in left)
    assert all((tmp_path / name).exists() for name in others)


def test_a_temporary_that_cannot_be_removed_is_left(tmp_path: Path) -> None:
    """A folder of such a name, say; readers ignore it anyway."""
    (tmp_path / "cells" / ".odd.nc").mkdir(parents=True)
    assert run(small_study(2), tmp_path).complete


# ---- full disks


def test_the_message_of_hdf5_becomes_one_line(tmp_path: Path) -> None:
    """The system's word for it, out of a message of two lines."""
    said = OSError(
        "[Errno 28] Can't synchronously write data (file write failed: time = Mon Jan  1\n, "
        "filename = 'x.nc', file descriptor = 5, errno = 28, error message = 'No space left on "
        "device', buf = 0x1, total write size = 4096)"
    )
    assert reason(said) == "No space left on device"
    assert reason(OSError("some\n  words")) == "some words"

    def write(to: Path) -> None:
        raise said

    with pytest.raises(bm.InputError) as caught:
        write_together({tmp_path / "a.nc": write})
    assert str(caught.value) == (
        f"cannot write {tmp_path / 'a.nc'} (No space left on device); make room, or choose another "
        "folder"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="limits of processes")
def test_hdf5_on_a_real_limit(tmp_path: Path) -> None:
    """A process that may write files of 20,000 bytes at most: one line, no file left, no noise."""
    code = f"""
import resource, signal
import numpy as np, xarray as xr
import bayesmeta as bm
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
data = xr.Dataset({{"x": ("i", np.random.default_rng(0).random(100_000))}})
try:
    bm.write_record(data, {str(tmp_path / "big.nc")!r})
except bm.InputError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.count("\n") == 1 and "(File too large); make room" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_does_not_keep_a_driver_from_locking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who holds the lock cannot be written down; that it is held can."""

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with store.Folder(tmp_path / "out").lock():
        monkeypatch.undo()
        with pytest.raises(bm.InputError, match="in use by another process"):
            run(small_study(2), tmp_path / "out")
        assert json.dumps(FAILURE._asdict()).startswith('{"id": "')  # what a torn line begins with


# ---- what is written when, and what a collected file says


def test_many_bytes_are_due_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell's bytes count; what is written counts no longer."""
    monkeypatch.setattr(store, "SHARD_SECONDS", 1e9)
    monkeypatch.setattr(store, "SHARD_BYTES", 100)
    made = store.Folder(tmp_path)
    made.cells.mkdir()
    for k, due in enumerate((False, True)):
        data = xr.Dataset({"value": ("axis", np.zeros(8))})
        made.add(store.Cell(f"run={k}", f"key{k}", "{}", 0.0, "{}", data))
        assert made.is_due() is due
    made.flush()
    assert not made.is_due()


def test_a_dimension_that_is_also_a_result_is_refused(tmp_path: Path) -> None:
    """Cells along "axis", whose results have an axis of their own."""
    cells = {f"axis={k}": {"axis": k} for k in range(2)}
    study = replace(small_study(2), cells=cells, dims=("axis",))
    run(study, tmp_path)
    with pytest.raises(bm.InputError, match=r"'axis' of study .* is also a name in the cells' res"):
        bm.collect(study, tmp_path)


def test_all_versions_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One where all cells were made by it, a list where by several."""
    study = small_study(2)
    run(study, tmp_path)
    one = json.loads(bm.collect(study, tmp_path).attrs["versions"])
    assert one["bayesmeta"] == bm.__version__
    find = store.Folder.find

    def two(self: store.Folder) -> tuple[dict[str, str], list[Path]]:
        found, damaged = find(self)
        return {key: json.dumps({"made": k}) for k, key in enumerate(found)}, damaged

    monkeypatch.setattr(store.Folder, "find", two)
    found = json.loads(bm.collect(study, tmp_path).attrs["versions"])
    assert found == [{"made": 0}, {"made": 1}]


@pytest.mark.parametrize("content", ['{"sessions": []}', '{"study": 1}', '["study"]', '"study"'])
def test_a_manifest_of_something_else_is_none(tmp_path: Path, content: str) -> None:
    """It names a study and lists its sessions, or it is not a study's."""
    (tmp_path / "manifest.json").write_text(content)
    assert store.Folder(tmp_path).manifest() == {}
