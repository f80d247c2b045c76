"""Verdicts that rest on random numbers: their machinery, and (slow) whether other seeds turn any of them."""

import numpy as np
import pandas as pd
import pytest
from a_figure import a_figure
from scipy import stats

from reproduce import figure, rejudge, verdicts
from reproduce.discovery import figures
from reproduce.figure import DATA_SETS, FAIL, NOT_TESTABLE, PASS, REPLICAS, ByScale, Claim, Parameter

CHANCY = [name for name, one in figures().items() if rejudge.rests_on_chance(one)]


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANCY)
def test_no_verdict_turns_with_the_seed(name):
    table = rejudge.rejudged(figures()[name], "tiny")
    wrong = rejudge.turned(table)
    assert wrong.empty, f"\n{wrong.to_string(index=False)}"


def of_a_coin(chance):
    """A figure whose only claim is true with this chance on each of 12 data sets."""
    parameters = [Parameter("data_seed", ByScale(0, 0, 0), "ours", "the first")]

    def compute(scale):
        seed = figure.settings(parameters, scale).data_seed
        sets = [np.random.default_rng(seed + k).random() < chance for k in range(12)]
        return {"sets": pd.DataFrame({"good": sets})}

    claim = Claim("Heads.", "nowhere", lambda tables: (verdicts.unanimous(tables["sets"]["good"]), "So."),
                  name="heads", rests_on=DATA_SETS)
    return a_figure(compute=compute, PARAMETERS=parameters, CLAIMS=[claim])


@pytest.mark.parametrize(("chance", "word"), [(0.0, FAIL), (0.5, NOT_TESTABLE), (1.0, PASS)])
def test_rejudging_moves_the_seeds(chance, word):
    table = rejudge.rejudged(of_a_coin(chance), "tiny", n_seeds=3)
    assert list(table.columns) == ["figure", "name", "own", "seed 1", "seed 2", "seed 3"]
    assert set(table.iloc[0, 2:]) == {word} and rejudge.turned(table).empty
    one = of_a_coin(0.5)
    own, other = (one.compute("tiny", reseed=k)["sets"]["good"].tolist() for k in (0, 1))
    assert own != other and own == one.compute("tiny")["sets"]["good"].tolist()


def of_a_seed(name):
    """A figure whose verdict, on data sets or on replicas, is FAIL as soon as its seed is moved."""
    parameters = [Parameter(name, 3, "ours", "the third")]

    def compute(scale):
        return {"seeds": pd.DataFrame({"seed": [getattr(figure.settings(parameters, scale), name)]})}

    def judge(tables):
        return (PASS if tables["seeds"]["seed"].iloc[0] == 3 else FAIL), "So."

    return a_figure(compute=compute, PARAMETERS=parameters, CLAIMS=[
        Claim("On data sets.", "nowhere", judge, name="sets", rests_on=DATA_SETS),
        Claim("On replicas.", "nowhere", judge, name="replicas", rests_on=REPLICAS)])


@pytest.mark.parametrize("name", ["seed", "data_seed"])
def test_rejudging_finds_what_turns_with_a_seed(name, monkeypatch, capsys):
    monkeypatch.setattr(rejudge, "chosen", lambda ids: [of_a_seed(name)])
    assert rejudge.main(["--seeds", "1"]) == 1
    assert "2 verdicts on 2 seeds: 2 turned" in capsys.readouterr().out


def test_a_verdict_that_turns_is_found():
    rows = pd.DataFrame([["f", "a", PASS, FAIL], ["f", "b", PASS, NOT_TESTABLE], ["f", "c", FAIL, FAIL]],
                        columns=["figure", "name", "own", "seed 1"])
    assert rejudge.turned(rows)["name"].tolist() == ["a"]


def test_data_sets_must_agree_and_be_enough():
    assert verdicts.unanimous([True] * 12) == PASS and verdicts.unanimous([False] * 12) == FAIL
    assert verdicts.unanimous([True] * 11) == NOT_TESTABLE
    assert verdicts.unanimous([True] * 11 + [False]) == NOT_TESTABLE
    assert verdicts.unanimous([True] + [False] * 11) == NOT_TESTABLE
    with pytest.raises(ValueError, match="one dimension"):
        verdicts.unanimous(np.ones((12, 2)))


def missed(n_comparisons, n_experiments=4000):
    """Experiments, each of 20 means of 12 draws, in which an interval misses a mean."""
    rng = np.random.default_rng(7)
    count = 0
    for _ in range(n_experiments):
        low, high = verdicts.intervals(rng.standard_normal((12, 20)), n_comparisons)
        count += bool(((low > 0) | (high < 0)).any())
    return count, n_experiments


def test_intervals_hold_together_at_their_level(alarm):
    share = 1 - (1 - verdicts.LEVEL / 20) ** 20
    alarm.assert_pvalue(stats.binomtest(*missed(None), share).pvalue, "experiments with a missed mean")
    count, total = missed(1)
    alarm.must_fail((count - total * share) / np.sqrt(total * share * (1 - share)))


def test_decisions_from_intervals():
    assert verdicts.above([1.0, 2.0], [2.0, 3.0]) == PASS and verdicts.above([-3.0], [-1.0]) == FAIL
    assert verdicts.above([-1.0, 1.0], [1.0, 2.0]) == NOT_TESTABLE
    assert verdicts.above([-3.0, 1.0], [-1.0, 2.0]) == NOT_TESTABLE
    assert verdicts.within([0.9], [1.1], 0.8, 1.2) == PASS
    assert verdicts.within([0.9], [1.3], 0.8, 1.2) == NOT_TESTABLE
    assert verdicts.within([0.9, 1.3], [1.1, 1.4], 0.8, 1.2) == FAIL
    with pytest.raises(ValueError, match="at least 2"):
        verdicts.intervals([1.0])


def test_the_command_line_says_what_turned(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(rejudge, "chosen", lambda ids: [of_a_coin(1.0)])
    assert rejudge.main(["--seeds", "2", "--out", str(tmp_path / "v.csv")]) == 0
    assert "1 verdicts on 3 seeds: 0 turned" in capsys.readouterr().out
    assert pd.read_csv(tmp_path / "v.csv")["seed 2"].tolist() == [PASS]
    with pytest.raises(SystemExit):
        rejudge.main(["--seeds", "0"])
