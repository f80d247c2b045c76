"""Theorem 3's bound at its best step size: its exponents, and how workers cancel in it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar

from theory.stale import chain_terms, mse_step_size

from .. import figure as fig

SAME = 1e-3
"""Of exponents and ratios that come out of a minimum."""


def tables(p: Any) -> fig.Tables:
    """Tables: bound (by age and L), shared (by workers, with tau = W and L = W Lbar)."""
    bound = [_best_bound(tau, length) for tau in p.ages for length in p.lengths]
    shared = [{"workers": n, **_best_bound(n, n * p.per_worker)} for n in p.workers]
    return {"bound": pd.DataFrame(bound), "shared": pd.DataFrame(shared)}


def _best_bound(tau: int, length: int) -> dict[str, Any]:
    """Theorem 3's bound at its best step size, of its terms in time and in tau, constants one."""
    def value(log_step: float) -> float:
        terms = chain_terms("mse", [length], [np.exp(log_step)], float(tau))
        return float(np.log(terms["time"] + terms["staleness"]))

    guess = np.log(mse_step_size(length, tau))
    least = minimize_scalar(value, bounds=(guess - 3.0, guess + 3.0), method="bounded",
                            options={"xatol": 1e-9})
    return {"age": tau, "iteration": length, "step_size": float(np.exp(least.x)),
            "mse": float(np.exp(least.fun))}


def judge_bound(tables: fig.Tables, of: str) -> tuple[str, str]:
    """Exponents of the bound's best value or step size in tau and L."""
    wanted = {"mse": (2.0 / 3.0, -2.0 / 3.0), "step_size": (-2.0 / 3.0, -1.0 / 3.0)}[of]
    table = tables["bound"]
    logs = np.log(table[["age", "iteration"]].to_numpy(dtype=float))
    found = np.linalg.lstsq(np.column_stack([logs, np.ones(len(logs))]), np.log(table[of]), rcond=None)[0]
    same = bool(np.abs(found[:2] - wanted).max() < SAME)
    return (fig.PASS if same else fig.FAIL), (
        f"Best over h, by the terms in time and in tau: exponents {found[0]:.4f} in tau against "
        f"{wanted[0]:.4f}, {found[1]:.4f} in L against {wanted[1]:.4f}.")


def judge_cancels(tables: fig.Tables) -> tuple[str, str]:
    """Is the best bound with tau = W and L = W Lbar the same for all W?"""
    values = tables["shared"]["mse"] / tables["shared"]["mse"].iloc[0]
    return (fig.PASS if float(np.abs(values - 1.0).max()) < SAME else fig.FAIL), (
        "Best bound with tau = W and L = W Lbar over that of one worker: "
        + ", ".join(f"{value:.4f} (W = {n})" for n, value in zip(tables["shared"]["workers"], values,
                                                                 strict=True)) + ".")


AT_BEST = "Theorem 3's terms 1/(L h) and tau^2 h^2, constants one, minimised over h by numbers."
CLAIMS = [
    fig.Claim("The optimal MSE bound is proportional to tau^(2/3) L^(-2/3).", "sections 4 and 5.1",
              partial(judge_bound, of="mse"), "optimal_mse", fig.EXACT, AT_BEST),
    fig.Claim("The optimal step size is h = C tau^(-2/3) L^(-1/3).", "section 5.1",
              partial(judge_bound, of="step_size"), "optimal_step", fig.EXACT, AT_BEST),
    fig.Claim("As tau is about W, W cancels in the optimal MSE bound: the same as standard SG-MCMC, no "
              "theoretical speedup.", "section 4", judge_cancels, "no_speedup", fig.EXACT, AT_BEST)]
