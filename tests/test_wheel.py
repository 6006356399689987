"""The package as users get it: a wheel in a fresh environment, started in an empty folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

import bayesmeta as bm
from bayesmeta.report.figure1 import FILES
from tests.helpers import ROOT

pytestmark = pytest.mark.slow

ALONE = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
"""An environment in which nothing points to the checkout."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def python(wheel: Path) -> Path:
    """The interpreter of an environment with the wheel and this environment's dependencies.

    The folder of the dependencies is added by a path file, so that path files in it, such as that
    of an editable install, are not followed.
    """
    place = wheel.parent / "environment"
    venv.create(place, with_pip=False)
    (site,) = place.glob("lib/python*/site-packages")
    ZipFile(wheel).extractall(site)
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    for compiled in (ROOT / "bayesmeta").rglob(
        "*.nb[ic]"
    ):  # this tests files, not compiling, which takes a minute
        to = site / compiled.relative_to(ROOT)
        to.parent.mkdir(exist_ok=True)
        shutil.copy(compiled, to)
    return place / "bin" / "python"


def start(python: Path, folder: Path, *arguments: str) -> str:
    """Run Python in a folder; returns what it printed."""
    done = subprocess.run(
        [str(python), *arguments], cwd=folder, env=ALONE, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_the_wheel_holds_all_files(wheel: Path) -> None:
    """Every file of the package that git knows, data and templates among them."""
    listing = ["git", "-C", str(ROOT), "ls-files", "bayesmeta"]
    known = subprocess.run(listing, capture_output=True, text=True, check=True).stdout.split()
    held = set(ZipFile(wheel).namelist())
    assert {name for name in known if (ROOT / name).exists()} <= held
    kinds = {Path(name).suffix for name in held}
    assert {".py", ".json", ".nc", ".j2", ".typed", ".csv"} <= kinds


def test_the_fresh_environment_is_used(python: Path, tmp_path: Path) -> None:
    """The package that is imported is that of the wheel, with its version."""
    code = "import bayesmeta; print(bayesmeta.__file__, bayesmeta.__version__)"
    file, version = start(python, tmp_path, "-c", code).split()
    assert Path(file).is_relative_to(python.parent.parent) and version == bm.__version__


def test_reproduce(python: Path, tmp_path: Path) -> None:
    """Two short runs, with processes: the same summary as here."""
    tiny = ["-m", "bayesmeta.cli", "reproduce", "--runs", "2", "--tasks", "20", "--jobs", "2"]
    start(python, tmp_path, *tiny)
    out = tmp_path / "results" / "figure1"
    assert {path.name for path in out.iterdir()} == set(FILES)
    record = bm.simulate(
        bm.paper_family(), [*bm.agents.FIGURE_1, *bm.agents.OURS], tasks=20, runs=2
    )
    assert json.loads((out / "summary.json").read_text()) == bm.summarise(record)


def test_figure_1_has_the_recorded_rows(python: Path, tmp_path: Path) -> None:
    """Joined to a record of the paper's size, they are those of analyses/."""
    recorded = ROOT / "analyses" / "figure1"
    code = (
        "import json, sys\n"
        "import bayesmeta as bm\n"
        "from bayesmeta.report.figure1 import with_recorded\n"
        "shown, _ = with_recorded(bm.read_record(sys.argv[1]))\n"
        "print(json.dumps(bm.summarise(shown)))\n"
    )
    shown = json.loads(start(python, tmp_path, "-c", code, str(recorded / "figure1.nc")))
    assert shown == json.loads((recorded / "summary.json").read_text())
    assert [name for name, row in shown.items() if row["recorded"]] == list(bm.agents.BAYESIAN)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["agents"], "HB-mean-TS"),
        (["theory"], "widening constant"),
        (["check", "--only", "posterior-recursion"], "posterior-recursion"),
        (["study", "list"], "figure1-bayes"),
        (["study", "run", "bayes-vs-moment-fits", "--jobs", "1"], "3 of 3 cells done"),
    ],
)
def test_commands(python: Path, tmp_path: Path, arguments: list[str], word: str) -> None:
    """Each in an empty folder, without a word about analyses/."""
    shown = start(python, tmp_path, "-m", "bayesmeta.cli", *arguments)
    assert word in shown and "analyses/" not in shown


def test_fit(python: Path, tmp_path: Path) -> None:
    """A table of the user's own."""
    rows = [f"{task},{x},{2 * x + task + (x % 3)}" for task in range(6) for x in range(1, 9)]
    (tmp_path / "data.csv").write_text("task,x,reward\n" + "\n".join(rows) + "\n")
    options = ["--task", "task", "--reward", "reward", "--features", "x", "--intercept", "--json"]
    shown = start(python, tmp_path, "-m", "bayesmeta.cli", "fit", "data.csv", *options)
    assert "status" in json.loads(shown)
