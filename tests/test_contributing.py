"""The recipes of CONTRIBUTING.md, followed."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.claims.claim import declared_in
from bayesmeta.claims.verdict import Level, judge
from tests.helpers import ROOT, Problem, recipes

TEXT = (ROOT / "CONTRIBUTING.md").read_text()
RECIPES = ["Add an estimator", "Add an agent", "Add a claim", "Add a study"]


@pytest.fixture
def made() -> ModuleType:
    """What the code of all recipes leaves behind."""
    return recipes()


def test_every_recipe_is_numbered_and_has_code() -> None:
    """Steps 1 to 3 and a block each; the whole page stays a page."""
    parts = TEXT.split("\n## ")
    assert [part.split("\n")[0] for part in parts[1:]] == RECIPES
    for part in parts[1:]:
        assert re.findall(r"^(\d)\. ", part, flags=re.MULTILINE) == ["1", "2", "3"]
        assert part.count("```python") == 1
    assert len(TEXT.split("\n")) < 180


def test_the_files_it_names_exist() -> None:
    """Every path in code style is there, in the checkout or in the package."""
    names = re.findall(r"`([\w./-]+(?:\.py|\.txt|/))`", TEXT)
    assert len(names) > 10
    for name in names:
        places = [ROOT, ROOT / "bayesmeta", ROOT / "tests" / "agents"]
        assert "NAME" in name or any((place / name).exists() for place in places), name


def test_an_estimator(made: ModuleType) -> None:
    """It is an estimate of a prior in the right place, short tasks or not; test_units has it."""
    found = made.fit_plain(Problem(0, 2, 400, most=30).stats, None)
    assert isinstance(found, bm.PriorEstimate) and found.passed_over > 0
    assert np.abs(found.prior.mean).max() < 0.3  # thetas are standard normal
    assert found.noise_sd == pytest.approx(1.0, abs=0.1)


def test_an_agent(made: ModuleType) -> None:
    """It played beside its reference, and came nearer to the truth; test_learners has it."""
    record = made.record
    assert {"Plain-TS", "KTS", "KTS_rescue"} == set(record.agent.values.tolist())
    errors = record.mean_error.sel(agent="Plain-TS").isel(run=0).values
    assert errors[-1] < errors[0]


def test_a_claim(made: ModuleType) -> None:
    """It holds, tightly, and its mutation is noticed."""
    claim = declared_in("recipes")["example"]
    level = Level(quick=True, seed=0, size=1e-8)
    assert judge(claim.id, claim.check(level)).verdict == "holds"
    for mutation in claim.mutations.values():
        assert judge(claim.id, mutation(level)).verdict == "violated"


def test_a_study(made: ModuleType, tmp_path: Path) -> None:
    """It runs, and its collected Dataset has the study's dimensions."""
    assert bm.run_study(made.study, tmp_path, jobs=1).complete
    found = bm.collect(made.study, tmp_path)
    assert dict(found.sizes) == {"n": 2, "run": 5}
    assert float(abs(found.error.sel(n=1000)).max()) < float(abs(found.error.sel(n=10)).max())
