"""The regimes in which claims are looked at: alike in all directions."""

from __future__ import annotations

from bayesmeta.theory.regime import Regime


def isotropic(
    *,
    dim: int,
    horizon: int,
    tasks: int,
    noise_sd: float,
    radius: float = 1.0,
    action_min: float | None = None,
    prior: float = 1.0,
    mean_norm: float = 0.0,
) -> Regime:
    """Sigma_* = ``prior`` I, and actions uniform in the ball, lambda_A = a^2 / (d + 2), unless
    another ``action_min`` is given."""
    return Regime.of(
        dim=dim,
        horizon=horizon,
        tasks=tasks,
        noise_sd=noise_sd,
        radius=radius,
        action_min=radius * radius / (dim + 2) if action_min is None else action_min,
        prior_min=prior,
        prior_max=prior,
        mean_norm=mean_norm,
    )
