"""One false-alarm budget for all stochastic tests of the suite.

A stochastic test states its null hypothesis in its docstring and asks here for its size. The
sizes add up to ``BUDGET``: with everything right, the whole suite fails once in a thousand seeds
(and seeds are fixed). A test that makes k comparisons divides its size by k.
"""

BUDGET = 1e-3

STOCHASTIC = (
    "actions/second-moment",
    "actions/radial-law",
    "environment/theta-law",
    "policies/thompson-law",
    "exploration/uniform",
    "moment/unbiased",
    "fit/unbiased-moment",
    "fit/unbiased-split",
    "models/quadrature",
    "models/draws",
    "models/prior-draws",
    "calibration/size",
    "calibration/harness",
)


def size(name: str) -> float:
    """The size of one stochastic test; every one has the same share."""
    if name not in STOCHASTIC:
        raise KeyError(f"{name} is not in the budget; add it to STOCHASTIC")
    return BUDGET / len(STOCHASTIC)
