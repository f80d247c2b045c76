"""FA-HMC's logistic regression: data of the cited law, and how well their Gaussian surrogate predicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
from fedsim.fingerprints import fingerprint

from .. import plot
from ..claims import Claim
from ..figure import ByScale, Finding, Parameter, Tables, note
from ..once import once
from ..quadratic_surrogate import surrogate as expansions
from ..reference import posterior_reference
from ..verdicts import DATA_SETS, FAIL, NOT_TESTABLE, PASS, REPLICAS, Judgement, intervals, within
from .shared import either
from .stepwise_sampler import StepwiseFAHMC, sample_path
from .surrogate import COORDINATES, Chain, Posterior, error_of_sample

CLOSE = float(np.sqrt(2.0))
"""With both errors of a comparison within this factor, their ratio is right within a factor of two."""
REFERENCE_CHAINS = [
    Parameter("reference_chains", ByScale(30, 50, 400), "ours", "Metropolis-adjusted chains"),
    Parameter("reference_draws", ByScale(40, 60, 250), "ours", "of each of them")]
CODE = ("by the public code of the cited paper (Mangoubi and Vishnoi, 2018); the FA-HMC text prints neither "
        "the data's law nor the prior")
DATA = [
    Parameter("n_clients", 20, "paper", "section 5.1: 20 nodes of equal size"),
    Parameter("coefficients", "unit", "ours", "true coefficients of norm one, " + CODE),
    Parameter("feature_norm", 1.0, "ours", "rows uniform on the unit sphere, " + CODE),
    Parameter("prior_variance", 1.0, "ours", CODE + "; of the priors in that code the one that is not "
              "commented out, which a trajectory of pi/3 suits"),
    Parameter("small_sets", 12, "ours", "data sets of each smaller size, each judged by itself"),
    Parameter("data_seed", 0, "ours", "of the first data set; the others follow"),
    Parameter("coordinates", COORDINATES, "ours", "marginal errors are means over the first so many: all are "
              "alike in law")]
THOUSAND = [
    Parameter("dim", ByScale(60, 1000, 1000), "paper", "section 5.1; fewer at the tiny scale"),
    Parameter("n_data", ByScale(60, 1000, 1000), "paper", "section 5.1; fewer at the tiny scale"),
    Parameter("n_sets", ByScale(1, 1, 12), "ours", "data sets of this size; the paper has one"),
    Parameter("smaller", ByScale([20], [40], [40]), "ours", "dimensions and as many data, for more data sets "
              "and for simulation")]


def data_sets(p: Any) -> Iterator[tuple[dict[str, int], fs.LogisticRegression]]:
    """Data sets of the printed size and of the smaller ones, each with its dimension and number."""
    sizes = [(p.dim, p.n_data)] * p.n_sets + [(dim, dim) for dim in p.smaller for _ in range(p.small_sets)]
    for number, (dim, n_data) in enumerate(sizes):
        note(f"data set {number + 1} of {len(sizes)}, d = {dim}")
        yield {"dim": dim, "data": number}, fs.papers.fa_hmc_logistic(
            dim, p.data_seed + number, n_data=n_data, n_clients=p.n_clients, prior_variance=p.prior_variance,
            feature_norm=p.feature_norm, gradient_noise=p.noise or None, coefficients=p.coefficients)


def sentence(text: str, source: str, judge: Callable[[Tables, str], tuple[str, str]], name: str,
             context: str, ours: str = "the step sizes") -> Claim:
    """A sentence of the paper, which our surrogate and grids can bear out and not refute.

    `judge` takes tables and one of `READINGS`: the sentence passes in the reading that bears it out.
    """
    def judged(tables: Tables) -> Judgement:
        return either(lambda reading: Judgement(*judge(tables, reading)),
                      "Not borne out on our surrogate, which is not the paper's own set-up. ")
    return Claim(text, source, judged, name, DATA_SETS, context + " Section 5 communicates every T leapfrog "
                 "steps, Algorithm 3 after T iterations of K of them: either suffices.",
                 echo="The data's law is the cited one; the Gaussian surrogate and " + ours + " are ours: "
                 "what contradicts the sentence is a finding of ours beside it.")


def runs(p: Any, posterior: Posterior, cases: Mapping[str, tuple[fs.FAHMC | StepwiseFAHMC, int]],
         data: int) -> list[dict[str, Any]]:
    """Marginal errors of the last half of simulated chains, and of as many chains of the surrogate.

    A case is an algorithm and a number of rounds; `data` is the number of the data set. Where positions are
    averaged on the way of trajectories the surrogate's chains are simulated as well.
    """
    seed, rows = p.seed + 1000 * data, []
    problem, rng = posterior.problem, np.random.default_rng(seed)
    posterior_alone, sizes = replace(problem, gradient_noise=None), (p.reference_chains, p.reference_draws)
    reference = once((fingerprint(posterior_alone), seed, *sizes), lambda: posterior_reference(
        problem, n_chains=sizes[0], n_draws=sizes[1], seed=seed, leapfrog_steps=4, warmup=20).pooled())
    for number, (name, (algorithm, n_rounds)) in enumerate(cases.items()):
        options = {"seed": seed + number, "n_chains": p.n_chains}
        path = sample_path(problem, algorithm, n_rounds, **options)
        drawn = (sample_path(expansions(problem), algorithm, n_rounds, **options)
                 if isinstance(algorithm, StepwiseFAHMC) else
                 Chain(posterior.round_map(algorithm)).sample(n_rounds, p.n_chains, rng, n_rounds))
        sample, simulated = (whole[:, n_rounds // 2:].reshape(-1, problem.dim) for whole in (drawn, path))
        rows.append({"data": data, "case": name,
                     "error": fs.distance.w1_samples(simulated, reference),
                     "surrogate": error_of_sample(sample, posterior.target)})
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
        ax.plot(np.full(len(table), place - 0.12), np.exp(table[name]), "o", color=plot.GREY,
                markersize=4, alpha=0.7, label="a data set")
        ax.plot([place + 0.12] * 2, [low[place], high[place]], color="#000000", linewidth=2.5,
                solid_capstyle="butt", label="geometric mean (intervals, 99% together)")
    ax.axhline(1.0, color="#000000", linewidth=0.8)
    ax.set_xticks(range(table.shape[1]), [str(name).replace(": ", "\n") for name in table], fontsize=9)
    ax.set(yscale="log", xlabel="short chains", ylabel="simulated error / surrogate's",
           title="simulated logistic regression", xlim=(-0.6, table.shape[1] - 0.4))
    least, most = np.exp(table.to_numpy().min()), np.exp(table.to_numpy().max())
    ticks = [tick for tick in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0) if least / 2 < tick < 2 * most]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()


def judge_surrogate(tables: Tables) -> tuple[str, str]:
    """Geometric means of the ratios within a factor sqrt 2 of one."""
    table = ratios(tables["short"])
    verdict, words, low, high = alike(table, CLOSE)
    worst = int(np.argmax(np.maximum(1.0 / low, high)))
    names = [str(name).replace(": ", ", ").replace(r"$\eta$", "eta") for name in table]
    means = [f"{name}: {a:.2f} to {b:.2f}" for name, a, b in zip(names, low, high, strict=True)]
    return verdict, (
        "Simulated over predicted error, geometric means with intervals of 99% together: "
        f"{', '.join(means)}. {words} between {1.0 / CLOSE:.2f} and {CLOSE:.2f}; the farthest is that of "
        f"{names[worst]}.")


SURROGATE = Finding(
    "The Gaussian surrogate predicts the marginal errors of short simulated chains of the logistic "
    "regression within a factor of the root of two.", "section 5.1, figure 1", judge_surrogate, "surrogate",
    REPLICAS, context="Then a ratio of two errors is right within a factor of two: smaller "
    "differences, as between the least errors of two methods, are the surrogate's alone. The second half of "
    "the rounds of all chains is pooled; every data set gives one ratio. A quadratic surrogate has no third "
    "derivatives, and the simulated errors are read against a finite sample of the posterior.")
