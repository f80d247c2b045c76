"""What algorithms cost to the same accuracy: each row is what the search for one says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fedsim as fs
import theory

PAIR = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
NETWORK = fs.network.complete(2)


def test_algorithms_at_equal_accuracy():
    several = {"LD": fs.FALD(0.5), "LD 5": fs.FALD(0.5, 5), "HMC": fs.DESGHMC(0.01, 2.0, NETWORK),
               "stale": fs.StaleSGLD(0.1, 2)}
    table = theory.compare_algorithms(PAIR, several, 0.1, start=[2.0], n_grid=9, n_refine=1)
    for row in table.to_dict("records"):
        one = several[row["algorithm"]]
        best = theory.tuning.best_step_size(PAIR, one, 0.1, start=[2.0], n_grid=9, n_refine=1)
        chosen = replace(one, step_size=best.step_size)
        costs = chosen.costs(PAIR, best.n_rounds)
        assert (row["step_size"], row["rounds"]) == (best.step_size, best.n_rounds)
        assert (row["gradients"], row["floats"]) == (costs["gradient_evaluations"], costs["floats_sent"])
        assert row["w2"] == theory.stationary_law(PAIR, chosen).w2(PAIR.target()) <= 0.1


def test_names_and_reasons_of_algorithms():
    same = fs.FALD(0.1, 5)
    several = [fs.FALD(0.1), same, same, fs.FAHMC(0.1, 2)]
    table = theory.compare_algorithms(PAIR, several, 0.1, n_grid=5, n_refine=0)
    assert table["algorithm"].tolist() == ["FALD(local_steps=1)", "FALD(local_steps=5) (1)",
                                           "FALD(local_steps=5) (2)", "FAHMC"]
    table = theory.compare_algorithms(PAIR, [fs.FALD(0.1)], 1e-9, n_grid=5, n_refine=0)
    assert table["rounds"].isna().all()
    assert table["reason"].item() == "no step size tried reaches eps=1e-09 and stays within it"


def test_other_temperatures_and_momenta_that_are_kept():
    options = {"n_grid": 9, "n_refine": 0}
    several = [fs.FALD(0.1, temperature=2.0), fs.FALD(0.3, temperature=2.0)]
    table = theory.compare_algorithms(PAIR, several, 0.2, **options)
    best = theory.tuning.best_step_size(PAIR, several[0], 0.2, **options)
    chosen = replace(several[0], step_size=best.step_size)
    floor = theory.stationary_law(PAIR, chosen).w2(chosen.target(PAIR))
    assert table[["algorithm", "w2"]].values.tolist() == [["FALD (0)", floor], ["FALD (1)", floor]]
    kept = fs.DESGHMC(0.1, 2.0, NETWORK)
    table = theory.compare_algorithms(PAIR, [kept], 0.2, keep_momentum=True, **options)
    best = theory.tuning.best_step_size(PAIR, kept, 0.2, keep_momentum=True, **options)
    chosen = replace(kept, step_size=best.step_size, friction=0.2 / best.step_size)
    floor = theory.stationary_law(PAIR, chosen).w2(PAIR.target())
    assert table["w2"].item() == pytest.approx(floor, rel=1e-9)


def test_a_refusal_is_a_reason_but_not_of_what_all_are_given():
    logistic = fs.LogisticRegression([[1.0], [2.0]], [0, 1], [0, 1], prior_variance=1.0)
    table = theory.compare_algorithms(logistic, [fs.FALD(0.1)], 0.1)
    assert "exact laws need affine gradients" in table["reason"].item() and np.isnan(table["w2"].item())
    with pytest.raises(ValueError, match="start"):
        theory.compare_algorithms(PAIR, [fs.FALD(0.1)], 0.1, start=[1.0, 2.0])


@pytest.mark.parametrize(("algorithms", "words"), [
    ([], r"algorithms=\[\] must have at least one"), (3, "algorithms=3 must be a sequence"),
    ([fs.FALD(0.1), fs.FALD(0.1, temperature=2.0)], "all must sample the same target"),
    ([3], r"algorithms\[0\]=3 must be"), ([fs.FALD], r"algorithms\[0\]=.* an instance and not the class")])
def test_bad_algorithms_are_refused(algorithms, words):
    with pytest.raises(ValueError, match="n_grid=1 must be"):
        theory.compare_algorithms(PAIR, [fs.FALD(0.1)], 0.1, n_grid=1)
    with pytest.raises(ValueError, match=words):
        theory.compare_algorithms(PAIR, algorithms, 0.1)
