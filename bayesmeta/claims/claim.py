"""How a claim is declared: beside its check, with keywords.

Equations, sections and theorems are numbered as the paper numbers them. Lemmas of the appendix are
named by their title. In quotations λ_A, λ_min and λ_max stand for the paper's barred symbols: the
lower bound on the eigenvalues of the actions' second moment, and the bounds on those of Σ_*.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Required, TypedDict, Unpack

from bayesmeta.claims.verdict import Level, Point

type Check = Callable[[Level], list[Point]]
type Variant = Check | Mapping[str, Any]
"""Another check, or arguments with which to call the claim's own."""


class Kind(Enum):
    """What sort of statement a claim is; the value is its letter in JSON."""

    IDENTITY = "I"
    INEQUALITY = "D"
    PROBABILITY = "P"
    EXPECTATION = "E"
    GROWTH_RATE = "S"


class Section(Enum):
    """The part of the theory a claim belongs to; the value is its title."""

    EVENTS = "events"
    COVARIANCE_ALIGNMENT = "covariance alignment"
    MEAN_ALIGNMENT = "mean alignment"
    LEAST_SQUARES = "least squares"
    COVARIANCE_ESTIMATION = "covariance estimation"
    PRIOR_ESTIMATION = "prior estimation"
    THEOREMS = "theorems"
    EXPERIMENT = "experiment"
    MATRICES = "auxiliary matrix lemmas"
    TAILS = "auxiliary tail bounds"


class Group(Enum):
    """Whose statement a claim is; the value is the heading under which it is counted."""

    PRINTED = "printed"
    READING = "in another reading"
    OURS = "ours"


@dataclass(frozen=True)
class Claim:
    """A statement, where the paper has it, and how it is checked.

    ``quote`` is the statement as printed, ``statement`` what is checked. ``mutations`` are wrong
    versions of it by name; the check must call each of them violated. ``remark`` says why the claim
    holds, or where its proof goes wrong. A claim that is violated has ``holds_at``, a check at
    points where it does hold: its mutations start from there, so that a mutation is what is
    noticed. It also says what ``survives`` of the results that use it, and what the two ``sides``
    of its counterexample are.

    At most one of ``corrects``, ``sharpens`` and ``reading_of`` is the id of the printed claim
    that this one corrects, improves, or reads in another way: without a condition that every use
    of it has, or with other numbers held fixed.

    ``made_precise``: the paper has a sentence without a number or a statement that could fail, so
    what is checked, its thresholds included, is ours; no such claim counts as printed.

    ``proof`` says where a proof without a gap is: "the paper", a section of
    analyses/claims/proofs.md ("ours"), or the work that is cited. ``constant`` names the argument
    of the check that is the printed constant, and its printed value; how far it may be cut before
    the check notices is measured with it (``teeth``). One that is printed as 1 is a factor of
    something: ``factor_of`` says of what, where that is not the whole bound.
    """

    id: str
    kind: Kind
    section: Section
    where: str
    quote: str
    statement: str
    check: Check
    mutations: Mapping[str, Check]
    lines: str = ""
    """Lines of the paper's LaTeX source, a note for developers."""
    remark: str = ""
    holds_at: Check | None = None
    survives: str = ""
    sides: str = ""
    corrects: str = ""
    sharpens: str = ""
    reading_of: str = ""
    made_precise: bool = False
    proof: str = ""
    constant: tuple[str, float] | None = None
    factor_of: str = "the bound"

    @property
    def about(self) -> str:
        """The id of the claim that this one is a version of, or its own."""
        return self.corrects or self.sharpens or self.reading_of or self.id

    @property
    def group(self) -> Group:
        if self.reading_of:
            return Group.READING
        ours = self.corrects or self.sharpens or self.made_precise
        return Group.OURS if ours else Group.PRINTED


_DECLARED: dict[str, dict[str, Claim]] = {}
"""The claims of each module, by id, in the order of their declaration."""


class Declaration(TypedDict, total=False):
    """The fields of ``Claim`` that are handed on as they are given."""

    id: Required[str]
    statement: Required[str]
    kind: Kind
    section: Section
    where: str
    quote: str
    lines: str
    remark: str
    survives: str
    sides: str
    corrects: str
    sharpens: str
    reading_of: str
    made_precise: bool
    proof: str
    constant: tuple[str, float]
    factor_of: str


def claim[C: Callable[..., list[Point]]](
    *,
    mutations: Mapping[str, Variant],
    holds_at: Variant | None = None,
    **declared: Unpack[Declaration],
) -> Callable[[C], C]:
    """Declare the function below as the check of a claim, with the fields of ``Claim``.

    A mutation, and ``holds_at``, is another check or the arguments to call this one with. A
    correction, a sharpening and another reading take ``kind``, ``section``, ``where``, ``quote``
    and ``lines`` from the printed claim, which is declared above it, unless they are given.
    """

    def declare(check: C) -> C:
        def variant(given: Variant) -> Check:
            return partial(check, **given) if isinstance(given, Mapping) else given

        here = _DECLARED.setdefault(check.__module__, {})
        if declared["id"] in here:
            raise ValueError(f"claim {declared['id']} is declared twice in {check.__module__}")
        fields: dict[str, Any] = {**_inherited(declared, here), **declared}
        here[declared["id"]] = Claim(
            check=check,
            mutations={name: variant(given) for name, given in mutations.items()},
            holds_at=None if holds_at is None else variant(holds_at),
            **fields,
        )
        return check

    return declare


def _inherited(declared: Declaration, here: Mapping[str, Claim]) -> dict[str, Any]:
    """What a version of a printed claim takes over from it."""
    relations = ("corrects", "sharpens", "reading_of")
    bases = [str(value) for name, value in declared.items() if name in relations]
    if len(bases) > 1 or any(base not in here for base in bases):
        raise ValueError(
            f"claim {declared['id']} must be a version of one claim that is declared above it in "
            f"the same module, got {' and '.join(bases)}"
        )
    names = ("kind", "section", "where", "quote", "lines")
    return {name: getattr(here[base], name) for base in bases for name in names}


def declared_in(module: str) -> dict[str, Claim]:
    """The claims of an imported module, by id, in the order of their declaration."""
    return _DECLARED.get(module, {})
