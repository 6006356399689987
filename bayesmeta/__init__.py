"""Metalearning linear bandits by prior update: agents, estimators, and checks of every claim.

The names below are those most users type. The rest is reached by folder: ``bm.agents`` (policies,
exploration rules, learners), ``bm.estimators``, ``bm.posterior``, ``bm.simulation``, ``bm.runner``,
``bm.theory``, ``bm.claims``.
"""

from __future__ import annotations

from bayesmeta.lazy import exports

_load, __dir__, __all__ = exports(
    "bayesmeta",
    {
        "checks": ("InputError",),
        "gaussian": ("GaussianPrior",),
        "statistics": ("TaskStatistics",),
        "data.shipped": ("load_data",),
        "tables.design": ("tabulate",),
        "actions": ("FiniteSet", "UniformBall", "WholeBall", "unit_vectors"),
        "densities": ("RadialDensity", "TruncatedGaussian"),
        "environment": ("Bounds", "Setting", "TaskFamily", "paper_family"),
        "families": ("arms_family", "linear_family"),
        "pricing": ("Prices", "pricing_family"),
        "agents": ("Agent", "Player", "ROSTER"),
        "estimators.estimate": ("PriorEstimate", "Status"),
        "estimators.fit": ("fit_prior", "task_posteriors"),
        "estimators.metadata": ("MetadataModel", "with_metadata"),
        "fitted.fit": ("fit",),
        "fitted.posterior": ("FittedPosterior",),
        "fitted.prior": ("FittedPrior",),
        "fitted.rows": ("NewTaskWarning",),
        "posterior.defaults": ("default_prior",),
        "posterior.priors": (
            "InverseWishart",
            "KnownCovariance",
            "LKJ",
            "PriorWarning",
        ),
        "posterior.model": ("build_model",),
        "posterior.sampling": ("FitWarning", "sample_posterior"),
        "posterior.diagnostics": ("trustworthy",),
        "posterior.reweighted": ("FewDrawsWarning",),
        "posterior.predictive": ("add_log_likelihood", "add_predictive", "add_theta"),
        "simulation.simulate": ("simulate",),
        "simulation.records": ("read_record", "write_record"),
        "simulation.summaries": ("summarise",),
        "calibration.answers": ("EstimateWithIntervals",),
        "calibration.lab": ("calibrate",),
        "calibration.measures": ("measures",),
        "report.figures.lab": ("plot_coverage", "plot_coverage_by_tasks"),
        "report.figures.forecasts": ("plot_next_task",),
        "report.figures.biases": ("plot_biases",),
        "report.figures.prior": ("plot_prior",),
        "report.figures.tasks": ("plot_tasks",),
        "report.figures.played": ("plot_errors", "plot_regret"),
        "report.figures.compare": ("plot_compare",),
        "report.figures.verdicts": ("plot_claims",),
        "runner.study": ("Study", "grid"),
        "runner.run": ("run_study", "study_status"),
        "runner.collect": ("collect",),
        "runner.progress": ("report_progress",),
    },
    folders=(
        "agents",
        "calibration",
        "claims",
        "estimators",
        "fitted",
        "posterior",
        "report",
        "runner",
        "simulation",
        "studies",
        "tables",
        "theory",
    ),
)


def __getattr__(name: str) -> object:
    """Load a public name, or a folder, when it is first used."""
    if name == "__version__":
        from importlib.metadata import version

        return version("bayesmeta")
    return _load(name)
