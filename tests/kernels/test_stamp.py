"""What is compiled is kept with a stamp of all sources that it may depend on."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import bayesmeta.kernels
from bayesmeta.estimators import moments
from bayesmeta.kernels import jit, sources

KERNEL = """
from bayesmeta.kernels.jit import kernel

@kernel
def double(x):
    return 2 * x
"""


def kernels(module: ModuleType) -> dict[str, object]:
    """The kernels of a module that are kept on disk."""
    return {
        name: value
        for name, value in vars(module).items()
        if getattr(getattr(value, "_cache", None), "_cache_file", None) is not None
    }


def test_every_kernel_asks_for_all_sources() -> None:
    """Those of the estimators, too."""
    folder = bayesmeta.kernels
    names = [f"{folder.__name__}.{one.name}" for one in pkgutil.iter_modules(folder.__path__)]
    found = [kernels(importlib.import_module(name)) for name in names] + [kernels(moments)]
    assert sum(map(len, found)) > 30
    for name, one in (pair for part in found for pair in part.items()):
        assert one._cache._cache_file._source_stamp == sources.kernel_digest(), name  # type: ignore[attr-defined]


def hits(path: Path) -> int:
    """Import a file anew, call its kernel, and see whether its code came from disk."""
    spec = importlib.util.spec_from_file_location("stamped", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.double(1.5) == 3.0
    return sum(module.double.stats.cache_hits.values())


def test_another_stamp_compiles_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file itself is the same, so numba alone would take what is there."""
    path = tmp_path / "stamped.py"
    path.write_text(KERNEL)
    monkeypatch.setattr(jit, "STAMP", "one")
    assert [hits(path), hits(path)] == [0, 1]
    monkeypatch.setattr(jit, "STAMP", "two")
    assert [hits(path), hits(path)] == [0, 1]


def test_an_index_that_names_what_is_gone_starts_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """numba reads argument types before it asks for the stamp; one that no longer exists is no
    obstacle, and any other error is not hidden."""
    path = tmp_path / "stamped.py"
    path.write_text(KERNEL)
    monkeypatch.setattr(jit, "STAMP", "one")
    assert hits(path) == 0
    (index,) = tmp_path.rglob("*.nbi")
    for error in (AttributeError, ImportError):

        def fails(error: type[Exception] = error) -> dict[str, str]:
            raise error("gone")

        assert jit._none_where_unreadable(fails)() == {}
    assert jit._none_where_unreadable(lambda: {"kept": "entry"})() == {"kept": "entry"}
    with pytest.raises(ZeroDivisionError):
        jit._none_where_unreadable(lambda: {1: 1 // 0})()
    assert index.exists() and hits(path) == 1


def test_where_nothing_can_be_kept_a_kernel_still_compiles() -> None:
    """A function without a file, as one typed at a prompt."""
    space: dict[str, object] = {}
    exec("def triple(x):\n    return 3 * x", space)
    triple = jit.kernel(space["triple"])  # type: ignore[arg-type]
    assert triple(2.0) == 6.0 and triple.__name__ == "triple"
    assert kernels(ModuleType("none")) == {}
    assert type(triple._cache).__name__ == "NullCache"  # type: ignore[attr-defined]


def test_what_the_stamp_covers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels and whatever uses them; the other digest covers all files."""
    texts = {
        "kernels/sources.py": "",
        "kernels/linalg.py": "a = 1",
        "estimators/moments.py": "from bayesmeta.kernels.jit import kernel",
        "claims/run.py": "b = 1",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(sources, "__file__", str(tmp_path / "kernels" / "sources.py"))

    def digests() -> tuple[str, str]:
        return sources.kernel_digest.__wrapped__(), sources.digest.__wrapped__()

    before = digests()
    assert before == digests() and before[0] != before[1]
    for name, text in texts.items():
        (tmp_path / name).write_text(text + "\n")
        after = digests()
        assert (after[0] != before[0]) == (name != "claims/run.py"), name
        assert after[1] != before[1], name
        (tmp_path / name).write_text(text)


def test_kernels_divide_as_ieee_says_and_let_other_threads_run() -> None:
    """No exception for 1 / 0, which a compiled loop could not raise; no lock held."""

    def divide(x, y):
        return x / y

    compiled = jit.kernel(divide)
    assert np.isinf(compiled(1.0, 0.0))
    options = compiled.targetoptions  # type: ignore[attr-defined]
    assert options["nogil"] and options["fastmath"] is False
