"""Replicas of potentials of one's own agree with laws by quadrature, round by round."""

import numpy as np
import own_gradients as own
import pytest
from alarm import MARGIN, Z_LIMIT
from scipy import stats

import fedsim as fs

GRID = np.linspace(-16.0, 16.0, 1601)
STEP, EVERY, ROUNDS, REPLICAS = 0.06, 3, 12, 100_000
CENTRES = np.array([-1.0, 1.5])
PROBLEMS = {
    "log-cosh": fs.Custom(own.log_cosh, 2, data=CENTRES, potential=own.log_cosh_potential, curvature=1.0),
    "double well": fs.Custom(own.double_well, 2, data=(1.5, CENTRES), potential=own.double_well_potential)}
SLOPES = {"log-cosh": lambda c, x: np.tanh(x - CENTRES[c]),
          "double well": lambda c, x: 1.5 * (x**3 - x) - CENTRES[c]}


def server_law(name, temperature=1.0, pull=1.0):
    """The density on `GRID` of the average of two equal clients after `ROUNDS`, from the point 0.

    A client's local steps are transition densities, which are multiplied; given where a round begins clients
    are independent, so that their sum has the convolution of theirs.
    """
    width = GRID[1] - GRID[0]
    private = np.sqrt(2.0 * STEP * temperature / 0.5)
    ends = []
    for client in range(2):
        moved = GRID - STEP * pull * SLOPES[name](client, GRID)
        kernel = stats.norm.pdf(GRID[None, :], np.clip(moved, -50.0, 50.0)[:, None], private)
        ends.append(np.linalg.matrix_power(kernel * width, EVERY) / width)
    rows = np.fft.irfft(np.fft.rfft(ends[0], 4096) * np.fft.rfft(ends[1], 4096), 4096) * width
    average = 2.0 * rows[:, :2 * len(GRID) - 1:2]  # the sum is 2 y
    law = np.zeros(len(GRID))
    law[len(GRID) // 2] = 1.0 / width
    for _ in range(ROUNDS):
        law = law @ average * width
    assert abs(law.sum() * width - 1.0) < 1e-9
    return law


def scores(sample, law):
    """Standard errors of the first four moments, and of Kolmogorov's statistic."""
    width = GRID[1] - GRID[0]
    moments = [(law * GRID**k).sum() * width for k in range(9)]
    z = [((sample**k).mean() - moments[k]) / np.sqrt((moments[2 * k] - moments[k] ** 2) / len(sample))
         for k in range(1, 5)]
    mass = np.concatenate([[0.0], np.cumsum(0.5 * (law[1:] + law[:-1]) * width)])
    distance = stats.kstest(sample, lambda x: np.interp(x, GRID, mass)).statistic
    return np.array(z), stats.kstwobign.sf(distance * np.sqrt(len(sample)))


@pytest.mark.parametrize("name", PROBLEMS)
def test_four_moments_and_the_distribution_agree_with_quadrature(name, alarm):
    algorithm = fs.FALD(STEP, EVERY)
    run = fs.simulate(PROBLEMS[name], algorithm, ROUNDS, REPLICAS, seed=5, keep_final=True)
    z, p_value = scores(run.final[:, 0], server_law(name))
    alarm.assert_normal(z, f"moments of {name}")
    alarm.assert_pvalue(p_value, f"Kolmogorov's distance of {name}")
    # noise without the factor 1 / sqrt(w_c) is seen, and a slope that is a fifth too steep
    for wrong in (server_law(name, temperature=0.5), server_law(name, pull=1.2)):
        assert np.abs(scores(run.final[:, 0], wrong)[0]).max() > MARGIN * Z_LIMIT


@pytest.mark.parametrize("name", PROBLEMS)
def test_small_steps_reach_the_target(name, alarm):
    problem = PROBLEMS[name]
    target = problem.density()
    algorithm = fs.StaleSGLD(0.002, 0)  # whose bias in the moments is of the order of its step size
    run = fs.simulate(problem, algorithm, 6000, 20_000, seed=6, keep_final=True, covariance="diagonal",
                      record=())
    sample = run.final[:, 0]
    for power in (1, 2):
        exact, spread = target.moment(power), np.sqrt(target.moment(2 * power) - target.moment(power) ** 2)
        bias = 0.002 * 2.0 * max(1.0, abs(exact))
        alarm.assert_normal(max(0.0, abs((sample**power).mean() - exact) - bias) / (spread / np.sqrt(20_000)))
    perfect = max(target.w2(target.sample(20_000, seed)) for seed in range(5))
    assert target.w2(sample) < 2.0 * perfect + 0.004
    assert run.w2(target.gaussian())[-1] < 2.0 * perfect + 0.004
