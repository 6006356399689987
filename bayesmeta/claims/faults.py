"""The root causes of what is wrong, and which claim rests on which.

A fault is one slip of the paper; the claims it breaks are symptoms. ``USES`` is the paper's own
line of argument, from lemmas to theorems: what a proof cites.
"""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """A slip, the claims that it breaks, what survives, and what to put in its place."""

    name: str
    what: str
    breaks: tuple[str, ...]
    survives: str
    repair: str


FAULTS = (
    Fault(
        "support",
        "Assumption 1 asks for a density that falls with the norm only within its support, so a "
        "support that is not the whole ball is admitted; alignment moves actions out of it",
        ("alignment-support", "alignment-density", "theorem-1", "theorem-2"),
        "both theorems for densities that fall on the whole ball, and for truncated Gaussians",
        "say “on the whole ball” in Assumption 1",
    ),
    Fault(
        "lost sigma",
        "the density of the noise, eq. (43), and eq. (48) lose sigma², so M and k_1 change with "
        "the units of rewards",
        ("noise-density", "shift-bound", "density-ratio", "delta-demands", "theorem-1"),
        "Theorem 1 as printed for sigma ≥ 1, and repaired for all sigma, for laws that fall on the "
        "whole ball and truncated Gaussians",
        "5 ln(dT/δ) for c_ξ² in M, k_1, k_2, N_0",
    ),
    Fault(
        "V for V^K",
        "E_v bounds V from below, the proof uses it for V^K = V - B, and drops it too early",
        ("aligned-gram", "shift-bound"),
        "everything: the lost factor is at most 1.19, and 6 has room for it",
        "a factor 1 - c_s √(f_s δ)/d; keep E_v until the ratio is bounded",
    ),
    Fault(
        "repeated rows",
        "a bound for independent rows is applied to n - 1 copies of one vector",
        ("term-b", "empirical-covariance-literal"),
        "Lemma M-QB with all its constants",
        "s2 (d + 2√(d L) + 2L)/(n-1), L = ln(1/η), for term B",
    ),
    Fault(
        "moment threshold",
        "the proof on the bad event takes √(2q) for the threshold 2q of Z², q = ln(d²T/δ)",
        ("bad-event-moment",),
        "the lemma on the bad event, and c_bad",
        "1 + (2q + 1)/d for 4√(2q)",
    ),
    Fault(
        "a² in the bracket",
        "the second logarithm of eqs. (7) and (14) lacks a²",
        ("prior-dependent-bound",),
        "the bracket of eq. (7) for a ≤ 2√d",
        "ln(1 + λ_max a²T/(dσ²)), and √2 for 2√2",
    ),
    Fault(
        "burn-in",
        "N_0 leaves out the condition of Lemma M-QB, n > 10d + 4 ln(16dT)",
        ("n0-burn-in",),
        "N_0 as printed where 5d + 2 ln(4dT) ≤ 225",
        "the larger of the two",
    ),
    Fault(
        "dropped sum",
        "the last line of eq. (83) drops the sum of c_bad/(√d (n-1))",
        ("theorem-2-step",),
        "Theorem 2 without the sum, where two or more actions are on offer",
        "nothing there; else c_bad (1 + ln N)/√d",
    ),
    Fault(
        "reading of growth",
        "rates in d with λ_A a constant, which forces a² ≥ d λ_A; with a fixed they are larger",
        ("k2-growth-radius-fixed", "n0-growth-radius-fixed", "demonstration-radius-fixed"),
        "d^(3/2) and d³ with λ_A fixed",
        "d^(5/2) and d⁵ with a fixed",
    ),
)

USES: dict[str, tuple[str, ...]] = {
    "theorem-2": ("theorem-1", "lemma-mqb", "n0-burn-in", "theorem-2-step"),
    "prior-dependent-bound": (),
    "k2-growth-radius-fixed": (),
    "n0-growth-radius-fixed": (),
    "demonstration-radius-fixed": (),
    "theorem-1": ("good-event-product", "bad-event", "delta-demands", "event-theta"),
    "good-event-product": ("alignment-density", "jacobian-bound", "density-ratio", "event-noise"),
    "alignment-density": ("alignment-norm", "alignment-support"),
    "alignment-support": ("alignment-norm",),
    "jacobian-bound": ("jacobian-determinant", "alignment-positive"),
    "density-ratio": ("shift-bound", "noise-density", "aligned-gram", "noise-jacobian"),
    "shift-bound": ("aligned-gram", "alignment-mean"),
    "bad-event": ("bad-event-moment",),
    "lemma-mqb": ("event-gram-meta", "event-mean", "event-covariance", "lemma-mqb-threshold"),
    "event-covariance": ("covariance-error", "widening"),
    "covariance-error": ("term-a", "term-b", "term-c", "covariance-unbiased"),
    "term-a": ("empirical-covariance", "subgaussian-task"),
    "term-b": ("empirical-covariance", "subgaussian-mean"),
    "term-c": ("matrix-hoeffding",),
    "covariance-unbiased": ("ols-unbiased", "ols-covariance"),
    "event-mean": ("subgaussian-mean", "vector-tail"),
    "event-gram-meta": ("event-gram",),
    "event-gram": ("matrix-chernoff",),
}
"""What the proof of a claim cites, of the claims that matter to the theorems; what cites none of
them, and that none cites, stand alone."""


def faults_of(claim_id: str) -> tuple[Fault, ...]:
    """The faults that break a claim."""
    return tuple(fault for fault in FAULTS if claim_id in fault.breaks)
