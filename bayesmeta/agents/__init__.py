"""How one plays: policies, exploration rules, learners, and the rows made of them."""

from __future__ import annotations

from bayesmeta.lazy import exports

__getattr__, __dir__, __all__ = exports(
    "bayesmeta.agents",
    {
        "agent": ("Agent",),
        "exploration": (
            "Exploration",
            "first_steps",
            "no_exploration",
            "rescue",
            "theoretical_steps",
            "until_eigenvalue",
        ),
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
            "oful",
            "thompson",
            "v_ids",
        ),
        "roster": ("BAYESIAN", "FIGURE_1", "OURS", "ROSTER", "find_agents"),
    },
)
