"""What is said against FA-LD's privacy theorem, and where it comes out for the authors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import theory
from theory.privacy import guarantee_at


def test_errata_and_remarks():
    ours = {entry.id: entry for entry in [*theory.errata("FA-LD"), *theory.remarks("FA-LD")]
            if entry.id.startswith("fa_ld.privacy")}
    assert {id.split(".")[-1]: (entry.grade, entry.consequence) for id, entry in ours.items()} == {
        "client_sampling": ("error", "conclusion"), "scheme_i_chance": ("error", "range"),
        "grouping": ("transcription", "nothing")}
    known = {entry.id for entry in theory.theorems()}
    for entry in ours.values():
        assert entry.derivation and set(entry.theorems) <= known
        assert entry.evidence().demonstrated == (entry.grade == "error"), entry.id


def test_evidence_comes_out_for_the_authors_where_they_are_right(monkeypatch):
    """The same comparison within the theorem's range: one record per client, and equal weights."""
    from theory.privacy import errata

    single, weighted = errata.one_upload, errata.one_weighted_upload
    monkeypatch.setattr(errata, "one_upload", lambda n_clients, records: single(n_clients, 1))
    monkeypatch.setattr(errata, "one_weighted_upload", lambda sizes: weighted(len(sizes) * (1,)))
    for name in ("client_sampling", "scheme_i_chance"):
        entry = next(one for one in theory.errata("FA-LD") if one.id == f"fa_ld.privacy.{name}")
        assert entry.evidence().speaks_for == "the authors"


def test_scheme_i_with_unequal_weights_by_quadrature():
    """The computed exact delta, against a plain sum over a grid of the two densities."""
    from scipy.stats import norm

    from theory.privacy.errata import one_weighted_upload, weighted_upload_delta

    s, eta = one_weighted_upload((1, *48 * (2,), 3))
    np.testing.assert_allclose(s.weights, s.client_sizes / s.client_sizes.sum())  # section 2.1
    claim = guarantee_at(s, eta, variant="printed")
    x = np.linspace(-12.0, 12.0, 2_000_001)
    half = eta / 0.01 / math.sqrt(2 * eta / 0.01)
    others = 0.96 * norm.pdf(x, 0.0, math.sqrt(0.5)) + 0.03 * norm.pdf(x, 0.0, math.sqrt(1 / 3))
    first, second = (0.01 * norm.pdf(x, sign * half) + others for sign in (-1.0, 1.0))
    exact = np.maximum(first - math.exp(claim.epsilon) * second, 0.0).sum() * (x[1] - x[0])
    assert weighted_upload_delta(s, eta, claim.epsilon) == pytest.approx(exact, rel=1e-4)
    assert exact > 100 * claim.delta


def test_the_right_chance_does_not_save_scheme_i():
    """The light client's own chance .01 in place of 1/N = .02."""
    entry = next(one for one in theory.errata("FA-LD") if one.id == "fa_ld.privacy.scheme_i_chance")
    found = entry.evidence().numbers
    assert found["unequal_delta"] == pytest.approx(2e-8)
    assert found["right_chance_delta"] == pytest.approx(1e-8)
    assert found["right_chance_epsilon"] < found["unequal_epsilon"]
    assert found["right_chance_exact"] > found["unequal_exact"] > 100 * found["unequal_delta"]


def test_few_records_a_client_are_covered_by_slack():
    entry = next(one for one in theory.errata("FA-LD") if one.id == "fa_ld.privacy.client_sampling")
    assert entry.evidence().text.endswith("the printed delta is exceeded from 4 on.")
