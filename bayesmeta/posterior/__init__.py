"""Hierarchical Bayesian models of (mu_*, Sigma_*): PyMC builders, sampling, diagnostics."""
