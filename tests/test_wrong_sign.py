"""A gradient of the wrong sign, or a step too large, is told by name where f need not be convex."""

import dataclasses
from concurrent.futures import Future

import numpy as np
import pytest

import fedsim as fs
from fedsim.engine.divergence import FACTOR, RADIUS, reach
from fedsim.engine.job import make_job

LINEAR, CAUCHY, CUBIC = 0, 1, 2


def slope(client, x, kind, signs, centre):
    gap = x - centre
    if kind == 1:
        return 2.0 * signs[client] * gap / (1.0 + gap * gap)
    if kind == 2:
        return signs[client] * gap * gap * gap
    return signs[client] * gap


def slopes(client, x, out, signs, centres):
    for i in range(len(x)):
        out[i] = signs[i] * (x[i] - centres[i])


def line(kind=LINEAR, sign=1.0, centre=0.0, n_clients=2, **options):
    return fs.Custom(slope, n_clients, data=(kind, sign * np.ones(n_clients), float(centre)), **options)


def plane(signs, centres=(0.0, 0.0)):
    return fs.Custom(slopes, 2, 2, data=(np.array(signs, float), np.array(centres, float)))


PAIR = fs.network.complete(2)
ALGORITHMS = {"FALD": fs.FALD(0.1, local_steps=2), "FAHMC": fs.FAHMC(0.15, 4, shared_noise=0.5),
              "DESGLD": fs.DESGLD(0.2, PAIR), "DESGHMC": fs.DESGHMC(0.2, 2.0, PAIR),
              "StaleSGLD": fs.StaleSGLD(0.1, 2), "StaleSGHMC": fs.StaleSGHMC(0.15, 2.0, 2)}
ROUNDS = 450


def all_of(*quick):
    """Names of all algorithms, of which those that are not `quick` wait for the slow tests: they compile."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in ALGORITHMS]


LINE = all_of("FALD", "FAHMC", "DESGLD", "StaleSGHMC")


def told(problem, algorithm, n_rounds=ROUNDS, n_replicas=128, **options):
    """The error of a run that must end in one."""
    with pytest.raises(fs.DivergedError, match="is its sign wrong") as caught:
        fs.simulate(problem, algorithm, n_rounds, n_replicas, seed=1, **options)
    return caught.value


@pytest.mark.parametrize("name", LINE)
def test_a_wrong_sign_is_told_on_the_line(name):
    error = told(line(sign=-1.0), ALGORITHMS[name])
    assert 10 < error.round < ROUNDS
    # and one round earlier nothing is beyond the limit: it is the first
    fs.simulate(line(sign=-1.0), ALGORITHMS[name], error.round - 1, 128, seed=1)


@pytest.mark.parametrize("name", all_of("FALD"))
def test_a_wrong_sign_of_one_coordinate_is_told_in_the_plane(name):
    """In the same round where the other one is far from its minimizer, so that the whole gradient shrinks."""
    told(plane([-1.0, -1.0]), ALGORITHMS[name])
    rounds = [told(plane([-1.0, 1.0], [0.0, far]), ALGORITHMS[name]).round for far in (0.0, 1e9)]
    assert rounds[0] == rounds[1]


@pytest.mark.parametrize("name", LINE)
def test_a_far_minimizer_is_reached_without_a_word(name):
    run = fs.simulate(line(centre=1e9), ALGORITHMS[name], ROUNDS, 128, seed=1)
    assert abs(run.mean[-1, 0] - 1e9) < 1e3
    assert run.cov[-1, 0, 0] < 1e3


@pytest.mark.parametrize("name", ["FALD", "DESGLD", "StaleSGHMC"])
def test_who_is_looked_at_and_let_go_on_keeps_its_bits(name):
    problem, options = line(centre=1e9), {"keep_final": True, "seed": 1}
    for record in (None, [3, 50]):
        one, free = (fs.simulate(problem, ALGORITHMS[name], 100, 70, record=record, allow_unstable=unlooked,
                                 **options) for unlooked in (False, True))
        for part in ("rounds", "mean", "cov", "final"):
            assert (getattr(one, part) == getattr(free, part)).all()
    one, free = (fs.sample_path(problem, ALGORITHMS[name], 100, seed=1, every=7, n_chains=70,
                                allow_unstable=unlooked) for unlooked in (False, True))
    assert (one == free).all()


@pytest.mark.parametrize("step_size", [0.01, 0.3, 2.0])
@pytest.mark.parametrize("name", ["FALD", "FAHMC", "StaleSGHMC"])
def test_a_heavy_tail_passes(name, step_size):
    """Cauchy's law, potential log(1 + x^2), from its mode and from far out."""
    algorithm = dataclasses.replace(ALGORITHMS[name], step_size=min(step_size, 0.5 if "HMC" in name else 9.0))
    for start in (0.0, -1e8):
        run = fs.simulate(line(CAUCHY), algorithm, 500, 1024, seed=1, start=[start], keep_final=True)
        assert np.isfinite(run.final).all()


def test_a_wrong_sign_of_a_heavy_tail_cannot_be_told_by_its_size():
    """The gradient is bounded: replicas diffuse, and nothing grows."""
    run = fs.simulate(line(CAUCHY, sign=-1.0), fs.FALD(0.1), 500, 128, seed=1)
    assert run.cov[-1, 0, 0] < 1e4


def test_a_step_that_is_too_large_is_told():
    assert "step_size" in str(told(line(), fs.FALD(2.5)))
    assert "nothing bounds the Hessians" in str(told(line(CUBIC), fs.FALD(0.6)))


def test_a_far_start_and_the_wrong_sign():
    """The step away from the start is 1e8 at once; the right sign makes one towards the minimizer."""
    assert told(line(sign=-1.0), fs.FALD(0.1), start=[1e9]).round == 1
    fs.simulate(line(), fs.FALD(0.1), 100, 128, seed=1, start=[1e9])


def test_one_of_many_clients_is_enough():
    told(line(sign=[-1.0, 1.0]), fs.FALD(0.3, local_steps=4), start=[1.0])  # their sum is 0 everywhere


def test_who_asks_for_it_goes_on():
    run = fs.simulate(line(sign=-1.0), fs.FALD(0.1), 300, 128, seed=1, allow_unstable=True)
    assert run.cov[-1, 0, 0] > 1e13
    with pytest.raises(fs.DivergedError, match="beyond 1e\\+75"):
        fs.simulate(line(sign=-1.0), fs.FALD(0.1), 3000, 128, seed=1, allow_unstable=True)


class Serial:
    """An executor without processes."""

    def submit(self, function, *args):
        future = Future()
        try:
            future.set_result(function(*args))
        except fs.DivergedError as error:
            future.set_exception(error)
        return future


def test_the_error_is_the_same_however_the_work_is_cut(tmp_path):
    problem, algorithm = line(sign=-1.0), ALGORITHMS["FALD"]
    errors = [told(problem, algorithm, n_replicas=1000, **options) for options in (
        {"threads": 1}, {"threads": 2}, {"block_size": 64, "threads": 2}, {"block_size": 1024},
        {"record": range(0, ROUNDS, 7)}, {"record": ()}, {"executor": Serial()},
        {"checkpoint": tmp_path, "block_size": 128}, {"checkpoint": tmp_path})]
    assert len({(error.round, str(error)) for error in errors}) == 1
    with pytest.raises(fs.DivergedError) as caught:
        fs.sample_path(problem, algorithm, ROUNDS, seed=1, n_chains=1000, every=50)
    assert str(caught.value) == str(errors[0])
    first = min(told(problem, algorithm, n_replicas=1000, replicas=part).round
                for part in ((0, 64), (64, 512), (512, 1000)))
    assert first == errors[0].round


def test_a_checkpoint_of_a_run_that_was_let_go_on_is_another(tmp_path):
    fs.simulate(line(sign=-1.0), fs.FALD(0.1), 200, 64, seed=1, allow_unstable=True, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="belongs to another simulation"):
        fs.simulate(line(sign=-1.0), fs.FALD(0.1), 200, 64, seed=1, checkpoint=tmp_path)


def job_of(problem, algorithm, n_rounds=ROUNDS, **options):
    return make_job(problem, algorithm, n_rounds, 256, seed=1, **options)


def test_a_wrong_sign_is_told_where_a_curvature_bounds_its_size():
    """A curvature has no sign: the step size is stable, and the gradient leads away."""
    error = told(line(sign=-1.0, curvature=1.0), fs.FALD(0.1))
    assert "stability limit" in str(error) and error.round == told(line(sign=-1.0), fs.FALD(0.1)).round
    told(line(sign=-1.0, curvature=1.0), fs.StaleSGHMC(0.15, 2.0, 2))


def test_what_is_known_to_be_convex_has_no_scales():
    assert job_of(fs.Quadratic([1.0, 2.0], [[0.0], [1.0]]), fs.FALD(0.1)).scales is None
    assert fs.Quadratic([1.0], [[0.0]]).is_convex and not line(curvature=1.0).pooled().is_convex
    assert job_of(line(curvature=1.0), fs.FALD(0.1)).scales == (0.0, 0.0)
    assert job_of(line(), fs.FALD(0.1), allow_unstable=True).scales is None
    assert job_of(line(), fs.FALD(0.1)).scales == (0.0, 0.0)


def test_the_largest_scale_counts():
    start = fs.Gaussian([3.0], [4e6])
    assert job_of(line(), fs.FALD(0.1), start=start).scales == (2000.0, 0.0)
    assert job_of(line(), fs.DESGLD(0.1, PAIR), start=[[1.0], [5.0]]).scales == (2.0, 0.0)
    assert reach(job_of(line(), fs.FALD(0.1), start=start), 0, 2).tolist() == [FACTOR * 2000.0] * 2
    assert told(line(sign=-1.0), fs.FALD(0.1), start=fs.Gaussian([0.0], [4e6])).round < ROUNDS
    known = type("Known", (fs.Custom,), {"target": lambda self, temperature=1.0: fs.Gaussian([0.0], [9.0])})
    assert job_of(known(slope, 1, data=(0, np.ones(1), 0.0)), fs.FALD(0.1)).scales == (0.0, 3.0)


@pytest.mark.parametrize("name", LINE)
def test_the_noise_so_far_is_that_of_a_run_without_gradient(name, alarm):
    """Exactly at constant steps; with momentum it is a bound, which late rounds come near to."""
    problem, n_replicas, n_rounds = line(sign=0.0), 6000, 100
    run = fs.simulate(problem, ALGORITHMS[name], n_rounds, n_replicas, seed=2)
    job = job_of(problem, ALGORITHMS[name])
    ratio = run.cov[1:, 0, 0] / (reach(job, 0, n_rounds) / FACTOR) ** 2
    error = np.sqrt(2.0 / (n_replicas - 1))
    if name.endswith("SGHMC"):
        alarm.assert_normal(np.maximum(0.0, ratio - 1.0) / error)
        assert ratio[-1] > 0.7
        assert ratio.min() > 0.05
    else:
        alarm.assert_normal((ratio - 1.0) / error)
        alarm.must_fail((1.25 * ratio - 1.0) / error)


@pytest.mark.slow
def test_gradient_noise_counts_with_it(alarm):
    problem = line(sign=0.0, gradient_noise=1e3, n_clients=1)
    for algorithm in (fs.FALD(0.1), fs.StaleSGLD(0.1), fs.FAHMC(0.1, 4)):
        run = fs.simulate(problem, algorithm, 50, 1024, seed=3, allow_unstable=True)
        ratio = run.cov[1:, 0, 0] / (reach(job_of(problem, algorithm), 0, 50) / FACTOR) ** 2
        assert 0.2 < ratio.min()
        alarm.assert_normal(np.maximum(0.0, ratio - 1.0) / np.sqrt(2.0 / 1023))


def test_sums_of_schedules():
    steps = np.arange(0.0, 200.0)
    for schedule in (fs.schedules.Constant(0.3), fs.schedules.Harmonic(4.0, 0.5),
                     fs.schedules.Harmonic(4.0, 0.0), fs.schedules.Listed(np.linspace(1.0, 0.1, 200))):
        sums = np.concatenate([[0.0], np.cumsum(schedule.at(np.arange(199)))])
        assert np.abs(schedule.total(steps) - sums).max() < 0.02 * schedule.largest * np.sqrt(200.0)


def test_the_limit_is_never_beyond_the_radius():
    job = job_of(line(), fs.FALD(0.1), start=fs.Gaussian([0.0], [1e160]))
    assert reach(job, 0, 1)[0] > RADIUS  # so that 1e75 is told before, as everywhere
    with pytest.raises(fs.DivergedError, match="beyond 1e\\+75"):
        fs.simulate(line(), fs.FALD(0.1), 1, 64, seed=1, start=fs.Gaussian([0.0], [1e160]))
