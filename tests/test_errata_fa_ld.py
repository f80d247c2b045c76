"""FA-LD's errata and remarks: their grades, and that the evidence can come out for the authors."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import fedsim as fs
import theory
from fedsim.settings.schedules import Harmonic
from theory.fa_ld import errata

GRADES = {  # id: grade, what falls with it
    "bias_at_full_sharing": ("loose", "nothing"),
    "client_temperature": ("error", "nothing"),
    "correlated_constant": ("transcription", "nothing"),
    "equal_curvature": ("error", "conclusion"),
    "geometric_sum": ("transcription", "nothing"),
    "growth_with_local_steps": ("loose", "nothing"),
    "halved_step_size": ("proof", "nothing"),
    "heterogeneity_squared": ("error", "nothing"),
    "independent_noises": ("transcription", "nothing"),
    "lemma_range": ("error", "range"),
    "noise_variance_factor": ("loose", "nothing"),
    "partial_constants": ("loose", "nothing"),
    "partial_grouping": ("transcription", "nothing"),
    "partial_local_steps": ("proof", "nothing"),
    "sampling_probability": ("error", "nothing"),
    "square_roots": ("transcription", "nothing"),
}


@functools.cache
def numbers_of(name):
    return ours()[name].evidence().numbers


def ours():
    entries = theory.errata("FA-LD") + theory.remarks("FA-LD")
    return {entry.id.removeprefix("fa_ld."): entry for entry in entries if "privacy" not in entry.id}


def test_every_entry_has_its_grade():
    assert {name: (entry.grade, entry.consequence) for name, entry in ours().items()} == GRADES
    known = {entry.id for entry in theory.theorems()}
    for entry in ours().values():
        assert entry.derivation and entry.printed != entry.corrected
        assert set(entry.theorems) <= known, entry.id


@pytest.mark.parametrize("name", sorted(GRADES))
def test_computed_evidence_speaks_for_its_entry(name):
    found = ours()[name].evidence()
    assert found.text and all(np.isfinite(value) for value in found.numbers.values())
    assert found.speaks_for == ("the entry" if found.numbers else "neither")


def speaks_for(name):
    return ours()[name].evidence().speaks_for


def test_different_curvatures_would_clear_figure_1(monkeypatch):
    other = fs.papers.fa_ld_unequal_curvature
    monkeypatch.setattr(errata, "fa_ld_simulation",
                        lambda alpha, seed, n_data: other(alpha, seed, spread=0.3, n_data=n_data))
    assert speaks_for("equal_curvature") == "the authors"


def test_one_optimum_for_all_heterogeneities_would_clear_figure_1(monkeypatch):
    """The kind reading, in which weights are 1/N: a cliff just beyond K = 3000 whatever alpha is."""
    other = fs.papers.fa_ld_unequal_curvature
    monkeypatch.setattr(errata, "fa_ld_unequal_curvature",
                        lambda alpha, seed, spread: other(0.0, seed, spread=0.2))
    assert speaks_for("equal_curvature") == "the authors"


def test_no_spread_of_the_data_makes_figure_1():
    """With weights 1/N rounds fall like 1/K until they never end, at a K that falls with alpha."""
    numbers = numbers_of("equal_curvature")
    kind = [numbers.get(f"exact rounds with p_c=1/N beside n_c spread by 3 %, alpha=1, K={K}")
            for K in (1, 10, 100, 3000, 10000)]
    assert 5000 < kind[0] < 5500 and 9.0 < kind[0] / kind[1] < 11.0 and kind[2:] == [None, None, None]
    assert numbers["curves with p_c=1/N that are least at K=3000 and rise"] == 0.0


def test_a_norm_that_grows_like_alpha_would_clear_section_6(monkeypatch):
    monkeypatch.setattr(errata, "fa_ld_simulation",
                        lambda alpha, seed, **rest: fs.papers.fa_ld_simulation(alpha**2, seed, **rest))
    assert speaks_for("heterogeneity_squared") == "the authors"


def test_a_step_size_that_is_stable_with_more_data_would_clear_section_6(monkeypatch):
    monkeypatch.setattr(errata, "STEP", 1e-12)
    assert speaks_for("heterogeneity_squared") == "the authors"


def test_clients_that_stay_bounded_would_clear_the_lemmas(monkeypatch):
    real = fs.FALD
    monkeypatch.setattr(errata, "FALD", lambda step, **rest: real(0.1 * step, **rest))
    assert speaks_for("lemma_range") == "the authors"


def test_a_step_size_that_does_not_halve_would_clear_the_induction(monkeypatch):
    class Slow(Harmonic):
        @classmethod
        def from_theorem(cls, *, strong_convexity, smoothness):
            return Harmonic(2.0 * smoothness, strong_convexity / 1200.0)

    monkeypatch.setattr(errata, "Harmonic", Slow)
    assert speaks_for("halved_step_size") == "the authors"


def test_the_figures_accuracy_is_beside_the_noise_of_300_runs():
    numbers = numbers_of("equal_curvature")
    floor = numbers["root mean square W2 of a normal law fitted to 300 exact draws"]
    assert floor == pytest.approx(0.8e-3, rel=0.1) and floor < 1e-3


def test_the_noise_of_300_runs_does_not_make_3000_local_steps_the_best():
    numbers = numbers_of("equal_curvature")
    few, middle, many = (numbers[f"rounds to that accuracy seen in 300 runs, alpha=1000, K={K}"]
                         for K in (100, 3000, 20000))
    assert 15 < few / middle < 45 and middle > many >= 1.0  # a saving of about 30 times is right in size


def test_weights_beside_the_numbers_of_data_would_make_local_steps_matter():
    numbers = numbers_of("equal_curvature")
    ratios = [value for name, value in numbers.items() if "n_c spread by 30 %" in name]
    assert len(ratios) == 2 and max(ratios) > 10.0


@pytest.mark.parametrize("kappa", (1.5, 10.0, 1e3))
def test_the_lemmas_range_is_what_their_proof_asks(kappa):
    """|1 - eta l| <= 1 - eta m/2 on [m, L], (44), up to 4/(2L + m) and no further."""
    curvatures = np.linspace(1.0, kappa, 1001)
    for factor, holds in ((1.0 - 1e-9, True), (1.0 + 1e-6, False)):
        eta = factor * 4.0 / (2.0 * kappa + 1.0)
        assert bool((np.abs(1.0 - eta * curvatures) <= 1.0 - 0.5 * eta).all()) is holds
    assert 2.0 / (kappa + 1.0) < 4.0 / (2.0 * kappa + 1.0) < 2.0
