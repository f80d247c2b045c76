"""Samplers of one's own: the trace means what the function says, and its law is that of the shipped one."""

from __future__ import annotations

import dataclasses
import pickle
import warnings

import numpy as np
import pytest
import sampler_zoo as zoo
from sampler_brute import law_of

import fedsim as fs
import theory
from fedsim.samplers import SamplerWarning, declared, grad, loops, mean, noise, past, sqrt, weights

NOT_SYMMETRIC = 0.6 * np.roll(np.eye(3), 1, axis=0) + 0.4 * np.eye(3)


def problem_of(rng, n_clients, dim, structure="dense", noisy=False):
    roots = rng.normal(size=(n_clients, dim, dim))
    hessians = roots @ roots.transpose(0, 2, 1) / dim + np.eye(dim)
    if structure == "diagonal":
        hessians = np.diagonal(hessians, axis1=1, axis2=2)
    weights = rng.dirichlet(np.full(n_clients, 5.0))
    return fs.Quadratic(hessians, rng.normal(size=(n_clients, dim)), weights=weights,
                        gradient_noise=0.3 if noisy else None)


def shipped_algorithms(rng, problem):
    """Each of the six, at stable step sizes."""
    N = problem.n_clients
    h = float(rng.uniform(0.2, 0.8)) / float(np.linalg.norm(problem.dense_hessians, 2, (1, 2)).max())
    W, K, age = fs.network.ring(N), int(rng.integers(1, 6)), int(rng.integers(0, 4))
    s, friction = float(rng.choice([0.0, 0.3, 1.0])), float(rng.uniform(0.5, 2.0)) / h**0.5
    schedule = fs.schedules.Harmonic(1.0 / h, 0.1) if rng.random() < 0.3 else h
    root = 0.5 * h**0.5
    return (fs.DESGLD(schedule, W), fs.DESGHMC(0.3 * root, friction, W), fs.FALD(h / K, K, 1.5, s),
            fs.FAHMC(root / 3, 3, K, s), fs.StaleSGLD(0.1 * h, age),
            fs.StaleSGHMC(0.1 * root, friction, age))


def agree(one, other, scale=None):
    size = np.abs(other).max() if scale is None else scale
    assert np.abs(np.asarray(one) - other).max() <= 1e-12 * max(size, 1e-300)


def compared(seed, sizes):
    rng = np.random.default_rng(seed)
    for N, d, structure, noisy in sizes:
        problem, rounds = problem_of(rng, N, d, structure, noisy), 300
        start = fs.Gaussian(rng.normal(size=d), np.diag(rng.uniform(0.1, 1.0, d)))
        for shipped in shipped_algorithms(rng, problem):
            mine = declared(shipped)
            options = {"n_rounds": rounds, "record": [1, 2, 7], "start": start}
            law, known = (theory.exact_law(problem, each, **options) for each in (mine, shipped))
            agree(law.mean, known.mean)
            agree(law.cov, known.cov)
            for client, other in zip(law.clients, known.clients, strict=True):
                agree(client.mean, other.mean)
                agree(client.cov, other.cov)
            agree(mine._radius(problem), shipped._radius(problem))
            if shipped.schedule.is_constant:
                law, known = (theory.stationary_law(problem, each) for each in (mine, shipped))
                agree(law.mean, known.mean)
                agree(law.cov, known.cov)
            yield mine


SIZES = [(N, d, structure, noisy) for N, d in ((1, 1), (10, 2), (3, 3)) for structure in ("dense", "diagonal")
         for noisy in (False, True)]


def test_traced_laws_are_those_of_the_shipped_algorithms():
    assert sum(1 for _ in compared(0, SIZES)) == 72


@pytest.mark.slow
def test_they_are_in_larger_settings_too():
    large = [(N, d, structure, noisy) for N, d in ((10, 10), (100, 1), (100, 2), (30, 4))
             for structure in ("dense", "diagonal") for noisy in (False, True)]
    assert sum(1 for _ in compared(1, [*large, *SIZES])) == 168


@fs.sampler
def everything(x, y, z, *, step_size, W, rates, sets):
    """Stored and used twice, returned unchanged, common, old, mixed by W that is not symmetric."""
    g, n = grad(past(x, 2)), noise()
    mixed = W @ (x + 0.3 * y)
    for _ in range(6):
        y = 0.5 * y - step_size * grad(y) + 0.1 * mixed + rates * noise() + 0.2 * noise(common=True)
    for _ in range(5):
        z = W @ z - step_size * grad(z) + sqrt(step_size) * noise() + 0.1 * g
    shift = mean(y, of=sets)
    return mean(0.2 * x + 0.1 * z) + 0.3 * mixed - step_size * g + n + shift, 0.5 * n + 0.2 * W @ mixed, x


@fs.sampler(follows="components")
def two_steps_back(x, v, *, step_size, W):
    old, new = x, x - step_size * grad(x)
    for _ in range(7):
        old, new = new, W @ (1.2 * new - 0.2 * old) - step_size * grad(new) + 0.3 * noise()
    return new, v + sqrt(weights()) * (new - old)


BRUTE = {
    "everything": (everything(step_size=0.05, W=NOT_SYMMETRIC, rates=[0.1, 0.2, 0.4],
                              sets=((0, 1), (2,))), 3),
    "two_steps_back": (two_steps_back(step_size=0.05, W=NOT_SYMMETRIC), 2),
    "de_baoab": (zoo.de_baoab(step_size=0.2, friction=1.0, W=fs.network.ring(3)), 4),
    "scaffold": (zoo.scaffold_ld(step_size=0.05, local_steps=5), 3),
    "extra": (zoo.extra_sgld(step_size=0.05, W=fs.network.path(3)), 4),
    "local_gossip": (zoo.local_gossip(step_size=0.05, W=NOT_SYMMETRIC, local_steps=6), 2),
    "known_delays": (zoo.known_delays(step_size=0.05, sets=((0, 1), (2,), (1, 2))), 5),
    "random_pairs": (zoo.random_pairs(step_size=0.05, W=[NOT_SYMMETRIC, np.eye(3)]), 5),
    "schedule": (zoo.de_sgld(step_size=[0.1, 0.05, 0.02, 0.01], W=NOT_SYMMETRIC), 4),
    "stale": (zoo.stale_sghmc(step_size=0.1, friction=1.0, age=2), 5),
}


def brute_differences(algorithm, rounds):
    problem = problem_of(np.random.default_rng(3), 3, 2)
    start = np.array([0.7, -0.4])
    mean_, cov, clients = law_of(algorithm, problem, rounds, start)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplerWarning)
        law = theory.exact_law(problem, algorithm, rounds, start=start, record=[], allow_unstable=True)
    found = [np.abs(law.mean[-1] - mean_).max(), np.abs(law.cov[-1] - cov).max()]
    if law.clients:
        found += [np.abs(one.mean[-1] - row).max() for one, row in zip(law.clients, clients, strict=True)]
    return max(found)


@pytest.mark.parametrize("name", BRUTE)
def test_laws_are_those_of_the_function_on_numbers(name):
    assert brute_differences(*BRUTE[name]) < 1e-12


@pytest.mark.parametrize("name", ["everything", "two_steps_back", "scaffold", "local_gossip"])
def test_loops_are_rolled_and_change_nothing(name, monkeypatch):
    algorithm, _ = BRUTE[name]
    problem = problem_of(np.random.default_rng(4), 3, 2)
    kinds = [node.kind for node in algorithm.trace(problem).nodes]
    rolled = algorithm.rounds(problem, None).round()
    monkeypatch.setattr(loops, "FEWEST_TURNS", 10**9)
    again = dataclasses.replace(algorithm, step_size=algorithm.step_size * (1.0 + 1e-15))
    flat = again.rounds(problem, None)
    assert "loop" in kinds and "loop" not in [node.kind for node in flat.trace.nodes]
    for one, other in zip(rolled[:3], flat.round()[:3], strict=True):
        assert np.abs(one - other).max() < 1e-13


def _transposed(monkeypatch):
    from fedsim.samplers.blocks import Blocks

    right = Blocks.mix
    monkeypatch.setattr(Blocks, "mix", lambda self, W, of: right(self, W.swapaxes(1, 2), of))


def _equal_weights(monkeypatch):
    from fedsim.samplers.blocks import Blocks

    right = Blocks.mean
    monkeypatch.setattr(Blocks, "mean", lambda self, w, of: right(
        self, np.full_like(w, 1.0 / w.shape[1]), of))


def _one_turn_less(monkeypatch):
    from fedsim.samplers.clients import Round

    right = Round.power
    monkeypatch.setattr(Round, "power", lambda self, count: right(self, count - 1))


def _gradient_unscaled(monkeypatch):
    from fedsim.samplers.clients import Clients

    right = Clients.of.__func__
    monkeypatch.setattr(Clients, "of", classmethod(
        lambda cls, problem, components, dense: right(cls, problem, not components, dense)))


def _noise_redrawn(monkeypatch):
    from fedsim.samplers.blocks import Blocks

    right = Blocks._product
    monkeypatch.setattr(Blocks, "_product", lambda self, source, one, size, other, width: right(
        self, source, one, size, other, width) * (one is other))


@pytest.mark.parametrize(("mutant", "name"), [
    (_transposed, "random_pairs"), (_equal_weights, "scaffold"), (_one_turn_less, "local_gossip"),
    (_gradient_unscaled, "extra"), (_noise_redrawn, "everything")])
def test_faults_are_seen(mutant, name, monkeypatch):
    mutant(monkeypatch)
    assert brute_differences(*BRUTE[name]) > 1e-4


def ring_problem():
    rng = np.random.default_rng(0)
    curvatures = rng.uniform(1.0, 4.0, 10)
    return fs.Quadratic.from_components(curvatures, rng.normal(0.0, 3.0, 10)[:, None])


@pytest.mark.parametrize(("sampler", "step", "average", "worst"), [
    (zoo.de_sgld, 0.02, 6.446e-2, 0.876), (zoo.extra_sgld, 0.02, 3.044e-3, 0.166),
    (zoo.extra_sgld, 0.005, 6.70e-4, 0.061), (zoo.diging_sgld, 0.02, 3.86e-3, 0.131),
    (zoo.diging_sgld, 0.005, 7.62e-4, 0.040)])
def test_what_successors_gain_on_a_ring(sampler, step, average, worst):
    problem, target = ring_problem(), ring_problem().target()
    algorithm = sampler(step_size=step, W=fs.network.ring(10))

    def w2(law):
        return float(fs.distance.w2_gaussian(law.mean, law.cov, target.mean, target.cov))

    assert w2(theory.stationary_law(problem, algorithm)) == pytest.approx(average, rel=2e-3)
    clients = [w2(theory.stationary_law(problem, algorithm, client=c)) for c in range(10)]
    assert max(clients) == pytest.approx(worst, rel=2e-2)


def test_what_is_conserved_is_left_out():
    problem, W = ring_problem(), fs.network.ring(10)
    for algorithm, words in ((zoo.extra_sgld(step_size=0.02, W=W), "1 of 20 numbers, made of s"),
                             (zoo.diging_sgld(step_size=0.02, W=W), "1 of 30 numbers, made of y, g"),
                             (zoo.de_sgld(step_size=0.02, W=W), "nothing")):
        assert dict(algorithm.explained(problem))["conserved"] == words
        assert algorithm._radius(problem) < 1.0
        limit = algorithm.stability(problem).max_step_size
        assert dataclasses.replace(algorithm, step_size=1.001 * limit)._radius(problem) > 1.0
        assert dataclasses.replace(algorithm, step_size=0.999 * limit)._radius(problem) < 1.0


def test_samplers_are_values():
    one = zoo.fa_ld(step_size=0.1, local_steps=2)
    assert one == zoo.fa_ld(step_size=0.1, local_steps=2) != zoo.fa_ld(step_size=0.1)
    assert repr(one) == ("fa_ld(step_size=0.1, local_steps=2, temperature=1.0, shared_noise=0.0, sets=None, "
                         "drawn=None)")
    assert len({one, pickle.loads(pickle.dumps(one))}) == 1
    assert dataclasses.replace(one, local_steps=3).local_steps == 3
    W = fs.network.ring(3)
    assert zoo.de_sgld(step_size=0.1, W=W) == zoo.de_sgld(step_size=0.1, W=W.tolist())
    with pytest.raises(TypeError, match=r"n_steps=2 is no argument of fa_ld"):
        zoo.fa_ld(step_size=0.1, n_steps=2)
    with pytest.raises(ValueError, match=r"rates has 2 numbers; it must have one a client, 3"):
        everything(step_size=0.1, W=W, rates=[1.0, 2.0], sets=((0,),)).trace(ring3())


def ring3():
    return problem_of(np.random.default_rng(0), 3, 1)


def test_other_doors_take_them():
    problem, W = ring_problem(), fs.network.ring(10)
    swept = theory.sweep(problem, zoo.extra_sgld(step_size=0.02, W=W), step_size=[0.01, 0.02])
    assert swept["w2"].is_monotonic_increasing
    best = theory.tuning.best_step_size(problem, zoo.extra_sgld(step_size=0.02, W=W), 0.01)
    compared_ = theory.compare_algorithms(problem, [zoo.extra_sgld(step_size=0.02, W=W), fs.DESGLD(0.02, W)],
                                          eps=0.01)
    assert best is not None and len(compared_) == 2
    law = theory.exact_law(problem, zoo.extra_sgld(step_size=0.02, W=W), 1000)
    assert law.w2()[-1] < 0.01 and len(law.clients) == 10
    costs = zoo.diging_sgld(step_size=0.02, W=W).costs(problem, 3)
    assert costs == {"communications": 6.0, "gradient_evaluations": 30.0, "floats_sent": 120.0}
    assert zoo.fa_hmc(step_size=0.1, leapfrog_steps=3, local_steps=2).costs(ring3(), 1)[
        "gradient_evaluations"] == 3 * 6 == fs.FAHMC(0.1, 3, 2).costs(ring3(), 1)["gradient_evaluations"]


@pytest.mark.filterwarnings("ignore:drawn_fa_ld aims at:fedsim.samplers.SamplerWarning")  # as the shipped
@pytest.mark.parametrize("clients", [fs.Participation(2, True), fs.Participation(1, True)], ids=repr)
@pytest.mark.parametrize(("structure", "noisy"), [("dense", False), ("diagonal", True)])
def test_clients_drawn_at_random_have_the_shipped_moments(clients, structure, noisy):
    problem = problem_of(np.random.default_rng(5), 4, 2, structure, noisy)
    mine = zoo.drawn_fa_ld(step_size=0.03, local_steps=5, clients=clients)
    shipped = fs.FALD(0.03, 5, participation=clients)
    law, known = (theory.exact_law(problem, one, 50, record=[1, 2]) for one in (mine, shipped))
    assert not law.is_gaussian
    agree(law.mean, known.mean)
    agree(law.cov, known.cov)
    agree(mine._radius(problem), shipped._radius(problem))
    agree(theory.stationary_law(problem, mine).cov, theory.stationary_law(problem, shipped).cov)


@pytest.mark.filterwarnings("ignore:random_pairs has clients that never meet:fedsim.samplers.SamplerWarning")
def test_random_networks_have_the_moments_of_all_their_paths():
    """Brute force: every sequence of matrices, each with its own exact law."""
    problem, rounds = problem_of(np.random.default_rng(6), 3, 1), 4
    chosen = fs.network.random_pairs(fs.network.path(3))
    mine = zoo.random_pairs(step_size=0.1, W=chosen)
    law = theory.exact_law(problem, mine, rounds, start=[0.5], record=[], allow_unstable=True)
    first, second, total = np.zeros(4), np.zeros(4), 0.0
    for path in np.ndindex(*[len(chosen.chances)] * rounds):
        chance = float(np.prod(chosen.chances[list(path)]))
        fixed = zoo.random_pairs(step_size=0.1, W=list(chosen.matrices[list(path)]))
        one = theory.exact_law(problem, fixed, rounds, start=[0.5], record=[], allow_unstable=True)
        views = [one, *one.clients]
        means = np.array([view.mean[-1, 0] for view in views])
        first += chance * means
        second += chance * (np.array([view.cov[-1, 0, 0] for view in views]) + means**2)
        total += chance
    assert total == pytest.approx(1.0, abs=1e-14)
    views = [law, *law.clients]
    agree([view.mean[-1, 0] for view in views], first)
    agree([view.cov[-1, 0, 0] for view in views], second - first**2)
    assert 0.0 < mine._radius(problem) < 1.0
    alone = theory.stationary_law(problem, mine)
    late = theory.exact_law(problem, mine, 2000, record=[])
    agree(alone.cov, late.cov[-1])


def test_drawing_twice_in_a_round_is_refused():
    @fs.sampler
    def twice(x, *, step_size, clients):
        return mean(mean(x, drawn=clients) - step_size * grad(x) + noise(), drawn=clients)

    with pytest.raises(ValueError, match=r"drawn from again in the same round"):
        theory.exact_law(ring3(), twice(step_size=0.1, clients=fs.Participation(1, True)), 3)


@pytest.mark.parametrize("step", [1e-12, 1e-5, 0.1, 3.0, 1e6])
def test_the_limit_is_found_from_any_step_size(step):
    problem = fs.Quadratic([4.0], [[0.0]])
    limit = zoo.stale_sgld(step_size=step, age=0).stability(problem).max_step_size
    assert abs(limit - 0.5) < 1e-12
