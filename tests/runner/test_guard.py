"""A worker's source is checked before it computes, and a result's once more."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace

import distributed
import pytest

import bayesmeta as bm
from bayesmeta.kernels import sources
from bayesmeta.runner import cell as cells
from bayesmeta.runner import guard, provenance
from bayesmeta.runner.report import OtherSource
from tests.helpers import run
from tests.runner.example_cells import small_study


def test_the_check_sees_what_the_driver_sees() -> None:
    """The text of ``sources`` run elsewhere gives the digest of the files there."""
    assert guard.digest_here(Path(sources.__file__).read_text()) == sources.digest()


def test_files_that_changed_since_the_first_call_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker may have loaded either state: it is believed to neither driver."""
    worker = SimpleNamespace(address="tcp://somewhere:1")
    monkeypatch.setattr(distributed, "get_worker", lambda: worker)
    monkeypatch.setattr(guard, "FRESH", 0.0)
    file, call = tmp_path / "source", pickle.dumps("made")
    file.write_text("one")
    text = f"from pathlib import Path\ndef digest(): return Path({str(file)!r}).read_text()"
    assert guard.guarded(text, "one", call) == "made"
    with pytest.raises(RuntimeError) as refused:
        guard.guarded(text, "two", call)
    assert refused.value.args == (guard.MARK, "tcp://somewhere:1", bm.__version__, "one")
    file.write_text("two")
    for expected in ("one", "two"):
        with pytest.raises(RuntimeError, match=guard.MARK):
            guard.guarded(text, expected, call)


def test_a_result_of_other_source_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wherever it was made, files may have changed meanwhile: exit code 1, or a note."""
    other = provenance.versions() | {"source": "0123456789ab"}
    monkeypatch.setattr(cells, "versions", lambda: other)
    with pytest.raises(OtherSource, match="a worker of this process runs other source") as refused:
        bm.run_study(small_study(3), tmp_path / "out", jobs=1)
    assert refused.value.report.done == 0 and refused.value.report.remaining == 3
    command = ("study", "run", "tests.runner.example_cells:two", "--jobs", "1")
    assert run(*command, "--folder", str(tmp_path / "two")) == 1
    assert "source 0123456789ab" in capsys.readouterr().err
    assert run(*command, "--folder", str(tmp_path / "two"), "--allow-other-source") == 0
    assert "2 cells were made by other versions (source 0123456789ab" in capsys.readouterr().out
