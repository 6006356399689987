"""The soak's record is held to account, and what it compares can differ."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import h5py
import pytest

import bayesmeta as bm
from tests.runner.example_cells import small_study
from tests.trials.soak import RECORD, differences, fingerprint


def test_the_recorded_soak() -> None:
    """A hundred kills at least, of every kind, and nothing wrong after any."""
    found = json.loads(RECORD.read_text())
    assert found["failures"] == []
    assert found["kills"] >= 100 and found["kills"] == sum(found["kinds"].values())
    for name in ("SIGKILL", "SIGTERM", "SIGINT"):
        assert any(kind.startswith(f"{name} to a") for kind in found["kinds"])
    assert found["kinds"]["SIGKILL to a worker"] > 0
    assert any("Dask" in kind for kind in found["kinds"])
    assert found["disks filled"] > 0 and found["resumes"] > 0
    assert found["comparisons"] >= found["chains"] > 0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    bm.run_study(small_study(3), tmp_path / "out", jobs=1)
    return tmp_path / "out"


def test_the_same_bytes_after_a_resume(folder: Path, tmp_path: Path) -> None:
    """Cells in other files, the same fingerprint."""
    for runs in (1, 2, 3):
        bm.run_study(small_study(runs), tmp_path / "other", jobs=1)
    study = small_study(3)
    assert len(list((tmp_path / "other" / "cells").iterdir())) == 3
    assert differences(fingerprint(study, tmp_path / "other"), fingerprint(study, folder)) == []


@pytest.mark.parametrize("name", ["value", "count"])
def test_a_wrong_byte_is_noticed(folder: Path, name: str) -> None:
    """One changed byte of one cell, in a file whose digest is right."""
    study = small_study(3)
    expected = fingerprint(study, folder)
    (file,) = (folder / "cells").iterdir()
    with h5py.File(file, "r+") as shard:
        values = shard[name][()]
        values.view("u1").reshape(3, -1)[1, 0] ^= 1
        shard[name][...] = values
    digest = hashlib.blake2b(file.read_bytes(), digest_size=8).hexdigest()
    file.rename(file.with_name(f"changed.{digest}.nc"))
    assert differences(fingerprint(study, folder), expected) == ["collected", "run=1"]
    assert differences({}, expected) == sorted(expected)
