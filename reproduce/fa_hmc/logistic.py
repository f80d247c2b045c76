"""FA-HMC's logistic regression: marginal errors, its Gaussian surrogate, and how well that predicts.

The surrogate has for each client the quadratic expansion of f_(c) at the posterior's mode. A round of
it is one affine map with Gaussian noise, so that chains of the paper's length are drawn in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy.signal import lfilter
from scipy.special import ndtr, ndtri

import fedsim as fs
from theory.exact.federated import chain
from theory.exact.federated.fa_hmc import FAHMCFamily

from .. import plot
from ..figure import ByScale, Finding, Parameter, Tables
from ..reference import posterior_reference
from ..surrogate import surrogate
from ..verdicts import FAIL, NOT_TESTABLE, PASS, REPLICAS, intervals, within
from .shared import LEGEND

Round = tuple[np.ndarray, np.ndarray, np.ndarray]
ORDERS = 24
"""Hermite orders of an indicator's correlations; what is beyond is taken to decay like the last one."""
CLOSE = float(np.sqrt(2.0))
"""With both errors of a comparison within this factor, their ratio is right within a factor of two."""
REFERENCE_CHAINS = [Parameter("reference_chains", ByScale(30, 50, 400), "ours", "Metropolis-adjusted chains"),
             Parameter("reference_draws", ByScale(40, 60, 250), "ours", "of each of them")]


def round_map(problem: fs.Quadratic, algorithm: fs.FAHMC) -> Round:
    """M (d, d), v (d,) and Q (d, d) of a round: the average goes from x to M x + v + N(0, Q)."""
    rounds, w = FAHMCFamily().rounds(problem, algorithm, False, False)[0], problem.weights
    clients = rounds(np.array([0])).at(0)
    deviation = np.tensordot(w, clients.deviations, 1)
    noise = clients.shared_average + np.tensordot(w**2, clients.own, 1)
    if deviation.ndim == 1:
        deviation, noise = np.diag(deviation), np.diag(noise)
    return np.eye(problem.dim) + deviation, w @ clients.pulls, noise


class Posterior:
    """A logistic regression with its surrogate, the surrogate's rounds and the unit of errors.

    Clients' Hessians are decomposed once for many algorithms; the gradient noise is isotropic.
    """

    def __init__(self, p: Any, data_seed: int, feature_norm: float, dim: int, n_data: int) -> None:
        self.problem = fs.papers.fa_hmc_logistic(
            dim, data_seed, n_data=n_data, n_clients=p.n_clients, prior_variance=p.prior_variance,
            feature_norm=feature_norm, gradient_noise=p.noise or None)
        self.surrogate = surrogate(self.problem)
        self.target = self.surrogate.target()
        self.unit = spread_of(self.target)
        self.values, self.vectors = np.linalg.eigh(self.surrogate.dense_hessians)

    def _composed(self, diagonal: np.ndarray) -> np.ndarray:
        """sum_c U_c diag(diagonal_c) U_c'."""
        stacked = np.concatenate(self.vectors, axis=1)
        return (stacked * diagonal.ravel()) @ stacked.T

    def round_map(self, algorithm: fs.FAHMC) -> Round:
        """The surrogate's `round_map` at a few local steps: shared momenta are summed one by one."""
        model, count, shared = self.surrogate, algorithm.local_steps, algorithm.shared_noise
        w, noise_level = model.weights[:, None], model.gradient_noise
        update = chain.local_step(FAHMCFamily().chain(algorithm, algorithm.schedule.largest), self.values,
                                  noise_level is not None)
        change, reach, updates = update.change[0, 0], update.injected[0, 0], chain.Round([update], count)
        own = (1.0 - shared) * w * updates.injected()
        if noise_level is not None:
            own = own + w**2 * noise_level**2 * updates.gradient()
        noise = self._composed(own)
        for j in range(count):
            moved = self._composed(w * reach * (1.0 + change) ** j)
            noise += shared * moved @ moved
        gone = -updates.deviation()
        centres = np.einsum("cji,cj->ci", self.vectors, model.minimizers)
        pull = np.einsum("cij,cj->i", self.vectors, w * gone * centres)
        return np.eye(model.dim) - self._composed(w * gone), pull, noise


class Chain:
    """Averages at the ends of rounds, in the basis where M is diagonal (M is symmetric)."""

    def __init__(self, a_round: Round) -> None:
        moved, pull, noise = a_round
        self.factors, self.basis = np.linalg.eigh(0.5 * (moved + moved.T))
        self.stable = bool(np.abs(self.factors).max() < 1.0)
        if self.stable:
            self.centre = np.linalg.solve(np.eye(len(pull)) - moved, pull)
            turned = self.basis.T @ noise @ self.basis
            values, vectors = np.linalg.eigh(0.5 * (turned + turned.T))
            self.root = vectors * np.sqrt(np.clip(values, 0.0, None))
            stationary = turned / (1.0 - self.factors[:, None] * self.factors)
            self.law = fs.Gaussian(self.centre, self.basis @ stationary @ self.basis.T)
            self.shares = self.basis * (self.basis @ stationary) / self.law.variances[:, None]

    def autocorrelation(self, lags: np.ndarray) -> np.ndarray:
        """Of each coordinate of the stationary chain, (n_lags, d)."""
        return self.factors ** lags[:, None] @ self.shares.T

    def sample(self, n_rounds: int, n_chains: int, rng: np.random.Generator, kept: int) -> np.ndarray:
        """The last `kept` of n_rounds averages of chains started at 0, (n_chains, kept, d)."""
        start = -self.centre @ self.basis
        noise = rng.standard_normal((n_chains, n_rounds, len(start))) @ self.root.T
        path = np.empty((n_chains, kept, len(start)))
        for i, factor in enumerate(self.factors):
            first = np.full((n_chains, 1), factor * start[i])
            moved, _ = lfilter([1.0], [1.0, -factor], noise[:, :, i], zi=first)
            path[:, :, i] = moved[:, -kept:]
        return path @ self.basis.T + self.centre


def spread_of(target: fs.Gaussian) -> float:
    """The unit of errors in the figures: mean standard deviation of the coordinates."""
    return float(np.sqrt(target.variances).mean())


def error_of_law(law: fs.Gaussian, target: fs.Gaussian) -> float:
    """Marginal error between two normal laws: mean over coordinates of W1."""
    return float(fs.distance.w1_normal(law.mean, np.sqrt(law.variances), target.mean,
                                       np.sqrt(target.variances)).mean())


def error_of_sample(sample: np.ndarray, target: fs.Gaussian) -> float:
    """Marginal error of a sample (n, d) against a normal law: exact W1, coordinate by coordinate.

    With t the i-th sorted draw, standardised, and [a, b] the normal's part for it, the cost is the integral
    of |t - z| phi(z) over [a, b], split at c, the point of [a, b] nearest to t.
    """
    spread, n = np.sqrt(target.variances), len(sample)
    t = (np.sort(sample, axis=0) - target.mean) / spread
    edges = ndtri(np.arange(n + 1) / n)[:, None]
    c = np.clip(t, edges[:-1], edges[1:])
    heights, levels = _density(edges), np.arange(n + 1)[:, None] / n
    below = t * (ndtr(c) - levels[:-1]) - heights[:-1]
    above = t * (levels[1:] - ndtr(c)) + heights[1:]
    return float(((below - above + 2.0 * _density(c)).sum(axis=0) * spread).mean())


def error_of_chain(averages: Chain, target: fs.Gaussian, counts: Any) -> np.ndarray:
    """Expected marginal error of n averages in a row of a stationary chain, for each n of `counts`.

    W1 is the integral of |F_n - F|. At a point the empirical F_n is taken to be normal, with its exact mean
    and variance: an indicator's autocovariance is sum_m c_m^2 rho^m, c_m its Hermite coefficients and rho the
    chain's autocorrelation. Sums over lags are interpolated between lags that grow geometrically.
    """
    lengths = np.asarray(counts, dtype=float)
    goal, spread = np.sqrt(target.variances), np.sqrt(averages.law.variances)
    lags = np.unique(np.rint(np.r_[np.arange(33), np.geomspace(32, max(33, lengths.max()), 150)]))
    rho = averages.autocorrelation(lags)
    shares = np.clip(1.0 - lags / lengths[:, None], 0.0, None) * _lag_weights(lags)
    ends = [(target.mean + side * 6.0 * goal - averages.law.mean) / spread for side in (-1.0, 1.0)]
    z = np.linspace(min(-6.0, ends[0].min()), max(6.0, ends[1].max()), 161)
    level = ndtr(z)
    left, power = level * ndtr(-z), np.ones_like(rho)
    variance = np.repeat(left[None], len(lengths) * len(goal), axis=0)
    before, hermite, sums = np.zeros_like(z), np.ones_like(z), np.zeros((len(lengths) * len(goal), 1))
    for order in range(1, ORDERS + 1):
        squares = (_density(z) * hermite) ** 2 / order
        power = power * rho
        sums = (shares @ power).reshape(-1, 1)
        variance += 2.0 * sums * squares
        left = left - squares
        before, hermite = hermite, (z * hermite - np.sqrt(order - 1.0) * before) / np.sqrt(order)
    variance += 2.0 * sums * np.clip(left, 0.0, None)
    variance = variance.reshape(len(lengths), len(goal), len(z)) / lengths[:, None, None]
    points = averages.law.mean[:, None] + spread[:, None] * z
    bias = level - ndtr((points - target.mean[:, None]) / goal[:, None])
    error = np.sqrt(np.clip(variance, 1e-300, None))
    gap = 2.0 * error * _density(bias / error) + bias * (1.0 - 2.0 * ndtr(-bias / error))
    return (np.trapezoid(gap, z, axis=2) * spread).mean(axis=1)


def _lag_weights(lags: np.ndarray) -> np.ndarray:
    """Weights of the lags for a sum over all lags from 1 on that is linear between them."""
    weights, steps = np.zeros(len(lags)), np.diff(lags)
    weights[:-1] += 0.5 * (steps - 1.0)
    weights[1:] += 0.5 * (steps + 1.0)
    return weights


def _density(z: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)


def runs(p: Any, posterior: Posterior, cases: Mapping[str, tuple[fs.FAHMC, int]],
         data: int) -> list[dict[str, Any]]:
    """Marginal errors of the last half of simulated chains, and of as many chains of the surrogate.

    A case is an algorithm and a number of rounds; `data` is the number of the data set.
    """
    seed, rows = p.seed + 1000 * data, []
    problem, rng = posterior.problem, np.random.default_rng(seed)
    reference = posterior_reference(problem, n_chains=p.reference_chains, n_draws=p.reference_draws,
                                    seed=seed, leapfrog_steps=4, warmup=20).pooled()
    for number, (name, (algorithm, n_rounds)) in enumerate(cases.items()):
        a_chain = Chain(posterior.round_map(algorithm))
        drawn = a_chain.sample(n_rounds, p.n_chains, rng, n_rounds - n_rounds // 2)
        path = fs.sample_path(problem, algorithm, n_rounds, seed=seed + number, n_chains=p.n_chains)
        sample, simulated = (half.reshape(-1, problem.dim) for half in (drawn, path[:, n_rounds // 2:]))
        rows.append({"data": data, "case": name,
                     "error": fs.distance.w1_samples(simulated, reference) / posterior.unit,
                     "surrogate": error_of_sample(sample, posterior.target) / posterior.unit})
    return rows


def ratios(short: pd.DataFrame) -> pd.DataFrame:
    """Logarithms of simulated over predicted errors: rows by data set, columns by case."""
    logs = np.log(short["error"] / short["surrogate"])
    table = short.assign(logs=logs).pivot(index="data", columns="case", values="logs")
    return table[list(dict.fromkeys(short["case"]))]


def alike(logs: pd.DataFrame, factor: float) -> tuple[str, str, np.ndarray, np.ndarray]:
    """Are all means of a ratio, given by its logarithms, within a factor of one?

    Returns
    -------
    verdict, verdict in words, low, high : intervals of the geometric means, right together with 99%
    """
    low, high = intervals(logs)
    verdict = within(low, high, -np.log(factor), np.log(factor))
    words = {PASS: "All lie", FAIL: "Not all lie", NOT_TESTABLE: "Not all are sure to lie"}
    return verdict, words[verdict], np.exp(low), np.exp(high)


def draw_short(ax: Axes, short: pd.DataFrame) -> None:
    """Ratio of every data set, and the interval of their mean, in each case."""
    table = ratios(short)
    *_, low, high = alike(table, CLOSE)
    ax.axhspan(1.0 / CLOSE, CLOSE, color=plot.GREY, alpha=0.18, linewidth=0,
               label=r"within a factor $\sqrt{2}$")
    for place, name in enumerate(table):
        ax.plot(np.full(len(table), place - 0.12), np.exp(table[name]), "o", color=plot.COLOURS[4],
                markersize=4, alpha=0.7, label="a data set")
        ax.plot([place + 0.12] * 2, [low[place], high[place]], color="#000000", linewidth=2.5,
                solid_capstyle="butt", label="geometric mean, intervals of 99% together")
    ax.axhline(1.0, color="#000000", linewidth=0.8)
    ax.set_xticks(range(table.shape[1]), [str(name).replace(": ", "\n") for name in table], fontsize=8.5)
    ax.set(yscale="log", xlabel="short chains", ylabel="simulated error / surrogate's",
           title="simulated logistic regression", xlim=(-0.6, table.shape[1] - 0.4))
    least, most = np.exp(table.to_numpy().min()), np.exp(table.to_numpy().max())
    ticks = [tick for tick in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0) if least / 2 < tick < 2 * most]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    plot.legend_below(ax, below=0.22, **LEGEND)


def judge_surrogate(tables: Tables) -> tuple[str, str]:
    """Geometric means of the ratios within a factor sqrt 2 of one."""
    table = ratios(tables["short"])
    verdict, words, low, high = alike(table, CLOSE)
    worst = int(np.argmax(np.maximum(1.0 / low, high)))
    means = [f"{str(name).replace(': ', ', ')}: {a:.2f} to {b:.2f}"
             for name, a, b in zip(table, low, high, strict=True)]
    return verdict, (
        "Simulated over predicted error, geometric means with intervals of 99% together: "
        f"{', '.join(means)}. {words} between {1.0 / CLOSE:.2f} and {CLOSE:.2f}; the farthest is that of "
        f"{table.columns[worst]}.")


SURROGATE = Finding(
    "The Gaussian surrogate predicts the marginal errors of short simulated chains of the logistic "
    "regression within a factor of the root of two.", "section 5.1, figure 1", judge_surrogate, "surrogate",
    REPLICAS, context="Then a ratio of two errors is right within a factor of two: smaller "
    "differences, as between the least errors of two methods, are the surrogate's alone. The second half of "
    "the rounds of all chains is pooled; every data set gives one ratio. A quadratic surrogate has no third "
    "derivatives, and the simulated errors are read against a finite sample of the posterior.")
