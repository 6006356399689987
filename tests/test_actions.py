"""Action sets: where their points lie, their laws, their second moments, what they refuse."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.stats import chi2, kstest, norm

from bayesmeta.actions import (
    ActionSet,
    FiniteSet,
    UniformBall,
    WholeBall,
    unit_vectors,
)
from bayesmeta.checks import InputError
from bayesmeta.densities import RadialDensity, TruncatedGaussian
from bayesmeta.environment import TaskFamily
from bayesmeta.gaussian import GaussianPrior
from tests.helpers import size

Law = UniformBall | TruncatedGaussian | RadialDensity
UNEVEN = np.array([[0.3, 0.1, 0.0], [0.1, 0.2, 0.05], [0.0, 0.05, 0.1]])


def falling(r: np.ndarray) -> np.ndarray:
    return np.exp(-r)


def rising(r: np.ndarray) -> np.ndarray:
    return r


LAWS: dict[str, Callable[..., Law]] = {
    "ball": lambda **k: UniformBall(3, 0.25, 20, **k),
    "ball, one dimension": lambda **k: UniformBall(1, 2.0, 4, **k),
    "ball, tiny": lambda **k: UniformBall(4, 0.01, 3, **k),
    "ball, huge": lambda **k: UniformBall(4, 1000.0, 3, **k),
    "Gaussian, cut by a wide ball": lambda **k: TruncatedGaussian(3, 1.5, 5, cov=UNEVEN, **k),
    "Gaussian, cut by a small ball": lambda **k: TruncatedGaussian(3, 0.25, 5, cov=UNEVEN, **k),
    "Gaussian, one dimension": lambda **k: TruncatedGaussian(1, 1.0, 2, **k),
    "Gaussian, hardly cut": lambda **k: TruncatedGaussian(2, 1000.0, 2, **k),
    "Gaussian, tiny": lambda **k: TruncatedGaussian(2, 0.01, 2, **k),
    "falling density": lambda **k: RadialDensity(3, 2.0, 5, density=falling, **k),
    "falling density, tiny": lambda **k: RadialDensity(3, 0.01, 5, density=falling, **k),
    "falling density, huge": lambda **k: RadialDensity(3, 1000.0, 5, density=falling, **k),
    "falling density, one dimension": lambda **k: RadialDensity(1, 2.0, 5, density=falling, **k),
    "rising density": lambda **k: RadialDensity(2, 1.0, 5, density=rising, **k),
}
each_law = pytest.mark.parametrize("name", LAWS)


@each_law
@pytest.mark.parametrize("redraw", ["step", "task"])
def test_draws_have_their_shape_and_lie_in_the_ball(name: str, redraw: str) -> None:
    """(horizon, d, K) where sets are drawn at each step, (1, d, K) where once a task."""
    law = LAWS[name](redraw=redraw)
    sets = law.draw(np.random.default_rng(0), 50)
    assert sets.shape == (50 if redraw == "step" else 1, law.dim, law.count)
    assert sets.flags.c_contiguous and sets.dtype == np.float64
    lengths = np.linalg.norm(sets, axis=1)
    assert lengths.max() <= law.radius * (1 + 1e-12) and lengths.min() > 0
    assert len(np.unique(sets[:, 0])) == sets[:, 0].size  # no action is on offer twice


@pytest.mark.parametrize("name", [name for name in LAWS if name != "rising density"])
def test_a_task_fixed_set_violates_assumption_1(name: str) -> None:
    """Drawn once a task, exploration steps are not independent; drawn at each step, they are."""
    assert "fixed within a task" in str(LAWS[name](redraw="task").violation())
    assert LAWS[name](redraw="step").violation() is None


def worst_z(points: np.ndarray, second_moment: np.ndarray) -> tuple[float, int]:
    """The largest |z| of the first and second empirical moments, and how many there are."""
    n, d = points.shape
    values = [points[:, i] for i in range(d)]
    expected = [0.0] * d
    for i in range(d):
        for j in range(i + 1):
            values.append(points[:, i] * points[:, j])
            expected.append(float(second_moment[i, j]))
    z = [
        (value.mean() - mean) / (value.std(ddof=1) / math.sqrt(n))
        for value, mean in zip(values, expected, strict=True)
    ]
    return float(np.abs(z).max()), len(z)


@each_law
def test_second_moment_against_draws(name: str) -> None:
    """Null: E[A] = 0 and E[A A'] = second_moment(). z tests, Bonferroni over entries and laws."""
    law = LAWS[name]()
    points = law.draw(np.random.default_rng(1), 40_000 // law.count)
    points = points.transpose(0, 2, 1).reshape(-1, law.dim)
    z, count = worst_z(points, law.second_moment())
    assert z < norm.isf(size("actions/second-moment") / len(LAWS) / count / 2)


@each_law
def test_second_moment_test_has_power(name: str) -> None:
    """A second moment 4% off, about a^2 / (d + 2) with d + 2 miscounted, is rejected."""
    law = LAWS[name]()
    points = law.points(np.random.default_rng(2), 100_000)
    z, count = worst_z(points, 1.04 * law.second_moment())
    assert z > norm.isf(size("actions/second-moment") / len(LAWS) / count / 2)


def falling_cdf(dim: int, radius: float) -> Callable[[np.ndarray], np.ndarray]:
    """The distribution of |A| for the density exp(-|A|), by quadrature."""

    def mass(to: float) -> float:
        return float(quad(lambda r: r ** (dim - 1) * math.exp(-r), 0, to, epsabs=0)[0])

    total = mass(radius)
    return lambda r: np.array([mass(x) / total for x in r])


RADII: dict[str, tuple[Law, Callable[[np.ndarray], np.ndarray]]] = {
    "ball": (UniformBall(5, 0.25, 1), lambda r: (r / 0.25) ** 5),
    "ball, one dimension": (UniformBall(1, 2.0, 1), lambda r: r / 2),
    "Gaussian": (
        TruncatedGaussian(4, 1.5, 1, cov=0.5 * np.eye(4)),
        lambda r: chi2.cdf(r**2 / 0.5, 4) / chi2.cdf(1.5**2 / 0.5, 4),
    ),
    "Gaussian, small ball": (
        TruncatedGaussian(4, 0.2, 1),
        lambda r: chi2.cdf(r**2, 4) / chi2.cdf(0.04, 4),
    ),
    "falling density": (RadialDensity(3, 2.0, 1, density=falling), falling_cdf(3, 2.0)),
    "rising density": (RadialDensity(2, 1.0, 1, density=rising), lambda r: r**3),
}


@pytest.mark.parametrize("name", RADII)
def test_law_of_the_radius(name: str) -> None:
    """Null: |A| has the exact distribution. Kolmogorov-Smirnov, Bonferroni over the laws."""
    law, cdf = RADII[name]
    radii = np.linalg.norm(law.points(np.random.default_rng(3), 4000), axis=1)
    level = size("actions/radial-law") / len(RADII)
    assert kstest(radii, cdf).pvalue > level
    # the law of one dimension more is told apart
    wrong = (radii / law.radius) ** ((law.dim + 1) / law.dim) * law.radius
    assert kstest(wrong, cdf).pvalue < level


def test_uniform_ball_second_moment() -> None:
    """a^2 / (d + 2) I, the whole ball alike."""
    for dim, radius in ((1, 1.0), (5, 0.25), (30, 1000.0)):
        expected = radius**2 / (dim + 2) * np.eye(dim)
        np.testing.assert_allclose(UniformBall(dim, radius, 3).second_moment(), expected)
        np.testing.assert_allclose(WholeBall(dim, radius).second_moment(), expected)


@pytest.mark.parametrize("dim", [1, 2, 5, 20])
@pytest.mark.parametrize("radius", [0.01, 0.25, 1.0, 1000.0])
@pytest.mark.parametrize("variance", [0.01, 1.0, 1e4])
def test_isotropic_truncated_gaussian(dim: int, radius: float, variance: float) -> None:
    """s^2 F_{d+2}(a^2/s^2) / F_d(a^2/s^2) I with F_k the chi2 distribution function."""
    found = TruncatedGaussian(dim, radius, 1, cov=variance * np.eye(dim)).second_moment()
    q = radius**2 / variance
    expected = variance * chi2.cdf(q, dim + 2) / chi2.cdf(q, dim)
    np.testing.assert_allclose(found, expected * np.eye(dim), rtol=1e-9, atol=1e-12 * expected)


@pytest.mark.parametrize("radius", [0.05, 0.5, 2.0])
def test_uneven_truncated_gaussian_against_quadrature(radius: float) -> None:
    """In two dimensions, turned by 30 degrees, against a double integral."""
    first, second = 0.04, 0.3

    def integral(power_x: int, power_y: int) -> float:
        def edge(x: float) -> float:
            return math.sqrt(max(radius**2 - x**2, 0.0))

        return float(
            dblquad(
                lambda y, x: (
                    x**power_x * y**power_y * math.exp(-(x**2 / first + y**2 / second) / 2)
                ),
                -radius,
                radius,
                lambda x: -edge(x),
                edge,
                epsabs=1e-14,
            )[0]
        )

    turn = np.array([[math.sqrt(3) / 2, -0.5], [0.5, math.sqrt(3) / 2]])
    law = TruncatedGaussian(2, radius, 1, cov=turn @ np.diag([first, second]) @ turn.T)
    moments = np.array([integral(2, 0), integral(0, 2)]) / integral(0, 0)
    expected = turn @ np.diag(moments) @ turn.T
    np.testing.assert_allclose(law.second_moment(), expected, rtol=1e-6, atol=1e-9)


def test_truncated_gaussian_defaults_to_the_identity() -> None:
    """Without a covariance the Gaussian is the standard one."""
    plain, given = TruncatedGaussian(3, 1.0, 2), TruncatedGaussian(3, 1.0, 2, cov=np.eye(3))
    np.testing.assert_array_equal(plain.second_moment(), given.second_moment())
    one, other = (law.draw(np.random.default_rng(5), 3) for law in (plain, given))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dim", [1, 2, 5, 20])
@pytest.mark.parametrize("radius", [0.01, 1.0, 1000.0])
def test_constant_density_is_the_uniform_ball(dim: int, radius: float) -> None:
    """RadialDensity's table reproduces a^2 / (d + 2), whatever the constant."""
    law = RadialDensity(dim, radius, 1, density=lambda r: np.full_like(r, 7.0))
    np.testing.assert_allclose(
        law.second_moment(), UniformBall(dim, radius, 1).second_moment(), rtol=1e-9
    )


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("radius", [0.01, 2.0, 1000.0])
def test_falling_density_against_quadrature(dim: int, radius: float) -> None:
    """E |A|^2 / d = int r^(d+1) e^-r / int r^(d-1) e^-r / d over (0, a)."""

    def integral(power: int) -> float:
        upper = min(radius, 100.0)  # beyond lies e^-100
        return float(quad(lambda r: r**power * math.exp(-r), 0, upper, epsabs=0, limit=200)[0])

    expected = integral(dim + 1) / integral(dim - 1) / dim
    found = RadialDensity(dim, radius, 1, density=falling).second_moment()
    np.testing.assert_allclose(found, expected * np.eye(dim), rtol=1e-5, atol=1e-12)


def test_densities_with_powers_by_hand() -> None:
    """density r^p gives |A|^2 = a^2 (d + p) / (d + p + 2) on average; p < 0 blows up at 0."""
    for dim, power in ((3, -1.0), (2, 1.0), (4, 2.5)):
        law = RadialDensity(dim, 2.0, 1, density=lambda r, power=power: r**power)
        expected = 4 * (dim + power) / (dim + power + 2) / dim
        np.testing.assert_allclose(law.second_moment(), expected * np.eye(dim), rtol=1e-5)


@pytest.mark.parametrize("dim", [60, 300])
def test_constant_density_in_many_dimensions(dim: int) -> None:
    """Shells near the centre have a volume below the smallest float; the moment is still right."""
    np.testing.assert_allclose(
        RadialDensity(dim, 1.0, 1).second_moment(), np.eye(dim) / (dim + 2), rtol=1e-6
    )


@pytest.mark.parametrize("dim", [60, 100, 150])
def test_small_ball_in_many_dimensions(dim: int) -> None:
    """A Gaussian of unit variance is flat on a ball of radius 0.01: the law is that of the ball.

    The Gaussian puts next to nothing on it, but points drawn from the ball are all accepted.
    """
    law = TruncatedGaussian(dim, 0.01, 1)
    np.testing.assert_allclose(law.second_moment(), 1e-4 / (dim + 2) * np.eye(dim), rtol=1e-4)
    lengths = np.linalg.norm(law.points(np.random.default_rng(6), 50), axis=1)
    assert lengths.min() > 0 and lengths.max() <= 0.01 * (1 + 1e-12)


@pytest.mark.parametrize(
    ("density", "holds"),
    [
        (falling, True),
        (np.ones_like, True),
        (lambda r: (r < 0.5).astype(float), True),
        (lambda r: 1 / r, True),
        (rising, False),
        (lambda r: 1 + np.sin(20 * r) / 2, False),
        (lambda r: np.where(r < 0.5, 1.0, 1.01), False),
    ],
    ids=["falling", "constant", "step down", "pole", "rising", "waves", "step up"],
)
def test_monotonicity_is_recorded_and_not_refused(
    density: Callable[[np.ndarray], np.ndarray], holds: bool
) -> None:
    """A density that increases violates Assumption 1; its family says so and can be played."""
    law = RadialDensity(2, 1.0, 3, density=density)
    family = TaskFamily(GaussianPrior(np.zeros(2), np.eye(2)), law, 1.0, 4)
    if holds:
        assert law.violation() is None and family.violations() == {}
    else:
        assert "density increases" in str(law.violation())
        assert family.violations() == {"Assumption 1": law.violation()}
    task = family.draw(np.random.default_rng(0))
    assert task.actions.shape == (4, 2, 3)


SETS: dict[str, Callable[[], ActionSet]] = {
    **LAWS,
    "finite set": lambda: FiniteSet([[3.0, 4.0], [0.0, 1.0], [-1.0, 0.0]]),
    "unit vectors": lambda: unit_vectors(4),
    "whole ball": lambda: WholeBall(3, 2.0),
}


@pytest.mark.parametrize("name", SETS)
def test_what_every_action_set_keeps_to(name: str) -> None:
    """Draws of (sets, d, K) that a seed repeats, inside the ball; a second moment to match."""
    offered = SETS[name]()
    first, again = (offered.draw(np.random.default_rng(7), 5) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert first.shape[0] in (1, 5) and first.shape[1:] == (offered.dim, offered.count or 0)
    assert np.linalg.norm(first, axis=1).max(initial=0.0) <= offered.radius * (1 + 1e-12)
    moment = offered.second_moment()
    np.testing.assert_allclose(moment, moment.T, rtol=0, atol=1e-14 * offered.radius**2)
    assert np.linalg.eigvalsh(moment)[0] > 0
    assert np.trace(moment) <= offered.radius**2 * (1 + 1e-12)
    assert offered.violation() is None or isinstance(offered.violation(), str)


def test_finite_set() -> None:
    """The same actions at every step and in every task, whatever the generator."""
    given = np.array([[3.0, 4.0], [0.0, 1.0], [-1.0, 0.0]])
    found = FiniteSet(given)
    assert (found.dim, found.count, found.radius) == (2, 3, 5.0)
    for seed in (0, 1):
        np.testing.assert_array_equal(found.draw(np.random.default_rng(seed), 9), given.T[None])
    np.testing.assert_allclose(
        found.second_moment(), sum(np.outer(a, a) for a in given) / 3, rtol=1e-12
    )
    assert "finite set" in str(found.violation())
    given[0, 0] = 100.0
    assert found.radius == 5.0


def test_unit_vectors() -> None:
    """K arms: the identity; each explored one time in K, so E[A A'] = I / K."""
    arms = unit_vectors(4)
    np.testing.assert_array_equal(arms.actions, np.eye(4))
    np.testing.assert_allclose(arms.second_moment(), np.eye(4) / 4)
    assert (arms.dim, arms.count, arms.radius) == (4, 4, 1.0)


def test_whole_ball() -> None:
    """No number of actions and an empty list of them; Assumption 1 names it as allowed."""
    ball = WholeBall(3, 2)
    assert ball.count is None and ball.radius == 2.0 and ball.violation() is None
    assert ball.draw(np.random.default_rng(0), 5).shape == (1, 3, 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: UniformBall(0, 1.0, 1), "dim must be at least 1"),
        (lambda: UniformBall(2.0, 1.0, 1), "dim must be a whole number"),
        (lambda: UniformBall(2, 0.0, 1), "radius must be greater than 0"),
        (lambda: UniformBall(2, -1.0, 1), "radius must be greater than 0"),
        (lambda: UniformBall(2, math.nan, 1), "radius must be finite"),
        (lambda: UniformBall(2, math.inf, 1), "radius must be finite"),
        (lambda: UniformBall(2, 1.0, 0), "count must be at least 1"),
        (lambda: UniformBall(2, 1.0, None), "count must be a whole number"),
        (lambda: UniformBall(2, 1.0, 1, "steps"), "unknown redraw 'steps'; did you mean 'step'?"),
        (lambda: TruncatedGaussian(2, 1.0, 1, cov=np.eye(3)), "action covariance must have shape"),
        (lambda: TruncatedGaussian(2, 1.0, 1, cov=np.ones((2, 2))), "action covariance must be"),
        (lambda: TruncatedGaussian(2, 1.0, 1, cov=-np.eye(2)), "action covariance is not positive"),
        (lambda: RadialDensity(2, 1.0, 1, density=lambda r: -r), "density must be finite and not"),
        (lambda: RadialDensity(2, 1.0, 1, density=lambda r: r * math.nan), "density must be"),
        (lambda: RadialDensity(2, 1.0, 1, density=lambda r: 1.0), "density must map an array"),
        (lambda: RadialDensity(2, 1.0, 1, density=lambda r: 0 * r), "density is zero"),
        (lambda: RadialDensity(2, 1.0, 1, density=lambda r: "a"), "density must take an array"),
        (lambda: FiniteSet([]), "actions must have shape (any, any)"),
        (lambda: FiniteSet(np.zeros((0, 2))), "actions is empty"),
        (lambda: FiniteSet(np.zeros((2, 0))), "actions is empty"),
        (lambda: FiniteSet([[0.0, math.nan]]), "actions has a NaN"),
        (lambda: unit_vectors(0), "count must be at least 1"),
        (lambda: WholeBall(0, 1.0), "dim must be at least 1"),
        (lambda: WholeBall(2, 0.0), "radius must be greater than 0"),
    ],
)
def test_bad_action_sets_are_refused_by_name(make: Callable[[], object], message: str) -> None:
    """The message names the argument and what would do."""
    with pytest.raises(InputError, match="^" + re.escape(message)):
        make()


def test_covariance_too_uneven_to_sample() -> None:
    """Where neither way of rejection finds points, the refusal says so instead of hanging."""
    law = TruncatedGaussian(20, 1.0, 1, cov=np.diag([2e-3] * 10 + [100.0] * 10))
    with pytest.raises(InputError, match="action covariance is too uneven"):
        law.points(np.random.default_rng(0), 1)


@pytest.mark.parametrize("far", [5e-324, 1e-150, 1e101, 1e200])
def test_sizes_whose_squares_have_no_digits_are_refused(far: float) -> None:
    """Second moments of such actions would be 0 or infinite."""
    for made in (
        lambda: UniformBall(2, far, 3),
        lambda: WholeBall(2, far),
        lambda: FiniteSet([[far, 0.0], [0.0, far / 2]]),
    ):
        with pytest.raises(InputError, match="not within 1e-100 to 1e"):
            made()
