"""The runner of mutants, on a package of two functions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import ROOT
from tests.trials.mutations import mutants
from tests.trials.plan import Code
from tests.trials.record import explanations, summary, tidy, why

SOURCE = '''
def double(x: float) -> float:
    """Twice 1 + 1."""
    return x + x


def down(n):
    while n > 0:
        n -= 1
    return str(n + 0)
'''
TESTS = """
from bayesmeta.agents.learners import double, down


def test_double():
    assert double(3) == 6


def test_down():
    down(2)
"""
RUN = """
import os
import sys
from pathlib import Path
from tests.trials import forked, mutants
forked.WARM, mutants.ROOM = [], 4.0
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
raise SystemExit(mutants.main(sys.argv[1:], root=Path.cwd()))
"""


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", RUN, "--folder", "kept", "--target", "learners", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert not done.stderr, done.stderr
    return done.stdout


def planted(folder: Path) -> None:
    for name, text in {
        "bayesmeta/__init__.py": "",
        "bayesmeta/agents/__init__.py": "",
        "bayesmeta/agents/learners.py": SOURCE,
        "tests/conftest.py": "",
        "tests/agents/test_learners.py": TESTS,
        "tests/trials/survivors.toml": '[[survivor]]\nfile = "bayesmeta/agents/learners.py"\n'
        'text = "return str(n + 0)"\nkind = "constant"\nwhy = "no test looks"\n',
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)


@pytest.mark.slow
def test_a_run(tmp_path: Path) -> None:
    """A mutant that a test notices, one that none does, one that does not end; the source itself is
    not touched, a second run has nothing to do, and one mutant can be looked at."""
    planted(tmp_path)
    run(tmp_path, "--record", "record.json")
    found = json.loads((tmp_path / "record.json").read_text())
    rows = [json.loads(one.read_text()) for one in (tmp_path / "kept" / "results").iterdir()]
    results = {(row["text"], row["kind"]): row["result"] for row in rows}
    assert results == {
        ("return x + x", "arithmetic"): "killed",
        ("return x + x", "return"): "killed",
        ("while n > 0:", "compare"): "survived",
        ("while n > 0:", "boundary"): "survived",
        ("while n > 0:", "false"): "survived",
        ("while n > 0:", "constant"): "survived",
        ("n -= 1", "remove"): "timeout",
        ("n -= 1", "arithmetic"): "timeout",
        ("n -= 1", "constant"): "survived",
        ("return str(n + 0)", "return"): "survived",
        ("return str(n + 0)", "arithmetic"): "survived",
        ("return str(n + 0)", "constant"): "survived",
    }
    killed = next(row for row in rows if row["kind"] == "arithmetic" and row["text"][0] == "r")
    assert killed["result"] == "survived" or killed["test"].endswith("::test_double")
    assert (found["mutants"], found["killed"], found["timeout"]) == (12, 2, 2)
    assert (found["explained"], found["unexplained"]) == (1, 7)
    assert found["by_kind"]["constant"]["explained"] == 1
    assert [one["why"] for one in found["survivors"]].count("no test looks") == 1
    assert (tmp_path / "bayesmeta/agents/learners.py").read_text() == SOURCE
    before = {one: one.stat().st_mtime_ns for one in (tmp_path / "kept" / "results").iterdir()}
    run(tmp_path)
    after = {one: one.stat().st_mtime_ns for one in (tmp_path / "kept" / "results").iterdir()}
    assert before == after
    shown = run(tmp_path, "--only", "bayesmeta/agents/learners.py:4:13:arithmetic")
    assert "+    return x - x" in shown and "killed tests/agents/test_learners.py" in shown


def test_kinds_and_what_is_left_alone(tmp_path: Path) -> None:
    """Every kind once; no text, annotation or message; every mutant is another program."""
    (tmp_path / "a.py").write_text(
        '''
"""1 + 1"""
from typing import Literal

LIMIT: Literal[1] = 5


def f(a: Literal[2], b=True) -> Literal[3]:
    """1 < 2"""
    if not a < b and b in a:
        g(a, b)
        raise ValueError(f"{a + 1}" + "1 < 2")
    for _ in a:
        if a:
            break
    return -(a - 1) ** 2


class C:
    """2 * 3"""

    x = 1

    def __repr__(self):
        return "a" + str(1 + 1)

    def h(self):
        return 7
'''
    )
    found = mutants(tmp_path, "a.py")
    source = (tmp_path / "a.py").read_text()
    assert {(one.function, one.kind, one.change) for one in found} == {
        ("", "constant", "5 -> 6"),
        ("f", "bool", "True -> False"),
        ("f", "not", "not -> "),
        ("f", "compare", "< -> >="),
        ("f", "boundary", "< -> <="),
        ("f", "and-or", "and -> or"),
        ("f", "compare", "in -> not in"),
        ("f", "true", "not a < b and b in a -> True"),
        ("f", "false", "not a < b and b in a -> False"),
        ("f", "remove", "g(a, b) -> pass"),
        ("f", "swap", "a, b -> b, a"),
        ("f", "true", "a -> True"),
        ("f", "false", "a -> False"),
        ("f", "break", "break -> continue"),
        ("f", "return", "-(a - 1) ** 2 -> None"),
        ("f", "minus", "- -> "),
        ("f", "arithmetic", "** -> *"),
        ("f", "arithmetic", "- -> +"),
        ("f", "minus-one", "- 1 -> "),
        ("f", "constant", "1 -> 2"),
        ("f", "constant", "2 -> 3"),
        ("", "constant", "1 -> 2"),
        ("C.h", "return", "7 -> None"),
        ("C.h", "constant", "7 -> 8"),
    }
    programs = {one.applied(source) for one in found}
    assert len(programs) == len(found) == len({one.id for one in found}) and source not in programs


def test_which_kernels_compile_anew() -> None:
    """A kernel and its callers, not its neighbours; all where a constant is changed."""
    code = Code(ROOT)
    file = "bayesmeta/kernels/linalg.py"
    one = next(one for one in mutants(ROOT, file) if one.function == "upper_root")
    assert code.is_compiled(one)
    climbs = {f"bayesmeta/kernels/ascend.py:{name}" for name in ("ascend", "height")}
    heights = {
        f"bayesmeta/kernels/profile.py:{name}" for name in ("profile", "best_mean", "best_root")
    }
    blocks = {
        f"bayesmeta/agents/block.py:{name}" for name in ("play_block", "_estimate", "_observe")
    }
    hyper = {
        f"bayesmeta/kernels/hyper.py:{name}"
        for name in ("evidence", "observe", "posterior_of_mean", "task_prior")
    }
    moments = {f"bayesmeta/estimators/moments.py:{name}" for name in ("usable", "observe_all")}
    users = {*moments, *climbs, *heights, *blocks, *hyper}
    assert code.affected(one) == {f"{file}:upper_root", *users}
    assert "bayesmeta/agents/learners.py:Moments.estimate" in code.callers(one)
    shared = "bayesmeta/kernels/codes.py"
    outside = next(one for one in mutants(ROOT, shared) if not one.function)
    assert code.is_compiled(outside) and code.affected(outside) == set(code.kernels)
    plain = next(iter(mutants(ROOT, "bayesmeta/estimators/split.py")))
    assert not code.is_compiled(plain)


def test_explanations(tmp_path: Path) -> None:
    """By file and line, of one kind or of all; those of what is killed by now are dropped."""
    path = tmp_path / "survivors.toml"
    block = '[[survivor]]\nfile = "a.py"\ntext = "x = 1"\n'
    path.write_text("# why\n" + block + 'kind = "bool"\nwhy = "A"\n\n' + block + 'why = "B"\n')
    row = {"file": "a.py", "text": "x = 1", "kind": "constant", "change": "1 -> 2", "id": "a.py:1"}
    row |= {"result": "survived", "target": "t"}
    assert why(explanations(path), row) == "B"
    assert why(explanations(path), row | {"text": "x = 2"}) is None
    assert summary([row], explanations(path))["explained"] == 1
    assert tidy(path, [row]) == 1 and [one["why"] for one in explanations(path)] == ["B"]
    assert path.read_text().startswith("# why\n")
