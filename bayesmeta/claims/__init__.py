"""Every claim the paper prints, and a check of each."""

from __future__ import annotations

from importlib import import_module

from bayesmeta.claims.verdict import Claim

MODULES = (
    "events",
    "aligning",
    "jacobian",
    "noise",
    "least_squares",
    "terms",
    "estimation",
    "single",
    "theorems",
    "meta",
    "experiment",
    "matrices",
    "tails",
)
"""The modules of this folder that have ``CLAIMS``."""


def all_claims() -> dict[str, Claim]:
    """The claims of all modules, by id."""
    modules = [import_module(f"bayesmeta.claims.{name}") for name in MODULES]
    return {claim.id: claim for module in modules for claim in module.CLAIMS}
