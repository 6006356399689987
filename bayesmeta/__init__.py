"""Metalearning linear bandits by prior update: agents, estimators, and checks of every claim."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "gaussian": ("GaussianPrior",),
    "statistics": ("TaskStatistics",),
    "actions": (
        "FiniteSet",
        "RadialDensity",
        "TruncatedGaussian",
        "UniformBall",
        "WholeBall",
        "unit_vectors",
    ),
    "environment": ("Bounds", "Setting", "Task", "TaskFamily", "paper_family"),
    "agents.exploration": (
        "Exploration",
        "first_steps",
        "no_exploration",
        "rescue",
        "theoretical_steps",
        "until_eigenvalue",
    ),
    "agents.policies": (
        "Policy",
        "bayes_ucb",
        "frequentist_ids",
        "greedy",
        "oful",
        "thompson",
        "v_ids",
    ),
    "estimators.estimate": ("PriorEstimate", "Status"),
    "estimators.fit": ("fit_prior", "task_posteriors"),
    "agents.learners": (
        "KNOWN",
        "KNOWN_MEAN",
        "UNKNOWN",
        "Finished",
        "Given",
        "Learner",
        "Likelihood",
        "Moments",
        "Posterior",
    ),
    "posterior.priors": (
        "InverseWishart",
        "KnownCovariance",
        "LKJ",
        "PriorWarning",
        "default_prior",
    ),
    "posterior.model": ("build_model",),
    "posterior.sampling": ("FitWarning", "sample_posterior"),
    "posterior.diagnostics": ("Trust", "trustworthy"),
    "posterior.predictive": ("add_log_likelihood", "add_predictive", "add_theta"),
    "agents.agent": ("Agent",),
    "agents.roster": ("BAYESIAN", "FIGURE_1", "OURS", "ROSTER", "find_agents"),
    "agents.player": ("Player",),
    "simulation.simulate": ("simulate",),
    "runner.study": ("Study", "grid"),
    "runner.report": ("Interrupted", "Report"),
    "runner.run": ("run_study", "study_status"),
    "runner.collect": ("collect",),
    "runner.progress": ("progress_bar", "report_progress"),
    "simulation.records": ("read_record", "thin", "write_record"),
    "simulation.summaries": ("summarise",),
    "checks": ("InputError",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: importing the package alone loads nothing."""
    if name == "__version__":
        from importlib.metadata import version

        return version("bayesmeta")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'bayesmeta' has no attribute {name!r}")
    value = getattr(import_module(f"bayesmeta.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
