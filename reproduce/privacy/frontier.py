"""The privacy-accuracy frontier of FA-LD: epsilon of Theorem 5.1 against the exact W2."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
import theory
from theory import privacy

from .. import plot
from ..figure import ByScale, Drawing, Parameter, Tables, settings
from ..tables import among, groups
from ..tabulate import tabulate
from .claims import CLAIMS as CLAIMS

TITLE = "Privacy against accuracy"
PAPER = "ours, for FA-LD section 5"
SHOWS = ("What a smaller epsilon costs in exact W2 after a fixed number of rounds, by step size, shared "
         "noise and number of drawn clients; and delta of both participation schemes.")
COST = {"tiny": "6 s", "quick": "9 s", "paper": "12 s (estimated)"}
_CHOICE = "the paper has no such experiment"
PARAMETERS = [
    Parameter("n_clients", 10, "ours", _CHOICE),
    Parameter("client_size", 100_000, "ours", "records a client: a useful epsilon takes many"),
    Parameter("radius", 0.5, "ours", "a client's records fill a disc of this radius inside the unit disc"),
    Parameter("centre", 0.4, "ours", "of that disc, the same for all clients: unlike clients would hide the "
              "effect of shared noise behind their own bias"),
    Parameter("sensitivity", 2.0, "ours", "exact: loss |theta - x|^2 / 2 with records in the unit disc"),
    Parameter("batch_fraction", 0.1, "ours", "minibatch noise is part of the exact law"),
    Parameter("delta0", 1e-9, "ours", "small enough for delta < 1/records"),
    Parameter("delta1", 0.0, "ours", "basic composition is the better one for few local steps"),
    Parameter("delta2", 1e-8, "ours", "small enough for delta < 1/records"),
    Parameter("local_steps", 5, "ours", _CHOICE),
    Parameter("n_rounds", 50, "ours", "fixed, so that a small step size has not yet arrived"),
    Parameter("other_rounds", [25, 100, 200], "ours", "for the claim about T"),
    Parameter("step_sizes", ByScale(6, 40, 80), "ours", "number of step sizes between the next two"),
    Parameter("smallest_step", 5e-10, "ours", "leaves the chain near its start"),
    Parameter("largest_step", 5e-7, "ours", "1/(2L), the limit of the convergence theorems"),
    Parameter("shared", [0.0, 0.5, 0.9, 0.99], "ours", "shared_noise, the paper's rho squared"),
    Parameter("active", [2, 5, 8, 10], "ours", "S of the curves"),
    Parameter("fixed_step", 4e-8, "ours", "for the curves over shared noise; near the best step size"),
    Parameter("start", [0.0, 0.0], "ours", "a public value"),
    Parameter("data_seed", 0, "ours", "of the records drawn first; other data sets have the next seeds"),
    Parameter("n_data_sets", 12, "ours", "each is judged"),
]
def data_problem(p: Any, number: int = 0) -> fs.Quadratic:
    """Clients' records, the data set of this number.

    The loss is |theta - x|^2 / 2 per record, f_c = sum over records / p_c. Without-replacement minibatches
    add a gradient noise that does not depend on theta, so that the first two moments of the chain are
    exactly those of additive noise with this covariance.
    """
    draws = np.random.default_rng(p.data_seed + number)
    share, size = p.batch_fraction, p.client_size
    means, noises = [], []
    for _ in range(p.n_clients):
        radius = p.radius * np.sqrt(draws.random(size))
        angle = 2.0 * np.pi * draws.random(size)
        records = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1) + [p.centre, 0.0]
        if np.linalg.norm(records, axis=1).max() > 1.0:
            raise ValueError(f"radius={p.radius} must keep every record in the unit disc")
        means.append(records.mean(axis=0))
        # sum of size*share of size records, divided by share p_c
        noises.append(size * (1.0 - share) / share * p.n_clients**2 * np.cov(records.T))
    hessians = np.full(p.n_clients, float(p.n_clients * size))
    return fs.Quadratic(hessians, np.array(means), gradient_noise=np.array(noises))


def compute(scale: str) -> Tables:
    """Tables: steps (by step size, shared noise, S), shares, rounds, deltas, setting, evidence, data_sets."""
    p = settings(PARAMETERS, scale)
    problem = data_problem(p)
    steps = np.geomspace(p.smallest_step, p.largest_step, p.step_sizes)
    levels = 1.0 - np.geomspace(1.0, 1.0 - max(p.shared), p.step_sizes)
    entry = next(one for one in theory.errata("FA-LD") if one.id == "fa_ld.privacy.client_sampling")
    evidence = pd.DataFrame([dict(entry.evidence().numbers)])
    kinds = {"step_size": {"n_active": [p.n_clients], "step_size": steps},
             "shared_noise": {"shared_noise": p.shared}}
    sets = [_points(p, data_problem(p, number), **changed).assign(data_set=number, by=by)
            for number in range(p.n_data_sets) for by, changed in kinds.items()]
    return {
        "steps": _points(p, problem, shared_noise=p.shared, step_size=steps),
        "shares": _points(p, problem, shared_noise=levels),
        "rounds": _points(p, problem, n_rounds=sorted([p.n_rounds, *p.other_rounds])),
        "deltas": _points(p, problem, n_active=range(1, p.n_clients + 1), scheme=("I", "II")),
        "setting": pd.DataFrame([_facts(p, problem)]),
        "evidence": evidence[["claimed_epsilon", "claimed_delta", "claimed_exact", "record_level_epsilon"]],
        "data_sets": pd.concat(sets)[["data_set", "by", "n_active", "shared_noise", "step_size", "epsilon",
                                      "w2"]]}


def _points(p: Any, problem: fs.Quadratic, **changed: Any) -> pd.DataFrame:
    """Guarantees and exact W2 by S under scheme II at the fixed step size, but for what is changed."""
    values = {"n_active": p.active, "scheme": ["II"], "shared_noise": [0.0], "step_size": [p.fixed_step],
              "n_rounds": [p.n_rounds]}
    return tabulate("privacy", partial(_point, problem=problem), p, values | changed)


def _point(p: Any, problem: fs.Quadratic, n_active: int, scheme: str, shared_noise: float, step_size: float,
           n_rounds: int) -> dict[str, Any]:
    """Both guarantees and the exact W2."""
    algorithm = fs.FALD(float(step_size), p.local_steps, shared_noise=float(shared_noise),
                        participation=fs.Participation(n_active, scheme == "I"))
    setting = _setting(p, problem, algorithm, n_rounds)
    theorem, proved = (privacy.guarantee_at(setting, float(step_size), variant=name)
                       for name in ("printed", "record_level"))
    law = theory.exact_law(problem, algorithm, n_rounds, start=p.start, record=[])
    return {"w2": float(law.w2()[-1]), "epsilon_theorem": theorem.epsilon, "delta_theorem": theorem.delta,
            "theorem_vacuous": theorem.is_vacuous, "theorem_hypotheses": theorem.hypotheses_hold,
            "epsilon": proved.epsilon, "delta": proved.delta, "vacuous": proved.is_vacuous,
            "valid_57": proved.hypotheses_hold}


def _setting(p: Any, problem: fs.Quadratic, algorithm: fs.FALD, n_rounds: int) -> privacy.PrivacySetting:
    return privacy.setting_of(
        problem, algorithm, n_rounds, sensitivity=p.sensitivity, batch_fraction=p.batch_fraction,
        delta0=p.delta0, delta1=p.delta1, delta2=p.delta2, client_sizes=p.client_size)


def _facts(p: Any, problem: fs.Quadratic) -> dict[str, Any]:
    setting = _setting(p, problem, fs.FALD(p.fixed_step, p.local_steps), p.n_rounds)
    target, least_private = problem.target(), replace(setting, shared_noise=max(p.shared))
    return {"n_clients": p.n_clients, "n_rounds": p.n_rounds, "local_steps": p.local_steps,
            "records": p.n_clients * p.client_size, "fixed_step": p.fixed_step,
            "start_w2": fs.Gaussian(p.start, np.zeros(2)).w2(target),
            "target_spread": float(np.sqrt(target.variances.sum())),
            "ceiling_57": privacy.validity_ceiling(setting),
            "ceiling_57_least_private": privacy.validity_ceiling(least_private)}


def draw(tables: Tables) -> Drawing:
    """Frontiers by shared noise and by S, the effect of shared noise alone, and delta by S."""
    setting, steps = tables["setting"].iloc[0], tables["steps"]
    drawing, ((first, second), (third, fourth)) = plot.panels(2, 5.8, 6.0, n_rows=2)
    full = among(steps, n_active=setting["n_clients"])
    shades = matplotlib.colormaps["viridis"](np.linspace(0.1, 0.85, full["shared_noise"].nunique()))
    for (shared, one), colour in zip(groups(full, "shared_noise"), shades, strict=True):
        first.plot(one["epsilon"], one["w2"], color=plot.GREY, linewidth=1.6)  # seen where not drawn over
        plot.exact(first, one["epsilon"], one["w2"].where(one["valid_57"]), colour,
                   rf"$\rho^2$ = {shared:g}")
    first.plot([], [], color=plot.GREY, label="step size beyond condition (57)")
    for _, one in groups(among(tables["data_sets"], by="step_size"), "data_set"):
        first.plot(one["epsilon"], one["w2"], color="#000000", linewidth=0.4,
                   label=r"single data sets, $\rho^2$ = 0")
    for table, ax in ((among(steps, shared_noise=0.0), second), (tables["shares"], third)):
        for (n_active, one), colour in plot.shaded(groups(table, "n_active")):
            plot.exact(ax, one["epsilon"], one["w2"], colour, f"S = {n_active}")
            if not one["theorem_hypotheses"].all():
                ax.plot(one["epsilon_theorem"], one["w2"], color=colour, linestyle="--", alpha=0.45,
                        linewidth=1.2)
        ax.plot([], [], color=plot.GREY, label="solid: proved for every record")
        ax.plot([], [], color=plot.GREY, linestyle="--", linewidth=1.2,
                label="dashed: theorem 5.1 as printed, S < N (see its claim)")
    for _, one in groups(among(tables["data_sets"], by="shared_noise"), ["data_set", "n_active"]):
        third.plot(one["epsilon"], one["w2"], ".", color="#000000", markersize=2.5, label="single data sets")
    rounds = f"all {setting['n_rounds']:.0f} rounds"
    titles = ("(a) all clients, by shared noise", r"(b) scheme II, by S ($\rho^2$ = 0)",
              rf"(c) scheme II, $\rho^2$ from 0 to {tables['shares']['shared_noise'].max():g} "
              rf"at $\eta$ = {setting['fixed_step']:g}")
    for ax, title in zip((first, second, third), titles, strict=True):
        ax.axhline(setting["target_spread"], color="#000000", linestyle=":", linewidth=1.0,
                   label="spread of the target")
        ax.set(xscale="log", yscale="log", title=title,
               xlabel=rf"privacy loss $\varepsilon$, total of {rounds}",
               ylabel=rf"exact $W_2$ after {setting['n_rounds']:.0f} rounds"
                      + ("" if ax is first else " (two moments)"))
    first.set_xlim(left=0.1 * full["epsilon"].min())
    third.set_xlim(right=10.0 * tables["shares"]["epsilon"].max())
    _draw_deltas(fourth, tables["deltas"], 1.0 / setting["records"])
    fourth.set_ylabel(rf"failure probability $\delta$, total of {rounds}")
    for ax in (first, second, third, fourth):
        plot.legend_below(ax)
    return drawing


def _draw_deltas(ax: Axes, deltas: pd.DataFrame, limit: float) -> None:
    one, two = (among(deltas, scheme=scheme) for scheme in ("I", "II"))
    top = 10.0 * max(1.0, one["delta_theorem"].max())
    ax.axhspan(limit, top, color="#EEEEEE", zorder=0)
    ax.axhline(limit, color="#000000", linestyle=":", linewidth=1.0, label="1/records: vacuous from here")
    ax.plot(one["n_active"], one["delta_theorem"], "s--", color=plot.GREY, label="scheme I, theorem G.3")
    ax.plot(one["n_active"], one["delta"], "o-", color="#6A3D9A", label="scheme I, proved for every record")
    ax.plot(two["n_active"], two["delta"], "^-", color="#000000", label="scheme II")
    ax.set(yscale="log", ylim=(None, top), xlabel="drawn clients S", title=r"(d) $\delta$ of both schemes")
