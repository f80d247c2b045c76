"""What is told of the work before it begins, its order, and what figures of one process work out once."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from a_figure import a_figure

import fedsim as fs
from reproduce import command, costs, discovery, once, store
from reproduce.fa_hmc.stepwise_sampler import StepwiseFAHMC, sample_path
from reproduce.prediction import runs

FIGURES = discovery.figures()


def named(name, **parts):
    one = a_figure(**parts)
    one.id = name
    return one


@pytest.fixture(name="known")
def _known(monkeypatch):
    """Costs of five figures; two share runs, one was not measured."""
    figures = {"long": {"seconds": 50.0, "kernels": ["k"]}, "short": {"seconds": 1.0, "kernels": ["k"]},
               "soon": {"seconds": 2.0, "kernels": []}, "soonest": {"seconds": 1.0, "kernels": []}}
    monkeypatch.setattr(costs, "measured", lambda: {"calibration": 1.0, "compiling": 3.0, "figures": figures})
    monkeypatch.setattr(costs, "calibration", lambda: 2.0)
    monkeypatch.setattr(costs.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(costs, "_is_warm", lambda: False)
    return [named("short", TOGETHER="both"), named("soon"), named("long", TOGETHER="both"), named("new"),
            named("soonest")]


def test_every_figure_was_measured():
    known = costs.measured()
    assert list(known["figures"]) == list(FIGURES), "python -m reproduce costs NAME measures one"
    assert all(one["seconds"] > 0 for one in known["figures"].values())
    assert known["calibration"] > 0 and known["compiling"] > 0
    assert any(one["kernels"] for one in known["figures"].values())


def test_what_is_soon_done_comes_first_then_the_longest(known):
    assert [[one.id for one in job] for job in costs.jobs(known)] == [
        ["soonest"], ["soon"], ["short", "long"], ["new"]]


def test_a_picture_without_compiling_comes_first():
    order = costs.jobs(list(FIGURES.values()))
    assert {one.id for job in order for one in job} == set(FIGURES)
    first = costs.cost(order[0][0])
    assert not first["kernels"] and first["seconds"] <= costs.AT_ONCE


def test_seconds_are_those_of_this_machine(known, monkeypatch):
    """Twice as slow, on two cores: 50 + 1 + 2 + 1 + 10, and one kernel, once; and never less than a job."""
    assert costs.expected(known, 2) == (2 * (50 + 1 + 2 * 3), 2 * 3 / 2)
    assert costs.expected(known, 1) == (2 * (64 + 3), 2 * 3)
    monkeypatch.setattr(costs, "_is_warm", lambda: True)
    assert costs.expected(known, 8) == (2 * 51, 0)
    assert costs.told(known, 2) == (
        "5 figures in 2 processes: about 2 min on this machine. Ctrl-C keeps what is done.")
    assert costs.told(known[1:2], 1).startswith("1 figure in 1 process: about 4 s")


def test_a_run_says_at_once_how_long_it_takes(known, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(command, "chosen", lambda ids: known)
    monkeypatch.setattr(command.gallery, "write", lambda *_: "none")
    assert command.main(["--out", str(tmp_path), "--workers", "1"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == costs.told(known, 1)
    assert [line.split()[1] for line in said[1:6]] == ["soonest", "soon", "short", "long", "new"]


def test_measuring_writes_what_was_measured(monkeypatch, tmp_path):
    monkeypatch.setattr(costs, "FILE", tmp_path / "costs.json")
    costs.FILE.write_text('{"calibration": 1.0, "compiling": 3.0, "figures": {"de_fig2": 5, "gone": 5}}')
    assert costs.main(["de_fig1"]) == 0
    made = json.loads(costs.FILE.read_text())
    assert list(made["figures"]) == ["de_fig1", "de_fig2"] and made["figures"]["de_fig1"]["kernels"] == []
    assert made["figures"]["de_fig1"]["seconds"] > 0 and made["compiling"] == 3.0 != made["calibration"] > 0


def test_measuring_in_this_process_tells_kernels_from_work(monkeypatch):
    compiled = [("before", 9.0)]

    def make(figure, scale, folder):
        compiled.append(("a kernel", 0.5))

    monkeypatch.setattr(costs, "compiled_here", lambda: compiled)
    monkeypatch.setattr("reproduce.run.make", make)
    found = costs._measured_here([named("one")])
    assert found["figures"]["one"]["kernels"] == ["a kernel"] and found["compiling"] == 9.5
    assert found["figures"]["one"]["seconds"] <= 0  # half a second of it was compiling


# ---- what is worked out once ------------------------------------------------------------------------


@pytest.fixture(name="counted")
def _counted(monkeypatch):
    """A process that knows nothing yet, and how often `make` is called."""
    monkeypatch.setattr(once, "_KNOWN", {})
    calls = []

    def make(size=8):
        return lambda: calls.append(size) or np.zeros(size // 8)

    return calls, make


def test_a_result_is_made_once(counted):
    calls, make = counted
    first = once.once("a", make())
    assert once.once("a", make()) is first and once.once("b", make()) is not first
    assert calls == [8, 8]
    assert once.once("a", make(16), lambda known: len(known) > 1).shape == (2,)
    assert once.once("a", make()).shape == (2,) and calls == [8, 8, 16]


def test_the_oldest_results_make_room(counted, monkeypatch):
    calls, make = counted
    monkeypatch.setattr(once, "MOST", 20)
    for name in "abca":
        once.once(name, make())
    assert len(calls) == 4 and list(once._KNOWN) == ["c", "a"]
    once.once("large", make(800))
    assert list(once._KNOWN) == ["large"]


PROBLEM = fs.SoftmaxRegression(np.arange(24.0).reshape(12, 2) % 5, np.arange(12) % 3, np.arange(12) % 2,
                               prior_variance=1.0, batch_size=3)
DATA = SimpleNamespace(problem=PROBLEM, title="a set")


@pytest.mark.parametrize("algorithm", [lambda step: fs.FAHMC(step, 2, 2, 1.0),
                                       lambda step: StepwiseFAHMC(step, 3, 2)])
def test_a_shorter_path_is_the_beginning_of_a_longer_one(algorithm, counted):
    """Bit for bit, so that who comes second gets what it would have made alone."""
    setting = runs.Setting(1, algorithm, 6, 2, [0.1], 1.0, sample_path)
    alone = runs.sampled(DATA, setting._replace(n_rounds=4), 0.1, 5, 3)
    once._KNOWN.clear()
    long = runs.sampled(DATA, setting, 0.1, 5, 3)
    short = runs.sampled(DATA, setting._replace(n_rounds=4), 0.1, 5, 3)
    assert long.shape[1] == 3 and np.array_equal(short, alone) and np.shares_memory(short, long)


@pytest.mark.parametrize("other", [{"step": 0.2}, {"seed": 6}, {"n_chains": 2}, {"problem": 1},
                                   {"algorithm": 1}, {"every": 1}, {"n_rounds": 8}])
def test_other_runs_are_not_taken_for_known_ones(other, counted):
    def path(step=0.1, seed=5, n_chains=3, problem=0, algorithm=0, every=2, n_rounds=6):
        data = SimpleNamespace(problem=[PROBLEM, fs.SoftmaxRegression(
            PROBLEM.features, PROBLEM.labels, PROBLEM.clients, prior_variance=2.0, batch_size=3)][problem],
            title="a set")
        setting = runs.Setting(1, lambda size: fs.FAHMC(size, 2 + algorithm, 2, 1.0), n_rounds, every, [0.1],
                               1.0, sample_path)
        return runs.sampled(data, setting, step, seed, n_chains)

    path()
    found = path(**other)
    once._KNOWN.clear()
    assert np.array_equal(found, path(**other))


def test_figures_that_share_runs_say_so():
    """They are in one job; and nothing that is alone claims to share."""
    words = [one.together for one in FIGURES.values() if one.together]
    assert sorted(set(words)) == ["images", "thousand"] and all(words.count(word) > 1 for word in words)


def test_a_figure_is_the_same_beside_another(counted, tmp_path):
    """FA-HMC figures 6 and 7 take their runs on digits from figures 3 and 4."""
    calls = []
    alone = store.to_csv(FIGURES["fa_hmc_fig6_7"].compute("tiny", {}))
    once._KNOWN.clear()
    FIGURES["fa_hmc_fig3_4"].compute("tiny", {})
    calls.append(len(once._KNOWN))
    assert store.to_csv(FIGURES["fa_hmc_fig6_7"].compute("tiny", {})) == alone
    assert calls[0] > 0
