"""Which tests are asked about a mutant: the files that mirror its module, and of these the tests
that reach its function when nothing is changed."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

from tests.trials.mutations import Mutant, mutants

STORE = ("folder", "files", "store", "shards", "collect")
TARGETS: dict[str, tuple[str, ...]] = {
    "estimators": ("bayesmeta/estimators/*.py",),
    "kernels": ("bayesmeta/kernels/*.py",),
    "store": tuple(f"bayesmeta/runner/{name}.py" for name in STORE),
    "learners": ("bayesmeta/agents/learners.py",),
    "claims": ("bayesmeta/claims/*.py",),
}
"""What is mutated: patterns of files."""
TESTS: dict[str, tuple[str, ...]] = {
    "bayesmeta/estimators/": (
        "tests/estimators/test_*.py",
        "tests/agents/test_learners.py",
        "tests/commands/test_fit.py",
        "tests/test_units.py",
    ),
    "bayesmeta/kernels/jit.py": ("tests/kernels/test_stamp.py", "tests/kernels/test_cache.py"),
    "bayesmeta/kernels/sources.py": ("tests/kernels/test_stamp.py", "tests/kernels/test_cache.py"),
    "bayesmeta/kernels/ascend.py": (
        "tests/estimators/test_search.py",
        "tests/estimators/test_fit.py",
    ),
    "bayesmeta/kernels/": (
        "tests/kernels/test_estep.py",
        "tests/kernels/test_play.py",
        "tests/kernels/test_linalg.py",
        "tests/kernels/test_scales.py",
        "tests/test_actions.py",
        "tests/test_statistics.py",
        "tests/agents/test_policies.py",
        "tests/agents/test_exploration.py",
        "tests/agents/test_player.py",
        "tests/posterior/test_op.py",
        "tests/posterior/test_predictive.py",
        "tests/simulation/test_simulator.py",
    ),
    "bayesmeta/runner/": (
        "tests/runner/test_run.py",
        "tests/runner/test_memory.py",
        "tests/runner/test_store*.py",
        "tests/runner/test_folder*.py",
        "tests/runner/test_files.py",
        "tests/runner/test_shards.py",
        "tests/runner/test_collect.py",
        "tests/commands/test_study.py",
    ),
    "bayesmeta/agents/": (
        "tests/agents/test_*learner*.py",
        "tests/estimators/test_search.py",
        "tests/agents/test_player.py",
        "tests/simulation/test_simulator.py",
    ),
    "bayesmeta/claims/": ("tests/claims/test_*.py",),
}
"""The first prefix of a module's path says which test files are asked, the quickest tests first."""
PLAIN = (
    "tests/kernels/test_estep.py",
    "tests/kernels/test_play.py",
    "tests/kernels/test_linalg.py",
    "tests/kernels/test_scales.py",
    "tests/estimators/test_moments.py",
    "tests/agents/test_exploration.py",
    "tests/test_actions.py",
    "tests/posterior/test_op.py",
)
"""Of these, the tests that pass with kernels as plain Python are asked before anything compiles."""
ENOUGH = 25.0
"""Seconds of tests that reach the function, the quickest first; the rest is asked only about a
mutant that survives them unexplained."""
ELSEWHERE = ("bayesmeta/kernels/jit.py", "bayesmeta/kernels/sources.py", "bayesmeta/runner/")
"""What tests reach in other processes, where nobody watches: all their tests are asked."""
OF_THE_CACHE = ("bayesmeta/kernels/jit.py", "bayesmeta/kernels/sources.py")


def target_of(file: str) -> str:
    return next(
        name for name, patterns in TARGETS.items() if any(Path(file).match(p) for p in patterns)
    )


def all_mutants(root: Path, target: str) -> list[Mutant]:
    files = {str(path.relative_to(root)) for p in TARGETS[target] for path in root.glob(p)}
    return [one for file in sorted(files) for one in mutants(root, file)]


def sample(root: Path, targets: list[str], count: int, seed: int) -> list[Mutant]:
    """The same number of every target, where there are so many; in an order that mixes them."""
    chosen: list[Mutant] = []
    for i, target in enumerate(targets):
        share = count // len(targets) + (i < count % len(targets))
        order = sorted(all_mutants(root, target), key=lambda one: one.draw(seed))
        chosen += order[:share]
    return sorted(chosen, key=lambda one: one.draw(seed))


def test_files(root: Path, file: str) -> list[str]:
    """The test files about a module."""
    patterns = next(found for prefix, found in TESTS.items() if file.startswith(prefix))
    return sorted({str(path.relative_to(root)) for p in patterns for path in root.glob(p)})


class Code:
    """Who calls whom in the package, by name: which kernels must be compiled anew after a change,
    and which functions call them."""

    def __init__(self, root: Path) -> None:
        self.uses: dict[str, set[str]] = {}
        self.kernels: dict[str, str] = {}
        for path in sorted((root / "bayesmeta").rglob("*.py")):
            file = str(path.relative_to(root))
            for node in ast.parse(path.read_text()).body:
                for function in _functions(node):
                    name = f"{file}:{_qualified(node, function)}"
                    self.uses[name] = _names(function)
                    if _is_compiled(function):
                        self.kernels[name] = function.name

    def is_compiled(self, mutant: Mutant) -> bool:
        """Whether compiled code depends on the line."""
        if mutant.function:
            return f"{mutant.file}:{mutant.function}" in self.kernels
        return mutant.file.startswith("bayesmeta/kernels/") or any(
            name.startswith(f"{mutant.file}:") for name in self.kernels
        )

    @cache  # noqa: B019
    def affected(self, mutant: Mutant) -> set[str]:
        """The kernels whose compiled code a mutant changes; all where it is outside of them."""
        if not mutant.function:
            return set(self.kernels)
        found = {f"{mutant.file}:{mutant.function}"}
        while True:
            names = {self.kernels[name] for name in found}
            more = {name for name in self.kernels if self.uses[name] & names} - found
            if not more:
                return found
            found |= more

    def callers(self, mutant: Mutant) -> set[str]:
        """Functions that call an affected kernel from Python."""
        names = {self.kernels[name] for name in self.affected(mutant)}
        return {name for name, used in self.uses.items() if used & names} - set(self.kernels)


def remove_compiled(tree: Path, code: Code, mutant: Mutant) -> None:
    """What was compiled of the affected kernels."""
    for name in code.affected(mutant):
        file, _, function = name.partition(":")
        path = tree / file
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.{function}-*.nb?"):
            compiled.unlink()


def choose(
    tests: dict[str, dict[str, Any]], outside: set[str], functions: set[str], everything: bool
) -> list[str]:
    """The tests that reach one of the functions, the quickest first; all where ``everything``, or
    where one of the functions runs while test files are imported."""
    if everything or functions & outside:
        found = list(tests)
    else:
        found = [name for name, one in tests.items() if functions & set(one["reached"])]
    return sorted(found, key=lambda name: tests[name]["seconds"])


def enough(wanted: list[str], tests: dict[str, dict[str, Any]]) -> list[str]:
    total, found = 0.0, []
    for name in wanted:
        total += tests[name]["seconds"]
        if total > ENOUGH and found:
            break
        found.append(name)
    return found


def _functions(node: ast.AST) -> list[ast.FunctionDef]:
    if isinstance(node, ast.FunctionDef):
        return [node]
    if isinstance(node, ast.ClassDef):
        return [one for one in node.body if isinstance(one, ast.FunctionDef)]
    return []


def _qualified(node: ast.AST, function: ast.FunctionDef) -> str:
    return f"{node.name}.{function.name}" if isinstance(node, ast.ClassDef) else function.name


def _is_compiled(function: ast.FunctionDef) -> bool:
    return any(
        isinstance(one, ast.Name) and one.id in ("kernel", "inlined")
        for one in function.decorator_list
    )


def _names(function: ast.FunctionDef) -> set[str]:
    return {
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(function)
        if isinstance(node, ast.Name | ast.Attribute)
    }
