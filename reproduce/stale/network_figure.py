"""The panel, claim and findings of a small network of ours, computed at the paper scale alone."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs

from .. import figure as fig, images, plot
from ..claims import Judge
from ..figure import ByScale, Parameter
from ..tables import among
from ..verdicts import MIN_SETS, Judgement, intervals
from . import logistic as blr, logistic_figure as shown, network

MANY, FEWER = (6, 9), 4
"""Numbers of workers that the sentence compares."""
PARAMETERS = [
    Parameter("network_sets", ByScale(0, 0, MIN_SETS), "ours", "splits of scikit-learn's digits into three "
              "parts of training and one of test rows; none, and no network, but at the paper scale"),
    Parameter("network_hidden", 16, "ours", "hidden units (tanh) of a network of 64, 16 and 10: two cores"),
    Parameter("network_batch", 10, "ours", "rows, without replacement: one in 135, as one in 500 of Caffe's"),
    Parameter("network_rates", [0.01, 0.03], "ours", "h^2 n: Caffe's default for LeNet; and, so that "
              "staleness matters, of 0.01, 0.03 and 0.1 the largest at which one worker is stable and 4 end "
              "below it, tried on another split"),
    Parameter("network_iterations", 1000, "ours", "per worker: one reads every row 7 times, Caffe's "
              "Cifar10-Quick 8 times"),
    Parameter("network_samples", 100, "ours", "of a chain, evenly spaced, whose loss is averaged"),
    Parameter("network_chains", 8, "ours", "of each split and number of workers, from weights of variance "
              "1 over the summed ones, near Caffe's: the origin is a saddle"),
]
ECHO = ("Ours is another network (64 inputs, 16 hidden units, 10 classes) on other data (digits of 8 x 8 "
        "pixels), with step sizes and lengths of our choice: it can echo the sentence, not contradict it.")
READ = ("Read: the test loss averaged along the whole chain, at equal iterations per worker. "
        f"{shown.ON_SETS}")


def tables(p: Any) -> fig.Tables:
    """Table network (a row for each split, rate and number of workers), or no table without splits."""
    rows = [row for number in range(p.network_sets) for row in _ends(p, number)]
    return {"network": pd.DataFrame(rows)} if rows else {}


def _ends(p: Any, number: int) -> list[dict[str, float]]:
    """Of one split: the averaged test loss at the end, in the mean over chains."""
    digits = images.digits()
    split = digits.divided(p.data_seed + number, validation_share=0.0)
    return of_rows(p, number, digits.rows(split.train), digits.labels[split.train],
                   digits.rows(split.test), digits.labels[split.test])


def of_rows(p: Any, number: int, rows: np.ndarray, labels: np.ndarray, test_rows: np.ndarray,
            test_labels: np.ndarray) -> list[dict[str, float]]:
    """The same of these rows, whose chains have the seeds of data set `number`."""
    posterior = network.posterior(rows, labels, p.network_hidden, p.prior_variance)
    problem, ends = network.Minibatches(posterior, p.network_batch), []
    for rate in p.network_rates:
        own = SimpleNamespace(**vars(p) | {"rate": rate, "n_train": len(rows), "schedule_seed":
                                           p.schedule_seed + blr.SEEDS_APART * number})
        for n in p.workers:
            fig.note(f"a network on split {number + 1}, rate {rate:g}, W = {n}")
            length = n * p.network_iterations
            path = fs.sample_path(problem, blr.algorithm(own, n), length, n_chains=p.network_chains,
                                  seed=p.seed + blr.SEEDS_APART * number,
                                  start=network.start(rows, labels, p.network_hidden),
                                  every=max(1, length // p.network_samples), allow_unstable=True)
            loss = network.losses(path, test_rows, test_labels, p.network_hidden).mean(axis=(1, 2))
            ends.append({"data_set": number, "n_train": len(rows), "dim": problem.dim, "rate": rate,
                         "workers": n, "iterations": p.network_iterations, "loss": float(loss.mean())})
    return ends


def draw(ax: Axes, table: pd.DataFrame) -> None:
    """The loss at the end by the number of workers: every split thin, means with their intervals."""
    for rate, colour in zip(sorted(table["rate"].unique()), plot.COLOURS, strict=False):  # shades are of W
        one = among(table, rate=rate).pivot(index="workers", columns="data_set", values="loss")
        low, high = intervals(one.to_numpy().T)
        ax.plot(one.index, one, color=colour, linewidth=0.6, alpha=0.4)
        ax.plot(one.index, one.mean(axis=1), color=colour, linewidth=1.6, marker="o", markersize=4,
                label=f"rate $h^2 n$ = {rate:g}: mean of {one.shape[1]} splits, 99% intervals")
        ax.fill_between(one.index, low, high, color=colour, alpha=0.25, linewidth=0)
    ax.set(xlabel=f"workers W, each {table['iterations'].iloc[0]} iterations",
           xticks=sorted(table["workers"].unique()), ylabel=f"final {shown.LOSS}",
           title="a network of ours on digits")


def judge(tables: fig.Tables, worse: bool) -> Judgement:
    """Do many workers end worse at the larger rate, or else (not `worse`) better at the smaller one?"""
    if "network" not in tables:
        return Judgement(fig.NOT_TESTABLE, "No network was sampled: that is done at the paper scale alone.")
    table, sign = tables["network"], 1.0 if worse else -1.0
    if not {FEWER, *MANY} <= set(table["workers"]):
        return Judgement(fig.NOT_TESTABLE, f"Not all of {FEWER}, {MANY[0]} and {MANY[1]} workers were run.")
    rate = table["rate"].max() if worse else table["rate"].min()
    n_train, dim, iterations = (int(table[name].iloc[0]) for name in ("n_train", "dim", "iterations"))
    ends = among(table, rate=rate).pivot(index="data_set", columns="workers", values="loss")
    differences = ends[list(MANY)].to_numpy() - ends[[FEWER]].to_numpy()
    verdict, low, high = shown.all_positive(sign * differences)
    losses = ", ".join(f"{value:.4f} (W = {n})" for n, value in ends.mean().items())
    return Judgement(verdict, (
        f"{len(ends)} splits, {n_train:,} training rows, d = {dim:,}. Mean loss after {iterations} "
        f"iterations per worker at rate {rate:g}: {losses}; with {MANY[0]} and {MANY[1]} workers less that "
        f"with {FEWER} it is {' and '.join(shown.means(differences))}."
        + shown.undecided(verdict, low, high)))


WORSE: Judge = partial(judge, worse=True)
CLAIMS = [
    fig.Claim("On CIFAR-10 the final losses of 6 and 9 workers are worse than that of 4.", "section 5.2.1",
              WORSE, "cifar", fig.REPLICAS, READ, echo=ECHO),
    fig.Finding("A small network on digits ends worse with 6 and 9 workers than with 4.", "section 5.2.1",
                WORSE, "network", fig.REPLICAS, READ),
    fig.Finding("At a third of that rate the same network ends better with 6 and 9 workers than with 4.",
                "section 5.2.1, which advises smaller steps for many workers", partial(judge, worse=False),
                "network_small_steps", fig.REPLICAS, READ)]
