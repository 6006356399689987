"""The checks of the paper's claims: their verdicts, and that each of them can fail."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import subprocess
import sys
from functools import cache, partial
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

from bayesmeta.claims import all_claims, correction_of
from bayesmeta.claims.claim import Claim, Group, Kind, Section, claim, declared_in
from bayesmeta.claims.events import coupon_failure
from bayesmeta.claims.faults import FAULTS, USES
from bayesmeta.claims.run import (
    POINTS,
    Checked,
    Teeth,
    accepted,
    check_claims,
    recorded,
    teeth,
    verdict_of,
)
from bayesmeta.claims.verdict import PROVED, Level, Point, Verdict, judge
from tests.claims.points import FILE, QUICK, WHOLE, numbers
from tests.helpers import ROOT, run

RECORDED = json.loads(FILE.read_text())
CLAIMS = all_claims()
VIOLATED = {
    "alignment-support",
    "alignment-density",
    "noise-density",
    "shift-bound",
    "aligned-gram",
    "density-ratio",
    "delta-demands",
    "empirical-covariance-literal",
    "term-b",
    "bad-event-moment",
    "theorem-1",
    "prior-dependent-bound",
    "n0-burn-in",
    "theorem-2-step",
    "k2-growth-radius-fixed",
    "n0-growth-radius-fixed",
    "demonstration-radius-fixed",
    "bad-event-literal",
    "ols-covariance-literal",
    "covariance-unbiased-literal",
    "theorem-2",
    "event-mean-literal",
    "event-covariance-literal",
    "term-c-literal",
    "b-bound-literal",
    "best-scenario-literal",
}
UNDECIDED = {"figure-1a-literal"}
UNTESTABLE = {"theorem-2-corrected"}


@cache
def looked_at(name: str) -> list[Point]:
    """The points of one quick check of a claim."""
    return CLAIMS[name].check(QUICK)


def alone(name: str) -> Verdict:
    """The verdict of one quick check."""
    return verdict_of(CLAIMS[name], looked_at(name))


@cache
def found() -> dict[str, Checked]:
    """One quick run of everything."""
    return {one.claim.id: one for one in check_claims(quick=True)}


@pytest.mark.parametrize("name", CLAIMS)
def test_verdict(name: str) -> None:
    """As recorded; a violated claim comes with a counterexample and a remark.

    So are the number of points, their sides and where they lie: the verdict alone would not notice
    most slips. They are sums of logarithms, so the tolerance is relative in every point.
    """
    verdict = alone(name)
    wanted = {
        **dict.fromkeys(UNDECIDED, "undecided"),
        **dict.fromkeys(VIOLATED, "violated"),
        **dict.fromkeys(UNTESTABLE, PROVED),
    }
    assert verdict.verdict == wanted.get(name, "holds"), verdict
    assert (verdict.counterexample is not None) == (name in VIOLATED)
    assert CLAIMS[name].remark or name not in VIOLATED
    now, then = numbers(looked_at(name)), RECORDED[name]
    assert [now[key] for key in WHOLE] == [then[key] for key in WHOLE]
    assert now == pytest.approx(then, rel=1e-7, abs=1e-6)


def test_every_line_of_the_catalogue_has_a_check() -> None:
    """The printed claims are those of the catalogue; all others are a version of one of them, or
    of a sentence that we made precise, which counts as ours."""
    catalogue = set((ROOT / "tests" / "data" / "claim_ids.txt").read_text().split())
    assert {name for name, one in CLAIMS.items() if one.group is Group.PRINTED} == catalogue
    precise = {name for name, one in CLAIMS.items() if one.made_precise}
    assert precise == {"bias-reduced", "best-scenario", "similar-to-ours"}
    assert all(CLAIMS[name].group is Group.OURS for name in precise)
    assert {one.about for one in CLAIMS.values()} == catalogue | precise


def test_the_order_and_the_groups_are_the_recorded_ones() -> None:
    """Of the catalogue of all claims, as the recorded run has it."""
    rows = json.loads((ROOT / "analyses" / "claims" / "claims.json").read_text())
    assert [(row["id"], row["group"], row["section"], row["kind"]) for row in rows] == [
        (one.id, one.group.value, one.section.value, one.kind.value) for one in CLAIMS.values()
    ]
    assert [row["corrects"] for row in rows] == [one.corrects for one in CLAIMS.values()]


@pytest.mark.parametrize("name", CLAIMS)
def test_every_claim_says_where_it_stands(name: str) -> None:
    """An id, a kind, a place in the paper that needs no LaTeX source, and a quotation."""
    one = CLAIMS[name]
    assert one.id == name and isinstance(one.kind, Kind) and isinstance(one.section, Section)
    assert one.quote and one.statement and one.lines and one.mutations
    assert re.search(r"eqs?\. \(\d+\)|Section \d|Appendix [A-F]|Experiments|Theorem \d", one.where)
    shown = (one.where, one.quote, one.statement, one.remark, one.survives, one.sides)
    assert not any(re.search(r"\blines? \d", text) for text in shown)


def test_violated_claims_are_corrected_or_say_what_survives() -> None:
    """A violated claim says what survives and what its counterexample compares; its correction, if
    it has one, is found by the field."""
    assert all(CLAIMS[name].survives and CLAIMS[name].sides for name in VIOLATED)
    better = correction_of("term-b")
    assert better is not None and better.id == "term-b-corrected"
    assert (better.where, better.quote) == (CLAIMS["term-b"].where, CLAIMS["term-b"].quote)
    assert correction_of("term-a") is None


SUFFIXES = ("-corrected", "-sharp", "-literal")


def test_nothing_parses_an_id() -> None:
    """What a claim corrects is a field: no module, test or report takes an id apart or puts one
    together."""
    for folder in ("bayesmeta", "tests", "analyses"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                text = node.value if isinstance(node, ast.Constant) else None
                found = text in SUFFIXES and path != Path(__file__)
                assert not found, f"{path}, line {node.lineno}: {text}"  # type: ignore[attr-defined]


def declare(**fields: Any) -> Claim:
    """A claim declared here, with an id of its own."""

    @claim(
        **{
            "kind": Kind.IDENTITY,
            "section": Section.EVENTS,
            "where": "eq. (1)",
            "quote": "0 = 0",
            "statement": "0 = 0",
            "mutations": {"1 for 0": {"left": 1.0}},
            **fields,
        }
    )
    def check(level: Level, left: float = 0.0) -> list[Point]:
        return [Point({}, left, 0.5)]

    return declared_in(__name__)[fields["id"]]


def test_declarations() -> None:
    """Mutations are arguments of the check or other checks; versions inherit the place; a claim
    that is declared twice, or a version of nothing, is refused."""
    base = declare(id="base", holds_at={"left": 0.25})
    assert judge("base", base.check(QUICK)).verdict == "holds"
    assert judge("base", base.mutations["1 for 0"](QUICK)).verdict == "violated"
    assert base.holds_at is not None and base.holds_at(QUICK)[0].left == 0.25
    assert (base.group, base.about) == (Group.PRINTED, "base")
    other = declare(id="better", corrects="base", quote="1 = 1", mutations={"base": base.check})
    assert (other.group, other.about, other.quote) == (Group.OURS, "base", "1 = 1")
    assert other.mutations["base"] is base.check
    assert declare(id="literal", reading_of="base").group is Group.READING
    assert declare(id="sharper", sharpens="base").group is Group.OURS
    assert declare(id="precise", made_precise=True).group is Group.OURS
    with pytest.raises(ValueError, match="claim base is declared twice"):
        declare(id="base")
    with pytest.raises(ValueError, match=r"claim x must be a version of one claim .*, got nothing"):
        declare(id="x", corrects="nothing")
    with pytest.raises(ValueError, match="got base and base"):
        declare(id="x", corrects="base", sharpens="base")


@pytest.mark.parametrize(
    ("name", "mutation"), [(name, key) for name, one in CLAIMS.items() for key in one.mutations]
)
def test_every_check_can_fail(name: str, mutation: str) -> None:
    """A wrong exponent, a missing factor, a dropped condition: called violated."""
    assert judge(name, CLAIMS[name].mutations[mutation](QUICK)).verdict == "violated"


@pytest.mark.parametrize("name", CLAIMS)
def test_every_check_is_deterministic(name: str) -> None:
    """The same seed looks at the same points, whatever else is checked."""
    assert alone(name) == found()[name].verdict


@pytest.mark.parametrize("name", sorted(VIOLATED))
def test_mutations_of_violated_claims_start_where_the_claim_holds(name: str) -> None:
    """The check where the claim holds finds no fault, so it is the mutation that is noticed."""
    where = CLAIMS[name].holds_at
    assert where is not None and judge(name, where(QUICK)).verdict == "holds"


def test_every_printed_violation_has_a_root_cause() -> None:
    """Violated claims belong to a fault, but for conditions that are merely not named; what a fault
    breaks is violated; and the graph of what rests on what has no circle."""
    broken = {name for fault in FAULTS for name in fault.breaks}
    assert broken <= VIOLATED
    printed = {name for name in VIOLATED if CLAIMS[name].group is Group.PRINTED}
    assert printed <= broken
    assert VIOLATED - broken == {
        "event-mean-literal",
        "event-covariance-literal",
        "term-c-literal",
        "b-bound-literal",
        "bad-event-literal",
        "ols-covariance-literal",
        "covariance-unbiased-literal",
        "best-scenario-literal",
    }
    graph = {name: set(uses) for name, uses in USES.items()}
    assert set(TopologicalSorter(graph).static_order()) <= set(CLAIMS)
    assert printed <= {*graph, *(one for uses in graph.values() for one in uses)}


def test_bounds_on_probabilities_name_their_constant() -> None:
    """So that their teeth are a constant, not a ratio of probabilities; the printed value is the
    default of the check, which is what is called without arguments."""
    for one in CLAIMS.values():
        if one.constant is not None:
            name, printed = one.constant
            assert inspect.signature(one.check).parameters[name].default == printed
        elif one.kind is Kind.PROBABILITY and one.id not in VIOLATED:
            assert all(point.rounding for point in looked_at(one.id)), one.id


def test_teeth() -> None:
    """The smallest constant that is still accepted: of a claim with a constant by cutting it, of
    one without by its tightest point, of equalities what rounding may take."""
    found = {
        name: teeth(CLAIMS[name], alone(name), QUICK)
        for name in ("event-theta", "term-c", "theorem-1-corrected", "kronecker", "term-b")
    }
    assert found["event-theta"] is not None and found["event-theta"].printed == 2
    least = found["event-theta"].accepts
    check = partial(CLAIMS["event-theta"].check, QUICK)
    assert judge("x", check(factor=least)).verdict == "holds"  # type: ignore[call-arg]
    assert judge("x", check(factor=0.98 * least)).verdict == "violated"  # type: ignore[call-arg]
    assert found["term-c"] is not None and found["term-c"].accepts > 0.9
    assert found["theorem-1-corrected"] is not None
    assert 0.5 < found["theorem-1-corrected"].accepts < 18 / 22
    assert found["kronecker"] == Teeth(None, 1e-6) and found["term-b"] is None
    assert [accepted(one) for one in (None, Teeth(50.0, 1.234), Teeth(1.0, 0.5))] == [
        "",
        "1.23 for 50",
        "0.5 of the bound",
    ]
    assert accepted(Teeth(None, 1e-8)) == "± 1e-08" and accepted(Teeth(1.0, 0.0)) == "anything"
    assert accepted(Teeth(1.0, 0.5, "the exponent")) == "0.5 of the exponent"
    inside = {one.id: one.factor_of for one in CLAIMS.values() if one.factor_of != "the bound"}
    assert all(CLAIMS[name].constant is not None for name in inside)
    assert inside["jacobian-bound"] == "c_s" and len(inside) == 5


def test_directions_never_tried() -> None:
    """One direction: (1 - p)^n; two: inclusion and exclusion."""
    assert coupon_failure(1, 0.3, 5) == pytest.approx(0.7**5)
    assert coupon_failure(2, 0.5, 4) == pytest.approx(2 * 0.75**4 - 0.5**4)
    assert coupon_failure(1, 1.0, 5) == 0 and coupon_failure(2, 1.0, 3) == pytest.approx(0.25)


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
    assert "VIOLATED" in shown and "counterexample" in shown and "line" not in shown
    assert "Appendix D.3.3" in shown and "Σ/(n-1)‖ ≤ 32 (2σ²" in " ".join(shown.split())
    assert "corrected: --only term-b-corrected" in shown
    assert "printed: 1 holds, 1 violated" in shown and "the recorded ones" in shown
    rows = json.loads(out.read_text())
    assert [row["id"] for row in rows] == names
    wanted = "id group section kind where quote statement lines remark survives sides proof"
    wanted += " corrects sharpens reading_of verdict why slack loose_by worst counterexample"
    wanted += " others points simulated tolerance teeth"
    assert all(list(row) == wanted.split() for row in rows)
    assert rows[0]["counterexample"]["d"] >= 1 and rows[1]["counterexample"] is None
    other = {"term-b": "holds", "widening": "holds"}
    monkeypatch.setattr("bayesmeta.claims.run.recorded", lambda quick: other)
    assert run("check", "--only", *names) == 1
    assert "changed: term-b was holds, is violated" in capsys.readouterr().out


def test_a_terminal_without_greek_letters() -> None:
    """Letters of a quotation that cannot be shown are replaced; the command does not fail."""
    command = [sys.executable, "-m", "bayesmeta", "check", "--only", "widening"]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, text=True
    )
    assert done.returncode == 0 and "above eq. (12), Section 4" in done.stdout, done.stderr


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
