"""The exact posterior predictive of figures on images: its target, its chains, its refusal."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from fedsim import estimators
from reproduce import images
from reproduce.prediction import data, judging, runs
from reproduce.reference import Reference, split_rhat
from reproduce.verdicts import NOT_TESTABLE, PASS

P = SimpleNamespace(split_seed=0, n_clients=10, prior_variance=1.0, reference_chains=6, reference_draws=8,
                    reference_warmup=3, seed=2)
TWO = data.dealt(images.digits().of_classes(3, 8, "3 and 8"), P, None)
DRAWS = 0.2 * np.random.default_rng(1).standard_normal((8, 6, TWO.problem.dim))


@pytest.fixture
def chains(monkeypatch):
    """What was asked of Metropolis, which returns `DRAWS` with the acceptance in it."""
    asked = SimpleNamespace(acceptance=0.8)

    def fake(potential, gradient, start, **options):
        asked.potential, asked.gradient, asked.start, asked.options = potential, gradient, start, options
        return Reference(DRAWS, asked.acceptance)

    monkeypatch.setattr(runs, "metropolis_hmc", fake)
    return asked


def test_it_is_of_the_posterior_at_the_temperature(chains):
    runs.exact(TWO, 0.25, P)
    x, direction = DRAWS[0], 1e-5 * np.random.default_rng(2).standard_normal(TWO.problem.dim)
    np.testing.assert_allclose(chains.potential(x), 4.0 * TWO.problem.potential(None, x), rtol=1e-13)
    slope = (chains.potential(x + direction) - chains.potential(x - direction)) / 2.0
    np.testing.assert_allclose((chains.gradient(x) * direction).sum(axis=1), slope, rtol=1e-6)
    law = TWO.problem.laplace(0.25)
    np.testing.assert_array_equal(chains.start, law.sample(6, 2))
    np.testing.assert_array_equal(chains.options["scale"], law.cov)
    assert {name: chains.options[name] for name in ("n_draws", "seed", "warmup")} == {
        "n_draws": 8, "seed": 3, "warmup": 3}


def test_it_is_the_average_of_all_chains_and_halves_are_of_chains(chains):
    target, found = runs.exact(TWO, 1.0, P)
    each = TWO.problem.probabilities(DRAWS.reshape(48, -1), TWO.test.features).reshape(8, 6, -1, 2)
    np.testing.assert_allclose(target, each.mean(axis=(0, 1)), rtol=1e-12)
    one, other = each[:, :3].mean(axis=(0, 1)), each[:, 3:].mean(axis=(0, 1))
    assert found["floor"] == pytest.approx(np.abs(one - other)[:, 0].mean(), rel=1e-9)
    losses = [[estimators.log_loss(part, TWO.test.labels) for part in row] for row in each]
    assert found["split_rhat"] == pytest.approx(split_rhat(losses), rel=1e-9)
    assert found["acceptance"] == 0.8
    for name, score in runs.SCORES.items():
        assert found[f"exact_{name}"] == pytest.approx(score(target, TWO.test.labels), rel=1e-12)


@pytest.mark.parametrize(("acceptance", "good"), [(0.3, False), (0.55, True), (0.98, True), (1.0, False)])
def test_an_acceptance_out_of_range_is_refused(chains, acceptance, good):
    chains.acceptance = acceptance
    target, found = runs.exact(TWO, 1.0, P)
    assert (target is not None) is good
    assert good or found == {"acceptance": acceptance}


def test_real_chains_are_trusted():
    target, found = runs.exact(TWO, 1.0, P)
    assert 0.5 < found["acceptance"] < 0.99 and found["split_rhat"] < 1.5
    assert target.shape == (len(TWO.test.labels), 2)


def test_split_rhat_by_hand():
    """Halves (0, 2), (4, 6), (1, 1), (1, 1): means 1, 5, 1, 1, variances 2, 2, 0, 0."""
    values = np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 1.0], [6.0, 1.0]])
    assert split_rhat(values) == pytest.approx(np.sqrt(0.5 + 4.0 / 1.0), rel=1e-12)
    assert split_rhat(np.insert(values, 2, 9.0, axis=0)) == split_rhat(values)  # the middle is in no half
    with pytest.raises(ValueError, match="values with 3 draws of each chain must have at least 4"):
        split_rhat(values[:3])


def test_a_refusal_is_in_the_reason():
    row = {"score": "ece", "setting": 5, "worse": 0.04, "low": 0.03, "high": 0.05, "round": 9}
    table = pd.DataFrame([row])
    known = pd.DataFrame([{"dim": 650, "acceptance": 0.77, "split_rhat": 1.02, "floor": 0.0021}])
    verdict, why = judging.beaten(table, "ece", "K", known)
    assert verdict == PASS
    assert "77% of its proposals accepted, split R-hat 1.02, halves of the chains 0.0021 apart" in why
    refused = pd.DataFrame([{"dim": 650, "acceptance": 0.12}])
    assert judging.beaten(table[:0], "ece", "K", refused) == (
        NOT_TESTABLE, "There is no exact predictive with 12% of its proposals accepted.")
    many = pd.DataFrame([{"dim": 7850}])
    for facts in (many, many.assign(acceptance=np.nan)):
        assert judging.beaten(table[:0], "ece", "K", facts) == (
            NOT_TESTABLE, "There is no exact predictive in 7,850 dimensions, which are too many.")
