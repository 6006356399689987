"""What the theorems promise in a regime, and from where on they promise anything."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import TYPE_CHECKING, NamedTuple

from bayesmeta.checks import InputError, real, whole
from bayesmeta.theory import constants as c
from bayesmeta.theory.constants import Regime

if TYPE_CHECKING:
    from bayesmeta.environment import TaskFamily

LARGEST = 10**300
"""No horizon or number of tasks beyond this is looked for: floating point ends soon after."""


@contextmanager
def within_floats(**numbers: float) -> Iterator[None]:
    """An error of arithmetic on the way becomes one of input, which names the number furthest from
    1."""
    try:
        yield
    except InputError:
        raise
    except (ArithmeticError, ValueError):
        name, value = max(numbers.items(), key=lambda one: abs(math.log(one[1] or 1)))
        shown = f"{value:.3g}" if value < LARGEST else f"of {LARGEST:.0e} or more"
        raise InputError(
            f"the constants cannot be computed in floating point with {name} {shown}; bring it "
            "nearer to 1 (or choose other units for rewards or actions)"
        ) from None


def check_regime(regime: Regime) -> Regime:
    """Refuse numbers that the assumptions exclude."""
    for name, least in (("dim", 1), ("tasks", 2), ("horizon", 1)):
        whole(name, getattr(regime, name), least=least)
    for name in ("noise_sd", "radius", "action_min", "prior_min", "prior_max"):
        real(name, getattr(regime, name), above=0.0)
    real("mean_norm", regime.mean_norm, least=0.0)
    if regime.prior_min > regime.prior_max:
        raise InputError(
            f"prior_min ({regime.prior_min:g}) must not exceed prior_max ({regime.prior_max:g})"
        )
    with within_floats(**as_numbers(regime)):
        most = regime.radius**2 / regime.dim
    if regime.action_min > most * (1 + 1e-9):
        raise InputError(
            f"action_min ({regime.action_min:g}) is impossible: actions of norm at most "
            f"{regime.radius:g} in {regime.dim} dimensions have lambda_min(Sigma_A) <= "
            f"radius^2 / dim = {most:g}"
        )
    return regime


def check_delta(delta: float, name: str = "delta") -> float:
    """Refuse what is no probability between 0 and 1."""
    number = real(name, delta, above=0.0)
    if number >= 1:
        raise InputError(f"{name} must be less than 1, got {delta!r}")
    return number


def paper_regime(dim: int = 5, tasks: int = 10_000, radius: float = 0.25) -> Regime:
    """The regime of ``paper_family``, Section 6, in closed form: mu_* is 2 everywhere, Sigma_* has
    the eigenvalues 0.2 and 0.2 + 0.8d, and actions are uniform in a ball."""
    with within_floats(dim=dim, tasks=tasks, radius=radius):
        highest, norm = 0.2 + 0.8 * dim, 2 * math.sqrt(dim)
        action_min = radius**2 / (dim + 2)
        if not action_min:
            raise ZeroDivisionError
    lowest = 0.2 if dim > 1 else highest
    return Regime(dim, tasks, 200, 1.0, radius, action_min, lowest, highest, norm)


def regime_of(family: TaskFamily, tasks: int) -> Regime:
    """The regime of a family that is met ``tasks`` times."""
    told = family.told()
    return check_regime(
        Regime(family.dim, tasks, family.horizon, family.noise_sd, told.radius, told.action_min,
               told.prior_min, told.prior_max, told.mean_norm)
    )  # fmt: skip


def theorem_1(
    regime: Regime, tau: float, fm: float, fs: float, delta: float, known: float,
    corrected: bool = False,
) -> float:  # fmt: skip
    """The bound of Theorem 1 on relative regret, k_1 E[R] + c_bad delta / sqrt(d), where
    ``known`` is the regret of the agent that knows the prior after its exploration."""
    check_delta(delta)
    first = c.k_1(regime, tau, fm, fs, delta, corrected) * known
    return first + c.c_bad(regime, delta) * delta / math.sqrt(regime.dim)


def theorem_2(regime: Regime, known: float, single: float, corrected: bool = False) -> float:
    """The bound of Theorem 2 on the relative regret of N tasks, k_2 sqrt(N) E[R] + N_0 R_sing;
    corrected: and c_bad (1 + ln N) / sqrt(d), see the claim theorem-2-corrected."""
    regular = c.k_2(regime, corrected) * math.sqrt(regime.tasks) * known
    exploring = math.ceil(c.n_0(regime, corrected)) * single
    return regular + exploring + (c.bad_tasks(regime) if corrected else 0.0)


def prior_dependent_task(regime: Regime, actions: int) -> float:
    """The bracket of the prior-dependent bound below Theorem 1: the regret of Thompson Sampling
    with the true prior and ``actions`` actions."""
    width = regime.prior_max * regime.radius**2
    first = 4 * math.sqrt(
        width / math.log1p(width / regime.noise_sd**2) * math.log(4 * actions * regime.horizon**2)
    )
    second = math.sqrt(
        0.5 * regime.dim * regime.horizon
        * math.log1p(regime.prior_max * regime.horizon / regime.noise_sd**2)
    )  # fmt: skip
    return first * second + math.sqrt(2 * width)


def prior_dependent_corrected(regime: Regime, actions: int) -> float:
    """The bracket with a^2 where the printed one lacks it, and with a smaller constant: see the
    claim prior-dependent-bound-corrected, which has the proof."""
    width = regime.prior_max * regime.radius**2
    x = width / regime.noise_sd**2
    first = math.sqrt(2 * width * math.log(4 * actions * regime.horizon**2) / math.log1p(x))
    second = math.sqrt(regime.dim * regime.horizon * math.log1p(x * regime.horizon / regime.dim))
    return first * second + math.sqrt(width) / (4 * math.sqrt(2 * math.pi) * regime.horizon)


def prior_dependent_meta(regime: Regime, actions: int) -> float:
    """The bracket of the prior-dependent bound below Theorem 2."""
    width, steps = regime.prior_max * regime.radius**2, regime.tasks * regime.horizon
    first = math.sqrt(
        8 * width * math.log(4 * actions * steps**2) / math.log1p(width / regime.noise_sd**2)
    )
    spread = math.log1p(regime.prior_max * regime.horizon / regime.noise_sd**2)
    return first * math.sqrt(spread * regime.dim * regime.horizon)


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

    Who learns nothing and plays every task by itself has a regret of N R_sing, and no larger
    relative regret. The bound k_2 sqrt(N) R + N_0 R_sing is below that, where the regret R of who
    knows the prior is R_sing, if and only if k_2 sqrt(N) + N_0 < N; a smaller R asks for less. The
    c_bad (1 + ln N) / sqrt(d) of the corrected bound, of lower order, is not a multiple of either
    and is left out.
    """
    return _per_single(regime, corrected) < regime.tasks


def _per_single(regime: Regime, corrected: bool) -> float:
    """Theorem 2's bound over R_sing, where R = R_sing: k_2 sqrt(N) + N_0."""
    regular = c.k_2(regime, corrected) * math.sqrt(regime.tasks)
    return regular + math.ceil(c.n_0(regime, corrected))


def _climb(regime: Regime, needs: Callable[[Regime], tuple[int, int]]) -> Regime:
    """The least T and N, from those of ``regime`` on, that are no less than what they need.

    What is needed (tau, N_0, k_2) never falls as T or N grows. So raising them to what is needed,
    again and again, never passes the least pair, and comes to rest there; the numbers that do need
    not be all from there on (tau is rounded up), which is why this is no bisection.
    """
    with within_floats(**as_numbers(regime)):
        while True:
            horizon, tasks = needs(regime)
            more = replace(
                regime, horizon=max(horizon, regime.horizon), tasks=max(tasks, regime.tasks)
            )
            if more == regime:
                return regime
            if max(more.horizon, more.tasks) > LARGEST:
                raise InputError(f"no T and N up to {LARGEST:.0e} will do; relax a constant")
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
    with within_floats(**as_numbers(regime), **given):
        used = given.get("delta", 1 / regime.tasks)
        lines = [*_of_theorem_1(regime, actions, used), *_of_theorem_2(regime, actions)]
        if not all(math.isfinite(x) for line in lines for x in (line.value, line.corrected or 0)):
            raise OverflowError
    return lines


def _of_theorem_1(regime: Regime, actions: int, delta: float) -> list[Line]:
    n, variance, tau = regime.tasks, regime.estimate_variance, c.tau_of(regime)
    told = (tau, c.f_m(regime, n), c.f_s(regime, n), delta)
    radius = 50 * variance * math.sqrt(
        (5 * regime.dim + 2 * math.log(regime.dim * n * regime.horizon)) / (n - 1)
    )  # fmt: skip
    task = prior_dependent_task(regime, actions)
    better = prior_dependent_corrected(regime, actions)
    return [
        Line("tau", tau, "steps of exploration in a task, eq. (8)"),
        Line("c_w", 50 * variance, "widening constant, below eq. (12)"),
        Line("widening", radius, "what eq. (12) adds to every eigenvalue before task N"),
        Line("c_s", c.c_s(regime), "2 sigma^2 / (lambda_min^2 lambda_A)"),
        Line("c_xi", c.c_xi(regime, delta), "sigma sqrt(5 ln(dT/delta))"),
        Line("c_1", c.c_1(regime, delta), "2 / lambda_min ln(d^2 T/delta)"),
        Line("c_bad", c.c_bad(regime, delta), "22 a (m + sqrt(4 lambda_max ln(d^2 T/delta)))"),
        Line("f_m", told[1], "E_m: |mean error| <= sqrt(f_m delta)"),
        Line("f_s", told[2], "E_s: |covariance error| <= sqrt(f_s delta)"),
        Line("M", c.largest_m(regime, *told), "Theorem 1 asks for delta <= 1/M",
             c.largest_m(regime, *told, corrected=True)),
        Line("M-tilde", c.m_tilde_of(regime),
             "free of delta: N >= M-tilde is enough for delta = 1/N <= 1/M",
             c.m_tilde_of(regime, corrected=True)),
        Line("k_1", c.k_1(regime, *told), "Theorem 1: relative regret <= k_1 R + c_bad delta / "
             "sqrt(d)", c.k_1(regime, *told, corrected=True)),
        Line("task bound", task,
             "R: regret of Thompson Sampling with the true prior, one task (below Theorem 1)",
             better),
        Line("Theorem 1", theorem_1(regime, *told, task), "its bound with the task bound for R",
             theorem_1(regime, *told, better, corrected=True)),
    ]  # fmt: skip


def _of_theorem_2(regime: Regime, actions: int) -> list[Line]:
    meta = prior_dependent_meta(regime, actions)
    better = prior_dependent_corrected(regime, actions)
    return [
        Line("k_2", c.k_2(regime), "Theorem 2: relative regret <= k_2 sqrt(N) R + N_0 R_sing",
             c.k_2(regime, corrected=True)),
        Line("N_0", math.ceil(c.n_0(regime)), "tasks of exploration, Theorem 2",
             math.ceil(c.n_0(regime, corrected=True))),
        Line("bad tasks", 0.0, "what Theorem 2 leaves out, c_bad (1 + ln N) / sqrt(d)",
             c.bad_tasks(regime)),
        Line("meta bound", meta,
             "what stands for the task bound below Theorem 2, with N tasks in the logarithm",
             better),
        Line("Theorem 2", theorem_2(regime, meta, 0.0),
             "its bound with the meta bound for R, but for N_0 R_sing",
             theorem_2(regime, better, 0.0, corrected=True)),
    ]  # fmt: skip


def doubtful(regime: Regime, actions: int) -> list[str]:
    """Which printed constants are too small here for what is claimed with them, after
    ``bayesmeta check``; empty where none is known to be."""
    found = []
    if regime.noise_sd < 1:
        found.append("sigma < 1: M, k_1, k_2 and N_0 as printed are too small (claim theorem-1)")
    if c.n_0(regime) < c.burn_in(regime.dim, regime.horizon):
        least = math.ceil(c.burn_in(regime.dim, regime.horizon))
        found.append(f"N_0 < {least}, from where Lemma M-QB speaks (claim n0-burn-in)")
    proved = prior_dependent_corrected(regime, actions)
    for name, bracket in (("task", prior_dependent_task), ("meta", prior_dependent_meta)):
        if bracket(regime, actions) < proved:
            found.append(f"the {name} bound lacks a^2 and is less than can be proved for this "
                         "radius (claim prior-dependent-bound)")  # fmt: skip
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
    with within_floats(**as_numbers(regime)):
        why = vacuous(regime, corrected, delta)
        return Promise(
            why, not why and informative(regime, corrected), smallest_tasks(longer, corrected),
            smallest_both(regime, corrected), smallest_informative(regime, corrected),
        )  # fmt: skip


def count(number: int) -> str:
    """A whole number to be read: all its digits, unless there are very many."""
    return f"{number:,}" if number < 10**15 else f"{number:.3g}"


def as_numbers(regime: Regime) -> dict[str, float]:
    """Plain data."""
    return {field.name: getattr(regime, field.name) for field in fields(regime)}
