"""The checks of the paper's claims: their verdicts, and that each of them can fail."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path

import pytest
from scipy.stats import binom

from bayesmeta.claims import all_claims
from bayesmeta.claims.events import coupon_failure
from bayesmeta.claims.run import BUDGET, POINTS, Checked, check_claims, recorded
from bayesmeta.claims.verdict import Level, Point, at_most, counted, equal, estimated, exact, judge
from tests.helpers import ROOT, run

QUICK = Level(quick=True, seed=0, size=BUDGET / POINTS)
CLAIMS = all_claims()
VIOLATED = {
    "alignment-support",
    "alignment-density",
    "noise-density",
    "shift-bound",
    "aligned-gram",
    "density-ratio",
    "delta-demands",
    "empirical-covariance",
    "term-b",
    "bad-event-moment",
    "theorem-1",
    "prior-dependent-bound",
    "n0-burn-in",
    "theorem-2-step",
    "k2-growth",
    "n0-growth",
    "theorem-2",
    "event-mean-literal",
    "event-covariance-literal",
    "term-c-literal",
    "b-bound-literal",
}
UNDECIDED = {"figure-1a-literal"}


@cache
def found() -> dict[str, Checked]:
    """One quick run of everything."""
    return {one.claim.id: one for one in check_claims(quick=True)}


@pytest.mark.parametrize("name", CLAIMS)
def test_verdict(name: str) -> None:
    """As recorded; a violated claim comes with a counterexample and a remark."""
    verdict = found()[name].verdict
    wanted = "undecided" if name in UNDECIDED else "violated" if name in VIOLATED else "holds"
    assert verdict.verdict == wanted, verdict
    assert (verdict.counterexample is not None) == (name in VIOLATED)
    assert CLAIMS[name].remark or name not in VIOLATED


def test_every_line_of_the_catalogue_has_a_check() -> None:
    """All ids of the catalogue; what is not in it is a correction, a sharpening or a literal
    reading of one that is."""
    catalogue = set((ROOT / "tests" / "data" / "claim_ids.txt").read_text().split())
    assert catalogue <= set(CLAIMS)
    for name in set(CLAIMS) - catalogue:
        base, _, kind = name.rpartition("-")
        assert base in catalogue and kind in ("corrected", "sharp", "literal"), name


@pytest.mark.parametrize(
    ("name", "mutation"), [(name, key) for name, claim in CLAIMS.items() for key in claim.mutations]
)
def test_every_check_can_fail(name: str, mutation: str) -> None:
    """A wrong exponent, a missing factor, a dropped condition: called violated."""
    assert judge(name, CLAIMS[name].mutations[mutation](QUICK)).verdict == "violated"


@pytest.mark.parametrize("name", CLAIMS)
def test_every_claim_has_a_mutation_and_is_deterministic(name: str) -> None:
    """The same seed looks at the same points, whatever else is checked."""
    claim = CLAIMS[name]
    assert claim.mutations and claim.kind in "IDPES" and claim.lines
    assert judge(name, claim.check(QUICK)) == found()[name].verdict


@pytest.mark.parametrize("name", sorted(VIOLATED))
def test_mutations_of_violated_claims_start_where_the_claim_holds(name: str) -> None:
    """The check where the claim holds finds no fault, so it is the mutation that is noticed."""
    where = CLAIMS[name].holds_at
    assert where is not None and judge(name, where(QUICK)).verdict == "holds"


def test_points_are_judged() -> None:
    """Below, above, too close to tell; NaN fails; what cannot fail decides nothing."""
    assert at_most({}, 1.0, 2.0).outcome == "holds"
    assert at_most({}, 1.0, 2.0).slack == pytest.approx(0.5)
    assert at_most({}, 2.0, 1.0).outcome == "violated"
    assert Point({}, math.nan, 1.0).outcome == "violated"
    assert Point({}, 1.0, 1.5, 0.5, 2.0).outcome == "undecided"
    assert equal({}, 0.0, 0.0).outcome == "holds"
    assert judge("x", [exact({}, 0.5, 2.0)]).verdict == "undecided"
    assert judge("x", [exact({}, 0.5, 2.0), exact({"d": 1}, 0.1, 0.2)]).verdict == "holds"
    assert judge("x", [Point({}, 1.0, 1.5, 0.5, 2.0), at_most({}, 0, 1)]).verdict == "undecided"
    bad = judge("x", [at_most({}, 0, 1), at_most({"d": 3}, 2, 1), at_most({"d": 9}, 3, 1)])
    assert bad.verdict == "violated" and bad.counterexample is not None
    assert bad.counterexample["d"] == 3 and bad.counterexample["left"] == 2
    with pytest.raises(ValueError, match="looked nowhere"):
        judge("x", [])


def test_counts_have_exact_intervals() -> None:
    """Clopper-Pearson: the ends are where so few or so many are just unlikely enough."""
    point = counted({}, 7, 100, 0.01, 0.01)
    assert point.outcome == "violated" and point.low is not None and point.high is not None
    assert binom.sf(6, 100, point.low) == pytest.approx(0.005)
    assert binom.cdf(7, 100, point.high) == pytest.approx(0.005)
    assert counted({}, 0, 100, 0.5, 0.01).outcome == "holds"
    assert counted({}, 0, 100, 1e-3, 0.01).outcome == "undecided"
    assert counted({}, 100, 100, 1.0, 0.01).vacuous


def test_estimates_have_t_intervals() -> None:
    """Mean and half width by hand: t with 3 degrees of freedom."""
    import numpy as np

    point = estimated({}, np.array([1.0, 2.0, 3.0, 4.0]), 10.0, 0.05)
    assert point.left == 2.5 and point.outcome == "holds"
    assert point.high == pytest.approx(2.5 + 3.182446 * np.sqrt(5 / 3) / 2)


def test_directions_never_tried() -> None:
    """One direction: (1 - p)^n; two: inclusion and exclusion."""
    assert coupon_failure(1, 0.3, 5) == pytest.approx(0.7**5)
    assert coupon_failure(2, 0.5, 4) == pytest.approx(2 * 0.75**4 - 0.5**4)


def test_recorded_verdicts_are_those_of_today() -> None:
    """All claims, quick and full separately; the same verdicts in both, and no more points than the
    budget was shared among."""
    verdicts = {name: one.verdict.verdict for name, one in found().items()}
    assert verdicts == recorded(quick=True) == recorded(quick=False)
    assert sum(one.verdict.points for one in found().values()) < POINTS


def test_check_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table, JSON, a counterexample where asked for one claim; exit code 1 where a verdict is not
    the recorded one."""
    out = tmp_path / "new" / "claims.json"
    names = ["term-b", "widening"]
    assert run("check", "--only", *names, "--json", str(out)) == 0
    shown = capsys.readouterr().out
    assert "VIOLATED" in shown and "counterexample" in shown
    assert "printed: 1 holds, 1 violated" in shown and "the recorded ones" in shown
    rows = json.loads(out.read_text())
    assert [row["id"] for row in rows] == names
    wanted = {"id", "verdict", "statement", "lines", "slack", "counterexample", "points"}
    assert all(wanted <= set(row) for row in rows)
    assert rows[0]["counterexample"]["d"] >= 1 and rows[1]["counterexample"] is None
    other = {"term-b": "holds", "widening": "holds"}
    monkeypatch.setattr("bayesmeta.claims.run.recorded", lambda quick: other)
    assert run("check", "--only", *names) == 1
    assert "changed: term-b was holds, is violated" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "lemma-42"], "unknown --only 'lemma-42'"),
        (["--seed", "-1"], "--seed must be at least 0"),
        (["--quick", "--full"], "not allowed with"),
    ],
)
def test_bad_checks_are_refused(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, exit code 2."""
    assert run("check", *arguments) == 2
    error = capsys.readouterr().err
    assert words in error and len(error.splitlines()) == 1
