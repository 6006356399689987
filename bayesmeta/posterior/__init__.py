"""PyMC's side: hierarchical models of (mu_*, Sigma_*), sampling, and whether to trust the draws."""

from __future__ import annotations

from bayesmeta.lazy import exports

__getattr__, __dir__, __all__ = exports(
    "bayesmeta.posterior",
    {
        "diagnostics": ("Trust", "trustworthy"),
        "model": ("build_model",),
        "op": ("task_likelihood",),
        "predictive": ("add_log_likelihood", "add_predictive", "add_theta"),
        "defaults": ("default_prior",),
        "priors": ("InverseWishart", "KnownCovariance", "LKJ", "PriorWarning"),
        "sampling": ("FitWarning", "sample_posterior"),
    },
)
