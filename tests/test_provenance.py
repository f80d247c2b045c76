"""Provenance: fingerprints, who carries them, and comparisons that are refused, said or made on purpose."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import fedsim as fs
import theory
from fedsim import fingerprints, network, provenance
from fedsim.fingerprints import fingerprint
from fedsim.provenance import Identity, Provenance
from fedsim.settings.staleness import Fixed

HESSIANS, MINIMIZERS = np.array([[1.0, 2.0], [3.0, 1.5]]), np.array([[0.0, 1.0], [1.0, -1.0]])
PROBLEM = fs.Quadratic(HESSIANS, MINIMIZERS, [0.25, 0.75])
ALGORITHM = fs.FALD(0.02, local_steps=4, shared_noise=0.25)
DENSE = HESSIANS[:, :, None] * np.eye(2)


def of_start(start, algorithm=ALGORITHM, problem=PROBLEM):
    return Provenance.of(problem, algorithm, start).start.fingerprint


# --- fingerprints

@pytest.mark.parametrize("one, other", [
    (PROBLEM, fs.Quadratic(DENSE, MINIMIZERS, [0.25, 0.75])),
    (fs.Quadratic([2.0, 3.0], MINIMIZERS), fs.Quadratic([[2.0, 2.0], [3.0, 3.0]], MINIMIZERS, [0.5, 0.5])),
    (fs.Quadratic(DENSE, -np.zeros((2, 2))), fs.Quadratic(HESSIANS, np.zeros((2, 2)))),
    (fs.Quadratic(np.ones(10), np.ones((10, 1))), fs.Quadratic(np.ones(10), np.ones((10, 1)), [0.1] * 10)),
    (fs.Quadratic(HESSIANS, MINIMIZERS, None, 0.5),
     fs.Quadratic(DENSE, MINIMIZERS, None, np.tile(0.25 * np.eye(2), (2, 1, 1)))),
    (fs.Quadratic(HESSIANS, MINIMIZERS), fs.Quadratic(HESSIANS, MINIMIZERS, None, np.zeros((2, 2, 2)))),
    (fs.FALD(0.1, 3), fs.FALD(fs.schedules.Constant(0.1), 3, 1, participation=None)),
    (fs.FALD.from_paper(eta=0.1, K=2, rho=0.5), fs.FALD(0.1, 2, shared_noise=0.25)),
    (fs.FALD([0.1, 0.2]), fs.FALD(np.array([0.1, 0.2]))),
    (fs.StaleSGLD(0.1, 3), fs.StaleSGLD(0.1, Fixed(3))),
    (fs.StaleSGLD(0.1, [0, 1]), fs.StaleSGLD(0.1, np.array([0, 1]))),
    (fs.DESGLD(0.1, network.complete(2)), fs.DESGLD(0.1, [[0.5, 0.5], [0.5, 0.5]])),
])
def test_equal_things_have_one_fingerprint(one, other):
    assert fingerprint(one) == fingerprint(other) is not None


def regression(**changes):
    given = {"features": [[1.0], [2.0], [3.0]], "targets": [1.0, 2.0, 0.0], "clients": [0, 1, 1],
             "noise_std": 1.0, "prior_variance": 1.0}
    return fs.LinearRegression(**(given | changes))


@pytest.mark.parametrize("things", [
    [PROBLEM, fs.Quadratic(HESSIANS, MINIMIZERS), fs.Quadratic(HESSIANS, -MINIMIZERS, [0.25, 0.75]),
     fs.Quadratic(HESSIANS + 1e-9, MINIMIZERS, [0.25, 0.75]),
     fs.Quadratic(DENSE + 1e-9, MINIMIZERS, [0.25, 0.75]),
     *(fs.Quadratic(HESSIANS, MINIMIZERS, [0.25, 0.75], noise) for noise in (0.1, 0.2))],
    [regression(), regression(targets=[1.0, 2.0, 0.1]), regression(clients=[0, 0, 1]),
     regression(noise_std=2.0), regression(batch_size=1), regression(batch_size=1, replace=False),
     regression().as_quadratic()],
    [fs.FALD(0.1), fs.FALD(0.2), fs.FALD(0.1, 2), fs.FALD(0.1, temperature=2.0),
     fs.FALD(0.1, shared_noise=0.1),
     *(fs.FALD(0.1, participation=fs.Participation(1, replace)) for replace in (True, False)),
     fs.FALD(fs.schedules.Harmonic(10.0, 1.0)), fs.FALD(fs.schedules.Harmonic(10.0, 2.0)), fs.FALD([0.1]),
     fs.FAHMC(0.1, 1), fs.FAHMC(0.1, 1, debias="fresh"), fs.FAHMC(0.1, 2), theory.exact.FAHMCFlow(0.1)],
    [fs.DESGLD(0.1, network.ring(5)), fs.DESGLD(0.1, network.path(5)), fs.DESGHMC(0.1, 1.0, network.ring(5)),
     fs.DESGHMC(0.1, 2.0, network.ring(5)), fs.DESGHMC(0.1, 2.0, network.ring(5), [1.0])],
    [fs.StaleSGLD(0.1), fs.StaleSGLD(0.1, 1), fs.StaleSGHMC(0.1, 1.0, 1), fs.StaleSGLD(0.1, [0, 1]),
     fs.StaleSGLD(0.1, fs.Workers(2, seed=1)), fs.StaleSGLD(0.1, fs.Workers(2, seed=2))],
])
def test_different_things_have_different_ones(things):
    found = [fingerprint(thing) for thing in things]
    assert None not in found and len(set(found)) == len(things)
    words = [Identity.of(thing).words for thing in things]
    assert len(set(words)) == len(things)  # and can be told apart by who reads the message
    assert max(map(len, words)) < 200


def test_starts_are_the_moments_they_give():
    origin = [None, [0.0, 0.0], np.array([-0.0, 0.0]), fs.Gaussian([0.0, 0.0], [0.0, 0.0])]
    assert len({of_start(start) for start in origin}) == 1
    spread = [fs.Gaussian([1.0, 0.0], [2.0, 3.0]), fs.Gaussian([1.0, 0.0], np.diag([2.0, 3.0]))]
    assert len({of_start(start) for start in spread}) == 1
    gossip = fs.DESGLD(0.01, network.complete(2))
    same = [of_start(start, gossip) for start in ([1.0, 2.0], [[1.0, 2.0], [1.0, 2.0]])]
    assert len(set(same)) == 1
    different = [None, [1.0, 0.0], spread[0], fs.Gaussian([1.0, 0.0], [[2.0, 1.0], [1.0, 3.0]]),
                 [[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]
    assert len({of_start(start, gossip) for start in different}) == len(different)
    assert Provenance.of(PROBLEM, ALGORITHM).start.words == "the origin"
    assert "1.0, 2.5" in Provenance.of(PROBLEM, ALGORITHM, [1.0, 2.5]).start.words


def test_large_diagonal_starts_stay_vectors():
    """A covariance (d, d) at d = 20,000 would take 3.2 GB."""
    problem = fs.Quadratic([1.0], np.zeros((1, 20_000)))
    found = Provenance.of(problem, fs.FALD(0.1), fs.Gaussian(np.zeros(20_000), np.ones(20_000)))
    assert "20000" in found.start.words and len(str(found)) < 250


CODE = """
import fedsim as fs
from fedsim.provenance import Provenance
problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]], None, 0.5)
algorithm = fs.StaleSGLD([0.1, 0.05], fs.Workers(3, seed=2))
print(Provenance.of(problem, algorithm, [2.0]).as_json())
"""


def test_fingerprints_are_the_same_in_every_process():
    found = [subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True,
                            env=os.environ | {"PYTHONHASHSEED": seed}).stdout for seed in ("1", "2")]
    problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]], None, 0.5)
    algorithm = fs.StaleSGLD([0.1, 0.05], fs.Workers(3, seed=2))
    assert found == [f"{Provenance.of(problem, algorithm, [2.0]).as_json()}\n"] * 2


def test_large_data_are_hashed_once(monkeypatch):
    problem, fed, feed = fs.Quadratic([1.0], [[0.0]]), [], fingerprints.feed
    monkeypatch.setattr(fingerprints, "feed", lambda digest, value: (fed.append(value), feed(digest, value)))
    assert fingerprint(problem) == fingerprint(problem)
    assert sum(value is problem for value in fed) == 1
    changed = dataclasses.replace(problem, minimizers=[[1.0]])
    assert fingerprint(changed) != fingerprint(problem)


@dataclass(frozen=True)
class WithFunction(fs.FALD):
    rule: Callable[[float], float] = abs


class ByHand:
    """A problem that is no dataclass."""


def test_what_has_no_fingerprint_is_not_known():
    assert fingerprint(WithFunction(0.1)) is None
    assert Identity.of(ByHand()) is None and Identity.of(None) is None
    found = Provenance.of(PROBLEM, WithFunction(0.1))
    assert found.unknown == ("algorithm",) and "unknown algorithm" in str(found)
    assert found.mismatch(Provenance.of(PROBLEM, fs.FALD(0.1))) is None
    with pytest.raises(TypeError, match="numbers, texts, arrays"):
        fingerprints.feed(None, abs)


# --- who carries it

def test_everything_says_what_it_is_of():
    start = fs.Gaussian([1.0, 2.0], [1.0, 0.5])
    of, facts = Provenance.of(PROBLEM, ALGORITHM, start), theory.constants(PROBLEM, ALGORITHM, start)
    assert facts.of == dataclasses.replace(of, algorithm=None)
    law, run = theory.exact_law(PROBLEM, ALGORITHM, 3, start=start), fs.simulate(
        PROBLEM, ALGORITHM, 3, 100, seed=1, start=start)
    carriers = [theory.fa_ld.w2_bound(facts, ALGORITHM, n_rounds=3), law, run,
                theory.exact.joint_law(PROBLEM, ALGORITHM, 3, start=start)]
    assert all(thing.of == of for thing in carriers)
    for thing in carriers[:3]:
        assert str(of) in thing.summary() and str(of) not in repr(thing)
    assert of.problem.words in repr(facts)
    gossip = fs.DESGLD(0.01, network.complete(2))
    for many in (theory.exact_law(PROBLEM, gossip, 2), fs.simulate(PROBLEM, gossip, 2, 100, seed=1)):
        assert [one.of for one in many.clients] == [many.of.client(number) for number in range(2)]
        assert many.of.mismatch(many.of.client(0)) == "algorithm"
    bound = theory.de_sgld.w2_bound(theory.constants(PROBLEM, gossip), gossip, n_rounds=2)
    with pytest.raises(ValueError, match=r"^algorithm of the law, client 0 of DESGLD"):
        theory.check(bound, theory.exact_law(PROBLEM, gossip, 2).clients[0])


def test_an_average_law_and_a_bound_server_keep_what_was_asked_for():
    """Ages worked out for so many updates, and the pooled problem, are not what the user named."""
    for algorithm in (fs.StaleSGLD(0.01, fs.Workers(3, seed=2)), fs.StaleSGLD(0.01, fs.Workers(
            3, seed=2, schedules=3))):
        of = Provenance.of(PROBLEM, algorithm)
        average = theory.stale.average_law(PROBLEM, algorithm, 5)
        assert average.of == average.at(2).of == of == theory.exact_law(PROBLEM, algorithm, 5).of
        assert fs.simulate(PROBLEM, algorithm, 5, 64, seed=1).of == of


def test_a_regression_is_itself_and_not_its_quadratic():
    problem, gossip = regression(), fs.DESGLD(0.01, network.complete(2))
    of = Provenance.of(problem, gossip)
    assert theory.exact_law(problem, gossip, 2).of == of == theory.exact.joint_law(problem, gossip, 2).of
    assert of.mismatch(Provenance.of(problem.as_quadratic(), gossip)) == "problem"


def test_what_is_changed_by_hand_is_of_nothing_known():
    facts = theory.constants(PROBLEM, ALGORITHM)
    bound = theory.fa_ld.w2_bound(facts, ALGORITHM, n_rounds=3)
    law, run = theory.exact_law(PROBLEM, ALGORITHM, 3), fs.simulate(PROBLEM, ALGORITHM, 3, 100, seed=1)
    for thing, change in ((facts, {"smoothness": 9.0}), (bound, {"variant": "mine"}),
                          (law, {"cov": 2.0 * law.cov}), (run, {"label": "mine"})):
        assert dataclasses.replace(thing, **change).of == Provenance()
    mine = dataclasses.replace(facts, smoothness=9.0)
    assert theory.fa_ld.w2_bound(mine, ALGORITHM, n_rounds=3).of.unknown == ("problem", "start")


# --- files

def test_files_keep_it(tmp_path):
    gossip = fs.DESGLD(0.01, network.complete(2))
    for number, law in enumerate((theory.exact_law(PROBLEM, gossip, 2, start=[1.0, 2.0]),
                                  fs.simulate(PROBLEM, gossip, 2, 100, seed=1), fs.Law(
                                      np.arange(1), np.zeros((1, 1)), np.ones((1, 1))))):
        path = tmp_path / f"{number}.npz"
        law.save(path)
        back = fs.load(path)
        assert back.of == law.of and [one.of for one in back.clients] == [one.of for one in law.clients]


def rewritten(path, change: Callable[[dict[str, Any]], Any]):
    """The file with other meta data."""
    with np.load(path) as stored:
        data = {name: stored[name] for name in stored.files}
    meta = json.loads(bytes(data["meta"]).decode())
    change(meta)
    data["meta"] = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
    np.savez(path, **data)


def test_files_of_older_versions_are_of_nothing_known(tmp_path):
    path = tmp_path / "law.npz"
    theory.exact_law(PROBLEM, ALGORITHM, 3).save(path)
    rewritten(path, lambda meta: meta.pop("of"))
    law = fs.load(path)
    assert law.of == Provenance() and "unknown problem" in law.summary()
    bound = theory.fa_ld.w2_bound(theory.constants(PROBLEM, ALGORITHM), ALGORITHM, n_rounds=3)
    assert "problem, algorithm and start of the law are not known" in theory.check(bound, law).note


@pytest.mark.parametrize("bad", [[1], {"problem": "x"}, {"other": ["a", "b"]}, {"problem": ["a", "b", "c"]}])
def test_damaged_provenance_is_refused(tmp_path, bad):
    path = tmp_path / "law.npz"
    theory.exact_law(PROBLEM, ALGORITHM, 3).save(path)
    rewritten(path, lambda meta: meta.update(of=bad))
    with pytest.raises(ValueError, match=r"must be a file written by Law\.save"):
        fs.load(path)


# --- comparisons

def bound_of(problem=PROBLEM, algorithm=ALGORITHM, start=None):
    return theory.fa_ld.w2_bound(theory.constants(problem, algorithm, start), algorithm, n_rounds=3)


def test_another_chain_does_not_refute_a_theorem():
    """The bound of a tiny step and the law of a large one, ten times as far at round 10^8: no violation."""
    problem = fs.papers.fa_hmc_gaussian(2)
    small, large = (fs.DESGLD(step, network.complete(2)) for step in (1e-5, 0.5))
    record = [10**6, 10**7, 10**8]
    bound = theory.de_sgld.w2_bound(theory.constants(problem, small), small, n_rounds=10**8, record=record)
    own, other = (theory.exact_law(problem, one, 10**8, record=record) for one in (small, large))
    assert theory.check(bound, own).holds
    with pytest.raises(ValueError, match=r"^algorithm of the law, DESGLD\(step_size=0.5, .*differs from that "
                                         r"of the bound, DESGLD\(step_size=1e-05"):
        theory.check(bound, other)
    verdict = theory.check(bound, other, same=False)
    assert not verdict.holds and verdict.tightness > 5.0 and not verdict.contradicts_theorem
    assert "violated" not in verdict.message and "contradicts nothing" in verdict.message
    assert "compared on purpose: algorithm of the law" in verdict.note


# the same target, and a start as far from it: nothing else tells these laws apart
TWIN = fs.Quadratic(HESSIANS[::-1], MINIMIZERS[::-1], [0.75, 0.25])
MIRRORED = 2.0 * PROBLEM.minimizer


@pytest.mark.parametrize("name, problem, algorithm, start", [
    ("problem", TWIN, ALGORITHM, None), ("start", PROBLEM, ALGORITHM, MIRRORED),
    ("algorithm", PROBLEM, fs.FALD(0.02, 4), None), ("algorithm", PROBLEM, fs.FALD(0.02, 5, 1.0, 0.25), None),
    ("algorithm", PROBLEM, fs.FAHMC(0.2, 1, 4, 0.25), None),
    ("algorithm", PROBLEM, fs.FALD(0.02, 4, 1.0, 0.25, fs.Participation(1, True)), None)])
def test_a_known_mismatch_is_named(name, problem, algorithm, start):
    law = theory.exact_law(problem, algorithm, 3, start=start)
    run = fs.simulate(PROBLEM, ALGORITHM, 3, 1280, seed=1)
    for call in (lambda **o: theory.check(bound_of(), law, **o), lambda **o: run.z_scores(law, **o)):
        with pytest.raises(ValueError, match=f"^{name} of the law, .*differs from that of the (bound|run), "):
            call()
        found = call(same=False)
        assert found.note.count("compared on purpose") == 1 and name in found.note
        with pytest.raises(ValueError, match="same='no'"):
            call(same="no")


def test_the_target_must_be_the_same_even_on_purpose():
    hot = theory.exact_law(PROBLEM, dataclasses.replace(ALGORITHM, temperature=4.0), 3)
    with pytest.raises(ValueError, match=r"^algorithm of the law, .*temperature=4.0.*target of the law "):
        theory.check(bound_of(), hot)
    with pytest.raises(ValueError, match=r"^target of the law differs"):
        theory.check(bound_of(), hot, same=False)


def test_equal_things_are_compared_without_a_word():
    other = fs.Quadratic(DENSE, MINIMIZERS, [0.25, 0.75])
    law = theory.exact_law(other, fs.FALD(fs.schedules.Constant(0.02), 4, 1.0, 0.25), 3, start=[0.0, 0.0])
    assert theory.check(bound_of(), law).note == ""
    assert fs.simulate(PROBLEM, ALGORITHM, 3, 200, seed=1).z_scores(law).note == ""


def test_the_unknown_is_compared_and_said():
    law = theory.exact_law(PROBLEM, ALGORITHM, 3)
    by_hand = fs.Law(law.rounds, law.mean, law.cov, law.target)
    says = "problem, algorithm and start of the law are not known: taken to be those of the "
    for source in (by_hand, law.w2()):
        verdict = theory.check(bound_of(), source)
        assert verdict.holds and says + "bound" in verdict.note and says in verdict.message
    assert says + "run" in fs.simulate(PROBLEM, ALGORITHM, 3, 200, seed=1).z_scores(by_hand).note
    facts = dataclasses.replace(theory.constants(PROBLEM, ALGORITHM))
    bound = theory.fa_ld.w2_bound(facts, ALGORITHM, n_rounds=3)
    assert "problem and start of the bound are not known" in theory.check(bound, law).note
    with pytest.raises(ValueError, match=r"^algorithm of the law"):  # that much is known
        theory.check(bound, theory.exact_law(PROBLEM, fs.FALD(0.02, 4), 3))
    assert provenance.of_source(PROBLEM).problem == Identity.of(PROBLEM)


def test_degenerate_cases_are_compared_on_purpose(alarm):
    """FA-HMC with one leapfrog step is FA-LD; DE-SGHMC with friction 1/step is DE-SGLD."""
    step = 0.1
    one, other = fs.FALD(step**2 / 2, 3, 1.0, 0.4), fs.FAHMC(step, 1, 3, 0.4)
    bound = bound_of(algorithm=one)
    with pytest.raises(ValueError, match="FAHMC"):
        theory.check(bound, theory.exact_law(PROBLEM, other, 3))
    found = theory.check(bound, theory.exact_law(PROBLEM, other, 3), same=False)
    assert found.holds and found.tightness == pytest.approx(
        theory.check(bound, theory.exact_law(PROBLEM, one, 3)).tightness, rel=1e-12)
    heavy = fs.simulate(PROBLEM, fs.DESGHMC(step, 1.0 / step, network.complete(2)), 5, 2000, seed=3)
    light = theory.exact_law(PROBLEM, fs.DESGLD(step**2, network.complete(2)), 5)
    mean, cov = heavy.z_scores(light, same=False)
    alarm.assert_normal(np.concatenate([mean[1:].ravel(), cov[1:].ravel()]), "friction 1/step")


def test_examine_compares_the_constants_it_is_given():
    facts = theory.constants(PROBLEM, ALGORITHM)
    assert theory.examine("fa_ld.w2_bound", PROBLEM, ALGORITHM, 3, known=facts).note == ""
    with pytest.raises(ValueError, match=r"^problem of the law"):
        theory.examine("fa_ld.w2_bound", TWIN, ALGORITHM, 3, known=facts)
    with pytest.raises(ValueError, match=r"^start of the law"):
        theory.examine("fa_ld.w2_bound", PROBLEM, ALGORITHM, 3, start=MIRRORED, known=facts)
    verdict = theory.examine("fa_ld.w2_bound", PROBLEM, ALGORITHM, 3,
                             known=dataclasses.replace(facts, smoothness=4.0))
    assert "of the bound are not known" in verdict.note


def test_examine_reads_quantities_derived_from_the_problem():
    """The Euler scheme of DE-SGLD is the exact law of another algorithm on another problem."""
    verdict = theory.examine("de_sgld.euler_bound", PROBLEM, fs.DESGLD(0.01, network.complete(2)), 3)
    assert verdict.holds and "differs" not in verdict.message


def test_scores_stay_a_pair():
    law, run = theory.exact_law(PROBLEM, ALGORITHM, 3), fs.simulate(PROBLEM, ALGORITHM, 3, 200, seed=1)
    mean, cov = run.z_scores(law)
    assert mean.shape == (4, 2) and cov.shape == (4, 2, 2)
