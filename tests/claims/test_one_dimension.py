"""The exact regrets in one dimension, against 40-digit arithmetic."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

from bayesmeta.claims.one_dimension import thompson, threshold

DIGITS = 40
PI = Decimal("3.141592653589793238462643383279502884197169399375")
CASES = [
    (gram, off, wide, low, sigma)
    for sigma in (1e-5, 1e-2, 1.0)
    for gram, off, wide, low in ((37.5, 0.0, 1.0, 1.0), (37.5, 0.2, 51.0, 1.0), (0.3, 2.0, 3.0, 2))
]
LEAST = 0.5


def regret(policy: str, case: tuple[float, ...], steps: int) -> Decimal:
    """E|theta| - E[theta sign(aim)] step by step as it stands, without the stable form."""
    gram, off, wide, low, sigma = map(Decimal, case)
    total = Decimal(0)
    flipped = gram + sigma**2 / wide < Decimal(LEAST) + sigma**2 / low
    for n in range(steps):
        precise = (gram + n) / sigma**2
        v = 1 / (1 / wide + precise)
        of_mean = v * v * precise * (precise * low + 1)
        sd = (of_mean + (v if policy == "thompson" else 0)).sqrt()
        density = (-((off / wide * v / sd) ** 2) / 2).exp() / (2 * PI).sqrt()
        gain = 2 * low * precise * v / sd * density
        sign = -1 if policy == "threshold" and flipped else 1
        total += (2 * low / PI).sqrt() - sign * gain
    return total


@pytest.mark.parametrize("policy", ["thompson", "threshold"])
def test_regret_has_all_its_digits(policy: str) -> None:
    """Where the noise is 1e-5 a step costs 1e-12 of |theta|; it is right to 12 digits even so."""
    for case in CASES:
        gram, *rest = case
        more = (LEAST,) if policy == "threshold" else ()
        play = thompson if policy == "thompson" else threshold
        found = float(play(np.array([gram]), *rest, 3, *more)[0])
        with localcontext() as context:
            context.prec = DIGITS
            wanted = regret(policy, case, 3)
        assert found == pytest.approx(float(wanted), rel=1e-12), case


def test_relative_regret_of_a_task_is_not_rounding() -> None:
    """The difference of two such regrets, 1e-23 where regrets are 1e-12, to three digits."""
    sigma, gram = 1e-5, 37.5
    with localcontext() as context:
        context.prec = DIGITS
        wide, known = (
            regret("thompson", (gram, off, cov, 1.0, sigma), 3) for off, cov in ((0.2, 51), (0, 1))
        )
        wanted = float(wide - known)
    found = [
        float(thompson(np.array([gram]), off, cov, 1.0, sigma, 3)[0])
        for off, cov in ((0.2, 51.0), (0.0, 1.0))
    ]
    assert 1e-24 < abs(wanted) < 1e-22
    assert found[0] - found[1] == pytest.approx(wanted, rel=1e-3)
