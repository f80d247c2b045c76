"""The law of the average that FA-HMC's lower bound displays, judged beside the exact one."""

from __future__ import annotations

import pandas as pd

from .figure import FAIL, MISPRINT, PASS, Tables


def _apart(table: pd.DataFrame, name: str) -> float:
    """Largest relative difference from the exact mean and variance."""
    gaps = [(table[f"{name}_{part}"] / table[part] - 1.0).abs().max() for part in ("mean", "variance")]
    return float(max(gaps))


def judge(tables: Tables) -> tuple[str, str]:
    """The law displayed, and the closed form with the proof's mean and the variance that a round adds."""
    table = tables["laws"]
    display, closed = _apart(table, "display"), _apart(table, "closed")
    proof = table["proof_variance"] / table["variance"]
    if display <= 1e-9:
        return PASS, "Mean and variance displayed are those of the exact law within rounding."
    said = f"Mean and variance displayed are off the exact law by up to {display:.1f} times its own, "
    if closed <= 1e-9:
        return MISPRINT, said + (
            "those with the proof's mean and the variance that a round adds by nothing beyond rounding "
            "(erratum fa_hmc.lower_display). The proof's own variance is right at T = 1 and up to "
            f"{proof.max():.3f} times too large otherwise (erratum fa_hmc.lower_variance).")
    return FAIL, said + f"those of the corrected reading by up to {closed:.1e}."
