"""Gradients of one's own: the numbers of `Quadratic` where they are affine, and what is known of others."""

import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import own_gradients as own
import pytest

import fedsim as fs
import theory
from fedsim.interfaces import validate
from fedsim.problems.pooled import Pooled

RING = fs.network.ring(4)
SCHEMES = {"all": None, "scheme I": fs.Participation(2, True), "scheme II": fs.Participation(3, False)}
FEW, MANY = 20, 150


MEETS = {"line": ({fs.FALD, fs.FAHMC, fs.DESGLD}, {fs.FALD, fs.FAHMC}), "diagonal 2": ({fs.FAHMC}, {fs.FALD}),
         "plane": ({fs.FALD, fs.DESGLD}, {fs.FALD, fs.FAHMC}), "diagonal 5": ({fs.FALD}, {fs.FAHMC}),
         "dense 5": ({fs.FAHMC}, {fs.FALD})}
"""Algorithms that each kind of gradient meets, of all clients and of drawn ones: any two meet."""


def algorithms(participation):
    """FA-LD, FA-HMC plain and debiased, and, for all clients, DE-SGLD."""
    yield fs.FALD(0.05, 3, shared_noise=0.3, participation=participation)
    yield fs.FAHMC(0.1, 3, 2, 0.5, participation=participation)
    yield fs.FAHMC(0.1, 3, 2, 0.5, "stale", participation=participation)
    if participation is None:
        yield fs.DESGLD(0.05, RING)


def numbers(problem, algorithm, n_replicas=MANY, **options):
    """Everything that a run of this problem knows."""
    run = fs.simulate(problem, algorithm, 6, n_replicas, seed=3, keep_final=True, **options)
    return [run.mean, run.cov, run.final, *(client.mean for client in run.clients)]


def same(one, other):
    return all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))


def test_kinds_algorithms_and_clients_meet():
    """A gradient is a number or a vector, of a client that is a number or one in every lane."""
    assert set(MEETS) == set(own.KINDS)
    for number in (0, 1):
        kernels = {type(algorithm) for algorithm in algorithms(SCHEMES["scheme I"] if number else None)}
        assert all(met[number] for met in MEETS.values()) and MEETS["line"][number] == kernels
        assert set().union(*(met[number] for kind, met in MEETS.items() if kind != "line")) == kernels


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kind", own.KINDS)
def test_affine_gradients_give_the_bits_of_quadratic(kind, scheme):
    """But for its dense products, which are fused, and dense trajectories, which run in eigenvectors or add
    the debiasing's correction first.
    """
    plain, custom = own.pair(kind, uniform=scheme == "scheme II")
    for algorithm in algorithms(SCHEMES[scheme]):
        if type(algorithm) not in MEETS[kind][scheme != "all"]:
            continue
        one, other = numbers(plain, algorithm), numbers(custom, algorithm)
        other_order = kind == "plane" and isinstance(algorithm, fs.FAHMC) and (
            algorithm.debias is not None or algorithm.participation is None)
        if kind == "dense 5" or other_order:
            for a, b in zip(one, other, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
        else:
            assert same(one, other), algorithm


def test_bits_with_other_options():
    start = fs.Gaussian([1.0, 2.0], [[1.0, 0.5], [0.5, 2.0]])
    for kind, noise, algorithm, options in (
            ("diagonal 2", None, fs.FALD(0.05, 3), {"noise": "single", "start": start}),
            ("diagonal 2", None, fs.FAHMC(0.1, 2, 2, debias="fresh"), {"n_replicas": FEW}),
            ("plane", 0.4, fs.DESGLD(0.05, RING), {"start": start})):
        plain, custom = own.pair(kind, noise=noise)
        assert same(numbers(plain, algorithm, **options), numbers(custom, algorithm, **options))


@pytest.mark.parametrize("kind, noise, algorithm", [
    ("line", None, fs.StaleSGHMC(0.1, 1.0, [0, 0, 1, 2, 1, 0])), ("dense 5", 0.7, fs.StaleSGLD(0.05, 2))])
def test_stale_algorithms_follow_the_sum(kind, noise, algorithm):
    plain, custom = own.pair(kind, noise=noise)
    for a, b in zip(numbers(plain, algorithm), numbers(custom, algorithm), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_paths_and_averages():
    plain, custom = own.pair("line")
    algorithm = fs.FALD(0.05, 3)
    path = [fs.sample_path(p, algorithm, 40, seed=1, every=5, n_chains=3) for p in (plain, custom)]
    assert same(*[[one] for one in path])
    runs = [fs.simulate(p, algorithm, 5, 70, seed=1, average="square") for p in (plain, custom)]
    assert same(*[[run.averages] for run in runs])


def test_the_same_bits_however_the_work_is_done(tmp_path):
    custom = own.pair("plane", noise=0.4)[1]
    algorithm = fs.FALD(0.05, 3, participation=fs.Participation(2, True))
    base = numbers(custom, algorithm, 500, threads=1)
    for options in ({"threads": 3, "block_size": 64}, {"block_size": 320}):
        assert same(base, numbers(custom, algorithm, 500, **options))
    with ProcessPoolExecutor(2) as pool:
        assert same(base, numbers(custom, algorithm, 500, executor=pool, block_size=128))
    fs.simulate(custom, algorithm, 6, 500, seed=3, keep_final=True, checkpoint=tmp_path, replicas=(0, 128))
    assert same(base, numbers(custom, algorithm, 500, checkpoint=tmp_path))


def test_a_problem_is_the_same_after_pickling():
    custom = own.pair("plane", noise=0.4)[1]
    again = pickle.loads(pickle.dumps(custom))
    assert again == custom
    assert hash(again) == hash(custom)
    assert type(again._arrays()) is type(custom._arrays())
    x = np.arange(12.0).reshape(2, 3, 2)
    np.testing.assert_array_equal(again.gradient(1, x), custom.gradient(1, x))
    assert Pooled(custom) == custom.pooled() != own.pair("plane")[1].pooled()


def test_gradients_and_potentials_in_numpy():
    for kind in own.KINDS:
        plain, custom = own.pair(kind)
        x = np.random.default_rng(2).standard_normal((3, 7, plain.dim))
        for client in range(4):
            np.testing.assert_allclose(custom.gradient(client, x), plain.gradient(client, x), rtol=1e-13,
                                       atol=1e-13)
        np.testing.assert_allclose(custom.pooled().gradient(0, x), plain.pooled().gradient(0, x), rtol=1e-12,
                                   atol=1e-12)
    centres = [-1.0, 1.0]
    problem = fs.Custom(own.log_cosh, 2, data=centres, potential=own.log_cosh_potential, weights=[0.25, 0.75])
    x = np.array([[0.5], [3.0]])
    each = [np.logaddexp(x[:, 0] - c, c - x[:, 0]) for c in centres]
    np.testing.assert_allclose(problem.potential(1, x), each[1], rtol=1e-14)
    np.testing.assert_allclose(problem.potential(None, x), 0.25 * each[0] + 0.75 * each[1], rtol=1e-14)


def test_step_sizes_are_judged_where_a_curvature_is_given():
    for plain, custom in (own.pair("line"), own.pair("diagonal 2")):
        bound = fs.Quadratic(custom.curvature, np.zeros((4, plain.dim)), plain.weights)
        for algorithm in (fs.FALD(0.05, 3), fs.FAHMC(0.1, 3), fs.DESGLD(0.05, RING), fs.StaleSGLD(0.05, 2)):
            assert algorithm.stability(custom) == algorithm.stability(bound)
        with pytest.raises(fs.UnstableStepSize):
            validate(custom, fs.FALD(10.0))
    unknown = fs.Custom(own.line, 4, data=custom_data())
    for algorithm in (fs.FALD(10.0), fs.FAHMC(10.0, 1), fs.DESGLD(10.0, RING), fs.StaleSGLD(10.0, 1)):
        validate(unknown, algorithm)
        with pytest.raises(ValueError, match=r"curvature=None: no step size can be judged; pass an upper"):
            algorithm.stability(unknown)
        assert fs.explain(unknown, algorithm)["stability"] == "not judged: nothing bounds the Hessians"


def custom_data():
    plain = own.pair("line")[0]
    return plain.diagonal_hessians[:, 0], plain.minimizers[:, 0]


def test_a_huge_step_diverges_and_says_what_is_not_known():
    problem = fs.Custom(own.double_well, 2, data=(1.0, [-0.5, 0.5]))
    with pytest.raises(fs.DivergedError, match="nothing bounds the Hessians, so that no step"):
        fs.simulate(problem, fs.FALD(5.0), 200, 64, seed=1)


def test_what_is_not_known_is_said():
    problem = own.pair("line")[1]
    with pytest.raises(ValueError, match=r"the target has no closed form; compare with a reference sample"):
        problem.target()
    with pytest.raises(theory.NoExactLaw, match=r"Custom\(line"):
        theory.exact_law(problem, fs.FALD(0.1), 5)
    with pytest.raises(theory.NoExactLaw):
        theory.stationary_law(problem, fs.StaleSGLD(0.1, 0))
    with pytest.raises(ValueError, match=r"make a theory\.Constants by hand"):
        theory.constants(problem, fs.FALD(0.1))
    with pytest.raises(ValueError, match=r"must have a potential: pass potential="):
        problem.potential(0, [1.0])
    run = fs.simulate(problem, fs.FALD(0.1), 2, 64, seed=1)
    assert run.target is None
    with pytest.raises(ValueError, match="target=None"):
        run.w2()
    assert fs.explain(problem, fs.FALD(0.1))["exact law"].startswith("none: problem=Custom(line")


def test_warm_up_and_costs():
    custom = own.pair("line")[1]
    fs.warm_up(custom, fs.FALD(0.05))
    assert fs.warm_up(custom, fs.FALD(0.02, 7)) == 0
    assert fs.simulate(custom, fs.FALD(0.05, 2), 3, 64, seed=1).costs["gradient_evaluations"] == 24
