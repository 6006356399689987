"""Every claim the paper prints, and a check of each."""

from __future__ import annotations

from importlib import import_module

from bayesmeta.claims.claim import Claim, declared_in

MODULES = (
    "events",
    "recursion",
    "aligning",
    "support",
    "jacobian",
    "noise",
    "ratio",
    "demands",
    "least_squares",
    "subgaussian",
    "bias",
    "empirical",
    "terms",
    "covariance_error",
    "estimation",
    "lemma_mqb",
    "single",
    "bad_event",
    "prior_dependent",
    "meta_constants",
    "growth",
    "demonstration",
    "meta",
    "experiment",
    "rivals",
    "kronecker",
    "eigenvalues",
    "orders",
    "tails",
)
"""The modules of this folder that declare claims, in the order of the catalogue."""


def all_claims() -> dict[str, Claim]:
    """The claims of all modules, by id."""
    found: dict[str, Claim] = {}
    for name in MODULES:
        module = import_module(f"bayesmeta.claims.{name}")
        found |= declared_in(module.__name__)
    return found


def correction_of(claim_id: str) -> Claim | None:
    """The claim that corrects the one with this id, if there is one."""
    return next((one for one in all_claims().values() if one.corrects == claim_id), None)
