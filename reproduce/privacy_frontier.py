"""The privacy-accuracy frontier of FA-LD: epsilon of Theorem 5.1 against the exact W2."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

import fedsim as fs
import theory
from theory import privacy

from . import plot
from .figure import FAIL, PASS, ByScale, Claim, Drawing, Parameter, Tables, settings

TITLE = "FA-LD: privacy against accuracy"
PAPER = "ours, for FA-LD section 5"
SHOWS = ("What a smaller epsilon costs in exact W2 after a fixed number of rounds, by step size, shared "
         "noise and number of drawn clients; and delta of both participation schemes.")
COST = {"tiny": "1 s", "quick": "3 s", "paper": "4 s"}
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
    Parameter("seed", 0, "ours", "of the records"),
]


def data_problem(p: Any) -> fs.Quadratic:
    """Clients' records drawn once; loss |theta - x|^2 / 2 per record, f_c = sum over records / p_c.

    Without-replacement minibatches add a gradient noise that does not depend on theta, so that the
    first two moments of the chain are exactly those of additive noise with this covariance.
    """
    draws = np.random.default_rng(p.seed)
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
    """Tables: steps (by step size, shared noise, S), shares, rounds, deltas, setting, evidence."""
    p = settings(PARAMETERS, scale)
    problem = data_problem(p)
    grid = np.geomspace(p.smallest_step, p.largest_step, p.step_sizes)
    levels = 1.0 - np.geomspace(1.0, 1.0 - max(p.shared), p.step_sizes)
    steps = [_row(p, problem, step, shared, n_active, "II")
             for n_active in p.active for shared in p.shared for step in grid]
    shares = [_row(p, problem, p.fixed_step, shared, n_active, "II")
              for n_active in p.active for shared in levels]
    rounds = [_row(p, problem, p.fixed_step, 0.0, n_active, "II", n_rounds)
              for n_active in p.active for n_rounds in sorted([p.n_rounds, *p.other_rounds])]
    deltas = [_row(p, problem, p.fixed_step, 0.0, n_active, scheme)
              for n_active in range(1, p.n_clients + 1) for scheme in ("I", "II")]
    given = _setting(p, problem, fs.FALD(p.fixed_step, p.local_steps))
    target = problem.target()
    facts = {"n_clients": p.n_clients, "n_rounds": p.n_rounds, "local_steps": p.local_steps,
             "records": p.n_clients * p.client_size, "fixed_step": p.fixed_step,
             "start_w2": fs.Gaussian(p.start, np.zeros(2)).w2(target),
             "target_spread": float(np.sqrt(target.variances.sum())),
             "ceiling_57": privacy.validity_ceiling(given),
             "ceiling_57_least_private": privacy.validity_ceiling(replace(given, shared_noise=max(p.shared)))}
    entry = next(one for one in theory.errata("FA-LD") if one.id == "fa_ld.privacy.client_sampling")
    return {"steps": pd.DataFrame(steps), "shares": pd.DataFrame(shares), "rounds": pd.DataFrame(rounds),
            "deltas": pd.DataFrame(deltas), "setting": pd.DataFrame([facts]),
            "evidence": pd.DataFrame([dict(entry.evidence().numbers)])}


def _setting(p: Any, problem: fs.Quadratic, algorithm: fs.FALD,
             n_rounds: int | None = None) -> privacy.PrivacySetting:
    return privacy.setting_of(
        problem, algorithm, n_rounds or p.n_rounds, sensitivity=p.sensitivity,
        batch_fraction=p.batch_fraction, delta0=p.delta0, delta1=p.delta1, delta2=p.delta2,
        client_sizes=p.client_size)


def _row(p: Any, problem: fs.Quadratic, step: float, shared: float, n_active: int, scheme: str,
         n_rounds: int | None = None) -> dict[str, Any]:
    """Both guarantees and the exact W2 of one parameter point."""
    rounds = n_rounds or p.n_rounds
    algorithm = fs.FALD(float(step), p.local_steps, shared_noise=float(shared),
                        participation=fs.Participation(n_active, scheme == "I"))
    given = _setting(p, problem, algorithm, rounds)
    theorem, proved = (privacy.guarantee_at(given, float(step), variant=name)
                       for name in ("printed", "record_level"))
    law = theory.exact_law(problem, algorithm, rounds, start=p.start, record=[])
    return {"n_active": n_active, "scheme": scheme, "shared_noise": float(shared), "step_size": float(step),
            "n_rounds": rounds, "w2": float(law.w2()[-1]), "epsilon_theorem": theorem.epsilon,
            "delta_theorem": theorem.delta, "theorem_vacuous": theorem.is_vacuous,
            "theorem_hypotheses": theorem.hypotheses_hold, "epsilon": proved.epsilon, "delta": proved.delta,
            "vacuous": proved.is_vacuous, "valid_57": proved.hypotheses_hold}


def draw(tables: Tables) -> Drawing:
    """Frontiers by shared noise and by S, the effect of shared noise alone, and delta by S."""
    setting, steps = tables["setting"].iloc[0], tables["steps"]
    drawing, ((first, second), (third, fourth)) = plot.panels(2, 5.8, 4.5, n_rows=2)
    full = steps[(steps["n_active"] == setting["n_clients"]) & (steps["scheme"] == "II")]
    for (shared, one), colour in zip(full.groupby("shared_noise"), plot.COLOURS, strict=False):
        first.plot(one["epsilon"], one["w2"], color=plot.GREY, linewidth=1.6)  # seen where not drawn over
        plot.exact(first, one["epsilon"], one["w2"].where(one["valid_57"]), colour, rf"$\rho^2$ = {shared:g}")
    first.plot([], [], color=plot.GREY, label="step size beyond condition (57)")
    first.set(title="(a) all clients, by shared noise")
    second.set(title=r"(b) scheme II, by S ($\rho^2$ = 0)")
    third.set(title=rf"(c) scheme II, $\rho^2$ from 0 to {tables['shares']['shared_noise'].max():g} "
              rf"at $\eta$ = {setting['fixed_step']:g}")
    own = steps.query("shared_noise == 0.0 and scheme == 'II'")
    for table, panel in ((own, second), (tables["shares"], third)):
        for (n_active, one), colour in zip(table.groupby("n_active"), plot.COLOURS, strict=False):
            plot.exact(panel, one["epsilon"], one["w2"], colour, f"S = {n_active}")
            if not one["theorem_hypotheses"].all():
                panel.plot(one["epsilon_theorem"], one["w2"], color=colour, linestyle="--", alpha=0.45,
                           linewidth=1.2)
        panel.plot([], [], color=plot.GREY, label="solid: holds for every record")
        panel.plot([], [], color=plot.GREY, linestyle="--", linewidth=1.2,
                   label="dashed: Theorem 5.1, S < N\n(outside its hypotheses)")
    for panel in (first, second, third):
        panel.axhline(setting["target_spread"], color="#000000", linestyle=":", linewidth=1.0,
                      label="spread of the target")
        panel.set(xscale="log", yscale="log", xlabel=r"privacy loss $\varepsilon$",
                  ylabel=rf"exact $W_2$ after {setting['n_rounds']:.0f} rounds"
                         + ("" if panel is first else " (two moments)"))
    first.set_xlim(left=0.1 * full["epsilon"].min())
    first.legend(fontsize=7.5, loc="lower left")
    second.legend(fontsize=7.5, loc="lower left")
    third.set_xlim(right=10.0 * tables["shares"]["epsilon"].max())
    third.legend(fontsize=7.5, loc="upper right")
    _draw_deltas(fourth, tables["deltas"], 1.0 / setting["records"])
    return drawing


def _draw_deltas(panel: Any, deltas: pd.DataFrame, limit: float) -> None:
    one, two = (deltas[deltas["scheme"] == scheme] for scheme in ("I", "II"))
    top = 10.0 * max(1.0, one["delta_theorem"].max())
    panel.axhspan(limit, top, color="#EEEEEE", zorder=0)
    panel.axhline(limit, color="#000000", linestyle=":", linewidth=1.0, label="1/records: vacuous from here")
    panel.plot(one["n_active"], one["delta_theorem"], "s--", color=plot.GREY, label="scheme I, Theorem G.3")
    panel.plot(one["n_active"], one["delta"], "o-", color=plot.COLOURS[1],
               label="scheme I, holds for every record")
    panel.plot(two["n_active"], two["delta"], "^-", color=plot.COLOURS[0], label="scheme II")
    panel.set(yscale="log", ylim=(None, top), xlabel="drawn clients S",
              ylabel=r"failure probability $\delta$", title=r"(d) $\delta$ of both schemes")
    panel.legend(fontsize=7.5, loc="center right")


def _rises(table: pd.DataFrame, by: str, value: str, within: list[str]) -> bool:
    """Does `value` strictly increase along `by` in every group?"""
    return all((np.diff(one.sort_values(by)[value]) > 0.0).all() for _, one in table.groupby(within))


def judge_monotone(tables: Tables) -> tuple[str, str]:
    """epsilon by step size, shared noise, S and T."""
    steps, found = tables["steps"].query("scheme == 'II'"), {}
    for by, table in (("step_size", steps), ("shared_noise", steps), ("n_active", steps),
                      ("n_rounds", tables["rounds"])):
        rest = [name for name in ("n_active", "shared_noise", "step_size", "n_rounds") if name != by]
        found[by] = _rises(table, by, "epsilon_theorem", rest)
    wrong = [name for name, rising in found.items() if not rising]
    return (FAIL if wrong else PASS), (
        "On the whole grid epsilon of Theorem 5.1 increases with "
        + ", ".join(name for name in found if name not in wrong)
        + (f", but not with {', '.join(wrong)}." if wrong else "."))


def judge_optimum(tables: Tables) -> tuple[str, str]:
    """An interior best step size, and epsilon to zero with the step size."""
    one = tables["steps"].query("scheme == 'II' and shared_noise == 0.0")
    one = one[one["n_active"] == tables["setting"]["n_clients"].iloc[0]]
    one = one.sort_values("step_size").reset_index(drop=True)
    best = int(np.argmin(one["w2"]))
    root = np.polyfit(np.log(one["step_size"]), np.log(one["epsilon"]), 1)[0]
    inside = 0 < best < len(one) - 1 and one["epsilon"].is_monotonic_increasing
    return (PASS if inside else FAIL), (
        f"All clients, no shared noise: exact W2 is smallest, {one['w2'][best]:.2e}, at step size "
        f"{one['step_size'][best]:.1e} (epsilon {one['epsilon'][best]:.2g}); at the smallest step size "
        f"epsilon is {one['epsilon'][0]:.2g} but W2 {one['w2'][0]:.2g}; epsilon grows like the step size to "
        f"the power {root:.2f}.")


def _gain(tables: Tables, n_active: int) -> tuple[float, float]:
    """Factors by which most shared noise changes W2 and epsilon at the fixed step size."""
    one = tables["shares"].query("n_active == @n_active").sort_values("shared_noise")
    least, most = one.iloc[0], one.iloc[-1]
    return float(most["w2"] / least["w2"]), float(most["epsilon"] / least["epsilon"])


def judge_shared_partial(tables: Tables) -> tuple[str, str]:
    """With some clients drawn, shared noise buys accuracy."""
    everyone = int(tables["setting"]["n_clients"].iloc[0])
    counts = [int(s) for s in sorted(tables["shares"]["n_active"].unique()) if s < everyone]
    gains = {s: _gain(tables, s) for s in counts}
    return (PASS if all(w2 < 1.0 for w2, _ in gains.values()) else FAIL), (
        f"From shared noise 0 to {tables['shares']['shared_noise'].max():g} exact W2 changes by the factor "
        + ", ".join(f"{w2:.2f} (S={s})" for s, (w2, _) in gains.items())
        + f", epsilon by {min(e for _, e in gains.values()):.0f} or more.")


def judge_shared_full(tables: Tables) -> tuple[str, str]:
    """With all clients, equal Hessians: shared noise buys nothing."""
    w2, epsilon = _gain(tables, int(tables["setting"]["n_clients"].iloc[0]))
    return (PASS if w2 < 1.0 - 1e-6 else FAIL), (
        f"With all clients exact W2 changes by the relative amount {abs(w2 - 1.0):.0e} while epsilon grows "
        f"by the factor {epsilon:.0f}: all clients have the same Hessian, so the averaged noise has the same "
        "law however much of it is shared, and the smallest rho is best.")


def judge_record(tables: Tables) -> tuple[str, str]:
    """Theorem 5.1 for one replaced record when clients are left out."""
    row = tables["evidence"].iloc[0]
    wrong = row["claimed_exact"] > row["claimed_delta"]
    return (FAIL if wrong else PASS), (
        f"Counterexample (one round, one step, 1 of 100 clients, 100 records each): at the theorem's "
        f"epsilon {row['claimed_epsilon']:.3g} the exact delta is {row['claimed_exact']:.1e}, its delta is "
        f"{row['claimed_delta']:.0e}; the amplification (62) would need one record per client. Solid "
        "curves do without it.")


def judge_scheme_i(tables: Tables) -> tuple[str, str]:
    """Is scheme I's delta of any use?"""
    one = tables["deltas"].query("scheme == 'I'").set_index("n_active").sort_index()
    useful = [str(s) for s in one.index if not one["theorem_vacuous"][s]]
    last = int(one.index[-1])
    return (PASS if len(useful) == len(one) else FAIL), (
        f"Vacuous: delta of Theorem G.3 is {one['delta_theorem'][1]:.1e} at S=1, "
        f"{one['delta_theorem'][2]:.1e} at S=2 and {one['delta_theorem'][last]:.1e} at S={last}, against "
        f"1/records = {1.0 / tables['setting']['records'].iloc[0]:.0e} (useful at S = "
        f"{', '.join(useful) or 'none'}); as an upload drawn twice is the same upload, "
        f"{one['delta'][last]:.1e} is enough.")


def judge_valid(tables: Tables) -> tuple[str, str]:
    """Condition (57) on every curve."""
    valid = tables["steps"].groupby("shared_noise")["valid_57"].mean()
    row = tables["setting"].iloc[0]
    return (PASS if bool(tables["steps"].query("shared_noise == 0.0")["valid_57"].all()) else FAIL), (
        f"(57) allows step sizes up to {row['ceiling_57']:.1e} with independent noise, above all that are "
        f"used, and {row['ceiling_57_least_private']:.1e} with the most shared noise; it holds at "
        + ", ".join(f"{100.0 * part:.0f}% (rho^2 = {shared:g})" for shared, part in valid.items())
        + " of the step sizes.")


CLAIMS = [
    Claim("Condition (57) of Theorem 5.1 can be met at useful step sizes.", "theorem 5.1", judge_valid),
    Claim("epsilon increases with the step size over the private noise, with S/N and with T.", "section 5",
          judge_monotone),
    Claim("For a fixed number of rounds there is a best step size for W2, while epsilon becomes arbitrarily "
          "small with the step size.", "section 5", judge_optimum),
    Claim("Partial participation: the bound on W2 falls as rho grows, and so does W2: choose the largest rho "
          "that the privacy budget allows.", "section 5", judge_shared_partial),
    Claim("All clients: the bound on W2 falls as rho grows, and so does W2: choose the largest rho that the "
          "privacy budget allows.", "section 5", judge_shared_full),
    Claim("Under scheme II drawing S of N clients reduces epsilon for the replacement of one data point.",
          "theorem 5.1", judge_record),
    Claim("Scheme I has a useful guarantee as well.", "theorem G.3", judge_scheme_i),
]
