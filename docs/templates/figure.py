"""TEMPLATE of a figure; it becomes `reproduce/<paper>/new_figure.py`, whose id is `<paper>_new_figure`.

It draws W2 of one client and of four against rounds: replicas, exact law, bound. Then
`python -m reproduce <paper>_new_figure` computes, judges and draws it, and puts it into the gallery.
"""

from __future__ import annotations

import pandas as pd

import fedsim as fs
import theory

from .. import figure as fig, plot, statistics

TITLE = "W2 against rounds, one client and four"
PAPER = "ours"  # or "FA-LD figure 7", and then REPRODUCES = ("FA-LD 7",) as reproduce/coverage.py writes it
SHOWS = "Replicas, exact law and bound of FA-LD for one client and for four."
COST = {"tiny": "1 s", "quick": "2 s", "paper": "5 s (estimated)"}
# every number of the set-up, from the paper or ours with the reason; a name that ends in seed is a seed
PARAMETERS = [
    fig.Parameter("step_size", 0.02, "ours", "half of what the bound allows"),
    fig.Parameter("local_steps", 5, "ours", "a few"),
    fig.Parameter("n_clients", [1, 4], "ours", "with and without heterogeneity"),
    fig.Parameter("n_rounds", fig.ByScale(20, 50, 200), "ours", "until the curves are flat"),
    fig.Parameter("n_replicas", fig.ByScale(500, 2_000, 20_000), "ours", "bands narrower than curves"),
    fig.Parameter("seed", 1, "ours", "any"),
]


def compute(scale: str) -> fig.Tables:
    """Everything that is drawn, and nothing is drawn that is not here."""
    p = fig.settings(PARAMETERS, scale)
    algorithm = fs.FALD(p.step_size, p.local_steps)
    curves, checked = [], []
    for n in p.n_clients:
        fig.note(f"simulating N = {n}")
        problem = fs.Quadratic([[1.0, 4.0]] * n, [[float(client), 0.0] for client in range(n)])
        run = fs.simulate(problem, algorithm, p.n_rounds, p.n_replicas, seed=p.seed)
        law = theory.exact_law(problem, algorithm, p.n_rounds)
        bound = theory.fa_ld.w2_bound(theory.constants(problem, algorithm), algorithm, n_rounds=p.n_rounds)
        low, high = run.w2_interval().T
        curves.append(pd.DataFrame({
            "clients": n, "round": law.rounds, "exact": law.w2(), "replicas": run.w2(), "low": low,
            "high": high, "bound": bound.value, "vacuous": bound.is_vacuous}))
        largest, compared = statistics.deviation(run, law)
        checked.append({"clients": n, "deviation": largest, "compared": compared})
    return {"curves": pd.concat(curves, ignore_index=True), "checked": pd.DataFrame(checked)}


def draw(tables: fig.Tables) -> fig.Drawing:
    """The picture, from the tables alone: restyling never simulates."""
    drawing, ((ax,),) = plot.panels(1)
    for (n, one), colour in zip(tables["curves"].groupby("clients"), plot.COLOURS, strict=False):
        rounds, label = one["round"], f"N = {n}"
        plot.replicas(ax, rounds, one["replicas"], one["low"], one["high"], colour, f"{plot.BAND}, {label}")
        plot.exact(ax, rounds, one["exact"], colour, f"{plot.EXACT}, {label}")
        plot.bound(ax, rounds, one["bound"], one["vacuous"].all(), False, f"Theorem 4.7, {label}", colour)
    ax.set(yscale="log", xlabel="round", ylabel=r"$W_2$", title="FA-LD, K = 5")
    plot.legend_below(ax)
    return drawing


def judge_replicas(tables: fig.Tables) -> tuple[str, str]:
    """Do replicas follow the exact law?"""
    checked = tables["checked"]
    return statistics.follows(checked["deviation"], checked["compared"])


# a Claim is the paper's sentence, a Finding ours, Unjudged what the paper says and no number here decides;
# for every judge tests/opposites/ has tables that turn it
CLAIMS = [
    fig.Finding("Replicas follow the exact law.", "", judge_replicas, name="replicas", rests_on=fig.REPLICAS),
]
