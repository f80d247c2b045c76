"""Classes of problems: every point is an instance within the hypotheses, and bad classes are refused."""

from __future__ import annotations

import numpy as np
import pytest

import fedsim as fs
import theory
from theory import worst_case
from theory.worst_case import ProblemClass
from theory.worst_case.algorithm_templates import FORMS, Cube
from theory.worst_case.problem_class import MOST_CLIENTS
from theory.worst_case.targets import Maker, StepLimits, maker_of

ENTRIES = {entry.id: entry for entry in theory.theorems()}
BOUNDS = [aim for aim in worst_case.aims() if aim in ENTRIES]


def class_of(aim, **ranges):
    return ProblemClass(**{**ENTRIES[aim].only, **ranges})


def require_inside(aim, cls, points):
    """Every point has an instance, within the hypotheses at the first attempt."""
    maker, variant = maker_of(aim, cls, "ratio", None)
    for point in points(maker):
        one = maker(point)
        entry = ENTRIES[aim]
        facts = theory.constants(one.problem, one.algorithm, one.start) if one.known is None else one.known
        extra = {} if entry.inputs is None else entry.inputs(one.problem, one.algorithm, facts, one.n_rounds,
                                                            one.start)
        bound = entry.function(facts, one.algorithm, n_rounds=one.n_rounds, variant=variant, **extra)
        assert bound.hypotheses_hold, (aim, point, bound.violated)


def random_points(count):
    def points(maker):
        rng = np.random.default_rng(3)
        return (rng.random(maker.size) for _ in range(count))

    return points


@pytest.mark.parametrize("aim", BOUNDS)
def test_every_corner_and_random_points_are_within_hypotheses(aim):
    require_inside(aim, class_of(aim), lambda maker: maker.corners())
    require_inside(aim, class_of(aim), random_points(20))


@pytest.mark.slow
@pytest.mark.parametrize("aim", BOUNDS)
def test_two_thousand_points_are_within_hypotheses(aim):
    require_inside(aim, class_of(aim), random_points(2000))
    for ranges in ({"dim": 2}, {"n_clients": 4}, {"constants": "class"}, {"condition": 1.0},
                   {"units": 100.0}):
        if "n_clients" not in ranges or not aim.startswith("fa_hmc.lower"):
            require_inside(aim, class_of(aim, **ranges), random_points(100))


@pytest.mark.parametrize("ranges", [{"dim": 2}, {"n_clients": 3}, {"n_clients": 1}, {"constants": "class"},
                                    {"condition": 1.0}, {"units": 100.0}, {"dim": 3, "rotated": False},
                                    {"weights": "equal", "shared_noise": 0.5, "minimizers": 0.0}], ids=str)
@pytest.mark.parametrize("aim", ["fa_ld.w2_bound", "fa_hmc.w2_bound", "de_sgld.w2_bound", "de_sghmc.w2_bound",
                                 "stale.w2_recursion", "fa_ld.w2_bound_partial", "fa_ld.w2_bound_decreasing"])
def test_other_classes_too(aim, ranges):
    require_inside(aim, ProblemClass(**ranges), random_points(10))


def test_instances_are_of_their_class():
    """Curvatures, gradients, minimizers, starts and noise within their ranges, and ends are reached."""
    cls = ProblemClass(dim=2, n_clients=3, condition=7.0, minimizers=2.0, start=3.0, start_variance=4.0,
                       gradient_noise=5.0, shared_noise=(0.2, 0.7))
    maker, _ = maker_of("fa_ld.w2_bound", cls, "ratio", None)
    rng = np.random.default_rng(0)
    seen = []
    for point in [*rng.random((60, maker.size)), np.zeros(maker.size), np.ones(maker.size)]:
        one = maker(point)
        values = np.linalg.eigvalsh(one.problem.hessians)
        assert values.min() >= 1.0 - 1e-12 and values.max() <= 7.0 + 1e-12
        assert np.abs(one.problem.minimizers).max() <= 2.0 and not one.problem.minimizers[0].any()
        assert 0.2 <= one.algorithm.shared_noise <= 0.7
        normal = isinstance(one.start, fs.Gaussian)
        mean, variance = (one.start.mean, one.start.variances.max()) if normal else (one.start, 0.0)
        assert np.abs(mean - one.problem.minimizer).max() <= 3.0 + 1e-12
        assert 0.0 <= variance <= 4.0 and (one.problem.gradient_noise or 0.0) <= 5.0
        seen.append((values.max(), one.algorithm.shared_noise, variance, one.problem.gradient_noise or 0.0))
    highest, lowest = np.max(seen, axis=0), np.min(seen, axis=0)
    np.testing.assert_allclose(highest, [7.0, 0.7, 4.0, 5.0], rtol=1e-12)
    np.testing.assert_allclose(lowest[1:], [0.2, 0.0, 0.0], atol=1e-12)


def test_gradients_reach_the_heterogeneity_and_not_more():
    for dim, clients, weights in ((1, 2, "equal"), (2, 3, "free")):
        cls = ProblemClass(dim=dim, n_clients=clients, weights=weights, heterogeneity=3.0)
        maker, _ = maker_of("fa_ld.w2_bound", cls, "ratio", None)
        largest = []
        for point in np.random.default_rng(1).random((40, maker.size)):
            one = maker(point)
            facts = theory.constants(one.problem, one.algorithm)
            largest.append(facts.heterogeneity)
        assert max(largest) <= 3.0 + 1e-9 and np.mean(np.array(largest) > 3.0 - 1e-9) > 0.2


def test_units_change_no_ratio():
    """A theorem in units that agree: the same point in another unit of length has the same ratio."""
    cls = ProblemClass(units=1000.0)
    for aim in ("fa_ld.w2_bound", "fa_hmc.w2_bound", "de_sgld.w2_bound"):
        maker, variant = maker_of(aim, cls, "ratio", None)
        place, rng = maker.names.index("units"), np.random.default_rng(5)
        for point in rng.random((5, maker.size)):
            ratios = []
            for z in (0.1, 0.5, 0.8):
                point[place] = z
                one = maker(point)
                ratios.append(theory.examine(aim, one.problem, one.algorithm, one.n_rounds, start=one.start,
                                             variant=variant).tightness)
            np.testing.assert_allclose(ratios, ratios[1], rtol=1e-7)


@pytest.mark.parametrize(("aim", "power"), [
    ("fa_ld.w2_bound", lambda m, L, K: 1.0 / (2.0 * L)),
    ("fa_ld.contraction_bound", lambda m, L, K: 1 / (m + L)),
    ("fa_hmc.displacement_bound", lambda m, L, K: 1.0 / (np.sqrt(L) * K)),
    ("fa_hmc.client_gradient_bound", lambda m, L, K: np.sqrt(m) / (2.0 * L * K))])
def test_limits_are_read_from_the_margins(aim, power):
    """Those of the papers, to rounding, though only margins at a small step size are looked at."""
    cls = ProblemClass(shared_noise=0.5)
    maker, _ = maker_of(aim, cls, "ratio", None)
    for point in np.random.default_rng(2).random((10, maker.size)):
        point[maker.names.index("step_size")] = 1.0
        one = maker(point)
        facts = theory.constants(one.problem, one.algorithm)
        K = one.algorithm.leapfrog_steps if aim.startswith("fa_hmc") else 1
        wanted = power(facts.strong_convexity, facts.smoothness, K)
        assert one.algorithm.step_size == pytest.approx(wanted, rel=1e-11)


def test_the_cube_reads_in_one_order_whatever_the_values():
    for form in FORMS.values():
        for cls in (ProblemClass(), ProblemClass(dim=2, n_clients=3)):
            if form.name == "fa_hmc.flow" and cls.n_clients == 3:
                continue
            orders = set()
            for fill in (0.0, 0.3, 0.5, 1.0):
                cube = Cube(np.full(100, fill))
                form.body(cube, cls)
                orders.add(tuple(cube.names))
            assert len(orders) == 1, form.name


@pytest.mark.parametrize(("ranges", "message"), [
    ({"local_steps": ()}, r"local_steps=\(\) must name at least one"),
    ({"local_steps": (1, 1)}, r"local_steps=\(1, 1\) must name each number once"),
    ({"local_steps": 0}, "local_steps=0 must be at least 1"),
    ({"staleness": -1}, "staleness=-1 must be at least 0"),
    ({"n_rounds": 2.5}, "n_rounds=2.5 must be an integer"),
    ({"shared_noise": (0.7, 0.2)}, r"shared_noise=\(0.7, 0.2\) is empty"),
    ({"shared_noise": (0.0, 2.0)}, r"shared_noise\[1\]=2.0 must lie in"),
    ({"shared_noise": (0.0, 0.1, 0.2)}, "shared_noise=.* must be a number, or a pair"),
    ({"step_size": (0.2, 0.1)}, r"step_size=\(0.2, 0.1\) is empty"),
    ({"step_size": 0.0}, "step_size=0.0 must be"),
    ({"condition": 0.5}, "condition=0.5 must be at least 1"),
    ({"condition": np.inf}, "condition=inf must be finite"),
    ({"units": 0.1}, "units=0.1 must be at least 1"),
    ({"units": 2.0, "step_size": 0.1}, "units=2 must be 1 where step_size"),
    ({"units": 2.0, "constants": "class"}, "units=2 must be 1"),
    ({"dim": 3, "rotated": True}, "rotated=True in dim=3"),
    ({"dim": 9}, "dim=9 must be at most 8"),
    ({"n_clients": MOST_CLIENTS + 1}, "n_clients=17 must be at most 16"),
    ({"minimizers": -1.0}, "minimizers=-1.0 must be"),
    ({"weights": "some"}, "weights='some' must be one of"),
    ({"constants": "mine"}, "constants='mine' must be one of"),
    ({"heterogeneity": np.nan}, "heterogeneity=nan must be")], ids=str)
def test_empty_and_impossible_ranges_are_refused(ranges, message):
    with pytest.raises(ValueError, match=message):
        ProblemClass(**ranges)


@pytest.mark.parametrize(("aim", "ranges", "message"), [
    ("fa_ld.stationary_w2", {}, "step_size=None of the problem class must be given"),
    ("fa_ld.stationary_w2", {"step_size": 0.05}, "corner without a value.*step_size=0.05 must be less than"),
    ("de_sgld.stationary_w2", {"condition": 10.0, "step_size": 0.02}, "corner .*stability limit"),
    ("fa_ld.w2_bound", {"step_size": (0.001, 0.02)}, "corner outside the hypotheses"),
    ("fa_ld.stationary_bound", {}, "corner without a value.*local_steps=5 must be 1"),
    ("fa_ld.w2_bound", {"dim": 8, "n_clients": 16}, "n_clients=16 in dim=8 make .* unknowns"),
    ("fa_hmc.lower_bound", {"n_clients": 3}, "n_clients=3 must be even")], ids=str)
def test_unstable_corners_and_too_many_unknowns_are_refused(aim, ranges, message, monkeypatch):
    """Before the first evaluation is spent."""
    monkeypatch.setattr("theory.worst_case.searching.spend", lambda *_: pytest.fail("the search began"))
    with pytest.raises(ValueError, match=message):
        worst_case.search(aim, ProblemClass(**ranges), budget=40)


def test_a_limit_that_no_margin_tells_is_approached():
    """FA-HMC's recursion asks for a certificate, yes or no: the step size shrinks until there is one."""
    cls = ProblemClass(condition=1e4, leapfrog_steps=15)
    found = worst_case.search("fa_hmc.w2_recursion", cls, budget=40)
    assert found.lost == 0 and found.verify().hypotheses_met


def test_without_a_theorem_no_limit_is_asked_for():
    maker = Maker(ProblemClass(step_size=0.01), FORMS["fa_ld"])
    assert "step_size" not in maker.names and maker(np.full(maker.size, 0.5)).algorithm.step_size == 0.01
    with pytest.raises(ValueError, match="step_size=None"):
        Maker(ProblemClass(), FORMS["fa_ld"])
    assert StepLimits(ENTRIES["fa_ld.w2_bound"], "proof").powers == {}


@pytest.mark.parametrize("aim", ["fa_ld.w2_bound", "fa_hmc.w2_bound", "de_sgld.w2_bound", "de_sghmc.w2_bound",
                                 "stale.w2_recursion"])
def test_curvatures_of_what_is_followed_fill_the_class(aim):
    """By the constants that theorems take, those of components for decentralized algorithms."""
    cls = ProblemClass(condition=7.0, local_steps=1, leapfrog_steps=1, staleness=1)
    maker, _ = maker_of(aim, cls, "ratio", None)
    rng = np.random.default_rng(8)
    found = []
    for point in (np.zeros(maker.size), np.ones(maker.size), *rng.random((20, maker.size))):
        one = maker(point)
        facts = theory.constants(one.problem, one.algorithm, one.start)
        found += [facts.strong_convexity, facts.smoothness]
    assert min(found) == pytest.approx(1.0, rel=1e-12) and max(found) == pytest.approx(7.0, rel=1e-12)
