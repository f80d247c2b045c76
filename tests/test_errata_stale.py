"""What is said against the paper on stale gradients, with its evidence."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from examples_of.stale import PROBLEM

import fedsim as fs
import theory
from theory import stale

GRADES = {
    "stale.figure_1_step_size": ("error", "constant"), "stale.workers_ratio": ("error", "nothing"),
    "stale.brownian_step": ("proof", "constant"), "stale.expectations_of_products": ("proof", "constant"),
    "stale.variance_free_of_staleness": ("proof", "nothing"), "stale.fourth_term": ("proof", "nothing"),
    "stale.assumption_1": ("transcription", "nothing"), "stale.chains_mse": ("transcription", "nothing"),
    "stale.chains_variance": ("transcription", "nothing"), "stale.factor_of_servers": ("loose", "nothing"),
}
ENTRIES = [*theory.errata("Stale gradients"), *theory.remarks("Stale gradients")]


def test_grades():
    assert {entry.id: (entry.grade, entry.consequence) for entry in ENTRIES} == GRADES
    known = set(theory.catalogue()["id"])
    for entry in ENTRIES:
        assert entry.derivation and set(entry.theorems) <= known, entry.id


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_errata_have_evidence(entry):
    found = entry.evidence()
    assert found.demonstrated == (entry.kind == "numerical") and found.text.endswith(".")
    assert all(np.isfinite(value) for value in found.numbers.values())


def numbers_of(name):
    return next(entry for entry in ENTRIES if entry.id == f"stale.{name}").evidence().numbers


def test_what_is_said_of_figure_1():
    """At a constant age all six diverge; ages uniform below tau grow up to tau = 5 and shrink from 10 on."""
    numbers = numbers_of("figure_1_step_size")
    constant, uniform = ({tau: numbers[f"growth per update, {name}, tau={tau}"] for tau in stale.errata.AGES}
                         for name in ("a constant age", "ages uniform on 0..tau"))
    assert min(constant.values()) > 0.03
    assert uniform[1] == pytest.approx(0.891, abs=0.003) and uniform[2] == pytest.approx(0.275, abs=0.003)
    assert uniform[5] == pytest.approx(0.0058, abs=0.001)  # 400 paths of 20,000 updates
    for tau, growth in ((10, -0.0057), (15, -0.0052), (20, -0.0046)):
        assert uniform[tau] == pytest.approx(growth, abs=0.001)
        assert numbers[f"its standard error, tau={tau}"] < 3e-4


def test_ages_that_speak_for_figure_1():
    """At tau = 2, and at tau = 1 with half the step, ages 0, 1, 1 contract; constant ages do not."""
    numbers = numbers_of("figure_1_step_size")
    c = 1001 / 30 / 500 ** (1 / 3) / 2
    for start in ("tau=2", "tau=1, steps h/2"):
        growth = {ages: numbers[f"growth per update, {start}, repeated ages {ages}"]
                  for ages in ("0", "1", "0, 1, 1")}
        assert growth["0"] == pytest.approx(np.log(c - 1)) and growth["1"] == pytest.approx(np.log(c) / 2)
        assert growth["0, 1, 1"] == pytest.approx(np.log(abs(1 - 3 * c + c * c)) / 3)
        assert growth["0, 1, 1"] < -0.03 < 0.09 < growth["0"]
    mixed = numbers["growth per update, tau=2, repeated ages 0, 0, 2, 0, 2, 2"]
    assert mixed == pytest.approx(-0.205, abs=1e-3)
    assert numbers["growth per update, tau=1, steps h/2, ages uniform on 0, 1"] > 0.2
    words = next(entry for entry in ENTRIES if entry.id == "stale.figure_1_step_size").derivation
    assert "particular sequences do not" in words
    for ages in ([3], [0, 1, 1], [0, 1, 2, 3, 1, 3]):  # as the library's own chain has it
        chain = fs.StaleSGLD(0.4, np.tile(ages, 600) if len(ages) > 1 else ages[0])
        growth = stale.errata.growth_of_repeated_ages(0.4, ages)
        assert growth == pytest.approx(np.log(chain._radius(PROBLEM)), abs=5e-3)


def test_figure_1_would_be_cleared_by_a_stable_step(monkeypatch):
    """The evidence comes out for the authors with C = 1/80, where some ages 0 and 1 contract at tau = 1."""
    monkeypatch.setattr(stale.errata, "CONSTANT", 1 / 80)
    found = next(entry for entry in ENTRIES if entry.id == "stale.figure_1_step_size").evidence()
    assert not found.demonstrated and "some sequences of ages may shrink" in found.text


def test_the_constants_of_the_theorems_can_vanish():
    """||E grad psi|| = 0 from the posterior mean, where the bias at tau h = 1/2 tends to 0.686."""
    numbers = numbers_of("expectations_of_products")
    assert numbers["max_l ||E grad psi||, a=1, h=0.01, phi=theta^2, tau=50, from theta_0 = 0"] == 0.0
    biases = [numbers[f"bias, a=1, phi=theta^2, tau h=0.5, L -> infinity, h={h}"]
              for h in (0.05, 0.01, 0.001)]
    assert biases == pytest.approx([0.736, 0.695, 0.687], abs=1e-3)
    assert biases[-1] == pytest.approx((1 + np.sin(0.5)) / np.cos(0.5) - 1, abs=2e-3)


def test_length_of_steps_has_no_constant():
    """By normal draws: E (n - 1)/|step| grows as h^(-1/2), while the gap of gradients is tau h."""
    numbers, rng = numbers_of("brownian_step"), np.random.default_rng(3)
    small, large = (numbers[f"E (n - 1)/|step|, n=2, a=1, tau=4, h={h}"] for h in ("1e-06", "0.0001"))
    assert small / large == pytest.approx(10.0, rel=0.01)
    draws = np.sqrt(2e-4) * rng.standard_normal((400_000, 2))
    assert large == pytest.approx((1 / np.linalg.norm(draws, axis=1)).mean(), rel=0.03)
    assert numbers["max ||E(G_old - G)||/(tau h), a=1, tau=4, h=1e-06"] == pytest.approx(1.0)


def test_variance_at_one_bound_of_the_moments():
    numbers = numbers_of("variance_free_of_staleness")
    share = numbers["correlation of neighbouring A_1, a=1, phi=theta^2, tau=20, h=0.01"]
    assert share == pytest.approx(0.9442, abs=1e-4)
    scaled = [numbers[f"L h Var where E theta^2 = 2, a=1, phi=theta^2, tau={tau}"] for tau in (1, 5, 20, 100)]
    assert [min(scaled), max(scaled)] == pytest.approx([7.43, 7.46], abs=0.005)


def test_the_ratio_of_workers_tends_to_theirs():
    numbers = numbers_of("workers_ratio")
    coarse, fine = (numbers[f"L_1/L_2, W = 1 and 4, phi = theta^2, a = 1, h = {h}"] for h in (0.02, 0.01))
    assert 3.6 < coarse < fine < 4.0 and fine == pytest.approx(3.85, abs=0.01)


def test_each_sequence_of_ages_0_and_1_is_covered():
    """The least growth against all periodic sequences up to period 10, by their matrices."""
    least = stale.errata.least_growth_of_ages_0_and_1
    for ha in (4.2039, 2.5, 0.9):
        maps = np.array([[[1.0 - ha, 0.0], [1.0, 0.0]], [[1.0, -ha], [1.0, 0.0]]])
        growths = []
        for period in range(1, 11):
            for ages in product((0, 1), repeat=period):
                whole = np.linalg.multi_dot(maps[list(ages)]) if period > 1 else maps[ages[0]]
                growths.append(np.log(np.abs(np.linalg.eigvals(whole)).max()) / period)
        assert least(ha) <= min(growths) + 1e-9
        assert least(ha, 9) == pytest.approx(min(growths[:-1]), abs=1e-9) or ha < 1.0
    assert least(4.2039) > 0.0 > least(0.9)


def test_the_best_bounds_of_servers_and_of_workers():
    """A factor of S between the terms in time, and none between the best biases."""
    numbers = next(entry for entry in ENTRIES if entry.id == "stale.factor_of_servers").evidence().numbers
    assert numbers["bias: ratio in time alone, Tbar = 1"] == pytest.approx(16.0)
    assert numbers["mse: ratio in time alone, Tbar = 1"] == pytest.approx(16.0)
    assert numbers["bias: ratio at the best step sizes"] == pytest.approx(1.0, abs=0.05)
    assert numbers["mse: ratio at the best step sizes"] == pytest.approx(16 ** (-2 / 3), rel=0.08)
