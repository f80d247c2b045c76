"""Slow twins of what stale gradients need: chains, minibatches, workers, and the law of a time average.

Plain Python from the paper's equation (3) and Algorithms 1 and 2, one number at a time; random numbers come
from the twin of the streams in `naive`. The law of the average keeps every response of every iterate to
every noise, instead of any recursion of covariances.
"""

from __future__ import annotations

import math

import naive
import numpy as np

from fedsim.random.streams import MINIBATCH, OWN_NOISE


def minibatch(streams, step, size, n_data, replace):
    """Data numbers of one evaluation; 32 bits each, and Floyd's rule without replacement."""
    drawn = []
    for k in range(size):
        word = streams.words(MINIBATCH, step, 0, k // 4)[k % 4]
        below = n_data if replace else n_data - size + k + 1
        number = word * below >> 32
        drawn.append(below - 1 if not replace and number in drawn else number)
    return drawn


def mean_gradient(problem, streams, step, x):
    """The stochastic gradient of GaussianMean, equation (2) of the paper."""
    n, prior = len(problem.data), x / problem.prior_variance
    if problem.batch_size is None:
        return prior + sum(x - float(d) for d in problem.data)
    chosen = minibatch(streams, step, problem.batch_size, n, problem.replace)
    scale = n / problem.batch_size if problem.grad_scale == "unbiased" else 1.0
    return prior + scale * sum(x - float(problem.data[i]) for i in chosen)


def chain(problem, algorithm, n_rounds, seed, replica, start=None, single=False):
    """Iterates theta_0, ..., theta_n of stale SGLD or SGHMC, (n_rounds + 1, d)."""
    streams = naive.Streams(seed, replica, single)
    several = getattr(algorithm.staleness, "schedules", 1)  # replica r has schedule r modulo their number
    ages = (algorithm.ages(n_rounds) if several == 1
            else algorithm.staleness.history(n_rounds, replica % several).ages)
    scalar = hasattr(problem, "data") and not hasattr(problem, "features")
    pooled = None if scalar else problem.pooled()
    dim = 1 if scalar else pooled.dim
    path = [naive.first_point(start, dim, seed, replica)]
    q = [0.0] * dim
    friction = getattr(algorithm, "friction", None)
    for step in range(n_rounds):
        h = float(algorithm.schedule.at(step))
        old = path[step - int(ages[step])]
        if scalar:
            g = [mean_gradient(problem, streams, step, old[0])]
        else:
            g = naive.stochastic_gradient(pooled, streams, 0, step, old)
        z = streams.of_step(OWN_NOISE, step, 0, dim)
        if friction is None:
            path.append([path[-1][i] - h * g[i] + math.sqrt(2 * h) * z[i] for i in range(dim)])
        else:
            size = math.sqrt(2 * friction * h)
            q = [(1 - friction * h) * q[i] - h * g[i] + size * z[i] for i in range(dim)]
            path.append([path[-1][i] + h * q[i] for i in range(dim)])
    return np.array(path)


def worker_ages(service, n_workers, n_updates):
    """Algorithm 2, updates at no cost: ages and times. `service` gives times in the order of dispatch."""
    version = [0] * n_workers
    ready = [(next(service), worker) for worker in range(n_workers)]
    ages, times = [], []
    for update in range(n_updates):
        now, worker = min(ready)
        ages.append(update - version[worker])
        times.append(now)
        version[worker] = update + 1
        ready[worker] = (now + next(service), worker)
    return ages, times


def average_of_squares(problem, algorithm, n_rounds, mean, variance):
    """Mean and variance of (1/L) sum theta_l^2, one dimension, L = n_rounds, from responses to each noise.

    X = sum_l theta_l^2 is a quadratic form in independent noises with the cumulants of the problem.
    """
    a, centre = problem.curvature, problem.pull / problem.curvature
    second, third, fourth = problem.gradient_cumulants
    ages, friction = algorithm.ages(n_rounds), getattr(algorithm, "friction", None)
    # columns: the start, then the noise of each update; last the constant part of y
    paths = np.zeros((n_rounds + 1, n_rounds + 2))
    paths[0, 0], paths[0, -1] = 1.0, mean - centre
    q = np.zeros(n_rounds + 2)
    k2, k3, k4 = [variance], [0.0], [0.0]
    for step in range(n_rounds):
        h, kick = float(algorithm.schedule.at(step)), np.zeros(n_rounds + 2)
        kick[step + 1] = 1.0
        force = kick - h * a * paths[step - ages[step]]
        if friction is None:
            paths[step + 1] = paths[step] + force
        else:
            q = (1 - friction * h) * q + force
            paths[step + 1] = paths[step] + h * q
        k2.append(2 * h * (friction or 1.0) + h**2 * second)
        k3.append(-h**3 * third)
        k4.append(h**4 * fourth)
    linear, constant = paths[1:, :-1], centre + paths[1:, -1]
    k2, k3, k4 = np.array(k2), np.array(k3), np.array(k4)
    form, tilt = linear.T @ linear, 2.0 * constant @ linear
    expected = constant @ constant + np.diagonal(form) @ k2
    spread = (2.0 * k2 @ (form**2) @ k2 + np.diagonal(form) ** 2 @ k4 + tilt**2 @ k2
              + 2.0 * (tilt * np.diagonal(form)) @ k3)
    return expected / n_rounds, spread / n_rounds**2


def by_diagonals(curvature, step_size, tau, noise, mean, length):
    """Variances of the average of squares for every L, by lags, from theta_0 = mean + minimizer, as a point.

    C(l, l+k) = v sum_{n<l} g_n g_{n+k} with the impulse response g; the minimizer is 0.
    """
    g = np.zeros(length + 1)
    g[0] = 1.0
    m = np.full(length + 1, float(mean))
    for k in range(length):
        g[k + 1] = g[k] - (step_size * curvature * g[k - tau] if k >= tau else 0.0)
        m[k + 1] = m[k] - step_size * curvature * m[max(k - tau, 0)]
    joint = np.zeros(length + 1)
    for lag in range(length):
        cov = noise * np.cumsum(g[:length - lag] * g[lag:length])  # l = 1, ..., length - lag
        here, there = m[1:length - lag + 1], m[1 + lag:length + 1]
        joint[1 + lag:] += (1 if lag == 0 else 2) * (2 * cov**2 + 4 * here * there * cov)
    return np.cumsum(joint[1:]) / np.arange(1, length + 1) ** 2.0
