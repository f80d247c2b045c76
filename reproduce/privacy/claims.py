"""What is said about FA-LD's privacy-accuracy frontier."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..figure import Claim, Finding, Tables
from ..tables import among, groups
from ..verdicts import DATA_SETS, EXACT, FAIL, PASS, shares, unanimous

SAME = 1e-6  # relative; beyond rounding


def _rises(table: pd.DataFrame, by: str, value: str, within: list[str], sign: float = 1.0) -> bool:
    """Does `value` (times the sign) strictly increase along `by` in every group?"""
    return all((sign * np.diff(one.sort_values(by)[value]) > 0.0).all() for _, one in groups(table, within))


def judge_increasing(tables: Tables) -> tuple[str, str]:
    """epsilon by step size, shared noise, S and T."""
    names = ["step_size", "shared_noise", "n_active", "n_rounds"]
    steps, rounds = tables["steps"], tables["rounds"]
    rising = [name for name in names if _rises(rounds if name == "n_rounds" else steps, name,
                                               "epsilon_theorem", [one for one in names if one != name])]
    wrong = [name for name in names if name not in rising]
    return (FAIL if wrong else PASS), (
        f"On {len(steps) + len(rounds)} points epsilon of theorem 5.1 increases with {', '.join(rising)}"
        + (f", but not with {', '.join(wrong)}." if wrong else "."))


def judge_optimum(tables: Tables) -> tuple[str, str]:
    """An interior best step size, and epsilon to zero with the step size."""
    table = among(tables["data_sets"], by="step_size")
    w2 = table.pivot(index="data_set", columns="step_size", values="w2")
    best = w2.to_numpy().argmin(axis=1)
    epsilon = among(table, data_set=table["data_set"].min()).sort_values("step_size")["epsilon"]
    good = (best > 0) & (best < w2.shape[1] - 1) & bool(epsilon.is_monotonic_increasing)
    root = np.polyfit(np.log(w2.columns), np.log(epsilon), 1)[0]
    steps = w2.columns.to_numpy()[best]
    return unanimous(good), (
        f"All clients, no shared noise: exact W2 is smallest, {w2.min(axis=1).median():.2e} (median), at "
        f"step sizes from {steps.min():.1e} to {steps.max():.1e}, tried from {w2.columns[0]:.0e} to "
        f"{w2.columns[-1]:.0e}; epsilon grows like the step size to the power {root:.2f}: a best step size "
        f"in between, and epsilon falling with it, {shares(good)}.")


def judge_largest(tables: Tables) -> tuple[str, str]:
    """Does exact W2 fall with shared noise where clients are drawn, and with S?"""
    table = among(tables["data_sets"], by="shared_noise")
    some = table["n_active"] < table["n_active"].max()
    good = [_rises(one[some[one.index]], "shared_noise", "w2", ["n_active"], -1.0)
            and _rises(one, "n_active", "w2", ["shared_noise"], -1.0) for _, one in groups(table, "data_set")]
    ends = table[some].pivot(index=["data_set", "n_active"], columns="shared_noise", values="w2")
    factor = (ends.iloc[:, -1] / ends.iloc[:, 0]).groupby("n_active").median()
    return unanimous(good), (
        f"From rho^2 = {ends.columns[0]:g} to {ends.columns[-1]:g} exact W2 changes by the factor "
        + ", ".join(f"{value:.2f} (S = {s})" for s, value in factor.items())
        + f" (medians): it falls with rho and with S {shares(good)}.")


def judge_record(tables: Tables) -> tuple[str, str]:
    """Theorem 5.1 for one replaced record when clients are left out."""
    row = tables["evidence"].iloc[0]
    wrong = row["claimed_exact"] > row["claimed_delta"]
    return (FAIL if wrong else PASS), (
        f"At the theorem's epsilon {row['claimed_epsilon']:.3g} the exact delta of replacing one record is "
        f"{row['claimed_exact']:.1e}, the theorem's is {row['claimed_delta']:.0e}. Proved for every "
        f"record at that delta is epsilon = {row['record_level_epsilon']:.3g}.")


def judge_condition(tables: Tables) -> tuple[str, str]:
    """Condition (57) on every curve."""
    valid = tables["steps"].groupby("shared_noise")["valid_57"].mean()
    row = tables["setting"].iloc[0]
    return (PASS if valid.iloc[0] == 1.0 else FAIL), (
        f"(57) allows step sizes up to {row['ceiling_57']:.1e} with independent noise and "
        f"{row['ceiling_57_least_private']:.1e} with the most shared noise; it holds at "
        + ", ".join(f"{100.0 * part:.0f}% (rho^2 = {shared:g})" for shared, part in valid.items())
        + " of the step sizes that are drawn.")


def judge_all_clients(tables: Tables) -> tuple[str, str]:
    """With all clients, equal Hessians: does shared noise cost epsilon and buy nothing?"""
    one = among(tables["shares"], n_active=tables["setting"]["n_clients"].iloc[0])
    first, last = (one.sort_values("shared_noise").iloc[place] for place in (0, -1))
    change, cost = abs(last["w2"] / first["w2"] - 1.0), last["epsilon"] / first["epsilon"]
    size = "nothing beyond rounding" if change < SAME else f"the relative amount {change:.0e}"
    return (PASS if change < SAME and cost > 1.0 else FAIL), (
        f"From rho^2 = 0 to {last['shared_noise']:g} exact W2 changes by {size}, epsilon by the factor "
        f"{cost:.0f}.")


def judge_scheme_i(tables: Tables) -> tuple[str, str]:
    """Is scheme I's delta 1/records or more as soon as two clients are drawn?"""
    one = among(tables["deltas"], scheme="I").set_index("n_active")
    delta, large = one["delta_theorem"].loc[2:], one["theorem_vacuous"].loc[2:]
    return (PASS if large.all() else FAIL), (
        f"delta of theorem G.3 is {one['delta_theorem'].iloc[0]:.1e} at S = 1, {delta.min():.1e} to "
        f"{delta.max():.1e} for S from 2 to {one.index[-1]}: 1/records = "
        f"{1.0 / tables['setting']['records'].iloc[0]:.0e} or more for {int(large.sum())} of these "
        f"{len(large)} S. What is proved for every record needs {one['delta'].max():.1e} at most.")


CLAIMS = [
    Claim("epsilon is an increasing function of the step size over the private noise, of S/N and of T.",
          "section 5", judge_increasing, "increasing", EXACT),
    Claim("There is an optimal step size to minimize W2 for fixed T, while epsilon can be made arbitrarily "
          "small by decreasing the step size.", "section 5", judge_optimum, "optimum", DATA_SETS),
    Claim("For example, under some privacy budget one can select the largest rho and S that it allows, to "
          "achieve the target error.", "section 5", judge_largest, "largest", DATA_SETS,
          context="The paper derives it from the bound of theorem 4.10, for partial participation; here the "
          "exact W2 at a fixed step size is looked at."),
    Claim("Under scheme II, Algorithm 1 is (epsilon, delta)-private for the replacement of one data point "
          "with log(1 + (S/N)(e^epsilon_K - 1)) in place of epsilon_K.", "theorem 5.1", judge_record,
          "record", EXACT, context="A counterexample within assumptions G.1, G.2 and the step sizes of the "
          "theorem: T = K = 1, a full-batch step of the size at the end of (57), 1 of 100 clients drawn, 100 "
          "records each, of which one is replaced; the other clients' records lie elsewhere in the domain. "
          "Leaving clients out hides a record only if an upload without it could be any client's; the proof "
          "covers one record per client, and S = N. We found no reading of the formula that gives the "
          "amplification; read per client, epsilon_1 does not cover the change. Proved for every record is "
          "epsilon_K itself, with delta times S/N (solid curves)."),
    Finding("Condition (57) of theorem 5.1 can be met at all these step sizes with independent noise.",
            "theorem 5.1", judge_condition, "condition", EXACT),
    Finding("With all clients shared noise costs epsilon and buys no accuracy.", "section 5",
            judge_all_clients, "all_clients", EXACT,
            context="Our records' loss gives all clients the same Hessian, so that the averaged noise has "
            "the same law however much of it is shared; the paper's advice is for partial participation."),
    Finding("Under scheme I with delta0 = 1e-9 the delta of theorem G.3 exceeds 1/records from S = 2 on.",
            "theorem G.3", judge_scheme_i, "scheme_i", EXACT,
            context="A delta of 1/records or more allows one record to be published. An upload drawn twice "
            "is the same upload, which theorem G.3 does not use. delta0 is ours: a smaller one repairs this "
            "at the price of epsilon, which grows about like the root of log(1/delta0); here 1e-30 does for "
            "S = 2 alone, 1e-200 for every S, with five times the epsilon."),
]
