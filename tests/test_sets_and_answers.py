"""Known sets of clients, and clients that answer by chance: who takes part, and what each counts."""

from __future__ import annotations

import itertools
import pickle
import re

import brute_force
import numpy as np
import pytest

import fedsim as fs
import theory
from fedsim.fingerprints import fingerprint
from fedsim.settings.participation_fixed import as_participation
from theory.declare.registry import theorems

PROBLEM = fs.Quadratic([1.0, 2.0, 3.0], [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [0.5, 0.3, 0.2])
NAN = float("nan")
Sets, Answers = fs.FixedParticipation, fs.IndependentParticipation
SETS = [[0], [1, 2], [0, 1, 2]]


def refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


BAD_SETS = {
    "a number": (3, r"sets=3 must be a sequence of sets of client numbers"),
    "text": ("012", r"sets='012' must be a sequence"),
    "None": (None, r"sets=None must be a sequence"),
    "a mapping": ({0: [1]}, r"sets=.* must be a sequence"),
    "a generator": ((c for c in range(3)), r"sets=.* must be a sequence"),
    "no round": ([], r"sets=\[\] must have at least one set"),
    "no round in an array": (np.empty((0, 2), int), r"must have at least one set"),
    "an empty set": ([[0], []], r"sets\[1\]=\[\] must have at least one client"),
    "nobody in a row of booleans": ([[True, False], [False, False]], r"sets\[1\]=.* at least one client"),
    "None among the sets": ([[0], None], r"sets\[1\]=None must be a set of client numbers"),
    "text among the sets": ([[0], "1"], r"sets\[1\]='1' must be a set of client numbers"),
    "text in a set": ([[0, "1"]], r"sets\[0\]\[1\]='1' must be an integer"),
    "half a client": ([[0, 1.5]], r"sets\[0\]\[1\]=1\.5 must be an integer"),
    "floats": (np.ones((2, 2)), r"sets\[0\] of shape \(2,\) and dtype float64 must be a set"),
    "one float a round": (np.ones(2), r"sets\[0\]=.*1\.0.* must be a set of client numbers"),
    "booleans, one a round": ([True, False], r"sets\[0\]=True must be a set of client numbers"),
    "three axes": (np.zeros((2, 2, 2), int), r"sets\[0\] of shape \(2, 2\)"),
    "below zero": ([[0], [1, -1]], r"sets\[1\]\[1\]=-1 must be at least 0"),
    "below zero in an array": (np.array([[0, -1]]), r"sets\[0\]=.* from 0 to"),
    "a huge number": ([[2**70]], r"sets\[0\]\[0\]=\d+ must be at most"),
    "twice": ([[0], [2, 1, 2]], r"sets\[1\]=\[2, 1, 2\] has client 2 twice; .* at most once"),
    "booleans and numbers": ([[True, False], [0, 1]], r"sets\[1\]=\[0, 1\] must be 2 booleans, as sets\[0\]"),
    "numbers and booleans": ([[0, 1], [True, False]], r"sets\[1\]=.* must be client numbers, as sets\[0\]"),
    "ragged booleans": ([[True, False], [True]], r"sets\[1\]=\[True\] must be 2 booleans"),
    "mixed": ([[True, 1]], r"sets\[0\]\[0\]=True must be an integer"),
    "too many rounds": (range(10**13), r"of 10000000000000 entries needs about \d+\.\d GB"),
    "a set too large": ([range(10**13)], r"sets\[0\]=range.* needs about \d+\.\d GB"),
    "longer than a list": (range(10**30), r"longer than a list can be"),
    "masked": (np.ma.masked_array([0, 1], [True, False]), r"sets"),
}


@pytest.mark.parametrize("name", BAD_SETS)
def test_bad_sets(name):
    given, message = BAD_SETS[name]
    refused(lambda: Sets(given), message)
    if isinstance(given, (list, tuple, range)):
        refused(lambda: fs.FALD(0.1, participation=given), f"participation: .*{message}")


BAD_PROBABILITIES = {
    "zero": (0.0, r"probabilities=0 must lie in \(0, 1\]"),
    "above one": (1.1, r"probabilities=1\.1 must lie"),
    "NaN": (NAN, "probabilities=nan must be finite"), "text": ("0.5", "probabilities='0.5' must be a real"),
    "None": (None, "probabilities=None must be a real"), "True": (True, "probabilities=True must be a real"),
    "a zero": ([0.5, 0.0, 1.0], r"probabilities\[1\]=0 must lie in \(0, 1\]"),
    "a negative one": ([0.5, 0.2, -0.1], r"probabilities\[2\]=-0\.1 must lie"),
    "one NaN": ([0.5, NAN], r"probabilities\[1\]=nan must be finite"),
    "a table": ([[0.5]], "probabilities"), "none": ([], "probabilities")}


@pytest.mark.parametrize("name", BAD_PROBABILITIES)
def test_bad_probabilities(name):
    given, message = BAD_PROBABILITIES[name]
    refused(lambda: Answers(given), message)


def test_bad_together():
    def validate(chosen):
        return lambda: fs.validate(PROBLEM, fs.FALD(0.01, participation=chosen))

    refused(validate([[0], [1, 3]]), r"sets\[1\]=\[1, 3\] has client 3; .* below n_clients=3")
    refused(validate(Answers([0.5, 0.5])), r"probabilities has shape \(2,\); it must be \(3,\)")
    refused(validate(Answers(1e-200, True)), r"probabilities=1e-200 must be larger with unbiased=True")
    refused(lambda: Sets(SETS, cyclic=1.5), "cyclic=1.5 must be one of True, False")
    refused(lambda: Answers(0.5, "yes"), "unbiased='yes' must be one of")
    refused(lambda: fs.FALD(0.1, participation="I"),
            r"participation='I' must be a fedsim\.Participation or a fedsim\.IndependentParticipation or a "
            r"fedsim\.FixedParticipation or None")
    for call in (fs.simulate, theory.exact_law):
        more = (64,) if call is fs.simulate else ()
        options = {"seed": 1} if call is fs.simulate else {}
        refused(lambda call=call, more=more, options=options: call(
            PROBLEM, fs.FALD(0.1, participation=SETS), 4, *more, **options),
            "participation has 3 sets; n_rounds=4 needs one for each round, or cyclic=True")
    refused(lambda: fs.FALD(0.1, participation=SETS).costs(PROBLEM, 4), "needs one for each round")
    refused(lambda: fs.FALD(0.1, participation=Answers(0.5)).variance_factor(PROBLEM), "no one factor")


def test_every_form_of_the_same_sets():
    table = np.array([[0, 2], [1, 2]])
    flags = [[True, False, True], [False, True, True]]
    forms = [table, table.astype(np.uint8), table.tolist(), [(2, 0), (2, 1)], [{0, 2}, frozenset({1, 2})],
             [np.array([2, 0]), range(1, 3)], np.array(flags), flags, Sets(table).sets]
    for form in forms:
        assert Sets(form) == Sets(table) and hash(Sets(form)) == hash(Sets(table))
        assert Sets(form).sets == ((0, 2), (1, 2))
        one, other = (fs.FALD(0.1, participation=given) for given in (form, Sets(table)))
        assert one == other and fingerprint(one) == fingerprint(other)
    assert Sets(range(3)) == Sets([[0], [1], [2]]) == Sets(np.arange(3)) != Sets(range(3), cyclic=True)
    assert as_participation(None) is None and as_participation(0.5) == 0.5
    assert Answers([0.5, 0.4]) == Answers(np.array([0.5, 0.4])) != Answers([0.5, 0.4], unbiased=True)


def test_pickles_and_words():
    for chosen in (Sets(SETS), Sets([[0]] * 1000, cyclic=True), Answers(0.5), Answers([0.5] * 100, True)):
        copy = pickle.loads(pickle.dumps(chosen))
        assert copy == chosen and repr(copy) == repr(chosen) and len(repr(chosen)) < 80
        algorithm = fs.FALD(0.1, participation=chosen)
        assert pickle.loads(pickle.dumps(algorithm)) == algorithm
    assert repr(Sets(SETS)) == "FixedParticipation([(0,), (1, 2), (0, 1, 2)])"
    assert repr(Answers([0.5, 1.0], True)) == "IndependentParticipation([0.5, 1.0], unbiased=True)"
    with pytest.raises(ValueError, match="read-only"):
        Sets(SETS).members[0] = 1


def test_shares_of_sets():
    sets = Sets([*SETS, [0, 2]], cyclic=True)
    wanted = [brute_force.outcomes(sets, PROBLEM.weights, number)[0][1] for number in range(9)]
    np.testing.assert_allclose(sets.shares_at(PROBLEM.weights, np.arange(9)), wanted, rtol=1e-15)
    assert (sets.shares_at(PROBLEM.weights, [2])[0] == PROBLEM.weights).all()
    assert Sets([[2, 0]] * 3, cyclic=True).settles and not Sets([[2, 0]] * 3).settles and not sets.settles


@pytest.mark.parametrize("n_clients", [1, 2, 3, 5, 8])
def test_moments_of_shares_are_those_of_all_outcomes(n_clients):
    rng = np.random.default_rng(n_clients)
    uniform, drawn = np.full(n_clients, 1.0 / n_clients), rng.dirichlet(np.ones(n_clients))
    rough = rng.dirichlet(np.full(n_clients, 0.05)) + 1e-6
    chances = rng.uniform(0.05, 1.0, n_clients)
    for weights, q, unbiased in itertools.product(
            (uniform, drawn, rough / rough.sum()), (chances, 1e-4 * chances, chances > 0.5, 0.3, 1.0),
            (False, True)):
        q = np.where(q, q, 0.7) if np.ndim(q) else q
        chosen = Answers(np.asarray(q, float) if np.ndim(q) else q, unbiased)
        outcomes = brute_force.outcomes(chosen, weights)
        mean = sum(chance * shares for chance, shares in outcomes)
        second = sum(chance * np.outer(shares, shares) for chance, shares in outcomes)
        found = chosen.shares(weights)
        np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
        np.testing.assert_allclose(found.cov, second - np.outer(mean, mean), rtol=0,
                                   atol=1e-13 * np.diagonal(second).max())
        assert (found.cov == found.cov.T).all()


def test_moments_of_many_clients_shares(alarm):
    rng, replicas = np.random.default_rng(4), 200_000
    weights, chances = rng.dirichlet(np.ones(40)), rng.uniform(0.02, 0.3, 40)
    taking = (rng.random((replicas, 40)) < chances) * weights
    shares = taking / np.maximum(taking.sum(axis=1, keepdims=True), 1e-300)
    mean, cov = Answers(chances).shares(weights)
    alarm.assert_normal((shares.mean(axis=0) - mean) / np.sqrt(np.diagonal(cov) / replicas), "mean")
    u = rng.standard_normal((20, 40))  # each client's products alone have long tails
    squares = ((shares - mean) @ u.T) ** 2
    wanted = np.einsum("ij,jk,ik->i", u, cov, u)
    alarm.assert_normal((squares.mean(axis=0) - wanted) / squares.std(axis=0) * np.sqrt(replicas), "squares")


def test_equal_clients_are_alike():
    """By symmetry: every client has the same mean share, and the shares of those who answer sum to one."""
    for n_clients, q in itertools.product((2, 30, 400), (0.01, 0.5, 1.0)):
        mean, cov = Answers(q).shares(np.full(n_clients, 1.0 / n_clients))
        somebody = 1.0 - (1.0 - q) ** n_clients
        np.testing.assert_allclose(mean, somebody / n_clients, rtol=1e-12)
        assert cov.sum() == pytest.approx(somebody * (1.0 - somebody), abs=1e-13)


def test_schemes_have_shares_too():
    weights = np.array([0.5, 0.3, 0.2])
    for scheme, w in ((fs.Participation(2, True), weights), (fs.Participation(2, False), np.full(3, 1 / 3))):
        outcomes = brute_force.outcomes(scheme, w)
        second = sum(chance * np.outer(shares, shares) for chance, shares in outcomes)
        np.testing.assert_allclose(scheme.shares(w).cov, second - np.outer(w, w), atol=1e-15)


def test_full_sets_have_the_bits_of_all_clients():
    for algorithm in (lambda chosen: fs.FALD(0.1, 3, 1.0, 0.3, chosen),
                      lambda chosen: fs.FAHMC(0.1, 2, 2, 0.3, "stale", participation=chosen)):
        kinds = None, Sets([range(3)], cyclic=True), [range(3)] * 6, Answers(1.0), Answers(1.0, unbiased=True)
        finals = [fs.simulate(PROBLEM, algorithm(chosen), 6, 70, seed=2, keep_final=True).final
                  for chosen in kinds]
        assert finals[1].tobytes() == finals[0].tobytes() == finals[2].tobytes()
        for final in finals[3:]:
            np.testing.assert_allclose(final, finals[0], rtol=0, atol=1e-12)


def test_costs_count_those_who_work():
    costs = fs.FAHMC(0.1, 3, 2, participation=SETS).costs(PROBLEM, 2)
    assert costs == {"communications": 2, "gradient_evaluations": 3 * 2 * 3, "floats_sent": 2 * (3 + 6)}
    cyclic = fs.FALD(0.1, 2, participation=Sets(SETS, cyclic=True))
    assert cyclic.costs(PROBLEM, 3 * 10**12 + 1)["gradient_evaluations"] == 2 * (6 * 10**12 + 1)
    expected = fs.FALD(0.1, 2, participation=Answers([0.5, 0.25, 0.5])).costs(PROBLEM, 10)
    assert expected == {"communications": 10, "gradient_evaluations": 25.0, "floats_sent": 2 * (12.5 + 30)}
    for chosen, most in ((SETS[:2], 2), (Answers(0.1), 3)):
        assert fs.FALD(0.1, participation=chosen).n_active(PROBLEM) == most


def test_what_is_explained():
    for chosen, words, law in (
            (Sets(SETS, cyclic=True), "3 clients, 3 known sets, cyclic, in a round", "the law is Gaussian"),
            ([[0]], "1 known set in a round", "the law is Gaussian"),
            (Answers(0.5), "each answers by chance, 1.5 expected in a round", "only its moments are exact")):
        told = fs.explain(PROBLEM, fs.FALD(0.1, participation=chosen))
        assert words in told.title and law in told["exact law"]
        assert told["choose_clients"].startswith("fedsim.algorithms.clients:_choose_")


def test_laws_and_runs_are_saved(tmp_path):
    for chosen in (Sets([[0], [1, 2]] * 50), Answers([0.5, 0.9, 0.4])):
        algorithm = fs.FALD(0.1, participation=chosen)
        for law in (theory.exact_law(PROBLEM, algorithm, 9),
                    fs.simulate(PROBLEM, algorithm, 9, 64, seed=1)):
            law.save(tmp_path / "law.npz")
            loaded = fs.load(tmp_path / "law.npz")
            assert loaded.of == law.of and loaded.is_gaussian == law.is_gaussian
            assert getattr(loaded, "costs", {}) == getattr(law, "costs", {})


def test_a_checkpoint_is_gone_on_from(tmp_path):
    for number, chosen in enumerate((Sets([[0, 1], [2]], cyclic=True), Answers(0.4))):
        algorithm, place = fs.FALD(0.1, 2, participation=chosen), tmp_path / str(number)
        fs.simulate(PROBLEM, algorithm, 6, 256, seed=3, replicas=(0, 128), checkpoint=place, block_size=64)
        resumed = fs.simulate(PROBLEM, algorithm, 6, 256, seed=3, checkpoint=place, block_size=128)
        plain = fs.simulate(PROBLEM, algorithm, 6, 256, seed=3)
        assert resumed.mean.tobytes() == plain.mean.tobytes() and resumed.cov.tobytes() == plain.cov.tobytes()


@pytest.mark.parametrize("chosen", [Sets(SETS, cyclic=True), Answers(0.5)], ids=str)
def test_theorems_are_not_about_them(chosen):
    """None takes it for a scheme, or for all clients, but for those that are about no rounds at all."""
    algorithms = [fs.FALD(0.01, 2, participation=chosen), fs.FAHMC(0.01, 2, 2, participation=chosen)]
    known = [theory.constants(PROBLEM, algorithm) for algorithm in algorithms]
    applying = {entry.id for entry, algorithm in itertools.product(theorems(), algorithms)
                if isinstance(algorithm, entry.algorithm) and entry.applies(algorithm, PROBLEM)}
    assert applying == {"fa_ld.contraction_bound", "fa_ld.discretization_bound", "fa_ld.gradient_noise_bound",
                        "fa_ld.initial_bound", "fa_hmc.maxima_bound", "fa_hmc.target_moment_bound"}
    named = f"participation={re.escape(repr(chosen))}"
    for constants, algorithm, paper in zip(known, algorithms, (theory.fa_ld, theory.fa_hmc), strict=True):
        refused(lambda constants=constants, algorithm=algorithm, paper=paper: paper.w2_recursion(
            constants, algorithm, n_rounds=3), f"{named} must be None")
    for bound in (theory.fa_ld.w2_bound, theory.fa_ld.w2_bound_partial, theory.fa_ld.participation_gap_bound):
        refused(lambda bound=bound: bound(known[0], algorithms[0], n_rounds=3), f"{named} must be")
    arguments = known[0], algorithms[0], 0.1
    refused(lambda: theory.fa_ld.plan(*arguments), f"{named} must be a fedsim.Participation")
    refused(lambda: theory.fa_ld.fewest_active(*arguments), "participation by scheme I or II")
    refused(lambda: theory.privacy.setting_of(
        PROBLEM, algorithms[0], 3, sensitivity=1.0, batch_fraction=0.1, delta0=1e-6, delta1=0.0, delta2=0.0),
        f"{named} must be a fedsim.Participation or None")
