"""Judges of the figures on images read the right rows: rounds, scores, settings, parts and data sets."""

from __future__ import annotations

import pandas as pd
import pytest

from reproduce.fa_ld import fig2_4
from reproduce.prediction import judging
from reproduce.verdicts import FAIL, NOT_TESTABLE, PASS

FACTS = pd.DataFrame([{"dim": 650, "acceptance": 0.77, "split_rhat": 1.02, "floor": 0.002}])
SURE, EVEN, BETTER = 0.05, 0.005, -0.05
INSIDE = pd.DataFrame({"setting": [1, 5, 9], "edge": False})


def compared(values):
    """Rows by (round, score, setting): so much worse, give or take 0.01."""
    return pd.DataFrame([{"round": number, "score": score, "setting": setting, "worse": worse,
                          "low": worse - 0.01, "high": worse + 0.01}
                         for (number, score, setting), worse in values.items()])


def by_round(*values):
    """Two other settings, one score, this much worse after 10, 20, ... rounds."""
    return compared({(10 * place, "ece", setting): worse for place, worse in enumerate(values, 1)
                     for setting in (5, 9)})


@pytest.mark.parametrize(("values", "verdict", "remark"), [
    ((EVEN, EVEN, SURE), PASS, ""),
    ((SURE, EVEN, EVEN), NOT_TESTABLE, "After 10 rounds, each by itself, it certainly is."),
    ((SURE, SURE, BETTER), FAIL, "After 10 and 20 rounds, each by itself, it certainly is."),
    ((SURE, EVEN, SURE), PASS, ""),
])
def test_a_claim_is_read_at_the_last_round(values, verdict, remark):
    found = judging.claimed(by_round(*values), ["ece"], INSIDE, "K")
    assert (found.verdict, found.remark) == (verdict, remark)
    assert "after 30 rounds" in found.why


@pytest.mark.parametrize(("values", "verdict"), [((SURE, BETTER), PASS), ((BETTER, SURE), FAIL)])
def test_the_first_round_compared_is_another(values, verdict):
    table = judging.early(by_round(*values))
    assert judging.worst(table, ["ece"])[0] == verdict


@pytest.mark.parametrize(("five", "nine", "worst", "some"), [
    (SURE, SURE, PASS, PASS), (SURE, EVEN, NOT_TESTABLE, PASS), (EVEN, EVEN, NOT_TESTABLE, NOT_TESTABLE),
    (SURE, -EVEN, NOT_TESTABLE, PASS), (SURE, BETTER, FAIL, PASS),
    (EVEN, BETTER, FAIL, NOT_TESTABLE), (BETTER, BETTER, FAIL, FAIL)])
def test_the_worst_and_worse_than_some(five, nine, worst, some):
    table = compared({(10, "ece", 5): five, (10, "ece", 9): nine})
    assert judging.worst(table, ["ece"])[0] == worst
    assert judging.worst(table, ["ece"], every=False)[0] == some


def test_every_score_counts_and_no_other():
    table = compared({(10, "ece", 5): SURE, (10, "brier", 5): EVEN, (10, "nll", 5): BETTER})
    assert judging.worst(table, ["ece"])[0] == PASS
    assert judging.worst(table, ["ece", "brier"])[0] == NOT_TESTABLE
    assert judging.worst(table, ["ece", "nll"])[0] == FAIL


@pytest.mark.parametrize(("five", "nine", "verdict"), [
    (SURE, BETTER, PASS), (EVEN, BETTER, NOT_TESTABLE), (EVEN, EVEN, NOT_TESTABLE), (BETTER, BETTER, FAIL)])
def test_some_setting_beats_the_exact_predictive(five, nine, verdict):
    table = compared({(10, "ece", 5): BETTER, (10, "ece", 9): SURE, (20, "ece", 5): five,
                      (20, "ece", 9): nine, (20, "brier", 5): SURE})
    assert judging.beaten(table, "ece", "K", FACTS)[0] == verdict


@pytest.mark.parametrize(("value", "verdict", "words"), [
    (BETTER, PASS, "it is better"), (SURE, FAIL, "it is worse"),
    (EVEN, NOT_TESTABLE, "which is better is open"), (-EVEN, NOT_TESTABLE, "which is better is open")])
def test_the_better_of_two_is_read_at_the_last_round(value, verdict, words):
    table = compared({(10, "brier", 50): SURE - value, (20, "brier", 50): value, (20, "ece", 50): -value})
    found = judging.better(table, INSIDE, "brier", "K = 1", "K")
    assert found[0] == verdict and words in found[1]


def figure_tables():
    """Both data sets; K = 1 is the worst nowhere."""
    compared_, tuning, labels, facts = [], [], [], []
    for name, data in (("mnist", "MNIST"), ("fashion", "Fashion-MNIST")):
        for part in fig2_4.PARTS:
            one = compared({(10, score, k): EVEN for score in ("accuracy", "brier", "ece") for k in (10, 20)})
            compared_.append(one.assign(part=part, set=name))
            tuning.append(pd.DataFrame({"setting": [1, 10, 20], "edge": False, "part": part, "set": name}))
            facts.append({"part": part, "set": name, "data": data})
        labels.append(pd.DataFrame({"setting": [1, 50], "edge": False, "set": name}))
    return {"compared": pd.concat(compared_), "tuning": pd.concat(tuning), "labels": pd.concat(labels),
            "facts": pd.DataFrame(facts)}


CLAIMS = {item.name: item for item in fig2_4.CLAIMS}
BOTH, MNIST, FASHION = ("mnist", "fashion"), ("mnist",), ("fashion",)


@pytest.mark.parametrize(("name", "part", "score", "sets"), [
    *((f"worst_{score}_2", 0, score, BOTH) for score in ("accuracy", "brier", "ece")),
    ("worst_accuracy_4", 1, "accuracy", BOTH), ("worst_brier_4", 1, "brier", BOTH),
    ("worst_ece_4", 1, "ece", MNIST), ("not_best_ece_4", 1, "ece", FASHION)])
def test_a_sentence_is_about_its_figure_score_and_data(name, part, score, sets):
    """It passes where these rows alone say so, and not where all but one of them do."""
    tables = figure_tables()
    table = tables["compared"].reset_index(drop=True)
    own = (table["part"] == fig2_4.PARTS[part]) & (table["score"] == score) & table["set"].isin(sets)

    def judged(chosen):
        made = table.copy()
        made.loc[chosen, ["worse", "low", "high"]] = [0.05, 0.04, 0.06]
        return CLAIMS[name].judge(tables | {"compared": made}).verdict

    assert judged(own) == PASS and judged(~own) == NOT_TESTABLE
    assert judged(own & (table["set"] == sets[0])) == (PASS if len(sets) == 1 else NOT_TESTABLE)
    one_k = own & (table["setting"] == 10)
    assert judged(one_k) == (PASS if name.startswith("not_best") else NOT_TESTABLE)
    edge = tables["tuning"].assign(edge=tables["tuning"]["part"] == fig2_4.PARTS[1 - part])
    tables["tuning"] = edge
    assert judged(own) == PASS  # the other figure's grid
    tables["tuning"] = edge.assign(edge=~edge["edge"])
    assert judged(own) == NOT_TESTABLE
