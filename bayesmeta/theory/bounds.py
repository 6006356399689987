"""What the theorems promise in a regime, and from where on they promise anything."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from bayesmeta.checks import InputError
from bayesmeta.theory import constants as c
from bayesmeta.theory.regime import LARGEST, Bounds, Regime, check_regime, within_floats
from bayesmeta.theory.theorems import (
    check_delta,
    prior_dependent_corrected,
    prior_dependent_meta,
    prior_dependent_task,
    theorem_1,
    theorem_2,
)

if TYPE_CHECKING:
    from bayesmeta.environment import TaskFamily


def paper_regime(dim: int = 5, tasks: int = 10_000, radius: float = 0.25) -> Regime:
    """The regime of ``paper_family``, the paper's experiment, in closed form: mu_* is 2
    everywhere, Sigma_* has the eigenvalues 0.2 and 0.2 + 0.8d, actions are uniform in a ball."""
    with within_floats(dim=dim, tasks=tasks, radius=radius):
        highest, norm = 0.2 + 0.8 * dim, 2 * math.sqrt(dim)
        action_min = radius**2 / (dim + 2)
        if not action_min:
            raise ZeroDivisionError
    lowest = 0.2 if dim > 1 else highest
    bounds = Bounds(radius, action_min, lowest, highest, norm)
    return Regime(dim, 200, tasks, 1.0, bounds)


def regime_of(family: TaskFamily, tasks: int) -> Regime:
    """The regime of a family that is met ``tasks`` times."""
    return check_regime(Regime(family.dim, family.horizon, tasks, family.noise_sd, family.told()))


def smallest_horizon(regime: Regime) -> int:
    """The smallest T with tau < T, the other numbers as they are."""
    return _climb(replace(regime, horizon=1), lambda r: (c.tau_of(r) + 1, r.tasks)).horizon


def smallest_tasks(regime: Regime, corrected: bool = False) -> int:
    """The smallest N with N >= N_0, the other numbers as they are."""
    found = _climb(replace(regime, tasks=2), lambda r: (r.horizon, math.ceil(c.n_0(r, corrected))))
    return found.tasks


def smallest_both(regime: Regime, corrected: bool = False) -> tuple[int, int]:
    """The least T and N with tau < T and N >= N_0 at once, whatever T and N are given: no pair with
    a smaller T or a smaller N has both."""
    found = _climb(
        replace(regime, horizon=1, tasks=2),
        lambda r: (c.tau_of(r) + 1, math.ceil(c.n_0(r, corrected))),
    )
    return found.horizon, found.tasks


def smallest_informative(regime: Regime, corrected: bool = False) -> tuple[int, int]:
    """The least T and N with tau < T where Theorem 2's bound is ``informative``."""
    found = _climb(
        replace(regime, horizon=1, tasks=2),
        lambda r: (c.tau_of(r) + 1, math.floor(_per_single(r, corrected)) + 1),
    )
    return found.horizon, found.tasks


def informative(regime: Regime, corrected: bool = False) -> bool:
    """Whether Theorem 2's bound is below the trivial one, k_2 sqrt(N) + N_0 < N.

    An algorithm that learns nothing between tasks has a regret of N R_sing, and no larger relative
    regret. The bound k_2 sqrt(N) R + N_0 R_sing, where R is the regret with the known prior, is
    below that for R = R_sing if and only if k_2 sqrt(N) + N_0 < N; a smaller R asks for less.
    """
    return _per_single(regime, corrected) < regime.tasks


def _per_single(regime: Regime, corrected: bool) -> float:
    """Theorem 2's bound over R_sing, where R = R_sing: k_2 sqrt(N) + N_0."""
    regular = c.k_2(regime, corrected) * math.sqrt(regime.tasks)
    return regular + math.ceil(c.n_0(regime, corrected))


def _climb(regime: Regime, needs: Callable[[Regime], tuple[int, int]]) -> Regime:
    """The least T and N, from those of ``regime`` on, that are no less than what they need.

    What is needed (tau, N_0, k_2) never falls as T or N grows. So raising T and N to what is
    needed, again and again, never passes the least pair and stops there. Bisection would be wrong:
    tau is rounded up, so a larger N may again be too small.
    """
    with within_floats(**regime.numbers()):
        while True:
            horizon, tasks = needs(regime)
            more = replace(
                regime, horizon=max(horizon, regime.horizon), tasks=max(tasks, regime.tasks)
            )
            if more == regime:
                return regime
            if max(more.horizon, more.tasks) > LARGEST:
                raise InputError(
                    f"no T and N up to {LARGEST:.0e} meet the conditions; relax a constant"
                )
            regime = more


class Line(NamedTuple):
    """A constant with what it is; ``corrected`` is what is proved in its place: larger where the
    printed one is too small, smaller (sharper) where less will do."""

    name: str
    value: float
    what: str
    corrected: float | None = None

    @property
    def sharper(self) -> bool:
        """Whether the corrected value is an improvement, not a correction."""
        return self.corrected is not None and self.corrected < self.value


def describe_theory(regime: Regime, actions: int, delta: float | None = None) -> list[Line]:
    """Every constant in a regime. ``delta`` (1/N) is that of c_xi, c_1, c_bad, M and k_1, and so of
    Theorem 1; f_m and f_s are those of Lemma M-QB before task N; Theorem 2 has delta = 1/N."""
    given = {} if delta is None else {"delta": check_delta(delta)}
    with within_floats(**regime.numbers(), **given):
        used = given.get("delta", 1 / regime.tasks)
        lines = [*_of_theorem_1(regime, actions, used), *_of_theorem_2(regime, actions)]
        if not all(math.isfinite(x) for line in lines for x in (line.value, line.corrected or 0)):
            raise OverflowError
    return lines


def _of_theorem_1(regime: Regime, actions: int, delta: float) -> list[Line]:
    n, tau, widening = regime.tasks, c.tau_of(regime), c.widening_constant_of(regime)
    told = (tau, c.f_m(regime, n), c.f_s(regime, n), delta)
    told_by = regime.bounds.action_min, regime.bounds.prior_max
    eta = 1 / (regime.dim * n * regime.horizon)
    radius = c.covariance_radius(regime.dim, regime.noise_sd, *told_by, n, eta)
    task = prior_dependent_task(regime, actions)
    better = prior_dependent_corrected(regime, actions)
    return [
        Line("tau", tau, "steps of exploration in a task, eq. (8)"),
        Line("c_w", widening, "widening constant, below eq. (12)"),
        Line("widening", radius, "what eq. (12) adds to every eigenvalue before task N"),
        Line("c_s", c.c_s(regime), "2 sigma^2 / (lambda_min^2 lambda_A)"),
        Line("c_xi", c.c_xi(regime, delta), "sigma sqrt(5 ln(dT/delta))"),
        Line("c_1", c.c_1(regime, delta), "2 / lambda_min ln(d^2 T/delta)"),
        Line("c_bad", c.c_bad(regime, delta), "22 a (m + sqrt(4 lambda_max ln(d^2 T/delta)))"),
        Line("f_m", told[1], "E_m: |mean error| <= sqrt(f_m delta)"),
        Line("f_s", told[2], "E_s: |covariance error| <= sqrt(f_s delta)"),
        Line(
            "M",
            c.largest_m(regime, *told),
            "Theorem 1 asks for delta <= 1/M",
            c.largest_m(regime, *told, corrected=True),
        ),
        Line(
            "M-tilde",
            c.m_tilde_of(regime),
            "free of delta: N >= M-tilde is enough for delta = 1/N <= 1/M",
            c.m_tilde_of(regime, corrected=True),
        ),
        Line(
            "k_1",
            c.k_1(regime, *told),
            "Theorem 1: relative regret <= k_1 R + c_bad delta / sqrt(d)",
            c.k_1(regime, *told, corrected=True),
        ),
        Line(
            "task bound",
            task,
            "R: regret of Thompson Sampling with the true prior, one task (below Theorem 1)",
            better,
        ),
        Line(
            "Theorem 1",
            theorem_1(regime, *told, task),
            "its bound with the task bound for R",
            theorem_1(regime, *told, better, corrected=True),
        ),
    ]


def _of_theorem_2(regime: Regime, actions: int) -> list[Line]:
    meta = prior_dependent_meta(regime, actions)
    better = prior_dependent_corrected(regime, actions)
    return [
        Line(
            "k_2",
            c.k_2(regime),
            "Theorem 2: relative regret <= k_2 sqrt(N) R + N_0 R_sing",
            c.k_2(regime, corrected=True),
        ),
        Line(
            "N_0",
            math.ceil(c.n_0(regime)),
            "tasks of exploration, Theorem 2",
            math.ceil(c.n_0(regime, corrected=True)),
        ),
        Line(
            "meta bound",
            meta,
            "what stands for the task bound below Theorem 2, with N tasks in the logarithm",
            better,
        ),
        Line(
            "Theorem 2",
            theorem_2(regime, meta, 0.0),
            "its bound with the meta bound for R, but for N_0 R_sing",
            theorem_2(regime, better, 0.0, corrected=True),
        ),
    ]


def doubtful(regime: Regime, actions: int) -> list[str]:
    """Which printed constants are too small here for what is claimed with them, after
    ``bayesmeta check``; empty where none is known to be."""
    found = []
    if regime.noise_sd < 1:
        found.append("sigma < 1: M, k_1, k_2 and N_0 as printed are too small (claim theorem-1)")
    if c.n_0(regime) < c.burn_in(regime.dim, regime.horizon):
        least = math.ceil(c.burn_in(regime.dim, regime.horizon))
        found.append(f"N_0 < {least}, the first n of Lemma M-QB (claim n0-burn-in)")
    proved = prior_dependent_corrected(regime, actions)
    for name, bracket in (("task", prior_dependent_task), ("meta", prior_dependent_meta)):
        if bracket(regime, actions) < proved:
            found.append(
                f"the {name} bound lacks a^2 and is less than can be proved for this "
                "radius (claim prior-dependent-bound)"
            )
    return found


def vacuous(regime: Regime, corrected: bool = False, delta: float | None = None) -> list[str]:
    """Which conditions of the theorems fail here; empty where all hold."""
    n, tau, found = regime.tasks, c.tau_of(regime), []
    if tau >= regime.horizon:
        sign = ">" if tau > regime.horizon else ">="
        found.append(f"tau {sign} T: {tau:,} steps of exploration in tasks of {regime.horizon:,}")
    used = 1 / n if delta is None else check_delta(delta)
    m = c.largest_m(regime, tau, c.f_m(regime, n), c.f_s(regime, n), used, corrected)
    if delta is None and m > n:
        found.append(f"delta = 1/N > 1/M: M = {count(math.ceil(m))}, N = {count(n)}")
    elif delta is not None and delta * m > 1:
        found.append(f"delta > 1/M: Theorem 1 asks for delta <= {1 / m:.3g}, not {delta:.3g}")
    first = math.ceil(c.n_0(regime, corrected))
    if first > n:
        found.append(f"N_0 > N: {count(first)} tasks of exploration of {n:,}")
    return found


class Promise(NamedTuple):
    """What the theorems promise in a regime, and from which T and N on."""

    vacuous: list[str]
    informative: bool
    tasks: int
    """The smallest N >= N_0 at the given T, or at the smallest with tau < T where that is more."""
    both: tuple[int, int]
    informative_from: tuple[int, int]


def promise(regime: Regime, corrected: bool = False, delta: float | None = None) -> Promise:
    """With the printed constants, or the corrected ones."""
    longer = replace(regime, horizon=max(smallest_horizon(regime), regime.horizon))
    with within_floats(**regime.numbers()):
        why = vacuous(regime, corrected, delta)
        return Promise(
            why,
            not why and informative(regime, corrected),
            smallest_tasks(longer, corrected),
            smallest_both(regime, corrected),
            smallest_informative(regime, corrected),
        )


def count(number: int) -> str:
    """A whole number to be read: all its digits, unless there are very many."""
    return f"{number:,}" if number < 10**15 else f"{number:.3g}"
