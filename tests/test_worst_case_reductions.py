"""How many coordinates, clients and angles are enough: against linear programs and random problems."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

import fedsim as fs
import theory
from theory.worst_case import (
    certify,
    commuting_bias,
    commuting_supremum,
    enough_clients,
    least_contraction,
    rotated_bias,
    rotated_bias_at,
)

TEN = {"curvatures": (1.0, 10.0), "step_size": 0.02, "local_steps": 5}
GAMMA = 3.0


def gradients_apart(hessians, gradients, noise=None):
    """Two clients, equal weights, minimizer 0, with these gradients there."""
    minimizers = -np.linalg.solve(hessians, gradients[:, :, None])[:, :, 0]
    return fs.Quadratic(hessians, minimizers, None, noise)


def distance(problem, algorithm):
    """W2 of the stationary law to the target."""
    return float(theory.stationary_law(problem, algorithm).w2(algorithm.target(problem)))


# ---- several coordinates that commute

def of_coordinates(curvatures, shares):
    """Diagonal Hessians, these curvatures (2, d), and opposite gradients of size GAMMA."""
    direction = GAMMA * np.sqrt(shares / shares.sum())
    return gradients_apart(np.array([np.diag(row) for row in curvatures]), np.array([direction, -direction]))


@pytest.mark.parametrize(("dim", "n"), [(2, 150), (3, 150)])
def test_no_commuting_problem_is_worse(dim, n):
    """Random curvatures, ends among them, and random shares of the gradients: never above."""
    rng = np.random.default_rng(51)
    worst = commuting_supremum(dim, **TEN, heterogeneity=GAMMA)
    algorithm, best = fs.FALD(0.02, 5), 0.0
    assert worst.dim == dim and worst.upper / worst.lower - 1.0 < 1e-4
    for _ in range(n):
        curvatures = np.clip(rng.uniform(-2.0, 14.0, (2, dim)), 1.0, 10.0)
        shares = rng.exponential(size=dim) ** rng.choice([0.5, 1.0, 4.0])
        best = max(best, distance(of_coordinates(curvatures, shares), algorithm))
    assert 0.75 * worst.lower < best <= worst.upper * (1.0 + 1e-12)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_problem_of_the_two_scalar_ones_is_that_bad(dim):
    """All gradients in one coordinate, the others like the second scalar problem: attains the lower end."""
    worst = commuting_supremum(dim, **TEN, heterogeneity=GAMMA, tolerance=1e-6)
    one, others = (list(part.point.values()) for part in (worst.one, worst.others))
    curvatures = np.array([one] + [others] * (dim - 1)).T
    shares = np.array([1.0] + [0.0] * (dim - 1))
    exact = distance(of_coordinates(curvatures, shares), fs.FALD(0.02, 5))
    assert exact == pytest.approx(worst.lower, rel=1e-9) and worst.lower <= exact * (1.0 + 1e-12)
    wanted = [0.0153709, 0.018057, 0.018057 + 0.0026863][dim - 1]
    assert worst.lower**2 == pytest.approx(wanted, rel=4e-5)


def test_the_supremum_is_convex_in_the_share_of_the_gradients():
    """F(t), the worst at squared gradients t, lies below its chords; that is why one coordinate has all."""
    for quantity, given in (("fa_ld", TEN), ("fa_hmc", {"curvatures": (1.0, 4.0), "step_size": 0.2}),
                            ("de_sgld", {"curvatures": (1.0, 10.0), "step_size": 0.02, "mixing": 0.3})):
        found = [certify(f"{quantity}.stationary_w2", heterogeneity=math.sqrt(t), **given, tolerance=1e-5)
                 for t in (0.0, 1.0, 2.0, 4.0, 9.0)]
        low, high = ([end**2 for end in ends] for ends in zip(*((one.lower, one.upper) for one in found),
                                                            strict=True))
        t = [0.0, 1.0, 2.0, 4.0, 9.0]
        for i in range(3):
            share = (t[i + 1] - t[i]) / (t[i + 2] - t[i])
            assert low[i + 1] <= (1.0 - share) * high[i] + share * high[i + 2]
        assert high[0] + low[0] <= high[4] + high[0]


def test_other_algorithms_and_what_is_refused():
    """Ranges other than the curvatures' are no common numbers; other quantities are not sums of squares."""
    other = commuting_supremum(2, "de_sgld.stationary_w2", curvatures=(1.0, 10.0), step_size=0.02, mixing=0.3,
                               heterogeneity=1.0)
    assert other.lower**2 == pytest.approx(other.one.lower**2 + other.others.lower**2, rel=1e-12)
    for given, words in (({"dim": 0}, "dim=0 must"), ({"dim": 1.5}, "dim=1.5 must"),
                         ({"quantity": "fa_ld.w2"}, "quantity='fa_ld.w2' must be"),
                         ({"quantity": "stale.stationary_w2"}, "quantity='stale"),
                         ({"step_size": (0.01, 0.02)}, r"step_size=\(0.01, 0.02\) must be"),
                         ({"heterogeneity": (1.0, 2.0)}, r"heterogeneity=\(1.0, 2.0\) must be"),
                         ({"heterogeneity": -1.0}, "heterogeneity=-1.0 must"),
                         ({"mixing": 0.3}, "mixing=0.3 must")):
        with pytest.raises(ValueError, match=words):
            commuting_supremum(**{"dim": 2, **TEN, "heterogeneity": GAMMA, **given})


# ---- how many clients

LEAST = {3: 0.4082, 4: 0.5081, 5: 0.5832, 6: 0.64, 8: 0.7184, 10: 0.7693, 20: 0.8791, 50: 0.9503, 100: 0.9749}


def geo(x, n):
    """1 + x + ... + x^(n-1)."""
    return sum(x**k for k in range(n))


def test_the_least_contraction():
    """By the table, by its square root for three steps, and as the place where a ratio stops to fall."""
    assert least_contraction(3) == pytest.approx(math.sqrt(1.0 / 6.0), abs=1e-15)
    for K, value in LEAST.items():
        assert least_contraction(K) == pytest.approx(value, abs=6e-5)
        a = np.linspace(0.02, 0.99, 400)
        ratio = sum(2 * k * (2 * k - 1) * a ** (2.0 * k - K) for k in range(1, K))  # (geo)''/(a^K)''
        assert abs(a[np.argmin(ratio)] - least_contraction(K)) < 0.0025
        assert 1.77 / K <= 1.0 - least_contraction(K)
    for K in (2, 0, 2.5, 10_001):
        with pytest.raises(ValueError, match=f"local_steps={K} must"):
            least_contraction(K)


def program(rng, K, low, high, points=120):
    """Where a measure on a grid has its mass, of largest E geo(a^2) at given E a, E a^K; by neighbours."""
    a = np.linspace(low, high, points)
    rows, _ = np.linalg.qr(np.array([np.ones(points), a, a**K]).T)  # the same equalities, well conditioned
    value = geo(a**2, K)
    value = value - rows @ (rows.T @ value)
    at, weights = rng.integers(0, points, 3), rng.dirichlet(np.ones(3))
    found = linprog(-value / np.abs(value).max(), A_eq=rows.T, b_eq=weights @ rows[at], method="highs-ds")
    assert found.status == 0
    atoms = np.flatnonzero(found.x > 1e-9)
    return np.split(atoms, np.flatnonzero(np.diff(atoms) > 1) + 1)


def test_two_clients_where_it_says_so():
    """Linear programs over all measures on a grid: one end, and one place inside (two neighbours of it)."""
    rng = np.random.default_rng(52)
    for K in (3, 4, 5, 10, 20):
        least = least_contraction(K)
        for _ in range(12):
            low = rng.uniform(least, 0.98)
            curvatures = (rng.uniform(0.005, 0.3) * (1.0 - low), (1.0 - low) * (1.0 - 1e-12))
            assert enough_clients(curvatures=curvatures, step_size=1.0, local_steps=K)[:2] == (2, True)
            groups = program(rng, K, 1.0 - curvatures[1], 1.0 - curvatures[0])
            ends = [0 in group or 119 in group for group in groups]
            assert len(groups) <= 2 and any(ends), groups


def test_three_clients_where_it_says_three():
    """Three local steps, curvatures up to .877: linear programs with three places inside and at an end."""
    curvatures = (0.323, 0.877)
    assert enough_clients(curvatures=curvatures, step_size=1.0, local_steps=3)[:2] == (3, False)
    rng = np.random.default_rng(53)
    groups = [program(rng, 3, 1.0 - curvatures[1], 1.0 - curvatures[0]) for _ in range(60)]
    assert max(map(len, groups)) == 3


@pytest.mark.parametrize(("given", "wanted", "reason"), [
    ({**TEN, "local_steps": 1}, (1, False), "one local step"),
    ({**TEN, "local_steps": 1, "heterogeneity": 2.0}, (1, False), "one local step"),
    ({**TEN, "curvatures": 3.0, "heterogeneity": 2.0}, (1, False), "one curvature"),
    ({**TEN, "local_steps": 2}, (2, True), "two local steps"),
    ({**TEN, "local_steps": 2, "heterogeneity": 2.0}, (4, False), "four linear equalities"),
    ({**TEN, "heterogeneity": 2.0}, (4, False), "four linear equalities"),
    (TEN, (2, True), r"1 - step_size\*curvature=0\.8 is at least a_K=0\.58"),
    ({**TEN, "step_size": 0.0416}, (2, True), "is at least a_K"),
    ({**TEN, "step_size": 0.0417}, (3, False), r"three equalities; .*=0\.583 is below a_K=0\.58"),
    ({**TEN, "step_size": 0.15}, (3, False), r"curvature=-0\.5 is below")])
def test_answers_and_reasons(given, wanted, reason):
    """Each of its branches."""
    found = enough_clients(**given)
    assert found[:2] == wanted
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(found.reason)


@pytest.mark.parametrize(("given", "words"), [
    ({"shared_noise": 0.5}, r"shared_noise=0\.5 must be 0"),
    ({"shared_noise": None}, "shared_noise=None must"),
    ({"step_size": 0.2}, r"step_size=0\.2 must be less than 2/curvature=0\.2"),
    ({"curvatures": (10.0, 1.0)}, "curvatures=.* must be a range"),
    ({"heterogeneity": -1.0}, "heterogeneity=-1"),
    ({"local_steps": 0}, "local_steps=0 must"), ({"step_size": math.nan}, "step_size=nan must")])
def test_outside_of_the_hypotheses_nothing_is_said(given, words):
    """Each by argument, value and condition."""
    with pytest.raises(ValueError, match=words):
        enough_clients(**{**TEN, **given})


def test_the_limit_of_two_clients_is_decided_by_intervals():
    """At the zero itself rounding leaves it open, and three are said; a hair above two."""
    for K in (3, 5, 10, 100):
        at = 1.0 - least_contraction(K)
        number = [enough_clients(curvatures=(0.01, at * (1.0 + shift)), step_size=1.0, local_steps=K).number
                  for shift in (-1e-9, 0.0, 1e-9)]
        assert number[0] == 2 and number[2] == 3


# ---- Hessians that do not commute

def between(rng, dim, kappa):
    """A random matrix 1 <= H <= kappa; often with no eigenvalue inside."""
    axes, _ = np.linalg.qr(rng.normal(size=(dim, dim)))
    values = np.clip(rng.uniform(1.0 - kappa, 2.0 * kappa, dim), 1.0, kappa)
    return axes @ np.diag(values) @ axes.T


@pytest.mark.parametrize("kappa", [1.0, 1.5, 10.0, 1000.0])
def test_no_pair_of_hessians_has_a_larger_leading_bias(kappa):
    """|(H_1 + H_2)^-1 (H_1 - H_2)| in one to three dimensions; where they commute by the smaller factor."""
    rng = np.random.default_rng(54)
    bound, commuting = rotated_bias(kappa), commuting_bias(kappa)
    assert bound.size == pytest.approx((kappa - 1.0) / (2.0 * math.sqrt(kappa)))
    assert commuting == pytest.approx((kappa - 1.0) / (kappa + 1.0)) and commuting <= bound.size
    best = [0.0, 0.0, 0.0]
    for _ in range(1500):
        dim = int(rng.integers(1, 4))
        one, other = between(rng, dim, kappa), between(rng, dim, kappa)
        best[dim - 1] = max(best[dim - 1], np.linalg.norm(np.linalg.solve(one + other, one - other), 2))
    assert best[0] <= commuting * (1.0 + 1e-12) and max(best) <= bound.size * (1.0 + 1e-9) + 1e-14
    phi = bound.angle
    one, other = (np.eye(2) + (kappa - 1.0) * np.outer(u, u) for u in np.array(
        [[math.cos(phi), math.sin(phi)], [math.cos(phi), -math.sin(phi)]]))
    attained = np.linalg.solve(one + other, (one - other) @ np.array([0.0, 1.0]))
    assert np.linalg.norm(attained) == pytest.approx(bound.size, rel=1e-12, abs=1e-12)


def plane(curvatures, phi, gamma=GAMMA):
    """The pair at this angle, gradients opposite along the second axis."""
    m, L = curvatures
    directions = np.array([[math.cos(phi), math.sin(phi)], [math.cos(phi), -math.sin(phi)]])
    hessians = m * np.eye(2) + (L - m) * directions[:, :, None] * directions[:, None, :]
    return gradients_apart(hessians, np.array([[0.0, gamma], [0.0, -gamma]]))


def mean_of(problem, algorithm):
    return np.linalg.norm(theory.stationary_law(problem, algorithm).mean - algorithm.target(problem).mean)


@pytest.mark.parametrize(("curvatures", "step", "K"), [
    ((1.0, 10.0), 0.02, 5), ((0.5, 2.0), 0.3, 7), ((1.0, 30.0), 0.01, 20), ((1.0, 4.0), 0.4, 3)])
def test_the_bias_at_a_finite_step(curvatures, step, K):
    """Attained at its angle by the exact law, at no other angle exceeded, and certified."""
    bound, algorithm = rotated_bias_at(curvatures, step, K, GAMMA), fs.FALD(step, K)
    assert mean_of(plane(curvatures, bound.angle), algorithm) == pytest.approx(bound.size, rel=1e-9)
    for phi in np.linspace(0.0, 0.5 * math.pi, 41):
        assert mean_of(plane(curvatures, phi), algorithm) <= bound.size * (1.0 + 1e-9)
    worst = certify("fa_ld.stationary_bias", family="rotated", curvatures=curvatures, step_size=step,
                    local_steps=K, heterogeneity=GAMMA, tolerance=1e-6)
    assert worst.lower <= bound.size * (1.0 + 1e-12) and bound.size * (1.0 - 1e-12) <= worst.upper
    small = rotated_bias_at(curvatures, 1e-7 * step, K, GAMMA)
    leading = rotated_bias(curvatures[1] / curvatures[0])
    assert small.size == pytest.approx(leading.size * 1e-7 * step * (K - 1) / 2 * GAMMA, rel=1e-5)
    assert small.angle == pytest.approx(leading.angle, rel=1e-5)


def test_no_rotated_pair_found_that_is_worse():
    """A conjecture: random pairs with other eigenvalues, and random gradients, in the plane and in space."""
    rng = np.random.default_rng(55)
    for curvatures, step, K in (((1.0, 10.0), 0.02, 5), ((1.0, 4.0), 0.2, 3), ((1.0, 30.0), 0.03, 4)):
        bound, algorithm = rotated_bias_at(curvatures, step, K, GAMMA), fs.FALD(step, K)
        worst = certify("fa_ld.stationary_w2", family="rotated", curvatures=curvatures, step_size=step,
                        local_steps=K, heterogeneity=GAMMA, tolerance=1e-4)
        for number in range(100):
            dim = 2 if number % 4 else 3
            hessians = np.array([between(rng, dim, curvatures[1]) for _ in range(2)])
            gradient = rng.normal(size=dim)
            gradient *= GAMMA / np.linalg.norm(gradient)
            problem = gradients_apart(hessians, np.array([gradient, -gradient]))
            assert mean_of(problem, algorithm) <= bound.size * (1.0 + 1e-9)
            if dim == 2:
                assert distance(problem, algorithm) <= worst.upper * (1.0 + 1e-9)


def test_where_other_pairs_are_worse():
    """Beyond step_size * L = 1 other eigenvalues have a larger bias; of W2 already where L/m is small."""
    algorithm, inner = fs.FALD(0.19, 5), (1.0, 1.0 + 9.0 * 0.746)
    other = rotated_bias_at(inner, 0.19, 5, GAMMA)
    exact = mean_of(plane(inner, other.angle), algorithm)
    assert exact > 1.3 * rotated_bias_at((1.0, 10.0), 0.19, 5, GAMMA).size
    for ends, step, K, factor in (((1.0, 10.0), 0.19, 5, 1.4), ((1.0, 2.0), 0.5, 2, 1.15)):
        stiff = gradients_apart(np.array([ends[1] * np.eye(2)] * 2), np.zeros((2, 2)))
        worst = certify("fa_ld.stationary_w2", family="rotated", curvatures=ends, step_size=step,
                        local_steps=K, heterogeneity=0.0)
        assert distance(stiff, fs.FALD(step, K)) > factor * worst.upper


@pytest.mark.parametrize(("shared", "noise"), [(0.0, 0.0), (0.7, 0.5)])
def test_the_worst_angle(shared, noise):
    """The certified interval contains the largest W2 over a fine grid of angles by the exact laws."""
    worst = certify("fa_ld.stationary_w2", **TEN, family="rotated", heterogeneity=GAMMA, shared_noise=shared,
                    gradient_noise=noise, tolerance=1e-5)
    angles = np.linspace(0.0, 0.5 * math.pi, 121)
    algorithm = fs.FALD(0.02, 5, 1.0, shared)
    found = []
    for phi in angles:
        problem = plane(TEN["curvatures"], phi)
        problem = fs.Quadratic(problem.hessians, problem.minimizers, None, noise or None)
        found.append(distance(problem, algorithm))
    assert worst.lower * (1.0 - 1e-3) <= max(found) <= worst.upper * (1.0 + 1e-9)
    assert worst.verify() == pytest.approx(worst.lower, rel=1e-9)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: rotated_bias(0.5), r"condition=0\.5 must be at least 1"),
    (lambda: commuting_bias(math.inf), "condition=inf must"),
    (lambda: commuting_bias("2"), "condition='2' must"),
    (lambda: rotated_bias_at(1.0, 0.02, 5, 3.0), r"curvatures=1\.0 must be a pair"),
    (lambda: rotated_bias_at((1.0, 10.0), 0.2, 5, 3.0), r"step_size=0\.2 must be less than 2/curvature=0\.2"),
    (lambda: rotated_bias_at((1.0, 10.0), 0.02, 0, 3.0), "local_steps=0 must"),
    (lambda: rotated_bias_at((1.0, 10.0), 0.02, 5, -3.0), r"heterogeneity=-3\.0 must")])
def test_biases_of_what_is_no_class_are_refused(call, words):
    """Each by argument, value and condition."""
    with pytest.raises(ValueError, match=words):
        call()


def test_the_rotated_family_is_not_the_worst_of_every_class():
    """With one local step, or without heterogeneity, two equal clients of the largest curvature are worse."""
    for more in ({"curvatures": (1.0, 10.0), "step_size": 0.02, "local_steps": 1, "heterogeneity": 1.0},
                 {"curvatures": (1.0, 1.5), "step_size": 0.05, "local_steps": 3, "heterogeneity": 0.0}):
        rotated = certify("fa_ld.stationary_w2", family="rotated", **more)
        commuting = commuting_supremum(2, **more)
        high, gradient = more["curvatures"][1], np.array([[more["heterogeneity"], 0.0]])
        equal = gradients_apart(np.array([high * np.eye(2)] * 2), np.vstack([gradient, -gradient]))
        found = distance(equal, fs.FALD(more["step_size"], more["local_steps"]))
        assert rotated.upper < found <= commuting.upper * (1.0 + 1e-9) and commuting.closed


def test_a_smaller_eigenvalue_can_bias_more():
    """Where steps overshoot, step_size * L > 1, the largest curvature is not the worst second eigenvalue."""
    largest, within = (rotated_bias_at((1.0, high), 0.19, 3, 1.0).size for high in (10.0, 7.11))
    assert within > 1.3 * largest
    short = rotated_bias_at((1.0, 10.0), 0.1, 3, 1.0).size
    assert all(rotated_bias_at((1.0, high), 0.1, 3, 1.0).size <= short for high in np.linspace(1.5, 10.0, 50))
