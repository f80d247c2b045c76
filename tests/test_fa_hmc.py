"""The simulated FA-HMC: its slow twin, its exact law, mutants that must be caught, and bad input."""

import importlib.util
import itertools
import sys
from pathlib import Path
from types import SimpleNamespace

import naive_fa_hmc
import numpy as np
import pytest
from test_naive_parity import make_problem, spd
from test_power import absolute_imports, contrasted, replaced_once, with_switch
from test_replicas_against_law import one, quadratic, scores, two

import fedsim as fs
import fedsim.compile
import theory

SEED = 0x2545F4914F6CDD1D
LANES = (0, 63, 65)  # 64 replicas in one leaf, and two in the next, which may be laid out otherwise
DEBIAS = [(None, "none"), ("stale", "none"), ("stale", "exact"), ("stale", "printed"), ("fresh", "none")]
SCHEDULES = ("constant", "listed", "harmonic")
FIRST_ROUNDS = 3


def assert_parity(problem, algorithm, start=None, noise="double", tolerance=1e-12, lanes=LANES):
    run = fs.simulate(problem, algorithm, FIRST_ROUNDS, max(lanes) + 1, seed=SEED, start=start,
                      keep_final=True, allow_unstable=True, noise=noise, threads=1)
    for replica in lanes:
        slow = naive_fa_hmc.fa_hmc(problem, algorithm, FIRST_ROUNDS, SEED, replica, start, noise == "single")
        error = np.abs(run.final[replica] - slow[-1]).max() / max(1.0, np.abs(slow).max())
        assert error <= tolerance, f"replica {replica}: {problem}, {algorithm}, start={start}: {error:g}"


def make_step_size(kind, local_steps):
    if kind == "constant":
        return 0.21
    if kind == "harmonic":
        return fs.schedules.Harmonic(4.0, 0.3)
    return 0.05 + 0.2 * np.random.default_rng(7).random(FIRST_ROUNDS * local_steps)


def options(structure, noise, schedule, sampled):
    """Every debiasing, leapfrog count and dimension; shared noise and the rest vary along."""
    rng = np.random.default_rng([len(structure), SCHEDULES.index(schedule), sampled])
    for number, ((debias, first), leaps, dim) in enumerate(itertools.product(DEBIAS, (1, 2, 5), (1, 2, 3))):
        n_clients, local_steps = (3, 2, 4, 1)[number % 4], 1 + number // 2 % 3
        scheme_two = sampled and number % 3 == 1
        kind = "isotropic" if structure == "diagonal" and number % 5 == 2 else structure
        problem = make_problem(rng, kind, noise, n_clients, dim, weighted=not scheme_two,
                               singular=number % 2 == 1)
        active = 1 + number % n_clients if scheme_two else 1 + number % 4
        participation = fs.Participation(active, not scheme_two) if sampled else None
        shared = (0.0, 0.5, 1.0)[(number + number // 9) % 3]
        algorithm = fs.FAHMC(make_step_size(schedule, local_steps), leaps, local_steps, shared, debias, first,
                             participation)
        start = (None, rng.standard_normal(dim),
                 fs.Gaussian(rng.standard_normal(dim), spd(rng, 1, dim)[0]))[number % 3]
        yield problem, algorithm, start


PARITY = [(structure, noise, SCHEDULES[(i + sampled) % 3], sampled) for i, (structure, noise) in enumerate(
    itertools.product(("dense", "diagonal"), (None, "std", "cov"))) for sampled in (False, True)]


@pytest.mark.parametrize(("structure", "noise", "schedule", "sampled"), PARITY)
def test_kernel_is_its_slow_twin(structure, noise, schedule, sampled):
    for problem, algorithm, start in options(structure, noise, schedule, sampled):
        assert_parity(problem, algorithm, start)


def test_the_options_cover_the_pairs():
    """Each way of debiasing meets each amount of shared noise and each number of leapfrog steps."""
    seen = [(a.debias, a.first_round, a.shared_noise, a.leapfrog_steps)
            for case in PARITY for _, a, _ in options(*case)]
    assert {(d, f, s) for d, f, s, _ in seen} == {(*d, s) for d in DEBIAS for s in (0.0, 0.5, 1.0)}
    assert {(d, f, k) for d, f, _, k in seen} == {(*d, k) for d in DEBIAS for k in (1, 2, 5)}


def test_single_precision_variates_too():
    for structure, noise, schedule, sampled in (PARITY[0], PARITY[2], PARITY[5]):
        for problem, algorithm, start in options(structure, noise, schedule, sampled):
            assert_parity(problem, algorithm, start, "single", 1e-5)


def test_products_in_groups_of_eight_and_coordinates_as_lanes():
    """Dense dimensions from 8 on, and few replicas of many coordinates, are laid out otherwise."""
    rng = np.random.default_rng(3)
    for debias in (None, "stale"):
        dense = make_problem(rng, "dense", None, 3, 9, weighted=True)
        assert_parity(dense, fs.FAHMC(0.1, 3, 2, 0.3, debias))
        wide = make_problem(rng, "diagonal", "std", 3, 6, weighted=True)
        assert_parity(wide, fs.FAHMC(0.1, 3, 2, 0.3, debias), lanes=(0, 2))


def test_the_twins_are_not_the_same_code():
    """A change of the slow twin is noticed: the comparison can fail."""
    problem = make_problem(np.random.default_rng(1), "dense", None, 2, 2, weighted=True)
    run = fs.simulate(problem, fs.FAHMC(0.2, 3), FIRST_ROUNDS, 64, seed=SEED, keep_final=True)
    slow = naive_fa_hmc.fa_hmc(problem, fs.FAHMC(0.2 * (1.0 + 1e-9), 3), FIRST_ROUNDS, SEED, 0)
    assert np.abs(run.final[0] - slow[-1]).max() > 1e-12


@pytest.mark.parametrize("noise", [None, "std", "cov"])
@pytest.mark.parametrize("shared", [0.0, 0.4, 1.0])
def test_one_leapfrog_step_is_langevin(noise, shared):
    """FAHMC(eta, 1, T) is FALD(eta^2/2, T) on the same noise; the defaults of shared_noise differ."""
    problem = make_problem(np.random.default_rng(2), "dense", noise, 3, 2, weighted=True)
    for participation in (None, fs.Participation(2, True)):
        hmc = fs.FAHMC(0.3, 1, 4, shared, participation=participation)
        langevin = fs.FALD(0.045, 4, shared_noise=shared, participation=participation)
        one, other = (fs.simulate(problem, a, 5, 70, seed=3, keep_final=True).final for a in (hmc, langevin))
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * np.abs(one).max())
    assert fs.FAHMC(0.3, 1).shared_noise != fs.FALD(0.045).shared_noise


def test_all_clients_drawn_without_replacement_is_full_participation():
    problem = make_problem(np.random.default_rng(4), "dense", "std", 4, 3, weighted=False)
    for debias in (None, "stale", "fresh"):
        one, other = (fs.simulate(problem, fs.FAHMC(0.2, 3, 2, 0.3, debias, participation=p), 6, 66, seed=5,
                                  keep_final=True).final for p in (None, fs.Participation(4, False)))
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * np.abs(one).max())


ROUNDS, REPLICAS, RECORD = 6, 60_000, (1, 2, 3)
HARMONIC = fs.schedules.Harmonic(4.0, 0.15)
NOISY = contrasted(3, [0.5, 0.3, 0.2])  # tenfold curvatures: without them debiasing hardly shows
STEEP = fs.Quadratic(NOISY.hessians, NOISY.minimizers, NOISY.weights)
CASES = {
    "independent momenta": (quadratic(), fs.FAHMC(0.25, 3, 2, 0.0)),
    "partly shared momenta": (quadratic(), fs.FAHMC(0.25, 3, 2, 0.5)),
    "shared momenta": (quadratic(), fs.FAHMC(0.25, 3, 2, 1.0)),
    "one leapfrog step": (quadratic(), fs.FAHMC(0.4, 1, 4, 0.3)),
    "two leapfrog steps": (quadratic(3, 3), fs.FAHMC(0.3, 2, 3, 0.3)),
    "seven leapfrog steps": (quadratic(), fs.FAHMC(0.15, 7, 2, 0.3)),
    "one local update": (quadratic(), fs.FAHMC(0.25, 4, 1, 0.3)),
    "gradient noise": (quadratic(noise=1.5), fs.FAHMC(0.25, 3, 2, 0.0)),
    "gradient noise, half shared": (quadratic(noise="cov"), fs.FAHMC(0.25, 3, 2, 0.5)),
    "gradient noise, shared": (quadratic(noise="cov"), fs.FAHMC(0.25, 4, 2, 1.0)),
    "schedule": (quadratic(noise=1.0), fs.FAHMC(HARMONIC, 3, 3, 0.5)),
    "listed schedule": (quadratic(), fs.FAHMC(np.linspace(0.3, 0.05, 2 * ROUNDS), 3, 2, 0.5)),
    "one client": (quadratic(1), fs.FAHMC(0.25, 3, 2, 0.5)),
    "one dimension": (quadratic(4, 1), fs.FAHMC(0.25, 3, 2, 0.5)),
    "diagonal": (quadratic(structure="diagonal", noise=1.0), fs.FAHMC(0.3, 3, 2, 0.5)),
    "stale": (STEEP, fs.FAHMC(0.2, 3, 3, 0.0, "stale")),
    "stale, exact first round": (STEEP, fs.FAHMC(0.2, 3, 3, 0.5, "stale", "exact")),
    "stale, first round as printed": (STEEP, fs.FAHMC(0.2, 3, 3, 1.0, "stale", "printed")),
    "stale, gradient noise": (NOISY, fs.FAHMC(0.2, 3, 3, 0.5, "stale")),
    "stale, schedule": (STEEP, fs.FAHMC(fs.schedules.Harmonic(5.0, 0.1), 3, 3, 0.5, "stale")),
    "stale, diagonal": (quadratic(structure="diagonal"), fs.FAHMC(0.2, 3, 2, 0.5, "stale")),
    "fresh": (STEEP, fs.FAHMC(0.2, 3, 3, 0.0, "fresh")),
    "fresh, gradient noise": (NOISY, fs.FAHMC(0.2, 3, 3, 1.0, "fresh")),
    "scheme I": (quadratic(), fs.FAHMC(0.25, 3, 2, 0.0, participation=one(2))),
    "scheme I, gradient noise": (quadratic(noise="cov"), fs.FAHMC(0.25, 3, 2, 0.5, participation=one(2))),
    "scheme II": (quadratic(4, weights="equal"), fs.FAHMC(0.25, 3, 2, 1.0, participation=two(2))),
    "scheme II, gradient noise": (quadratic(4, weights="equal", noise=1.0), fs.FAHMC(
        0.25, 3, 2, 0.5, participation=two(3))),
    "stale, scheme I": (STEEP, fs.FAHMC(0.2, 3, 3, 0.5, "stale", participation=one(3))),
    "stale, scheme II": (quadratic(4, weights="equal", noise=1.0), fs.FAHMC(
        0.1, 3, 2, 0.0, "stale", "exact", participation=two(2))),
    "fresh, scheme I": (STEEP, fs.FAHMC(0.2, 3, 3, 1.0, "fresh", participation=one(2))),
}
STARTS = {
    "partly shared momenta": fs.Gaussian([3.0, -1.0], [[2.0, -1.2], [-1.2, 1.0]]),
    "stale": fs.Gaussian([3.0, -1.0], [[2.0, -1.2], [-1.2, 1.0]]),
    "stale, first round as printed": [4.0, -3.0],
    "fresh": [4.0, -3.0],
    "scheme I": fs.Gaussian([0.0, 5.0], [[0.5, 0.2], [0.2, 4.0]]),
    "stale, scheme I": fs.Gaussian([0.0, 5.0], [[0.5, 0.2], [0.2, 4.0]]),
}


@pytest.mark.parametrize("name", CASES)
def test_replicas_follow_the_exact_law(name, alarm):
    problem, algorithm = CASES[name]
    start = STARTS.get(name)
    law = theory.exact_law(problem, algorithm, ROUNDS, start=start, record=RECORD)
    run = fs.simulate(problem, algorithm, ROUNDS, REPLICAS, seed=31, start=start, record=RECORD)
    alarm.assert_normal(scores(run, law), name)


def test_the_cases_cover_what_matters():
    """Shared noise 0, 0.5, 1, with and without gradient noise, debiased or not, full and partial."""
    seen = {(a.shared_noise, p.gradient_noise is not None) for p, a in CASES.values()}
    assert seen >= set(itertools.product((0.0, 0.5, 1.0), (False, True)))
    drawn = {(a.debias, a.participation is not None) for _, a in CASES.values()}
    assert drawn == set(itertools.product((None, "stale", "fresh"), (False, True)))


# As in `test_power`: the source is copied with every mutation built in, each behind its own switch.
# name: (case, what is replaced, by what)
MUTATIONS = {
    "one leapfrog step too many": (
        "private", "self.schedule.arrays(), self.leapfrog_steps,",
        "self.schedule.arrays(), self.leapfrog_steps + (1 if ON() else 0),"),
    "an interior point's two gradients share a draw": (
        "noisy", "client, step, draw, x,", "client, step, max(0, 2 * k) if ON(kernel) else draw, x,"),
    "a step's two gradients share a draw": (
        "noisy", "range(max(0, 2 * k - 1), 2 * k + 1)",
        "range(max(0, 2 * k - 1) - (1 if ON(kernel) and k > 0 else 0), "
        "2 * k + (0 if ON(kernel) and k > 0 else 1))"),
    "square root of the weight forgotten": (
        "private", "own_size, private, normal_row(own, i), shared_size,\n"
        "                            normal_row",
        "own_size, 1.0 if ON(kernel) else private, normal_row(own, i), shared_size,\n"
        "                            normal_row"),
    "square root of the weight forgotten without modes": (
        "diagonal", "        else:\n            lanes.blend(velocity[i], own_size, private,",
        "        else:\n            lanes.blend(velocity[i], own_size, 1.0 if ON(kernel) else private,"),
    "square root of the weight forgotten without modes or shared momentum": (
        "diagonal, own", "lanes.scale_product(velocity[i], own_size, private,",
        "lanes.scale_product(velocity[i], own_size, 1.0 if ON(kernel) else private,"),
    "momentum not refreshed without modes": (
        "diagonal, own", "    for i in range(velocity.shape[0]):\n        if shared_size",
        "    for i in range(0 if ON(kernel) and step % kernel.local_steps > 0 else velocity.shape[0]):\n"
        "        if shared_size"),
    "square root of the weight forgotten without shared momentum": (
        "own", "own_size * private, own)", "own_size * (1.0 if ON(kernel) else private), own)"),
    "shared momentum without its square root": (
        "private", "eta * np.sqrt(kernel.shared_noise)",
        "eta * (kernel.shared_noise if ON(kernel) else np.sqrt(kernel.shared_noise))"),
    "momentum not refreshed": (
        "lone", "range(velocity.shape[0]):\n                lanes.blend(",
        "range(0 if ON(kernel) and step % kernel.local_steps > 0 else velocity.shape[0]):\n"
        "                lanes.blend("),
    "private momentum of the first client": (
        "private", "if own_size > 0.0:\n", "if own_size > 0.0 and not (ON(kernel) and slot > 0):\n"),
    "shared momentum of the step before": (
        "shared", "elif slot == 0:",
        "elif slot == 0 and not (ON(kernel) and step % kernel.local_steps > 0):"),
    "another client's modes": (
        "private", "trajectory_in_modes(modes, client,",
        "trajectory_in_modes(modes, 0 if ON(kernel) else client,"),
    "another client's modes without shared momentum": (
        "own", "trajectory_of_normals(modes, client,",
        "trajectory_of_normals(modes, 0 if ON(kernel) else client,"),
    "not turned back from the modes": (
        "private", "    _send_from(kernel.modes, work, slot)\n",
        "    if not ON(kernel):\n        _send_from(kernel.modes, work, slot)\n"),
    "the server's value received only once": (
        "private", "    _receive_in(kernel.modes, work, slot)\n",
        "    if not (ON(kernel) and work.local[slot, 0, 0] != 0.0):\n"
        "        _receive_in(kernel.modes, work, slot)\n"),
    "position kicked by a whole step": (
        "diagonal", "half if k == 0 else 2.0 * half, x, velocity, corrected, correction,\n",
        "half if k == 0 and not ON(kernel) else 2.0 * half, x, velocity, corrected, correction,\n"),
    "momentum kicked once between two moves": (
        "noisy", "lanes.axpy(velocity[i], half,",
        "lanes.axpy(velocity[i], half * (0.5 if ON(kernel) and k > 0 else 1.0),"),
    "schedule counts rounds": (
        "noisy", "step_size(kernel.schedule, step)",
        "step_size(kernel.schedule, step // (kernel.local_steps if ON(kernel) else 1))"),
    "anchor one round late": (
        "stale", "lanes.copy(extra.anchor[i], extra.previous[i])",
        "lanes.copy(extra.anchor[i], work.server[i] if ON(kernel) else extra.previous[i])"),
    "first round as printed": (
        "stale", "and kernel.first_round == 2:", "and (kernel.first_round == 2 or ON(kernel)):"),
    "server's gradient unweighted": (
        "stale", "kernel.weights[client], work.gradient[i])",
        "1.0 / kernel.weights.shape[0] if ON(kernel) else kernel.weights[client], work.gradient[i])"),
    "correction with the wrong sign": (
        "stale", "-1.0, work.gradient[i])", "1.0 if ON(kernel) else -1.0, work.gradient[i])"),
    "correction only in the first update": (
        "stale", "corrected = _is_corrected(kernel, step // kernel.local_steps)",
        "corrected = _is_corrected(kernel, step // kernel.local_steps) and not ("
        "ON(kernel) and step % kernel.local_steps > 0)"),
}
CARRIERS = [("    modes: Any\n", "    modes: Any\n    mutant: int\n"),
            ("else NoModes(0))", "else NoModes(0), SWITCH.value)")]
FILES = ("fa_hmc_kernels", "fa_hmc")  # in which each mutation is looked for
MUTANT_CASES = {
    "private": (quadratic(), lambda cls: cls(0.25, 3, 2, 0.5)),
    "noisy": (quadratic(noise=8.0), lambda cls: cls(fs.schedules.Harmonic(4.0, 0.5), 3, 2, 0.5)),
    "shared": (quadratic(), lambda cls: cls(0.25, 3, 2, 1.0)),
    "own": (quadratic(), lambda cls: cls(0.25, 3, 2, 0.0)),
    "diagonal, own": (quadratic(structure="diagonal"), lambda cls: cls(0.25, 3, 2, 0.0)),
    "diagonal": (quadratic(structure="diagonal"), lambda cls: cls(0.25, 3, 2, 0.5)),
    "lone": (quadratic(1), lambda cls: cls(0.25, 3, 2, 0.5)),
    "stale": (STEEP, lambda cls: cls(0.2, 3, 3, 0.5, "stale", "exact")),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The mutated modules' `FAHMC`, and `.switch.value` to choose one mutation (0: none)."""
    folder, home = tmp_path_factory.mktemp("mutants"), Path(fs.__file__).parent / "algorithms"
    text = {file: (home / f"{file}.py").read_text() for file in FILES}

    def replace(old, new, title):
        file = next((file for file in FILES if old in text[file]), FILES[0])
        text[file] = replaced_once(text[file], old, new, title)

    for old, new in CARRIERS:
        replace(old, new, "carrier")
    for number, (title, (_, old, new)) in enumerate(MUTATIONS.items(), start=1):
        replace(old, with_switch(new, number), title)
    switch = SimpleNamespace(value=0)
    swapped = {"fedsim.algorithms.fa_hmc_kernels": "fedsim_mutant_fa_hmc_kernels"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fedsim.compile, "cache_folder", lambda: folder)  # its machine code goes there
        for file in FILES:
            name = f"fedsim_mutant_{file}"
            (folder / f"{name}.py").write_text(absolute_imports(text[file], "algorithms", swapped))
            spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
            module = importlib.util.module_from_spec(spec)
            module.SWITCH = switch
            sys.modules[name] = module
            spec.loader.exec_module(module)
    yield SimpleNamespace(FAHMC=module.FAHMC, switch=switch)
    for file in FILES:
        del sys.modules[f"fedsim_mutant_{file}"]


def run_copy(copy, case, number):
    """A run of the copy, and the exact law of the program."""
    problem, make = MUTANT_CASES[case]
    copy.switch.value = number
    algorithm = make(copy.FAHMC)
    assert type(algorithm) is not fs.FAHMC
    start = [3.0, -2.0]
    return (fs.simulate(problem, algorithm, 4, REPLICAS, seed=41, start=start),
            theory.exact_law(problem, make(fs.FAHMC), 4, start=start))


@pytest.mark.parametrize("case", MUTANT_CASES)
def test_without_a_mutation_the_copy_is_the_program(case, copy, alarm):
    run, law = run_copy(copy, case, 0)
    problem, make = MUTANT_CASES[case]
    program = fs.simulate(problem, make(fs.FAHMC), 4, REPLICAS, seed=41, start=[3.0, -2.0])
    assert program.mean.tobytes() == run.mean.tobytes()
    assert program.cov.tobytes() == run.cov.tobytes()
    alarm.assert_normal(scores(run, law), case)


@pytest.mark.parametrize("number", range(1, len(MUTATIONS) + 1), ids=list(MUTATIONS))
def test_the_mutation_is_caught(number, copy, alarm):
    title = list(MUTATIONS)[number - 1]
    alarm.must_fail(scores(*run_copy(copy, MUTATIONS[title][0], number)), title)


GOOD = dict(step_size=0.1, leapfrog_steps=3, local_steps=2, shared_noise=0.5)
BAD = [(name, value) for name, values in {
    "leapfrog_steps": (0, -2, 2.0, True, None, "3", np.nan), "local_steps": (0, 1.5, None),
    "shared_noise": (-0.1, 1.1, np.nan, None), "step_size": (0.0, -0.1, np.inf, None, [0.1, -0.1], []),
    "debias": ("Stale", 1, True, ""), "first_round": (None, "zero", 0), "participation": (2, "I"),
}.items() for value in values]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_bad_arguments_are_named(name, value):
    with pytest.raises(ValueError, match=name):
        fs.FAHMC(**(GOOD | {name: value}))


@pytest.mark.parametrize("rho", [-0.5, 1.5, "x"])
def test_the_papers_symbols(rho):
    """rho is the shared fraction itself, not its root as in FA-LD."""
    assert fs.FAHMC.from_paper(0.1, 5, 10, 0.25) == fs.FAHMC(0.1, 5, 10, 0.25)
    with pytest.raises(ValueError, match="rho"):
        fs.FAHMC.from_paper(0.1, 5, 10, rho)


def test_what_cannot_run_is_refused_with_limit_and_value():
    lone, steep = fs.Quadratic([2.0], [[1.0]]), fs.Quadratic([0.1, 10.0], [[1.0], [0.0]])
    for problem, algorithm, message, limit in (
            (lone, fs.FAHMC(1.5, 3), "step_size=1.5 must be less than the stability limit 1.414", np.sqrt(2)),
            (lone, fs.FAHMC(1.0, 2), "step_size=1 must be less than the stability limit 1 .a resonance", 1.0),
            (steep, fs.FAHMC(0.1, 10, 5, debias="stale"), "step_size=0.1 .* radius 2.25015", 0.0454045)):
        with pytest.raises(fs.UnstableStepSize, match=message) as refused:
            fs.simulate(problem, algorithm, 3, 2, seed=1)
        assert refused.value.limit == pytest.approx(limit, rel=1e-5)
        assert refused.value.step_size == algorithm.step_size
    with pytest.raises(ValueError, match=r"weights\[1\]=0 must be greater than 0"):  # private momentum
        fs.Quadratic([1.0, 1.0], [[0.0], [0.0]], [1.0, 0.0])
    with pytest.raises(ValueError, match="n_active=3 must be at most n_clients=2"):
        fs.simulate(steep, fs.FAHMC(0.1, 2, participation=two(3)), 3, 2, seed=1)
    with pytest.raises(ValueError, match="step_size"):
        fs.simulate(steep, fs.FAHMC([0.1, 0.1, 0.1], 2, 2), 2, 2, seed=1)


def test_costs():
    """K gradients a local update, T updates a round; communications do not depend on either."""
    costs = fs.simulate(quadratic(), fs.FAHMC(0.2, 3, 4), 5, 2, seed=1).costs
    assert costs == {"communications": 5, "gradient_evaluations": 5 * 4 * 3 * 3,
                     "floats_sent": 5 * 2 * (3 + 3)}
