"""All algorithms on one problem, each tuned by its exact law, with what its recursion promises."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import fedsim as fs
import theory
from theory.tuning.best import best_step_sizes, with_step
from theory.tuning.planning import with_local_steps

from .. import plot
from ..figure import ByScale, Drawing, Finding, Parameter, Tables, settings
from ..tables import among
from ..tabulate import tabulate
from ..verdicts import EXACT, FAIL, PASS, Judgement

TITLE = "All algorithms on one problem"
PAPER = "ours, for all four papers"
SHOWS = ("W2 against rounds, gradients and floats sent on one problem of unlike clients, every algorithm "
         "tuned for every accuracy by its exact law; beside it what its recursion promises, and epsilon.")
COST = {"tiny": "15 s", "quick": "70 s", "paper": "8 min (estimated)"}
_CHOICE = "no paper has such an experiment"
PARAMETERS = [
    Parameter("n_clients", 10, "ours", _CHOICE),
    Parameter("dim", 2, "ours", _CHOICE),
    Parameter("client_size", 100_000, "ours", "records a client: a useful epsilon takes many"),
    Parameter("curvatures", [1.0, 4.0], "ours",
              "of a record's loss (theta-x)' A_c (theta-x)/2, rotated by client"),
    Parameter("spread", 10.0, "ours", "of the clients' minimizers, in posterior standard deviations"),
    Parameter("radius", 0.5, "ours", "records fill a disc of this radius about their client's minimizer"),
    Parameter("batch_fraction", 0.1, "ours", "minibatch noise is part of all laws"),
    Parameter("start", [0.5, 0.0], "ours", "public, some hundred posterior standard deviations away"),
    Parameter("accuracies", ByScale([30.0, 3.0], [100, 30, 10, 3, 1, 0.3],
                                    np.geomspace(100.0, 0.1, 19).tolist()), "ours",
              "W2, in posterior standard deviations"),
    Parameter("promised", ByScale([30.0], [100, 10, 1], np.geomspace(100.0, 0.1, 7).tolist()), "ours",
              "those of the recursions' lines"),
    Parameter("local_steps", ByScale([1, 5], [1, 2, 5, 10], [1, 2, 3, 5, 10, 20, 50]), "ours",
              "tried for FA-LD and FA-HMC"),
    Parameter("leapfrog_steps", 3, "ours", "of FA-HMC"),
    Parameter("momentum", 0.5, "ours", "1 - friction step_size of DE-SGHMC, kept while it is tuned"),
    Parameter("active", 5, "ours", "clients drawn a round, where not all take part"),
    Parameter("delta0", 1e-10, "ours", "of a local step: small enough for delta < 1/records"),
    Parameter("data_seed", 0, "ours", "of the clients"),
]
TITLES = {"communications": "rounds", "gradient_evaluations": "gradients", "floats_sent": "floats",
          "epsilon": "privacy"}
COSTS = {"communications": "communication rounds", "gradient_evaluations": "gradients of one client's data",
         "floats_sent": "floats sent"}


class Kind(NamedTuple):
    """An algorithm of the figure and how its lines look."""

    make: Callable[[Any], Any]
    colour: str
    marker: str


def _ring(p: Any) -> np.ndarray:
    return fs.network.ring(p.n_clients)


KINDS = {
    "FA-LD": Kind(lambda p: fs.FALD(1e-9), plot.COLOURS[0], "o"),
    "FA-LD, 5 of 10 drawn": Kind(lambda p: fs.FALD(1e-9, participation=fs.Participation(p.active, True)),
                                 plot.COLOURS[5], "D"),
    "FA-HMC": Kind(lambda p: fs.FAHMC(1e-5, p.leapfrog_steps), plot.COLOURS[1], "s"),
    "DE-SGLD, ring": Kind(lambda p: fs.DESGLD(1e-9, _ring(p)), plot.COLOURS[2], "^"),
    "DE-SGHMC, ring": Kind(lambda p: fs.DESGHMC(1e-5, (1.0 - p.momentum) / 1e-5, _ring(p)), plot.COLOURS[3],
                           "v"),
    "stale SGLD, 10 workers": Kind(lambda p: fs.StaleSGLD(1e-9, p.n_clients - 1), plot.COLOURS[4], "P"),
}
EPSILON = ("epsilon", "FA-LD's epsilon, Theorem 5.1, all clients")
LINES = (("exact", "-", True), ("promised", "--", False))
LOCAL = ("FA-LD", "FA-LD, 5 of 10 drawn", "FA-HMC")
"""Those that have local steps to tune."""


def problem_of(p: Any) -> fs.Quadratic:
    """Clients' records with losses of their own curvature; minibatch noise is that of a disc of records."""
    rng = np.random.default_rng(p.data_seed)
    turns = np.linalg.qr(rng.standard_normal((p.n_clients, p.dim, p.dim)))[0]
    curvatures = (turns * np.array(p.curvatures)) @ turns.swapaxes(1, 2)
    hessians = p.n_clients * p.client_size * curvatures
    noise = p.client_size * (1.0 - p.batch_fraction) / p.batch_fraction * p.n_clients**2 * (
        curvatures @ curvatures * p.radius**2 / 4.0)
    directions = rng.standard_normal((p.n_clients, p.dim))
    directions *= 1.0 / np.linalg.norm(directions, axis=1, keepdims=True)
    return fs.Quadratic(hessians, p.spread * _unit(hessians) * directions, gradient_noise=noise)


def _unit(hessians: np.ndarray) -> float:
    """The posterior's standard deviation, root mean square over coordinates."""
    return float(np.sqrt(np.trace(np.linalg.inv(hessians.mean(axis=0))) / hessians.shape[1]))


def compute(scale: str) -> Tables:
    """Tables: exact, promised, setting. An accuracy that is not reached has no row."""
    p = settings(PARAMETERS, scale)
    problem = problem_of(p)
    facts = theory.constants(problem, fs.FALD(1e-9), p.start)
    return {"exact": tabulate("exact", _exact, p, {"eps": p.accuracies, "algorithm": KINDS}),
            "promised": tabulate("promised", _promised, p, {"eps": p.promised, "algorithm": KINDS}),
            "setting": pd.DataFrame([{
                "unit": _unit(problem.dense_hessians), "condition_number": facts.condition_number,
                "heterogeneity": facts.heterogeneity, "start": facts.initial_w2}])}


def _exact(p: Any, eps: float, algorithm: str) -> list[dict[str, Any]]:
    """Least efforts by exact laws over local steps, each at its best step size."""
    problem, first = problem_of(p), KINDS[algorithm].make(p)
    ones = [with_local_steps(first, count) for count in _counts(p, algorithm)]
    found = [_best(one, tuple(p.start), problem, tuple(p.accuracies))[eps] for one in ones]
    tried = [(with_step(one, best.step_size, True), best.n_rounds)
             for one, best in zip(ones, found, strict=True) if best is not None]
    return _efforts(p, problem, algorithm, tried)


@lru_cache(maxsize=64)
def _best(algorithm: Any, start: tuple[float, ...], problem: Any,
          accuracies: tuple[float, ...]) -> dict[float, Any]:
    """The best step size for every accuracy: their laws are made once."""
    found = best_step_sizes(problem, algorithm, [eps * _unit(problem.dense_hessians) for eps in accuracies],
                            start=list(start), keep_momentum=True)
    return dict(zip(accuracies, found, strict=True))


def _promised(p: Any, eps: float, algorithm: str) -> list[dict[str, Any]]:
    """Least efforts by the recursion, which knows the problem's constants alone."""
    problem, first = problem_of(p), KINDS[algorithm].make(p)
    facts = theory.constants(problem, first, p.start)
    found = theory.tuning.plan_by_recursion(facts, first, eps * _unit(problem.dense_hessians),
                                            local_steps=_counts(p, algorithm))
    tried = [] if found is None else [(with_step(with_local_steps(first, count), size, True), rounds)
                                      for count, size, rounds in found.tried]
    return _efforts(p, problem, algorithm, tried)


def _counts(p: Any, algorithm: str) -> list[int]:
    return p.local_steps if algorithm in LOCAL else [1]


def _efforts(p: Any, problem: Any, algorithm: str, tried: list[tuple[Any, int]]) -> list[dict[str, Any]]:
    """The least of each cost over what was tried, and the epsilon of what has the fewest gradients."""
    if not tried:
        return []
    spent = [one.costs(problem, rounds) for one, rounds in tried]
    least = {cost: float(min(one[cost] for one in spent)) for cost in COSTS}
    if isinstance(tried[0][0], fs.StaleSGLD):  # its gradient is one of all clients' data
        least["gradient_evaluations"] *= p.n_clients
    if algorithm == "FA-LD":
        chosen, rounds = tried[int(np.argmin([one["gradient_evaluations"] for one in spent]))]
        epsilon = _epsilon(p, problem, chosen, rounds)
        least |= {} if epsilon is None else {"epsilon": epsilon}
    return [{"cost": cost, "effort": effort} for cost, effort in least.items()]


def _epsilon(p: Any, problem: Any, algorithm: fs.FALD, rounds: int) -> float | None:
    """Of Theorem 5.1, record level, with basic composition; None where it says nothing."""
    try:
        found = theory.privacy.guarantee(
            problem, algorithm, max(rounds, 1), sensitivity=2.0 * p.radius * max(p.curvatures),
            batch_fraction=p.batch_fraction, delta0=p.delta0, delta1=0.0, delta2=1e-8,
            client_sizes=[p.client_size] * p.n_clients)
    except ValueError:
        return None
    return found.epsilon


def draw(tables: Tables) -> Drawing:
    """A panel a cost, and FA-LD's epsilon."""
    drawing, axes = plot.panels(2, 6.4, 5.0, 2, sharey=True)
    for ax, (cost, words) in zip(axes.flat, (*COSTS.items(), EPSILON), strict=True):
        for name, kind in KINDS.items():
            for table, style, face in LINES:
                one = among(tables[table], algorithm=name, cost=cost)
                ax.plot(one["effort"], one["eps"], linestyle=style, color=kind.colour, marker=kind.marker,
                        markerfacecolor=kind.colour if face else "none", markersize=6, linewidth=1.5)
        ax.set(xscale="log", yscale="log", xlabel=words, ylabel=r"$W_2$ / posterior standard deviation",
               title=f"accuracy against {TITLES[cost]}")
    left, right = axes[1]
    for name, kind in KINDS.items():
        left.plot([], [], "-", color=kind.colour, marker=kind.marker, label=name)
    for (_, style, face), words in zip(LINES, (
            r"exact law, tuned for each $W_2$", "bound: recursion, planned from constants"), strict=True):
        right.plot([], [], linestyle=style, color="#000000", marker="o", label=words,
                   markerfacecolor="#000000" if face else "none")
    plot.legend_below(left, 2)
    plot.legend_below(right)
    return drawing


def _both(tables: Tables) -> pd.DataFrame:
    """Exact and promised efforts where both reach an accuracy, a row an algorithm, an accuracy and a cost."""
    exact, promised = (tables[name].astype({"eps": float}).rename(columns={"effort": name})
                       for name in ("exact", "promised"))
    table = exact.merge(promised, on=["eps", "algorithm", "cost"])
    return table[table["cost"] != "epsilon"]


def judge_promise(tables: Tables) -> Judgement:
    """What the recursion asks for is enough; the price of trusting it."""
    table = _both(tables)
    good = bool((table["exact"] <= table["promised"]).all())
    price = (table["promised"] / table["exact"].clip(lower=1))[table["cost"] == "communications"]
    parts = ", ".join(f"{name} {one.min():.3g} to {one.max():.3g}" for name, one in price.groupby(
        table["algorithm"], sort=False))
    return Judgement(PASS if good else FAIL, f"Rounds promised over rounds needed: {parts}.")


def judge_choice(tables: Tables) -> Judgement:
    """Compare the algorithm that the bound prefers with the one that needs fewest rounds."""
    exact, promised = ({key: _least(one) for key, one in tables[name].astype({"eps": float}).groupby(
        ["cost", "eps"]) if key[0] in COSTS} for name in ("exact", "promised"))
    same = [bool(exact[key] & named) for key, named in promised.items()]
    return Judgement(PASS if all(same) else FAIL, (
        f"The bound names an algorithm that needs least by exact laws in {sum(same)} of {len(same)} pairs of "
        "a cost and an accuracy."))


def _least(table: pd.DataFrame) -> set[str]:
    """The algorithms that need the fewest, more than one where they tie."""
    return set(table.loc[table["effort"] == table["effort"].min(), "algorithm"])


def judge_one(tables: Tables) -> Judgement:
    """Is one algorithm the first in everything, at the finest accuracy?"""
    table = among(tables["exact"], eps=tables["exact"]["eps"].min())
    by_cost = {words: among(table, cost=cost) for cost, words in COSTS.items()}
    firsts = {words: one["algorithm"].iloc[int(one["effort"].argmin())] for words, one in by_cost.items()}
    missing = [name for name in KINDS if name not in set(table["algorithm"])]
    return Judgement(PASS if len(set(firsts.values())) == 1 else FAIL, (
        f"At W2 = {table['eps'].iloc[0]:g} the fewest have " + ", ".join(
            f"of {words} {name}" for words, name in firsts.items())
        + (f"; {' and '.join(missing)} does not get there." if missing else ".")))


CLAIMS = [
    Finding("What a recursion promises is enough: no effort is below the exact law's.", "", judge_promise,
            name="promise", rests_on=EXACT,
            context="The recursion is told the problem's constants and the start, and holds for all problems "
                    "that have them."),
    Finding("The algorithm that needs least by its bound needs least by its exact law.", "", judge_choice,
            name="choice", rests_on=EXACT),
    Finding("One algorithm needs the fewest rounds, gradients and floats.", "", judge_one, name="one",
            rests_on=EXACT,
            context="On this problem. A round of stale SGLD is one worker's upload; its gradient is of all "
                    "clients' data and counts as ten. DE-SGHMC keeps its momentum, FA-HMC its leapfrogs."),
]
