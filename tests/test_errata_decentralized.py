"""Errata of DE-SGLD and DE-SGHMC: their grades, their numbers, and that each can come out for the authors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fedsim as fs
import theory
from theory.decentralized import errata_transient as apart
from theory.decentralized.sghmc import errata as momentum, errata_constants as constants
from theory.decentralized.sghmc.setting import chain
from theory.decentralized.sgld import errata as langevin
from theory.exact import joint_law

GRADES = {
    "de_sgld.convexity_of_average": ("error", "range"), "de_sgld.labels": ("error", "nothing"),
    "de_sgld.least_iterations": ("error", "range"), "de_sgld.missing_half": ("error", "nothing"),
    "de_sgld.monotone": ("proof", "nothing"), "de_sgld.stochastic_gradient": ("error", "nothing"),
    "de_sgld.transient": ("proof", "nothing"),
    "de_sghmc.first_lyapunov_value": ("proof", "nothing"),
    "de_sghmc.gradient_constant": ("proof", "constant"),
    "de_sghmc.lemma_20": ("proof", "nothing"),
    "de_sghmc.order_of_remainder": ("proof", "nothing"), "de_sghmc.position_bound": ("proof", "nothing"),
    "de_sghmc.strong_convexity_factor": ("proof", "nothing"),
    "de_sghmc.symbols_of_the_proofs": ("proof", "nothing"),
}
REMARKS = {
    "de_sgld.circle_gap": "loose", "de_sgld.lemma_7_display": "transcription", "de_sgld.lipschitz": "loose",
    "de_sgld.order_of_error": "loose", "de_sgld.target_moment": "loose", "de_sghmc.matrix_q": "transcription",
    "de_sghmc.monotone": "loose",
}
PAPERS = ("DE-SGLD", "DE-SGHMC")


def test_grades_and_consequences():
    errata = [entry for paper in PAPERS for entry in theory.errata(paper)]
    assert {entry.id: (entry.grade, entry.consequence) for entry in errata} == GRADES
    remarks = [entry for paper in PAPERS for entry in theory.remarks(paper)]
    assert {entry.id: entry.grade for entry in remarks} == REMARKS


def test_entries_are_complete():
    known = set(theory.catalogue()["id"])
    for entry in [entry for paper in PAPERS for entry in theory.errata(paper) + theory.remarks(paper)]:
        assert set(entry.theorems) <= known, entry.id
        assert entry.where and entry.printed and entry.corrected and len(entry.derivation) > 60, entry.id
        found = entry.evidence()
        if entry.kind == "numerical":
            assert found.demonstrated and found.speaks_for == "the entry", entry.id
        else:
            assert not found.numbers and not found.demonstrated, entry.id


# --- every computed entry can come out for the authors

SHORT = replace(apart.INSTANCES[0], alpha=0.1)  # the lost factor is below g^2

FOR_THE_AUTHORS = {
    "missing_half": lambda: langevin.missing_half(1.0),
    "labels": lambda: langevin.labels_against(np.random.default_rng(0).standard_normal((60, 2)), np.ones(60)),
    "convexity_of_average, one client": lambda: langevin.lemma_9(np.array([0.1, 1.0]), 1, 0.999 * 2 / 1.1),
    "convexity_of_average, small steps": lambda: langevin.lemma_9(np.array([0.1, 1.0]), 5, 2 / 1.1),
    "least_iterations": lambda: langevin.remark_2(np.arange(34.0, 1e4)),
    "transient, the step": lambda: apart.transient(SHORT, apart.INSTANCES[:1]),
    "strong_convexity_factor": lambda: momentum.strong_convexity(2.0),
    "lemma_20": lambda: momentum.lemma_20([(1.0, 2.0, 0.0, 0.1, 0.0), (1.0, 1.0, -0.5, 0.1, 0.0)]),
    "first_lyapunov_value": lambda: momentum.first_value(5.0),
    "order_of_remainder": lambda: momentum.order_of_remainder(1.0, heat=0.0),
    "monotone": lambda: momentum.monotone((0.3, 0.0, 0.0), (0.31, 0.0, 0.0)),
    "gradient_constant, near 1": lambda: constants.gradient_constant((1.0, 10.0), (0.3, 1.0)),
    "gradient_constant, one family": lambda: constants.gradient_constant((1e6,), (1.0,)),
    "position_bound": lambda: constants.position(0.0),
}


@pytest.mark.parametrize("name", FOR_THE_AUTHORS)
def test_evidence_can_come_out_for_the_authors(name):
    found = FOR_THE_AUTHORS[name]()
    assert not found.demonstrated and found.speaks_for == "the authors"
    against = next(entry for paper in PAPERS for entry in theory.errata(paper) + theory.remarks(paper)
                   if entry.id.split(".")[1] == name.split(",")[0] and entry.kind == "numerical").evidence()
    assert against.demonstrated and against.text != found.text


def test_a_violated_statement_would_be_said(monkeypatch):
    """A slip of a proof is claimed only where the statement stands: here the statements are made to fail."""
    true = apart.without_the_term
    monkeypatch.setattr(apart, "without_the_term", lambda it: tuple(part / 1e3 for part in true(it)))
    found = apart.transient(apart.INSTANCES[0], apart.INSTANCES)
    assert not found.demonstrated and "is violated" in found.text
    beyond = momentum.lemma_20([(1.0, 2.0, 0.0, 0.1, 0.2)])  # far beyond (38)
    assert not beyond.demonstrated and "q_1 < 1 is violated" in beyond.text


# --- the numbers behind them

@pytest.mark.parametrize("s, average, clients", [(1.0, 0.0351, 0.2312), (1e2, 0.3436, 0.8608),
                                                 (1e4, 3.4353, 8.6081), (1e6, 34.353, 86.081)])
def test_theorem_11_with_the_value_105(s, average, clients):
    """With the supremum itself in c~_4; the evidence takes the largest bound of it that the appendix has."""
    case = constants.opposed(s, 10.0)
    exact = constants.moments(case.problem, case.algorithm, case.first)
    alpha, L = case.alpha, 2 * s
    assert theory.de_sghmc.step_size_limit(s, L, case.algorithm.mixing) ** 2 == pytest.approx(alpha / 0.999)
    bounds = case.theorem_11(2 * alpha * L * exact.distances.max() + 4)
    assert (exact.average / bounds[0]).max() == pytest.approx(average, rel=2e-3)
    assert (exact.clients / bounds[1]).max() == pytest.approx(clients, rel=2e-3)
    found = case.ratios()
    assert found["(105)"][0] == pytest.approx(average * 0.262, rel=0.02)
    assert found["least c_5 of (46)"] == pytest.approx((0.047, 0.28), rel=0.1)
    assert found["(105), c~_4 corrected"] == pytest.approx((0.0187, 0.146), rel=0.03)
    # the same problem with lengths in another unit
    other = case.in_other_units(float(np.sqrt(s)))
    assert other.curvatures == pytest.approx((1.0, 2.0))
    assert other.ratios()["(105)"] == pytest.approx((0.0092, 0.08), rel=0.03)


@pytest.mark.parametrize("s, clients", [(1.0, 0.153), (1e-2, 1.89), (1e-4, 19.2), (1e-6, 189.0),
                                        (1e-8, 819.0)])
def test_theorem_11_with_the_value_105_for_clients_that_pull_apart(s, clients):
    """gamma-bar = 0.3 and a start at x_a: clients rest at +-eta^2 R/(0.7 + eta^2 s)."""
    case = constants.pulled(s)
    assert fs.network.second_eigenvalue(case.algorithm.mixing) == pytest.approx(0.3)
    assert case.alpha < theory.de_sghmc.step_size_limit(s, s, case.algorithm.mixing) ** 2
    assert case.start[0] == pytest.approx(0.1 * constants.PULL / (0.7 + 0.1 * s))
    found = case.ratios()
    assert found["(105)"][1] == pytest.approx(clients, rel=5e-3)
    assert max(*found["least c_5 of (46)"], *found["(105), c~_4 corrected"]) < 0.3
    assert max(case.in_other_units(np.sqrt(s)).ratios()["(105)"]) < 0.2


def test_the_bound_of_the_evidence_is_theorem_11():
    """`Case.theorem_11` with a start apart and gamma-bar > 0 against the theory's own."""
    case = constants.Case((0.5, 2.0), (1.0, -3.0), (4.0, -1.0), constants.pair(0.3), 0.05)
    known = theory.constants(case.problem, case.algorithm, case.first)
    given = {"n_rounds": constants.HORIZON, "variant": "printed"}
    bounds = (theory.de_sghmc.w2_bound(known, case.algorithm, **given),
              theory.de_sghmc.w2_clients_bound(known, case.algorithm, **given))
    c5 = chain(known, case.algorithm).c5
    for found, bound in zip(case.theorem_11(c5), bounds, strict=True):
        np.testing.assert_allclose(found, bound.value, rtol=1e-9)


def test_the_right_end_of_102_stands():
    """mu b < 1, and c_3 with V_1 by (95) bounds mu b E|x - x_a|^2, also from starts far apart."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        a = 10.0 ** rng.uniform(-2.0, 2.0, 2)
        second = float(rng.uniform(0.0, 0.99))
        limit = (1 + second) / (2 * (a.max() + a.min()))
        case = constants.Case(tuple(a), tuple(rng.standard_normal(2)), tuple(10 * rng.standard_normal(2)),
                              constants.pair(second), limit * float(rng.uniform(0.01, 1.0)))
        law = joint_law(case.problem, case.algorithm, 60, start=case.first)
        off = ((law.mean - case.fixed) ** 2).sum(axis=(1, 2)) + np.trace(law.cov, axis1=1, axis2=2)
        assert 0.0 < a.min() * case.chain.b < 1.0
        assert off.max() <= case.c3 / (a.min() * case.chain.b)


def test_moments_are_those_of_the_exact_law():
    case = constants.opposed(3.0, 2.0)
    problem, algorithm, start = case.problem, case.algorithm, case.first
    found = constants.moments(problem, algorithm, start)
    law = theory.exact_law(problem, algorithm, constants.HORIZON, start=start)
    np.testing.assert_allclose(found.average, law.w2(), rtol=1e-7)
    np.testing.assert_allclose(found.clients, theory.de_sgld.clients_w2(law), rtol=1e-7)


def test_plain_forms_of_the_displays_are_those_of_the_theorems():
    """D^2 of Lemma 5 and c_1, b of appendix B as the evidence writes them, against the theory's own."""
    one = apart.INSTANCES[3]
    problem = fs.Quadratic.from_components(one.curvatures, np.array(one.minimizers)[:, None], one.noise)
    algorithm = fs.DESGLD(one.alpha, one.mixing)
    s = theory.de_sgld.setting(theory.constants(problem, algorithm, np.array(one.start)[:, None]), algorithm)
    bracket = (4 * s.L**2 * s.gradient_bound * s.alpha / (s.N * s.gap**2)
               + 4 * s.L**2 * s.sigma_sq * s.alpha / s.square_gap + 8 * s.L**2 * s.d / s.square_gap)
    lemma, average = apart.without_the_term(one)
    main = s.alpha * s.drift / s.mu_prime * bracket
    assert lemma[0] == pytest.approx(main + s.noise**2)
    np.testing.assert_allclose(average, s.initialization(np.arange(apart.HORIZON + 1)) + s.euler + s.noise
                               + np.sqrt(main))


def test_lemma_8_needs_no_term_for_the_start():
    """u <= (L/(mu sqrt N))(a + n) of the derivation, at the largest S that (26) allows, in units a = 1."""
    worst = 0.0
    for g in (0.0, 0.1, 0.5, 0.9, 0.99):
        for eta_L in (1e-4, 1e-2, 0.1, 0.3, 0.5, 0.9):
            for mu in (1.0, 0.5, 0.1, 1e-2):  # over L
                if eta_L * (1 + mu) > 1:
                    continue
                for n in (0.0, 0.2, 5.0):
                    r, u, apart = 1 - eta_L * mu, 0.0, max((1 - g) / (2 * eta_L), 0.0)
                    for j in range(400):
                        delta = g**j * apart + (1 - g**j) + n
                        u = r * u + eta_L * delta
                        worst = max(worst, u * mu / (1 + n))
    assert 0.9 < worst <= 1.0


def test_the_momentum_of_lemma_16_is_small():
    """(38) has beta <= (eta^2 mu)^2/8 <= eta^2 mu/16, and (a + m)^2 <= 2 a^2 + m^2 for m <= a/16."""
    for mu, _, _, alpha, beta in momentum.settings(2000, 11):
        assert beta <= (alpha * mu) ** 2 / 8 <= alpha * mu / 16
    m = np.linspace(0.0, 1 / 16, 100)
    assert ((1 + m) ** 2 <= 2 + m**2).all()


def test_lemma_8_without_its_last_term_on_random_problems():
    rng, worst = np.random.default_rng(20261122), 0.0
    families = (fs.network.ring, fs.network.complete, fs.network.path, fs.network.star)
    for _ in range(15):
        N = int(rng.integers(2, 6))
        a = tuple(10.0 ** rng.uniform(-1.0, 0.0, N))
        mixing = families[int(rng.integers(4))](N)
        limit = min((1 + fs.network.smallest_eigenvalue(mixing)) / max(a), 1 / (max(a) + min(a)))
        start = tuple(10.0 ** rng.uniform(0.0, 5.0) * rng.standard_normal(N))
        step, noise = limit * float(10.0 ** rng.uniform(-3.0, -0.01)), float(10.0 ** rng.uniform(-1.0, 4.0))
        one = apart.Instance(a, tuple(rng.standard_normal(N)), start, mixing, step, noise)
        worst = max(worst, *apart.statement_ratios(one))
    assert 0.3 < worst <= 1.0


def test_lemma_16_without_its_last_term_on_random_problems():
    """With c_5 of (105), c~_4 corrected and its supremum exact; beta = 0."""
    rng, worst = np.random.default_rng(20261123), 0.0
    families = (fs.network.ring, fs.network.complete, fs.network.path, fs.network.star)
    for _ in range(15):
        N = int(rng.integers(2, 6))
        a, b = 10.0 ** rng.uniform(-1.0, 0.0, N), rng.standard_normal(N)
        mixing, noise = families[int(rng.integers(4))](N), float(10.0 ** rng.uniform(-1.0, 3.0))
        mu, L, mode = a.min(), a.max(), (a @ b) / a.sum()
        eta = theory.de_sghmc.step_size_limit(mu, L, mixing) * float(10.0 ** rng.uniform(-1.0, -0.01))
        start = 10.0 ** rng.uniform(0.0, 5.0) * rng.standard_normal((N, 1))
        problem = fs.Quadratic.from_components(a, b[:, None], noise)
        algorithm, alpha, gap = fs.DESGHMC(eta, 1 / eta, mixing), eta**2, fs.network.spectral_gap(mixing)
        far = constants.moments(problem, algorithm, start).distances.max()
        c5 = 2 * alpha * (2 * (a**2 @ (mode - b) ** 2) + 2 * L**2 * far) + alpha * noise**2 * N + 2 * N
        slowed = mu * (1 - alpha * L / 2)
        grown = alpha / slowed + (1 + alpha * L) ** 2 / slowed**2
        bound = 4 * grown * L**2 * c5 * alpha / (N * gap**2) + alpha * noise**2 / (slowed * N)
        exact = theory.de_sgld.coupling(problem, algorithm, 60, start, alpha=alpha).average_to_damped
        worst = max(worst, float(exact.max() / bound))
    assert 0.01 < worst <= 1.0


def test_lemma_20_stands_as_printed():
    """(1-l)^2 (1+c_1) <= 4 and c_1 < (1+l)/8, l = lambda_N, near -1 too; and with the c_2 of (81)."""
    e = np.linspace(1e-9, 2.0, 10**5)
    assert ((2 - e) ** 2 * (1 + e / 8) < 4).all()
    given = momentum.settings(3000, 7)
    for mu, L, least, alpha, beta in given:
        assert momentum.first_constant(mu, L, least, alpha, beta) < (1 + least) / 8
        c1 = momentum.first_constant(mu, L, least, alpha, beta)
        assert 4 * beta**2 * (1 - least) ** 2 * (1 + 2 * c1) <= 8 * beta**2 * (1 - least) ** 2
    found = momentum.lemma_20(given).numbers
    assert 0.9 < found["q_1, largest, printed c_2 and 64"] < 1.0


def test_the_numerators_are_those_of_the_chain():
    """q_1 by hand against (85), (86) with k_(alpha, beta) of (80)."""
    mu, L, least, alpha, beta = 1.0, 3.0, -0.2, 0.05, 1e-3
    c1 = momentum.first_constant(mu, L, least, alpha, beta)
    c2 = 4 * beta**2 / (1 - beta) ** 2 * (1 - least) ** 2 * (1 + 1 / c1)
    a = 2 * alpha * beta / (1 - beta) ** 2 + 2 * c2 / mu
    smooth = L + (1 - least) / alpha
    k = alpha / (1 - beta) * (alpha / (1 - beta) - 2 / (smooth + mu) + 2 * c1 * alpha / (1 - beta))
    b = 2 * alpha * beta / (1 - beta) ** 2 - 2 * k * mu
    by_85, printed, below = momentum.numerators(mu, L, least, alpha, beta)
    assert (by_85, below) == pytest.approx((a * (1 - beta) ** 2, b * (1 - beta) ** 2))
    assert printed < by_85


def test_mixing_of_the_footnote():
    for values in ((0.0, 0.3, 0.0), (0.31, 0.0, 0.0)):
        mixing = fs.network.check_mixing(momentum.mixing_of(values))
        assert fs.network.second_eigenvalue(mixing) == pytest.approx(max(values))
        assert fs.network.smallest_eigenvalue(mixing) == pytest.approx(0.0, abs=1e-12)


def test_lemma_9_diverges_in_its_printed_range():
    """The plain recursion of the evidence is the exact law of the Euler scheme."""
    problem = fs.Quadratic.from_components(np.array([[0.1, 1.0]] * 5), np.zeros((5, 2)))
    algorithm = fs.DESGLD(0.999 * 10 / 1.1, fs.network.complete(5))
    law = theory.de_sgld.quantities.euler_law(problem, algorithm, None, 10, np.ones(2), None)
    first = np.sqrt(2 + problem.target().variances.sum())
    bound = (1 - 0.1 * 0.999 * 10 / 1.1) ** np.arange(11) * first + 16.5 * np.sqrt(0.999 * 10 / 1.1 * 2 / 5)
    found = langevin.lemma_9(np.array([0.1, 1.0]), 5, 0.999 * 10 / 1.1).numbers
    assert found["exact W2 / bound, largest"] == pytest.approx((law.w2() / bound).max())
    assert found["step size"] > 2 / 1.0 > found["2/(L+mu)"]


@pytest.mark.parametrize("start, fails", [(1.0, False), (1e3, True)])
def test_lemma_9_fails_between_its_limits_from_a_far_start(start, fails):
    """Between 2/(L+mu) and 2/L the iteration is stable, and slower than (1 - mu eta)^k."""
    found = langevin.lemma_9(np.array([0.1, 1.0]), 5, 1.9, 30, start)
    assert found.numbers["2/(L+mu)"] < 1.9 < found.numbers["2/L"] and found.demonstrated is fails


def test_figure_2_is_stable_with_the_half():
    """Radii on the complete, circular and disconnected networks, seeds other than the evidence's too."""
    def radii(factor):
        numbers = langevin.missing_half(factor, range(6)).numbers
        return {name.split(", ")[1]: value for name, value in numbers.items() if name.endswith("largest")
                and "radius" in name}

    assert max(radii(1.0).values()) < 1.0
    printed = radii(2.0)
    assert min(printed["complete network"], printed["circular network"]) > 1.4
    assert printed["disconnected network"] < 0.8


def test_remark_2():
    numbers = langevin.remark_2(np.arange(3.0, 1000.0)).numbers
    assert (numbers["first K beyond it"], numbers["last K beyond it"]) == (3.0, 33.0)
    K = np.arange(34.0, 1e5)
    assert (np.log(K) <= np.sqrt(K / np.e)).all()
