"""How one plays: policies, exploration rules, learners, and the rows made of them."""

from __future__ import annotations

from bayesmeta.lazy import exports

__getattr__, __dir__, __all__ = exports(
    "bayesmeta.agents",
    {
        "agent": ("Agent",),
        "exploration": (
            "Exploration",
            "each_action_once",
            "every_step",
            "first_steps",
            "no_exploration",
            "rescue",
            "theoretical_steps",
            "two_ends",
            "until_eigenvalue",
        ),
        "centre": ("Centre",),
        "commit": ("ArmMoments", "Commit"),
        "covariates": ("Covariates",),
        "decorrelated": ("Decorrelated",),
        "hyper": ("Hyper",),
        "metadata": ("Metadata",),
        "moment_mean": ("MomentMean",),
        "learners": (
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
        "player": ("Player",),
        "policies": (
            "Policy",
            "bayes_ucb",
            "frequentist_ids",
            "greedy",
            "knowledge_gradient",
            "oful",
            "thompson",
            "two_rhc",
            "v_ids",
        ),
        "rivals": ("RIVALS", "Rival"),
        "roster": ("BAYESIAN", "FIGURE_1", "OURS", "ROSTER", "find_agents"),
    },
)
