"""The law of the average that FA-HMC's lower bound displays, judged beside the exact one."""

from __future__ import annotations

import pandas as pd

from ..figure import FAIL, MISPRINT, PASS, Tables

CONTEXT = ("The corrected reading is the last line of the proof. At T = 1, where no T can be lost, it is all "
           "the paper's; for T > 1 its mean is the proof's and its variance is ours, that which a round "
           "adds. The lower bound uses the proof's mean alone and stands.")
ROUNDING = 1e-9  # relative


def _over(table: pd.DataFrame, name: str, part: str) -> pd.Series:
    """A mean or variance over the exact one."""
    return table[f"{name}_{part}"] / table[part]


def _off(table: pd.DataFrame, name: str) -> float:
    """Largest relative difference from the exact mean and variance."""
    return float(max((_over(table, name, part) - 1.0).abs().max() for part in ("mean", "variance")))


def _said(table: pd.DataFrame) -> str:
    ranges = {part: _over(table, "display", part) for part in ("mean", "variance")}
    return " and ".join(f"{one.min():.2g} to {one.max():.3g} times the exact {part}"
                        for part, one in ranges.items())


def judge(tables: Tables) -> tuple[str, str]:
    """The law displayed, and the proof's with the variance that a round adds."""
    table = tables["laws"]
    single = table["local_steps"] == 1
    first, later = table[single], table[~single]
    if _off(table, "display") <= ROUNDING:
        return PASS, "Mean and variance displayed are those of the exact law within rounding."
    said = f"At T = 1 the display has {_said(first)}; at larger T {_said(later)}. "
    closed = _off(table, "closed")
    own = float((_over(first, "proof", "variance") - 1.0).abs().max())
    if max(closed, own) <= ROUNDING:
        return MISPRINT, said + (
            "The corrected reading is off by nothing beyond rounding (erratum fa_hmc.lower_display). The "
            "proof's own variance is exact at T = 1 and up to "
            f"{_over(later, 'proof', 'variance').max():.3f} times the exact one at larger T (erratum "
            "fa_hmc.lower_variance).")
    return FAIL, said + f"The corrected reading is off by up to {max(closed, own):.1e}."
