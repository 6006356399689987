"""The package as a whole: a light import, documented names, imports that go one way, the lock."""

from __future__ import annotations

import ast
import inspect
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import bayesmeta

ROOT = Path(__file__).parents[1]
PACKAGE = Path(bayesmeta.__file__).parent
HEAVY = ("pymc", "pytensor", "numba", "matplotlib", "xarray", "scipy", "dask", "arviz")


@pytest.mark.parametrize("statement", ["import bayesmeta", "import bayesmeta.cli"])
def test_importing_loads_nothing_heavy(statement: str) -> None:
    """In a fresh interpreter, none of the big libraries is loaded before it is used."""
    code = f"import sys; {statement}; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [] and done.stderr == ""


def test_the_import_check_can_fail() -> None:
    """The same look finds a library that is loaded."""
    code = f"import sys, bayesmeta.kernels.jit; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "numba" in done.stdout.split()


@pytest.mark.parametrize("name", bayesmeta.__all__)
def test_public_names_resolve_and_are_documented(name: str) -> None:
    """Every public name exists; a class or function has a docstring of its own."""
    value = getattr(bayesmeta, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        text = inspect.getdoc(value) or ""
        # dataclasses and named tuples without a docstring are given their signature
        assert text and not text.startswith(f"{value.__name__}("), f"{name} has no docstring"
        assert value.__module__.startswith("bayesmeta.")


def test_public_names_are_listed() -> None:
    """``dir`` shows them, and the folders, once; what is not among them is an AttributeError."""
    assert bayesmeta.__all__ == sorted(set(bayesmeta.__all__))
    assert set(bayesmeta.__all__) | {"agents", "claims"} <= set(dir(bayesmeta))
    assert len(dir(bayesmeta)) == len(set(dir(bayesmeta)))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = bayesmeta.nothing
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", bayesmeta.__version__)


def name_of(path: Path) -> str:
    """bayesmeta/theory/constants.py -> bayesmeta.theory.constants."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports() -> dict[str, set[str]]:
    """Every module of the package and the modules of ours it imports, lazy imports included."""
    paths = {name_of(path): path for path in PACKAGE.rglob("*.py")}
    found: dict[str, set[str]] = {}
    for module, path in paths.items():
        names: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{module} has a relative import"
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    names.add(inner if inner in paths else str(node.module))
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "exports":
                homes = node.args[1]
                assert isinstance(homes, ast.Dict)
                names |= {f"{module}.{ast.literal_eval(key)}" for key in homes.keys if key}
        found[module] = {name for name in names if name.split(".")[0] == "bayesmeta"}
    return found


def importers(of: str) -> set[str]:
    """The modules that import a module or anything below it."""
    return {
        module
        for module, names in imports().items()
        if any(name == of or name.startswith(f"{of}.") for name in names)
    }


ORDER = (
    ("checks", "columns", "streams", "display", "lazy", "data", "units"),
    ("kernels",),
    ("gaussian", "statistics", "sums", "actions", "chi2", "densities", "longformat", "residuals"),
    ("theory", "environment", "families", "pricing", "tables"),
    ("runner",),
    ("estimators",),
    ("posterior",),
    ("tables",),
    ("fitted",),
    ("agents",),
    ("simulation",),
    ("calibration",),
    ("claims", "studies"),
    ("report",),
    ("teach",),
    ("commands", "cli", "__main__"),
)
"""The parts of the package in the order of the design: each may import what stands before it,
and its own."""


def rank(module: str) -> int:
    """Where a module stands in ``ORDER``."""
    part = module.split(".")[1]
    return next(i for i, parts in enumerate(ORDER) if part in parts)


def test_the_walk_sees_imports() -> None:
    """Plain, from a package, and inside a function: the walk finds each."""
    assert "bayesmeta.kernels.choose" in imports()["bayesmeta.agents.player"]
    assert "bayesmeta.checks" in imports()["bayesmeta.gaussian"]
    assert "bayesmeta.studies.figure1" in imports()["bayesmeta.commands.reproduce"]
    assert "bayesmeta.agents.roster" in imports()["bayesmeta.agents"]  # loaded lazily


def test_imports_go_one_way() -> None:
    """No module imports a part that comes later, lazily or not, and every part has a place."""
    for module, names in imports().items():
        if module == "bayesmeta":
            continue
        later = {name for name in names if name != "bayesmeta" and rank(name) > rank(module)}
        assert not later, f"{module} imports {later}"


def test_kernels_import_only_kernels() -> None:
    """Bare arrays in, bare arrays out."""
    kernels = [module for module in imports() if module.startswith("bayesmeta.kernels.")]
    assert len(kernels) >= 4
    for module in kernels:
        assert all(name.startswith("bayesmeta.kernels.") for name in imports()[module]), module


def test_the_posterior_never_sees_agents() -> None:
    """Nor does the runner see anything but what it checks, seeds and compiles with."""
    assert not [m for m in importers("bayesmeta.agents") if m.startswith("bayesmeta.posterior")]
    allowed = (
        "bayesmeta.checks",
        "bayesmeta.streams",
        "bayesmeta.lazy",
        "bayesmeta.kernels.sources",
    )
    for module, names in imports().items():
        if module.startswith("bayesmeta.runner"):
            others = {n for n in names if not n.startswith("bayesmeta.runner")}
            assert others <= set(allowed), module


def test_only_the_command_line_imports_studies() -> None:
    """Studies use the package; besides each other only reports and commands know them."""
    others = {m for m in importers("bayesmeta.studies") if not m.startswith("bayesmeta.studies")}
    assert all(m.startswith(("bayesmeta.commands.", "bayesmeta.report.")) for m in others), others


def test_nothing_imports_the_command_line() -> None:
    """It is the end of the line, but for ``python -m bayesmeta``."""
    assert importers("bayesmeta.cli") == {"bayesmeta.__main__"}
    commands = {m for m in importers("bayesmeta.commands") if "commands" not in m}
    assert commands == {"bayesmeta.cli"}


def test_imports_have_no_cycles() -> None:
    """There is an order in which every module comes after what it imports."""
    order = list(TopologicalSorter(imports()).static_order())
    assert set(imports()) <= set(order)


def pinned() -> dict[str, str]:
    """Package -> version of every line of the lock."""
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    return {canonicalize_name(name): version for name, version in
            (line.split(";")[0].strip().split("==") for line in lines if line.strip())}  # fmt: skip


def test_the_lock_names_no_address() -> None:
    """Versions alone: no index, no link, no option, nothing that only one machine can reach."""
    text = (ROOT / "requirements.lock").read_text()
    assert "://" not in text and " @ " not in text and len(text.splitlines()) > 20
    assert all(re.match(r"[A-Za-z0-9._-]+==", line) for line in text.splitlines())


def test_the_lock_holds_every_dependency() -> None:
    """Each dependency of pyproject.toml, also for development, at a version it allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    versions = pinned()
    for text in wanted:
        requirement = Requirement(text)
        assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)]), text


@pytest.mark.skipif(
    not (ROOT / ".git").exists() or shutil.which("git") is None, reason="not a git checkout"
)
def test_there_is_one_lock() -> None:
    """uv.lock records addresses and is not tracked; requirements.lock is there."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--", "uv.lock", "**/uv.lock"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "" and (ROOT / "requirements.lock").is_file()
